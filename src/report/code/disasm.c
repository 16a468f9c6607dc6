/* SPDX-License-Identifier: MIT */
/*
 * -disasm: the instructions of the functions that match, with the values of
 * each. Source: internal/report/report.go PrintAssembly.
 *
 * The nodes of a mapping, sorted by their address in the binary, are laid side
 * by side with its symbols, and those of a symbol with its instructions. The
 * address in the binary is computed anew for each node, because one mapping may
 * hold several parts of the binary.
 */
#include "own/memory.h"
#include "report/code/binutils.h"
#include "report/graph/trimmed.h"

#include "base/status.h"
#include "profile/model/path.h"
#include "symbolize/image.h"

#include <inttypes.h>
#include <string.h>

/* Instructions shorter than this have their source line on the same line. */
#define SHORT_BYTES 40

/* A node that is in one of the binaries. */
struct placed {
    uint64_t address; /* in the binary */
    uint32_t node;
};

/* A symbol with values, and where its nodes are. */
struct routine {
    uint32_t mapping;
    struct cpprof__object_symbol symbol;
    size_t first, end;
};

struct disasm {
    struct cpprof__trimmed t;
    struct cpprof__regexp *matching;
    uint64_t address; /* an address that is asked for instead of a name, or 0 */
    uint8_t *wanted;  /* by string: a mapping file of a node that matches */

    struct cpprof__objdump objdump;
    struct cpprof__object_symbols symbols;
    CPPROF__ARRAY(struct placed) placed;
    CPPROF__ARRAY(struct routine) routines;
};

static const char *
string_of(const struct disasm *d, uint32_t string)
{
    return cpprof__strings_text(&d->t.g.p->strings, string);
}

static const struct cpprof__node *
node_of(const struct disasm *d, size_t placed)
{
    return &d->t.g.nodes.at[d->placed.at[placed].node];
}

/* ------------------------------------------------------------- binaries -- */

uint64_t
cpprof__symbol_address(const struct cpprof__report *r)
{
    const char *text = r->options->symbol;
    char *end;
    uint64_t v;

    if (!text || *text < '0' || *text > '9')
        return 0;
    v = strtoull(text, &end, 0);
    return *end || v == UINT64_MAX ? 0 : v;
}

/* Mark the binaries that have a node that matches by any part of its printed
 * name. */
static bool
find_wanted(struct disasm *d)
{
    const struct cpprof__trimmed *t = &d->t;
    size_t i;

    d->wanted = cpprof__calloc(t->g.p->strings.table.n + 1, 1);
    if (!d->wanted)
        return false;
    for (i = 0; i < t->rows.n; i++) {
        const struct cpprof__report_row *row = &t->rows.at[i];
        uint32_t object = cpprof__report_row_node(t, i)->object;

        if (object && !d->wanted[object])
            d->wanted[object] = cpprof__regexp_matches(
                d->matching, (char *)t->names.data + row->name, row->n_name);
    }
    return true;
}

static int
by_address(const void *x, const void *y, void *ctx)
{
    struct disasm *d = ctx;
    const struct placed *a = x, *b = y;
    const struct cpprof__node *nodes = d->t.g.nodes.at;

    if (a->address != b->address)
        return (a->address > b->address) - (a->address < b->address);
    return cpprof__node_compare(&d->t.g, &nodes[a->node], &nodes[b->node],
                                &d->t.failed);
}

/* Add the nodes of a mapping, by address. */
static bool
locate_nodes(struct disasm *d, const struct cpprof__image *image,
             const struct cpprof__mapped_range *range)
{
    const struct cpprof__trimmed *t = &d->t;
    size_t first = d->placed.n, i;

    if (!CPPROF__ARRAY_ROOM(&d->placed, t->rows.n))
        return false;
    for (i = 0; i < t->rows.n; i++) {
        uint64_t pc = cpprof__report_row_node(t, i)->address;
        struct placed placed = {.node = t->rows.at[i].node};

        if (pc >= range->start && pc < range->limit &&
            cpprof__image_address(image, range, pc, &placed.address))
            d->placed.at[d->placed.n++] = placed;
    }
    if (d->placed.n > first)
        qsort_r(d->placed.at + first, d->placed.n - first, sizeof *d->placed.at,
                by_address, d);
    return !d->t.failed;
}

/* Add the symbols from `symbol` on that have nodes, of those from `placed` on.
 * Both are sorted, and symbols do not overlap. */
static bool
add_routines(struct disasm *d, uint32_t mapping, size_t symbol, size_t placed)
{
    for (; symbol < d->symbols.at.n; symbol++) {
        struct routine r = {mapping, d->symbols.at.at[symbol], 0, 0}, *slot;

        while (placed < d->placed.n &&
               d->placed.at[placed].address < r.symbol.start)
            placed++;
        r.first = placed;
        while (placed < d->placed.n &&
               d->placed.at[placed].address < r.symbol.end)
            placed++;
        r.end = placed;
        if (r.first == r.end)
            continue;
        slot = CPPROF__ARRAY_ADD(&d->routines);
        if (!slot)
            return false;
        *slot = r;
    }
    return true;
}

