/* SPDX-License-Identifier: MIT */
/*
 * A decoder of deflate that writes nothing: it needs no window, only how long
 * the matches are and that none begins before the output. Lenient where
 * libdeflate is: codes of one symbol, symbols without a meaning.
 *
 * Source: RFC 1951 (section numbers below), RFC 1952 for the member's head.
 */
#include "base/inflate_size.h"

#include <string.h>

#define MAX_BITS     15
#define N_LENGTHS    288
#define N_OFFSETS    32
#define N_PRECODE    19
#define END_OF_BLOCK 256
#define MEMBER_HEAD  10
#define MEMBER_TAIL  8

struct bits {
    const uint8_t *next, *end;
    uint64_t hold; /* the next bits, lowest first */
    unsigned n;    /* of them in hold */
    bool bad;      /* taken beyond the end, or nonsense */
};

/* A prefix code, 3.2.2: codes of one length are consecutive numbers. */
struct code {
    uint16_t count[MAX_BITS + 1]; /* codes of that length */
    uint16_t symbols[N_LENGTHS];  /* in the order of their codes */
    bool single;                  /* one symbol, whatever the bit */
};

struct counter {
    struct bits bits;
    size_t size, enough;
    struct code lengths, offsets;
};

/* At most 16 bits. */
static uint32_t
take(struct bits *b, unsigned n)
{
    uint32_t value;

    while (b->n < n && b->next < b->end) {
        b->hold |= (uint64_t)*b->next++ << b->n;
        b->n += 8;
    }
    if (b->n < n) {
        b->bad = true;
        return 0;
    }
    value = (uint32_t)(b->hold & ((1u << n) - 1));
    b->hold >>= n;
    b->n -= n;
    return value;
}

/* Make the code of symbols with codes of the given lengths, 0: none. */
static bool
make_code(struct code *c, const uint8_t *lengths, size_t n)
{
    uint16_t offsets[MAX_BITS + 1] = {0};
    int left = 1;
    size_t i;

    memset(c, 0, sizeof *c);
    for (i = 0; i < n; i++)
        c->count[lengths[i]]++;
    c->single = c->count[0] == n || (c->count[0] == n - 1 && c->count[1] == 1);
    c->count[0] = 0;
    for (i = 1; i <= MAX_BITS; i++) {
        left = 2 * left - c->count[i];
        if (left < 0)
            return false; /* more codes than there can be */
        if (i < MAX_BITS)
            offsets[i + 1] = (uint16_t)(offsets[i] + c->count[i]);
    }
    for (i = 0; i < n; i++)
        if (lengths[i])
            c->symbols[offsets[lengths[i]]++] = (uint16_t)i;
    return left == 0 || c->single;
}

/* The codes of each length begin behind those of the one before, doubled. */
static uint32_t
take_symbol(struct bits *b, const struct code *c)
{
    uint32_t code = 0, first = 0, index = 0;
    unsigned n;

    if (c->single) {
        take(b, 1);
        return c->symbols[0];
    }
    for (n = 1; n <= MAX_BITS && !b->bad; n++) {
        code = code << 1 | take(b, 1);
        if (code - first < c->count[n])
            return c->symbols[index + code - first];
        index += c->count[n];
        first = (first + c->count[n]) << 1;
    }
    b->bad = true;
    return 0;
}

/* ------------------------------------------------------------ blocks ---- */

/* 3.2.5: lengths from 3; groups of four share their number of extra bits. */
static size_t
take_length(struct bits *b, uint32_t symbol)
{
    uint32_t i = symbol - END_OF_BLOCK - 1;
    unsigned extra = i < 8 ? 0 : i / 4 - 1;

    if (i >= 28)
        return 258;
    if (i < 8)
        return 3 + i;
    return 3 + ((4 + i % 4) << extra) + take(b, extra);
}

static size_t
take_offset(struct bits *b, const struct code *c)
{
    uint32_t i = take_symbol(b, c);
    unsigned extra;

    if (i > 29)
        i = 29;
    if (i < 4)
        return 1 + i;
    extra = i / 2 - 1;
    return 1 + ((2 + i % 2) << extra) + take(b, extra);
}

static void
count_block(struct counter *c)
{
    while (!c->bits.bad && c->size <= c->enough) {
        uint32_t symbol = take_symbol(&c->bits, &c->lengths);

        if (c->bits.bad || symbol == END_OF_BLOCK)
            return;
        if (symbol < END_OF_BLOCK) {
            c->size++;
        } else {
            size_t length = take_length(&c->bits, symbol);

            if (take_offset(&c->bits, &c->offsets) > c->size)
                c->bits.bad = true;
            c->size += length;
        }
    }
}

