/* SPDX-License-Identifier: MIT */
/*
 * Pyroscope and Parca make names of the sample types of a profile and of its
 * period's, and their queries know letters, digits, '_' and ':', which stands
 * between them. Pyroscope refuses a type with '-', and Parca all whose names
 * its own queries could not say, with an answer 500.
 *
 * Source: pyroscope pkg/validation/validate.go (ValidateProfile); what Parca
 * answers (`./dev peers parca`).
 */
#include "profile/change/mend_names.h"

#include <cpprof/pprof/build.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define NAME_BYTES 128

struct names {
    char type[NAME_BYTES], unit[NAME_BYTES];
};

/* True where something was put in place of what they cannot be. */
static bool
mend(const struct pprof_profile *p, pprof_string string, char name[NAME_BYTES])
{
    const char *text = pprof_text(p, string, NULL);
    char *at;

    snprintf(name, NAME_BYTES, "%s", text);
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
tell_apart(const struct pprof_profile *p, size_t number, char name[NAME_BYTES])
{
    size_t n = strnlen(name, NAME_BYTES - 12);
    unsigned i;

    for (i = 2; is_taken(p, number, name); i++)
        snprintf(name + n, NAME_BYTES - n, "_%u", i);
}

/* Rename sample types and units, and say so. */
static enum cpprof_status
mend_types(struct pprof_profile *p, void (*say)(void *ctx, const char *line),
           void *ctx, struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    char line[6 * NAME_BYTES];
    struct names names;
    size_t i;

    for (i = 0; i < pprof_sample_type_count(p) && status == CPPROF_OK; i++) {
        const struct pprof_value_type *type = &pprof_sample_types(p)[i];

        if (!mend_both(p, type, &names))
            continue;
        tell_apart(p, i, names.type);
        snprintf(line, sizeof line, "the sample type %s/%s is sent as %s/%s",
                 pprof_text(p, type->type, NULL),
                 pprof_text(p, type->unit, NULL), names.type, names.unit);
        if (say)
            say(ctx, line);
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
cpprof__mend_names(struct pprof_profile *p,
                   void (*say)(void *ctx, const char *line), void *ctx,
                   struct cpprof_error *error)
{
    struct pprof_info info = {.size = sizeof info};
    enum cpprof_status status;
    char name[NAME_BYTES];

    pprof_get_info(p, &info);
    status = mend_types(p, say, ctx, error);
    if (status == CPPROF_OK)
        status = mend_period(p, &info, error);
    if (status == CPPROF_OK && mend(p, info.default_sample_type, name))
        status = pprof_set_default_sample_type(p, name, error);
    return status;
}
