/* SPDX-License-Identifier: MIT */
/*
 * Writes a profile as ProfilesData (otlp.h). Samples come first in the message,
 * and fill the tables as they are written; the dictionary comes last.
 *
 * Strings, attributes and stacks are each a table of bytes without doubles, of
 * which number 0 is the empty message: the rule of the dictionary is that of
 * struct cpprof__strings. Mappings, locations and functions are written as the
 * model has them, one number higher.
 */
#include "own/memory.h"
#include "profile/otlp/attributes.h"

#include "base/proto.h"
#include "base/status.h"
#include "base/text.h"

#include <cpprof/version.h>

#include <stdio.h>
#include <string.h>

/* Fields of ProfilesData and of its ProfilesDictionary. */
enum { DATA_RESOURCE_PROFILES = 1, DATA_DICTIONARY };
enum {
    DICTIONARY_MAPPING = 1,
    DICTIONARY_LOCATION,
    DICTIONARY_FUNCTION,
    DICTIONARY_LINK,
    DICTIONARY_STRING,
    DICTIONARY_ATTRIBUTE,
    DICTIONARY_STACK
};

struct encoder {
    const struct pprof_profile *p;
    const struct cpprof__otlp_options *options;
    struct cpprof__buffer *out;
    bool failed; /* no memory */

    /* The dictionary. */
    struct cpprof__strings strings, attributes, stacks, links;
    uint32_t *numbers; /* by string of the model: its number; 0: none yet */

    struct cpprof__buffer scratch; /* one entry, while it is made */

    /* What samples of a label set begin and end with: made when it is met. */
    struct span {
        size_t begin, end; /* end 0: not made yet */
    } * spans;
    struct cpprof__buffer label_bytes;
    uint32_t *stack_of; /* by sample */
};

/* ----------------------------------------------------------- strings ---- */

static uint32_t
intern(struct encoder *e, struct cpprof__strings *table, const void *data,
       size_t n)
{
    uint32_t number = cpprof__strings_add(table, data, n);

    if (number != CPPROF__NO_STRING)
        return number;
    e->failed = true;
    return 0;
}

static uint32_t
number_of_text(struct encoder *e, const char *text, size_t n)
{
    struct cpprof__buffer clean = {0};
    uint32_t number;

    if (cpprof__is_utf8(text, n))
        return intern(e, &e->strings, text, n);
    cpprof__put_utf8(&clean, text, n);
    number = intern(e, &e->strings, clean.data, clean.n);
    e->failed |= clean.failed;
    cpprof__buffer_free(&clean);
    return number;
}

static uint32_t
number_of_name(struct encoder *e, const char *name)
{
    return number_of_text(e, name, strlen(name));
}

/* Of a string of the model. */
static uint32_t
number(struct encoder *e, uint32_t string)
{
    if (string && !e->numbers[string])
        e->numbers[string] =
            number_of_text(e, cpprof__strings_text(&e->p->strings, string),
                           cpprof__strings_n(&e->p->strings, string));
    return e->numbers[string];
}

static const char *
text_of(const struct encoder *e, uint32_t string)
{
    return cpprof__strings_text(&e->p->strings, string);
}

/* -------------------------------------------------------- attributes ---- */

static void
put_text_value(struct encoder *e, struct cpprof__buffer *b, uint32_t string)
{
    size_t mark = cpprof__put_begin(b);

    cpprof__put_utf8(b, text_of(e, string),
                     cpprof__strings_n(&e->p->strings, string));
    cpprof__put_end(b, VALUE_STRING, mark);
}

/* An attribute is made in scratch: begin with its key, append an AnyValue to
 * it, end with its unit. */
static size_t
begin_attribute(struct encoder *e, uint32_t key)
{
    e->scratch.n = 0;
    cpprof__put_uint(&e->scratch, 1, key);
    return cpprof__put_begin(&e->scratch);
}

static uint32_t
end_attribute(struct encoder *e, size_t mark, uint32_t unit)
{
    cpprof__put_end(&e->scratch, 2, mark);
    cpprof__put_uint_opt(&e->scratch, 3, unit);
    if (e->scratch.failed)
        e->failed = true;
    return e->failed ? 0
                     : intern(e, &e->attributes, e->scratch.data, e->scratch.n);
}

/* The attribute of a string of the model. */
static uint32_t
text_attribute(struct encoder *e, const char *key, uint32_t string)
{
    size_t mark = begin_attribute(e, number_of_name(e, key));

    put_text_value(e, &e->scratch, string);
    return end_attribute(e, mark, 0);
}

