/* SPDX-License-Identifier: MIT */
#include "profile/legacy/legacy.h"

#include "base/status.h"
#include "profile/legacy/symbolized.h"
#include "profile/text/text.h"

/* The readers in the order in which they are tried: the reference's first, then
 * those of formats that only we read, in which no frames are dropped. */
static const struct {
    cpprof__legacy_reader *read;
    bool has_frames_to_drop;
} readers[] = {
    {cpprof__read_cpu, true},        {cpprof__read_heap, true},
    {cpprof__read_count, true},      {cpprof__read_threads, true},
    {cpprof__read_contention, true}, {cpprof__read_java, true},
    {cpprof__read_jemalloc, true},   {cpprof__read_perf_script, false},
    {cpprof__read_collapsed, false},
};

/* Try one reader after the other; *out stays NULL when none recognizes the
 * bytes. */
static enum cpprof_status
try_all(const char *data, size_t n, struct pprof_profile **out,
        struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    for (i = 0; i < sizeof readers / sizeof *readers; i++) {
        status = cpprof__legacy_try(readers[i].read, data, n, out, error);
        if (status != CPPROF_OK || *out)
            break;
    }
    if (*out && readers[i].has_frames_to_drop)
        status = cpprof__legacy_frames(*out, error);
    return status;
}

enum cpprof_status
cpprof__read_legacy(const char *data, size_t n, struct pprof_profile **out,
                    struct cpprof_error *error)
{
    struct cpprof__legacy_names names = {0};
    struct pprof_profile *p = NULL;
    enum cpprof_status status = cpprof__read_names(&data, &n, &names, error);

    if (status == CPPROF_OK)
        status = try_all(data, n, &p, error);
    if (status == CPPROF_OK && p)
        status = cpprof__apply_names(&names, p, error);
    CPPROF__ARRAY_FREE(&names.list);
    if (status == CPPROF_OK && !p)
        return cpprof__fail(error, CPPROF_BAD_DATA, 0, "%s",
                            CPPROF__UNRECOGNIZED);
    if (status != CPPROF_OK) {
        pprof_free(p);
        return status;
    }
    *out = p;
    return CPPROF_OK;
}
