/* SPDX-License-Identifier: MIT */
#include "collect/wall_counts.h"

#include "arch/atomic.h"
#include "collect/signal/mirror.h"

#include <stdlib.h>
#include <string.h>

#define PLACES_MIN 1024u

#define MAGIC "cpprofL1"

struct cpprof__wall_kept cpprof__wall_kept __attribute__((aligned(4096)));

static struct cpprof__wall_count *
place_of(const struct cpprof__wall_counts *counts,
         const struct cpprof__wall_count *key)
{
    uint64_t hash = (key->stack * UINT64_C(0x9e3779b97f4a7c15)) ^
                    ((uint64_t)key->labels << 34 | key->state << 30);
    uint32_t at = (uint32_t)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> 32);

    for (;; at++) {
        struct cpprof__wall_count *p =
            &counts->places[at & (counts->n_places - 1)];

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

    larger.n_places = counts->n_places ? 2 * counts->n_places : PLACES_MIN;
    larger.places = calloc(larger.n_places, sizeof *larger.places);
    if (!larger.places)
        return false;
    for (i = 0; i < counts->n_places; i++)
        if (counts->places[i].n)
            *place_of(&larger, &counts->places[i]) = counts->places[i];
    free(counts->places);
    *counts = larger;
    return true;
}

/* ---- for a recorder --------------------------------------------------- */

static void
mirror_head(void)
{
    cpprof__mirror(&cpprof__wall_kept.head, sizeof cpprof__wall_kept.head);
}

static uint32_t
new_row(void)
{
    struct cpprof__wall_kept_head *head = &cpprof__wall_kept.head;

    return head->n_rows + 1 < CPPROF__WALL_ROWS ? head->n_rows + 1 : 0;
}

/* The row before the head that counts it. */
static void
keep(const struct cpprof__wall_count *place, int64_t ns)
{
    struct cpprof__wall_kept_head *head = &cpprof__wall_kept.head;
    struct cpprof__wall_count *row = &cpprof__wall_kept.rows[place->kept];

    if (!place->kept) {
        head->lost_ns += ns;
        mirror_head();
        return;
    }
    *row = *place;
    cpprof__mirror(row, sizeof *row);
    if (place->kept > head->n_rows) {
        store_release(&head->n_rows, place->kept);
        mirror_head();
    }
}

void
cpprof__wall_keep_begin(struct cpprof__wall_counts *counts)
{
    struct cpprof__wall_kept_head *head = &cpprof__wall_kept.head;

    memset(head, 0, sizeof *head);
    memcpy(head->magic, MAGIC, sizeof head->magic);
    counts->is_kept = true;
}

void
cpprof__wall_keep_summary(const struct cpprof__wall_summary *summary)
{
    struct cpprof__wall_kept_head *head = &cpprof__wall_kept.head;

    head->rate_hz = summary->options.rate_hz;
    head->flags = summary->options.flags;
    head->n_threads = summary->n_threads;
    head->n_looks = summary->n_looks;
    head->n_asked = summary->n_asked;
    head->time_ns = summary->time_ns;
    head->duration_ns = summary->duration_ns;
    mirror_head();
}

void
cpprof__wall_keep_forked(void)
{
    if (cpprof__wall_kept.head.n_rows)
        memset(&cpprof__wall_kept.head, 0, sizeof cpprof__wall_kept.head);
}

static bool
makes_sense(const struct cpprof__wall_count *row)
{
    return row->n > 0 && row->ns >= 0 &&
           row->state <= CPPROF__WALL_UNINTERRUPTIBLE;
}

bool
cpprof__wall_kept_open(struct cpprof__wall_kept *copy,
                       struct cpprof__wall_counts *counts,
                       struct cpprof__wall_summary *summary)
{
    const struct cpprof__wall_kept_head *head = &copy->head;
    uint32_t i, n = head->n_rows;

    if (memcmp(head->magic, MAGIC, sizeof head->magic) || !head->rate_hz ||
        head->rate_hz > 1000 || head->time_ns <= 0)
        return false;
    n = n < CPPROF__WALL_ROWS ? n : CPPROF__WALL_ROWS - 1;
    for (i = 1; i <= n; i++)
        if (!makes_sense(&copy->rows[i]))
            copy->rows[i].n = 0;
    *counts = (struct cpprof__wall_counts){
        .places = copy->rows + 1,
        .n_places = n,
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

void
cpprof__wall_add(struct cpprof__wall_counts *counts,
                 const struct cpprof__wall_count *key, int64_t ns)
{
    struct cpprof__wall_count *p;

    if (2 * counts->n >= counts->n_places && !grow(counts) &&
        counts->n + 1 >= counts->n_places) {
        counts->lost_ns += ns;
        return;
    }
    p = place_of(counts, key);
    if (!p->n) {
        *p = *key;
        p->n = p->ns = 0;
        p->kept = counts->is_kept ? new_row() : 0;
        counts->n++;
    }
    p->n++;
    p->ns += ns;
    if (counts->is_kept)
        keep(p, ns);
}

void
cpprof__wall_counts_free(struct cpprof__wall_counts *counts)
{
    free(counts->places);
    *counts = (struct cpprof__wall_counts){0};
}