static uint32_t
name_attribute(struct encoder *e, const char *key, const char *value)
{
    size_t mark = begin_attribute(e, number_of_name(e, key));

    cpprof__put_bytes(&e->scratch, VALUE_STRING, value, strlen(value));
    return end_attribute(e, mark, 0);
}

static uint32_t
true_attribute(struct encoder *e, const char *key)
{
    size_t mark = begin_attribute(e, number_of_name(e, key));

    cpprof__put_uint(&e->scratch, VALUE_BOOL, 1);
    return end_attribute(e, mark, 0);
}

/* ------------------------------------------------------------ labels ---- */

static bool
is_hex(const char *text, size_t n)
{
    return strlen(text) == n && strspn(text, "0123456789abcdef") == n &&
           strspn(text, "0") != n;
}

static void
put_hex(struct cpprof__buffer *b, uint32_t field, const char *text)
{
    uint8_t bytes[16];
    size_t i, n = strlen(text) / 2;

    for (i = 0; i < n; i++)
        bytes[i] = (uint8_t)(cpprof__digit(text[2 * i]) << 4 |
                             cpprof__digit(text[2 * i + 1]));
    cpprof__put_bytes(b, field, bytes, n);
}

/* The one text of a key among n labels, if it is an id of n_hex digits. */
static const struct pprof_label *
id_label(const struct encoder *e, const struct pprof_label *labels, size_t n,
         const char *key, size_t n_hex)
{
    const struct pprof_label *found = NULL;
    size_t i;

    for (i = 0; i < n; i++) {
        if (strcmp(text_of(e, labels[i].key), key) != 0)
            continue;
        if (found || labels[i].kind != PPROF_LABEL_TEXT ||
            !is_hex(text_of(e, labels[i].text), n_hex))
            return NULL;
        found = &labels[i];
    }
    return found;
}

/* The link that a trace and a span make; they are no attributes then. */
static uint32_t
link_of(struct encoder *e, const struct pprof_label *trace,
        const struct pprof_label *span)
{
    if (!trace || !span)
        return 0;
    e->scratch.n = 0;
    put_hex(&e->scratch, 1, text_of(e, trace->text));
    put_hex(&e->scratch, 2, text_of(e, span->text));
    return intern(e, &e->links, e->scratch.data, e->scratch.n);
}

static uint32_t
key_number(struct encoder *e, const struct pprof_label *label)
{
    const char *key = text_of(e, label->key);

    if (label->kind == PPROF_LABEL_TEXT && strcmp(key, "thread") == 0)
        return number_of_name(e, CPPROF__OTLP_THREAD_NAME);
    if (label->kind == PPROF_LABEL_NUMBER && strcmp(key, "tid") == 0)
        return number_of_name(e, CPPROF__OTLP_THREAD_ID);
    return number(e, label->key);
}

static void
put_value(struct encoder *e, const struct pprof_label *label)
{
    if (label->kind == PPROF_LABEL_TEXT)
        put_text_value(e, &e->scratch, label->text);
    else
        cpprof__put_uint(&e->scratch, VALUE_INT, (uint64_t)label->num);
}

/* An attribute has one unit: numbers of others have theirs behind them, as a
 * text. */
static void
put_value_in(struct encoder *e, const struct pprof_label *label, uint32_t unit)
{
    char text[32];
    size_t mark;

    if (label->kind != PPROF_LABEL_NUMBER || label->unit == unit) {
        put_value(e, label);
        return;
    }
    snprintf(text, sizeof text, "%lld ", (long long)label->num);
    mark = cpprof__put_begin(&e->scratch);
    cpprof__put_utf8(&e->scratch, text, strlen(text));
    cpprof__put_utf8(&e->scratch, text_of(e, label->unit),
                     cpprof__strings_n(&e->p->strings, label->unit));
    cpprof__put_end(&e->scratch, VALUE_STRING, mark);
}

/* The attribute of n labels of one key, an array if there are several: no list
 * may have a key twice. */
