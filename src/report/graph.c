/* SPDX-License-Identifier: MIT */
/*
 * Makes nodes from locations. Granularity is applied here: what the report does
 * not distinguish is left out of a node's key, so that several locations share
 * a node.
 *
 * One thing is not as in the reference: a node without a name is named by its
 * file, or by its mapping where it has no file, and never by the line where its
 * function starts, which split one file into several lines of -files.
 */
#include "report/graph.h"

#include "base/status.h"
#include "own/memory.h"
#include "profile/model/path.h"

#include <inttypes.h>
#include <string.h>

/* The parts of a node's key; granularity chooses among them. */
enum {
    NAME = 1,
    FILE_NAME = 2,
    LINE = 4,
    COLUMN = 8,
    ADDRESS = 16,
};

struct maker {
    struct cpprof__graph *g;
    const struct pprof_report_options *options;
    unsigned how;    /* CPPROF__GRAPH_* */
    unsigned parts;  /* NAME, ... */
    uint32_t *files; /* by function: its file as shown; CPPROF__NO_STRING: not
                      * looked at yet */
};

static unsigned
parts_of(const struct pprof_report_options *options)
{
    unsigned columns = options->flags & PPROF_REPORT_COLUMNS ? COLUMN : 0;

    switch (options->granularity) {
    case PPROF_REPORT_FUNCTIONS:
        return NAME;
    case PPROF_REPORT_FILEFUNCTIONS:
        return NAME | FILE_NAME;
    case PPROF_REPORT_FILES:
        return FILE_NAME;
    case PPROF_REPORT_LINES:
        return NAME | FILE_NAME | LINE | columns;
    case PPROF_REPORT_ADDRESSES:
        break;
    }
    /* Addresses with inlined functions are left as they are, so they always
     * show columns. */
    if (!(options->flags & PPROF_REPORT_NO_INLINES))
        columns = COLUMN;
    return NAME | FILE_NAME | LINE | columns | ADDRESS;
}

static bool
same_node(const struct cpprof__node *a, const struct cpprof__node *b)
{
    return a->address == b->address && a->line == b->line &&
           a->column == b->column && a->name == b->name && a->file == b->file &&
           a->object == b->object && a->start_line == b->start_line;
}

struct wanted {
    const struct cpprof__graph *g;
    const struct cpprof__node *node;
};

static bool
is_wanted(void *ctx, uint32_t value)
{
    const struct wanted *w = ctx;

    return same_node(&w->g->nodes.at[value], w->node);
}

/* The number of the node, added if it is new, or CPPROF__NO_NODE. */
static uint32_t
intern_node(struct cpprof__graph *g, const struct cpprof__node *node)
{
    struct wanted wanted = {g, node};
    uint64_t hash = cpprof__hash_add(node->object, node->address);
    uint32_t at;

    hash = cpprof__hash_add(hash, (uint64_t)node->line);
    hash = cpprof__hash_add(hash, (uint64_t)node->column);
    hash = cpprof__hash_add(hash, (uint64_t)node->start_line);
    hash = cpprof__hash_u64(hash ^ ((uint64_t)node->name << 32 | node->file));
    at = cpprof__index_find(&g->index, hash, is_wanted, &wanted);
    if (at != CPPROF__INDEX_NONE)
        return at;
    at = (uint32_t)g->nodes.n;
    if (g->nodes.n >= CPPROF__NO_NODE || !CPPROF__ARRAY_ROOM(&g->nodes, 1) ||
        !cpprof__index_add(&g->index, hash, at))
        return CPPROF__NO_NODE;
    g->nodes.at[g->nodes.n] = *node;
    g->nodes.at[g->nodes.n++].origin = at;
    return at;
}

/* A function's file as it is shown, or CPPROF__NO_STRING. */
static uint32_t
shown_file(struct maker *m, uint32_t function)
{
    struct cpprof__strings *strings = &m->g->p->strings;
    struct cpprof__buffer clean = {0};
    uint32_t file = m->g->p->functions.at[function].file;
    size_t n = cpprof__strings_n(strings, file), cut;

    if (m->files[function] != CPPROF__NO_STRING)
        return m->files[function];
    cut = cpprof__path_trim(cpprof__strings_text(strings, file), n,
                            m->options->trim_path, m->options->source_path);
    if (cut < n)
        cpprof__path_clean(cpprof__strings_text(strings, file) + cut, n - cut,
                           &clean);
    if (clean.failed)
        file = CPPROF__NO_STRING;
    else
        file = clean.n
                   ? cpprof__strings_add(strings, (char *)clean.data, clean.n)
                   : 0;
    cpprof__buffer_free(&clean);
    return m->files[function] = file;
}

