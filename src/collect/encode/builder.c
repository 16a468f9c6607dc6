/* SPDX-License-Identifier: MIT */
/*
 * The life of a profile: its head, its samples, its end, and the stream they go
 * to: compressed a member at a time and handed to the writer. The first failure
 * stops the stream for good. The tables are in builder_tables.c.
 *
 * Fields come in this order: sample types, period type, period, time; then
 * functions, locations and samples, each before it is first referred to; then
 * what is known only at the end: mappings (their Has* bits), comments,
 * duration, strings. Readers accept any order.
 */
#include "collect/encode/builder_internal.h"
#include "own/memory.h"

#include "arch/atomic.h"
#include "base/gzip.h"
#include "base/proto.h"
#include "base/status.h"
#include "base/writer.h"

#include <stdlib.h>
#include <string.h>

/* Fields of profile.proto's ValueType, Sample, Label and Mapping. */
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT };
enum { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_STR, LABEL_NUM, LABEL_NUM_UNIT };
enum {
    MAPPING_ID = 1,
    MAPPING_MEMORY_START,
    MAPPING_MEMORY_LIMIT,
    MAPPING_FILE_OFFSET,
    MAPPING_FILENAME,
    MAPPING_BUILD_ID,
    MAPPING_HAS_FUNCTIONS,
    MAPPING_HAS_FILENAMES,
    MAPPING_HAS_LINE_NUMBERS,
    MAPPING_HAS_INLINE_FRAMES
};

/* ---- the stream ------------------------------------------------------- */

void
cpprof__builder_fail_nomem(struct cpprof__builder *b)
{
    if (!cpprof__builder_failed(b))
        cpprof__fail_nomem(&b->error);
}

/* Write what is gathered as one gzip member; nothing when there is none. */
static void
flush(struct cpprof__builder *b)
{
    int sys;

    if (b->out.failed)
        cpprof__builder_fail_nomem(b);
    if (cpprof__builder_failed(b) || b->out.n == 0)
        return;
    b->packed.n = 0;
    if (cpprof__gzip(&b->packed, b->out.data, b->out.n, CPPROF__GZIP_LEVEL,
                     &b->error) == CPPROF_OK) {
        sys = b->writer.write(b->writer.ctx, b->packed.data, b->packed.n);
        if (sys)
            cpprof__fail(&b->error, CPPROF_SYSTEM, sys, "write: %s",
                         strerror(sys));
    }
    b->out.n = 0;
}

/* Write it once it fills a member. To be called between messages. */
static void
flush_full(struct cpprof__builder *b)
{
    if (b->out.failed || b->out.n >= b->member_bytes)
        flush(b);
}

/* ---- the head --------------------------------------------------------- */

static void
put_value_type(struct cpprof__builder *b, uint32_t field,
               const struct cpprof__value_type *v)
{
    uint32_t type = cpprof__builder_string(b, v->type);
    uint32_t unit = cpprof__builder_string(b, v->unit);
    size_t mark = cpprof__put_begin(&b->out);

    cpprof__put_uint(&b->out, VALUE_TYPE_TYPE, type);
    cpprof__put_uint(&b->out, VALUE_TYPE_UNIT, unit);
    cpprof__put_end(&b->out, field, mark);
}

static void
put_head(struct cpprof__builder *b, const struct cpprof__profile_head *head)
{
    size_t i;

    cpprof__builder_string(b, ""); /* string_table[0] */
    for (i = 0; i < head->n_sample_types; i++)
        put_value_type(b, PROFILE_SAMPLE_TYPE, &head->sample_types[i]);
    put_value_type(b, PROFILE_PERIOD_TYPE, &head->period_type);
    cpprof__put_uint_opt(&b->out, PROFILE_PERIOD, (uint64_t)head->period);
    cpprof__put_uint(&b->out, PROFILE_TIME_NANOS, (uint64_t)head->time_ns);
    b->n_values = head->n_sample_types;
    b->default_sample_type =
        cpprof__builder_string(b, head->default_sample_type);
    b->drop_frames = cpprof__builder_string(b, head->drop_frames);
    b->keep_frames = cpprof__builder_string(b, head->keep_frames);
}

