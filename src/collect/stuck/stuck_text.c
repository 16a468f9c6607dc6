/* SPDX-License-Identifier: MIT */
/*
 * Sentences that a person reads:
 *
 *     deadlock 1, of 2 threads:
 *     thread 12 "worker" waits since 4.0 s for the mutex 0x55... held by thread
 *     13 "writer", which waits since 3.9 s for the mutex 0x55... held by thread
 *     12 "worker".
 *
 * and below them a block for each thread, as in a dump of all threads.
 */
#include "collect/stuck/stuck_text.h"

#include "base/status.h"
#include "collect/dump/dump.h"
#include "collect/encode/source.h"
#include "collect/store/tables.h"

#include <inttypes.h>
#include <string.h>

const char *
cpprof__stuck_verdict_name(enum cpprof__stuck_verdict verdict)
{
    /* ORDER: enum cpprof__stuck_verdict */
    static const char *const names[] = {"", "deadlock", "holder ended",
                                        "behind", "suspicion"};

    return names[verdict];
}

struct sentence {
    struct cpprof__buffer *out;
    const struct cpprof__stuck *stuck;
};

#define SAY(s, ...) cpprof__buffer_printf((s)->out, __VA_ARGS__)

/* A name may have any byte in it. */
static void
say_thread(const struct sentence *s, const struct cpprof__stuck_thread *t)
{
    const char *at;
    char c;

    SAY(s, "thread %d \"", t->tid);
    for (at = t->comm; *at; at++) {
        c = (unsigned char)*at < ' ' || *at == '"' || *at == ']' ? '?' : *at;
        cpprof__buffer_append(s->out, &c, 1);
    }
    SAY(s, "\"");
}

static void
say_since(const struct sentence *s, const struct cpprof__stuck_thread *t)
{
    const uint64_t ns = s->stuck->now_ns - t->since_ns;

    if (!t->since_ns || t->since_ns > s->stuck->now_ns)
        return;
    if (ns >= 120 * UINT64_C(1000000000))
        SAY(s, " since %" PRIu64 " minutes", ns / (60 * UINT64_C(1000000000)));
    else
        SAY(s, " since %.1f s", (double)ns / 1e9);
}

static const struct cpprof__stuck_thread *
holder_of(const struct sentence *s, const struct cpprof__stuck_thread *t)
{
    return t->holder_at < s->stuck->n ? &s->stuck->threads[t->holder_at] : NULL;
}

static void
say_holder(const struct sentence *s, const struct cpprof__stuck_thread *t)
{
    const struct cpprof__stuck_thread *holder = holder_of(s, t);

    if (t->wait.is_refused) {
        SAY(s, " that the kernel refuses, because it would close a circle or "
               "its holder has ended");
    } else if (t->is_holder_gone) {
        SAY(s, " held by thread %d, which has ended", t->wait.holder);
    } else if (holder) {
        SAY(s, t->wait.kind == CPPROF__FOR_JOIN ? " of " : " held by ");
        if (holder == t)
            SAY(s, "itself");
        else
            say_thread(s, holder);
    } else if (t->wait.holder) {
        SAY(s, " held by thread %d%s", t->wait.holder,
            t->wait.is_between ? " of this process or another" : "");
    } else if (t->wait.kind == CPPROF__FOR_WRITE_LOCK ||
               t->wait.kind == CPPROF__FOR_READ_LOCK) {
        SAY(s, " held by readers, who are not known");
    }
}

static void
say_wait(const struct sentence *s, const struct cpprof__stuck_thread *t)
{
    SAY(s, " waits");
    say_since(s, t);
    SAY(s, " for the %s",
        t->wait.kind == CPPROF__FOR_JOIN
            ? "end"
            : cpprof__waits_for_name(t->wait.kind));
    if (t->wait.lock)
        SAY(s, " 0x%" PRIxPTR, t->wait.lock);
    say_holder(s, t);
}

/* A cycle, from its thread with the lowest tid on. */
static void
say_cycle(const struct sentence *s, size_t first)
{
    const struct cpprof__stuck_thread *threads = s->stuck->threads, *t;
    size_t n = 0;

    t = &threads[first];
    do {
        n++;
        t = holder_of(s, t);
    } while (t && t != &threads[first]);
    SAY(s, "deadlock %u, of %zu thread%s:\n", threads[first].cycle, n,
        n == 1 ? "" : "s");
    t = &threads[first];
    say_thread(s, t);
    say_wait(s, t);
    for (t = holder_of(s, t); t && t != &threads[first]; t = holder_of(s, t)) {
        SAY(s, ", which");
        say_wait(s, t);
    }
    SAY(s, ".\n");
}

static void
say_cycles(const struct sentence *s)
{
    const struct cpprof__stuck *stuck = s->stuck;
    uint32_t said = 0;
    size_t i;

    for (said = 1; said <= stuck->n_cycles; said++) {
        for (i = 0; i < stuck->n; i++)
            if (stuck->threads[i].verdict == CPPROF__STUCK_CYCLE &&
                stuck->threads[i].cycle == said)
                break;
        if (i == stuck->n)
            continue;
        say_cycle(s, i);
        for (i = 0; i < stuck->n; i++)
            if (stuck->threads[i].verdict == CPPROF__STUCK_BEHIND &&
                stuck->threads[i].cycle == said) {
                SAY(s, "behind it: ");
                say_thread(s, &stuck->threads[i]);
                say_wait(s, &stuck->threads[i]);
                SAY(s, ".\n");
            }
        SAY(s, "\n");
    }
}

