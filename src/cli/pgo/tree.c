/* SPDX-License-Identifier: MIT */
/*
 * Counts by function, line and inlined call. A line of the source can be in
 * several blocks. Blocks of which one dominates the other are stations of one
 * way: the line ran as often as the one that ran most. Others are alternatives,
 * copies of a loop say, and add up. A line that no instruction has left is
 * missing, which compilers take for "unknown" and not for "never".
 */
#include "cli/pgo/pgo.h"

#include "base/status.h"
#include "base/text.h"
#include "cli/messages.h"
#include "profile/model/path.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A line in a block. */
struct part {
    uint32_t line; /* of tree->lines */
    uint32_t block;
    double count;
};

struct work {
    struct cpprof__pgo_tree *tree;
    struct cpprof__pgo_counts *counts;
    struct cpprof__pgo_code code;
    struct cpprof__pgo_listing listing;
    CPPROF__ARRAY(struct part) parts; /* of a routine */
    struct cpprof__frame frames[CPPROF__LOOKUP_FRAMES];
    bool *is_twin; /* by routine: another of its name stands for both */
    bool failed;
};

#define KEY_BYTES sizeof(struct cpprof__pgo_position)

/* ----------------------------------------------------- discriminators ---- */

/* The number in front of a discriminator: 5 bits, or 12 (LLVM's
 * getUnsignedFromPrefixEncoding). */
static uint32_t
prefix_of(uint32_t d)
{
    if (d & 1)
        return 0;
    d >>= 1;
    return d & 0x20 ? ((d >> 1) & 0xfe0) | (d & 0x1f) : d & 0x1f;
}

static uint32_t
behind_prefix(uint32_t d)
{
    return d & 1 ? d >> 1 : d >> (d & 0x40 ? 14 : 7);
}

/* How many runs of the line one run of the block is. */
static uint32_t
copies_of(uint32_t d)
{
    uint32_t n = prefix_of(behind_prefix(d));

    return n ? n : 1;
}

/* ------------------------------------------------------------ adding ---- */

static struct cpprof__pgo_node *
node_at(const struct cpprof__pgo_tree *tree, uint32_t i)
{
    return (struct cpprof__pgo_node *)tree->nodes.entries.data + i;
}

static struct cpprof__pgo_line *
line_at(const struct cpprof__table *lines, uint32_t i)
{
    return (struct cpprof__pgo_line *)lines->entries.data + i;
}

static uint32_t
add_node(struct work *w, struct cpprof__pgo_position position)
{
    struct cpprof__pgo_node node = {.position = position};
    bool added;
    uint32_t i = cpprof__table_add(&w->tree->nodes, &node, KEY_BYTES,
                                   sizeof node, &added);

    w->failed |= i == CPPROF__INDEX_NONE;
    return i;
}

static uint32_t
add_line(struct work *w, struct cpprof__table *table,
         struct cpprof__pgo_position position)
{
    struct cpprof__pgo_line line = {.position = position};
    bool added;
    uint32_t i =
        cpprof__table_add(table, &line, KEY_BYTES, sizeof line, &added);

    w->failed |= i == CPPROF__INDEX_NONE;
    return i;
}

/* The name of an inlined function; what has no name of its own is unknown. */
static uint32_t
name_of(struct work *w, const struct cpprof__frame *frame)
{
    uint32_t name = cpprof__strings_add(
        &w->counts->names, frame->system_name,
        cpprof__symbol_source_length(frame->system_name,
                                     strlen(frame->system_name)));

    w->failed |= name == CPPROF__NO_STRING;
    return name;
}

static struct cpprof__pgo_position
position_of(uint32_t node, const struct cpprof__frame *frame, uint32_t name)
{
    int64_t offset = frame->line - frame->start_line;

    return (struct cpprof__pgo_position){
        node, offset > 0 ? (uint32_t)offset & 0xffff : 0,
        prefix_of(frame->discriminator), name};
}

/* Where an instruction of the routine stands; false: it is on no line that a
 * compiler would find again. */