static void
free_builder(struct cpprof__builder *b)
{
    struct cpprof__table *tables[] = {&b->strings, &b->functions, &b->locations,
                                      &b->mappings};
    size_t i;

    for (i = 0; i < sizeof tables / sizeof *tables; i++)
        cpprof__table_free(tables[i]);
    cpprof__arena_free(&b->arena);
    cpprof__free(b->recent_locations.slots);
    cpprof__free(b->recent_functions.slots);
    cpprof__buffer_free(&b->out);
    cpprof__buffer_free(&b->packed);
    cpprof__buffer_free(&b->comments);
    cpprof__buffer_free(&b->location_ids);
    cpprof__free(b);
}

enum cpprof_status
cpprof__builder_make(const struct cpprof__profile_head *head,
                     struct cpprof_writer writer,
                     const struct cpprof__symbolizer_ops *ops,
                     struct cpprof__symbolizer *symbolizer,
                     struct cpprof__builder **builder,
                     struct cpprof_error *error)
{
    struct cpprof__builder *b;

    if (head->n_sample_types < 1 ||
        head->n_sample_types > CPPROF__SAMPLE_TYPES_MAX || !head->time_ns) {
        cpprof__writer_refuse(&writer);
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "a profile needs a time and 1 to %d sample types",
                            CPPROF__SAMPLE_TYPES_MAX);
    }
    b = cpprof__calloc(1, sizeof *b);
    if (!b) {
        cpprof__writer_refuse(&writer);
        return cpprof__fail_nomem(error);
    }
    b->writer = writer;
    b->member_bytes = CPPROF__MEMBER_BYTES;
    b->ops = symbolizer ? ops : NULL;
    b->symbolizer = symbolizer;
    put_head(b, head);
    *builder = b;
    return CPPROF_OK;
}

void
cpprof__builder_use_scripts(struct cpprof__builder *b,
                            const struct cpprof__scripts *scripts)
{
    b->scripts = scripts;
}

uint32_t *
cpprof__builder_add_store(struct cpprof__builder *b,
                          const struct cpprof__store *store, size_t *n)
{
    size_t i, n_mappings = load_acquire(&store->head->n_mappings);
    uint32_t *numbers;

    if (n_mappings > CPPROF__STORE_MAPPINGS)
        n_mappings = CPPROF__STORE_MAPPINGS;
    numbers = cpprof__calloc(n_mappings + 1, sizeof *numbers);
    *n = numbers ? n_mappings : 0;
    if (!numbers)
        cpprof__builder_fail_nomem(b);
    for (i = 0; i < *n; i++) {
        const struct cpprof__symbolizer_mapping mapping =
            cpprof__store_mapping_at(store, i);

        numbers[i] = cpprof__builder_add_mapping(b, &mapping);
    }
    return numbers;
}

/* ---- samples ---------------------------------------------------------- */

static void
put_label(struct cpprof__builder *b, const struct cpprof__builder_label *label)
{
    uint32_t key = cpprof__builder_string(b, label->key);
    uint32_t str = cpprof__builder_string(b, label->str);
    uint32_t unit = label->str ? 0 : cpprof__builder_string(b, label->num_unit);
    size_t mark = cpprof__put_begin(&b->out);

    cpprof__put_uint_opt(&b->out, LABEL_KEY, key);
    cpprof__put_uint_opt(&b->out, LABEL_STR, str);
    if (!label->str)
        cpprof__put_uint_opt(&b->out, LABEL_NUM, (uint64_t)label->num);
    cpprof__put_uint_opt(&b->out, LABEL_NUM_UNIT, unit);
    cpprof__put_end(&b->out, SAMPLE_LABEL, mark);
}

