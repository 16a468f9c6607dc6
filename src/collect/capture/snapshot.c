/* SPDX-License-Identifier: MIT */
/*
 * The second half of <cpprof/captures.h>. A snapshot is records of numbers. It
 * holds the stacks and label sets that they refer to, and the tables keep all
 * mappings, so nothing else is needed, whatever is unloaded meanwhile.
 *
 * The difference is written by what writes the whole profile: the heap's writer
 * or the one of records.
 */
#include <cpprof/captures.h>

#include "arch/clock.h"
#include "base/options.h"
#include "base/status.h"
#include "base/writer.h"
#include "collect/capture/kept_records.h"
#include "collect/heap/heap_profile.h"
#include "collect/registry/custom.h"
#include "collect/registry/registry.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/uncancelled.h"
#include "own/memory.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FLAGS                                                                  \
    ((CPPROF__PROFILE_FLAGS & ~CPPROF_FLAG_LEGACY) | CPPROF_FLAG_SINCE_START | \
     CPPROF_FLAG_IN_USE)

struct cpprof_snapshot {
    struct cpprof_profile *profile;
    const struct cpprof__builtin *builtin; /* or NULL: a custom one */
    uint32_t flags;
    pid_t pid;
    int64_t time_ns; /* CLOCK_BOOTTIME; 0: an empty snapshot */
    struct cpprof__kept base;
};

/* What a snapshot or a difference needs while it is made. */
struct moment {
    struct cpprof_profile_options options;
    uintptr_t above; /* return address of the public call */
    int64_t time_ns;
    struct cpprof__kept now;
    struct cpprof__heap_records heap; /* of a heap */
};

/* ---- records of now --------------------------------------------------- */

static bool
is_heap(const struct cpprof_snapshot *s)
{
    return s->builtin && !s->builtin->records;
}

static struct cpprof_heap_options
heap_options(const struct cpprof_snapshot *s,
             const struct cpprof_profile_options *options)
{
    struct cpprof_heap_options heap = {
        .size = sizeof heap,
        .symbolize = options->symbolize,
        .flags = s->flags & (CPPROF_FLAG_LABELS | CPPROF_FLAG_PEAK),
    };

    if (s->builtin == &cpprof__builtin_allocs)
        heap.flags |= CPPROF_FLAG_ALLOCS;
    return heap;
}

static enum cpprof_status
take_heap(const struct cpprof_snapshot *s, struct moment *m,
          struct cpprof_error *error)
{
    struct cpprof_heap_options options = heap_options(s, &m->options);
    struct cpprof__source source;
    enum cpprof_status status;

    options.symbolize = CPPROF_SYMBOLIZE_NONE; /* not yet */
    status = cpprof__heap_own_source(&options, &source, error);
    if (status == CPPROF_OK)
        status = cpprof__heap_records_take(source.heap, source.number,
                                           options.flags, &m->heap, error);
    if (status == CPPROF_OK && !cpprof__kept_heap(&m->now, &m->heap))
        status = cpprof__fail_nomem(error);
    return status;
}

static struct cpprof__records_form
form_of(const struct cpprof_snapshot *s)
{
    return s->builtin
               ? *s->builtin->form
               : cpprof__custom_form(cpprof__registry_custom(s->profile));
}

static enum cpprof_status
take_records(const struct cpprof_snapshot *s, struct moment *m,
             struct cpprof_error *error)
{
    struct cpprof__stack_record *records = NULL;
    enum cpprof_status status;
    size_t n = 0;

    if (s->builtin)
        status = s->builtin->records(s->builtin, &m->options, m->above,
                                     &records, &n, error);
    else
        status = cpprof__custom_records(cpprof__registry_custom(s->profile),
                                        &records, &n, error);
    if (status == CPPROF_OK &&
        !cpprof__kept_records(&m->now, records, n, form_of(s).n_types))
        status = cpprof__fail_nomem(error);
    cpprof__free(records);
    return status;
}

static enum cpprof_status
take_now(const struct cpprof_snapshot *s, struct moment *m,
         struct cpprof_error *error)
{
    m->time_ns = (int64_t)cpprof__now_ns(CLOCK_BOOTTIME);
    m->options.flags =
        s->flags & ~(CPPROF_FLAG_SINCE_START | CPPROF_FLAG_IN_USE);
    return is_heap(s) ? take_heap(s, m, error) : take_records(s, m, error);
}

static void
free_moment(struct moment *m)
{
    cpprof__kept_free(&m->now);
    cpprof__free(m->heap.records);
}

/* ---- options ---------------------------------------------------------- */

static enum cpprof_status
check_options(const struct cpprof_profile_options *given,
              struct cpprof_profile_options *options,
              struct cpprof_error *error)
{
    enum cpprof_status status;

    memset(options, 0, sizeof *options);
    status = cpprof__options(options, sizeof *options, given,
                             "cpprof_profile_options", error);
    if (status != CPPROF_OK)
        return status;
    if (options->debug)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "a difference has no text form");
    return cpprof__options_flags(options->flags, FLAGS, options->symbolize,
                                 error);
}

static enum cpprof_status
check_write(const struct cpprof_snapshot *s,
            const struct cpprof_profile_options *given,
            struct cpprof_profile_options *options, struct cpprof_error *error)
{
    enum cpprof_status status = check_options(given, options, error);

    if (status != CPPROF_OK)
        return status;
    if (options->flags && options->flags != s->flags)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "flags are not those of the snapshot");
    return CPPROF_OK;
}

/* ---- taking ----------------------------------------------------------- */

