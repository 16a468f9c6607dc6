/* SPDX-License-Identifier: MIT */
/*
 * Binds the entries of this library (its global offset table, and its table of
 * calls, which the loader fills in when a call is first made) to what its list
 * of needed versions names: file, version and name. What leads into that file
 * already is right. The part of them that the loader has protected is opened
 * where something is to change, and protected again.
 *
 * Data stays where it is: a program may have its own copy, which libc uses.
 *
 * Source: ELF gABI 5 (dynamic section); the Linux Standard Base, 10.7 (symbol
 * versions); the processors' supplements (relocations).
 */
#include "collect/entries/libc_names.h"

#include "arch/atomic.h"
#include "arch/place.h"
#include "arch/regs.h"
#include "collect/runtime/next.h"
#include "collect/runtime/real.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* Relocations that hold a function's address and nothing else. */
#if defined(__x86_64__)
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT  R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT  R_AARCH64_GLOB_DAT
#else
#error "which relocations hold an address?"
#endif

/* A file that this library needs: libc, the loader. */
struct file {
    struct cpprof__definitions symbols; /* no module: it is not there */
    uintptr_t lo, hi;
};

/* One version of one, by the number that our symbols have for it. */
struct version {
    const struct file *file; /* or NULL */
    unsigned number;         /* that it has there; 0: the default one */
};

/* Tunable: more than there are. */
#define N_FILES    8
#define N_VERSIONS 64

struct own {
    uintptr_t base;
    struct cpprof__definitions symbols;
    const ElfW(Rela) * tables[2];
    size_t n[2];
    uintptr_t relro, relro_end; /* whole pages */
    bool is_open;
    struct file files[N_FILES];
    size_t n_files;
    struct version versions[N_VERSIONS];
};

/* Where a module's segments end, by the headers in its first page. */
CPPROF__FIRST_STEP static uintptr_t
end_of(const struct link_map *m)
{
    const ElfW(Ehdr) *file = (const void *)m->l_addr;
    const ElfW(Phdr) *p = (const void *)(m->l_addr + file->e_phoff);
    uintptr_t end = 0;
    unsigned i;

    for (i = 0; i < file->e_phnum; i++)
        if (p[i].p_type == PT_LOAD && p[i].p_vaddr + p[i].p_memsz > end)
            end = p[i].p_vaddr + p[i].p_memsz;
    return m->l_addr + end;
}

/* Its headers are not where its addresses begin. */
CPPROF__FIRST_STEP static bool
is_prelinked(const struct link_map *m)
{
    const ElfW(Dyn) *d = m->l_ld;

    while (d->d_tag != DT_NULL && d->d_tag != DT_GNU_PRELINKED)
        d++;
    return d->d_tag != DT_NULL;
}

CPPROF__FIRST_STEP static const struct file *
read_file(struct own *own, const struct link_map *m)
{
    struct file *file = &own->files[own->n_files];

    if (!m || is_prelinked(m) || own->n_files == N_FILES ||
        !cpprof__definitions_read(m, &file->symbols))
        return NULL;
    file->lo = m->l_addr;
    file->hi = end_of(m);
    own->n_files++;
    return file;
}

CPPROF__FIRST_STEP static void
read_need(struct own *own, const ElfW(Verneed) * need)
{
    const ElfW(Vernaux) *aux =
        (const void *)((const char *)need + need->vn_aux);
    const struct file *file = read_file(
        own, cpprof__module_named(own->symbols.strings + need->vn_file));
    unsigned i, number;

    for (i = 0; file && i < need->vn_cnt; i++) {
        number = cpprof__version_number(&file->symbols, aux->vna_hash);
        if (number && aux->vna_other < N_VERSIONS)
            own->versions[aux->vna_other] = (struct version){file, number};
        aux = (const void *)((const char *)aux + aux->vna_next);
    }
}

/* musl's libc has no versions, and is the loader. */
CPPROF__FIRST_STEP static void
read_unversioned(struct own *own)
{
    const uintptr_t loader = getauxval(AT_BASE);
    const struct link_map *m = own->symbols.module;

    while (m->l_prev)
        m = m->l_prev;
    while (m && m->l_addr != loader)
        m = m->l_next;
    own->versions[0].file = loader ? read_file(own, m) : NULL;
}

/* Some loaders relocate these words in place, some not. */
static const void *
address_in(const struct own *own, ElfW(Addr) value)
{
    return (const void *)(value < own->base ? value + own->base : value);
}

CPPROF__FIRST_STEP static void
read_dynamic(struct own *own)
{
    const ElfW(Dyn) *d = own->symbols.module->l_ld;
    const ElfW(Verneed) *need = NULL;

    for (; d->d_tag != DT_NULL; d++) {
        const void *at = address_in(own, d->d_un.d_ptr);

        if (d->d_tag == DT_VERNEED)
            need = at;
        else if (d->d_tag == DT_JMPREL)
            own->tables[0] = at;
        else if (d->d_tag == DT_RELA)
            own->tables[1] = at;
        else if (d->d_tag == DT_PLTRELSZ)
            own->n[0] = d->d_un.d_val / sizeof *own->tables[0];
        else if (d->d_tag == DT_RELASZ)
            own->n[1] = d->d_un.d_val / sizeof *own->tables[1];
    }
    if (!own->symbols.versions)
        read_unversioned(own);
    for (; need; need = need->vn_next
                            ? (const void *)((const char *)need + need->vn_next)
                            : NULL)
        read_need(own, need);
}

