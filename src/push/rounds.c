/* SPDX-License-Identifier: MIT */
/*
 * One round of profiles for each interval, handed over as they are made.
 *
 * CPU and wall profiles are captures that overlap a little: the next one begins
 * before the last one ends, so nothing falls between two. The other kinds only
 * grow: what a snapshot at the begin of the interval held is subtracted from
 * what there is at its end. All this runs on one thread, so there is no lock.
 */
#include "push/rounds.h"

#include "arch/clock.h"
#include "base/status.h"
#include "collect/capture/captures.h"
#include "collect/registry/registry.h"
#include "own/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of CPU and wall time, where nobody says another rate. */
#define USUAL_HZ 100

#define TIMED (CPPROF_PUSH_CPU | CPPROF_PUSH_WALL)

/* As they stand at the end. */
#define STANDING (CPPROF_PUSH_GOROUTINE | CPPROF_PUSH_CUSTOM)

static int
append(void *buffer, const void *data, size_t n)
{
    cpprof__buffer_append(buffer, data, n);
    return ((struct cpprof__buffer *)buffer)->failed ? ENOMEM : 0;
}

static struct cpprof_writer
writer_to(struct cpprof__buffer *file)
{
    return (struct cpprof_writer){sizeof(struct cpprof_writer), append, NULL,
                                  file};
}

/* Takes the file. */
static void
hand_over(struct cpprof__push_rounds *rounds, uint32_t kind, int64_t from_ns,
          int64_t until_ns, struct cpprof__buffer *file)
{
    const struct cpprof__push_profile profile = {kind,    file->data, file->n,
                                                 from_ns, until_ns,   NULL};

    rounds->take(rounds->ctx, &profile);
    cpprof__buffer_free(file);
}

/* ---- CPU and wall time ------------------------------------------------ */

static uint32_t
slower_hz(const struct cpprof__push_rounds *rounds, uint32_t rate_hz)
{
    uint32_t hz = (rate_hz ? rate_hz : USUAL_HZ) >> rounds->slower;

    return hz ? hz : 1;
}

static void
begin_capture(struct cpprof__push_rounds *rounds, uint32_t kind,
              struct cpprof__push_capture *c)
{
    struct cpprof_cpu_options cpu = rounds->plan->cpu;
    struct cpprof_wall_options wall = rounds->plan->wall;
    struct cpprof_writer writer;
    enum cpprof_status status;
    struct cpprof_error error;

    *c = (struct cpprof__push_capture){
        .from_ns = (int64_t)cpprof__now_ns(CLOCK_REALTIME)};
    c->file = cpprof__calloc(1, sizeof *c->file);
    writer = writer_to(c->file);
    cpu.rate_hz = slower_hz(rounds, cpu.rate_hz);
    wall.rate_hz = slower_hz(rounds, wall.rate_hz);
    if (!c->file)
        status = cpprof__fail_nomem(&error);
    else if (kind == CPPROF_PUSH_CPU)
        status = cpprof_capture_start_cpu(&writer, &cpu, &c->capture, &error);
    else
        status = cpprof_capture_start_wall(&writer, &wall, &c->capture, &error);
    if (status == CPPROF_OK)
        return;
    rounds->complain(rounds->ctx, &error);
    cpprof__free(c->file);
    memset(c, 0, sizeof *c);
}

static void
end_capture(struct cpprof__push_rounds *rounds, uint32_t kind,
            struct cpprof__push_capture *c)
{
    int64_t until_ns = (int64_t)cpprof__now_ns(CLOCK_REALTIME);
    struct cpprof_error error;

    if (!c->capture)
        return;
    if (cpprof_capture_stop(c->capture, &error) == CPPROF_OK)
        hand_over(rounds, kind, c->from_ns, until_ns, c->file);
    else
        rounds->complain(rounds->ctx, &error);
    cpprof__buffer_free(c->file);
    cpprof__free(c->file);
    memset(c, 0, sizeof *c);
}

static void
turn_capture(struct cpprof__push_rounds *rounds, unsigned i, bool goes_on)
{
    struct cpprof__push_capture ended = rounds->captures[i];
    uint32_t kind = 1u << i;

    /* Captures that run at the same time have one rate. */
    bool has_gap = goes_on && rounds->slower != rounds->are_slower;

    memset(&rounds->captures[i], 0, sizeof ended);
    if (goes_on && !has_gap)
        begin_capture(rounds, kind, &rounds->captures[i]);
    end_capture(rounds, kind, &ended);
    if (has_gap)
        begin_capture(rounds, kind, &rounds->captures[i]);
}

/* ---- the others ------------------------------------------------------- */

static struct cpprof_profile *
lookup(const struct cpprof__push_rounds *rounds, uint32_t kind)
{
    return cpprof_profile_lookup(cpprof__push_kind_name(rounds->plan, kind));
}

/* A kind that is not supported here, such as the heap of a program with its own
 * allocator, is not tried again. */
static void
take_snapshot(struct cpprof__push_rounds *rounds, unsigned i)
{
    struct cpprof_profile_options options = rounds->plan->profiles;
    uint32_t kind = 1u << i;
    enum cpprof_status status;
    struct cpprof_error error;

    if (rounds->absent & kind)
        return;
    options.flags |= kind == CPPROF_PUSH_HEAP ? CPPROF_FLAG_IN_USE : 0;
    status = cpprof_snapshot_new(lookup(rounds, kind), &options,
                                 &rounds->snapshots[i], &error);
    if (status != CPPROF_OK)
        rounds->complain(rounds->ctx, &error);
    if (status == CPPROF_UNSUPPORTED)
        rounds->absent |= kind;
}

