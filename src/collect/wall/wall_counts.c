/* SPDX-License-Identifier: MIT */
/*
 * The counts of a wall profile: a hash table by stack, labels and state with
 * open addressing, and its copy for a recorder.
 *
 * A count's number is the order in which it came. A base is the array of
 * counts at one moment by that number, so the difference of two moments needs
 * no lookup.
 *
 * Invariants: slots are a power of two and at most half full; for a recorder a
 * record is stored before the head that counts it.
 */
#include "collect/wall/wall_counts.h"

#include "arch/atomic.h"
#include "arch/mix.h"
#include "arch/place.h"
#include "collect/signal/tables/label_numbers.h"
#include "collect/signal/tables/mirror.h"
#include "collect/signal/tables/reserve.h"
#include "collect/signal/tables/stack_tree.h"
#include "own/memory.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_MIN 1024u

#define MAGIC "cpprofL1"

struct cpprof__wall_kept *cpprof__wall_kept;

static struct cpprof__wall_count *
slot_of(const struct cpprof__wall_counts *counts,
        const struct cpprof__wall_count *key)
{
    uint64_t which = (uint64_t)key->labels << 32 | key->state;
    uint32_t at =
        (uint32_t)cpprof__mix_u64(cpprof__mix_u64(which) + key->stack);

    for (;; at++) {
        struct cpprof__wall_count *p =
            &counts->slots[at & (counts->n_slots - 1)];

        if (!p->n || (p->stack == key->stack && p->labels == key->labels &&
                      p->state == key->state))
            return p;
    }
}