static bool
find_position(struct work *w, const struct cpprof__pgo_routine *r,
              uint64_t address, struct cpprof__pgo_position *position,
              uint32_t *n_copies)
{
    size_t n = cpprof__lookup_frames(&w->counts->lookup,
                                     w->counts->builds.at[r->build].number,
                                     address, w->frames),
           i;
    uint32_t node;

    for (i = 0; i < n; i++)
        if (!w->frames[i].line || !w->frames[i].start_line)
            return false;
    if (!n)
        return false;
    node = add_node(
        w, (struct cpprof__pgo_position){CPPROF__PGO_NONE, 0, 0, r->name});
    for (i = n; i-- > 1 && !w->failed;)
        node = add_node(
            w, position_of(node, &w->frames[i], name_of(w, &w->frames[i - 1])));
    *position = position_of(node, w->frames, 0);
    *n_copies = copies_of(w->frames[0].discriminator);
    return !w->failed;
}

/* ------------------------------------------------------------ a routine ----
 */

static void
add_instructions(struct work *w, const struct cpprof__pgo_routine *r)
{
    struct cpprof__pgo_position position;
    uint32_t n_copies;
    size_t i;

    w->parts.n = 0;
    for (i = 0; i < w->code.instructions.n && !w->failed; i++) {
        const struct cpprof__pgo_instruction *in = &w->code.instructions.at[i];
        struct part *part;

        if (in->kind == CPPROF__PGO_NOP ||
            !find_position(w, r, in->address, &position, &n_copies))
            continue;
        part = CPPROF__ARRAY_ADD(&w->parts);
        if (!part) {
            w->failed = true;
            return;
        }
        *part = (struct part){add_line(w, &w->tree->lines, position), in->block,
                              w->code.blocks.at[in->block].count * n_copies};
    }
}

static int
by_line(const void *x, const void *y, void *ctx)
{
    const struct cpprof__pgo_code *code = ctx;
    const struct part *a = x, *b = y;
    uint32_t p, q;

    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    p = code->blocks.at[a->block].depth;
    q = code->blocks.at[b->block].depth;
    if (p != q)
        return p < q ? -1 : 1;
    return (a->block > b->block) - (a->block < b->block);
}

/* The count of a line from its n parts, by depth: the sum of groups that do not
 * dominate each other, each of which counts as its largest part. */
static double
count_of(const struct cpprof__pgo_code *code, struct part *parts, size_t n)
{
    size_t n_groups = 0, i, k;
    double sum = 0;

    for (i = 0; i < n; i++) {
        for (k = 0; k < n_groups; k++)
            if (cpprof__pgo_dominates(code, parts[k].block, parts[i].block))
                break;
        if (k == n_groups)
            parts[n_groups++] = parts[i];
        else if (parts[k].count < parts[i].count)
            parts[k].count = parts[i].count;
    }
    for (k = 0; k < n_groups; k++)
        sum += parts[k].count;
    return sum;
}

static void
add_lines(struct work *w)
{
    size_t i, end;

    if (w->parts.n)
        qsort_r(w->parts.at, w->parts.n, sizeof *w->parts.at, by_line,
                &w->code);
    for (i = 0; i < w->parts.n; i = end) {
        for (end = i;
             end < w->parts.n && w->parts.at[end].line == w->parts.at[i].line;)
            end++;
        line_at(&w->tree->lines, w->parts.at[i].line)->count +=
            count_of(&w->code, &w->parts.at[i], end - i);
    }
}

/* The calls that stacks show, as targets of the lines that they are on. */
static void
add_targets(struct work *w, const struct cpprof__pgo_routine *r)
{
    const struct cpprof__pgo_counts *c = w->counts;
    size_t low = 0, high = c->calls.n;
    struct cpprof__pgo_position position;
    uint32_t n_copies, i;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct cpprof__pgo_call *call = &c->calls.at[middle];

        if (call->build < r->build ||
            (call->build == r->build && call->site < r->start))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < c->calls.n && c->calls.at[low].build == r->build &&
           c->calls.at[low].site < r->limit && !w->failed;
         low++) {
        const struct cpprof__pgo_call *call = &c->calls.at[low];

        if (!find_position(w, r, call->site, &position, &n_copies))
            continue;
        position.name = call->callee;
        i = add_line(w, &w->tree->targets, position);
        if (!w->failed)
            line_at(&w->tree->targets, i)->count += call->n;
    }
}

