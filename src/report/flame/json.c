/* SPDX-License-Identifier: MIT */
/*
 * -json: what the filters leave, for other programs. docs/reports.md describes
 * the members; "schema" counts up when one of them changes its meaning.
 */
#include "report/flame/stacks.h"

#include "base/status.h"
#include "base/text.h"

#include <inttypes.h>

#define SCHEMA 1

struct json {
    struct cpprof__report *r;
    struct cpprof__graph g;
    struct cpprof__stacks stacks;
};

/* ------------------------------------------------------------- texts ---- */

static bool
is_escaped(uint32_t c)
{
    return c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' ||
           c == '&' || c == 0x7f || c == 0x2028 || c == 0x2029;
}

void
cpprof__json_text(struct cpprof__buffer *out, const char *text, size_t n)
{
    const char *end = text + n, *plain = text;

    cpprof__buffer_append(out, "\"", 1);
    while (text < end) {
        uint32_t c;
        size_t length = cpprof__utf8_next(text, (size_t)(end - text), &c);

        if (length && !is_escaped(c)) {
            text += length;
            continue;
        }
        cpprof__buffer_append(out, plain, (size_t)(text - plain));
        cpprof__buffer_printf(out, "\\u%04x", length ? c : 0xfffd);
        text += length ? length : 1;
        plain = text;
    }
    cpprof__buffer_append(out, plain, (size_t)(end - plain));
    cpprof__buffer_append(out, "\"", 1);
}

static struct cpprof__buffer *
out_of(struct json *j)
{
    return &j->r->sink.buffer;
}

static void
print_string(struct json *j, uint32_t string)
{
    const struct cpprof__strings *strings = &j->r->p->strings;

    cpprof__json_text(out_of(j), cpprof__strings_text(strings, string),
                      cpprof__strings_n(strings, string));
}

/* ,"key":"text"; nothing for the empty string. */
static void
print_member(struct json *j, const char *key, uint32_t string)
{
    if (!string)
        return;
    cpprof__buffer_printf(out_of(j), ",\"%s\":", key);
    print_string(j, string);
}

static void
print_number(struct json *j, const char *key, int64_t number)
{
    if (number)
        cpprof__buffer_printf(out_of(j), ",\"%s\":%" PRId64, key, number);
}

static void
print_type(struct json *j, const struct pprof_value_type *type)
{
    cpprof__buffer_printf(out_of(j), "{\"type\":");
    print_string(j, type->type);
    cpprof__buffer_printf(out_of(j), ",\"unit\":");
    print_string(j, type->unit);
    cpprof__buffer_printf(out_of(j), "}");
}

/* -------------------------------------------------------------- head ---- */

static void
print_head(struct json *j)
{
    const struct pprof_profile *p = j->r->p;
    struct cpprof__buffer *out = out_of(j);
    size_t i;

    cpprof__buffer_printf(out, "{\"schema\":%d", SCHEMA);
    if (p->mappings.n) {
        print_member(j, "program", p->mappings.at[0].file);
        print_member(j, "build_id", p->mappings.at[0].build_id);
    }
    print_number(j, "time_ns", p->info.time_ns);
    print_number(j, "duration_ns", p->info.duration_ns);
    if (p->info.period) {
        print_number(j, "period", p->info.period);
        cpprof__buffer_printf(out, ",\"period_type\":");
        print_type(j, &p->info.period_type);
    }
    cpprof__buffer_printf(out, ",\"comments\":[");
    for (i = 0; i < p->comments.n; i++) {
        cpprof__buffer_append(out, ",", i != 0);
        print_string(j, p->comments.at[i]);
    }
    cpprof__buffer_printf(out, "],\n\"sample_types\":[");
    for (i = 0; i < p->sample_types.n; i++) {
        cpprof__buffer_append(out, ",", i != 0);
        print_type(j, &p->sample_types.at[i]);
    }
    cpprof__buffer_printf(out, "],\"shown\":%zu,\"total\":%" PRId64,
                          j->r->value, j->r->total);
}

/* ------------------------------------------------------------ frames ---- */

static void
print_frame(struct json *j, const struct cpprof__node *node)
{
    struct cpprof__buffer *out = out_of(j), name = {0};

    cpprof__stacks_name(&j->g, node, &name);
    out->failed |= name.failed;
    cpprof__buffer_printf(out, "{\"name\":");
    cpprof__json_text(out, name.n ? (char *)name.data : "", name.n);
    cpprof__buffer_free(&name);
    print_member(j, "function", node->name);
    print_member(j, "file", node->file);
    print_number(j, "line", node->line);
    print_number(j, "column", node->column);
    print_member(j, "mapping", node->object);
    if (node->address)
        cpprof__buffer_printf(out, ",\"address\":\"0x%" PRIx64 "\"",
                              node->address);
    cpprof__buffer_printf(out, "}");
    cpprof__sink_mind(&j->r->sink);
}