/* Find the routines of a mapping's file. Warn if the file cannot be read. */
static enum cpprof_status
add_mapping(struct disasm *d, uint32_t mapping)
{
    const struct pprof_report_options *o = d->t.r->options;
    const struct pprof_mapping *m = &d->t.g.p->mappings.at[mapping];
    struct cpprof__mapped_range range = {m->start, m->limit, m->offset};
    size_t n_symbols = d->symbols.at.n, n_placed = d->placed.n;
    const char *path = string_of(d, m->file);
    struct cpprof__image image = {0};
    struct cpprof_error error = {0};
    uint64_t address = 0;
    enum cpprof_status status = cpprof__image_open(&image, path, &error);

    if (status == CPPROF_OK &&
        (d->address < m->start || d->address >= m->limit ||
         !cpprof__image_address(&image, &range, d->address, &address)))
        address = 0;
    if (status == CPPROF_OK)
        status = cpprof__object_symbols_add(&d->symbols, d->t.r->options->tools,
                                            path, d->matching, address, &error);
    if (status != CPPROF_OK && status != CPPROF_NOMEM) {
        if (o->warn) /* why the binary is left out */
            o->warn(o->ctx, error.text);
    } else if (status == CPPROF_OK &&
               (!locate_nodes(d, &image, &range) ||
                !add_routines(d, mapping, n_symbols, n_placed))) {
        status = CPPROF_NOMEM;
    }
    cpprof__image_close(&image);
    return status == CPPROF_NOMEM ? cpprof__fail_nomem(d->t.r->error)
                                  : CPPROF_OK;
}

static int
by_name(const void *x, const void *y, void *ctx)
{
    const struct disasm *d = ctx;
    const struct routine *a = x, *b = y;
    const char *text = (char *)d->symbols.text.data;
    int order = strcmp(text + a->symbol.names, text + b->symbol.names);

    if (!order)
        order = (a->symbol.start > b->symbol.start) -
                (a->symbol.start < b->symbol.start);
    return order ? order
                 : (a->mapping > b->mapping) - (a->mapping < b->mapping);
}

static enum cpprof_status
find_routines(struct disasm *d)
{
    const struct pprof_profile *p = d->t.g.p;
    const struct pprof_mapping *m = p->mappings.at;
    enum cpprof_status status = CPPROF_OK;
    uint32_t i;

    if (!find_wanted(d))
        return cpprof__fail_nomem(d->t.r->error);
    for (i = 0; i < p->mappings.n && status == CPPROF_OK; i++)
        if (d->wanted[m[i].file] || (d->address && m[i].start <= d->address &&
                                     d->address <= m[i].limit))
            status = add_mapping(d, i);
    if (status == CPPROF_OK)
        status = cpprof__regexp_status(d->matching, d->t.r->error);
    if (status == CPPROF_OK && !d->routines.n)
        status = cpprof__fail_no_match(d->t.r);
    if (status == CPPROF_OK)
        qsort_r(d->routines.at, d->routines.n, sizeof *d->routines.at, by_name,
                d);
    return status;
}

/* ------------------------------------------------------------- printing -- */

/* An instruction with the values of its nodes. */
struct annotated {
    int64_t flat, flat_div, cum, cum_div;
    struct cpprof__text function, file;
    int64_t line;
};

static struct cpprof__text
base_of(struct cpprof__text path)
{
    if (path.n)
        path.at = cpprof__path_base(path.at, path.n, &path.n);
    return path;
}

/* Add the values of a node, and its source line where the binary has none. */
static void
add_node(const struct disasm *d, struct annotated *a,
         const struct cpprof__node *n)
{
    const struct cpprof__strings *s = &d->t.g.p->strings;

    a->flat = cpprof__add(a->flat, n->flat);
    a->flat_div = cpprof__add(a->flat_div, n->flat_div);
    a->cum = cpprof__add(a->cum, n->cum);
    a->cum_div = cpprof__add(a->cum_div, n->cum_div);
    if (!a->file.n)
        a->file = base_of((struct cpprof__text){
            cpprof__strings_text(s, n->file), cpprof__strings_n(s, n->file)});
    if (!a->line)
        a->line = n->line;
    if (!a->function.n)
        a->function = (struct cpprof__text){cpprof__strings_text(s, n->name),
                                            cpprof__strings_n(s, n->name)};
}

static bool
same(struct cpprof__text a, struct cpprof__text b)
{
    return a.n == b.n && (!a.n || memcmp(a.at, b.at, a.n) == 0);
}

/* "function file:line" */
static void
print_line(struct cpprof__buffer *out, const struct annotated *a)
{
    cpprof__buffer_append(out, ";", 1);
    cpprof__buffer_append(out, a->function.at, a->function.n);
    if (a->function.n)
        cpprof__buffer_append(out, " ", 1);
    cpprof__buffer_append(out, a->file.at, a->file.n);
    if (a->file.n && a->line)
        cpprof__buffer_printf(out, ":%" PRId64, a->line);
}

