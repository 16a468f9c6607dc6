/* SPDX-License-Identifier: MIT */
/*
 * Finding: from a program counter through the search table of .eh_frame_hdr to
 * an FDE and its CIE.
 *
 * Linkers write the table as pairs of 32-bit offsets from the header (encoding
 * 0x3b), sorted by address; other fixed-size encodings are searched the same
 * way. A header without a table is followed by a linear scan of .eh_frame,
 * bounded by MAX_SCAN entries.
 *
 * Source: LSB Core 5.0, 10.6.1 (.eh_frame), 10.6.2 (.eh_frame_hdr).
 */
#include "collect/signal/unwind/cfi.h"
#include "collect/signal/unwind/cfi_bytes.h"

/* Entries looked at where there is no search table: about 100 us. More finds
 * functions in larger modules, and keeps a handler longer. */
#define MAX_SCAN 8192

/* Memory protection has no finer grain on any Linux. */
#define PAGE_SIZE ((uintptr_t)4096)

/* The sorted table: n pairs (address of code, address of FDE). */
struct table {
    const uint8_t *pairs;
    size_t n;
    size_t width; /* bytes of one address */
    uint8_t encoding;
};

uint64_t
cpprof__cfi_copy(struct cfi_bytes *b, size_t n)
{
    struct cpprof__stack_view *view = b->view;
    uintptr_t at = (uintptr_t)b->next, left = PAGE_SIZE - at % PAGE_SIZE;
    const uint8_t *window = (const uint8_t *)view->window;
    uint64_t v = 0;

    if (!cfi_need(b, n))
        return 0;
    if (!(view->window_n >= n && at - view->window_at <= view->window_n - n) &&
        !cpprof__stack_fetch(view, at, left < n ? n : left)) {
        cfi_spoil(b);
        return 0;
    }
    b->next += n;
    while (n--)
        v = v << 8 | window[at - view->window_at + n];
    return v;
}

uint64_t
cpprof__cfi_leb(struct cfi_bytes *b, bool is_signed)
{
    unsigned shift = 0;
    uint64_t v = 0;
    uint8_t byte;

    do {
        byte = cfi_u8(b);
        if (shift < 64) {
            v |= (uint64_t)(byte & 0x7f) << shift;
            shift += 7;
        }
    } while (byte & 0x80);
    return is_signed && shift < 64 && (byte & 0x40) ? v | ~0ull << shift : v;
}

uintptr_t
cpprof__cfi_any_value(struct cfi_bytes *b, uint8_t encoding)
{
    switch (encoding & DW_EH_PE_format) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
        return cfi_u64(b);
    case DW_EH_PE_uleb128:
        return cfi_uleb(b);
    case DW_EH_PE_udata2:
        return cfi_u16(b);
    case DW_EH_PE_udata4:
        return cfi_u32(b);
    case DW_EH_PE_sleb128:
        return (uintptr_t)cfi_sleb(b);
    case DW_EH_PE_sdata2:
        return (uintptr_t)(intptr_t)(int16_t)cfi_u16(b);
    case DW_EH_PE_sdata4:
        return (uintptr_t)(intptr_t)(int32_t)cfi_u32(b);
    }
    cfi_spoil(b);
    return 0;
}

static size_t
encoded_width(uint8_t encoding)
{
    switch (encoding & DW_EH_PE_format) {
    case DW_EH_PE_udata2:
    case DW_EH_PE_sdata2:
        return 2;
    case DW_EH_PE_udata4:
    case DW_EH_PE_sdata4:
        return 4;
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
        return 8;
    }
    return 0;
}

/* Address number i of the table, counting both of each pair. */
static uintptr_t
table_address(const struct cpprof__cfi *cfi, const struct table *t, size_t i)
{
    const uint8_t *at = t->pairs + i * t->width;
    struct cfi_bytes b = {at, at + t->width, cfi->view};

    return cfi_encoded(&b, t->encoding, (uintptr_t)cfi->hdr);
}

/* The last pair whose code is not after pc, or n: there is none. */
static size_t
table_search(const struct cpprof__cfi *cfi, const struct table *t, uintptr_t pc)
{
    size_t lo = 0;
    size_t hi = t->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (table_address(cfi, t, 2 * mid) <= pc)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > 0 ? lo - 1 : t->n;
}

