/* SPDX-License-Identifier: MIT */
/*
 * A search table for an image whose linker has made none, as that of static
 * programs: .eh_frame is gone through once, and what .eh_frame_hdr would be is
 * put behind the file, in the same mapping. The unwinder's reader is asked for
 * each entry, so none is in the table that it does not take.
 *
 * Source: LSB Core 5.0, 10.6.1 (.eh_frame), 10.6.2 (.eh_frame_hdr).
 */
#include "cli/attach/attach.h"

#include "collect/signal/unwind/cfi.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Version 1, .eh_frame by pcrel sdata4, count by udata4, table by datarel
 * sdata4: the one that is searched at once. */
struct table {
    uint8_t head[4];
    int32_t frames;
    uint32_t n;
    struct pair {
        int32_t start, fde; /* from the table */
    } pairs[];
};

/* No entry is shorter: length, CIE, start, size. */
#define FDE_BYTES_MIN 16

static const Elf64_Shdr *
section_of_frames(const struct cpprof__image *image)
{
    const Elf64_Ehdr *e = (const void *)image->data;
    const Elf64_Shdr *s;
    const char *names;
    unsigned i;

    if (image->n < sizeof *e || e->e_shentsize != sizeof *s ||
        e->e_shoff > image->n ||
        e->e_shnum > (image->n - e->e_shoff) / sizeof *s ||
        e->e_shstrndx >= e->e_shnum)
        return NULL;
    s = (const void *)(image->data + e->e_shoff);
    names = (const char *)image->data + s[e->e_shstrndx].sh_offset;
    for (i = 0; i < e->e_shnum; i++)
        if (s[i].sh_type != SHT_NOBITS && s[i].sh_flags & SHF_ALLOC &&
            s[i].sh_offset < image->n &&
            s[i].sh_size <= image->n - s[i].sh_offset &&
            s[e->e_shstrndx].sh_offset < image->n &&
            s[i].sh_name < image->n - s[e->e_shstrndx].sh_offset &&
            strnlen(names + s[i].sh_name,
                    image->n - s[e->e_shstrndx].sh_offset - s[i].sh_name) ==
                9 &&
            !memcmp(names + s[i].sh_name, ".eh_frame", 9))
            return &s[i];
    return NULL;
}

/* Move the file to where n more bytes are behind it. */
static struct table *
make_room(struct cpprof__image *image, size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t front = (image->n + page - 1) & -page;
    uint8_t *to = mmap(NULL, front + n, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (to == MAP_FAILED)
        return NULL;
    if (mremap((void *)image->data, image->n, image->n,
               MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED) {
        munmap(to, front + n);
        return NULL;
    }
    image->data = to;
    image->n_mapped = front + n;
    return (void *)(to + front);
}

/* Put an entry first, where it is alone; true if the reader finds it there by
 * its start. */
static bool
try_first(const struct cpprof__image *image, struct table *table,
          const uint8_t *fde)
{
    const struct cpprof__cfi cfi = {.lo = image->data,
                                    .hi = image->data + image->n_mapped,
                                    .hdr = (void *)table};
    struct cpprof__fde found;
    uintptr_t address;
    int32_t start;

    memcpy(&start, fde + 8, sizeof start);
    table->pairs[0].fde = (int32_t)(fde - (const uint8_t *)table);
    table->pairs[0].start = table->pairs[0].fde + 8 + start;
    address = (uintptr_t)table + (uintptr_t)(intptr_t)table->pairs[0].start;
    return cpprof__cfi_find(&cfi, address, &found) && found.start == address;
}

static int
compare(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

void
cpprof__image_index_frames(struct cpprof__image *image)
{
    const Elf64_Shdr *section = section_of_frames(image);
    const uint8_t *at, *end;
    uint64_t address, offset;
    struct table *table;
    uint32_t length, cie;
    size_t n;

    if (!section || image->n >= INT32_MAX / 2)
        return;
    n = section->sh_size;
    address = section->sh_addr;
    offset = section->sh_offset;
    table = make_room(image, sizeof *table + (n / FDE_BYTES_MIN + 1) *
                                                 sizeof *table->pairs);
    if (!table)
        return;
    *table = (struct table){.head = {1, 0x1b, 0x03, 0x3b}, .n = 1};
    end = image->data + offset + n;
    n = 0;
    for (at = image->data + offset; end - at >= FDE_BYTES_MIN;
         at += 4 + length) {
        memcpy(&length, at, 4);
        memcpy(&cie, at + 4, 4);
        if (length < 4 || length > (size_t)(end - at - 4))
            break;
        if (cie && length + 4 >= FDE_BYTES_MIN && try_first(image, table, at))
            table->pairs[++n] = table->pairs[0];
    }
    if (!n)
        return;
    memmove(table->pairs, table->pairs + 1, n * sizeof *table->pairs);
    qsort(table->pairs, n, sizeof *table->pairs, compare);
    table->n = (uint32_t)n;
    image->frames = (void *)table;
    image->delta =
        (uint64_t)(uintptr_t)image->data + offset - address - image->bias;
}
