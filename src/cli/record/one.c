/* SPDX-License-Identifier: MIT */
/*
 * One profile of many processes, for `record -one`: each process's profile is
 * read back as it is written, gets the labels "process" and "pid", and is added
 * up. So there is no more than one beside the sum in memory.
 *
 * What a profile says in words (comments) is about its process. The sum says in
 * how many it was.
 */
#include "cli/record/record.h"

#include "base/status.h"
#include "base/text.h"
#include "cli/fetch/debuginfod.h"

#include <cpprof/pprof.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A writer into memory. ctx is a struct cpprof__buffer. */

static int
append(void *ctx, const void *data, size_t n_bytes)
{
    struct cpprof__buffer *b = ctx;

    cpprof__buffer_append(b, data, n_bytes);
    return b->failed ? ENOMEM : 0;
}

static int
close_nothing(void *ctx, int failed)
{
    (void)ctx;
    (void)failed;
    return 0;
}

struct cpprof_writer
cpprof__record_writer(struct cpprof__buffer *bytes)
{
    return (struct cpprof_writer){sizeof(struct cpprof_writer), append,
                                  close_nothing, bytes};
}

void
cpprof__record_sum_free(struct cpprof__record_sum *sum)
{
    pprof_merger_free(sum->merger);
    sum->merger = NULL;
    CPPROF__ARRAY_FREE(&sum->processes);
}

static int
by_process(const void *a, const void *b)
{
    const struct cpprof__record_process *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid > y->pid ? 1 : -1;
    return (x->pid_namespace > y->pid_namespace) -
           (x->pid_namespace < y->pid_namespace);
}

size_t
cpprof__record_sum_processes(struct cpprof__record_sum *sum)
{
    size_t n = 0, i;

    if (!sum->processes.n)
        return 0;
    qsort(sum->processes.at, sum->processes.n, sizeof *sum->processes.at,
          by_process);
    for (i = 0; i < sum->processes.n; i++)
        n += !i ||
             by_process(&sum->processes.at[i], &sum->processes.at[i - 1]) != 0;
    return n;
}

/* The time from the first begin to the last end. */
static void
add_time(struct cpprof__record_sum *sum, const struct pprof_profile *profile)
{
    struct pprof_info info = {.size = sizeof info};

    pprof_get_info(profile, &info);
    if (!sum->start_ns || info.time_ns < sum->start_ns)
        sum->start_ns = info.time_ns;
    if (info.time_ns + info.duration_ns > sum->end_ns)
        sum->end_ns = info.time_ns + info.duration_ns;
}

enum cpprof_status
cpprof__record_sum_add(struct cpprof__record_sum *sum, const char *name,
                       struct cpprof__record_process process,
                       const struct cpprof__buffer *bytes,
                       struct cpprof_error *error)
{
    struct pprof_profile *profile = NULL;
    enum cpprof_status status =
        pprof_read_data(bytes->data, bytes->n, NULL, &profile, error);
    struct cpprof__record_process *at = CPPROF__ARRAY_ADD(&sum->processes);
    char clean[NAME_MAX + 1];

    if (!at)
        status = cpprof__fail_nomem(error);
    else
        *at = process;
    snprintf(clean, sizeof clean, "%s", name);
    cpprof__clean_text(clean);
    if (status == CPPROF_OK && !sum->merger)
        status = pprof_merger_new(&sum->merger, error);
    if (status == CPPROF_OK)
        status = pprof_set_label(profile, "process", clean, error);
    if (status == CPPROF_OK)
        status = pprof_set_num_label(profile, "pid", process.pid, NULL, error);
    if (status == CPPROF_OK && process.pid_namespace &&
        process.pid_namespace != cpprof__record_pid_namespace(getpid()))
        status =
            pprof_set_num_label(profile, "pid_namespace",
                                (int64_t)process.pid_namespace, NULL, error);
    if (status == CPPROF_OK) {
        add_time(sum, profile);
        pprof_remove_comments(profile);
        status = pprof_merger_add(sum->merger, profile, error);
    }
    pprof_free(profile);
    return status;
}

enum cpprof_status
cpprof__record_sum_join(struct cpprof__record_sum *sum,
                        struct cpprof__record_sum *other,
                        struct cpprof_error *error)
{
    struct pprof_profile *profile = NULL;
    enum cpprof_status status = CPPROF_OK;