/* Those of no cycle with that verdict. */
static void
say_others(const struct sentence *s, enum cpprof__stuck_verdict verdict,
           const char *before, const char *after)
{
    size_t i, n = 0;

    for (i = 0; i < s->stuck->n; i++) {
        const struct cpprof__stuck_thread *t = &s->stuck->threads[i];

        if (t->verdict != verdict || t->cycle)
            continue;
        n++;
        SAY(s, "%s", before);
        say_thread(s, t);
        say_wait(s, t);
        SAY(s, "%s.\n", after);
    }
    if (n)
        SAY(s, "\n");
}

void
cpprof__stuck_put_sentences(struct cpprof__buffer *out,
                            const struct cpprof__stuck *stuck)
{
    const struct sentence s = {out, stuck};

    say_cycles(&s);
    say_others(&s, CPPROF__STUCK_ENDED, "", "");
    say_others(&s, CPPROF__STUCK_BEHIND, "", "");
    say_others(&s, CPPROF__STUCK_OLD,
               "suspicion: ", "; nobody has woken it since");
}

/* ---- with stacks ------------------------------------------------------ */

/* Is it in what is told: stuck, or waited for by one who is? */
static bool
is_told(const struct cpprof__stuck *stuck, size_t at)
{
    size_t i;

    if (stuck->threads[at].verdict)
        return true;
    for (i = 0; i < stuck->n; i++)
        if (stuck->threads[i].verdict && stuck->threads[i].holder_at == at)
            return true;
    return false;
}

/* The locks that others wait for. */
static void
say_held(const struct sentence *s, const struct cpprof__stuck_thread *holder)
{
    uintptr_t last = 0;
    size_t i;

    for (i = 0; i < s->stuck->n; i++) {
        const struct cpprof__stuck_thread *t = &s->stuck->threads[i];

        if (!t->verdict || holder_of(s, t) != holder || !t->wait.lock ||
            t->wait.lock == last)
            continue;
        last = t->wait.lock;
        SAY(s, ", holds the %s 0x%" PRIxPTR,
            t->wait.kind == CPPROF__FOR_MUTEX ? "mutex" : "rwlock", last);
    }
}

static void
put_thread(const struct sentence *s, struct cpprof__source_profile *profile,
           const struct cpprof__stuck_thread *t)
{
    const char *verdict = cpprof__stuck_verdict_name(t->verdict);

    say_thread(s, t);
    SAY(s, " [%s", *verdict ? verdict : "waited for");
    if (t->wait.kind == CPPROF__FOR_JOIN)
        SAY(s, ", waits for the end of thread %d", t->wait.holder);
    else if (t->wait.kind)
        SAY(s, ", waits for the %s", cpprof__waits_for_name(t->wait.kind));
    if (t->wait.lock)
        SAY(s, " 0x%" PRIxPTR, t->wait.lock);
    say_held(s, t);
    SAY(s, "]:\n");
    if (t->stack)
        cpprof__dump_put_stack(profile, t->stack);
    else
        SAY(s, "\tstack unavailable\n");
    SAY(s, "\n");
}

static enum cpprof_status
write_text(const struct cpprof__stuck *stuck, bool has_sentences,
           enum cpprof_symbolize symbolize, struct cpprof_writer writer,
           struct cpprof_error *error)
{
    struct cpprof__source_profile *profile;
    struct sentence s = {.stuck = stuck};
    enum cpprof_status status;
    size_t i;

    cpprof__tables_resolve();
    profile = cpprof__source_profile_make(NULL, symbolize, &writer, error);
    if (!profile)
        return CPPROF_NOMEM;
    cpprof__source_begin_text(profile, writer);
    s.out = &profile->text.out;
    if (has_sentences) {
        SAY(&s, "threadleak profile: total %zu\n\n", stuck->n_stuck);
        cpprof__stuck_put_sentences(s.out, stuck);
    }
    for (i = 0; i < stuck->n && profile->text.error.status == CPPROF_OK; i++)
        if (is_told(stuck, i))
            put_thread(&s, profile, &stuck->threads[i]);
    status = cpprof__text_end(&profile->text, error);
    cpprof__source_profile_free(profile);
    return status;
}

enum cpprof_status
cpprof__stuck_write_text(const struct cpprof__stuck *stuck,
                         enum cpprof_symbolize symbolize,
                         struct cpprof_writer writer,
                         struct cpprof_error *error)
{
    return write_text(stuck, true, symbolize, writer, error);
}

enum cpprof_status
cpprof__stuck_write_stacks(const struct cpprof__stuck *stuck,
                           enum cpprof_symbolize symbolize,
                           struct cpprof_writer writer,
                           struct cpprof_error *error)
{
    return write_text(stuck, false, symbolize, writer, error);
}
