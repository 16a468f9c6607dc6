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

enum cpprof_status
cpprof__options_sampling(uint32_t *rate_hz, uint32_t most_hz,
                         uint32_t *max_depth, uint32_t most_frames,
                         struct cpprof_error *error)
{
    if (!*rate_hz)
        *rate_hz = 100;
    if (!*max_depth)
        *max_depth = 128;
    if (*rate_hz > most_hz)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "rate %u Hz is outside 1 to %u", *rate_hz, most_hz);
    if (*max_depth > most_frames)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "depth %u is outside 1 to %u", *max_depth,
                            most_frames);
    return CPPROF_OK;
}

enum cpprof_status
cpprof__options_flags(uint32_t flags, uint32_t known,
                      enum cpprof_symbolize symbolize,
                      struct cpprof_error *error)
{
    if ((unsigned)symbolize > CPPROF_SYMBOLIZE_NONE)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "unknown symbolization %d", (int)symbolize);
    if (flags & ~known)
        return cpprof__fail(error, CPPROF_INVALID, 0, "unknown flags %#x",
                            flags & ~known);
    return CPPROF_OK;
}
