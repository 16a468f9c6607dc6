/* SPDX-License-Identifier: MIT */
/*
 * -traces: every sample with its labels, a line for each frame. Source:
 * internal/report/report.go printTraces.
 *
 * The output is many times as large as the profile. So it is written piece by
 * piece, and put together from texts that are made once: the lines of each
 * location and of each label set.
 */
#include "own/memory.h"
#include "report/report.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

#define RULE                                                                   \
    "-----------+-------------------------------------------------------\n"

/* A text for each location or label set, made once. */
struct texts {
    struct cpprof__buffer bytes;
    size_t *at; /* [n + 1] */
};

/* A value as it was printed last. Small ones repeat, so a few are kept. */
struct value_text {
    int64_t value;
    uint32_t n; /* 0: nothing here */
    char text[CPPROF__LABEL_TEXT];
};
#define N_VALUES ((size_t)64)

struct traces {
    struct cpprof__report *r;
    struct cpprof__graph g;
    struct texts lines;  /* by location, the value left blank */
    struct texts labels; /* by label set */
    struct value_text values[N_VALUES];
};

/* The column of values. Only the first line of a sample has a value there. */
#define N_VALUE_COLUMN 10
#define N_MARGIN       (N_VALUE_COLUMN + 3)

static bool
texts_begin(struct texts *t, size_t n)
{
    t->at = cpprof__calloc(n + 1, sizeof *t->at);
    return t->at != NULL;
}

static void
texts_free(struct texts *t)
{
    cpprof__buffer_free(&t->bytes);
    cpprof__free(t->at);
}

static void
append_text(const struct texts *t, size_t i, struct cpprof__buffer *out)
{
    cpprof__buffer_append(out, t->bytes.data + t->at[i],
                          t->at[i + 1] - t->at[i]);
}

/* The lines of each location's functions. */
static bool
make_lines(struct traces *t)
{
    struct cpprof__buffer *out = &t->lines.bytes;
    size_t n = t->r->p->locations.n, end, i, k;

    if (!texts_begin(&t->lines, n))
        return false;
    for (i = 0; i < n; i++) {
        end = t->g.first_node[i + 1];
        for (k = t->g.first_node[i]; k < end; k++) {
            uint32_t node = t->g.location_nodes.at[k];

            cpprof__buffer_printf(out, "%*s", N_MARGIN, "");
            cpprof__node_name(&t->g, &t->g.nodes.at[node], out);
            cpprof__buffer_printf(out, "%s\n", k + 1 < end ? " (inline)" : "");
        }
        t->lines.at[i + 1] = out->n;
    }
    return !out->failed;
}

/* ------------------------------------------------------------ labels ---- */

/* "       key:  value value\n" of the labels of one key; how many they are. */
static size_t
append_key(struct traces *t, const struct pprof_label *l, size_t n,
           struct cpprof__buffer *out)
{
    const struct cpprof__strings *strings = &t->r->p->strings;
    size_t i;

