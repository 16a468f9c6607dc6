/* SPDX-License-Identifier: MIT */
/*
 * Made-up call-frame information: an .eh_frame_hdr and an .eh_frame in one
 * block of memory, put together piece by piece.
 */
#ifndef CFI_FIXTURE_H
#define CFI_FIXTURE_H

#include "collect/signal/unwind/cfi.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define SECTION_BYTES 4096
#ifndef FRAMES_AT
#define FRAMES_AT 1024 /* where .eh_frame begins */
#endif

struct section {
    uint8_t bytes[SECTION_BYTES];
    size_t n; /* where the next byte goes */
    size_t cie;
    uint8_t pointers; /* encoding of FDE addresses */
    size_t fdes[32];
    uintptr_t starts[32];
    size_t n_fdes;
};

static inline void
put(struct section *s, const void *data, size_t n)
{
    assert(s->n + n <= SECTION_BYTES);
    if (n > 0)
        memcpy(s->bytes + s->n, data, n);
    s->n += n;
}

static inline void
put_u8(struct section *s, uint8_t v)
{
    put(s, &v, sizeof v);
}

static inline void
put_u32(struct section *s, uint32_t v)
{
    put(s, &v, sizeof v);
}

static inline void
put_uleb(struct section *s, uint64_t v)
{
    do {
        put_u8(s, (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0)));
        v >>= 7;
    } while (v > 0);
}

static inline void
put_sleb(struct section *s, int64_t v)
{
    while (v < -64 || v > 63) {
        put_u8(s, (uint8_t)((v & 0x7f) | 0x80));
        v >>= 7;
    }
    put_u8(s, (uint8_t)(v & 0x7f));
}

/* A pointer in an encoding: only what the tests use. */
static inline void
put_pointer(struct section *s, uint8_t encoding, uintptr_t v)
{
    if ((encoding & 0x70) == 0x10)
        v -= (uintptr_t)s->bytes + s->n;
    else if ((encoding & 0x70) == 0x30)
        v -= (uintptr_t)s->bytes;
    switch (encoding & 0xf) {
    case 0x1:
        put_uleb(s, v);
        return;
    case 0x9:
        put_sleb(s, (int64_t)v);
        return;
    case 0x2:
    case 0xa:
        put(s, &v, 2);
        return;
    case 0x3:
    case 0xb:
        put(s, &v, 4);
        return;
    }
    put(s, &v, 8);
}

/* Write the length of a record that began at `at`, padded with nops. */
static inline void
end_record(struct section *s, size_t at)
{
    uint32_t n;

    while ((s->n - at) % 4 != 0)
        put_u8(s, 0);
    n = (uint32_t)(s->n - at - 4);
    memcpy(s->bytes + at, &n, sizeof n);
}

struct cie {
    uint8_t version;
    const char *augmentation;
    uint64_t code_align;
    int64_t data_align;
    uint64_t ra_column;
    uint8_t pointers;
    const void *code;
    size_t n_code;
};

#define USUAL_CIE                                                              \
    .version = 1, .augmentation = "zR", .code_align = 1, .data_align = -8,     \
    .ra_column = RA_COLUMN, .pointers = 0

#if defined __x86_64__
#define RA_COLUMN 16
#else
#define RA_COLUMN 30
#endif

static inline void
begin_section(struct section *s)
{
    memset(s, 0, sizeof *s);
    s->n = FRAMES_AT;
}

static inline void
put_cie(struct section *s, const struct cie *cie)
{
    size_t at = s->n;
    const char *a;

    s->cie = at;
    s->pointers = cie->pointers;
    put_u32(s, 0);
    put_u32(s, 0);
    put_u8(s, cie->version);
    put(s, cie->augmentation, strlen(cie->augmentation) + 1);
    if (cie->version == 4) {
        put_u8(s, 8);
        put_u8(s, 0);
    }
    put_uleb(s, cie->code_align);
    put_sleb(s, cie->data_align);
    if (cie->version == 1)
        put_u8(s, (uint8_t)cie->ra_column);
    else
        put_uleb(s, cie->ra_column);
    if (cie->augmentation[0] == 'z') {
        size_t length_at = s->n;

        put_u8(s, 0);
        for (a = cie->augmentation + 1; *a != 0; a++) {
            if (*a == 'R')
                put_u8(s, cie->pointers);
            if (*a == 'L')
                put_u8(s, 0xff);
            if (*a == 'P') {
                put_u8(s, 0x9b);
                put_u32(s, 1234);
            }
        }
        s->bytes[length_at] = (uint8_t)(s->n - length_at - 1);
    }
    put(s, cie->code, cie->n_code);
    end_record(s, at);
}

static inline void
put_fde(struct section *s, uintptr_t start, size_t n, const void *code,
        size_t n_code)
{
    size_t at = s->n;
    const uint8_t *letters = s->bytes + s->cie + 9;

    s->fdes[s->n_fdes] = at;
    s->starts[s->n_fdes++] = start;
    put_u32(s, 0);
    put_u32(s, (uint32_t)(s->n - s->cie));
    put_pointer(s, s->pointers, start);
    put_pointer(s, s->pointers & 0xf, n);
    if (letters[0] == 'z')
        put_u8(s, 0);
    put(s, code, n_code);
    end_record(s, at);
}

/* The header, with a table of all FDEs in encoding `table`. */
static inline void
put_header(struct section *s, uint8_t frames, uint8_t count, uint8_t table)
{
    size_t end = s->n;
    size_t i;

    put_u32(s, 0); /* the end of .eh_frame */
    s->n = 0;
    put_u8(s, 1);
    put_u8(s, frames);
    put_u8(s, count);
    put_u8(s, table);
    if (frames != 0xff)
        put_pointer(s, frames, (uintptr_t)s->bytes + FRAMES_AT);
    if (count != 0xff)
        put_pointer(s, count, s->n_fdes);
    for (i = 0; i < s->n_fdes && table != 0xff; i++) {
        put_pointer(s, table, s->starts[i]);
        put_pointer(s, table, (uintptr_t)s->bytes + s->fdes[i]);
    }
    s->n = end + 4;
}

/* NULL: what is found is read in place. */
static struct cpprof__stack_view *through;

static inline struct cpprof__cfi
cfi_of(const struct section *s)
{
    if (through)
        through->window_n = 0; /* the section is another now */
    return (struct cpprof__cfi){.lo = s->bytes,
                                .hi = s->bytes + s->n,
                                .hdr = s->bytes,
                                .view = through};
}

#define N(array) (sizeof(array) / sizeof *(array))

#if defined __x86_64__
#define SP 7
#define A  3
#define B  12
#else
#define SP 31
#define A  19
#define B  20
#endif

/* Code that the FDEs describe. Far from the section, but not too far for 32
 * bits: in the same static memory. */
static char code[4096] __attribute__((unused));
#define CODE ((uintptr_t)code)

static struct section section;

/* A section with one FDE for [CODE, CODE + 256) and a usual header. */
static inline void
make_section(const struct cie *cie, const void *program, size_t n)
{
    begin_section(&section);
    put_cie(&section, cie);
    put_fde(&section, CODE, 256, program, n);
    put_header(&section, 0x1b, 0x03, 0x3b);
}

static const struct cie usual __attribute__((unused)) = {USUAL_CIE};

static inline bool
finds(uintptr_t pc, struct cpprof__fde *fde)
{
    struct cpprof__cfi cfi = cfi_of(&section);

    return cpprof__cfi_find(&cfi, pc, fde);
}

#endif