/* Gather the ids of a stack in b->location_ids. Locations that are new are
 * written. */
static void
locate(struct cpprof__builder *b, const struct cpprof__builder_frame *stack,
       size_t n)
{
    size_t i;

    b->location_ids.n = 0;
    cpprof__builder_prefetch(b, stack, n);
    for (i = 0; i < n; i++) {
        uint64_t id = cpprof__builder_location_id(b, stack[i]);

        cpprof__buffer_append(&b->location_ids, &id, sizeof id);
    }
    if (b->location_ids.failed)
        cpprof__builder_fail_nomem(b);
}

void
cpprof__builder_add_located(struct cpprof__builder *b, const int64_t *values,
                            const struct cpprof__builder_ids *ids,
                            const struct cpprof__builder_label *labels,
                            size_t n_labels)
{
    size_t i, mark;

    if (cpprof__builder_failed(b))
        return;
    mark = cpprof__put_begin(&b->out);
    cpprof__put_uints(&b->out, SAMPLE_VALUE, (const uint64_t *)values,
                      b->n_values);
    cpprof__put_uints(&b->out, SAMPLE_LOCATION_ID, ids->at, ids->n);
    for (i = 0; i < n_labels; i++)
        put_label(b, &labels[i]);
    cpprof__put_end(&b->out, PROFILE_SAMPLE, mark);
    flush_full(b);
}

void
cpprof__builder_add_sample(struct cpprof__builder *b, const int64_t *values,
                           const struct cpprof__builder_frame *stack, size_t n,
                           const struct cpprof__builder_label *labels,
                           size_t n_labels)
{
    static const struct cpprof__builder_frame no_stack = {CPPROF__FRAME_BROKEN,
                                                          CPPROF__NO_MAPPING};

    if (cpprof__builder_failed(b))
        return;
    locate(b, n ? stack : &no_stack, n ? n : 1);
    cpprof__builder_add_located(
        b, values,
        &(struct cpprof__builder_ids){(const uint64_t *)b->location_ids.data,
                                      b->location_ids.n / sizeof(uint64_t)},
        labels, n_labels);
}

/* Is all that a frame stands for, inlined calls too, to be hidden? */
static bool
is_hidden(struct cpprof__builder *b, const struct cpprof__builder_frame *frame,
          bool (*hides)(const char *name))
{
    size_t mapping, i, n;

    if (frame->pc < CPPROF__FRAME_END || cpprof__is_script(frame->pc) ||
        frame->mapping >= CPPROF__MADE_CODE)
        return false;
    mapping = cpprof__builder_mapping_at(b, frame->mapping)->symbolizer_index;
    if (mapping == SIZE_MAX)
        return false;
    n = b->ops->resolve(b->symbolizer, mapping, frame->pc, b->lines,
                        CPPROF__LINES_MAX);
    for (i = 0; i < n; i++)
        if (!hides(b->lines[i].name))
            return false;
    return n > 0;
}

size_t
cpprof__builder_n_hidden(struct cpprof__builder *b,
                         const struct cpprof__builder_frame *stack, size_t n,
                         bool (*hides)(const char *name))
{
    size_t i = 0;

    if (!b->ops || !b->symbolizer || !hides)
        return 0;
    while (i < n && is_hidden(b, &stack[i], hides))
        i++;
    return i < n ? i : 0;
}

/* ---- the end ---------------------------------------------------------- */

void
cpprof__builder_add_comment(struct cpprof__builder *b, const char *text)
{
    uint32_t string = cpprof__builder_string(b, text);

    if (cpprof__builder_failed(b))
        return;
    cpprof__buffer_append(&b->comments, &string, sizeof string);
    if (b->comments.failed)
        cpprof__builder_fail_nomem(b);
}

