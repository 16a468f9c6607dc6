/* SPDX-License-Identifier: MIT */
/*
 * Finds made code by address and moment. Each code is in those few nodes of a
 * segment tree whose stretches make up its range; the codes that cover an
 * address are those on the way from its stretch to the root. Their numbers are
 * in order in each node, so the last one before a moment is a binary search.
 *
 * Source: segment trees are in M. de Berg et al., Computational Geometry, 10.3.
 */
#include "symbol/jit_table.h"

#include "own/memory.h"
#include "own/sort.h"

#include <string.h>

#define NONE UINT32_MAX

/* Tunable: code of one range takes one number, code across the bounds of other
 * code up to 40. Code beyond is left out: no compiler makes as much. */
#define MOST_NUMBERS (8u << 20)

void
cpprof__jit_table_add(struct cpprof__jit_table *t,
                      const struct cpprof__jit_code *code)
{
    if (!code->n_bytes)
        return;
    if (t->codes.n < CPPROF__JIT_CODES && CPPROF__ARRAY_ROOM(&t->codes, 1))
        t->codes.at[t->codes.n++] = *code;
    else
        t->is_cut = true;
}

/* ---- the tree ---------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Where all code begins and ends, each address once. */
static bool
make_bounds(struct cpprof__jit_table *t)
{
    uint64_t *bounds = cpprof__malloc(2 * t->codes.n * sizeof *bounds);
    size_t i, n = 0;

    if (!bounds)
        return false;
    for (i = 0; i < t->codes.n; i++) {
        bounds[2 * i] = t->codes.at[i].start;
        bounds[2 * i + 1] = t->codes.at[i].start + t->codes.at[i].n_bytes;
    }
    cpprof__sort(bounds, 2 * t->codes.n, sizeof *bounds, compare);
    for (i = 0; i < 2 * t->codes.n; i++)
        if (!n || bounds[n - 1] != bounds[i])
            bounds[n++] = bounds[i];
    t->tree.bounds = bounds;
    t->tree.n = n - 1;
    return true;
}

