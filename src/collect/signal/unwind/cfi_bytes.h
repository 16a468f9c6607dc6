/* SPDX-License-Identifier: MIT */
/*
 * A bounded, sticky reader of call-frame information. It reads memory of
 * modules that may be damaged: a read past the end gives 0 and spoils the
 * reader, which the caller checks once per record.
 * With a view every byte is copied through the kernel: then the memory may be
 * unmapped at any moment, and a read of what is gone spoils, too.
 *
 * Source: DWARF 5, 7.6 (LEB128); LSB Core 5.0, 10.5 (DW_EH_PE).
 */
#ifndef COLLECT_SIGNAL_CFI_BYTES_H
#define COLLECT_SIGNAL_CFI_BYTES_H

#include "collect/signal/unwind/stack_view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cfi_bytes {
    const uint8_t *next;             /* NULL: spoilt */
    const uint8_t *end;              /* >= next */
    struct cpprof__stack_view *view; /* NULL: read in place */
};

static inline bool
cfi_is_spoilt(const struct cfi_bytes *b)
{
    return !b->next;
}

static inline size_t
cfi_left(const struct cfi_bytes *b)
{
    return (size_t)(b->end - b->next);
}

static inline void
cfi_spoil(struct cfi_bytes *b)
{
    b->next = b->end = NULL;
}

static inline bool
cfi_need(struct cfi_bytes *b, uint64_t n)
{
    if (n <= cfi_left(b))
        return true;
    cfi_spoil(b);
    return false;
}

static inline void
cfi_skip(struct cfi_bytes *b, uint64_t n)
{
    if (cfi_need(b, n))
        b->next += n;
}

/* The next n <= 8 bytes, through the view, as a number. */
uint64_t
cpprof__cfi_copy(struct cfi_bytes *b, size_t n);

#define CFI_READ(name, type)                                                   \
    static inline type cfi_##name(struct cfi_bytes *b)                         \
    {                                                                          \
        type v = 0;                                                            \
                                                                               \
        if (b->view)                                                           \
            return (type)cpprof__cfi_copy(b, sizeof v);                        \
        if (cfi_need(b, sizeof v)) {                                           \
            __builtin_memcpy(&v, b->next, sizeof v);                           \
            b->next += sizeof v;                                               \
        }                                                                      \
        return v;                                                              \
    }
CFI_READ(u8, uint8_t)
CFI_READ(u16, uint16_t)
CFI_READ(u32, uint32_t)
CFI_READ(u64, uint64_t)
#undef CFI_READ

/* Bits from 64 on are dropped. */
uint64_t
cpprof__cfi_leb(struct cfi_bytes *b, bool is_signed);

static inline uint64_t
cfi_uleb(struct cfi_bytes *b)
{
    if (!b->view && b->next < b->end && *b->next < 0x80)
        return *b->next++;
    return cpprof__cfi_leb(b, false);
}

static inline int64_t
cfi_sleb(struct cfi_bytes *b)
{
    return (int64_t)cpprof__cfi_leb(b, true);
}

/* Pointer encodings: a format, what it is relative to, indirect. */
enum {
    DW_EH_PE_absptr = 0x00,
    DW_EH_PE_uleb128 = 0x01,
    DW_EH_PE_udata2 = 0x02,
    DW_EH_PE_udata4 = 0x03,
    DW_EH_PE_udata8 = 0x04,
    DW_EH_PE_sleb128 = 0x09,
    DW_EH_PE_sdata2 = 0x0a,
    DW_EH_PE_sdata4 = 0x0b,
    DW_EH_PE_sdata8 = 0x0c,
    DW_EH_PE_format = 0x0f,
    DW_EH_PE_pcrel = 0x10,
    DW_EH_PE_datarel = 0x30,
    DW_EH_PE_base = 0x70,
    DW_EH_PE_indirect = 0x80,
    DW_EH_PE_omit = 0xff
};

/* Any format; cfi.c. */
uintptr_t
cpprof__cfi_any_value(struct cfi_bytes *b, uint8_t encoding);

/* The one that compilers write first. */
static inline uintptr_t
cfi_encoded_value(struct cfi_bytes *b, uint8_t encoding)
{
    if ((encoding & DW_EH_PE_format) == DW_EH_PE_sdata4)
        return (uintptr_t)(intptr_t)(int32_t)cfi_u32(b);
    return cpprof__cfi_any_value(b, encoding);
}

/*
 * A pointer; datarel ones are relative to data. Text- and function-relative,
 * aligned and indirect ones are refused: no linker makes them where the
 * unwinder looks.
 */
static inline uintptr_t
cfi_encoded(struct cfi_bytes *b, uint8_t encoding, uintptr_t data)
{
    uintptr_t at = (uintptr_t)b->next;
    uintptr_t v = cfi_encoded_value(b, encoding);

    switch (encoding & (DW_EH_PE_base | DW_EH_PE_indirect)) {
    case 0:
        return v;
    case DW_EH_PE_pcrel:
        return v + at;
    case DW_EH_PE_datarel:
        return v + data;
    }
    cfi_spoil(b);
    return 0;
}

#endif