/* A line for an instruction; its source line, if that is not the one before. */
static void
print_instruction(struct disasm *d, const struct cpprof__instruction *i,
                  const struct annotated *a, bool new_line)
{
    struct cpprof__buffer *out = &d->t.r->out;
    char flat[CPPROF__LABEL_TEXT], cum[CPPROF__LABEL_TEXT];
    bool shows_line = new_line && (a->function.n || a->file.n);

    if (shows_line && i->text.n >= SHORT_BYTES) {
        cpprof__buffer_printf(out, "%74s", "");
        print_line(out, a);
        cpprof__buffer_append(out, "\n", 1);
    }
    cpprof__value_or_dot(d->t.r, cpprof__mean(a->flat, a->flat_div), flat);
    cpprof__value_or_dot(d->t.r, cpprof__mean(a->cum, a->cum_div), cum);
    cpprof__buffer_printf(out, "%10s %10s %10" PRIx64 ": ", flat, cum,
                          i->address);
    cpprof__buffer_append(out, i->text.at, i->text.n);
    if (shows_line && i->text.n < SHORT_BYTES) {
        cpprof__buffer_printf(out, "%*s", (int)(SHORT_BYTES - i->text.n), "");
        print_line(out, a);
    }
    cpprof__buffer_append(out, "\n", 1);
}

/* The instructions of a routine with its nodes; one in the middle of an
 * instruction belongs to that. */
static void
print_instructions(struct disasm *d, const struct routine *r,
                   const struct cpprof__disassembly *code)
{
    struct annotated before = {0}, a;
    size_t at = r->first, i;

    for (i = 0; i < code->at.n; i++) {
        const struct cpprof__instruction *in = &code->at.at[i];
        uint64_t next = i + 1 < code->at.n ? in[1].address : UINT64_MAX;
        bool new_line;

        a = (struct annotated){.function = in->function,
                               .file = base_of(in->file),
                               .line = in->line};
        for (; at < r->end && d->placed.at[at].address < next; at++)
            add_node(d, &a, node_of(d, at));
        new_line = !same(a.function, before.function) ||
                   !same(a.file, before.file) || a.line != before.line;
        print_instruction(d, in, &a, new_line);
        before = a;
    }
}

static void
print_heading(struct disasm *d, const struct routine *r)
{
    const char *name = (char *)d->symbols.text.data + r->symbol.names;
    struct cpprof__buffer *out = &d->t.r->out;
    int64_t flat_sum = 0, cum_sum = 0;
    size_t i;

    for (i = r->first; i < r->end; i++) {
        flat_sum = cpprof__add(flat_sum, node_of(d, i)->flat);
        cum_sum = cpprof__add(cum_sum, node_of(d, i)->cum);
    }
    for (i = 0; i < r->symbol.n_names; i++, name += strlen(name) + 1)
        cpprof__buffer_printf(out, "%s ======================== %s\n",
                              i ? "    AKA" : "ROUTINE", name);
    cpprof__print_sums(d->t.r, flat_sum, cum_sum);
    cpprof__buffer_printf(out, " of Total\n");
}

static enum cpprof_status
print_routine(struct disasm *d, const struct routine *r)
{
    const struct pprof_report_options *o = d->t.r->options;
    struct cpprof__disassemble what = {
        .objdump = &d->objdump,
        .tools = o->tools,
        .path = string_of(d, d->t.g.p->mappings.at[r->mapping].file),
        .begin = r->symbol.start,
        .end = r->symbol.end,
        .intel_syntax = o->flags & PPROF_REPORT_INTEL_SYNTAX,
    };
    struct cpprof__disassembly code = {0};
    enum cpprof_status status =
        cpprof__disassemble(&code, &what, d->t.r->error);

    if (status == CPPROF_OK) {
        print_heading(d, r);
        print_instructions(d, r, &code);
    }
    cpprof__disassembly_free(&code);
    return status;
}

/* --------------------------------------------------------------- format -- */

enum cpprof_status
cpprof__disasm(struct cpprof__report *r)
{
    struct disasm d = {.address = cpprof__symbol_address(r)};
    enum cpprof_status status = cpprof__symbol_regexp(r, &d.matching);
    char total[CPPROF__LABEL_TEXT];
    size_t i;

    r->options->granularity = PPROF_REPORT_ADDRESSES;
    /* Without inlined functions an address is one node. */
    r->options->flags |= PPROF_REPORT_NO_INLINES | PPROF_REPORT_NO_TRIM;
    if (status == CPPROF_OK)
        status = cpprof__trimmed_begin(&d.t, r, CPPROF__GRAPH_OBJECTS);
    if (status == CPPROF_OK)
        status = find_routines(&d);
    cpprof__format_value(r, r->total, total);
    cpprof__buffer_printf(&r->out, "Total: %s\n", total);
    for (i = 0; i < d.routines.n && status == CPPROF_OK; i++)
        status = print_routine(&d, &d.routines.at[i]);
    cpprof__regexp_free(d.matching);
    cpprof__objdump_free(&d.objdump);
    cpprof__object_symbols_free(&d.symbols);
    CPPROF__ARRAY_FREE(&d.placed);
    CPPROF__ARRAY_FREE(&d.routines);
    cpprof__trimmed_free(&d.t);
    cpprof__free(d.wanted);
    return status;
}
