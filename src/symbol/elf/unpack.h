/* SPDX-License-Identifier: MIT */
/*
 * Sections that are packed by zlib: unpacked as a whole, as far as is needed,
 * or when it is known how far that is. libelf's zlib takes three times as long.
 */
#ifndef SYMBOL_UNPACK_H
#define SYMBOL_UNPACK_H

#include <gelf.h>
#include <libdeflate.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* libdeflate fills what room it is given, but for the block or the repeat that
 * does not fit, of 65 535 and 258 bytes at most. */
#define CPPROF__CUT_BYTES (65535 + 258)

/* Tunable: a section of less, in bytes, is unpacked as a whole. */
#define CPPROF__LEAST_PARTIAL (1u << 18)

/* What a packed section holds. The bytes are the file's. */
struct cpprof__packed {
    const char *bytes;
    size_t n;
    uint64_t n_unpacked;
};

/* A section that libdeflate unpacks? */
bool
cpprof__is_packed(Elf *elf, Elf_Scn *section, struct cpprof__packed *packed);

/* Room for n bytes that are unpacked, from malloc. */
void *
cpprof__room_for(uint64_t n);

/* The room in which the first n bytes can be unpacked: more, or all. */
uint64_t
cpprof__unpacked_room(const struct cpprof__packed *packed, uint64_t n);

/* Unpack them into such room. False: it cannot be done here. */
bool
cpprof__unpack(struct libdeflate_decompressor *reader,
               const struct cpprof__packed *packed, void *to, uint64_t room);

/* .debug_line, while it is not known which tables of it are asked for. Zero
 * bytes: none. */
struct cpprof__late_lines {
    struct cpprof__packed packed;
    void *bytes;       /* room for all of it; the file's */
    uint64_t n;        /* that are unpacked */
    uint64_t expected; /* offset of a table that will be asked for, too */
};

/* Unpack the table at offset with what is before it. Where that cannot be, n
 * does not reach it. */
void
cpprof__lines_need(struct cpprof__late_lines *lines, uint64_t offset);

#endif
