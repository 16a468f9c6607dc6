/* SPDX-License-Identifier: MIT */
/*
 * Which counts of the session's stores belong to which capture.
 *
 * A capture has a list of segments: a store, and the counts that it had when
 * the capture began. When a store becomes full it is detached for the captures
 * that count with it, and all of them get a segment of the next one. At its
 * end a capture takes a view of the last store, which goes on being changed.
 *
 * Invariants: all of this happens under the session's drain_lock; the segments
 * of a capture are a run of stores up to the newest one, so the capture with
 * most segments has every store that is still needed; detached stores take at
 * most CPPROF__CAPTURE_BYTES.
 */
#include "collect/cpu/cpu_capture.h"

#include "arch/atomic.h"
#include "collect/cpu/session_internal.h"
#include "collect/runtime/own_threads.h"
#include "collect/threads/threads.h"
#include "own/memory.h"

#include <stdlib.h>
#include <time.h>

/* ---- segments --------------------------------------------------------- */

static struct cpprof__cpu_segment *
last_segment(struct cpprof__cpu_capture *c)
{
    return &c->segments[c->n_segments - 1];
}

static void
free_segment(struct cpprof__cpu_segment *segment)
{
    cpprof__free(segment->base.counts);
    cpprof__shared_store_release(segment->shared);
    *segment = (struct cpprof__cpu_segment){0};
}

static void
free_segments(struct cpprof__cpu_capture *c)
{
    uint32_t i;

    for (i = 0; i < c->n_segments; i++)
        free_segment(&c->segments[i]);
    c->n_segments = 0;
}

void
cpprof__cpu_capture_let_go(struct cpprof__cpu_capture *c)
{
    cpprof__store_view_free(&c->last);
    free_segments(c);
}

/* Add a segment for the current store. There is room for it. */
static bool
add_segment(struct cpprof__session *s, struct cpprof__cpu_capture *c,
            bool from_start)
{
    struct cpprof__cpu_segment segment = {0};

    if (!s->shared)
        s->shared = cpprof__shared_store_make(&s->spool.store);
    if (!s->shared || (!from_start && !cpprof__store_base_take(
                                          &segment.base, &s->spool.store)))
        return false;
    segment.shared = cpprof__shared_store_take(s->shared);
    c->segments[c->n_segments++] = segment;
    return true;
}

/* ---- begin and end ---------------------------------------------------- */

static void
note_session(const struct cpprof__session *s, struct cpprof__cpu_capture *c)
{
    c->lost_before = cpprof__session_lost(s);
    c->records_before = s->drain.n_records;
    c->cpu_before_ns = cpprof__program_cpu_ns();
    c->seen_before = cpprof__threads_seen();
    c->armed_before = cpprof__threads_armed();
    c->head.start_ns = cpprof__clock_ns(CLOCK_REALTIME);
    c->head.start_mono_ns = cpprof__clock_ns(CLOCK_MONOTONIC);
}

bool
cpprof__cpu_capture_begin(struct cpprof__session *s,
                          struct cpprof__cpu_capture *c, bool from_start)
{
    if (!from_start)
        cpprof__session_drain_locked(s);
    if (!add_segment(s, c, from_start))
        return false;
    c->head = *s->spool.head;
    c->cpu_before_ns = s->cpu_start_ns;
    if (!from_start)
        note_session(s, c);
    c->is_counting = true;
    c->next = s->captures;
    s->captures = c;
    return true;
}

static void
unlink_capture(struct cpprof__session *s, struct cpprof__cpu_capture *c)
{
    struct cpprof__cpu_capture **at = &s->captures;

    while (*at && *at != c)
        at = &(*at)->next;
    if (*at)
        *at = c->next;
    c->is_counting = false;
}

/* CPU time of the program since before_ns. All that an own thread has used by
 * its end is subtracted, also when it began before. */
static uint64_t
cpu_since(uint64_t before_ns)
{
    uint64_t now = cpprof__program_cpu_ns();

    return now > before_ns ? now - before_ns : 0;
}