static uint32_t
label_attribute(struct encoder *e, uint32_t key,
                const struct pprof_label *labels, size_t n)
{
    size_t mark = begin_attribute(e, key), array, one, i;
    uint32_t unit = 0;

    for (i = n; i--;) /* that of the first number */
        unit = labels[i].kind == PPROF_LABEL_NUMBER ? labels[i].unit : unit;

    if (n == 1) {
        put_value(e, labels);
        return end_attribute(e, mark, number(e, unit));
    }
    array = cpprof__put_begin(&e->scratch);
    for (i = 0; i < n; i++) {
        one = cpprof__put_begin(&e->scratch);
        put_value_in(e, &labels[i], unit);
        cpprof__put_end(&e->scratch, 1, one);
    }
    cpprof__put_end(&e->scratch, VALUE_ARRAY, array);
    return end_attribute(e, mark, number(e, unit));
}

/* The key of each label as it is written. Two keys of pprof may be one of OTLP:
 * "thread" and "thread.name", or what differs in bytes that are not UTF-8. */
static uint32_t *
key_numbers(struct encoder *e, const struct pprof_label *labels, size_t n)
{
    uint32_t *keys = cpprof__calloc(n + 1, sizeof *keys);
    size_t i;

    e->failed |= !keys;
    for (i = 0; i < n && keys; i++)
        keys[i] = key_number(e, &labels[i]);
    return keys;
}

/* Labels are sorted by key, but texts come before numbers: those of a key that
 * has both are gathered in `run`. */
static void
put_label_set(struct encoder *e, uint32_t set)
{
    CPPROF__ARRAY(struct pprof_label) run = {0};
    size_t n, i, k, mark = cpprof__put_begin(&e->label_bytes);
    const struct pprof_label *labels =
        cpprof__label_set(&e->p->labels, set, &n);
    const struct pprof_label *trace = id_label(e, labels, n, "trace_id", 32),
                             *span = id_label(e, labels, n, "span_id", 16);
    uint32_t link = link_of(e, trace, span), *keys = key_numbers(e, labels, n);

    for (i = 0; i < n && !e->failed; i++) {
        if (link && (&labels[i] == trace || &labels[i] == span))
            continue;
        for (k = 0; k < i && keys[k] != keys[i]; k++) {
        }
        if (k < i)
            continue; /* with the first one of the key */
        run.n = 0;
        for (k = i; k < n; k++)
            if (keys[k] == keys[i]) {
                struct pprof_label *one = CPPROF__ARRAY_ADD(&run);

                if (one)
                    *one = labels[k];
                else
                    e->failed = true;
            }
        if (!e->failed)
            cpprof__put_varint(&e->label_bytes,
                               label_attribute(e, keys[i], run.at, run.n));
    }
    CPPROF__ARRAY_FREE(&run);
    cpprof__free(keys);
    if (e->label_bytes.n > mark)
        cpprof__put_end(&e->label_bytes, 2, mark);
    cpprof__put_uint_opt(&e->label_bytes, 3, link);
}

static void
put_labels(struct encoder *e, uint32_t set)
{
    struct span *span = &e->spans[set];

    if (!span->end) {
        span->begin = e->label_bytes.n;
        put_label_set(e, set);
        span->end = e->label_bytes.n;
    }
    cpprof__buffer_append(e->out, e->label_bytes.data + span->begin,
                          span->end - span->begin);
}

/* ----------------------------------------------------------- samples ---- */

static uint32_t
stack_of(struct encoder *e, const struct cpprof__sample *s)
{
    const uint32_t *frames = e->p->frames.at + s->first_frame;
    size_t i;

    if (!s->n_frames)
        return 0;
    e->scratch.n = 0;
    for (i = 0; i < s->n_frames; i++)
        cpprof__put_varint(&e->scratch, (uint64_t)frames[i] + 1);
    cpprof__put_end(&e->scratch, 1, 0);
    e->failed |= e->scratch.failed;
    return e->failed ? 0 : intern(e, &e->stacks, e->scratch.data, e->scratch.n);
}