static void
add_routine(struct work *w, const struct cpprof__pgo_routine *r)
{
    uint32_t node;

    w->failed |=
        !cpprof__pgo_flow(&w->code) || !cpprof__pgo_dominators(&w->code);
    if (w->failed)
        return;
    add_instructions(w, r);
    if (w->failed)
        return;
    add_lines(w);
    add_targets(w, r);
    node = add_node(
        w, (struct cpprof__pgo_position){CPPROF__PGO_NONE, 0, 0, r->name});
    if (!w->failed && r->is_whole)
        node_at(w->tree, node)->head += w->code.blocks.at[0].count;
}

/* --------------------------------------------------------------- twins ---- */

static bool
same_file_name(const char *a, const char *b)
{
    size_t n, n_b;

    a = cpprof__path_base(a, strlen(a), &n);
    b = cpprof__path_base(b, strlen(b), &n_b);
    return n == n_b && memcmp(a, b, n) == 0;
}

/* Are these two functions of one name? Copies of one have its declaration. In
 * another build its line may have moved, and the folder of its file. */
static bool
are_twins(const struct cpprof__pgo_counts *c,
          const struct cpprof__pgo_routine *a,
          const struct cpprof__pgo_routine *b)
{
    if (!a->line || !b->line)
        return false;
    if (a->build == b->build)
        return a->line != b->line || a->file != b->file;
    return !same_file_name(cpprof__strings_text(&c->names, a->file),
                           cpprof__strings_text(&c->names, b->file));
}

static int
by_name_and_heat(const void *x, const void *y)
{
    const struct cpprof__pgo_routine *a = *(void *const *)x;
    const struct cpprof__pgo_routine *b = *(void *const *)y;

    if (a->name != b->name)
        return a->name < b->name ? -1 : 1;
    return (a->n < b->n) - (a->n > b->n);
}

static void
warn_of_twin(const struct cpprof__pgo_counts *c,
             const struct cpprof__pgo_routine *hot,
             const struct cpprof__pgo_routine *twin)
{
    cpprof__cli_warn(
        "pgo: two functions are called %s, of %s:%lld and %s:%lld; only the "
        "first is told (%.0f samples, not %.0f): build with "
        "-funique-internal-linkage-names",
        cpprof__strings_text(&c->names, hot->name),
        cpprof__strings_text(&c->names, hot->file), (long long)hot->line,
        cpprof__strings_text(&c->names, twin->file), (long long)twin->line,
        hot->n, twin->n);
}

/* Mark the routines whose counts would mix with those of a hotter one. */
static bool
find_twins(struct work *w)
{
    struct cpprof__pgo_counts *c = w->counts;
    size_t n = c->routines.n, i, k, first = 0;
    struct cpprof__pgo_routine **at = calloc(n + 1, sizeof *at);

    w->is_twin = calloc(n + 1, sizeof *w->is_twin);
    if (!at || !w->is_twin) {
        free(at);
        return false;
    }
    for (i = 0; i < n; i++)
        at[i] = &c->routines.at[i];
    if (n)
        qsort(at, n, sizeof *at, by_name_and_heat);
    for (i = 1; i < n; i++) {
        if (at[i]->name != at[first]->name)
            first = i;
        for (k = first; k < i; k++)
            if (!w->is_twin[at[k] - c->routines.at] &&
                are_twins(c, at[k], at[i]))
                break;
        if (k == i)
            continue;
        w->is_twin[at[i] - c->routines.at] = true;
        if (at[i]->n >= 1)
            warn_of_twin(c, at[k], at[i]);
    }
    free(at);
    return true;
}

/* -------------------------------------------------------- everything ---- */

/* How often a function was entered; 0: unknown. */
static double
head_of(const struct cpprof__pgo_tree *tree, uint32_t name)
{
    struct cpprof__pgo_node key = {.position = {CPPROF__PGO_NONE, 0, 0, name}};
    uint32_t node =
        cpprof__table_find(&tree->nodes, &key, KEY_BYTES, sizeof key);

    return node == CPPROF__INDEX_NONE ? 0 : node_at(tree, node)->head;
}

/* The line that calls a target; NONE: it has no count. */
static uint32_t
line_of(const struct cpprof__pgo_tree *tree, const struct cpprof__pgo_line *l)
{
    struct cpprof__pgo_line key = *l;

    key.position.name = 0;
    return cpprof__table_find(&tree->lines, &key, KEY_BYTES, sizeof key);
}

