/* SPDX-License-Identifier: MIT */
/*
 * Looks up functions in the frame table of an image.
 *
 * The reader (signal/unwind/cfi.h) computes with the addresses that bytes have
 * in memory. .eh_frame_hdr and .eh_frame lie in one segment, so in the mapped
 * file they are as far from each other as in a process. Then an address of the
 * image is what the reader has minus where it would take address 0 to be; that
 * the code itself lies elsewhere in the file does not matter.
 *
 * Compilers move code that is seldom run away from its function: a part, with
 * an entry of its own. Its first row is not the one that functions begin with,
 * as it is jumped to from the middle of one. The function is the one that has
 * most jumps into the part. All parts are found when one is asked for first:
 * one pass over the table and one over the code, some 3 ms for a megabyte.
 */
#include "symbol/elf/frame_table.h"

#include "own/sort.h"
#include "symbol/elf/array.h"
#include "symbol/elf/symbols.h"

#include <stdlib.h>
#include <string.h>

/* Entries that are looked at for parts; the largest known library has 300 000.
 */
#define MOST_ENTRIES (1u << 21)

/* The bytes of the file from there on, *n of them; NULL: it has none there. */
static const uint8_t *
file_bytes(const struct cpprof__elf_file *file, uint64_t offset, size_t *n)
{
    size_t n_file = 0;
    const char *raw = elf_rawfile(file->elf, &n_file);

    if (!raw || offset >= n_file)
        return NULL;
    *n = n_file - offset;
    return (const uint8_t *)raw + offset;
}

/* The program header number i; false: there is no such. */
static bool
get_header(const struct cpprof__frame_table *t, size_t i, GElf_Phdr *header)
{
    size_t n;

    return elf_getphdrnum(t->file->elf, &n) == 0 && i < n &&
           gelf_getphdr(t->file->elf, (int)i, header);
}

/* As much of the segment as the file has. */
static const uint8_t *
segment_bytes(const struct cpprof__frame_table *t, const GElf_Phdr *header,
              size_t *n)
{
    const uint8_t *bytes = file_bytes(t->file, header->p_offset, n);

    if (bytes && *n > header->p_filesz)
        *n = header->p_filesz;
    return bytes;
}

void
cpprof__frame_table_open(struct cpprof__frame_table *table,
                         const struct cpprof__elf_file *file)
{
    struct cpprof__frame_table t = {.file = file};
    GElf_Phdr header, load;
    size_t i, n = 0, at = 0;

    while (get_header(&t, at, &header) && header.p_type != PT_GNU_EH_FRAME)
        at++;
    if (!get_header(&t, at, &header))
        return;
    for (i = 0; get_header(&t, i, &load); i++) {
        if (load.p_type != PT_LOAD || header.p_vaddr < load.p_vaddr ||
            header.p_vaddr - load.p_vaddr >= load.p_filesz)
            continue;
        t.cfi.lo = segment_bytes(&t, &load, &n);
        if (!t.cfi.lo || header.p_vaddr - load.p_vaddr >= n)
            return;
        t.cfi.hi = t.cfi.lo + n;
        t.cfi.hdr = t.cfi.lo + (header.p_vaddr - load.p_vaddr);
        t.base = (uintptr_t)t.cfi.lo - load.p_vaddr;
        *table = t;
        return;
    }
}

void
cpprof__frame_table_free(struct cpprof__frame_table *table)
{
    CPPROF__ARRAY_FREE(&table->parts);
    memset(table, 0, sizeof *table);
}

/* -------------------------------------------------------------- parts ---- */

/* Where the canonical frame address is when a function has been called. A CIE
 * does not tell: up to binutils 2.35 the row that parts begin with may stand in
 * one of their own. Source: the psABIs, "DWARF register numbers". */
static bool
row_at_entry(const struct cpprof__frame_table *t, struct cpprof__cfi_row *row)
{
    GElf_Ehdr head;

    if (!gelf_getehdr(t->file->elf, &head))
        return false;
    row->cfa_reg = head.e_machine == EM_X86_64 ? 7 : 31; /* the stack pointer */
    row->cfa_off = head.e_machine == EM_X86_64 ? 8 : 0;
    return head.e_machine == EM_X86_64 || head.e_machine == EM_AARCH64;
}

