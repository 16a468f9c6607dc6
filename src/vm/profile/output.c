/* SPDX-License-Identifier: MIT */
/*
 * The profile of interpreted code, written while it is being sampled.
 *
 * The writer's thread hands in records (functions, locations, samples) that
 * name each other by numbers of the session. Functions and locations go to the
 * builder at once; samples are merged first, since the same stack comes
 * often. When the tables of known functions and locations exceed
 * TABLES_BYTES they are written out and begun anew, so that memory stays
 * bounded.
 *
 * Invariants: used by one thread at a time; after a failure records are read
 * past and the profile fails at its end.
 */
#include "vm/profile/output.h"

#include "base/status.h"
#include "vm/profile/queue.h"
#include "vm/state/vm.h"

#include <string.h>

/*
 * Bytes of strings, functions and locations that are kept so as not to write
 * them twice. More takes more memory; less makes the file of a program with
 * much code larger.
 */
#define TABLES_BYTES (4u * 1024 * 1024)

struct function {
    uint64_t id; /* of the builder */
    uint32_t mapping;
    uint32_t zero;
};

/* In a profile that is merged the labels' bytes and a terminator are behind
 * ids; else, and before that, they are apart. */
struct sample {
    const uint64_t *ids; /* of locations, of the builder */
    uint32_t n_ids;
    uint32_t n_labels;
    int64_t value;
};

enum cpprof_status
cpprof__vm_output_make(struct cpprof__vm_output *output,
                       struct cpprof_writer writer,
                       const struct cpprof_vm_options *options,
                       struct cpprof_error *error)
{
    struct cpprof__value_type type = {
        options->mode == CPPROF_VM_MODE_CPU ? "cpu" : "wall", "nanoseconds"};
    const struct cpprof__profile_head head = {
        .sample_types = &type,
        .n_sample_types = 1,
        .period_type = type,
        .period = 1000000000 / options->rate_hz,
        .time_ns = (int64_t)cpprof__now_ns(CLOCK_REALTIME),
    };

    memset(output, 0, sizeof *output);
    output->is_merging = options->flags & CPPROF_FLAG_MERGE;
    return cpprof__builder_make(&head, writer, NULL, NULL, &output->builder,
                                error);
}

/* ---- samples ---------------------------------------------------------- */

static void
write_sample(struct cpprof__vm_output *output, const struct sample *sample,
             const char *labels)
{
    const struct cpprof__builder_ids ids = {sample->ids, sample->n_ids};

    output->labels.n = 0;
    cpprof__labels_decode(labels, sample->n_labels, &output->labels);
    cpprof__builder_add_located(output->builder, &sample->value, &ids,
                                output->labels.at, output->labels.n);
    output->failed |= output->labels.failed;
}

/* What a sample is looked up by. */
struct lookup {
    const struct sample *all, *sample;
    const char *labels;
};

static bool
is_equal(void *ctx, uint32_t value)
{
    const struct lookup *l = ctx;
    const struct sample *a = &l->all[value], *b = l->sample;

    return a->n_ids == b->n_ids && a->n_labels == b->n_labels &&
           memcmp(a->ids, b->ids, a->n_ids * sizeof *a->ids) == 0 &&
           memcmp(a->ids + a->n_ids, l->labels, a->n_labels) == 0;
}

/* Copy the sample, with its labels behind its ids; false: no memory. */
static bool
add_new(struct cpprof__vm_output *output, uint64_t hash, struct lookup *l)
{
    struct sample made = *l->sample;
    size_t n_ids = made.n_ids * sizeof *made.ids;
    size_t n = output->samples.n / sizeof made;
    char *copy = cpprof__arena_alloc(&output->arena, n_ids + made.n_labels + 1);

    if (!copy)
        return false;
    memcpy(copy, made.ids, n_ids);
    memcpy(copy + n_ids, l->labels, made.n_labels);
    copy[n_ids + made.n_labels] = 0;
    made.ids = (const uint64_t *)copy;
    cpprof__buffer_append(&output->samples, &made, sizeof made);
    return !output->samples.failed && n < CPPROF__INDEX_NONE &&
           cpprof__index_add(&output->sample_index, hash, (uint32_t)n);
}

