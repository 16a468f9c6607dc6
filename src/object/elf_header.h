/* SPDX-License-Identifier: MIT */
/*
 * The headers of an ELF image, of either class and either byte order, without
 * libelf. Images are not trusted: each read is bounded, and there is a budget
 * of reads, so that no image can keep us busy.
 *
 * Source: System V gABI, chapters 4 and 5.
 */
#ifndef OBJECT_ELF_HEADER_H
#define OBJECT_ELF_HEADER_H

#include "object/build_id.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>

struct cpprof__elf_reader {
    const struct cpprof__elf_source *source;
    unsigned n_reads; /* left of the budget */
    bool is_64;       /* both from e_ident */
    bool is_big_endian;
    bool bad; /* something could not be read or makes no sense */
};

/* All n bytes at an offset; false and bad when they are not there. */
bool
cpprof__elf_read(struct cpprof__elf_reader *r, uint64_t offset, void *data,
                 size_t n);

/* A number of n bytes in the byte order of the image. */
static inline uint64_t
cpprof__elf_number(const struct cpprof__elf_reader *r, const uint8_t *at,
                   size_t n)
{
    uint64_t value = 0;
    size_t i;

    for (i = 0; i < n; i++)
        value = value << 8 | at[r->is_big_endian ? i : n - 1 - i];
    return value;
}

/* A field of a header (Ehdr, Phdr, Shdr, Nhdr), by its name in both classes. */
#define CPPROF__ELF_FIELD(r, header, kind, field)                              \
    ((r)->is_64                                                                \
         ? cpprof__elf_number(r, (header) + offsetof(Elf64_##kind, field),     \
                              sizeof((Elf64_##kind *)0)->field)                \
         : cpprof__elf_number(r, (header) + offsetof(Elf32_##kind, field),     \
                              sizeof((Elf32_##kind *)0)->field))

/* The size of a header. */
#define CPPROF__ELF_BYTES(r, kind)                                             \
    ((r)->is_64 ? sizeof(Elf64_##kind) : sizeof(Elf32_##kind))

/* For a source that is a file: ctx points to its descriptor. Reads go on after
 * a signal and stop at the end of the file. */
size_t
cpprof__elf_read_file(void *ctx, uint64_t offset, void *data, size_t n);

#endif
