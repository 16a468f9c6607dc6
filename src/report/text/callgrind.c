/* SPDX-License-Identifier: MIT */
/*
 * -callgrind: the graph as KCachegrind reads it. Files and functions are
 * written out once and then referred to by number. Source:
 * internal/report/report.go printCallgrind, and
 * https://valgrind.org/docs/manual/cl-format.html
 */
#include "own/memory.h"
#include "report/graph/calls.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Texts that have a number, counted from 1 in the order of their use. */
struct numbered {
    struct cpprof__strings texts;
    uint32_t *known; /* by string of the profile: its number, or 0 */
};

struct writer {
    struct cpprof__report *r;
    struct cpprof__trimmed t;
    struct cpprof__calls calls;
    struct numbered objects, files, names;
    /* By node: which one of the functions of its name and file it belongs to,
     * and how many there are. */
    uint32_t *which, *n_same;
    uint32_t *callees; /* by node: the number of such a name, or 0 */
    const struct cpprof__node *previous;
    bool failed;
};

static const char *
text_of(const struct writer *w, uint32_t string)
{
    return cpprof__strings_text(&w->r->p->strings, string);
}

/* ----------------------------------------------------------- numbers ---- */

static void
print_i64(struct cpprof__buffer *out, int64_t value)
{
    cpprof__buffer_number(out, value < 0 ? "-" : "",
                          value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10,
                          0);
}

static void
print(struct writer *w, const char *text)
{
    cpprof__buffer_append(&w->r->sink.buffer, text, strlen(text));
}

/* "KEY=(3)\n" */
static void
print_number(struct writer *w, const char *key, uint32_t number)
{
    print(w, key);
    print(w, "=(");
    print_i64(&w->r->sink.buffer, number);
    print(w, ")\n");
}

/* Print a text; a line break in it becomes a blank. */
static void
print_flat(struct writer *w, const char *text)
{
    struct cpprof__buffer *out = &w->r->sink.buffer;
    size_t n;

    for (; *text; text += n) {
        n = strcspn(text, "\n\r");
        cpprof__buffer_append(out, n ? text : " ", n ? n : 1);
        n = n ? n : 1;
    }
}

/* "KEY=(3) text" for a text that is new, else "KEY=(3)"; its number. */
static uint32_t
print_text(struct writer *w, const char *key, struct numbered *in,
           const char *text)
{
    size_t n = in->texts.table.n;
    uint32_t number = cpprof__strings_add_text(&in->texts, text);

    w->failed |= number == CPPROF__NO_STRING;
    if (number == n) {
        cpprof__buffer_printf(&w->r->sink.buffer, "%s=(%u) ", key, number);
        print_flat(w, text);
        print(w, "\n");
    } else {
        print_number(w, key, number);
    }
    return number;
}

/* The same for a string of the profile. */
static void
print_string(struct writer *w, const char *key, struct numbered *in,
             uint32_t string)
{
    const char *text = text_of(w, string);

    if (in->known[string])
        print_number(w, key, in->known[string]);
    else if (*text)
        in->known[string] = print_text(w, key, in, text);
    else
        cpprof__buffer_printf(&w->r->sink.buffer, "%s=\n", key);
}

/* ------------------------------------------------- names that repeat ---- */

