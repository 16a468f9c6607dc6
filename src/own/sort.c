/* SPDX-License-Identifier: MIT */
/*
 * Heapsort: in place, without recursion, and never slower than n log n. What is
 * in order already, as much of ours is, is only looked at.
 *
 * Source: R. W. Floyd, "Treesort 3", Comm. ACM 7 (1964).
 */
#include "own/sort.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct sort {
    char *items;
    size_t item_bytes;
    int (*compare)(const void *a, const void *b, void *ctx);
    void *ctx;
};

static bool
is_less(const struct sort *s, size_t a, size_t b)
{
    return s->compare(s->items + a * s->item_bytes,
                      s->items + b * s->item_bytes, s->ctx) < 0;
}

static void
swap(const struct sort *s, size_t a, size_t b)
{
    char *x = s->items + a * s->item_bytes, *y = s->items + b * s->item_bytes;
    size_t left = s->item_bytes;
    uint64_t word;

    for (; left >= sizeof word; left -= sizeof word) {
        memcpy(&word, x, sizeof word);
        memcpy(x, y, sizeof word);
        memcpy(y, &word, sizeof word);
        x += sizeof word;
        y += sizeof word;
    }
    while (left--) {
        char byte = *x;

        *x++ = *y;
        *y++ = byte;
    }
}

/* Item `at` goes down until none of its children is greater. */
static void
sink(const struct sort *s, size_t at, size_t n)
{
    size_t child;

    for (; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_less(s, child, child + 1))
            child++;
        if (!is_less(s, at, child))
            return;
        swap(s, at, child);
    }
}

void
cpprof__sort_by(void *items, size_t n, size_t item_bytes,
                int (*compare)(const void *a, const void *b, void *ctx),
                void *ctx)
{
    const struct sort s = {items, item_bytes, compare, ctx};
    size_t i;

    for (i = 1; i < n && !is_less(&s, i, i - 1); i++)
        continue;
    if (i >= n)
        return;
    for (i = n / 2; i--;)
        sink(&s, i, n);
    for (i = n - 1; i; i--) {
        swap(&s, 0, i);
        sink(&s, 0, i);
    }
}

struct plain {
    int (*compare)(const void *a, const void *b);
};

static int
compare_plain(const void *a, const void *b, void *ctx)
{
    return ((const struct plain *)ctx)->compare(a, b);
}

void
cpprof__sort(void *items, size_t n, size_t item_bytes,
             int (*compare)(const void *a, const void *b))
{
    struct plain plain = {compare};

    cpprof__sort_by(items, n, item_bytes, compare_plain, &plain);
}
