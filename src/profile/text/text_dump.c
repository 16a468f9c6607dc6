/* SPDX-License-Identifier: MIT */
/*
 * Writes a whole profile as text for people, as the reference's
 * Profile.String() does: the head, samples with their labels, locations,
 * mappings. A profile of a million samples is some hundred megabytes of this,
 * so numbers are put into the buffer by hand, and stacks by pieces made once
 * for each location.
 *
 * Source: profile/profile.go, String.
 */
#include "profile/proto/encode.h"

#include "base/status.h"
#include "profile/proto/pieces.h"
#include "profile/text/go_time.h"

#include <stdio.h>
#include <string.h>

#define VALUE_WIDTH  10
#define ID_WIDTH     6
#define LABEL_INDENT "                "
#define LINE_INDENT  "             "

struct dump {
    const struct pprof_profile *p;
    struct cpprof__sink *sink;
    struct cpprof__buffer *out; /* the sink's */
    struct cpprof__pieces pieces;
    /* Of one label set: where the labels of each key begin. */
    CPPROF__ARRAY(struct group {
        uint32_t key;
        size_t first;
    })
    groups;
};

/* -------------------------------------------------- words and numbers ---- */

static void
put(struct dump *d, const char *text)
{
    cpprof__buffer_append(d->out, text, strlen(text));
}

static void
put_char(struct dump *d, char c)
{
    cpprof__buffer_append(d->out, &c, 1);
}

static void
put_string(struct dump *d, uint32_t string)
{
    cpprof__buffer_append(d->out, cpprof__strings_text(&d->p->strings, string),
                          cpprof__strings_n(&d->p->strings, string));
}

/* %*d */
static void
put_number(struct dump *d, int64_t v, size_t width)
{
    cpprof__buffer_number(d->out, v < 0 ? "-" : "",
                          v < 0 ? -(uint64_t)v : (uint64_t)v, 10, width);
}

static void
put_id(struct dump *d, uint64_t id, size_t width)
{
    cpprof__buffer_number(d->out, "", id, 10, width);
}

/* %#x */
static void
put_address(struct dump *d, uint64_t v)
{
    cpprof__buffer_number(d->out, "0x", v, 16, 0);
}

/* "12 ", a frame of a sample. */
static size_t
id_and_space(uint8_t *out, uint64_t id)
{
    return (size_t)sprintf((char *)out, "%llu ", (unsigned long long)id);
}

/* -------------------------------------------------------------- head ---- */

/* "%.4v" of a duration: the first four characters of its text. */
static void
put_duration(struct dump *d, int64_t ns)
{
    char text[CPPROF__GO_TIME_MAX];
    size_t n = cpprof__go_duration(text, ns), i = 0, n_chars = 0;

    for (; i < n; i++) {
        n_chars += ((uint8_t)text[i] & 0xc0) != 0x80;
        if (n_chars > 4)
            break;
    }
    put(d, "Duration: ");
    cpprof__buffer_append(d->out, text, i);
    put_char(d, '\n');
}

static void
put_time(struct dump *d, int64_t ns)
{
    char text[CPPROF__GO_TIME_MAX];
    size_t n = cpprof__go_time(text, ns);

    put(d, "Time: ");
    cpprof__buffer_append(d->out, text, n);
    put_char(d, '\n');
}

/* What Go's strings.TrimSpace() takes for space, in UTF-8. */
static const char *const spaces[] = {
    " ",
    "\t",
    "\n",
    "\v",
    "\f",
    "\r",
    "\xc2\x85",
    "\xc2\xa0",
    "\xe1\x9a\x80",
    "\xe2\x80\x80",
    "\xe2\x80\x81",
    "\xe2\x80\x82",
    "\xe2\x80\x83",
    "\xe2\x80\x84",
    "\xe2\x80\x85",
    "\xe2\x80\x86",
    "\xe2\x80\x87",
    "\xe2\x80\x88",
    "\xe2\x80\x89",
    "\xe2\x80\x8a",
    "\xe2\x80\xa8",
    "\xe2\x80\xa9",
    "\xe2\x80\xaf",
    "\xe2\x81\x9f",
    "\xe3\x80\x80",
};

/* The length of the space that n bytes of text begin, or end, with; 0: none. */
static size_t
space_at(const uint8_t *text, size_t n, bool at_end)
{
    size_t i;

    for (i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        size_t length = strlen(spaces[i]);

        if (length <= n &&
            memcmp(at_end ? text + n - length : text, spaces[i], length) == 0)
            return length;
    }
    return 0;
}

/* Take the space off both ends of what was put since `mark`. */
static void
trim(struct dump *d, size_t mark)
{
    uint8_t *text = d->out->data + mark;
    size_t n = d->out->n - mark, skip = 0, space;

    if (d->out->failed)
        return;
    while ((space = space_at(text, n, true)))
        n -= space;
    while ((space = space_at(text + skip, n - skip, false)))
        skip += space;
    memmove(text, text + skip, n - skip);
    d->out->n = mark + n - skip;
}

