/* SPDX-License-Identifier: MIT */
#include "collect/capture/kept_rows.h"

#include "collect/signal/tables/heap_labels.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(CPPROF__HEAP_LABELS_LOST <= UINT16_MAX, "labels fit a key");

static uint64_t
key_of(uint32_t stack, uint32_t size_class, uint32_t labels)
{
    return (uint64_t)stack << 32 | (uint64_t)(uint16_t)size_class << 16 |
           (uint16_t)labels;
}

static uint64_t *
row_at(const struct cpprof__kept *kept, size_t i)
{
    return kept->rows + i * (kept->n_values + 1);
}

static int
by_key(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* ---- making ----------------------------------------------------------- */

static bool
make_room(struct cpprof__kept *kept, size_t n, size_t n_values)
{
    memset(kept, 0, sizeof *kept);
    kept->n_values = (unsigned)n_values;
    kept->rows = calloc(n + 1, (n_values + 1) * sizeof *kept->rows);
    return kept->rows != NULL;
}

/* A row after all others; with nothing in it, it is not there. */
static void
add(struct cpprof__kept *kept, uint64_t key, const int64_t *values)
{
    uint64_t *row = row_at(kept, kept->n), any = 0;
    unsigned i;

    row[0] = key;
    for (i = 0; i < kept->n_values; i++) {
        row[1 + i] = (uint64_t)values[i];
        any |= row[1 + i];
    }
    kept->n += any != 0;
}

static void
join(const struct cpprof__kept *kept, uint64_t *to, const uint64_t *from)
{
    unsigned i;

    for (i = 1; i <= kept->n_values; i++)
        to[i] += from[i];
}

static void
finish(struct cpprof__kept *kept)
{
    size_t i, n = 0, n_bytes = (kept->n_values + 1) * sizeof *kept->rows;
    uint64_t *shorter;

    qsort(kept->rows, kept->n, n_bytes, by_key);
    for (i = 0; i < kept->n; i++) {
        uint64_t *row = row_at(kept, i);

        if (n && row_at(kept, n - 1)[0] == row[0])
            join(kept, row_at(kept, n - 1), row);
        else
            memmove(row_at(kept, n++), row, n_bytes);
    }
    kept->n = n;
    shorter = realloc(kept->rows, (n + 1) * n_bytes);
    if (shorter)
        kept->rows = shorter;
}

bool
cpprof__kept_rows(struct cpprof__kept *kept, const struct cpprof__row *rows,
                  size_t n, size_t n_values)
{
    size_t i;

    if (!make_room(kept, n, n_values))
        return false;
    for (i = 0; i < n; i++)
        add(kept, key_of(rows[i].stack, 0, rows[i].labels), rows[i].values);
    finish(kept);
    return true;
}

bool
cpprof__kept_heap(struct cpprof__kept *kept,
                  const struct cpprof__heap_rows *rows)
{
    size_t i;

    if (!make_room(kept, rows->n, CPPROF__HEAP_VALUES))
        return false;
    for (i = 0; i < rows->n; i++) {
        const struct cpprof__heap_row *row = &rows->rows[i];

        add(kept, key_of(row->stack, row->size_class, row->labels),
            row->values);
    }
    kept->lost[0] = rows->n_lost;
    kept->lost[1] = rows->lost_objects;
    kept->lost[2] = rows->lost_bytes;
    kept->n_unfollowed = rows->n_unfollowed;
    finish(kept);
    return true;
}

void
cpprof__kept_free(struct cpprof__kept *kept)
{
    free(kept->rows);
    memset(kept, 0, sizeof *kept);
}

/* ---- differences ------------------------------------------------------ */

/* now - base at one key; either may be NULL. Appended when it is any. */
static void
append_difference(const uint64_t *now, const uint64_t *base, unsigned n_values,
                  struct cpprof__row *rows, size_t *n)
{
    uint64_t key = now ? *now : *base;
    struct cpprof__row row = {.stack = (uint32_t)(key >> 32),
                              .labels = (uint16_t)key};
    bool any = false;
    unsigned i;

    for (i = 0; i < n_values; i++) {
        row.values[i] =
            (int64_t)((now ? now[1 + i] : 0) - (base ? base[1 + i] : 0));
        any |= row.values[i] != 0;
    }
    if (any)
        rows[(*n)++] = row;
}

struct cpprof__row *
cpprof__kept_difference(const struct cpprof__kept *now,
                        const struct cpprof__kept *base, size_t *n)
{
    struct cpprof__row *rows = calloc(now->n + base->n + 1, sizeof *rows);
    size_t i = 0, j = 0;

    *n = 0;
    while (rows && (i < now->n || j < base->n)) {
        const uint64_t *x = i < now->n ? row_at(now, i) : NULL;
        const uint64_t *y = j < base->n ? row_at(base, j) : NULL;
        int order = !x ? 1 : !y ? -1 : by_key(x, y);

        append_difference(order <= 0 ? x : NULL, order >= 0 ? y : NULL,
                          now->n_values, rows, n);
        i += order <= 0;
        j += order >= 0;
    }
    return rows;
}

static bool
subtract(struct cpprof__heap_row *row, const struct cpprof__kept *base,
         unsigned n_values)
{
    uint64_t key = key_of(row->stack, row->size_class, row->labels);
    const uint64_t *found = NULL;
    bool any = false;
    unsigned i;

    if (base->n)
        found = bsearch(&key, base->rows, base->n,
                        (base->n_values + 1) * sizeof *base->rows, by_key);
    for (i = 0; i < CPPROF__HEAP_VALUES; i++) {
        if (found && i < n_values)
            row->values[i] -= (int64_t)found[1 + i];
        any |= row->values[i] != 0;
    }
    return any;
}

void
cpprof__kept_subtract_heap(struct cpprof__heap_rows *rows,
                           const struct cpprof__kept *base, bool in_use)
{
    unsigned n_values = in_use ? CPPROF__HEAP_VALUES : CPPROF__INUSE_OBJECTS;
    size_t i, n = 0;

    for (i = 0; i < rows->n; i++) {
        struct cpprof__heap_row row = rows->rows[i];

        if (subtract(&row, base, n_values))
            rows->rows[n++] = row;
    }
    rows->n = n;
    rows->n_lost -= base->lost[0];
    rows->lost_objects -= base->lost[1];
    rows->lost_bytes -= base->lost[2];
    rows->n_unfollowed -= base->n_unfollowed;
}
