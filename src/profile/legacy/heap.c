/* SPDX-License-Identifier: MIT */
/*
 * Heap, growth and fragmentation profiles as text:
 *
 *     heap profile: 127: 12136 [146: 1062272] @ heap_v2/524288
 *     100: 6400 [100: 6400] @ 0x6a665f 0x6a6993
 *
 * objects and bytes in use, and in brackets those ever allocated; in the first
 * line their sums and, behind '@', who wrote it and how many bytes lie between
 * two samples on average. Sums that say the same twice, or nothing in the
 * brackets, mean that the profile has two columns only.
 *
 * Addresses without "0x" are read too, where all of a row are so: gperftools'
 * own pprof reads them, the reference drops the stacks.
 *
 * Source: profile/legacy_profile.go parseHeap.
 */
#include "base/status.h"
#include "profile/legacy/numbers.h"
#include "profile/legacy/rows.h"

/* Also the groups of the expressions. */
enum field { IN_USE_COUNT = 1, IN_USE_BYTES, ALLOC_COUNT, ALLOC_BYTES };

#define FIELDS(in_use) in_use ": *" in_use " *\\[ *(\\d+): *(\\d+) *\\]"
#define HEADER         "heap profile: *" FIELDS("(\\d+)")

static struct cpprof__pattern heap_header = {
    HEADER " *@ *(heap[_a-z0-9]*)/?(\\d*)", NULL};
static struct cpprof__pattern plain_header = {
    HEADER " @ (?:growth|fragmentation)", NULL};
static struct cpprof__pattern row_pattern = {FIELDS("(-?\\d+)") " @", NULL};

struct heap {
    int64_t period;
    bool is_sampled; /* counts are estimates to be made of the period */
    bool has_alloc;  /* four sample types */
    uint32_t bytes_key;
};

/* ------------------------------------------------------------ header ---- */

/* A number of objects or bytes in the brackets that says something new. */
static bool
differs(struct cpprof__text alloc, struct cpprof__text in_use)
{
    bool is_same =
        alloc.n == in_use.n && memcmp(alloc.at, in_use.at, alloc.n) == 0;

    return !is_same && !cpprof__is_text(alloc, "0");
}

static bool
understand_kind(const struct cpprof__text *header, struct heap *h)
{
    struct cpprof__text name = header[5], period = header[6];
    bool is_v2 =
        cpprof__is_text(name, "heap_v2") || cpprof__is_text(name, "heapz_v2");

    h->period = 0;
    if (period.n && cpprof__parse_int(period, 10, &h->period))
        return false;
    h->has_alloc = differs(header[ALLOC_COUNT], header[IN_USE_COUNT]) ||
                   differs(header[ALLOC_BYTES], header[IN_USE_BYTES]);
    h->is_sampled = true;
    if (is_v2)
        return true;
    if (cpprof__is_text(name, "heap")) {
        h->period /= 2; /* an old habit of tcmalloc, which Go took over */
        return true;
    }
    h->period = 1;
    h->is_sampled = false;
    return cpprof__is_text(name, "heapprofile");
}

static bool
read_header(struct cpprof__rows *rows, struct heap *h)
{
    struct cpprof__text found[7];

    if (cpprof__pattern_find(&heap_header, rows->line, found, 7,
                             &rows->maker.failed))
        return understand_kind(found, h);
    *h = (struct heap){.period = 1};
    return cpprof__pattern_find(&plain_header, rows->line, found, 0,
                                &rows->maker.failed);
}

/* -------------------------------------------------------------- rows ---- */

struct row {
    struct cpprof__text line;
    struct cpprof__text fields[5];
    struct cpprof__text stack;
    int64_t block_bytes; /* the mean size of an object */
};