/* The head of .eh_frame_hdr. *frames is .eh_frame, NULL where it is unknown. */
static bool
read_header(const struct cpprof__cfi *cfi, struct table *t,
            const uint8_t **frames)
{
    struct cfi_bytes b = {cfi->hdr, cfi->hi, cfi->view};
    uint8_t version = cfi_u8(&b);
    uint8_t frames_encoding = cfi_u8(&b);
    uint8_t count_encoding = cfi_u8(&b);

    *t = (struct table){.encoding = cfi_u8(&b)};
    *frames = NULL;
    if (frames_encoding != DW_EH_PE_omit)
        *frames = (const uint8_t *)cfi_encoded(&b, frames_encoding,
                                               (uintptr_t)cfi->hdr);
    if (count_encoding != DW_EH_PE_omit && t->encoding != DW_EH_PE_omit) {
        t->n = cfi_encoded(&b, count_encoding, (uintptr_t)cfi->hdr);
        t->width = encoded_width(t->encoding);
    }
    t->pairs = b.next;
    if (t->width == 0)
        t->n = 0;
    else if (t->n > cfi_left(&b) / (2 * t->width))
        return false;
    return !cfi_is_spoilt(&b) && version == 1;
}

/* [at, at + n) as far as it lies in the module; otherwise spoilt. */
static struct cfi_bytes
bytes(const struct cpprof__cfi *cfi, const uint8_t *at, size_t n)
{
    if (at < cfi->lo || at > cfi->hi || n > (size_t)(cfi->hi - at))
        return (struct cfi_bytes){NULL, NULL, NULL};
    return (struct cfi_bytes){at, at + n, cfi->view};
}

/* The bytes of the record (CIE or FDE) at `at`, after its length; *length is
 * 0 at the section's end. 64-bit records do not occur in .eh_frame. */
static struct cfi_bytes
open_record(const struct cpprof__cfi *cfi, const uint8_t *at, uint32_t *length)
{
    struct cfi_bytes b = bytes(cfi, at, 4);

    *length = cfi_u32(&b);
    if (cfi_is_spoilt(&b) || *length == UINT32_MAX)
        return (struct cfi_bytes){NULL, NULL, NULL};
    return bytes(cfi, at + 4, *length);
}

/* One letter of an augmentation after 'z'; false: not known, the rest of the
 * augmentation data cannot be read. */
static bool
read_augmentation(struct cfi_bytes *data, uint8_t letter,
                  struct cpprof__fde *fde)
{
    switch (letter) {
    case 'R':
        fde->origin.encoding = cfi_u8(data);
        return true;
    case 'P':
        cfi_encoded_value(data, cfi_u8(data));
        return true;
    case 'L':
        cfi_u8(data);
        return true;
    case 'S':
        fde->origin.signal_frame = true;
        return true;
    case 'B': /* aarch64: return addresses signed with key B */
    case 'G': /* aarch64: tagged stack memory */
        return true;
    }
    return false;
}

/* A letter of a string that was read to its end. */
static __attribute__((noinline)) uint8_t
letter_at(struct cpprof__stack_view *view, const uint8_t *at)
{
    struct cfi_bytes letter = {at, at + 1, view};

    return cfi_u8(&letter);
}

static void
read_augmentations(struct cfi_bytes *b, const uint8_t *letters,
                   struct cpprof__fde *fde)
{
    const uint8_t *end = b->end, *after;
    uint64_t n = cfi_uleb(b);
    uint8_t letter;

    if (!cfi_need(b, n))
        return;
    b->end = after = b->next + n;
    while ((letter = letter_at(b->view, letters++)) &&
           read_augmentation(b, letter, fde))
        continue;
    if (!cfi_is_spoilt(b)) {
        b->next = after;
        b->end = end;
    }
}

/* Length and terminator of the string at b are passed over. */
static const uint8_t *
read_string(struct cfi_bytes *b)
{
    const uint8_t *text = b->next;

    while (cfi_u8(b) != 0)
        continue;
    return text;
}

static bool
read_cie(const struct cpprof__cfi *cfi, const uint8_t *at,
         struct cpprof__fde *fde, bool *augmented)
{
    uint32_t length;
    struct cfi_bytes b = open_record(cfi, at, &length);
    uint32_t id = cfi_u32(&b);
    uint8_t version = cfi_u8(&b);
    const uint8_t *letters = read_string(&b);
    uint64_t ra_column;
    uint8_t first;

    if (cfi_is_spoilt(&b) || id != 0 ||
        (version != 1 && version != 3 && version != 4))
        return false;
    if (version == 4 && (cfi_u8(&b) != sizeof(void *) || cfi_u8(&b) != 0))
        return false;
    fde->code_align = cfi_uleb(&b);
    fde->data_align = cfi_sleb(&b);
    ra_column = version == 1 ? cfi_u8(&b) : cfi_uleb(&b);
    fde->origin.encoding = DW_EH_PE_absptr;
    fde->origin.signal_frame = false;
    first = letter_at(b.view, letters);
    *augmented = first == 'z';
    if (*augmented)
        read_augmentations(&b, letters + 1, fde);
    else if (first != 0)
        return false;
    if (ra_column - CPPROF__RULE_FIRST >= CPPROF__N_RULES)
        return false;
    fde->origin.ra_column = (int8_t)ra_column;
    fde->cie_code = b.next;
    fde->cie_end = b.end;
    return !cfi_is_spoilt(&b);
}

