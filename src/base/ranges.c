/* SPDX-License-Identifier: MIT */
/*
 * Makes overlapping ranges disjoint, so that a lookup is one binary search. A
 * sweep goes over the starts with a heap of the ranges that are open, the best
 * on top, and cuts where the best one changes. There are fewer pieces than
 * twice the number of ranges.
 */
#include "base/ranges.h"

#include "base/array.h"
#include "own/memory.h"
#include "own/sort.h"

#include <stdlib.h>
#include <string.h>

void
cpprof__ranges_free(struct cpprof__ranges *ranges)
{
    cpprof__free(ranges->items);
    memset(ranges, 0, sizeof *ranges);
}

void
cpprof__ranges_add(struct cpprof__ranges *ranges, struct cpprof__range range)
{
    if (range.start >= range.limit)
        return;
    if (ranges->n == ranges->capacity &&
        !cpprof__array_grow((void **)&ranges->items, &ranges->capacity,
                            ranges->n + 1, sizeof *ranges->items))
        ranges->failed = true;
    if (ranges->failed)
        return;
    ranges->items[ranges->n++] = range;
}

static int
compare_starts(const void *a, const void *b)
{
    const struct cpprof__range *x = a;
    const struct cpprof__range *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* Most are made in order. */
static void
sort(struct cpprof__ranges *ranges)
{
    size_t i;

    for (i = 1; i < ranges->n; i++)
        if (compare_starts(&ranges->items[i - 1], &ranges->items[i]) > 0)
            break;
    if (i < ranges->n)
        cpprof__sort(ranges->items, ranges->n, sizeof *ranges->items,
                     compare_starts);
}

static bool
is_disjoint(const struct cpprof__ranges *ranges)
{
    size_t i;

    for (i = 1; i < ranges->n; i++)
        if (ranges->items[i].start < ranges->items[i - 1].limit)
            return false;
    return true;
}

/* The open ranges, as a binary heap of pointers; the best is the first. */
struct heap {
    const struct cpprof__range **items;
    size_t n;
};

static bool
is_better(const struct cpprof__range *a, const struct cpprof__range *b)
{
    if (a->rank != b->rank)
        return a->rank > b->rank;
    if (a->start != b->start)
        return a->start > b->start;
    return a->value < b->value;
}

static void
heap_push(struct heap *heap, const struct cpprof__range *range)
{
    size_t i = heap->n++;

    for (; i > 0 && is_better(range, heap->items[(i - 1) / 2]); i = (i - 1) / 2)
        heap->items[i] = heap->items[(i - 1) / 2];
    heap->items[i] = range;
}

static void
heap_pop(struct heap *heap)
{
    const struct cpprof__range *last = heap->items[--heap->n];
    size_t i = 0;
    size_t child;

    while ((child = 2 * i + 1) < heap->n) {
        if (child + 1 < heap->n &&
            is_better(heap->items[child + 1], heap->items[child]))
            child++;
        if (!is_better(heap->items[child], last))
            break;
        heap->items[i] = heap->items[child];
        i = child;
    }
    heap->items[i] = last;
}

/* Append [start, limit) of range, joined to the piece before if it goes on. */
static void
put_piece(struct cpprof__ranges *out, const struct cpprof__range *range,
          uint64_t start, uint64_t limit)
{
    struct cpprof__range *last = out->n ? &out->items[out->n - 1] : NULL;

    if (last && last->limit == start && last->value == range->value &&
        last->rank == range->rank)
        last->limit = limit;
    else
        cpprof__ranges_add(out, (struct cpprof__range){
                                    start, limit, range->value, range->rank});
}

/* Cut the sorted ranges of in where a better one starts or ends. */
static void
sweep(const struct cpprof__ranges *in, struct heap *heap,
      struct cpprof__ranges *out)
{
    uint64_t at = 0;
    size_t next = 0;

    while (next < in->n || heap->n) {
        uint64_t limit;

        if (!heap->n && at < in->items[next].start)
            at = in->items[next].start;
        while (next < in->n && in->items[next].start <= at)
            heap_push(heap, &in->items[next++]);
        while (heap->n && heap->items[0]->limit <= at)
            heap_pop(heap);
        if (!heap->n)
            continue;
        limit = heap->items[0]->limit;
        if (next < in->n && in->items[next].start < limit)
            limit = in->items[next].start;
        put_piece(out, heap->items[0], at, limit);
        at = limit;
    }
}

static bool
make_disjoint(struct cpprof__ranges *ranges)
{
    struct cpprof__ranges out = {0};
    struct heap heap = {0};

    heap.items = cpprof__malloc(ranges->n * sizeof *heap.items);
    if (!heap.items)
        return false;
    sweep(ranges, &heap, &out);
    cpprof__free(heap.items);
    if (out.failed) {
        cpprof__ranges_free(&out);
        return false;
    }
    cpprof__free(ranges->items);
    *ranges = out;
    return true;
}

bool
cpprof__ranges_seal(struct cpprof__ranges *ranges)
{
    sort(ranges);
    if (!ranges->failed && (is_disjoint(ranges) || make_disjoint(ranges))) {
        cpprof__array_trim((void **)&ranges->items, &ranges->capacity,
                           ranges->n, sizeof *ranges->items);
        return true;
    }
    cpprof__ranges_free(ranges);
    return false;
}

const struct cpprof__range *
cpprof__ranges_above(const struct cpprof__ranges *ranges, uint64_t address)
{
    size_t low = 0;
    size_t high = ranges->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ranges->items[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ranges->n ? &ranges->items[low] : NULL;
}

const struct cpprof__range *
cpprof__ranges_find(const struct cpprof__ranges *ranges, uint64_t address)
{
    const struct cpprof__range *above = cpprof__ranges_above(ranges, address);
    const struct cpprof__range *at = above ? above : ranges->items + ranges->n;

    if (at == ranges->items)
        return NULL;
    at--;
    return address < at->limit ? at : NULL;
}