/*
 * The targets of calls were counted in stacks: n of a target are the time that
 * it took when it was called from here. Of the times that it was entered this
 * is the share that n is of all its calls. Both are noisy, the first by how
 * long the targets take, the second by how well their entries are known; so
 * their mean says how the calls of a line are divided.
 */
static bool
scale_targets(struct cpprof__pgo_tree *tree, const struct cpprof__pgo_counts *c)
{
    size_t n = tree->targets.entries.n / sizeof(struct cpprof__pgo_line), i;
    double *calls = calloc(c->names.table.n + 1, sizeof *calls);
    double *sums =
        calloc(tree->lines.entries.n / sizeof(struct cpprof__pgo_line) + 1,
               sizeof *sums);
    bool ok = calls && sums;
    uint32_t line;

    for (i = 0; ok && i < n; i++) {
        const struct cpprof__pgo_line *l = line_at(&tree->targets, (uint32_t)i);

        calls[l->position.name] += l->count;
    }
    for (i = 0; ok && i < n; i++) {
        struct cpprof__pgo_line *l = line_at(&tree->targets, (uint32_t)i);

        l->count *=
            sqrt(head_of(tree, l->position.name) / calls[l->position.name]);
        line = line_of(tree, l);
        if (line != CPPROF__INDEX_NONE)
            sums[line] += l->count;
    }
    for (i = 0; ok && i < n; i++) {
        struct cpprof__pgo_line *l = line_at(&tree->targets, (uint32_t)i);

        line = line_of(tree, l);
        l->count =
            line == CPPROF__INDEX_NONE || sums[line] <= 0
                ? 0
                : l->count / sums[line] * line_at(&tree->lines, line)->count;
    }
    free(calls);
    free(sums);
    return ok;
}

/* Totals of nodes: their lines and what is inlined. Children follow their
 * parents. */
static void
add_totals(struct cpprof__pgo_tree *tree)
{
    size_t n = tree->lines.entries.n / sizeof(struct cpprof__pgo_line), i;

    for (i = 0; i < n; i++) {
        const struct cpprof__pgo_line *l = line_at(&tree->lines, (uint32_t)i);

        node_at(tree, l->position.node)->total += l->count;
    }
    n = tree->nodes.entries.n / sizeof(struct cpprof__pgo_node);
    for (i = n; i-- > 0;) {
        const struct cpprof__pgo_node *node = node_at(tree, (uint32_t)i);

        if (node->position.node != CPPROF__PGO_NONE)
            node_at(tree, node->position.node)->total += node->total;
    }
}

enum cpprof_status
cpprof__pgo_tree_make(struct cpprof__pgo_tree *tree,
                      struct cpprof__pgo_counts *counts,
                      struct cpprof_error *error)
{
    struct work *w = calloc(1, sizeof *w);
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    if (!w)
        return cpprof__fail_nomem(error);
    w->tree = tree;
    w->counts = counts;
    w->failed = !find_twins(w);
    for (i = 0; i < counts->routines.n && !w->failed && status == CPPROF_OK;
         i++) {
        const struct cpprof__pgo_routine *r = &counts->routines.at[i];
        struct cpprof_error why = {0};

        if (w->is_twin[i] || !counts->builds.at[r->build].code)
            continue;
        if (cpprof__pgo_code_read(&w->code, &w->listing, counts, i, &why))
            add_routine(w, r);
        else if (why.status != CPPROF_BAD_DATA)
            status = cpprof__fail(error, why.status, 0, "%s", why.text);
    }
    if (status == CPPROF_OK && (w->failed || !scale_targets(tree, counts)))
        status = cpprof__fail_nomem(error);
    if (status == CPPROF_OK)
        add_totals(tree);
    cpprof__pgo_listing_free(&w->listing);
    cpprof__pgo_code_free(&w->code);
    CPPROF__ARRAY_FREE(&w->parts);
    free(w->is_twin);
    free(w);
    return status;
}

void
cpprof__pgo_tree_free(struct cpprof__pgo_tree *tree)
{
    cpprof__table_free(&tree->nodes);
    cpprof__table_free(&tree->lines);
    cpprof__table_free(&tree->targets);
}
