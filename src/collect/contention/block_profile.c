/* SPDX-License-Identifier: MIT */
/*
 * The records of the block and the mutex profile. Waits that still go on are
 * asked of the threads themselves, as a dump of all threads asks. They are not
 * sampled, so each counts once.
 *
 * Source: Go runtime/pprof/pprof.go (writeProfileInternal,
 * printCountCycleProfile).
 */
#include "collect/contention/block_profile.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "base/status.h"
#include "collect/dump/dump.h"
#include "collect/registry/registry.h"
#include "collect/signal/heap/heap.h"
#include "collect/signal/waits/waits.h"
#include "collect/store/tables.h"
#include "own/memory.h"
#include <cpprof/profiles.h>

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

/* ---- text ------------------------------------------------------------- */

/*
 * Readers multiply a record by the period in the header, but our records have
 * their weights in them. So the header gives the fraction of the mutex profile
 * only if every record can be divided by it, which is so as long as the
 * fraction was never changed. Otherwise the period is 1 and the records are
 * printed as they are.
 */
static int64_t
put_mutex_head(const struct cpprof__records_form *form,
               struct cpprof__text_profile *text,
               const struct cpprof__stack_record *records, size_t n)
{
    int64_t period = cpprof__waits_set_mutex_fraction(-1);
    size_t i;

    if (form->source || period < 2)
        period = 1;
    for (i = 0; i < n; i++)
        if (records[i].values[0] % period || records[i].values[1] % period)
            period = 1;
    cpprof__text_printf(text,
                        "--- mutex:\ncycles/second=1000000000\n"
                        "sampling period=%" PRId64 "\n",
                        period);
    return period;
}

static int64_t
put_block_head(const struct cpprof__records_form *form,
               struct cpprof__text_profile *text,
               const struct cpprof__stack_record *records, size_t n)
{
    cpprof__text_printf(text, "--- contention:\ncycles/second=1000000000\n");
    return 1;
}

static const struct cpprof__value_type types[] = {{"contentions", "count"},
                                                  {"delay", "nanoseconds"}};

const struct cpprof__records_form cpprof__block_form = {
    .name = "block",
    .types = types,
    .n_types = 2,
    .period_type = {"contentions", "count"},
    .period = 1,
    .put_head = put_block_head,
};

const struct cpprof__records_form cpprof__mutex_form = {
    .name = "mutex",
    .types = types,
    .n_types = 2,
    .period_type = {"contentions", "count"},
    .period = 1,
    .put_head = put_mutex_head,
};

/* ---- records ---------------------------------------------------------- */

/* Rounded to the nearest, and at least 1. */
static int64_t
whole(uint64_t fractions)
{
    uint64_t n = fractions + (1u << (CPPROF__WAIT_FRACTION_BITS - 1));

    n >>= CPPROF__WAIT_FRACTION_BITS;
    return n ? (int64_t)n : 1;
}

static void
set_record(struct cpprof__stack_record *record, uint32_t stack, uint32_t labels,
           uint64_t count, uint64_t delay_ns)
{
    *record = (struct cpprof__stack_record){
        .values = {whole(count), (int64_t)delay_ns},
        .stack = stack,
        .labels = labels,
    };
}

static size_t
read_records(const struct cpprof__waits *waits,
             enum cpprof__wait_profile profile, uint32_t n_buckets,
             uint32_t lost, struct cpprof__stack_record *records)
{
    const struct cpprof__waits_head *head = load_acquire(&waits->head);
    uint64_t lost_count = head ? load_relaxed(&head->lost_count[profile]) : 0;
    struct cpprof__wait_bucket b;
    uint32_t i;
    size_t n = 0;

    for (i = 1; i < n_buckets; i++)
        if (cpprof__waits_read(waits, i, &b) && b.profile == profile)
            set_record(&records[n++], b.stack, b.labels, b.count, b.delay_ns);
    if (lost_count)
        set_record(&records[n++], lost, 0, lost_count,
                   load_relaxed(&head->lost_ns[profile]));
    return n;
}

enum cpprof_status
cpprof__block_records(const struct cpprof__waits *waits,
                      enum cpprof__wait_profile profile, uint32_t lost,
                      struct cpprof__stack_record **records, size_t *n,
                      struct cpprof_error *error)
{
    uint32_t n_buckets = cpprof__waits_n_buckets(waits);
    struct cpprof__stack_record *made =
        cpprof__calloc(n_buckets + 1ul, sizeof *made);

    if (!made)
        return cpprof__fail_nomem(error);
    cpprof__recycle_pause();
    *n = read_records(waits, profile, n_buckets, lost, made);
    cpprof__recycle_resume();
    *records = made;
    return CPPROF_OK;
}

/* ---- waits in progress ------------------------------------------------ */

static size_t
waiting_records(const struct cpprof__dump *dump, bool labels,
                struct cpprof__stack_record *records)
{
    const uint64_t one = 1u << CPPROF__WAIT_FRACTION_BITS;
    uint64_t now = cpprof__now_ns(CLOCK_MONOTONIC);
    size_t i, n = 0;

    for (i = 0; i < dump->n; i++) {
        const struct cpprof__dump_thread *t = &dump->threads[i];
        uint64_t since = t->wait.since_ns;

        if (t->wait.kind != CPPROF__WAITS_NOT && since < now)
            set_record(&records[n++], t->stack, labels ? t->labels : 0, one,
                       now - since);
    }
    return n;
}

/* Append them to records, which grow. */
static enum cpprof_status
add_waiting(bool labels, struct cpprof__stack_record **records, size_t *n,
            struct cpprof_error *error)
{
    struct cpprof__dump_wanted wanted = {.depth = CPPROF_RECORD_DEPTH};
    struct cpprof__stack_record *more;
    struct cpprof__dump dump;
    enum cpprof_status status;

