/* SPDX-License-Identifier: MIT */
/*
 * -traces: every sample with its labels, a line for each frame. Source:
 * internal/report/report.go printTraces.
 */
#include "report/report.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

#define RULE                                                                   \
    "-----------+-------------------------------------------------------\n"

/* A text for each node or label set, made once. */
struct texts {
    struct cpprof__buffer bytes;
    size_t *at; /* [n + 1] */
};

struct traces {
    struct cpprof__report *r;
    struct cpprof__graph g;
    struct texts names;  /* by node */
    struct texts labels; /* by label set */
};

static bool
texts_begin(struct texts *t, size_t n)
{
    t->at = calloc(n + 1, sizeof *t->at);
    return t->at != NULL;
}

static void
texts_free(struct texts *t)
{
    cpprof__buffer_free(&t->bytes);
    free(t->at);
}

static void
append_text(const struct texts *t, size_t i, struct cpprof__buffer *out)
{
    cpprof__buffer_append(out, t->bytes.data + t->at[i],
                          t->at[i + 1] - t->at[i]);
}

static bool
make_names(struct traces *t)
{
    size_t i;

    if (!texts_begin(&t->names, t->g.nodes.n))
        return false;
    for (i = 0; i < t->g.nodes.n; i++) {
        cpprof__node_name(&t->g, &t->g.nodes.at[i], &t->names.bytes);
        t->names.at[i + 1] = t->names.bytes.n;
    }
    return !t->names.bytes.failed;
}

/* ------------------------------------------------------------ labels ---- */

/* "       key:  value value\n" of the labels of one key; how many they are. */
static size_t
append_key(struct traces *t, const struct cpprof_pprof_label *l, size_t n,
           struct cpprof__buffer *out)
{
    const struct cpprof__strings *strings = &t->r->p->strings;
    size_t i;

    cpprof__buffer_printf(out,
                          "%10s: ", cpprof__strings_text(strings, l[0].key));
    for (i = 0; i < n && l[i].key == l[0].key && l[i].kind == l[0].kind; i++) {
        char text[CPPROF__LABEL_TEXT];

        if (l[i].kind == CPPROF_PPROF_LABEL_TEXT) {
            cpprof__buffer_printf(out, " %s",
                                  cpprof__strings_text(strings, l[i].text));
            continue;
        }
        cpprof__scaled_label(
            text, l[i].num,
            cpprof__strings_text(strings, t->r->label_units.units[l[i].key]),
            "auto");
        cpprof__buffer_printf(out, " %s", text);
    }
    cpprof__buffer_append(out, "\n", 1);
    return i;
}

/* Lines of a set, which is sorted by kind and key; but lines are sorted as
 * they are printed, with the key moved to the right. */
struct line {
    const uint8_t *at;
    size_t n;
};

static int
compare_lines(const void *x, const void *y)
{
    const struct line *a = x, *b = y;
    int order = memcmp(a->at, b->at, a->n < b->n ? a->n : b->n);

    return order ? order : (a->n > b->n) - (a->n < b->n);
}

static bool
append_sorted(struct cpprof__buffer *out, const struct cpprof__buffer *text,
              const size_t *ends, size_t n)
{
    struct line *lines = malloc((n + 1) * sizeof *lines);
    size_t i, begin = 0;

    if (!lines)
        return false;
    for (i = 0; i < n; i++) {
        lines[i] = (struct line){text->data + begin, ends[i] - begin};
        begin = ends[i];
    }
    if (n)
        qsort(lines, n, sizeof *lines, compare_lines);
    for (i = 0; i < n; i++)
        cpprof__buffer_append(out, lines[i].at, lines[i].n);
    free(lines);
    return true;
}

/* The lines of the labels of one kind, from l on; *n_used is how many. */
static bool
append_kind(struct traces *t, const struct cpprof_pprof_label *l, size_t n,
            size_t *n_used)
{
    struct cpprof__buffer text = {0};
    size_t *ends = malloc((n + 1) * sizeof *ends), n_lines = 0, i = 0;
    bool ok = ends != NULL;

    while (ok && i < n && l[i].kind == l[0].kind) {
        i += append_key(t, l + i, n - i, &text);
        ends[n_lines++] = text.n;
    }
    ok = ok && !text.failed &&
         append_sorted(&t->labels.bytes, &text, ends, n_lines);
    cpprof__buffer_free(&text);
    free(ends);
    *n_used = i;
    return ok;
}

static bool
make_labels(struct traces *t)
{
    const struct cpprof_pprof *p = t->r->p;
    size_t i;

    if (!texts_begin(&t->labels, p->labels.sets.n))
        return false;
    for (i = 0; i < p->labels.sets.n; i++) {
        size_t n, used;
        const struct cpprof_pprof_label *l =
            cpprof__label_set(&p->labels, (uint32_t)i, &n);

        for (; n; l += used, n -= used)
            if (!append_kind(t, l, n, &used))
                return false;
        t->labels.at[i + 1] = t->labels.bytes.n;
    }
    return !t->labels.bytes.failed;
}

/* ----------------------------------------------------------- samples ---- */

static void
print_sample(struct traces *t, size_t sample)
{
    const struct cpprof__sample *s = &t->r->p->samples.at[sample];
    const uint32_t *frames = t->r->p->frames.at + s->first_frame;
    const int64_t *values = cpprof__values(t->r->p, sample);
    int64_t divisor =
        t->r->divisor == CPPROF__NO_DIVISOR ? 0 : values[t->r->divisor];
    struct cpprof__buffer *out = &t->r->out;
    char value[CPPROF__LABEL_TEXT];
    size_t i, j;

    cpprof__format_value(t->r, cpprof__mean(values[t->r->value], divisor),
                         value);
    cpprof__buffer_printf(out, "%s", RULE);
    append_text(&t->labels, s->labels, out);
    for (i = 0; i < s->n_frames; i++) {
        size_t first = t->g.first_node[frames[i]];
        size_t last = t->g.first_node[frames[i] + 1];

        for (j = first; j < last; j++) {
            cpprof__buffer_printf(out, "%10s   ", value);
            append_text(&t->names, t->g.location_nodes.at[j], out);
            cpprof__buffer_printf(out, "%s\n", j + 1 < last ? " (inline)" : "");
            value[0] = 0;
        }
    }
}

enum cpprof_status
cpprof__traces(struct cpprof__report *r)
{
    struct cpprof__graph_options options = {
        .granularity = r->options->granularity,
        .flags = r->options->flags,
        .trim_path = r->options->trim_path,
        .source_path = r->options->source_path,
    };
    struct traces t = {.r = r};
    enum cpprof_status status;
    size_t i;

    t.g.p = r->p;
    t.g.value = r->value;
    t.g.divisor = r->divisor;
    status = cpprof__graph_make(&t.g, &options, r->error);
    if (status == CPPROF_OK && (!make_names(&t) || !make_labels(&t)))
        status = cpprof__fail_nomem(r->error);
    if (status == CPPROF_OK) {
        cpprof__profile_heading(r);
        for (i = 0; i < r->p->samples.n; i++)
            if (r->p->samples.at[i].n_frames)
                print_sample(&t, i);
        cpprof__buffer_printf(&r->out, "%s", RULE);
    }
    cpprof__graph_free(&t.g);
    texts_free(&t.names);
    texts_free(&t.labels);
    return status;
}