/* Does the entry begin otherwise than functions do? That of the PLT does, too,
 * and is jumped to from everywhere. */
static bool
is_part(const struct cpprof__frame_table *t, const struct cpprof__fde *fde)
{
    struct cpprof__cfi_row usual, first;

    return row_at_entry(t, &usual) &&
           cpprof__cfi_run(fde, fde->start, &first) &&
           (first.cfa_reg != usual.cfa_reg || first.cfa_off != usual.cfa_off) &&
           !cpprof__plt_has(t->file, fde->start - t->base);
}

/* All parts, sorted as the search table is. Only the form that linkers write
 * is read: after four bytes of encodings and two numbers pairs of offsets. */
static void
find_parts(struct cpprof__frame_table *t)
{
    const uint8_t *pairs = t->cfi.hdr + 12;
    size_t n_bytes = (size_t)(t->cfi.hi - t->cfi.hdr);
    uint32_t n, i;

    if (n_bytes < 12 || memcmp(t->cfi.hdr, "\x01\x1b\x03\x3b", 4) != 0)
        return;
    memcpy(&n, t->cfi.hdr + 8, sizeof n);
    for (i = 0; i < n && i < MOST_ENTRIES && i < (n_bytes - 12) / 8; i++) {
        struct cpprof__fde fde;
        int32_t offset;

        memcpy(&offset, pairs + 8 * (size_t)i, sizeof offset);
        if (!cpprof__cfi_find(&t->cfi, (uintptr_t)t->cfi.hdr + (size_t)offset,
                              &fde) ||
            !is_part(t, &fde))
            continue;
        if (!CPPROF__BOUNDED_ROOM(&t->parts))
            return;
        t->parts.at[t->parts.n++] =
            (struct cpprof__part){fde.start - t->base, fde.limit - t->base, 0};
    }
}