    status = cpprof__dump_take_all(&wanted, &dump, error);
    if (status != CPPROF_OK)
        return status;
    more = cpprof__realloc(*records, (*n + dump.n + 1) * sizeof *more);
    if (more) {
        *records = more;
        *n += waiting_records(&dump, labels, more + *n);
    } else {
        status = cpprof__fail_nomem(error);
    }
    cpprof__dump_free(&dump);
    return status;
}

/* ---- the profiles of this process ------------------------------------- */

/* The stack that stands for waits that found no room; 0: there is no room even
 * for that. */
static uint32_t
lost_stack(void)
{
    static const uintptr_t frame[] = {CPPROF__FRAME_LOST};

    return load_acquire(&cpprof__tables.tree.head)
               ? cpprof__tree_add(&cpprof__tables.tree, frame, 1)
               : 0;
}

static enum cpprof_status
own_records(enum cpprof__wait_profile profile,
            struct cpprof__stack_record **records, size_t *n,
            struct cpprof_error *error)
{
    if (!load_acquire(&cpprof__tables.tree.head))
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "there was no memory for stacks at the start");
    return cpprof__block_records(&cpprof__waits, profile, lost_stack(), records,
                                 n, error);
}

static enum cpprof__wait_profile
profile_of(const struct cpprof__builtin *self)
{
    return self == &cpprof__builtin_block ? CPPROF__WAIT_BLOCK
                                          : CPPROF__WAIT_MUTEX;
}

static enum cpprof_status
asked_records(const struct cpprof__builtin *self,
              const struct cpprof_profile_options *options, uintptr_t above,
              struct cpprof__stack_record **records, size_t *n,
              struct cpprof_error *error)
{
    bool labels = options->flags & CPPROF_FLAG_LABELS;
    enum cpprof_status status;
    size_t i;

    status = own_records(profile_of(self), records, n, error);
    if (status == CPPROF_OK && self == &cpprof__builtin_block &&
        options->flags & CPPROF_FLAG_IN_PROGRESS)
        status = add_waiting(labels, records, n, error);
    for (i = 0; i < *n && !labels; i++)
        (*records)[i].labels = 0;
    return status;
}

/* One record for each stack, as Go counts: label sets are not told apart. */
static enum cpprof_status
merged_records(const struct cpprof__builtin *self,
               struct cpprof__stack_record **records, size_t *n,
               struct cpprof_error *error)
{
    enum cpprof_status status =
        own_records(profile_of(self), records, n, error);
    size_t i;

    if (status != CPPROF_OK)
        return status;
    for (i = 0; i < *n; i++)
        (*records)[i].labels = 0;
    *n = cpprof__records_merge(self->form, *records, *n);
    return status;
}

static size_t
count(const struct cpprof__builtin *self)
{
    struct cpprof__stack_record *records = NULL;
    size_t n = 0;

    if (merged_records(self, &records, &n, NULL) != CPPROF_OK)
        n = 0;
    cpprof__free(records);
    return n;
}

static enum cpprof_status
add_all_records(const struct cpprof__builtin *self,
                struct cpprof__records *all_records, struct cpprof_error *error)
{
    struct cpprof__stack_record *records = NULL;
    enum cpprof_status status;
    size_t i, n = 0;

    status = merged_records(self, &records, &n, error);
    for (i = 0; i < n; i++)
        cpprof__records_add_stack(all_records, records[i].values,
                                  records[i].stack);
    cpprof__free(records);
    return status;
}

const struct cpprof__builtin cpprof__builtin_block = {
    .name = "block",
    .count = count,
    .all_records = add_all_records,
    .form = &cpprof__block_form,
    .records = asked_records,
    .child_begins_anew = true,
};

const struct cpprof__builtin cpprof__builtin_mutex = {
    .name = "mutex",
    .count = count,
    .all_records = add_all_records,
    .form = &cpprof__mutex_form,
    .records = asked_records,
    .child_begins_anew = true,
};

/* ---- the calls of <cpprof/profiles.h> about waits --------------------- */

#define AS_COMPILED                                                            \
    __asm__ volatile("") /* keeps the call above from being a tail call */

_Static_assert(sizeof(struct cpprof__wait) <= sizeof(struct cpprof_wait),
               "it fits the caller's");

int64_t
cpprof_block_set_rate(int64_t ns)
{
    return cpprof__waits_set_block_rate(ns);
}

int
cpprof_mutex_set_fraction(int n)
{
    return (int)cpprof__waits_set_mutex_fraction(n);
}

void
cpprof_wait_begin(struct cpprof_wait *wait, const void *lock)
{
    if (wait)
        cpprof__wait_begin((struct cpprof__wait *)wait,
                           CPPROF__WAITS_OTHER_LOCK, lock, NULL);
}

CPPROF__HOOK void
cpprof_wait_end(struct cpprof_wait *wait)
{
    if (wait)
        cpprof__wait_end((struct cpprof__wait *)wait, CPPROF__WAIT_GOT);
    AS_COMPILED;
}

CPPROF__HOOK void
cpprof_wait_released(const void *lock)
{
    struct cpprof__wait_charge charge;

    if (cpprof__wait_may_charge(lock) && cpprof__wait_release(lock, &charge))
        cpprof__wait_released(lock, charge, NULL);
    AS_COMPILED;
}

CPPROF__HOOK void
cpprof_block_add(int64_t ns, unsigned skip)
{
    if (!cpprof__waits_are_off())
        cpprof__wait_event(ns, NULL, skip);
    AS_COMPILED;
}
