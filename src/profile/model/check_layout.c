/* SPDX-License-Identifier: MIT */
/*
 * The part of the check for invariants that only a defect in our code can
 * break: the layout of the tables in memory, and the promises of strings.h and
 * labels.h.
 */
#include "base/status.h"
#include "profile/model/check.h"

#include <string.h>

#define BROKEN(what)                                                           \
    cpprof__fail(error, CPPROF_BAD_DATA, 0, "inconsistent profile: " what)

/* A record that owns a part of another table. */
struct part {
    size_t first, n;
};

struct parts {
    const void *records;
    size_t n;
    struct part (*part)(const void *records, size_t i);
    size_t n_table; /* elements of the table */
};

static struct part
frames_of(const void *records, size_t i)
{
    const struct cpprof__sample *samples = records;

    return (struct part){samples[i].first_frame, samples[i].n_frames};
}

static struct part
lines_of(const void *records, size_t i)
{
    const struct pprof_location *locations = records;

    return (struct part){locations[i].first_line, locations[i].n_lines};
}

/* Do the parts follow each other? They do in nearly all profiles. */
static bool
is_in_order(const struct parts *parts)
{
    size_t end = 0, i;

    for (i = 0; i < parts->n; i++) {
        struct part p = parts->part(parts->records, i);

        if (!p.n)
            continue;
        if (p.first < end)
            return false;
        end = p.first + p.n;
    }
    return true;
}

/* Mark a part as taken; false if some of it is taken already. */
static bool
take(uint8_t *taken, struct part p)
{
    size_t i;

    for (i = p.first; i < p.first + p.n; i++) {
        if (taken[i / 8] >> i % 8 & 1)
            return false;
        taken[i / 8] |= (uint8_t)(1u << i % 8);
    }
    return true;
}

static enum cpprof_status
check_parts(const struct parts *parts, const char *what,
            struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    uint8_t *taken;
    size_t i;

    if (is_in_order(parts))
        return CPPROF_OK;
    taken = calloc(parts->n_table / 8 + 1, 1);
    if (!taken)
        return cpprof__fail_nomem(error);
    for (i = 0; i < parts->n && status == CPPROF_OK; i++)
        if (!take(taken, parts->part(parts->records, i)))
            status = cpprof__fail(error, CPPROF_BAD_DATA, 0,
                                  "inconsistent profile: %s overlap", what);
    free(taken);
    return status;
}

/* Each is in the text and terminated, and is the one that a search finds: no
 * two are equal, and the index is whole. */
static enum cpprof_status
check_strings(const struct cpprof__strings *s, struct cpprof_error *error)
{
    size_t i;

    if (!s->table.n || s->table.at[0].n)
        return BROKEN("string 0 is not the empty one");
    for (i = 0; i < s->table.n; i++) {
        const struct cpprof__string *string = &s->table.at[i];

        if (string->n >= s->text.n || string->offset >= s->text.n - string->n)
            return BROKEN("string outside the text");
        if (s->text.at[string->offset + string->n])
            return BROKEN("string is not terminated");
        if (cpprof__strings_find(s, s->text.at + string->offset, string->n) !=
            i)
            return BROKEN("string is not found");
    }
    return CPPROF_OK;
}

/* Texts before numbers, each sorted by key. */
static bool
follows(const struct cpprof__strings *strings, const struct pprof_label *a,
        const struct pprof_label *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind;
    return cpprof__strings_compare(strings, a->key, b->key) <= 0;
}

static enum cpprof_status
check_label_set(const struct pprof_profile *p, uint32_t set,
                struct cpprof_error *error)
{
    const struct pprof_label *l;
    size_t n, i;

    if (p->labels.sets.at[set].n > p->labels.labels.n ||
        p->labels.sets.at[set].first >
            p->labels.labels.n - p->labels.sets.at[set].n)
        return BROKEN("label set outside the labels");
    l = cpprof__label_set(&p->labels, set, &n);
    for (i = 0; i < n; i++) {
        if (l[i].kind > PPROF_LABEL_NUMBER)
            return BROKEN("label of no kind");
        if (i && !follows(&p->strings, &l[i - 1], &l[i]))
            return BROKEN("labels are not sorted");
    }
    return CPPROF_OK;
}

static enum cpprof_status
check_label_sets(const struct pprof_profile *p, struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    if (!p->labels.sets.n || p->labels.sets.at[0].n)
        return BROKEN("label set 0 is not the empty one");
    for (i = 0; i < p->labels.sets.n && status == CPPROF_OK; i++)
        status = check_label_set(p, (uint32_t)i, error);
    return status;
}

enum cpprof_status
cpprof__check_layout(const struct pprof_profile *p, struct cpprof_error *error)
{
    struct parts frames = {p->samples.at, p->samples.n, frames_of, p->frames.n};
    struct parts lines = {p->locations.at, p->locations.n, lines_of,
                          p->lines.n};
    enum cpprof_status status = check_strings(&p->strings, error);

    if (status == CPPROF_OK)
        status = check_parts(&frames, "frames of two samples", error);
    if (status == CPPROF_OK)
        status = check_parts(&lines, "lines of two locations", error);
    if (status == CPPROF_OK)
        status = check_label_sets(p, error);
    return status;
}