static struct cpprof__part *
part_of(const struct cpprof__frame_table *t, uint64_t address)
{
    size_t lo = 0, hi = t->parts.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (t->parts.at[mid].limit <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < t->parts.n && t->parts.at[lo].start <= address
               ? &t->parts.at[lo]
               : NULL;
}

/* A jump from a function into a part. */
struct vote {
    const struct cpprof__part *part;
    uint64_t function;
};

struct votes {
    struct vote *at;
    size_t n, capacity;
};

static void
note_jump(struct cpprof__frame_table *t, struct votes *votes, uint64_t from,
          uint64_t to)
{
    const struct cpprof__part *part = part_of(t, to);
    struct cpprof__fde fde;

    if (!part || !cpprof__cfi_find(&t->cfi, t->base + from, &fde) ||
        part_of(t, from) || !CPPROF__BOUNDED_ROOM(votes))
        return;
    votes->at[votes->n++] = (struct vote){part, fde.start - t->base};
}

/* jmp rel32 and jcc rel32, wherever their bytes stand. What is none by chance
 * seldom points into a part, and never as often as those of its function. */
static void
note_x86_64(struct cpprof__frame_table *t, struct votes *votes,
            const uint8_t *code, size_t n, uint64_t address)
{
    uint64_t first = t->parts.at[0].start;
    uint64_t n_near = t->parts.at[t->parts.n - 1].limit - first;
    size_t i;

    for (i = 1; i + 5 <= n; i++) {
        int32_t distance;
        uint64_t to;

        if (code[i] != 0xe9 &&
            ((code[i] & 0xf0) != 0x80 || code[i - 1] != 0x0f))
            continue;
        memcpy(&distance, code + i + 1, sizeof distance);
        to = address + i + 5 + (uint64_t)(int64_t)distance;
        if (to - first < n_near)
            note_jump(t, votes, address + i, to);
    }
}

/* Where the branch at address goes: b, b.cond, cbz, cbnz, tbz, tbnz; or to 0.
 */
static uint64_t
branch_aarch64(uint32_t code, uint64_t address)
{
    int64_t words;

    if ((code & 0xfc000000) == 0x14000000)
        words = (int32_t)(code << 6) >> 6;
    else if ((code & 0xff000010) == 0x54000000 ||
             (code & 0x7e000000) == 0x34000000)
        words = (int32_t)(code << 8) >> 13;
    else if ((code & 0x7e000000) == 0x36000000)
        words = (int32_t)(code << 13) >> 18;
    else
        return 0;
    return address + (uint64_t)(words * 4);
}

static void
note_aarch64(struct cpprof__frame_table *t, struct votes *votes,
             const uint8_t *code, size_t n, uint64_t address)
{
    size_t i;

    for (i = 0; i + 4 <= n; i += 4) {
        uint32_t word;
        uint64_t to;

        memcpy(&word, code + i, sizeof word);
        to = branch_aarch64(word, address + i);
        if (to)
            note_jump(t, votes, address + i, to);
    }
}

static int
compare_votes(const void *a, const void *b)
{
    const struct vote *x = a, *y = b;

    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    return (x->function > y->function) - (x->function < y->function);
}

/* The function with most jumps into a part, of several the first. */
static void
count_votes(struct cpprof__frame_table *t, struct votes *votes)
{
    size_t i, n, most = 0;
    const struct cpprof__part *part = NULL;

    if (votes->n)
        cpprof__sort(votes->at, votes->n, sizeof *votes->at, compare_votes);
    for (i = 0; i < votes->n; i += n) {
        const struct vote *vote = &votes->at[i];

        for (n = 1; i + n < votes->n && !compare_votes(vote, vote + n); n++)
            ;
        if (vote->part != part)
            most = 0;
        part = vote->part;
        if (n > most)
            t->parts.at[part - t->parts.at].parent = vote->function;
        most = n > most ? n : most;
    }
}

static void
find_parents(struct cpprof__frame_table *t)
{
    struct votes votes = {0};
    GElf_Ehdr head;
    GElf_Phdr header;
    size_t i, n;

    if (!t->parts.n || !gelf_getehdr(t->file->elf, &head))
        return;
    for (i = 0; get_header(t, i, &header); i++) {
        const uint8_t *code;

        if (header.p_type != PT_LOAD || !(header.p_flags & PF_X))
            continue;
        code = segment_bytes(t, &header, &n);
        if (code && head.e_machine == EM_X86_64)
            note_x86_64(t, &votes, code, n, header.p_vaddr);
        else if (code && head.e_machine == EM_AARCH64)
            note_aarch64(t, &votes, code, n, header.p_vaddr);
    }
    count_votes(t, &votes);
    CPPROF__ARRAY_FREE(&votes);
}

bool
cpprof__frame_table_find(struct cpprof__frame_table *table, uint64_t address,
                         struct cpprof__piece *piece)
{
    const struct cpprof__part *part = NULL;
    struct cpprof__fde fde;

    if (!table->cfi.hdr ||
        !cpprof__cfi_find(&table->cfi, table->base + address, &fde))
        return false;
    piece->start = fde.start - table->base;
    piece->function = piece->start;
    if (!is_part(table, &fde))
        return true;
    if (!table->has_parts) {
        table->has_parts = true;
        find_parts(table);
        find_parents(table);
    }
    part = part_of(table, address);
    if (part && part->parent)
        piece->function = part->parent;
    return true;
}

const uint8_t *
cpprof__frame_table_code(const struct cpprof__frame_table *t, uint64_t address,
                         size_t *n)
{
    const uint8_t *code;
    GElf_Phdr header;
    size_t i;

    for (i = 0; get_header(t, i, &header); i++) {
        uint64_t offset = address - header.p_vaddr;

        if (header.p_type != PT_LOAD || !(header.p_flags & PF_X))
            continue;
        code = segment_bytes(t, &header, n);
        if (code && offset < *n) {
            *n -= offset;
            return code + offset;
        }
    }
    return NULL;
}