/* Add to the value of the equal sample, or copy it; false: no memory. */
static bool
merge(struct cpprof__vm_output *output, const struct sample *sample,
      const char *labels)
{
    struct sample *all = (struct sample *)output->samples.data;
    struct lookup l = {all, sample, labels};
    uint64_t hash = cpprof__hash_bytes(
        labels, sample->n_labels,
        cpprof__hash_bytes(sample->ids, sample->n_ids * sizeof *sample->ids,
                           0));
    uint32_t found =
        cpprof__index_find(&output->sample_index, hash, is_equal, &l);

    if (found == CPPROF__INDEX_NONE)
        return add_new(output, hash, &l);
    all[found].value += sample->value;
    return true;
}

static void
add_sample(struct cpprof__vm_output *output, const struct sample *sample,
           const char *labels)
{
    if (!output->is_merging)
        write_sample(output, sample, labels);
    else if (!merge(output, sample, labels))
        output->failed = true;
}

void
cpprof__vm_output_own(struct cpprof__vm_output *output,
                      enum cpprof__own_frame frame, uint64_t value_ns)
{
    uint64_t id;
    struct sample sample = {&id, 1, 0, (int64_t)value_ns};

    if (!value_ns || output->failed)
        return;
    id = cpprof__builder_own_location(output->builder, frame);
    if (id)
        add_sample(output, &sample, "");
}

/* ---- records ---------------------------------------------------------- */

static void
keep(struct cpprof__vm_output *output, struct cpprof__buffer *numbers,
     const void *entry, size_t n_bytes)
{
    cpprof__buffer_append(numbers, entry, n_bytes);
    output->failed |= numbers->failed;
}

/* Toplevel code is named as its file. */
static void
note_function(struct cpprof__vm_output *output,
              const struct cpprof__vm_record_function *r)
{
    const struct cpprof__symbolizer_mapping mapping = {.path = r->mapping,
                                                       .build_id = ""};
    const char *name = (const char *)(r + 1), *system = name + r->n_name;
    const char *file = system + r->n_system_name;
    struct cpprof__frame f = {.start_line = r->start_line};
    struct function function = {0};

    f.file = r->n_file > 1 ? file : NULL;
    f.name = r->n_name > 1 ? name : f.file ? f.file : "[unknown]";
    f.system_name = r->n_system_name > 1 ? system : f.name;
    function.mapping = cpprof__builder_add_mapping(output->builder, &mapping);
    if (function.mapping != CPPROF__NO_MAPPING)
        function.id =
            cpprof__builder_add_function(output->builder, function.mapping, &f);
    keep(output, &output->functions, &function, sizeof function);
}

static void
note_location(struct cpprof__vm_output *output,
              const struct cpprof__vm_record_location *r)
{
    const struct function *function =
        (const struct function *)output->functions.data + r->function;
    uint64_t id = cpprof__builder_add_location(
        output->builder, function->mapping, function->id, r->line);

    keep(output, &output->locations, &id, sizeof id);
}

static void
gather_ids(struct cpprof__vm_output *output,
           const struct cpprof__vm_record_sample *r)
{
    const uint64_t *locations = (const uint64_t *)output->locations.data;
    const uint32_t *numbers = (const uint32_t *)(r + 1);
    uint64_t own = 0;
    uint32_t i;

    output->ids.n = 0;
    for (i = 0; i < r->n_frames; i++)
        keep(output, &output->ids, &locations[numbers[i]], sizeof *locations);
    if (r->is_truncated)
        own = cpprof__builder_own_location(output->builder,
                                           CPPROF__FRAME_TRUNCATED);
    else if (!r->n_frames)
        own =
            cpprof__builder_own_location(output->builder, CPPROF__FRAME_BROKEN);
    if (own)
        keep(output, &output->ids, &own, sizeof own);
}

static void
note_sample(struct cpprof__vm_output *output,
            const struct cpprof__vm_record_sample *r)
{
    const char *labels =
        (const char *)((const uint32_t *)(r + 1) + r->n_frames);
    struct sample sample = {
        .n_labels = r->n_labels,
        .value = (int64_t)r->value_ns,
    };

    gather_ids(output, r);
    sample.ids = (const uint64_t *)output->ids.data;
    sample.n_ids = (uint32_t)(output->ids.n / sizeof *sample.ids);
    if (!output->failed)
        add_sample(output, &sample, labels);
}

static void
bound_tables(struct cpprof__vm_output *output)
{
    if (cpprof__builder_in_tables(output->builder) > TABLES_BYTES)
        cpprof__builder_forget(output->builder);
}

/* After an allocation failed the numbers are meaningless. The rest is dropped,
 * and the profile fails. */
