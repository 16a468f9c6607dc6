/* SPDX-License-Identifier: MIT */
/*
 * What a file is called at Pyroscope and at Parca. Both make names of its
 * sample types and of its period's, and their queries know letters, digits, '_'
 * and ':', which stands between them. Pyroscope refuses a type with '-', and
 * Parca all whose names its own queries could not say, with an answer 500.
 *
 * Source: pyroscope pkg/validation/validate.go (ValidateProfile); what Parca
 * answers (`./dev peers parca`).
 */
#include "cli/push/series.h"

#include "cli/messages.h"

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

/* ---- names that are refused ------------------------------------------- */

struct names {
    char type[CPPROF__SERIES_BYTES], unit[CPPROF__SERIES_BYTES];
};

/* True where something was put in place of what they cannot be. */
static bool
mend(const struct pprof_profile *p, pprof_string string,
     char name[CPPROF__SERIES_BYTES])
{
    const char *text = pprof_text(p, string, NULL);
    char *at;

    snprintf(name, CPPROF__SERIES_BYTES, "%s", text);
    for (at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '_')
            *at = '_';
    return strcmp(name, text) != 0;
}

static bool
mend_both(const struct pprof_profile *p, const struct pprof_value_type *type,
          struct names *names)
{
    bool is_other = mend(p, type->type, names->type);

    return mend(p, type->unit, names->unit) || is_other;
}

/* Does another sample type have this name? */
static bool
is_taken(const struct pprof_profile *p, size_t number, const char *name)
{
    size_t i;

    for (i = 0; i < pprof_sample_type_count(p); i++)
        if (i != number &&
            !strcmp(pprof_text(p, pprof_sample_types(p)[i].type, NULL), name))
            return true;
    return false;
}

/* Two that differ in what was mended alone are two series still. */
static void
tell_apart(const struct pprof_profile *p, size_t number,
           char name[CPPROF__SERIES_BYTES])
{
    size_t n = strnlen(name, CPPROF__SERIES_BYTES - 12);
    unsigned i;

    for (i = 2; is_taken(p, number, name); i++)
        snprintf(name + n, CPPROF__SERIES_BYTES - n, "_%u", i);
}

/* Rename sample types and units, and say so. */
static enum cpprof_status
mend_types(struct pprof_profile *p, const char *path,
           struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    struct names names;
    size_t i;

    for (i = 0; i < pprof_sample_type_count(p) && status == CPPROF_OK; i++) {
        const struct pprof_value_type *type = &pprof_sample_types(p)[i];

        if (!mend_both(p, type, &names))
            continue;
        tell_apart(p, i, names.type);
        cpprof__cli_warn("%s: the sample type %s/%s is sent as %s/%s", path,
                         pprof_text(p, type->type, NULL),
                         pprof_text(p, type->unit, NULL), names.type,
                         names.unit);
        status = pprof_set_sample_type(p, i, names.type, names.unit, error);
    }
    return status;
}

/* A profile without the event that its samples are of is, to Parca, one of
 * samples that stand for nothing, and its list of series ends in an error from
 * then on. */
static enum cpprof_status
mend_period(struct pprof_profile *p, const struct pprof_info *info,
            struct cpprof_error *error)
{
    struct pprof_value_type type = info->period_type;
    struct names names;
    size_t i;

    if (!type.type && pprof_find_sample_type(p, NULL, &i, NULL) == CPPROF_OK)
        type = pprof_sample_types(p)[i];
    mend_both(p, &type, &names);
    return pprof_set_period(p, names.type, names.unit,
                            info->period > 0 ? info->period : 1, error);
}

enum cpprof_status
cpprof__series_mend(struct pprof_profile *p, const char *path, int64_t now_ns,
                    struct cpprof_error *error)
{
    struct pprof_info info = {.size = sizeof info};
    enum cpprof_status status;
    char name[CPPROF__SERIES_BYTES];

    pprof_get_info(p, &info);
    if (info.duration_ns < 0 || info.duration_ns > now_ns)
        info.duration_ns = 0;
    if (info.time_ns < FIRST_DATE_S * NS_PER_S)
        info.time_ns = now_ns - info.duration_ns;
    pprof_set_time(p, info.time_ns, info.duration_ns);
    status = mend_types(p, path, error);
    if (status == CPPROF_OK)
        status = mend_period(p, &info, error);
    if (status == CPPROF_OK && mend(p, info.default_sample_type, name))
        status = pprof_set_default_sample_type(p, name, error);
    return status;
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