/* The FDE at `at`; false: it is a CIE, or refused. */
static bool
read_fde(const struct cpprof__cfi *cfi, const uint8_t *at,
         struct cpprof__fde *fde)
{
    uint32_t length;
    struct cfi_bytes b = open_record(cfi, at, &length);
    const uint8_t *id_at = b.next;
    uint32_t to_cie = cfi_u32(&b);
    bool augmented;

    if (cfi_is_spoilt(&b) || to_cie == 0 ||
        to_cie > (size_t)(id_at - cfi->lo) ||
        !read_cie(cfi, id_at - to_cie, fde, &augmented))
        return false;
    fde->start = cfi_encoded(&b, fde->origin.encoding, (uintptr_t)cfi->hdr);
    fde->limit = fde->start + cfi_encoded_value(&b, fde->origin.encoding);
    if (augmented)
        cfi_skip(&b, cfi_uleb(&b));
    fde->origin.at = at;
    fde->origin.n =
        cfi->hi - at < UINT32_MAX ? (uint32_t)(cfi->hi - at) : UINT32_MAX;
    fde->origin.view = cfi->view;
    fde->code = b.next;
    fde->end = b.end;
    return !cfi_is_spoilt(&b);
}

static bool
covers(const struct cpprof__fde *fde, uintptr_t pc)
{
    return fde->start <= pc && pc < fde->limit;
}

/* Go through .eh_frame itself. */
static __attribute__((noinline)) bool
scan(const struct cpprof__cfi *cfi, const uint8_t *at, uintptr_t pc,
     struct cpprof__fde *fde)
{
    unsigned i;

    for (i = 0; i < MAX_SCAN; i++) {
        uint32_t length;
        struct cfi_bytes b = open_record(cfi, at, &length);

        if (cfi_is_spoilt(&b) || length == 0)
            return false;
        if (read_fde(cfi, at, fde) && covers(fde, pc))
            return true;
        at = b.end;
    }
    return false;
}

/* A header as linkers write it: version 1, .eh_frame by pcrel sdata4, count by
 * udata4, table by datarel sdata4. */
#define USUAL_HEADER 0x3b031b01u

static bool
is_usual(const struct cpprof__cfi *cfi)
{
    uint32_t head;

    if (cfi->hi - cfi->hdr < 12)
        return false;
    __builtin_memcpy(&head, cfi->hdr, sizeof head);
    return head == USUAL_HEADER;
}

/* The FDE of pc in a usual table, read in place; NULL: none. The last pair that
 * is not after pc, found without a branch that depends on what is compared. */
static const uint8_t *
search_usual(const struct cpprof__cfi *cfi, uintptr_t pc)
{
    intptr_t want = (intptr_t)(pc - (uintptr_t)cfi->hdr);
    const uint8_t *pair = cfi->hdr + 12;
    int32_t at[2];
    uint32_t n;

    __builtin_memcpy(&n, cfi->hdr + 8, sizeof n);
    if (n == 0 || n > (size_t)(cfi->hi - pair) / 8)
        return NULL;
    while (n > 1) {
        uint32_t half = n / 2;
        int32_t start;

        __builtin_memcpy(&start, pair + 8 * (size_t)half, sizeof start);
        pair += start <= want ? 8 * (size_t)half : 0;
        n -= half;
    }
    __builtin_memcpy(at, pair, sizeof at);
    return at[0] <= want ? cfi->hdr + at[1] : NULL;
}

/* The FDE of pc by any table; NULL: none. Where all FDEs have to be gone
 * through, because there is no table, fde->origin.at is the first; else NULL.
 */
static __attribute__((noinline)) const uint8_t *
search_any(const struct cpprof__cfi *cfi, uintptr_t pc, struct cpprof__fde *fde)
{
    const uint8_t *frames;
    struct table t;
    size_t i;

    fde->origin.at = NULL;
    if (!read_header(cfi, &t, &frames))
        return NULL;
    if (t.n == 0) {
        fde->origin.at = frames;
        return NULL;
    }
    i = table_search(cfi, &t, pc);
    return i < t.n ? (const uint8_t *)table_address(cfi, &t, 2 * i + 1) : NULL;
}

bool
cpprof__cfi_find(const struct cpprof__cfi *cfi, uintptr_t pc,
                 struct cpprof__fde *fde)
{
    const uint8_t *at;

    if (cfi->hdr < cfi->lo || cfi->hdr >= cfi->hi)
        return false;
    if (!cfi->view && is_usual(cfi))
        at = search_usual(cfi, pc);
    else if (!(at = search_any(cfi, pc, fde)) && fde->origin.at)
        return scan(cfi, fde->origin.at, pc, fde);
    return at != NULL && read_fde(cfi, at, fde) && covers(fde, pc);
}
