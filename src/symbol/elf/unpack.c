/* SPDX-License-Identifier: MIT */
/*
 * Reads sections that are packed by zlib. Deflate can be stopped anywhere: who
 * needs the beginning of a section gives room for no more, and libdeflate says
 * that there was more. Tables of lines are unpacked into room for all of them.
 *
 * Invariants: bytes in front of late_lines.n are those of the section, and stay
 * where they are as long as the file is open; nobody reads those behind.
 */
#include "symbol/elf/unpack.h"

#include "own/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Beyond a table's beginning, at first: most tables are shorter. */
#define TABLE_BYTES (1u << 16)

/* Most of the time that unpacking takes beside libdeflate goes into faults of
 * new pages, one for each 4 KiB. */
void *
cpprof__room_for(uint64_t n)
{
    const uintptr_t huge = 2u << 20;
    uint64_t n_bytes = n < huge ? n : n + huge;
    void *p = n_bytes < n ? NULL : cpprof__malloc(n_bytes);
    uintptr_t first = ((uintptr_t)p + huge - 1) & ~(huge - 1);
    uintptr_t limit = ((uintptr_t)p + n + huge) & ~(huge - 1);

    if (p && n >= huge)
        madvise((void *)first, limit - first, MADV_HUGEPAGE);
    return p;
}

bool
cpprof__is_packed(Elf *elf, Elf_Scn *section, struct cpprof__packed *packed)
{
    size_t n_head = gelf_getclass(elf) == ELFCLASS32 ? sizeof(Elf32_Chdr)
                                                     : sizeof(Elf64_Chdr);
    Elf_Data *data = elf_rawdata(section, NULL);
    GElf_Chdr header;

    if (!data || data->d_size < n_head || !gelf_getchdr(section, &header) ||
        header.ch_type != ELFCOMPRESS_ZLIB || !header.ch_size)
        return false;
    *packed = (struct cpprof__packed){(const char *)data->d_buf + n_head,
                                      data->d_size - n_head, header.ch_size};
    return true;
}

uint64_t
cpprof__unpacked_room(const struct cpprof__packed *packed, uint64_t n)
{
    uint64_t all = packed->n_unpacked;

    return n >= all || all - n <= CPPROF__CUT_BYTES ? all
                                                    : n + CPPROF__CUT_BYTES;
}

/* Is there what there is room for? */
bool
cpprof__unpack(struct libdeflate_decompressor *reader,
               const struct cpprof__packed *packed, void *to, uint64_t room)
{
    enum libdeflate_result result = libdeflate_zlib_decompress(
        reader, packed->bytes, packed->n, to, room, NULL);

    return result == (room >= packed->n_unpacked
                          ? LIBDEFLATE_SUCCESS
                          : LIBDEFLATE_INSUFFICIENT_SPACE);
}

/* ---- tables of lines --------------------------------------------------- */

/* A table begins with its length (DWARF 5, 7.4). One of the 64-bit format, or
 * of the other byte order, seems to be longer than all. */
static bool
has_table(const struct cpprof__late_lines *lines, uint64_t offset)
{
    uint32_t n;

    if (offset > lines->n || lines->n - offset < sizeof n)
        return false;
    memcpy(&n, (const char *)lines->bytes + offset, sizeof n);
    return n <= lines->n - offset - sizeof n;
}

/* What was unpacked before is written again as it is. */
static void
unpack_first(struct cpprof__late_lines *lines, uint64_t n)
{
    struct libdeflate_decompressor *reader = libdeflate_alloc_decompressor();
    uint64_t room = cpprof__unpacked_room(&lines->packed, n);

    if (reader && cpprof__unpack(reader, &lines->packed, lines->bytes, room))
        lines->n = room == lines->packed.n_unpacked ? room : n;
    libdeflate_free_decompressor(reader);
}

void
cpprof__lines_need(struct cpprof__late_lines *lines, uint64_t offset)
{
    uint64_t all = lines->packed.n_unpacked;
    bool is_first = !lines->n;

    if (offset >= all || lines->n == all || has_table(lines, offset))
        return;
    if (is_first)
        unpack_first(lines,
                     (offset > lines->expected ? offset : lines->expected) +
                         TABLE_BYTES);
    if (!has_table(lines, offset))
        unpack_first(lines, all);
}