static bool
grow(struct cpprof__wall_counts *counts)
{
    struct cpprof__wall_counts larger = *counts;
    uint32_t i;

    larger.n_slots = counts->n_slots ? 2 * counts->n_slots : SLOTS_MIN;
    larger.slots = cpprof__calloc(larger.n_slots, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (i = 0; i < counts->n_slots; i++)
        if (counts->slots[i].n)
            *slot_of(&larger, &counts->slots[i]) = counts->slots[i];
    cpprof__free(counts->slots);
    *counts = larger;
    return true;
}

/* ---- for a recorder --------------------------------------------------- */

static void
mirror_head(void)
{
    cpprof__mirror(&cpprof__wall_kept->head, sizeof cpprof__wall_kept->head);
}

/* Store the record before the head that counts it. */
static void
keep(const struct cpprof__wall_count *slot, int64_t ns)
{
    struct cpprof__wall_kept_head *head = &cpprof__wall_kept->head;
    struct cpprof__wall_count *record;

    if (slot->number >= CPPROF__WALL_RECORDS) {
        head->lost_ns += ns;
        mirror_head();
        return;
    }
    record = &cpprof__wall_kept->records[slot->number];
    *record = *slot;
    cpprof__mirror(record, sizeof *record);
    if (slot->number > head->n_records) {
        store_release(&head->n_records, slot->number);
        mirror_head();
    }
}

bool
cpprof__wall_keep_reserve(void)
{
    return cpprof__reserve_once((void **)&cpprof__wall_kept,
                                sizeof *cpprof__wall_kept) != NULL;
}

void
cpprof__wall_keep_begin(struct cpprof__wall_counts *counts)
{
    struct cpprof__wall_kept_head *head;

    if (!cpprof__wall_keep_reserve())
        return;
    head = &cpprof__wall_kept->head;
    memset(head, 0, sizeof *head);
    memcpy(head->magic, MAGIC, sizeof head->magic);
    counts->is_kept = true;
}

void
cpprof__wall_keep_summary(const struct cpprof__wall_summary *summary)
{
    struct cpprof__wall_kept_head *head = &cpprof__wall_kept->head;

    if (!cpprof__wall_kept)
        return;
    head->rate_hz = summary->options.rate_hz;
    head->flags = summary->options.flags;
    head->n_threads = summary->n_threads;
    head->n_looks = summary->n_looks;
    head->n_asked = summary->n_asked;
    head->time_ns = summary->time_ns;
    head->duration_ns = summary->duration_ns;
    mirror_head();
}

CPPROF__FIRST_STEP void
cpprof__wall_keep_forked(void)
{
    if (cpprof__wall_kept && cpprof__wall_kept->head.n_records)
        memset(&cpprof__wall_kept->head, 0, sizeof cpprof__wall_kept->head);
}

static bool
is_wanted(const struct cpprof__wall_count *count, uint32_t flags)
{
    return !(flags & CPPROF_FLAG_OFF_CPU) ||
           count->state != CPPROF__WALL_RUNNING;
}

static bool
makes_sense(const struct cpprof__wall_count *record)
{
    return record->n > 0 && record->ns >= 0 &&
           record->state <= CPPROF__WALL_UNINTERRUPTIBLE;
}

bool
cpprof__wall_kept_open(struct cpprof__wall_kept *copy,
                       struct cpprof__wall_counts *counts,
                       struct cpprof__wall_summary *summary)
{
    const struct cpprof__wall_kept_head *head = &copy->head;
    uint32_t i, n = head->n_records;

    if (memcmp(head->magic, MAGIC, sizeof head->magic) || !head->rate_hz ||
        head->rate_hz > 1000 || head->time_ns <= 0)
        return false;
    n = n < CPPROF__WALL_RECORDS ? n : CPPROF__WALL_RECORDS - 1;
    for (i = 1; i <= n; i++) {
        if (!makes_sense(&copy->records[i]) ||
            !is_wanted(&copy->records[i], head->flags))
            copy->records[i].n = 0;
        if (head->flags & CPPROF_FLAG_NO_LABELS)
            copy->records[i].labels = 0;
    }
    *counts = (struct cpprof__wall_counts){
        .slots = copy->records + 1,
        .n_slots = n,
        .lost_ns = head->lost_ns > 0 ? head->lost_ns : 0};
    summary->options.rate_hz = head->rate_hz;
    summary->options.flags = head->flags;
    summary->n_threads = head->n_threads;
    summary->n_looks = head->n_looks;
    summary->n_asked = head->n_asked;
    summary->time_ns = head->time_ns;
    summary->duration_ns = head->duration_ns > 0 ? head->duration_ns : 0;
    return true;
}

/* ---- counting --------------------------------------------------------- */

/* NULL: no memory. */
static struct cpprof__wall_count *
add(struct cpprof__wall_counts *counts, const struct cpprof__wall_count *key,
    int64_t n, int64_t ns)
{
    struct cpprof__wall_count *p;

    if (2 * counts->n >= counts->n_slots && !grow(counts) &&
        counts->n + 1 >= counts->n_slots)
        return NULL;
    p = slot_of(counts, key);
    if (!p->n) {
        *p = *key;
        p->n = p->ns = 0;
        p->number = ++counts->n;
        cpprof__tree_hold(p->stack);
        cpprof__tree_hold(p->labels);
    }
    p->n += n;
    p->ns += ns;
    return p;
}

/* A thread that sleeps is counted by the same numbers for as long as it does.
 */
void
cpprof__wall_add(struct cpprof__wall_counts *counts,
                 const struct cpprof__wall_count *key, int64_t ns)
{
    struct cpprof__wall_count at = *key;
    const struct cpprof__wall_count *p;

    cpprof__tree_use(at.stack);
    cpprof__tree_use(at.labels);
    if (counts->is_kept && at.labels && cpprof__wall_counts_are_full(counts))
        at.labels = CPPROF__LABELS_LOST;
    p = add(counts, &at, 1, ns);
    if (!p)
        counts->lost_ns += ns;
    else if (counts->is_kept)
        keep(p, ns);
}

bool
cpprof__wall_counts_are_full(const struct cpprof__wall_counts *counts)
{
    return counts->n >= CPPROF__WALL_RECORDS / 2;
}

void
cpprof__wall_counts_free(struct cpprof__wall_counts *counts)
{
    uint32_t i;

    for (i = 0; i < counts->n_slots; i++) {
        cpprof__tree_drop(counts->slots[i].stack);
        cpprof__tree_drop(counts->slots[i].labels);
    }
    cpprof__free(counts->slots);
    *counts = (struct cpprof__wall_counts){0};
}

/* ---- a part ----------------------------------------------------------- */

bool
cpprof__wall_base_take(struct cpprof__wall_base *base,
                       const struct cpprof__wall_counts *counts)
{
    uint32_t i;

    *base = (struct cpprof__wall_base){.lost_ns = counts->lost_ns};
    if (!counts->n)
        return true;
    base->at = cpprof__calloc(counts->n, sizeof *base->at);
    if (!base->at)
        return false;
    base->n = counts->n;
    for (i = 0; i < counts->n_slots; i++) {
        const struct cpprof__wall_count *p = &counts->slots[i];

        if (p->n)
            base->at[p->number - 1] = (struct cpprof__wall_sum){p->n, p->ns};
    }
    return true;
}

void
cpprof__wall_base_free(struct cpprof__wall_base *base)
{
    cpprof__free(base->at);
    *base = (struct cpprof__wall_base){0};
}

bool
cpprof__wall_counts_since(const struct cpprof__wall_counts *counts,
                          const struct cpprof__wall_base *base, uint32_t flags,
                          struct cpprof__wall_counts *since)
{
    uint32_t i;

    since->lost_ns += counts->lost_ns - base->lost_ns;
    for (i = 0; i < counts->n_slots; i++) {
        struct cpprof__wall_count p = counts->slots[i];

        if (p.n && p.number <= base->n) {
            p.n -= base->at[p.number - 1].n;
            p.ns -= base->at[p.number - 1].ns;
        }
        if (flags & CPPROF_FLAG_NO_LABELS)
            p.labels = 0;
        if (p.n && is_wanted(&p, flags) && !add(since, &p, p.n, p.ns))
            return false;
    }
    return true;
}
