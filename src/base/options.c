/* SPDX-License-Identifier: MIT */
#include "base/options.h"

#include "base/status.h"

#include <stdbool.h>
#include <string.h>

static bool
is_zero(const char *bytes, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (bytes[i])
            return false;
    return true;
}

enum cpprof_status
cpprof__options(void *options, size_t n_options, const void *given,
                const char *what, struct cpprof_error *error)
{
    size_t n;

    if (!given)
        return CPPROF_OK;
    memcpy(&n, given, sizeof n);
    /* No struct of ours is anywhere near a page. */
    if (n < sizeof n || n > 4096 ||
        (n > n_options &&
         !is_zero((const char *)given + n_options, n - n_options)))
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "%s of %zu bytes, not %zu", what, n, n_options);
    memcpy(options, given, n < n_options ? n : n_options);
    memcpy(options, &n_options, sizeof n_options);
    return CPPROF_OK;
}