/* The node of a line, NULL for a location without functions. */
static uint32_t
make_node(struct maker *m, const struct pprof_location *l,
          const struct pprof_line *line)
{
    const struct pprof_profile *p = m->g->p;
    struct cpprof__node node = {0};

    if (!line) {
        node.object = cpprof__location_file(p, l);
        if (m->parts & ADDRESS || m->how & CPPROF__GRAPH_BARE)
            node.address = l->address;
        return intern_node(m->g, &node);
    }
    if (m->parts & NAME)
        node.name = p->functions.at[line->function].name;
    if (m->parts & FILE_NAME)
        node.file = shown_file(m, line->function);
    if (node.file == CPPROF__NO_STRING)
        return CPPROF__NO_NODE;
    if (m->parts & LINE)
        node.line = line->line;
    if (m->parts & COLUMN)
        node.column = line->column;
    if (m->parts & ADDRESS)
        node.address = l->address;
    if (m->how & CPPROF__GRAPH_OBJECTS || (!node.name && !node.file))
        node.object = cpprof__location_file(p, l);
    if (m->how & CPPROF__GRAPH_OBJECTS)
        node.start_line = p->functions.at[line->function].start_line;
    return intern_node(m->g, &node);
}

static bool
add_location(struct maker *m, const struct pprof_location *l)
{
    struct cpprof__graph *g = m->g;
    size_t n = l->n_lines, i = 0;

    if (m->options->flags & PPROF_REPORT_NO_INLINES && n)
        i = n - 1;
    if (!CPPROF__ARRAY_ROOM(&g->location_nodes, n + 1))
        return false;
    do {
        uint32_t node =
            make_node(m, l, n ? &g->p->lines.at[l->first_line + i] : NULL);

        if (node == CPPROF__NO_NODE)
            return false;
        g->location_nodes.at[g->location_nodes.n++] = node;
    } while (++i < n);
    return true;
}

enum cpprof_status
cpprof__graph_index(struct cpprof__graph *g, struct cpprof_error *error)
{
    size_t n = g->p->locations.n, i;

    g->first_node[n] = g->location_nodes.n;
    if (g->nodes.n >= CPPROF__MOST_NODES ||
        g->location_nodes.n >= CPPROF__SEVERAL)
        return cpprof__fail(error, CPPROF_LIMIT, 0, "more than %zu nodes",
                            CPPROF__MOST_NODES);
    g->only_node = cpprof__malloc((n + 1) * sizeof *g->only_node);
    for (i = 0; g->only_node && i < n; i++) {
        const uint32_t *nodes = g->location_nodes.at + g->first_node[i];
        size_t n_nodes = g->first_node[i + 1] - g->first_node[i];

        if (n_nodes > g->most_nodes)
            g->most_nodes = n_nodes;
        g->only_node[i] = nodes[0];
        if (n_nodes == 1)
            continue;
        if (!CPPROF__ARRAY_ROOM(&g->several, n_nodes))
            break;
        g->only_node[i] = (uint32_t)g->several.n | CPPROF__SEVERAL;
        memcpy(g->several.at + g->several.n, nodes, n_nodes * sizeof *nodes);
        g->several.n += n_nodes;
        g->several.at[g->several.n - 1] |= CPPROF__OUTERMOST;
    }
    return g->only_node && i == n ? CPPROF_OK : cpprof__fail_nomem(error);
}

enum cpprof_status
cpprof__graph_make(struct cpprof__graph *g,
                   const struct pprof_report_options *options, unsigned how,
                   struct cpprof_error *error)
{
    struct maker maker = {g, options, how, parts_of(options), NULL};
    size_t n = g->p->locations.n, n_functions = g->p->functions.n, i;
    bool ok;

    g->first_node = cpprof__malloc((n + 1) * sizeof *g->first_node);
    maker.files = cpprof__malloc((n_functions + 1) * sizeof *maker.files);
    ok = g->first_node && maker.files;
    if (ok)
        memset(maker.files, 0xff, n_functions * sizeof *maker.files);
    for (i = 0; ok && i < n; i++) {
        g->first_node[i] = g->location_nodes.n;
        ok = add_location(&maker, &g->p->locations.at[i]);
    }
    cpprof__free(maker.files);
    return ok ? cpprof__graph_index(g, error) : cpprof__fail_nomem(error);
}

void
cpprof__graph_free(struct cpprof__graph *g)
{
    CPPROF__ARRAY_FREE(&g->nodes);
    cpprof__index_free(&g->index);
    cpprof__free(g->first_node);
    cpprof__free(g->only_node);
    cpprof__free(g->several_sums);
    cpprof__free(g->shared);
    CPPROF__ARRAY_FREE(&g->several);
    CPPROF__ARRAY_FREE(&g->location_nodes);
    CPPROF__ARRAY_FREE(&g->edges);
    if (g->view) {
        cpprof__free(g->view->samples.at);
        cpprof__free(g->view->frames.at);
        cpprof__free(g->view);
    }
}