/* Number the functions of each name and file in the order of the rows. */
static bool
find_same_names(struct writer *w)
{
    size_t n_rows = w->t.rows.n, n_nodes = w->t.g.nodes.n, n_functions, i;
    struct cpprof__table names = {0}, callers = {0}, functions = {0};
    uint32_t *count = cpprof__calloc(n_rows + 1, sizeof *count); /* by name */
    uint32_t *which =
        cpprof__calloc(n_rows + 1, sizeof *which); /* by function */

    w->which = cpprof__calloc(n_nodes + 1, sizeof *w->which);
    w->n_same = cpprof__calloc(n_nodes + 1, sizeof *w->n_same);
    w->callees = cpprof__calloc(n_nodes + 1, sizeof *w->callees);
    w->failed |= !count || !which || !w->which || !w->n_same || !w->callees;
    for (i = 0; i < n_rows && !w->failed; i++) {
        uint32_t at = w->t.rows.at[i].node, name, caller, function;
        const struct cpprof__node *n = &w->t.g.nodes.at[at];
        uint64_t line = (uint64_t)n->start_line;

        n_functions = cpprof__keys_count(&functions);
        name = cpprof__keys_number(&names, n->name, n->file, 0);
        caller = cpprof__keys_number(&callers, name, n->object, n->context);
        function = cpprof__keys_number(&functions, caller, (uint32_t)line,
                                       (uint32_t)(line >> 32));
        w->failed = name == CPPROF__INDEX_NONE ||
                    caller == CPPROF__INDEX_NONE ||
                    function == CPPROF__INDEX_NONE;
        if (w->failed)
            break;
        if (function == n_functions)
            which[function] = count[name]++;
        w->which[at] = which[function];
        w->n_same[at] = name; /* until all are counted */
    }
    for (i = 0; i < n_rows && !w->failed; i++) {
        uint32_t at = w->t.rows.at[i].node;

        w->n_same[at] = count[w->n_same[at]];
    }
    cpprof__free(count);
    cpprof__free(which);
    cpprof__table_free(&names);
    cpprof__table_free(&callers);
    cpprof__table_free(&functions);
    return !w->failed;
}

/* The name of a function, told from others of its name. */
static void
print_callee(struct writer *w, uint32_t at)
{
    uint32_t name = w->t.g.nodes.at[at].name;
    struct cpprof__buffer text = {0};

    if (w->n_same[at] <= 1) {
        print_string(w, "cfn", &w->names, name);
        return;
    }
    if (w->callees[at]) {
        print_number(w, "cfn", w->callees[at]);
        return;
    }
    cpprof__buffer_printf(&text, "%s [%u/%u]", text_of(w, name),
                          w->which[at] + 1, w->n_same[at]);
    cpprof__buffer_append(&text, "", 1);
    w->failed |= text.failed;
    if (!text.failed)
        w->callees[at] =
            print_text(w, "cfn", &w->names, (const char *)text.data);
    cpprof__buffer_free(&text);
}

/* ------------------------------------------------------------- lines ---- */

/* How many digits a number has. */
static unsigned
n_digits(uint64_t value, unsigned base)
{
    unsigned n = 1;

    while (value /= base)
        n++;
    return n;
}

/* An address, or how far it is from the previous one where that is shorter. */
static void
print_address(struct writer *w, uint64_t address)
{
    struct cpprof__buffer *out = &w->r->sink.buffer;
    int64_t by;
    uint64_t size;

    if (!w->previous) {
        cpprof__buffer_printf(out, "0x%" PRIx64, address);
        return;
    }
    by = (int64_t)(address - w->previous->address);
    size = by < 0 ? 0 - (uint64_t)by : (uint64_t)by;
    if (!by) {
        print(w, "*");
    } else if (1 + n_digits(size, 10) < 2 + n_digits(address, 16)) {
        cpprof__buffer_number(out, by < 0 ? "-" : "+", size, 10, 0);
    } else {
        cpprof__buffer_printf(out, "0x%" PRIx64, address);
    }
}

static int64_t
scaled(const struct writer *w, int64_t value)
{
    double v;

    cpprof__scale(value, w->r->sample_unit, w->r->output_unit, &v);
    return cpprof__to_int64(v);
}

static void
print_call(struct writer *w, const struct cpprof__edge *e)
{
    const struct cpprof__node *callee = &w->t.g.nodes.at[e->to];
    struct cpprof__buffer *out = &w->r->sink.buffer;

    print_string(w, "cfl", &w->files, callee->file);
    print_callee(w, e->to);
    print(w, "calls=0 "); /* how often is not known */
    print_address(w, callee->address);
    print(w, " ");
    print_i64(out, callee->line);
    print(w, "\n* * ");
    print_i64(out, scaled(w, e->weight));
    print(w, "\n");
}

/* Prefetch the nodes that the calls of a node lead to, which lie anywhere in
 * memory. */