    if (!other->merger)
        return CPPROF_OK;
    if (!CPPROF__ARRAY_ROOM(&sum->processes, other->processes.n))
        return cpprof__fail_nomem(error);
    memcpy(sum->processes.at + sum->processes.n, other->processes.at,
           other->processes.n * sizeof *sum->processes.at);
    sum->processes.n += other->processes.n;
    if (sum->merger) {
        status = pprof_merger_finish(other->merger, &profile, error);
        if (status == CPPROF_OK)
            status = pprof_merger_add(sum->merger, profile, error);
        pprof_free(profile);
    } else {
        sum->merger = other->merger;
        other->merger = NULL;
    }
    if (!sum->start_ns || other->start_ns < sum->start_ns)
        sum->start_ns = other->start_ns;
    if (other->end_ns > sum->end_ns)
        sum->end_ns = other->end_ns;
    sum->n_samples += other->n_samples;
    sum->n_lost += other->n_lost;
    cpprof__record_sum_free(other);
    return status;
}

/* Names that servers have. They are asked about the sum: one process would be
 * named by them, and the same function of an earlier one not. */
static enum cpprof_status
fetch_names(struct pprof_profile *profile,
            const struct cpprof__record_options *options,
            struct cpprof_error *error)
{
    bool is_fast = options->symbolize == CPPROF_SYMBOLIZE_FUNCTIONS;
    const struct pprof_symbolize_options symbolize = {
        .size = sizeof symbolize,
        .flags = is_fast ? PPROF_SYMBOLIZE_FAST : PPROF_SYMBOLIZE_LINES,
        .fetch = cpprof__debuginfod_fetch,
    };
    enum cpprof_status status;

    if (!cpprof__debuginfod_is_on())
        return CPPROF_OK;
    status = pprof_symbolize(profile, &symbolize, error);
    return status == CPPROF_OK
               ? pprof_demangle(profile, PPROF_DEMANGLE_FULL, 0, error)
               : status;
}

/* ---- what no process of the sum has ---- */

/* So much, and such a part, is not the sampling's own error. */
#define MISSING_MIN_NS 100000000
#define MISSING_PART   20

static int64_t
total(const struct pprof_profile *profile, size_t column)
{
    struct pprof_sample sample = {.size = sizeof sample};
    size_t n = pprof_sample_count(profile), i;
    int64_t sum = 0;

    for (i = 0; i < n; i++) {
        pprof_get_sample(profile, i, &sample);
        sum += sample.values[column];
    }
    return sum;
}

static enum cpprof_status
add_frame(struct pprof_profile *profile, uint32_t *location,
          struct cpprof_error *error)
{
    const struct pprof_new_function function = {
        .size = sizeof function, .name = "[processes without a profile]"};
    struct pprof_line line = {0};
    const struct pprof_new_location at = {
        .size = sizeof at, .mapping = PPROF_NONE, .lines = &line, .n_lines = 1};
    enum cpprof_status status =
        pprof_add_function(profile, &function, &line.function, error);

    return status == CPPROF_OK
               ? pprof_add_location(profile, &at, location, error)
               : status;
}

/* CPU time that the kernel knows of, and no profile: that of processes that
 * were too short, or did not load the library. */
static enum cpprof_status
add_missing(struct pprof_profile *profile, int64_t used_ns,
            struct cpprof_error *error)
{
    struct pprof_info info = {.size = sizeof info};
    int64_t values[2] = {0, used_ns};
    uint32_t location;
    enum cpprof_status status;
    const struct pprof_new_sample sample = {.size = sizeof sample,
                                            .locations = &location,
                                            .n_locations = 1,
                                            .values = values};

    pprof_get_info(profile, &info);
    if (pprof_sample_type_count(profile) != 2 || info.period <= 0)
        return CPPROF_OK;
    values[1] -= total(profile, 1);
    values[0] = values[1] / info.period;
    if (values[1] < MISSING_MIN_NS || values[1] < used_ns / MISSING_PART)
        return CPPROF_OK;
    status = add_frame(profile, &location, error);
    return status == CPPROF_OK ? pprof_add_sample(profile, &sample, NULL, error)
                               : status;
}

enum cpprof_status
cpprof__record_sum_write(struct cpprof__record_sum *sum,
                         const struct cpprof__record_options *options,
                         const char *comment, const char *path,
                         struct cpprof_error *error)
{
    struct pprof_profile *profile = NULL;
    enum cpprof_status status =
        pprof_merger_finish(sum->merger, &profile, error);

    if (status == CPPROF_OK)
        status = fetch_names(profile, options, error);
    if (status == CPPROF_OK && sum->used_ns)
        status = add_missing(profile, sum->used_ns, error);
    if (status == CPPROF_OK) {
        pprof_set_time(profile, sum->start_ns, sum->end_ns - sum->start_ns);
        status = pprof_add_comment(profile, comment, error);
    }
    if (status == CPPROF_OK)
        status =
            pprof_write_to_path(profile, path, PPROF_FORMAT_GZIP, NULL, error);
    pprof_free(profile);
    return status;
}