/* All samples with the values of one type. Each has one, also if it is 0. */
static void
put_samples(struct encoder *e, size_t type)
{
    const struct pprof_profile *p = e->p;
    size_t i;

    for (i = 0; i < p->samples.n && !e->failed && !e->out->failed; i++) {
        const struct cpprof__sample *s = &p->samples.at[i];
        size_t mark = cpprof__put_begin(e->out), value;

        cpprof__put_uint_opt(e->out, 1, e->stack_of[i]);
        if (s->labels)
            put_labels(e, s->labels);
        value = cpprof__put_begin(e->out);
        cpprof__put_varint(e->out, (uint64_t)cpprof__values(p, i)[type]);
        cpprof__put_end(e->out, 4, value);
        cpprof__put_end(e->out, 2, mark);
    }
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

static uint32_t
comments_attribute(struct encoder *e)
{
    size_t mark = begin_attribute(e, number_of_name(e, CPPROF__OTLP_COMMENT)),
           array = cpprof__put_begin(&e->scratch), one, i;

    for (i = 0; i < e->p->comments.n; i++) {
        one = cpprof__put_begin(&e->scratch);
        put_text_value(e, &e->scratch, e->p->comments.at[i]);
        cpprof__put_end(&e->scratch, 1, one);
    }
    cpprof__put_end(&e->scratch, VALUE_ARRAY, array);
    return end_attribute(e, mark, 0);
}

static void
put_profile_attributes(struct encoder *e)
{
    const struct pprof_info *info = &e->p->info;
    uint64_t found[4];
    size_t n = 0, i, mark;

    if (e->p->comments.n)
        found[n++] = comments_attribute(e);
    if (info->drop_frames)
        found[n++] =
            text_attribute(e, CPPROF__OTLP_DROP_FRAMES, info->drop_frames);
    if (info->keep_frames)
        found[n++] =
            text_attribute(e, CPPROF__OTLP_KEEP_FRAMES, info->keep_frames);
    if (info->doc_url)
        found[n++] = text_attribute(e, CPPROF__OTLP_DOC_URL, info->doc_url);
    mark = cpprof__put_begin(e->out);
    for (i = 0; i < n; i++)
        cpprof__put_varint(e->out, found[i]);
    if (n)
        cpprof__put_end(e->out, 11, mark);
}

static void
put_profile(struct encoder *e, size_t type)
{
    const struct pprof_info *info = &e->p->info;
    size_t mark = cpprof__put_begin(e->out);

    put_value_type(e, 1, &e->p->sample_types.at[type]);
    put_samples(e, type);
    if (info->time_ns)
        cpprof__put_fixed64(e->out, 3, (uint64_t)info->time_ns);
    if (info->duration_ns > 0) /* which has no sign there */
        cpprof__put_uint(e->out, 4, (uint64_t)info->duration_ns);
    /* Parca reads it without looking whether it is there. */
    put_value_type(e, 5, &info->period_type);
    cpprof__put_uint_opt(e->out, 6, (uint64_t)info->period);
    put_profile_attributes(e);
    cpprof__put_end(e->out, 2, mark);
}

/* ------------------------------------------------------------- scope ---- */

static void
put_order(struct cpprof__buffer *out, size_t first, size_t n)
{
    size_t mark = cpprof__put_begin(out), value, array, one, i;

    cpprof__put_bytes(out, 1, CPPROF__OTLP_ORDER, strlen(CPPROF__OTLP_ORDER));
    value = cpprof__put_begin(out);
    array = cpprof__put_begin(out);
    for (i = 0; i < n; i++) {
        one = cpprof__put_begin(out);
        cpprof__put_uint(out, VALUE_INT, i == 0 ? first : i - (i <= first));
        cpprof__put_end(out, 1, one);
    }
    cpprof__put_end(out, VALUE_ARRAY, array);
    cpprof__put_end(out, 2, value);
    cpprof__put_end(out, 3, mark);
}

static void
put_scope(struct encoder *e, size_t first)
{
    size_t mark = cpprof__put_begin(e->out);
    uint32_t type = e->p->info.default_sample_type;

    cpprof__put_bytes(e->out, 1, "cpprof", 6);
    cpprof__put_bytes(e->out, 2, CPPROF_VERSION_TEXT,
                      strlen(CPPROF_VERSION_TEXT));
    if (e->p->sample_types.n)
        put_order(e->out, first, e->p->sample_types.n);
    if (type)
        cpprof__otlp_put_pair(e->out, 3, CPPROF__OTLP_DEFAULT_TYPE,
                              strlen(CPPROF__OTLP_DEFAULT_TYPE),
                              text_of(e, type),
                              cpprof__strings_n(&e->p->strings, type));
    cpprof__put_end(e->out, 1, mark);
}

/* ---------------------------------------------------------- resource ---- */

/* The last part of the path of the first mapping. */
static const char *
program_of(const struct encoder *e)
{
    const char *path, *slash;

    if (!e->p->mappings.n)
        return "";
    path = text_of(e, e->p->mappings.at[0].file);
    slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ------------------------------------------------------------ tables ---- */

/* An entry of a table of bytes. */
static void
put_table(struct encoder *e, uint32_t field,
          const struct cpprof__strings *table)
{
    size_t i;

    for (i = 0; i < table->table.n; i++)
        cpprof__put_bytes(e->out, field,
                          cpprof__strings_text(table, (uint32_t)i),
                          cpprof__strings_n(table, (uint32_t)i));
}

static void
put_indices(struct cpprof__buffer *out, uint32_t field, const uint64_t *at,
            size_t n)
{
    size_t mark = cpprof__put_begin(out), i;

    for (i = 0; i < n; i++)
        cpprof__put_varint(out, at[i]);
    if (n)
        cpprof__put_end(out, field, mark);
}

static bool
is_gnu_build_id(const char *text)
{
    size_t n = strlen(text);

    return n && strspn(text, "0123456789abcdefABCDEF") == n;
}

static void
put_mapping(struct encoder *e, const struct pprof_mapping *m)
{
    static const char *const has[] = CPPROF__OTLP_HAS;
    const char *build_id = text_of(e, m->build_id);
    char hash[CPPROF__HTLHASH_CHARS + 1];
    uint64_t found[6];
    size_t n = 0, mark;
    unsigned bit;

    if (m->build_id)
        found[n++] =
            text_attribute(e,
                           is_gnu_build_id(build_id) ? CPPROF__OTLP_BUILD_ID
                                                     : CPPROF__OTLP_BUILD_ID_GO,
                           m->build_id);
    if (m->build_id && e->options->htlhash &&
        e->options->htlhash(text_of(e, m->file), build_id, hash))
        found[n++] = name_attribute(e, CPPROF__OTLP_HTLHASH, hash);
    for (bit = 0; bit < 4; bit++)
        if (m->flags >> bit & 1)
            found[n++] = true_attribute(e, has[bit]);
    mark = cpprof__put_begin(e->out);
    cpprof__put_uint_opt(e->out, 1, m->start);
    cpprof__put_uint_opt(e->out, 2, m->limit);
    cpprof__put_uint_opt(e->out, 3, m->offset);
    cpprof__put_uint_opt(e->out, 4, number(e, m->file));
    put_indices(e->out, 5, found, n);
    cpprof__put_end(e->out, DICTIONARY_MAPPING, mark);
}

/* Who runs what a mapping has. Our modules call that by the interpreter. */
static const char *
frame_type(const struct encoder *e, const struct pprof_location *l)
{
    static const char *const types[][2] = {{"[lua]", "lua"},
                                           {"[luajit]", "luajit"},
                                           {"[python]", "cpython"},
                                           {"[kernel.kallsyms]", "kernel"}};
    const char *file = text_of(e, cpprof__location_file(e->p, l));
    size_t i;

    for (i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(file, types[i][0]) == 0)
            return types[i][1];
    return "native";
}

static void
put_location(struct encoder *e, const struct pprof_location *l)
{
    uint64_t found[2];
    size_t n = 0, i, mark, line_mark;

    found[n++] = name_attribute(e, CPPROF__OTLP_FRAME_TYPE, frame_type(e, l));
    if (l->flags & PPROF_FOLDED)
        found[n++] = true_attribute(e, CPPROF__OTLP_IS_FOLDED);
    mark = cpprof__put_begin(e->out);
    if (l->mapping != PPROF_NONE)
        cpprof__put_uint(e->out, 1, (uint64_t)l->mapping + 1);
    cpprof__put_uint_opt(e->out, 2, l->address);
    for (i = 0; i < l->n_lines; i++) {
        const struct pprof_line *line = &e->p->lines.at[l->first_line + i];

        line_mark = cpprof__put_begin(e->out);
        cpprof__put_uint(e->out, 1, (uint64_t)line->function + 1);
        cpprof__put_uint_opt(e->out, 2, (uint64_t)line->line);
        cpprof__put_uint_opt(e->out, 3, (uint64_t)line->column);
        cpprof__put_end(e->out, 3, line_mark);
    }
    put_indices(e->out, 4, found, n);
    cpprof__put_end(e->out, DICTIONARY_LOCATION, mark);
}

static void
put_function(struct encoder *e, const struct pprof_function *f)
{
    size_t mark = cpprof__put_begin(e->out);

    cpprof__put_uint_opt(e->out, 1, number(e, f->name));
    cpprof__put_uint_opt(e->out, 2, number(e, f->system_name));
    cpprof__put_uint_opt(e->out, 3, number(e, f->file));
    cpprof__put_uint_opt(e->out, 4, (uint64_t)f->start_line);
    cpprof__put_end(e->out, DICTIONARY_FUNCTION, mark);
}

/* Tables of bytes come last: the others fill them. */
static void
put_dictionary(struct encoder *e)
{
    const struct pprof_profile *p = e->p;
    size_t mark = cpprof__put_begin(e->out), i;

    cpprof__put_bytes(e->out, DICTIONARY_MAPPING, "", 0);
    for (i = 0; i < p->mappings.n && !e->failed; i++)
        put_mapping(e, &p->mappings.at[i]);
    cpprof__put_bytes(e->out, DICTIONARY_LOCATION, "", 0);
    for (i = 0; i < p->locations.n && !e->failed; i++)
        put_location(e, &p->locations.at[i]);
    cpprof__put_bytes(e->out, DICTIONARY_FUNCTION, "", 0);
    for (i = 0; i < p->functions.n && !e->failed; i++)
        put_function(e, &p->functions.at[i]);
    put_table(e, DICTIONARY_LINK, &e->links);
    put_table(e, DICTIONARY_ATTRIBUTE, &e->attributes);
    put_table(e, DICTIONARY_STACK, &e->stacks);
    put_table(e, DICTIONARY_STRING, &e->strings);
    cpprof__put_end(e->out, DATA_DICTIONARY, mark);
}

/* --------------------------------------------------------------- all ---- */

/* The type that a viewer shows first: the default one, else the last. */
static size_t
first_type(const struct pprof_profile *p)
{
    size_t i;

    for (i = 0; i < p->sample_types.n; i++)
        if (p->info.default_sample_type &&
            p->sample_types.at[i].type == p->info.default_sample_type)
            return i;
    return p->sample_types.n ? p->sample_types.n - 1 : 0;
}

static void
put_resource_profiles(struct encoder *e)
{
    size_t n = e->p->sample_types.n, first = first_type(e->p), i;
    size_t mark = cpprof__put_begin(e->out), inner;

    inner = cpprof__put_begin(e->out);
    cpprof__otlp_resource(e->out, e->options->resource, program_of(e));
    cpprof__put_end(e->out, 1, inner);
    inner = cpprof__put_begin(e->out);
    put_scope(e, first);
    for (i = 0; i < n; i++)
        put_profile(e, i == 0 ? first : i - (i <= first));
    cpprof__put_end(e->out, 2, inner);
    cpprof__put_end(e->out, DATA_RESOURCE_PROFILES, mark);
}

static bool
begin(struct encoder *e)
{
    size_t i;

    e->numbers = cpprof__calloc(e->p->strings.table.n, sizeof *e->numbers);
    e->spans = cpprof__calloc(e->p->labels.sets.n, sizeof *e->spans);
    e->stack_of = cpprof__calloc(e->p->samples.n + 1, sizeof *e->stack_of);
    if (!e->numbers || !e->spans || !e->stack_of ||
        !cpprof__strings_begin(&e->strings) ||
        !cpprof__strings_begin(&e->attributes) ||
        !cpprof__strings_begin(&e->stacks) || !cpprof__strings_begin(&e->links))
        return false;
    /* A span that is made may be empty, but ends behind 0. */
    cpprof__buffer_append(&e->label_bytes, "", 1);
    for (i = 0; i < e->p->samples.n && !e->failed; i++)
        e->stack_of[i] = stack_of(e, &e->p->samples.at[i]);
    return !e->failed;
}

static void
end(struct encoder *e)
{
    cpprof__strings_free(&e->strings);
    cpprof__strings_free(&e->attributes);
    cpprof__strings_free(&e->stacks);
    cpprof__strings_free(&e->links);
    cpprof__buffer_free(&e->scratch);
    cpprof__buffer_free(&e->label_bytes);
    cpprof__free(e->numbers);
    cpprof__free(e->spans);
    cpprof__free(e->stack_of);
}

enum cpprof_status
cpprof__otlp_encode(const struct pprof_profile *p,
                    const struct cpprof__otlp_options *options,
                    struct cpprof__buffer *out, struct cpprof_error *error)
{
    struct encoder e = {.p = p, .options = options, .out = out};

    e.failed = !begin(&e);
    if (!e.failed)
        put_resource_profiles(&e);
    if (!e.failed)
        put_dictionary(&e);
    e.failed |= out->failed || e.label_bytes.failed;
    end(&e);
    return e.failed ? cpprof__fail_nomem(error) : CPPROF_OK;
}
