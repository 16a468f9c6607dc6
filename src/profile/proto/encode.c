/* SPDX-License-Identifier: MIT */
/*
 * Writes profile.proto, byte for byte as the reference does: fields in order of
 * their numbers, strings numbered in the order in which the reference's walk
 * meets them, zero left out where it leaves it out, more than two numbers
 * packed.
 *
 * That walk is the order of the file as well, so strings are numbered while
 * they are written, and the table of strings, which comes behind the functions,
 * waits only for the few strings of the head. Only what the sink holds is in
 * memory.
 *
 * Samples are nearly all of it. A stack is copied out of the bytes of its
 * location ids (pieces.h), and the labels out of the bytes of their set, which
 * are made when the set is first met.
 *
 * Source: proto/profile.proto, profile/encode.go.
 */
#include "profile/proto/encode.h"

#include "base/proto.h"
#include "base/status.h"
#include "own/memory.h"
#include "profile/proto/pieces.h"

struct encoder {
    const struct pprof_profile *p;
    struct cpprof__sink *sink;
    struct cpprof__buffer *out; /* the sink's */
    struct cpprof__pieces pieces;

    uint32_t *numbers; /* by string: its number in the file; 0: none yet */
    uint32_t *order;   /* by number in the file: the string */
    size_t n_strings;

    /* The bytes of label sets. */
    struct span {
        size_t begin, end; /* end 0: not made yet */
    } * spans;             /* by label set */
    struct cpprof__buffer label_bytes;
};

/* The number of a string in the file; its next one when it is new. */
static uint64_t
number(struct encoder *e, uint32_t string)
{
    if (string && !e->numbers[string]) {
        e->order[e->n_strings] = string;
        e->numbers[string] = (uint32_t)e->n_strings++;
    }
    return e->numbers[string];
}

static void
put_value_type(struct encoder *e, uint32_t field,
               const struct pprof_value_type *type)
{
    size_t mark = cpprof__put_begin(e->out);

    cpprof__put_uint_opt(e->out, 1, number(e, type->type));
    cpprof__put_uint_opt(e->out, 2, number(e, type->unit));
    cpprof__put_end(e->out, field, mark);
}

/* ----------------------------------------------------------- samples ---- */

static void
put_label(struct encoder *e, const struct pprof_label *label)
{
    struct cpprof__buffer *b = &e->label_bytes;
    size_t mark = cpprof__put_begin(b);

    cpprof__put_uint_opt(b, 1, number(e, label->key));
    if (label->kind == PPROF_LABEL_TEXT) {
        cpprof__put_uint_opt(b, 2, number(e, label->text));
    } else {
        cpprof__put_uint_opt(b, 3, (uint64_t)label->num);
        cpprof__put_uint_opt(b, 4, number(e, label->unit));
    }
    cpprof__put_end(b, 3, mark);
}

static void
put_labels(struct encoder *e, uint32_t set)
{
    struct span *span = &e->spans[set];

    if (!span->end) {
        size_t i, n;
        const struct pprof_label *labels =
            cpprof__label_set(&e->p->labels, set, &n);

        span->begin = e->label_bytes.n;
        for (i = 0; i < n; i++)
            put_label(e, &labels[i]);
        span->end = e->label_bytes.n;
    }
    if (e->label_bytes.failed) {
        e->out->failed = true;
        return;
    }
    cpprof__buffer_append(e->out, e->label_bytes.data + span->begin,
                          span->end - span->begin);
}

static void
put_frames(struct encoder *e, const uint32_t *frames, size_t n)
{
    size_t mark, i;

    if (n <= 2) {
        for (i = 0; i < n; i++)
            cpprof__put_uint(e->out, 1, e->p->locations.at[frames[i]].id);
        return;
    }
    mark = cpprof__put_begin(e->out);
    cpprof__pieces_put(&e->pieces, e->out, frames, n);
    cpprof__put_end(e->out, 1, mark);
}

static void
put_samples(struct encoder *e)
{
    const struct pprof_profile *p = e->p;
    size_t i;

    for (i = 0; i < p->samples.n && !cpprof__sink_broken(e->sink); i++) {
        const struct cpprof__sample *s = &p->samples.at[i];
        size_t mark = cpprof__put_begin(e->out);

        put_frames(e, p->frames.at + s->first_frame, s->n_frames);
        cpprof__put_uints(e->out, 2, (const uint64_t *)cpprof__values(p, i),
                          p->sample_types.n);
        if (s->labels)
            put_labels(e, s->labels);
        cpprof__put_end(e->out, 2, mark);
        cpprof__sink_mind(e->sink);
    }
}

/* ------------------------------------------------------------ tables ---- */

static void
put_mapping(struct encoder *e, const struct pprof_mapping *m)
{
    size_t mark = cpprof__put_begin(e->out);
    uint32_t bit;

    cpprof__put_uint_opt(e->out, 1, m->id);
    cpprof__put_uint_opt(e->out, 2, m->start);
    cpprof__put_uint_opt(e->out, 3, m->limit);
    cpprof__put_uint_opt(e->out, 4, m->offset);
    cpprof__put_uint_opt(e->out, 5, number(e, m->file));
    cpprof__put_uint_opt(e->out, 6, number(e, m->build_id));
    for (bit = 0; bit < 4; bit++) /* has_functions = 7 and so on */
        cpprof__put_uint_opt(e->out, 7 + bit, m->flags >> bit & 1);
    cpprof__put_end(e->out, 3, mark);
}