enum cpprof_status
cpprof_snapshot_new(struct cpprof_profile *profile,
                    const struct cpprof_profile_options *given,
                    struct cpprof_snapshot **snapshot,
                    struct cpprof_error *error)
{
    CPPROF__NEED(error, snapshot);

    struct cpprof_snapshot *made = NULL;
    enum cpprof_status status;
    struct moment m = {.above = (uintptr_t)__builtin_return_address(0)};
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (!profile)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "pprof: use of zero Profile");
    status = check_options(given, &m.options, error);
    if (status != CPPROF_OK)
        return status;
    made = cpprof__calloc(1, sizeof *made);
    if (!made)
        return cpprof__fail_nomem(error);
    made->profile = profile;
    made->builtin = cpprof__registry_builtin(cpprof_profile_name(profile));
    made->flags = m.options.flags;
    status = take_now(made, &m, error);
    if (status == CPPROF_OK) {
        made->pid = getpid();
        if (!(made->flags & CPPROF_FLAG_SINCE_START)) {
            made->time_ns = m.time_ns;
            made->base = m.now;
            m.now.records = NULL;
        }
        *snapshot = made;
        made = NULL;
    }
    free_moment(&m);
    cpprof__free(made);
    return status;
}

void
cpprof_snapshot_free(struct cpprof_snapshot *snapshot)
{
    CPPROF__EXEMPT;

    if (snapshot)
        cpprof__kept_free(&snapshot->base);
    cpprof__free(snapshot);
}

/* ---- writing ---------------------------------------------------------- */

/* At least 1, because readers take 0 for unknown. */
static int64_t
duration_ns(const struct cpprof_snapshot *s, const struct moment *m)
{
    if (!s->time_ns)
        return 0;
    return m->time_ns > s->time_ns ? m->time_ns - s->time_ns : 1;
}

static enum cpprof_status
write_heap(const struct cpprof_snapshot *s, struct moment *m,
           const struct cpprof__kept *base, struct cpprof_writer writer,
           struct cpprof_error *error)
{
    struct cpprof_heap_options options = heap_options(s, &m->options);
    struct cpprof__source source;
    enum cpprof_status status =
        cpprof__heap_own_source(&options, &source, error);

    if (status != CPPROF_OK) {
        cpprof__writer_refuse(&writer);
        return status;
    }
    source.duration_ns = duration_ns(s, m);
    cpprof__kept_subtract_heap(&m->heap, base,
                               !(s->flags & CPPROF_FLAG_IN_USE));
    cpprof__tables_resolve(); /* after the records: all that they refer to */
    return cpprof__heap_write_proto(&source, &options, &m->heap, writer, error);
}

static enum cpprof_status
write_records(const struct cpprof_snapshot *s, const struct moment *m,
              const struct cpprof__kept *base, struct cpprof_writer writer,
              struct cpprof_error *error)
{
    struct cpprof__records_form form = form_of(s);
    enum cpprof_status status;
    struct cpprof__stack_record *records;
    size_t n;

    records = cpprof__kept_difference(&m->now, base, &n);
    if (!records) {
        cpprof__writer_refuse(&writer);
        return cpprof__fail_nomem(error);
    }
    form.duration_ns = duration_ns(s, m);
    status =
        cpprof__records_write(&form, records, n, &m->options, writer, error);
    cpprof__free(records);
    return status;
}

static enum cpprof_status
write_difference(const struct cpprof_snapshot *s, struct moment *m,
                 struct cpprof_writer writer, struct cpprof_error *error)
{
    const struct cpprof__kept nothing = {0};
    const struct cpprof__kept *base = &s->base;

    if (s->builtin && s->builtin->child_begins_anew && s->pid != getpid())
        base = &nothing;
    return is_heap(s) ? write_heap(s, m, base, writer, error)
                      : write_records(s, m, base, writer, error);
}

/* Make this moment the one that the next difference begins at. */
static void
move_base(struct cpprof_snapshot *s, struct moment *m)
{
    cpprof__kept_free(&s->base);
    s->base = m->now;
    m->now.records = NULL;
    s->time_ns = m->time_ns;
    s->pid = getpid();
}

static enum cpprof_status
write_delta(struct cpprof_snapshot *snapshot,
            const struct cpprof_writer *given_writer,
            const struct cpprof_profile_options *given, uintptr_t above,
            struct cpprof_error *error)
{
    struct moment m = {.above = above};
    struct cpprof_writer writer;
    enum cpprof_status status;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    status = cpprof__writer_take(given_writer, &writer, error);
    if (status == CPPROF_OK)
        status = check_write(snapshot, given, &m.options, error);
    if (status == CPPROF_OK)
        status = take_now(snapshot, &m, error);
    if (status == CPPROF_OK)
        status = write_difference(snapshot, &m, writer, error);
    else
        cpprof__writer_refuse(&writer);
    if (status == CPPROF_OK)
        move_base(snapshot, &m);
    free_moment(&m);
    return status;
}

enum cpprof_status
cpprof_snapshot_write_delta(struct cpprof_snapshot *snapshot,
                            const struct cpprof_writer *writer,
                            const struct cpprof_profile_options *options,
                            struct cpprof_error *error)
{
    CPPROF__NEED_BESIDES(writer, error, snapshot);
    return write_delta(snapshot, writer, options,
                       (uintptr_t)__builtin_return_address(0), error);
}

enum cpprof_status
cpprof_snapshot_write_delta_to_path(
    struct cpprof_snapshot *snapshot, const char *path,
    const struct cpprof_profile_options *options, struct cpprof_error *error)
{
    CPPROF__NEED(error, snapshot);
    return CPPROF__TO_PATH(path, error,
                           write_delta(snapshot, &writer, options,
                                       (uintptr_t)__builtin_return_address(0),
                                       error));
}