/* Objects and bytes, the fields `first` and the next. */
static enum cpprof_status
read_pair(const struct heap *h, struct row *row, enum field first,
          int64_t *values, struct cpprof_error *error)
{
    const char *what = first == ALLOC_COUNT ? "allocation" : "inuse";
    enum cpprof_status status = CPPROF_OK;
    int i;

    for (i = 0; i < 2 && status == CPPROF_OK; i++)
        status = cpprof__read_int(row->fields[first + i], 10, &values[i],
                                  "malformed sample: ", row->line, error);
    if (status != CPPROF_OK)
        return status;
    if (values[0] == 0 && values[1] != 0)
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            "%s count was 0 but %s bytes was %lld", what, what,
                            (long long)values[1]);
    if (values[0] != 0) {
        row->block_bytes = cpprof__wrapping_quotient(values[1], values[0]);
        if (h->is_sampled)
            cpprof__scale_heap_sample(&values[0], &values[1], h->period);
    }
    return CPPROF_OK;
}

static bool
is_not_space(char c)
{
    return c != ' ';
}

/* Nothing but words of hexadecimal digits without "0x", up to the end? */
static bool
is_bare(const struct row *row)
{
    return row->stack.at + row->stack.n == row->line.at + row->line.n &&
           !memchr(row->stack.at, 'x', row->stack.n);
}

static enum cpprof_status
read_bare_stack(struct cpprof__rows *rows, const struct row *row,
                struct cpprof_error *error)
{
    struct cpprof__text at = row->stack, word;
    const char *wrong;
    uint64_t *added;

    while (cpprof__take_spaces(&at), at.n) {
        word = cpprof__take_while(&at, is_not_space);
        added = CPPROF__ARRAY_ADD(&rows->stack.list);
        if (!added) {
            rows->maker.failed = true;
            break;
        }
        wrong = cpprof__parse_uint(word, 16, added);
        if (wrong)
            return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                                "malformed sample: %.*s: failed to parse as "
                                "hex 64-bit number: %.*s",
                                cpprof__print_n(row->line), row->line.at,
                                cpprof__print_n(word), word.at);
    }
    return CPPROF_OK;
}

static enum cpprof_status
read_row(struct cpprof__rows *rows, const struct heap *h,
         struct cpprof__text line, struct cpprof_error *error)
{
    struct row row = {.line = line};
    enum cpprof_status status = CPPROF_OK;
    int64_t values[4], *in_use = h->has_alloc ? values + 2 : values;

    if (!cpprof__pattern_find(&row_pattern, line, row.fields, 5,
                              &rows->maker.failed))
        return cpprof__fail(
            error, CPPROF_BAD_DATA, 0,
            "unexpected number of sample values: got 0, want 6");
    row.stack = cpprof__stack_behind(line, row.fields[0]);
    if (h->has_alloc)
        status = read_pair(h, &row, ALLOC_COUNT, values, error);
    if (status == CPPROF_OK)
        status = read_pair(h, &row, IN_USE_COUNT, in_use, error);
    if (status == CPPROF_OK)
        status = is_bare(&row)
                     ? read_bare_stack(rows, &row, error)
                     : cpprof__rows_stack(rows, row.stack, line, error);
    if (status != CPPROF_OK)
        return status;
    cpprof__make_number(&rows->maker, h->bytes_key, row.block_bytes, 0);
    cpprof__rows_sample(rows, CPPROF__STACK_RETURN, values);
    return CPPROF_OK;
}

enum cpprof_status
cpprof__read_heap(struct cpprof__rows *rows, bool *recognized,
                  struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__text line;
    struct heap h;

    if (!cpprof__rows_next(rows) || !read_header(rows, &h))
        return CPPROF_OK;
    *recognized = true;
    h.bytes_key = cpprof__make_heap_types(&rows->maker, h.has_alloc, h.period);
    while (status == CPPROF_OK && cpprof__rows_next(rows)) {
        line = cpprof__trim(rows->line);
        if (line.n == 0 || line.at[0] == '#')
            continue;
        if (cpprof__is_maps_sentinel(line))
            break;
        status = read_row(rows, &h, line, error);
    }
    return status == CPPROF_OK ? cpprof__rows_end(rows, error) : status;
}