size_t
cpprof__utf8_prefix(const char *text, size_t n, size_t most)
{
    if (!most || n <= most)
        return n;
    for (n = most; n && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
        continue;
    return n;
}

/* Append as much of a name as a style shows. */
static void
append_cut(const char *text, size_t n,
           void (*append)(const char *, size_t, struct cpprof__buffer *),
           size_t most, struct cpprof__buffer *out)
{
    size_t n_shown = cpprof__utf8_prefix(text, n, most);

    append(text, n_shown, out);
    if (n_shown < n)
        cpprof__buffer_append(out, "...", 3);
}

static void
append_base(const struct cpprof__graph *g, uint32_t file,
            const struct cpprof__name_style *style, struct cpprof__buffer *out)
{
    const struct cpprof__strings *strings = &g->p->strings;
    const char *text = cpprof__strings_text(strings, file);
    size_t n = cpprof__strings_n(strings, file);

    if (file)
        text = cpprof__path_base(text, n, &n);
    if (style->file)
        append_cut(text, n, style->file, style->most, out);
    else
        cpprof__buffer_append(out, text, n);
}

void
cpprof__node_name_in(const struct cpprof__graph *g,
                     const struct cpprof__node *node,
                     const struct cpprof__name_style *style,
                     struct cpprof__buffer *out)
{
    const struct cpprof__strings *strings = &g->p->strings;
    size_t begin = out->n, n_separator = strlen(style->separator);

    if (node->address)
        cpprof__buffer_printf(out, "%016" PRIx64, node->address);
    if (node->address && node->name)
        cpprof__buffer_append(out, style->separator, n_separator);
    if (style->name && node->name)
        append_cut(cpprof__strings_text(strings, node->name),
                   cpprof__strings_n(strings, node->name), style->name,
                   style->most, out);
    else
        cpprof__append_string(g->p, node->name, out);
    if (node->name && !node->line && !node->file)
        return;
    if (out->n > begin)
        cpprof__buffer_append(out, style->separator, n_separator);
    if (node->line || node->file) {
        if (style->file)
            append_base(g, node->file, style, out);
        else
            cpprof__append_string(g->p, node->file, out);
        if (node->line)
            cpprof__buffer_printf(out, ":%" PRId64, node->line);
        if (node->line && node->column)
            cpprof__buffer_printf(out, ":%" PRId64, node->column);
    } else if (node->object) {
        cpprof__buffer_append(out, "[", 1);
        append_base(g, node->object, style, out);
        cpprof__buffer_append(out, "]", 1);
    } else {
        cpprof__buffer_append(out, "<unknown>", 9);
    }
}

void
cpprof__node_name(const struct cpprof__graph *g,
                  const struct cpprof__node *node, struct cpprof__buffer *out)
{
    static const struct cpprof__name_style plain = {.separator = " "};

    cpprof__node_name_in(g, node, &plain, out);
}

/* The key of a node as Go would print the reference's struct; only for sorting.
 */
static void
append_identity(const struct cpprof__graph *g, const struct cpprof__node *node,
                struct cpprof__buffer *out)
{
    cpprof__append_string(g->p, node->name, out);
    cpprof__buffer_printf(out, "  %" PRIu64 " ", node->address);
    cpprof__append_string(g->p, node->file, out);
    cpprof__buffer_printf(out, " %" PRId64 " %" PRId64 " %" PRId64 " ",
                          node->start_line, node->line, node->column);
    cpprof__append_string(g->p, node->object, out);
    cpprof__buffer_append(out, "}", 1);
}

int
cpprof__node_compare(const struct cpprof__graph *g,
                     const struct cpprof__node *a, const struct cpprof__node *b,
                     bool *failed)
{
    struct cpprof__buffer x = {0}, y = {0};
    int order = 0;

    if (same_node(a, b)) /* in a tree, for different callers */
        return 0;
    append_identity(g, a, &x);
    append_identity(g, b, &y);
    *failed |= x.failed || y.failed;
    if (x.n && y.n)
        order = memcmp(x.data, y.data, x.n < y.n ? x.n : y.n);
    if (!order)
        order = (x.n > y.n) - (x.n < y.n);
    cpprof__buffer_free(&x);
    cpprof__buffer_free(&y);
    return order;
}

/* ------------------------------------------------------ keys and lists ---- */

uint32_t
cpprof__keys_number(struct cpprof__table *keys, uint32_t a, uint32_t b,
                    uint32_t c)
{
    const uint32_t key[3] = {a, b, c};
    bool added;

    return cpprof__table_add(keys, key, sizeof key, sizeof key, &added);
}

size_t
cpprof__keys_count(const struct cpprof__table *keys)
{
    return keys->entries.n / sizeof(uint32_t[3]);
}

bool
cpprof__lists_make(struct cpprof__lists *lists, const void *records, size_t n,
                   size_t n_bytes, size_t offset, size_t n_keys)
{
    size_t *first = lists->first = cpprof__calloc(n_keys + 2, sizeof *first), i;
    uint32_t key;

    lists->list = cpprof__malloc((n + 1) * sizeof *lists->list);
    if (!first || !lists->list)
        return false;
    for (i = 0; i < n; i++) {
        memcpy(&key, (const char *)records + i * n_bytes + offset, sizeof key);
        first[key + 2]++;
    }
    for (i = 2; i < n_keys + 2; i++)
        first[i] += first[i - 1];
    for (i = 0; i < n; i++) {
        memcpy(&key, (const char *)records + i * n_bytes + offset, sizeof key);
        lists->list[first[key + 1]++] = (uint32_t)i;
    }
    return true;
}

void
cpprof__lists_free(struct cpprof__lists *lists)
{
    cpprof__free(lists->first);
    cpprof__free(lists->list);
}