static void
put_mapping(struct cpprof__buffer *out, uint64_t id,
            const struct cpprof__builder_known_mapping *m)
{
    size_t mark = cpprof__put_begin(out);

    cpprof__put_uint_opt(out, MAPPING_ID, id);
    cpprof__put_uint_opt(out, MAPPING_MEMORY_START, m->key.start);
    cpprof__put_uint_opt(out, MAPPING_MEMORY_LIMIT, m->key.limit);
    cpprof__put_uint_opt(out, MAPPING_FILE_OFFSET, m->key.offset);
    cpprof__put_uint_opt(out, MAPPING_FILENAME, m->key.path);
    cpprof__put_uint_opt(out, MAPPING_BUILD_ID, m->key.build_id);
    if (m->used) {
        cpprof__put_uint_opt(out, MAPPING_HAS_FUNCTIONS, m->has_functions);
        cpprof__put_uint_opt(out, MAPPING_HAS_FILENAMES, m->has_filenames);
        cpprof__put_uint_opt(out, MAPPING_HAS_LINE_NUMBERS,
                             m->has_line_numbers);
        cpprof__put_uint_opt(out, MAPPING_HAS_INLINE_FRAMES,
                             m->has_inline_frames);
    }
    cpprof__put_end(out, PROFILE_MAPPING, mark);
}

static void
put_strings(struct cpprof__builder *b)
{
    const struct cpprof__builder_string *s =
        (const struct cpprof__builder_string *)b->strings.entries.data;
    size_t n = b->strings.entries.n / sizeof *s, i;

    for (i = 0; i < n; i++) {
        cpprof__put_bytes(&b->out, PROFILE_STRING_TABLE, s[i].text, s[i].n);
        flush_full(b);
    }
}

size_t
cpprof__builder_in_tables(const struct cpprof__builder *b)
{
    return b->strings.entries.n + b->functions.entries.n +
           b->locations.entries.n + b->arena.n_bytes;
}

/* A mapping refers to its strings by number. */
void
cpprof__builder_forget(struct cpprof__builder *b)
{
    if (cpprof__builder_failed(b))
        return;
    put_strings(b);
    if (!cpprof__builder_failed(b))
        cpprof__builder_clear_tables(b);
}

static void
put_mappings(struct cpprof__builder *b, bool of_scripts)
{
    size_t n =
        b->mappings.entries.n / sizeof(struct cpprof__builder_known_mapping);
    size_t i;

    for (i = 0; i < n; i++) {
        if (cpprof__builder_mapping_at(b, i)->is_script != of_scripts)
            continue;
        put_mapping(&b->out, i + 1, cpprof__builder_mapping_at(b, i));
        flush_full(b);
    }
}

/* Readers take the first mapping for the main binary: scripts come last. */
static void
put_tail(struct cpprof__builder *b, int64_t duration_ns)
{
    const uint32_t *comments = (const uint32_t *)b->comments.data;
    size_t i;

    put_mappings(b, false);
    put_mappings(b, true);
    for (i = 0; i < b->comments.n / sizeof *comments; i++)
        cpprof__put_uint(&b->out, PROFILE_COMMENT, comments[i]);
    cpprof__put_uint_opt(&b->out, PROFILE_DEFAULT_SAMPLE_TYPE,
                         b->default_sample_type);
    cpprof__put_uint_opt(&b->out, PROFILE_DROP_FRAMES, b->drop_frames);
    cpprof__put_uint_opt(&b->out, PROFILE_KEEP_FRAMES, b->keep_frames);
    cpprof__put_uint_opt(&b->out, PROFILE_DURATION_NANOS,
                         (uint64_t)duration_ns);
    put_strings(b);
}

enum cpprof_status
cpprof__builder_end(struct cpprof__builder *b, int64_t duration_ns,
                    struct cpprof_error *error)
{
    enum cpprof_status status;

    if (!cpprof__builder_failed(b))
        put_tail(b, duration_ns);
    flush(b);
    cpprof__writer_end(&b->writer, &b->error);
    status = b->error.status;
    if (status != CPPROF_OK && error)
        *error = b->error;
    free_builder(b);
    return status;
}