/* 3.2.4; the rest of a byte is skipped. */
static void
count_stored(struct counter *c)
{
    struct bits *b = &c->bits;
    uint32_t n;

    take(b, b->n % 8);
    n = take(b, 16);
    if ((take(b, 16) ^ 0xffff) != n)
        b->bad = true;
    while (n && b->n) { /* whole bytes that were read ahead */
        take(b, 8);
        n--;
        c->size++;
    }
    if (n > (size_t)(b->end - b->next) || b->bad) {
        b->bad = true;
        return;
    }
    b->next += n;
    c->size += n;
}

/* 3.2.6 */
static bool
make_fixed(struct counter *c)
{
    uint8_t lengths[N_LENGTHS], offsets[N_OFFSETS];

    memset(lengths, 8, 144);
    memset(lengths + 144, 9, 256 - 144);
    memset(lengths + 256, 7, 280 - 256);
    memset(lengths + 280, 8, N_LENGTHS - 280);
    memset(offsets, 5, sizeof offsets);
    return make_code(&c->lengths, lengths, N_LENGTHS) &&
           make_code(&c->offsets, offsets, N_OFFSETS);
}

/* How often a length comes, of a symbol of the code for lengths. */
static uint32_t
take_repeat(struct bits *b, uint32_t symbol)
{
    switch (symbol) {
    case 16:
        return 3 + take(b, 2);
    case 17:
        return 3 + take(b, 3);
    case 18:
        return 11 + take(b, 7);
    }
    return 1;
}

/* 3.2.7: the lengths of both codes, themselves in a code. */
static bool
make_dynamic(struct counter *c)
{
    static const uint8_t order[N_PRECODE] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                             11, 4,  12, 3, 13, 2, 14, 1, 15};
    struct bits *b = &c->bits;
    uint8_t lengths[N_LENGTHS + N_OFFSETS] = {0}, precode[N_PRECODE] = {0};
    uint32_t n_lengths = 257 + take(b, 5), n_offsets = 1 + take(b, 5);
    uint32_t n = 4 + take(b, 4), i;
    uint8_t last = 0;

    for (i = 0; i < n; i++)
        precode[order[i]] = (uint8_t)take(b, 3);
    if (b->bad || !make_code(&c->lengths, precode, N_PRECODE))
        return false;
    for (i = 0; i < n_lengths + n_offsets && !b->bad;) {
        uint32_t symbol = take_symbol(b, &c->lengths);
        uint32_t times = take_repeat(b, symbol);

        if (symbol != 16)
            last = symbol < 16 ? (uint8_t)symbol : 0;
        for (; times && i < n_lengths + n_offsets; times--)
            lengths[i++] = last;
    }
    return !b->bad && make_code(&c->lengths, lengths, n_lengths) &&
           make_code(&c->offsets, lengths + n_lengths, n_offsets);
}

static void
count(struct counter *c)
{
    struct bits *b = &c->bits;
    bool last = false;

    while (!last && !b->bad && c->size <= c->enough) {
        last = take(b, 1) != 0;
        switch (take(b, 2)) {
        case 0:
            count_stored(c);
            break;
        case 1:
            b->bad |= !make_fixed(c);
            count_block(c);
            break;
        case 2:
            b->bad |= !make_dynamic(c);
            count_block(c);
            break;
        default:
            b->bad = true;
        }
    }
}

/* ------------------------------------------------------------ members ---- */

/* Where a terminated text ends, or NULL. */
static const uint8_t *
skip_text(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *zero = p ? memchr(p, 0, (size_t)(end - p)) : NULL;

    return zero ? zero + 1 : NULL;
}

static const uint8_t *
skip_bytes(const uint8_t *p, const uint8_t *end, size_t n)
{
    return p && n <= (size_t)(end - p) ? p + n : NULL;
}

/* RFC 1952, 2.3: behind the head and what its flags say follows; or NULL. */
static const uint8_t *
skip_head(const uint8_t *data, const uint8_t *end)
{
    enum { HEAD_CRC = 2, EXTRA = 4, NAME = 8, COMMENT = 16 };
    const uint8_t *p = data + MEMBER_HEAD;
    uint8_t flags = data[3];

    if (flags & EXTRA) {
        const uint8_t *n = p;

        p = skip_bytes(p, end, 2);
        if (p)
            p = skip_bytes(p, end, n[0] | (size_t)n[1] << 8);
    }
    if (flags & NAME)
        p = skip_text(p, end);
    if (flags & COMMENT)
        p = skip_text(p, end);
    if (flags & HEAD_CRC)
        p = skip_bytes(p, end, 2);
    return p;
}

bool
cpprof__inflate_size(const uint8_t *data, size_t n, size_t enough, size_t *size)
{
    struct counter c = {.enough = enough};

    if (n < MEMBER_HEAD + MEMBER_TAIL)
        return false;
    c.bits.end = data + n - MEMBER_TAIL;
    c.bits.next = skip_head(data, c.bits.end);
    if (!c.bits.next)
        return false;
    count(&c);
    *size = c.size;
    return !c.bits.bad || c.size > enough;
}