static void
prefetch_calls(const struct writer *w, const uint32_t *calls, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        __builtin_prefetch(cpprof__edge(&w->calls, calls[i]));
    for (i = 0; i < n; i++) {
        uint32_t to = cpprof__edge(&w->calls, calls[i])->to;

        __builtin_prefetch(&w->t.g.nodes.at[to]);
        __builtin_prefetch(&w->n_same[to]);
        __builtin_prefetch(&w->callees[to]);
    }
}

static void
print_node(struct writer *w, uint32_t at)
{
    const struct cpprof__node *n = &w->t.g.nodes.at[at], *p = w->previous;
    const struct cpprof__lists *calls = &w->calls.out;
    size_t i;

    if (!p || n->object != p->object || n->file != p->file ||
        n->name != p->name) {
        print(w, "\n");
        print_string(w, "ob", &w->objects, n->object);
        print_string(w, "fl", &w->files, n->file);
        print_string(w, "fn", &w->names, n->name);
    }
    print_address(w, n->address);
    cpprof__buffer_printf(&w->r->sink.buffer, " %" PRId64 " %" PRId64 "\n",
                          n->line,
                          scaled(w, cpprof__mean(n->flat, n->flat_div)));
    prefetch_calls(w, calls->list + calls->first[at],
                   calls->first[at + 1] - calls->first[at]);
    for (i = calls->first[at]; i < calls->first[at + 1]; i++)
        print_call(w, cpprof__edge(&w->calls, calls->list[i]));
    w->previous = n;
}

static void
print_all(struct writer *w)
{
    const struct cpprof__report *r = w->r;
    struct cpprof__sink *sink = &w->r->sink;
    size_t i;

    print(w, "positions: instr line\nevents: ");
    print(w, r->divisor == CPPROF__NO_DIVISOR ? "" : "mean_");
    print_flat(w, text_of(w, r->p->sample_types.at[r->value].type));
    print(w, "(");
    print_flat(w, r->output_unit);
    print(w, ")\n");
    for (i = 0; i < w->t.rows.n && !cpprof__sink_broken(sink); i++) {
        print_node(w, w->t.rows.at[i].node);
        cpprof__sink_mind(sink);
    }
}

static bool
numbered_begin(struct numbered *n, const struct pprof_profile *p)
{
    n->known = cpprof__calloc(p->strings.table.n + 1, sizeof *n->known);
    return n->known && cpprof__strings_begin(&n->texts);
}

static void
numbered_free(struct numbered *n)
{
    cpprof__strings_free(&n->texts);
    cpprof__free(n->known);
}

enum cpprof_status
cpprof__callgrind(struct cpprof__report *r)
{
    struct writer w = {.r = r};
    enum cpprof_status status;

    r->options->granularity = PPROF_REPORT_ADDRESSES;
    r->options->flags |= PPROF_REPORT_NO_TRIM;
    status = cpprof__trimmed_make(&w.t, r,
                                  CPPROF__GRAPH_OBJECTS | CPPROF__TRIM_TREE);
    if (status == CPPROF_OK)
        status = cpprof__trimmed_edges(&w.t);
    if (status == CPPROF_OK)
        status = cpprof__calls_make(&w.calls, &w.t, NULL);
    if (status == CPPROF_OK &&
        (!numbered_begin(&w.objects, r->p) || !numbered_begin(&w.files, r->p) ||
         !numbered_begin(&w.names, r->p) || !find_same_names(&w)))
        status = cpprof__fail_nomem(r->error);
    if (status == CPPROF_OK) {
        cpprof__select_unit(&w.t, true);
        print_all(&w);
    }
    if (w.failed)
        status = cpprof__fail_nomem(r->error);
    cpprof__calls_free(&w.calls);
    cpprof__trimmed_free(&w.t);
    numbered_free(&w.objects);
    numbered_free(&w.files);
    numbered_free(&w.names);
    cpprof__free(w.which);
    cpprof__free(w.n_same);
    cpprof__free(w.callees);
    return status;
}
