/* SPDX-License-Identifier: MIT */
/*
 * RE2 for the command (profile/filter/re2.h), loaded with the first expression:
 * a start with RE2 and the C++ runtime takes twice as long, and most have none.
 * The same functions in libprofile.a are left out because these come first.
 */
#include "profile/filter/re2.h"

#include "cli/messages.h"
#include "object/plug_in.h"

#include <pthread.h>
#include <stdlib.h>

static const struct cpprof__re2_ops *ops;

/* Whoever asks cannot do without, and has no word for an engine that is not
 * there: the installation lacks a file. */
static void
load(void)
{
    struct cpprof_error error;

    ops = cpprof__plug_in_load("re2", CPPROF__RE2_SYMBOL, CPPROF__RE2_ABI,
                               &error);
    if (!ops)
        exit(cpprof__cli_fail("%s", error.text));
}

static const struct cpprof__re2_ops *
loaded(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return ops;
}

struct cpprof__re2 *
cpprof__re2_make(const char *expression, size_t n,
                 struct cpprof__re2_error *error)
{
    return loaded()->make(expression, n, error);
}

void
cpprof__re2_free(struct cpprof__re2 *re2)
{
    if (re2)
        loaded()->free(re2);
}

bool
cpprof__re2_matches(const struct cpprof__re2 *re2, const char *text, size_t n,
                    bool *failed)
{
    return loaded()->matches(re2, text, n, failed);
}

bool
cpprof__pattern_find(struct cpprof__pattern *pattern, struct cpprof__text text,
                     struct cpprof__text *found, size_t n_found, bool *failed)
{
    return loaded()->find(pattern, text, found, n_found, failed);
}