static void
put_types(struct dump *d)
{
    size_t mark = d->out->n, i;

    for (i = 0; i < d->p->sample_types.n; i++) {
        const struct pprof_value_type *t = &d->p->sample_types.at[i];

        put_string(d, t->type);
        put_char(d, '/');
        put_string(d, t->unit);
        if (t->type == d->p->info.default_sample_type)
            put(d, "[dflt]");
        put_char(d, ' ');
    }
    if (d->p->sample_types.n)
        trim(d, mark);
    put_char(d, '\n');
}

static void
put_head(struct dump *d)
{
    const struct pprof_info *head = &d->p->info;
    size_t i;

    for (i = 0; i < d->p->comments.n; i++) {
        put(d, "Comment: ");
        put_string(d, d->p->comments.at[i]);
        put_char(d, '\n');
        cpprof__sink_mind(d->sink);
    }
    if (head->doc_url) {
        put(d, "Doc: ");
        put_string(d, head->doc_url);
        put_char(d, '\n');
    }
    put(d, "PeriodType: ");
    put_string(d, head->period_type.type);
    put_char(d, ' ');
    put_string(d, head->period_type.unit);
    put(d, "\nPeriod: ");
    put_number(d, head->period, 0);
    put_char(d, '\n');
    if (head->time_ns)
        put_time(d, head->time_ns);
    if (head->duration_ns)
        put_duration(d, head->duration_ns);
    put(d, "Samples:\n");
    put_types(d);
}

/* ------------------------------------------------------------ labels ---- */

/* The order of two keys as the reference sorts them, "key:[...": the colon is
 * compared with what follows in a longer key. */
static int
compare_keys(const struct cpprof__strings *s, uint32_t a, uint32_t b)
{
    size_t n_a = cpprof__strings_n(s, a), n_b = cpprof__strings_n(s, b);
    const char *longer = cpprof__strings_text(s, n_a < n_b ? b : a);
    size_t shorter = n_a < n_b ? n_a : n_b;
    int order =
        memcmp(cpprof__strings_text(s, a), cpprof__strings_text(s, b), shorter);

    if (order || n_a == n_b)
        return order;
    order = (uint8_t)longer[shorter] - ':';
    if (!order) /* the next is '[', against more of the key, or a colon */
        order =
            (uint8_t)(n_a + n_b - shorter > shorter + 1 ? longer[shorter + 1]
                                                        : ':') -
            '[';
    return n_a < n_b ? -order : order;
}

static int
compare_groups(const void *a, const void *b, void *ctx)
{
    const struct dump *d = ctx;

    return compare_keys(&d->p->strings, ((const struct group *)a)->key,
                        ((const struct group *)b)->key);
}

/* "key:[value value]", of the n labels that have the key of the first one. */
static void
put_group(struct dump *d, const struct pprof_label *labels, size_t n)
{
    bool has_units = false;
    size_t i;

    for (i = 0; i < n; i++)
        has_units |= labels[i].unit != 0;
    put_string(d, labels->key);
    put(d, ":[");
    for (i = 0; i < n; i++) {
        if (i)
            put_char(d, ' ');
        if (labels[i].kind == PPROF_LABEL_TEXT) {
            put_string(d, labels[i].text);
        } else {
            put_number(d, labels[i].num, 0);
            if (has_units)
                put_char(d, ' ');
            put_string(d, labels[i].unit);
        }
        cpprof__sink_mind(d->sink);
    }
    put_char(d, ']');
}

/* Find the groups of equal keys of n labels that are sorted by key, and sort
 * them as they are printed; false when out of memory. Nearly always they are
 * in that order already. */
static bool
find_groups(struct dump *d, const struct pprof_label *labels, size_t n)
{
    bool sorted = true;
    size_t i;

    d->groups.n = 0;
    for (i = 0; i < n; i++) {
        struct group *group;

        if (i && labels[i].key == labels[i - 1].key)
            continue;
        group = CPPROF__ARRAY_ADD(&d->groups);
        if (!group)
            return false;
        *group = (struct group){labels[i].key, i};
        sorted &= d->groups.n == 1 || compare_groups(group - 1, group, d) <= 0;
    }
    if (!sorted)
        qsort_r(d->groups.at, d->groups.n, sizeof *d->groups.at, compare_groups,
                d);
    return true;
}

