/* SPDX-License-Identifier: MIT */
/*
 * Whose growth is it? A function that grew because of what it calls is told
 * below that callee, and each has the path of calls on which it grew most. So
 * has the whole: a function with all of the time is not judged by itself.
 */
#include "cli/gate/gate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A callee with this part of a function's growth is the reason for it. */
#define MOST_OF_IT 0.5
/* Frames of a path that are shown, the innermost ones. */
#define MOST_FRAMES 8

static uint32_t
key_at(const struct cpprof__gate_model *m, uint32_t node)
{
    return m->keys.at[m->nodes.at[node].key].is;
}

static double
growth_at(const struct cpprof__gate_model *m, uint32_t node)
{
    return m->nodes.at[node].head - m->nodes.at[node].base;
}

/* Is there a node of the key above this one? */
static bool
is_below(const struct cpprof__gate_model *m, uint32_t node, uint32_t key)
{
    while ((node = m->nodes.at[node].parent) != CPPROF__GATE_NONE)
        if (key_at(m, node) == key)
            return true;
    return false;
}

/* For each row that fails, the node of its key that grew most; recursion is
 * told by its outermost call. */
static void
find_nodes(const struct cpprof__gate_model *m, struct cpprof__gate_result *r,
           const uint32_t *row_of)
{
    uint32_t i, row;

    for (i = 0; i < m->nodes.n; i++) {
        struct cpprof__gate_row *at;

        row = row_of[key_at(m, i)];
        if (row == CPPROF__GATE_NONE || is_below(m, i, r->rows.at[row].key))
            continue;
        at = &r->rows.at[row];
        if (at->node == CPPROF__GATE_NONE ||
            growth_at(m, i) > growth_at(m, at->node))
            at->node = i;
    }
}

/* The growth of a callee on its ways through a function, for all pairs. A
 * node counts for each function above it once, and for its key only where that
 * is not above it, too. */
static void
find_through(const struct cpprof__gate_model *m,
             const struct cpprof__gate_result *r, const uint32_t *row_of,
             double *through)
{
    size_t n = r->rows.n, i;

    for (i = 0; i < m->nodes.n; i++) {
        uint32_t callee = row_of[key_at(m, (uint32_t)i)], above, seen[64];
        size_t n_seen = 0, k;

        if (callee == CPPROF__GATE_NONE ||
            is_below(m, (uint32_t)i, r->rows.at[callee].key))
            continue;
        for (above = m->nodes.at[i].parent; above != CPPROF__GATE_NONE;
             above = m->nodes.at[above].parent) {
            uint32_t caller = row_of[key_at(m, above)];

            for (k = 0; k < n_seen && seen[k] != caller; k++)
                continue;
            if (caller == CPPROF__GATE_NONE || k < n_seen || n_seen == 64)
                continue;
            seen[n_seen++] = caller;
            through[caller * n + callee] += growth_at(m, (uint32_t)i);
        }
    }
}

/* Is `to` a reason for `from`, or for what that grew because of? */
static bool
leads_to(const struct cpprof__gate_row *rows, uint32_t from, uint32_t to)
{
    while (from != CPPROF__GATE_NONE && from != to)
        from = rows[from].because;
    return from == to;
}

/* The innermost callee that most of a row's growth comes from. Of functions
 * that call each other in a ring one is left that nobody is the reason for. */
static void
find_because(const struct cpprof__gate_result *r, uint32_t row,
             const double *through)
{
    struct cpprof__gate_row *rows = r->rows.at;
    size_t n = r->rows.n;
    double least = MOST_OF_IT * (rows[row].head - rows[row].base);
    uint32_t k;

    for (k = 0; k < n; k++) {
        double of_it = through[row * n + k];

        if (k == row || rows[k].verdict != CPPROF__GATE_FAIL || of_it < least ||
            through[k * n + row] > of_it / 2 || leads_to(rows, k, row))
            continue;
        if (rows[row].because == CPPROF__GATE_NONE ||
            through[rows[row].because * n + k] >
                MOST_OF_IT * through[row * n + rows[row].because])
            rows[row].because = k;
    }
}

/* Of the stacks that lead on from those in is_on, the ones whose next function
 * grew most, by `least` or more: they become those in is_on. Copies of a stack
 * under old and new names are one. Returns the function; NONE: there
 * is none. */
static uint32_t
follow(const struct cpprof__gate_model *m, bool is_first, double least,
       bool *is_on, double *growth)
{
    uint32_t i, found = CPPROF__GATE_NONE;

    memset(growth, 0, m->keys.n * sizeof *growth);
    for (i = 0; i < m->nodes.n; i++) {
        uint32_t above = m->nodes.at[i].parent;

        if (above == CPPROF__GATE_NONE ? is_first : is_on[above])
            growth[key_at(m, i)] += growth_at(m, i);
    }
    for (i = 0; i < m->keys.n; i++)
        if (growth[i] >= least && growth[i] > 0 &&
            (found == CPPROF__GATE_NONE || growth[i] > growth[found]))
            found = i;
    /* Callers stand before what they call, so is_on is still theirs where it is
     * asked for. */
    for (i = (uint32_t)m->nodes.n; i-- > 0;) {
        uint32_t above = m->nodes.at[i].parent;

        is_on[i] = found != CPPROF__GATE_NONE && key_at(m, i) == found &&
                   (above == CPPROF__GATE_NONE ? is_first : is_on[above]);
    }
    return found;
}