/* ------------------------------------------------------------ labels ---- */

/* The labels of one kind, "key":[values]; they are sorted by key. */
static void
print_labels(struct json *j, const char *member, uint32_t set, bool texts)
{
    struct cpprof__buffer *out = out_of(j);
    size_t n, i;
    const struct pprof_label *l = cpprof__label_set(&j->r->p->labels, set, &n);
    const struct pprof_label *previous = NULL;

    for (i = 0; i < n; i++) {
        if ((l[i].kind == PPROF_LABEL_TEXT) != texts)
            continue;
        if (!previous)
            cpprof__buffer_printf(out, ",\"%s\":{", member);
        if (previous && previous->key == l[i].key) {
            cpprof__buffer_printf(out, ",");
        } else {
            cpprof__buffer_printf(out, "%s", previous ? "]," : "");
            print_string(j, l[i].key);
            cpprof__buffer_printf(out, ":[");
        }
        if (texts) {
            print_string(j, l[i].text);
        } else {
            cpprof__buffer_printf(out, "{\"value\":%" PRId64, l[i].num);
            print_member(j, "unit", l[i].unit);
            cpprof__buffer_printf(out, "}");
        }
        previous = &l[i];
    }
    if (previous)
        cpprof__buffer_printf(out, "]}");
}

/* ------------------------------------------------------------ stacks ---- */

/* The positions in the stack, from 0, of inlined calls. */
static void
print_inlined(struct json *j, size_t sample)
{
    struct cpprof__stack_rest rest = cpprof__stack_begin(&j->g, sample);
    struct cpprof__buffer *out = out_of(j);
    bool is_inline, any = false;
    uint32_t node;
    size_t i = 0;

    for (; cpprof__stack_next(&j->g, sample, &rest, &node, &is_inline); i++) {
        if (!is_inline)
            continue;
        cpprof__buffer_printf(out, any ? ",%zu" : ",\"inlined\":[%zu", i);
        any = true;
    }
    if (any)
        cpprof__buffer_printf(out, "]");
}

static void
print_stack(struct json *j, size_t at)
{
    const struct pprof_profile *p = j->r->p;
    size_t sample = j->stacks.samples.at[at], n = p->sample_types.n, i;
    struct cpprof__stack_rest rest = cpprof__stack_begin(&j->g, sample);
    struct cpprof__buffer *out = out_of(j);
    const char *comma = "";
    uint32_t node;
    bool is_inline;

    cpprof__buffer_printf(out, "{\"frames\":[");
    while (cpprof__stack_next(&j->g, sample, &rest, &node, &is_inline)) {
        cpprof__buffer_printf(out, "%s%u", comma, node);
        comma = ",";
    }
    cpprof__buffer_printf(out, "]");
    print_inlined(j, sample);
    cpprof__buffer_printf(out, ",\"values\":[");
    for (i = 0; i < n; i++)
        cpprof__buffer_printf(out, "%s%" PRId64, i ? "," : "",
                              j->stacks.values.at[at * n + i]);
    cpprof__buffer_printf(out, "]");
    print_labels(j, "labels", p->samples.at[sample].labels, true);
    print_labels(j, "numbers", p->samples.at[sample].labels, false);
    cpprof__buffer_printf(out, "}");
    cpprof__sink_mind(&j->r->sink);
}

static void
print(struct json *j)
{
    struct cpprof__buffer *out = out_of(j);
    size_t i;

    print_head(j);
    cpprof__buffer_printf(out, ",\n\"frames\":[");
    for (i = 0; i < j->g.nodes.n; i++) {
        cpprof__buffer_printf(out, i ? ",\n" : "\n");
        print_frame(j, &j->g.nodes.at[i]);
    }
    cpprof__buffer_printf(out, "],\n\"stacks\":[");
    for (i = 0; i < j->stacks.samples.n; i++) {
        if (cpprof__sink_broken(&j->r->sink))
            return;
        cpprof__buffer_printf(out, i ? ",\n" : "\n");
        print_stack(j, i);
    }
    cpprof__buffer_printf(out, "]}\n");
}

enum cpprof_status
cpprof__json(struct cpprof__report *r)
{
    struct json j = {.r = r};
    enum cpprof_status status = cpprof__stacks_graph(&j.g, r);

    if (status == CPPROF_OK)
        status = cpprof__stacks_make(
            &j.stacks, &j.g,
            CPPROF__STACKS_BY_LABELS | CPPROF__STACKS_BY_INLINE, r->error);
    if (status == CPPROF_OK)
        print(&j);
    cpprof__stacks_free(&j.stacks);
    cpprof__graph_free(&j.g);
    return status;
}