void
cpprof__cpu_capture_end(struct cpprof__session *s,
                        struct cpprof__cpu_capture *c)
{
    if (!c->is_counting)
        return;
    unlink_capture(s, c);
    c->head.n_records = s->drain.n_records - c->records_before;
    c->head.n_threads =
        cpprof__threads_seen() - c->seen_before + c->armed_before;
    c->head.cpu_ns = cpu_since(c->cpu_before_ns);
    c->head.last_mono_ns = cpprof__clock_ns(CLOCK_MONOTONIC);
    c->lost += cpprof__session_lost(s) - c->lost_before;
    if (c->failed || !cpprof__store_view_make(&c->last, &s->spool.store,
                                              &last_segment(c)->base))
        c->failed = true;
}

void
cpprof__cpu_capture_end_all(struct cpprof__session *s)
{
    while (s->captures)
        cpprof__cpu_capture_end(s, s->captures);
}

/* ---- a full store ----------------------------------------------------- */

static void
fail_all(struct cpprof__session *s)
{
    struct cpprof__cpu_capture *c;

    for (c = s->captures; c; c = c->next) {
        free_segments(c);
        c->failed = true;
    }
}

/* Give up the oldest detached store. */
static void
drop_oldest(struct cpprof__session *s,
            const struct cpprof__shared_store *oldest)
{
    struct cpprof__cpu_capture *c;
    uint32_t i;

    for (c = s->captures; c; c = c->next) {
        if (!c->n_segments || c->segments[0].shared != oldest)
            continue;
        c->lost += oldest->store.head->total - c->segments[0].base.total;
        free_segment(&c->segments[0]);
        c->n_segments--;
        for (i = 0; i < c->n_segments; i++)
            c->segments[i] = c->segments[i + 1];
        c->segments[i] = (struct cpprof__cpu_segment){0};
    }
}

/* Segments are a run of stores up to the newest one, so the capture with most
 * segments has all stores. */
static struct cpprof__cpu_capture *
longest(struct cpprof__session *s)
{
    struct cpprof__cpu_capture *c, *found = s->captures;

    for (c = s->captures; c; c = c->next)
        if (c->n_segments > found->n_segments)
            found = c;
    return found;
}

static void
keep_bounds(struct cpprof__session *s)
{
    for (;;) {
        struct cpprof__cpu_capture *c = longest(s);
        size_t i, n_bytes = 0;

        for (i = 0; i < c->n_segments; i++)
            n_bytes += cpprof__shared_store_bytes(c->segments[i].shared);
        if (n_bytes <= CPPROF__CAPTURE_BYTES &&
            c->n_segments < CPPROF__CAPTURE_SEGMENTS)
            return;
        drop_oldest(s, c->segments[0].shared);
    }
}

/* Captures that stream have written theirs already. */
static void
forget_streamed(struct cpprof__session *s)
{
    struct cpprof__cpu_capture *c;

    for (c = s->captures; c; c = c->next)
        if (c->streams)
            free_segments(c);
}

static bool
put_aside(struct cpprof__session *s)
{
    void *block;

    if (!cpprof__spool_next_store(&s->spool, &block))
        return false;
    cpprof__shared_store_detach(s->shared, block);
    return true;
}

static bool
is_held(const struct cpprof__session *s)
{
    return s->shared && load_acquire(&s->shared->n_holds) > 1;
}

bool
cpprof__cpu_capture_next_store(struct cpprof__session *s)
{
    struct cpprof__cpu_capture *c;

    forget_streamed(s);
    if (is_held(s) && !put_aside(s))
        fail_all(s);
    /* A capture that is being written still reads the store. */
    if (!s->shared || !s->shared->block) {
        if (is_held(s) || !cpprof__spool_next_store(&s->spool, NULL))
            return false;
    }
    cpprof__shared_store_release(s->shared);
    s->shared = NULL;
    if (s->captures)
        keep_bounds(s);
    for (c = s->captures; c; c = c->next)
        if (!c->failed && !add_segment(s, c, true))
            c->failed = true;
    return true;
}
