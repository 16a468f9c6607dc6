/* SPDX-License-Identifier: MIT */
/*
 * Label sets, by number. Samples of one thread or request share a set, so
 * whatever depends on labels alone is done once for each set.
 *
 * Invariants: set 0 is the empty one; in a set, texts come before numbers, each
 * sorted by the text of the key and then in the order of the file; sets that
 * are added by label_sets_add() differ from each other.
 */
#ifndef PROFILE_LABELS_H
#define PROFILE_LABELS_H

#include "base/array.h"
#include "base/hash.h"
#include "profile/model/strings.h"
#include <cpprof/pprof/profile.h>

/* Not a set: out of memory, or too many. */
#define CPPROF__NO_LABEL_SET UINT32_MAX

struct cpprof__label_sets {
    CPPROF__ARRAY(struct pprof_label) labels;
    CPPROF__ARRAY(struct cpprof__label_set {
        size_t first;
        size_t n;
    })
    sets;
    struct cpprof__index index; /* by content */
};

/* Zero bytes is a valid table without the empty set. */
bool
cpprof__label_sets_begin(struct cpprof__label_sets *s);
void
cpprof__label_sets_free(struct cpprof__label_sets *s);

/*
 * The number of the set of n labels, added if it is new, or
 * CPPROF__NO_LABEL_SET. Sorts labels, which must lie outside the table.
 */
uint32_t
cpprof__label_sets_add(struct cpprof__label_sets *s,
                       const struct cpprof__strings *strings,
                       struct pprof_label *labels, size_t n);

static inline const struct pprof_label *
cpprof__label_set(const struct cpprof__label_sets *s, uint32_t set, size_t *n)
{
    *n = s->sets.at[set].n;
    return *n ? s->labels.at + s->sets.at[set].first : NULL;
}

#endif
