/* SPDX-License-Identifier: MIT */
/* A copy of a profile: of its arrays as they are, so that all indices hold. */
#include "base/status.h"
#include "own/memory.h"
#include "profile/model/check.h"
#include "profile/model/model.h"

#include <string.h>

/* Make `to`, an empty array, hold n elements of `from`. */
static bool
copy_block(void **to, size_t *capacity, const void *from, size_t n,
           size_t item_bytes)
{
    if (!n)
        return true;
    *to = cpprof__malloc(n * item_bytes);
    if (!*to)
        return false;
    memcpy(*to, from, n * item_bytes);
    *capacity = n;
    return true;
}

/* The capacity of a growable array may be anything; that of an index is the
 * size of its table. */
#define COPY_ARRAY(to, from)                                                   \
    (copy_block((void **)&(to)->at, &(to)->capacity, (from)->at, (from)->n,    \
                sizeof *(to)->at) &&                                           \
     ((to)->n = (from)->n, true))

static bool
copy_index(struct cpprof__index *to, const struct cpprof__index *from)
{
    if (!copy_block((void **)&to->slots, &to->capacity, from->slots,
                    from->capacity, sizeof *to->slots))
        return false;
    to->n = from->n;
    return true;
}

/* Each text has its own copy; a string keeps its number. */
static bool
copy_strings(struct cpprof__strings *to, const struct cpprof__strings *from)
{
    size_t i;

    if (!COPY_ARRAY(&to->table, &from->table) ||
        !copy_index(&to->index, &from->index))
        return false;
    for (i = 0; i < to->table.n; i++) {
        struct cpprof__string *string = &to->table.at[i];

        string->text = cpprof__arena_copy(&to->texts, string->text, string->n);
        if (!string->text)
            return false;
    }
    return true;
}

static bool
copy_names(struct pprof_profile *to, const struct pprof_profile *from)
{
    return copy_strings(&to->strings, &from->strings) &&
           COPY_ARRAY(&to->labels.labels, &from->labels.labels) &&
           COPY_ARRAY(&to->labels.sets, &from->labels.sets) &&
           copy_index(&to->labels.index, &from->labels.index);
}

static bool
copy_tables(struct pprof_profile *to, const struct pprof_profile *from)
{
    return COPY_ARRAY(&to->sample_types, &from->sample_types) &&
           COPY_ARRAY(&to->mappings, &from->mappings) &&
           COPY_ARRAY(&to->locations, &from->locations) &&
           COPY_ARRAY(&to->lines, &from->lines) &&
           COPY_ARRAY(&to->functions, &from->functions) &&
           COPY_ARRAY(&to->comments, &from->comments) &&
           COPY_ARRAY(&to->samples, &from->samples) &&
           COPY_ARRAY(&to->values, &from->values) &&
           COPY_ARRAY(&to->frames, &from->frames);
}

enum cpprof_status
pprof_copy(const struct pprof_profile *profile, struct pprof_profile **copy,
           struct cpprof_error *error)
{
    CPPROF__NEED(error, profile && copy);

    struct pprof_profile *made = cpprof__calloc(1, sizeof *made);

    if (!made || !copy_names(made, profile) || !copy_tables(made, profile)) {
        pprof_free(made);
        return cpprof__fail_nomem(error);
    }
    made->info = profile->info;
    *copy = made;
    cpprof__debug_check(made);
    return CPPROF_OK;
}