/* The node to which most of the growth of the whole leads. */
static uint32_t
node_of_whole(const struct cpprof__gate_model *m,
              const struct cpprof__gate_row *whole)
{
    bool *is_on = calloc(m->nodes.n + 1, sizeof *is_on);
    double *growth = calloc(m->keys.n + 1, sizeof *growth);
    double least = MOST_OF_IT * (whole->head - whole->base);
    uint32_t node = CPPROF__GATE_NONE, key, i;
    bool is_first = true;

    while (is_on && growth &&
           (key = follow(m, is_first, least, is_on, growth)) !=
               CPPROF__GATE_NONE) {
        least = MOST_OF_IT * growth[key];
        is_first = false;
        node = CPPROF__GATE_NONE;
        for (i = 0; i < m->nodes.n; i++)
            if (is_on[i] && (node == CPPROF__GATE_NONE ||
                             growth_at(m, i) > growth_at(m, node)))
                node = i;
    }
    free(is_on);
    free(growth);
    return node;
}

void
cpprof__gate_blame(const struct cpprof__gate_model *m,
                   struct cpprof__gate_result *r)
{
    uint32_t *row_of = calloc(m->keys.n + 1, sizeof *row_of), i;
    size_t n = r->rows.n;
    double *through = calloc(n * n + 1, sizeof *through);

    for (i = 0; row_of && i < m->keys.n; i++)
        row_of[i] = CPPROF__GATE_NONE;
    for (i = 0; row_of && i < n; i++)
        if (r->rows.at[i].key != CPPROF__GATE_NONE &&
            r->rows.at[i].verdict == CPPROF__GATE_FAIL)
            row_of[r->rows.at[i].key] = i;
    if (row_of && through) {
        find_nodes(m, r, row_of);
        find_through(m, r, row_of, through);
        for (i = 0; i < n; i++)
            if (r->rows.at[i].verdict == CPPROF__GATE_FAIL &&
                r->rows.at[i].key != CPPROF__GATE_NONE && !m->flags->flat)
                find_because(r, i, through);
    }
    if (r->has_whole && r->rows.at[0].verdict == CPPROF__GATE_FAIL)
        r->rows.at[0].node = node_of_whole(m, &r->rows.at[0]);
    free(row_of);
    free(through);
}

/* --------------------------------------------------------------- path ---- */

static const char *
name_at(const struct cpprof__gate_model *m, uint32_t node)
{
    return m->keys.at[m->nodes.at[node].key].name;
}

/* The part below a node that is only in one side and has most of its growth;
 * NONE: there is none. */
static uint32_t
new_below(const struct cpprof__gate_model *m, uint32_t node)
{
    double most = MOST_OF_IT * growth_at(m, node);
    uint32_t i, found = CPPROF__GATE_NONE;

    for (i = node + 1; i < m->nodes.n; i++)
        if (m->nodes.at[i].parent == node &&
            m->keys.at[key_at(m, i)].is_folded && growth_at(m, i) >= most &&
            most > 0) {
            found = i;
            most = growth_at(m, i);
        }
    return found;
}

static void
print_frame(const struct cpprof__gate_model *m, uint32_t node, int max_name,
            bool has_more, struct cpprof__buffer *out)
{
    const struct cpprof__gate_key *k = &m->keys.at[key_at(m, node)];

    cpprof__buffer_printf(out, "%.*s%s%s", max_name, name_at(m, node),
                          k->is_folded && k->head > 0 ? " (new)" : "",
                          has_more ? " > " : "");
}

void
cpprof__gate_path(const struct cpprof__gate_model *m,
                  const struct cpprof__gate_row *row, int max_name,
                  struct cpprof__buffer *out)
{
    uint32_t path[MOST_FRAMES], at = row->node;
    size_t n = 0;

    if (at == CPPROF__GATE_NONE)
        return;
    for (; at != CPPROF__GATE_NONE && n < MOST_FRAMES;
         at = m->nodes.at[at].parent)
        path[n++] = at;
    if (at != CPPROF__GATE_NONE)
        cpprof__buffer_printf(out, "... > ");
    while (n-- > 0)
        print_frame(m, path[n], max_name, n > 0, out);
    for (at = new_below(m, row->node); at != CPPROF__GATE_NONE;
         at = new_below(m, at)) {
        cpprof__buffer_printf(out, " > ");
        print_frame(m, at, max_name, false, out);
    }
}
