/* SPDX-License-Identifier: MIT */
/*
 * What a file is called at Pyroscope and at Parca: the kinds that a program
 * pushes are known by their sample types, and any other is a series of its own.
 */
#include "cli/push/series.h"

#include "cli/messages.h"
#include "profile/change/mend_names.h"

#include <cpprof/pprof/build.h>
#include <cpprof/push.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_S 1000000000ll

/* The year 2000. Times before that are those since a machine started, as of
 * `perf script`, or none. */
#define FIRST_DATE_S 946684800ll

static bool
has_type(const struct pprof_profile *p, const char *name)
{
    size_t i;

    for (i = 0; i < pprof_sample_type_count(p); i++)
        if (strcmp(pprof_text(p, pprof_sample_types(p)[i].type, NULL), name) ==
            0)
            return true;
    return false;
}

/* Time that is none of the others is CPU time, whatever clock it is of; and so
 * are samples that nothing says the event of. */
static bool
is_cpu(const struct pprof_profile *p)
{
    struct pprof_info info = {.size = sizeof info};
    size_t i;

    pprof_get_info(p, &info);
    for (i = 0; i < pprof_sample_type_count(p); i++)
        if (!strcmp(pprof_text(p, pprof_sample_types(p)[i].unit, NULL),
                    "nanoseconds"))
            return true;
    return !strcmp(pprof_text(p, info.period_type.type, NULL), "cpu") ||
           (!info.period_type.type && has_type(p, "samples"));
}

uint32_t
cpprof__series_of(const struct pprof_profile *p, const char *path,
                  char series[CPPROF__SERIES_BYTES])
{
    const char *base = strrchr(path, '/');
    size_t i = 0;

    *series = 0;
    if (has_type(p, "inuse_space") || has_type(p, "alloc_space"))
        return CPPROF_PUSH_HEAP;
    /* They have the same types, so it is the file that tells them apart. */
    if (has_type(p, "contentions"))
        return strstr(base ? base : path, "mutex") ? CPPROF_PUSH_MUTEX
                                                   : CPPROF_PUSH_BLOCK;
    if (has_type(p, "wall"))
        return CPPROF_PUSH_WALL;
    if (has_type(p, "goroutine"))
        return CPPROF_PUSH_GOROUTINE;
    if (!is_cpu(p) && pprof_find_sample_type(p, NULL, &i, NULL) == CPPROF_OK)
        snprintf(series, CPPROF__SERIES_BYTES, "%s",
                 pprof_text(p, pprof_sample_types(p)[i].type, NULL));
    return CPPROF_PUSH_CPU;
}

/* ---- what servers refuse ---------------------------------------------- */

static void
say(void *ctx, const char *line)
{
    cpprof__cli_warn("%s: %s", (const char *)ctx, line);
}

enum cpprof_status
cpprof__series_mend(struct pprof_profile *p, const char *path, int64_t now_ns,
                    struct cpprof_error *error)
{
    struct pprof_info info = {.size = sizeof info};

    pprof_get_info(p, &info);
    if (info.duration_ns < 0 || info.duration_ns > now_ns)
        info.duration_ns = 0;
    if (info.time_ns < FIRST_DATE_S * NS_PER_S)
        info.time_ns = now_ns - info.duration_ns;
    pprof_set_time(p, info.time_ns, info.duration_ns);
    return cpprof__mend_names(p, say, (void *)path, error);
}

/* ---- the service ------------------------------------------------------ */

void
cpprof__series_service(const struct pprof_profile *p, char *name, size_t n)
{
    const char *file = "unknown", *slash;
    size_t i;

    if (pprof_mapping_count(p))
        file = pprof_text(p, pprof_mappings(p)->file, NULL);
    slash = strrchr(file, '/');
    snprintf(name, n, "%s", slash ? slash + 1 : file);
    for (i = 0; name[i]; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("-._", name[i]))
            name[i] = '_';
    if (!i)
        snprintf(name, n, "unknown");
}