/* A line of n labels of one kind; false when out of memory. */
static bool
put_labels(struct dump *d, const struct pprof_label *labels, size_t n)
{
    size_t i;

    if (!find_groups(d, labels, n))
        return false;
    put(d, LABEL_INDENT);
    for (i = 0; i < d->groups.n; i++) {
        const struct group *g = &d->groups.at[i];
        size_t end = g->first;

        while (end < n && labels[end].key == g->key)
            end++;
        if (i)
            put_char(d, ' ');
        put_group(d, labels + g->first, end - g->first);
    }
    put_char(d, '\n');
    return true;
}

/* ----------------------------------------------------------- samples ---- */

static bool
put_sample(struct dump *d, size_t sample)
{
    struct pprof_sample s = {.size = sizeof s};
    size_t n_texts = 0, i;

    pprof_get_sample(d->p, sample, &s);
    for (i = 0; i < d->p->sample_types.n; i++) {
        put_char(d, ' ');
        put_number(d, s.values[i], VALUE_WIDTH);
    }
    put(d, ": ");
    cpprof__pieces_put(&d->pieces, d->out, s.locations, s.n_locations);
    put_char(d, '\n');
    while (n_texts < s.n_labels && s.labels[n_texts].kind == PPROF_LABEL_TEXT)
        n_texts++;
    if (n_texts && !put_labels(d, s.labels, n_texts))
        return false;
    return n_texts == s.n_labels ||
           put_labels(d, s.labels + n_texts, s.n_labels - n_texts);
}

static bool
put_samples(struct dump *d)
{
    size_t i;

    for (i = 0; i < d->p->samples.n && !cpprof__sink_broken(d->sink); i++) {
        if (!put_sample(d, i))
            return false;
        cpprof__sink_mind(d->sink);
    }
    return true;
}

/* ------------------------------------------------------------ tables ---- */

static void
put_line(struct dump *d, const struct pprof_line *line)
{
    const struct pprof_function *f = &d->p->functions.at[line->function];

    put_string(d, f->name);
    put_char(d, ' ');
    put_string(d, f->file);
    put_char(d, ':');
    put_number(d, line->line, 0);
    put_char(d, ':');
    put_number(d, line->column, 0);
    put(d, " s=");
    put_number(d, f->start_line, 0);
    if (f->name != f->system_name) {
        put_char(d, '(');
        put_string(d, f->system_name);
        put_char(d, ')');
    }
    put_char(d, '\n');
    cpprof__sink_mind(d->sink);
}

static void
put_location(struct dump *d, const struct pprof_location *l)
{
    size_t i;

    put_id(d, l->id, ID_WIDTH);
    put(d, ": ");
    put_address(d, l->address);
    put_char(d, ' ');
    if (l->mapping != PPROF_NONE) {
        put(d, "M=");
        put_id(d, d->p->mappings.at[l->mapping].id, 0);
        put_char(d, ' ');
    }
    if (l->flags & PPROF_FOLDED)
        put(d, "[F] ");
    if (!l->n_lines)
        put_char(d, '\n');
    for (i = 0; i < l->n_lines; i++) {
        if (i)
            put(d, LINE_INDENT);
        put_line(d, &d->p->lines.at[l->first_line + i]);
    }
    cpprof__sink_mind(d->sink);
}

static void
put_mapping(struct dump *d, const struct pprof_mapping *m)
{
    put_id(d, m->id, 0);
    put(d, ": ");
    put_address(d, m->start);
    put_char(d, '/');
    put_address(d, m->limit);
    put_char(d, '/');
    put_address(d, m->offset);
    put_char(d, ' ');
    put_string(d, m->file);
    put_char(d, ' ');
    put_string(d, m->build_id);
    put_char(d, ' ');
    put(d, m->flags & PPROF_HAS_FUNCTIONS ? "[FN]" : "");
    put(d, m->flags & PPROF_HAS_FILENAMES ? "[FL]" : "");
    put(d, m->flags & PPROF_HAS_LINE_NUMBERS ? "[LN]" : "");
    put(d, m->flags & PPROF_HAS_INLINE_FRAMES ? "[IN]" : "");
    put_char(d, '\n');
    cpprof__sink_mind(d->sink);
}

enum cpprof_status
cpprof__dump_text(const struct pprof_profile *p, struct cpprof__sink *out,
                  struct cpprof_error *error)
{
    struct dump d = {.p = p, .sink = out, .out = &out->buffer};
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    if (cpprof__pieces_make(&d.pieces, p, id_and_space)) {
        put_head(&d);
        if (!put_samples(&d))
            status = cpprof__fail_nomem(error);
        put(&d, "Locations\n");
        for (i = 0; i < p->locations.n; i++)
            put_location(&d, &p->locations.at[i]);
        put(&d, "Mappings\n");
        for (i = 0; i < p->mappings.n; i++)
            put_mapping(&d, &p->mappings.at[i]);
    } else {
        status = cpprof__fail_nomem(error);
    }
    cpprof__pieces_free(&d.pieces);
    CPPROF__ARRAY_FREE(&d.groups);
    return status;
}