static void
put_line(struct encoder *e, const struct pprof_line *line)
{
    size_t mark = cpprof__put_begin(e->out);

    cpprof__put_uint_opt(e->out, 1, e->p->functions.at[line->function].id);
    cpprof__put_uint_opt(e->out, 2, (uint64_t)line->line);
    cpprof__put_uint_opt(e->out, 3, (uint64_t)line->column);
    cpprof__put_end(e->out, 4, mark);
}

static void
put_location(struct encoder *e, const struct pprof_location *l)
{
    size_t mark = cpprof__put_begin(e->out), i;

    cpprof__put_uint_opt(e->out, 1, l->id);
    if (l->mapping != PPROF_NONE)
        cpprof__put_uint_opt(e->out, 2, e->p->mappings.at[l->mapping].id);
    cpprof__put_uint_opt(e->out, 3, l->address);
    for (i = 0; i < l->n_lines; i++)
        put_line(e, &e->p->lines.at[l->first_line + i]);
    cpprof__put_uint_opt(e->out, 5, l->flags & PPROF_FOLDED);
    cpprof__put_end(e->out, 4, mark);
}

static void
put_function(struct encoder *e, const struct pprof_function *f)
{
    size_t mark = cpprof__put_begin(e->out);

    cpprof__put_uint_opt(e->out, 1, f->id);
    cpprof__put_uint_opt(e->out, 2, number(e, f->name));
    cpprof__put_uint_opt(e->out, 3, number(e, f->system_name));
    cpprof__put_uint_opt(e->out, 4, number(e, f->file));
    cpprof__put_uint_opt(e->out, 5, (uint64_t)f->start_line);
    cpprof__put_end(e->out, 5, mark);
}

static void
put_tables(struct encoder *e)
{
    const struct pprof_profile *p = e->p;
    size_t i;

    for (i = 0; i < p->mappings.n; i++)
        put_mapping(e, &p->mappings.at[i]);
    for (i = 0; i < p->locations.n; i++) {
        put_location(e, &p->locations.at[i]);
        cpprof__sink_mind(e->sink);
    }
    for (i = 0; i < p->functions.n; i++) {
        put_function(e, &p->functions.at[i]);
        cpprof__sink_mind(e->sink);
    }
}

/* -------------------------------------------------------------- head ---- */

/* Number the strings of the head. They must be in the table although the fields
 * that refer to them follow it. */
static void
number_head(struct encoder *e)
{
    const struct pprof_info *head = &e->p->info;
    size_t i;

    number(e, head->drop_frames);
    number(e, head->keep_frames);
    number(e, head->period_type.type);
    number(e, head->period_type.unit);
    for (i = 0; i < e->p->comments.n; i++)
        number(e, e->p->comments.at[i]);
    number(e, head->default_sample_type);
    number(e, head->doc_url);
}

static void
put_strings(struct encoder *e)
{
    size_t i;

    for (i = 0; i < e->n_strings; i++) {
        uint32_t string = e->order[i];

        cpprof__put_bytes(e->out, 6,
                          cpprof__strings_text(&e->p->strings, string),
                          cpprof__strings_n(&e->p->strings, string));
        cpprof__sink_mind(e->sink);
    }
}

static void
put_comments(struct encoder *e)
{
    size_t n = e->p->comments.n, mark = cpprof__put_begin(e->out), i;

    for (i = 0; i < n; i++) {
        uint64_t comment = number(e, e->p->comments.at[i]);

        if (n <= 2)
            cpprof__put_uint(e->out, 13, comment);
        else
            cpprof__put_varint(e->out, comment);
    }
    if (n > 2)
        cpprof__put_end(e->out, 13, mark);
}

static void
put_head(struct encoder *e)
{
    const struct pprof_info *head = &e->p->info;

    cpprof__put_uint_opt(e->out, 7, number(e, head->drop_frames));
    cpprof__put_uint_opt(e->out, 8, number(e, head->keep_frames));
    cpprof__put_uint_opt(e->out, 9, (uint64_t)head->time_ns);
    cpprof__put_uint_opt(e->out, 10, (uint64_t)head->duration_ns);
    if (head->period_type.type || head->period_type.unit)
        put_value_type(e, 11, &head->period_type);
    cpprof__put_uint_opt(e->out, 12, (uint64_t)head->period);
    put_comments(e);
    /* Written even if it is 0, as the reference does. */
    cpprof__put_uint(e->out, 14, number(e, head->default_sample_type));
    cpprof__put_uint_opt(e->out, 15, number(e, head->doc_url));
}

static bool
begin(struct encoder *e)
{
    size_t n_strings = e->p->strings.table.n;

    e->numbers = cpprof__calloc(n_strings, sizeof *e->numbers);
    e->order = cpprof__calloc(n_strings, sizeof *e->order);
    e->spans = cpprof__calloc(e->p->labels.sets.n, sizeof *e->spans);
    e->n_strings = 1; /* the empty one */
    return cpprof__pieces_make(&e->pieces, e->p, cpprof__varint) &&
           e->numbers && e->order && e->spans;
}

static void
end(struct encoder *e)
{
    cpprof__pieces_free(&e->pieces);
    cpprof__buffer_free(&e->label_bytes);
    cpprof__free(e->numbers);
    cpprof__free(e->order);
    cpprof__free(e->spans);
}

enum cpprof_status
cpprof__encode(const struct pprof_profile *p, struct cpprof__sink *out,
               struct cpprof_error *error)
{
    struct encoder e = {.p = p, .sink = out, .out = &out->buffer};
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    if (begin(&e)) {
        for (i = 0; i < p->sample_types.n; i++)
            put_value_type(&e, 1, &p->sample_types.at[i]);
        put_samples(&e);
        put_tables(&e);
        number_head(&e);
        put_strings(&e);
        put_head(&e);
    } else {
        status = cpprof__fail_nomem(error);
    }
    end(&e);
    return status;
}
