/* SPDX-License-Identifier: MIT */
/*
 * A PLT stub is an indirect jump through a slot of the GOT, and a relocation
 * says which function the loader puts into that slot. This decodes the jump
 * instead of counting stubs, so it works with every layout (.plt, .plt.sec,
 * .plt.got, lld's).
 */
#include "symbol/elf/symbols.h"

#include <string.h>

static uint32_t
read_u32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

/* The slot of "jmp *disp32(%rip)" (ff 25) in the stub; 0: none. */
static uint64_t
slot_x86_64(const uint8_t *stub, size_t n, uint64_t address)
{
    size_t i;

    for (i = 0; i + 6 <= n; i++)
        if (stub[i] == 0xff && stub[i + 1] == 0x25)
            return address + i + 6 + (uint64_t)(int32_t)read_u32(stub + i + 2);
    return 0;
}

/*
 * The slot of "adrp x16, page; ldr x17, [x16, #offset]" at the instruction.
 */
static uint64_t
slot_aarch64(const uint8_t *code, uint64_t address)
{
    uint32_t adrp = read_u32(code);
    uint32_t ldr = read_u32(code + 4);
    /* A signed number of 21 bits: immhi, then immlo. */
    uint64_t bits = (adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
    uint64_t pages = (bits ^ 1u << 20) - (1u << 20);

    if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
        return 0;
    return (address & ~(uint64_t)0xfff) + pages * 4096 +
           (ldr >> 10 & 0xfff) * 8;
}

/* A section of stubs, and how far into it an address lies. */
struct stubs {
    const uint8_t *bytes;
    uint64_t address;
    size_t n;
    size_t at;
    size_t stub_bytes;
};

/* Stubs of x86-64 are 16 bytes, in .plt.got 8, and aligned (ABI, 5.2). */
static uint64_t
find_slot_x86_64(const struct stubs *stubs)
{
    size_t start = stubs->at / stubs->stub_bytes * stubs->stub_bytes;
    size_t n = stubs->n - start;

    return slot_x86_64(stubs->bytes + start,
                       n < stubs->stub_bytes ? n : stubs->stub_bytes,
                       stubs->address + start);
}

/* Stubs of aarch64 are 4 to 6 instructions, the load among the first three:
 * the nearest one at or before the address, or just behind a landing pad. */
static uint64_t
find_slot_aarch64(const struct stubs *stubs)
{
    size_t at = stubs->at & ~(size_t)3;
    uint64_t slot = 0;
    size_t back;

    for (back = 0; !slot && back <= 16 && back <= at; back += 4)
        if (at - back + 8 <= stubs->n)
            slot = slot_aarch64(stubs->bytes + at - back,
                                stubs->address + at - back);
    if (!slot && at + 12 <= stubs->n)
        slot = slot_aarch64(stubs->bytes + at + 4, stubs->address + at + 4);
    return slot;
}

static bool
find_stubs(const struct cpprof__elf_file *file, uint64_t address,
           struct stubs *stubs)
{
    static const char *const names[] = {".plt", ".plt.sec", ".plt.got",
                                        ".iplt"};
    GElf_Shdr header;
    size_t i;

    for (i = 0; i < sizeof names / sizeof *names; i++) {
        Elf_Scn *section = cpprof__elf_section(file, names[i], &header);
        Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;

        if (!data || !data->d_buf || address < header.sh_addr ||
            address - header.sh_addr >= data->d_size)
            continue;
        *stubs = (struct stubs){data->d_buf, header.sh_addr, data->d_size,
                                address - header.sh_addr,
                                header.sh_entsize == 8 ? 8 : 16};
        return true;
    }
    return false;
}

bool
cpprof__plt_has(const struct cpprof__elf_file *file, uint64_t address)
{
    struct stubs stubs;

    return find_stubs(file, address, &stubs);
}

static uint64_t
find_slot(const struct cpprof__elf_file *file, uint64_t address)
{
    GElf_Ehdr header;
    struct stubs stubs;

    if (!find_stubs(file, address, &stubs) || !gelf_getehdr(file->elf, &header))
        return 0;
    if (header.e_machine == EM_X86_64)
        return find_slot_x86_64(&stubs);
    if (header.e_machine == EM_AARCH64)
        return find_slot_aarch64(&stubs);
    return 0;
}

/* What the relocation puts into its slot: a symbol of the table at link, or
 * the result of the resolver at its addend (R_*_IRELATIVE). */
static const char *
target_of(const struct cpprof__elf_file *file, uint32_t link,
          const GElf_Rela *rela, struct cpprof__symbols *symbols)
{
    Elf_Scn *section = elf_getscn(file->elf, link);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    GElf_Shdr header;
    GElf_Sym symbol;

    if (GELF_R_SYM(rela->r_info) == 0)
        return cpprof__symbols_find(symbols, (uint64_t)rela->r_addend);
    if (!data || !gelf_getshdr(section, &header) ||
        !gelf_getsym(data, (int)GELF_R_SYM(rela->r_info), &symbol))
        return NULL;
    return elf_strptr(file->elf, header.sh_link, symbol.st_name);
}

/* Among the relocations of one section. */
static const char *
find_target(const struct cpprof__elf_file *file, Elf_Scn *section,
            const GElf_Shdr *header, struct cpprof__symbols *symbols,
            uint64_t slot)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t n =
        data ? data->d_size / gelf_fsize(file->elf, ELF_T_RELA, 1, EV_CURRENT)
             : 0;
    GElf_Rela rela;
    size_t i;

    for (i = 0; i < n && i <= INT32_MAX; i++)
        if (gelf_getrela(data, (int)i, &rela) && rela.r_offset == slot)
            return target_of(file, header->sh_link, &rela, symbols);
    return NULL;
}

const char *
cpprof__plt_find(const struct cpprof__elf_file *file,
                 struct cpprof__symbols *symbols, uint64_t address)
{
    uint64_t slot = find_slot(file, address);
    Elf_Scn *section = NULL;
    const char *name = NULL;
    GElf_Shdr header;

    while (slot && !name && (section = elf_nextscn(file->elf, section)))
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_RELA &&
            header.sh_flags & SHF_ALLOC)
            name = find_target(file, section, &header, symbols, slot);
    return name && *name ? name : NULL;
}
