/* SPDX-License-Identifier: MIT */
/* Part of builds with CPPROF_CHECKED only. */
#include "profile/debug.h"

#include <stdio.h>
#include <string.h>

static void
expect(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "cpprof: broken profile: %s\n", what);
    abort();
}

/* Take n places of a table, none of which may be taken. */
static void
take(uint8_t *taken, size_t first, size_t n, const char *what)
{
    expect(!n || !memchr(taken + first, 1, n), what);
    memset(taken + first, 1, n);
}

static void
check_frames(const struct cpprof_pprof *p)
{
    uint8_t *taken = calloc(p->frames.n + 1, 1);
    size_t i;

    for (i = 0; taken && i < p->samples.n; i++)
        take(taken, p->samples.at[i].first_frame, p->samples.at[i].n_frames,
             "frames of two samples overlap");
    free(taken);
}

static void
check_lines(const struct cpprof_pprof *p)
{
    uint8_t *taken = calloc(p->lines.n + 1, 1);
    size_t i;

    for (i = 0; taken && i < p->locations.n; i++)
        take(taken, p->locations.at[i].first_line, p->locations.at[i].n_lines,
             "lines of two locations overlap");
    free(taken);
}

/* Each is in the text and terminated, and is the one that a search finds: no
 * two are equal, and the index is whole. */
static void
check_strings(const struct cpprof__strings *s)
{
    size_t i;

    expect(s->table.n > 0 && s->table.at[0].n == 0,
           "string 0 is not the empty one");
    for (i = 0; i < s->table.n; i++) {
        const struct cpprof__string *string = &s->table.at[i];

        expect(string->n < s->text.n && string->offset < s->text.n - string->n,
               "string outside the text");
        expect(s->text.at[string->offset + string->n] == 0,
               "string is not terminated");
        expect(cpprof__strings_find(s, s->text.at + string->offset,
                                    string->n) == i,
               "string is not found");
    }
}

/* Texts before numbers, each sorted by key. */
static bool
is_in_order(const struct cpprof__strings *strings,
            const struct cpprof_pprof_label *a,
            const struct cpprof_pprof_label *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind;
    return cpprof__strings_compare(strings, a->key, b->key) <= 0;
}

static void
check_label_set(const struct cpprof_pprof *p, uint32_t set)
{
    const struct cpprof_pprof_label *l;
    size_t n, i;

    expect(p->labels.sets.at[set].n <= p->labels.labels.n &&
               p->labels.sets.at[set].first <=
                   p->labels.labels.n - p->labels.sets.at[set].n,
           "label set outside the labels");
    l = cpprof__label_set(&p->labels, set, &n);
    for (i = 0; i < n; i++) {
        expect(l[i].kind <= CPPROF_PPROF_LABEL_NUMBER, "label of no kind");
        expect(!i || is_in_order(&p->strings, &l[i - 1], &l[i]),
               "labels are not sorted");
    }
}

static void
check_label_sets(const struct cpprof_pprof *p)
{
    size_t i;

    expect(p->labels.sets.n > 0 && p->labels.sets.at[0].n == 0,
           "label set 0 is not the empty one");
    for (i = 0; i < p->labels.sets.n; i++)
        check_label_set(p, (uint32_t)i);
}

void
cpprof__debug_check(const struct cpprof_pprof *p)
{
    struct cpprof_error error;
    enum cpprof_status status = cpprof_pprof_check(p, &error);

    expect(status == CPPROF_OK || status == CPPROF_NOMEM, error.text);
    check_strings(&p->strings);
    check_frames(p);
    check_lines(p);
    check_label_sets(p);
}