/* The interval of such a kind ends when its turn comes. */
static void
turn_other(struct cpprof__push_rounds *rounds, unsigned i)
{
    int64_t from_ns = rounds->from_ns[i],
            until_ns = (int64_t)cpprof__now_ns(CLOCK_REALTIME);
    struct cpprof_profile_options options = rounds->plan->profiles;
    uint32_t kind = 1u << i;
    struct cpprof__buffer file = {0};
    const struct cpprof_writer writer = writer_to(&file);
    enum cpprof_status status;
    struct cpprof_error error;

    if (kind == CPPROF_PUSH_GOROUTINE) {
        status = cpprof_profile_write(lookup(rounds, kind), &writer, &options,
                                      &error);
    } else if (!rounds->snapshots[i]) {
        take_snapshot(rounds, i);
        return;
    } else {
        options.flags = 0;
        status = cpprof_snapshot_write_delta(rounds->snapshots[i], &writer,
                                             &options, &error);
    }
    rounds->from_ns[i] = until_ns;
    if (status == CPPROF_OK)
        hand_over(rounds, kind, from_ns, until_ns, &file);
    else
        rounds->complain(rounds->ctx, &error);
    cpprof__buffer_free(&file);
}

/* ---- of the program's own --------------------------------------------- */

static void
write_custom(struct cpprof__push_rounds *rounds, struct cpprof_profile *one,
             int64_t from_ns)
{
    const struct cpprof_profile_options options = rounds->plan->profiles;
    struct cpprof__buffer file = {0};
    const struct cpprof_writer writer = writer_to(&file);
    struct cpprof__push_profile profile = {
        .kind = CPPROF_PUSH_CUSTOM,
        .from_ns = from_ns,
        .until_ns = (int64_t)cpprof__now_ns(CLOCK_REALTIME),
        .series = cpprof_profile_name(one),
    };
    struct cpprof_error error;

    if (cpprof_profile_write(one, &writer, &options, &error) == CPPROF_OK) {
        profile.data = file.data;
        profile.n = file.n;
        rounds->take(rounds->ctx, &profile);
    } else {
        rounds->complain(rounds->ctx, &error);
    }
    cpprof__buffer_free(&file);
}

/* All that have values, as they stand. */
static void
turn_custom(struct cpprof__push_rounds *rounds, unsigned i)
{
    size_t n = cpprof_profile_list(NULL, 0), k;
    struct cpprof_profile **all = cpprof__calloc(n, sizeof *all);
    int64_t from_ns = rounds->from_ns[i];

    rounds->from_ns[i] = (int64_t)cpprof__now_ns(CLOCK_REALTIME);
    if (!all)
        return;
    cpprof_profile_list(all, n);
    for (k = 0; k < n; k++)
        if (all[k] && !cpprof__registry_builtin(cpprof_profile_name(all[k])) &&
            cpprof_profile_count(all[k]))
            write_custom(rounds, all[k], from_ns);
    cpprof__free(all);
}

/* ----------------------------------------------------------------------- */

void
cpprof__push_rounds_begin(struct cpprof__push_rounds *rounds)
{
    unsigned i;

    for (i = 0; i < CPPROF__PUSH_KINDS; i++) {
        uint32_t kind = rounds->plan->kinds & 1u << i;

        rounds->from_ns[i] = (int64_t)cpprof__now_ns(CLOCK_REALTIME);
        if (kind & TIMED)
            begin_capture(rounds, kind, &rounds->captures[i]);
        else if (kind & ~STANDING)
            take_snapshot(rounds, i);
    }
}

/* Captures end first, so that they do not contain the work of writing the
 * others. */
void
cpprof__push_rounds_turn(struct cpprof__push_rounds *rounds,
                         enum cpprof__push_turn turn)
{
    uint32_t kinds = rounds->plan->kinds;
    unsigned i;

    for (i = 0; i < CPPROF__PUSH_KINDS; i++)
        if (kinds & TIMED & 1u << i)
            turn_capture(rounds, i, turn == CPPROF__PUSH_ON);
    rounds->are_slower = rounds->slower;
    for (i = 0; i < CPPROF__PUSH_KINDS; i++)
        if (kinds & ~TIMED & ~CPPROF_PUSH_CUSTOM & 1u << i)
            turn_other(rounds, i);
        else if (kinds & CPPROF_PUSH_CUSTOM & 1u << i)
            turn_custom(rounds, i);
    if (turn == CPPROF__PUSH_LAST)
        cpprof__push_rounds_drop(rounds);
}

void
cpprof__push_rounds_resume(struct cpprof__push_rounds *rounds)
{
    unsigned i;

    for (i = 0; i < CPPROF__PUSH_KINDS; i++)
        if (rounds->plan->kinds & TIMED & 1u << i &&
            !rounds->captures[i].capture)
            begin_capture(rounds, 1u << i, &rounds->captures[i]);
}

void
cpprof__push_rounds_drop(struct cpprof__push_rounds *rounds)
{
    unsigned i;

    for (i = 0; i < CPPROF__PUSH_KINDS; i++) {
        struct cpprof__push_capture *c = &rounds->captures[i];

        cpprof__capture_cancel(c->capture);
        if (c->file)
            cpprof__buffer_free(c->file);
        cpprof__free(c->file);
        memset(c, 0, sizeof *c);
        cpprof_snapshot_free(rounds->snapshots[i]);
        rounds->snapshots[i] = NULL;
    }
}