    for (i = cpprof__strings_n(strings, l[0].key); i < 10; i++)
        cpprof__buffer_append(out, " ", 1);
    cpprof__append_string(t->r->p, l[0].key, out);
    cpprof__buffer_append(out, ": ", 2);
    for (i = 0; i < n && l[i].key == l[0].key && l[i].kind == l[0].kind; i++) {
        char text[CPPROF__LABEL_TEXT];

        if (l[i].kind == PPROF_LABEL_TEXT) {
            cpprof__buffer_append(out, " ", 1);
            cpprof__append_string(t->r->p, l[i].text, out);
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
    struct line *lines = cpprof__malloc((n + 1) * sizeof *lines);
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
    cpprof__free(lines);
    return true;
}

/* The lines of the labels of one kind, from l on; *n_used is how many. */
static bool
append_kind(struct traces *t, const struct pprof_label *l, size_t n,
            size_t *n_used)
{
    struct cpprof__buffer text = {0};
    size_t *ends = cpprof__malloc((n + 1) * sizeof *ends), n_lines = 0, i = 0;
    bool ok = ends != NULL;

    while (ok && i < n && l[i].kind == l[0].kind) {
        i += append_key(t, l + i, n - i, &text);
        ends[n_lines++] = text.n;
    }
    ok = ok && !text.failed &&
         append_sorted(&t->labels.bytes, &text, ends, n_lines);
    cpprof__buffer_free(&text);
    cpprof__free(ends);
    *n_used = i;
    return ok;
}

static bool
make_labels(struct traces *t)
{
    const struct pprof_profile *p = t->r->p;
    size_t i;

    if (!texts_begin(&t->labels, p->labels.sets.n))
        return false;
    for (i = 0; i < p->labels.sets.n; i++) {
        size_t n, used;
        const struct pprof_label *l =
            cpprof__label_set(&p->labels, (uint32_t)i, &n);

        for (; n; l += used, n -= used)
            if (!append_kind(t, l, n, &used))
                return false;
        t->labels.at[i + 1] = t->labels.bytes.n;
    }
    return !t->labels.bytes.failed;
}

/* ----------------------------------------------------------- samples ---- */

/* The lines of the leaf, which begin with the value; it may be longer than its
 * column. */
static void
print_leaf(struct traces *t, uint32_t location, int64_t value)
{
    struct cpprof__buffer *out = &t->r->sink.buffer;
    struct value_text *v =
        &t->values[cpprof__mix_u64((uint64_t)value) % N_VALUES];
    size_t begin = t->lines.at[location] + N_MARGIN;

    if (!v->n || v->value != value) {
        v->value = value;
        cpprof__format_value(t->r, value, v->text);
        v->n = (uint32_t)strlen(v->text);
    }
    if (v->n < N_VALUE_COLUMN)
        cpprof__buffer_append(out, "          ", N_VALUE_COLUMN - v->n);
    cpprof__buffer_append(out, v->text, v->n);
    cpprof__buffer_append(out, "   ", N_MARGIN - N_VALUE_COLUMN);
    cpprof__buffer_append(out, t->lines.bytes.data + begin,
                          t->lines.at[location + 1] - begin);
}

static void
print_sample(struct traces *t, size_t sample)
{
    const struct cpprof__sample *s = &t->r->p->samples.at[sample];
    const uint32_t *frames = t->r->p->frames.at + s->first_frame;
    const int64_t *values = cpprof__values(t->r->p, sample);
    int64_t divisor =
        t->r->divisor == CPPROF__NO_DIVISOR ? 0 : values[t->r->divisor];
    struct cpprof__buffer *out = &t->r->sink.buffer;
    size_t i;

    cpprof__buffer_append(out, RULE, strlen(RULE));
    append_text(&t->labels, s->labels, out);
    print_leaf(t, frames[0], cpprof__mean(values[t->r->value], divisor));
    for (i = 1; i < s->n_frames; i++)
        append_text(&t->lines, frames[i], out);
}

static enum cpprof_status
print_all(struct traces *t)
{
    struct cpprof__sink *sink = &t->r->sink;
    size_t i;

    cpprof__profile_heading(t->r);
    if (t->r->out.failed)
        return cpprof__fail_nomem(t->r->error);
    cpprof__buffer_append(&sink->buffer, t->r->out.data, t->r->out.n);
    for (i = 0; i < t->r->p->samples.n && !cpprof__sink_broken(sink); i++)
        if (t->r->p->samples.at[i].n_frames) {
            print_sample(t, i);
            cpprof__sink_mind(sink);
        }
    cpprof__buffer_append(&sink->buffer, RULE, strlen(RULE));
    return CPPROF_OK;
}

enum cpprof_status
cpprof__traces(struct cpprof__report *r)
{
    struct traces t = {.r = r};
    enum cpprof_status status;

    t.g.p = r->p;
    t.g.value = r->value;
    t.g.divisor = r->divisor;
    status = cpprof__graph_make(&t.g, r->options, 0, r->error);
    if (status == CPPROF_OK && (!make_lines(&t) || !make_labels(&t)))
        status = cpprof__fail_nomem(r->error);
    if (status == CPPROF_OK)
        status = print_all(&t);
    cpprof__graph_free(&t.g);
    texts_free(&t.lines);
    texts_free(&t.labels);
    return status;
}