/* The number of bounds that are not above address. */
static size_t
n_bounds_up_to(const struct cpprof__jit_tree *tree, uint64_t address)
{
    size_t low = 0, high = tree->n + 1;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (tree->bounds[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The nodes of a code, as many as 2 for each level: how many there are. Node 1
 * is the root, the leaves are tree->n and up. */
static size_t
nodes_of(const struct cpprof__jit_tree *tree,
         const struct cpprof__jit_code *code, size_t nodes[128])
{
    size_t from = n_bounds_up_to(tree, code->start) - 1 + tree->n;
    size_t to = n_bounds_up_to(tree, code->start + code->n_bytes) - 1 + tree->n;
    size_t n = 0;

    for (; from < to; from /= 2, to /= 2) {
        if (from & 1)
            nodes[n++] = from++;
        if (to & 1)
            nodes[n++] = --to;
    }
    return n;
}

/* Make first[i + 2] the number of codes in node i. */
static bool
count_numbers(struct cpprof__jit_table *t)
{
    size_t nodes[128], i, n, n_all = 0;

    t->tree.first = cpprof__calloc(2 * t->tree.n + 2, sizeof *t->tree.first);
    if (!t->tree.first)
        return false;
    for (i = 0; i < t->codes.n; i++) {
        n = nodes_of(&t->tree, &t->codes.at[i], nodes);
        if (n_all + n > MOST_NUMBERS) {
            t->codes.n = i;
            t->is_cut = true;
            break;
        }
        n_all += n;
        while (n)
            t->tree.first[nodes[--n] + 2]++;
    }
    return true;
}

/* first[i + 1] moves from where node i begins to where it ends, which is where
 * the next one begins. */
static bool
fill_nodes(struct cpprof__jit_table *t)
{
    struct cpprof__jit_tree *tree = &t->tree;
    size_t nodes[128], i, n;

    for (i = 1; i < 2 * tree->n + 2; i++)
        tree->first[i] += tree->first[i - 1];
    tree->numbers = cpprof__malloc((tree->first[2 * tree->n + 1] + 1ul) *
                                   sizeof *tree->numbers);
    if (!tree->numbers)
        return false;
    for (i = 0; i < t->codes.n; i++) {
        n = nodes_of(tree, &t->codes.at[i], nodes);
        while (n)
            tree->numbers[tree->first[nodes[--n] + 1]++] = (uint32_t)i;
    }
    return true;
}

static void
free_tree(struct cpprof__jit_tree *tree)
{
    cpprof__free(tree->bounds);
    cpprof__free(tree->first);
    cpprof__free(tree->numbers);
    *tree = (struct cpprof__jit_tree){0};
}

void
cpprof__jit_table_seal(struct cpprof__jit_table *t)
{
    size_t i;

    if (!t->codes.n)
        return;
    CPPROF__ARRAY_TRIM(&t->codes);
    /* Threads write a dump out of order. Code that came before other code was
     * there when that was told of. */
    for (i = t->codes.n - 1; i > 0; i--)
        if (t->codes.at[i - 1].file_end > t->codes.at[i].file_end)
            t->codes.at[i - 1].file_end = t->codes.at[i].file_end;
    if (!make_bounds(t) || !count_numbers(t) || !fill_nodes(t))
        free_tree(&t->tree);
}

/* ---- finding ----------------------------------------------------------- */

/* How many codes the first n_bytes of the file tell of. */
static uint32_t
n_codes_by(const struct cpprof__jit_table *t, uint64_t n_bytes)
{
    size_t low = 0, high = t->codes.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (t->codes.at[middle].file_end <= n_bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low;
}

/* Of the codes of one node, the last below n and the first that is not. */
static void
see_node(const struct cpprof__jit_tree *tree, size_t node, uint32_t n,
         uint32_t *last, uint32_t *next)
{
    uint32_t begin = tree->first[node], end = tree->first[node + 1];
    uint32_t low = begin, high = end;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (tree->numbers[middle] < n)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > begin && (*last == NONE || tree->numbers[low - 1] > *last))
        *last = tree->numbers[low - 1];
    if (low < end && tree->numbers[low] < *next)
        *next = tree->numbers[low];
}

static void
find_line(const struct cpprof__jit_table *t,
          const struct cpprof__jit_code *code, uint64_t offset,
          struct cpprof__jit_place *place)
{
    const struct cpprof__jit_line *found = NULL;
    uint32_t i;

    for (i = 0; i < code->n_lines; i++) {
        const struct cpprof__jit_line *line =
            &t->lines.at[code->first_line + i];

        if (line->offset <= offset && (!found || line->offset >= found->offset))
            found = line;
    }
    if (!found)
        return;
    place->line = found->line;
    place->file = (const char *)t->text.data + found->file;
    place->n_file = found->n_file;
}

bool
cpprof__jit_table_find(const struct cpprof__jit_table *t, uint64_t pc,
                       uint64_t n_bytes, struct cpprof__jit_place *place)
{
    const struct cpprof__jit_tree *tree = &t->tree;
    uint32_t n = n_codes_by(t, n_bytes), last = NONE, next = NONE;
    const struct cpprof__jit_code *code;
    size_t node = tree->n ? n_bounds_up_to(tree, pc) : 0;

    if (!node || node > tree->n)
        return false;
    for (node += tree->n - 1; node; node /= 2)
        see_node(tree, node, n, &last, &next);
    if (last == NONE && next == NONE)
        return false;
    code = &t->codes.at[last != NONE ? last : next];
    if (!code->n_name)
        return false;
    *place = (struct cpprof__jit_place){.name = (const char *)t->text.data +
                                                code->name,
                                        .n_name = code->n_name};
    find_line(t, code, pc - code->start, place);
    return true;
}

void
cpprof__jit_table_free(struct cpprof__jit_table *t)
{
    cpprof__buffer_free(&t->text);
    CPPROF__ARRAY_FREE(&t->codes);
    CPPROF__ARRAY_FREE(&t->lines);
    free_tree(&t->tree);
    t->is_cut = false;
}
