/* SPDX-License-Identifier: MIT */
/* Completes a line of the shell that is being typed. */
#ifndef CLI_SHELL_COMPLETE_H
#define CLI_SHELL_COMPLETE_H

#include <cpprof/pprof/profile.h>

#include <stdbool.h>
#include <stddef.h>

/* How many possibilities are listed. */
#define CPPROF__MAX_LISTED 60

struct cpprof__completion {
    size_t n_replaced; /* bytes before the cursor that are replaced */
    char *text;        /* the text in their place; NULL: nothing to add */
    size_t n_matches;
    /* The first of them, when there are several; some are shared, so only the
     * array is freed. */
    const char *listed[CPPROF__MAX_LISTED];
    size_t n_listed;
};

/*
 * Complete line[0..cursor). The first word is a command, an option or a sample
 * type; a later word is the name of a function, as an expression that matches
 * it; after "help" and "=" it is what makes sense there.
 *
 * Returns false when memory is out. Free with cpprof__completion_free().
 */
bool
cpprof__complete(const struct pprof_profile *profile, const char *line,
                 size_t cursor, struct cpprof__completion *completion);
void
cpprof__completion_free(struct cpprof__completion *completion);

#endif