void
cpprof__vm_output_records(struct cpprof__vm_output *output, const uint8_t *data,
                          size_t n_bytes)
{
    const uint8_t *end = data + n_bytes;

    while (data < end && !output->failed) {
        const struct cpprof__vm_record *r =
            (const struct cpprof__vm_record *)data;

        switch ((enum cpprof__vm_record_type)r->type) {
        case CPPROF__VM_RECORD_FUNCTION:
            note_function(output, (const struct cpprof__vm_record_function *)r);
            break;
        case CPPROF__VM_RECORD_LOCATION:
            note_location(output, (const struct cpprof__vm_record_location *)r);
            break;
        case CPPROF__VM_RECORD_SAMPLE:
            note_sample(output, (const struct cpprof__vm_record_sample *)r);
            break;
        case CPPROF__VM_RECORD_FORGET:
            output->functions.n = 0;
            output->locations.n = 0;
            break;
        }
        data += r->n_bytes;
        bound_tables(output);
    }
}

/* ---- stacks of words -------------------------------------------------- */

struct known_word {
    uint64_t word;     /* the key */
    uint64_t location; /* of the builder */
};

static uint64_t
add_word(struct cpprof__vm_output *output, uint64_t word)
{
    struct cpprof__symbolizer_mapping mapping = {.build_id = ""};
    struct cpprof__frame frame;
    uint32_t number = CPPROF__NO_MAPPING;

    cpprof__script_frame(&cpprof__scripts, word, &frame, &mapping.path);
    if (*mapping.path)
        number = cpprof__builder_add_mapping(output->builder, &mapping);
    return cpprof__builder_add_location(
        output->builder, number,
        cpprof__builder_add_function(output->builder, number, &frame),
        frame.line);
}

static uint64_t
location_of_word(struct cpprof__vm_output *output, uint64_t word)
{
    struct known_word made = {word, 0};
    uint32_t number =
        cpprof__table_find(&output->words, &word, sizeof word, sizeof made);
    bool added;

    if (number != CPPROF__INDEX_NONE)
        return ((struct known_word *)output->words.entries.data)[number]
            .location;
    made.location = add_word(output, word);
    output->failed |=
        cpprof__table_add(&output->words, &made, sizeof word, sizeof made,
                          &added) == CPPROF__INDEX_NONE;
    return made.location;
}

void
cpprof__vm_output_stack(struct cpprof__vm_output *output,
                        const struct cpprof__vm_word_stack *stack)
{
    struct sample sample = {
        .n_labels = stack->labels ? stack->labels->n_encoded : 0,
        .value = (int64_t)stack->value_ns,
    };
    uint64_t id;
    uint32_t i;

    output->ids.n = 0;
    for (i = 0; i < stack->n && !output->failed; i++) {
        id = location_of_word(output, stack->words[i]);
        keep(output, &output->ids, &id, sizeof id);
    }
    if (stack->is_truncated) {
        id = cpprof__builder_own_location(output->builder,
                                          CPPROF__FRAME_TRUNCATED);
        keep(output, &output->ids, &id, sizeof id);
    }
    sample.ids = (const uint64_t *)output->ids.data;
    sample.n_ids = (uint32_t)(output->ids.n / sizeof id);
    if (!output->failed)
        add_sample(output, &sample,
                   stack->labels ? stack->labels->encoded : "");
    bound_tables(output);
}

/* ---- the end ---------------------------------------------------------- */

static void
free_rooms(struct cpprof__vm_output *output)
{
    cpprof__buffer_free(&output->functions);
    cpprof__buffer_free(&output->locations);
    cpprof__buffer_free(&output->ids);
    cpprof__table_free(&output->words);
    cpprof__label_list_free(&output->labels);
    cpprof__arena_free(&output->arena);
    cpprof__buffer_free(&output->samples);
    cpprof__index_free(&output->sample_index);
}

enum cpprof_status
cpprof__vm_output_end(struct cpprof__vm_output *output, int64_t duration_ns,
                      struct cpprof_error *error)
{
    const struct sample *samples = (const struct sample *)output->samples.data;
    size_t n = output->samples.n / sizeof *samples, i;
    enum cpprof_status status;

    for (i = 0; i < n && !output->failed; i++)
        write_sample(output, &samples[i],
                     (const char *)(samples[i].ids + samples[i].n_ids));
    if (output->failed)
        cpprof__builder_fail_nomem(output->builder);
    status = cpprof__builder_end(output->builder, duration_ns, error);
    free_rooms(output);
    return status;
}

void
cpprof__vm_output_give_up(struct cpprof__vm_output *output)
{
    cpprof__builder_fail_nomem(output->builder);
    cpprof__builder_end(output->builder, 0, NULL);
    free_rooms(output);
}