CPPROF__FIRST_STEP static void
read_relro(struct own *own)
{
    const ElfW(Ehdr) *file = (const void *)own->base;
    const ElfW(Phdr) *p = (const void *)(own->base + file->e_phoff);
    const uintptr_t bits = getauxval(AT_PAGESZ) - 1;
    unsigned i;

    for (i = 0; i < file->e_phnum; i++)
        if (p[i].p_type == PT_GNU_RELRO) {
            own->relro = (own->base + p[i].p_vaddr) & ~bits;
            own->relro_end = (own->base + p[i].p_vaddr + p[i].p_memsz) & ~bits;
        }
}

CPPROF__FIRST_STEP static bool
protect(const struct own *own, int protection)
{
    return !cpprof__syscall(SYS_mprotect, (long)own->relro,
                            (long)(own->relro_end - own->relro), protection, 0,
                            0, 0);
}

/* Can it be written to? */
CPPROF__FIRST_STEP static bool
open_entry(struct own *own, uintptr_t entry)
{
    if (entry - own->relro >= own->relro_end - own->relro)
        return true;
    if (!own->is_open)
        own->is_open = protect(own, PROT_READ | PROT_WRITE);
    return own->is_open;
}

/* Of a name that this library takes over and calls itself. */
CPPROF__FIRST_STEP static uintptr_t
find_default(const struct own *own, const char *name)
{
    uintptr_t found = 0;
    size_t i;

    for (i = 0; i < own->n_files && !found; i++)
        found =
            (uintptr_t)cpprof__definition_find(&own->files[i].symbols, name, 0);
    return found;
}

CPPROF__FIRST_STEP static uintptr_t
definition_of(const struct own *own, uint32_t symbol, uintptr_t now)
{
    const ElfW(Sym) *s = &own->symbols.symbols[symbol];
    const char *name = own->symbols.strings + s->st_name;
    unsigned number =
        own->symbols.versions ? own->symbols.versions[symbol] & 0x7fff : 0;
    const struct version *v = &own->versions[number % N_VERSIONS];

    if (s->st_shndx != SHN_UNDEF)
        return find_default(own, name);
    if (!v->file || now - v->file->lo < v->file->hi - v->file->lo)
        return now;
    return (uintptr_t)cpprof__definition_find(&v->file->symbols, name,
                                              v->number);
}

#define TEXT(group, name) #name "\0"

/* The program's malloc is whatever it is. */
CPPROF__FIRST_STEP static bool
is_allocator(const char *name)
{
    static const char names[] = CPPROF__ALLOCATOR_NAMES(TEXT) "";
    const char *n;

    for (n = names; *n; n += strlen(n) + 1)
        if (strcmp(n, name) == 0)
            return true;
    return false;
}

CPPROF__FIRST_STEP static void
bind(struct own *own, const ElfW(Rela) * r)
{
    uint32_t symbol = (uint32_t)ELF64_R_SYM(r->r_info);
    uintptr_t entry = own->base + r->r_offset;
    uintptr_t now = load_relaxed((uintptr_t *)entry);
    uintptr_t libcs = definition_of(own, symbol, now);

    if (libcs && libcs != now &&
        !is_allocator(own->symbols.strings +
                      own->symbols.symbols[symbol].st_name) &&
        open_entry(own, entry))
        store_release((uintptr_t *)entry, libcs);
}

extern void
__lsan_disable(void) __attribute__((weak));

CPPROF__FIRST_STEP void
cpprof__libc_names_bind(const struct link_map *module)
{
    struct own own = {.n_files = 0};
    unsigned t;
    size_t i;

    if (__lsan_disable || !module ||
        !cpprof__definitions_read(module, &own.symbols))
        return;
    own.base = module->l_addr;
    read_dynamic(&own);
    read_relro(&own);
    for (t = 0; t < 2; t++)
        for (i = 0; i < own.n[t]; i++) {
            unsigned type = ELF64_R_TYPE(own.tables[t][i].r_info);

            if (type == JUMP_SLOT || type == GLOB_DAT)
                bind(&own, &own.tables[t][i]);
        }
    if (own.is_open)
        protect(&own, PROT_READ);
}

/* Plug-ins that somebody binds or has bound. Of two at once the one that is
 * done would close the page that the other writes to. Who comes second goes on:
 * each word leads to a function of that name at any time. */
static const struct link_map *claimed[8];

static bool
claim(const struct link_map *module)
{
    size_t i;

    for (i = 0; i < sizeof claimed / sizeof *claimed; i++) {
        const struct link_map *there = NULL;

        if (cas_acq_rel(&claimed[i], &there, module))
            return true;
        if (there == module)
            return false;
    }
    return false;
}

void
cpprof__libc_names_bind_plug_in(const void *inside)
{
    struct link_map *module;
    Dl_info info;

    if (inside && dladdr1(inside, &info, (void **)&module, RTLD_DL_LINKMAP) &&
        claim(module))
        cpprof__libc_names_bind(module);
}
