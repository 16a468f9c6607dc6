/* SPDX-License-Identifier: MIT */
/*
 * Between the walks: the tables still hold string numbers and ids of the file;
 * replace them by numbers of our strings and by indices. An id that nothing
 * has becomes PPROF_NONE, which is legal for a location's mapping and
 * found by the check for all others.
 */
#include "profile/proto/decode_internal.h"

#include "base/status.h"

static bool
link_value_type(const struct decoder *d, struct pprof_value_type *t)
{
    return cpprof__link_string(d, &t->type) && cpprof__link_string(d, &t->unit);
}

static bool
link_head(struct decoder *d)
{
    struct pprof_info *head = &d->p->info;
    size_t i;

    for (i = 0; i < d->p->sample_types.n; i++)
        if (!link_value_type(d, &d->p->sample_types.at[i]))
            return false;
    for (i = 0; i < d->p->comments.n; i++)
        if (!cpprof__link_string(d, &d->p->comments.at[i]))
            return false;
    return link_value_type(d, &head->period_type) &&
           cpprof__link_string(d, &head->default_sample_type) &&
           cpprof__link_string(d, &head->drop_frames) &&
           cpprof__link_string(d, &head->keep_frames) &&
           cpprof__link_string(d, &head->doc_url);
}

static bool
link_strings(struct decoder *d)
{
    size_t i;

    for (i = 0; i < d->p->mappings.n; i++) {
        struct pprof_mapping *m = &d->p->mappings.at[i];

        if (!cpprof__link_string(d, &m->file) ||
            !cpprof__link_string(d, &m->build_id))
            return false;
    }
    for (i = 0; i < d->p->functions.n; i++) {
        struct pprof_function *f = &d->p->functions.at[i];

        if (!cpprof__link_string(d, &f->name) ||
            !cpprof__link_string(d, &f->system_name) ||
            !cpprof__link_string(d, &f->file))
            return false;
    }
    return link_head(d);
}

static enum cpprof_status
link_mappings(struct decoder *d)
{
    struct cpprof__id_map map;
    bool made = cpprof__id_map_make(&map, d->p->mappings.at, d->p->mappings.n,
                                    sizeof *d->p->mappings.at);
    size_t i;

    for (i = 0; made && i < d->p->locations.n; i++)
        d->p->locations.at[i].mapping =
            cpprof__id_map_get(&map, d->mapping_ids.at[i]);
    cpprof__id_map_free(&map);
    return made ? CPPROF_OK : cpprof__fail_nomem(d->error);
}

/* Id 0 means no function, even if a function has that id. */
static enum cpprof_status
link_functions(struct decoder *d)
{
    struct cpprof__id_map map;
    bool made = cpprof__id_map_make(&map, d->p->functions.at, d->p->functions.n,
                                    sizeof *d->p->functions.at);
    size_t i;

    for (i = 0; made && i < d->p->lines.n; i++)
        if (d->function_ids.at[i])
            d->p->lines.at[i].function =
                cpprof__id_map_get(&map, d->function_ids.at[i]);
    cpprof__id_map_free(&map);
    return made ? CPPROF_OK : cpprof__fail_nomem(d->error);
}

enum cpprof_status
cpprof__decode_link(struct decoder *d)
{
    struct pprof_profile *p = d->p;
    enum cpprof_status status;

    if (p->mappings.n >= PPROF_NONE || p->functions.n >= PPROF_NONE ||
        p->locations.n >= PPROF_NONE)
        return cpprof__fail(d->error, CPPROF_LIMIT, 0,
                            "parsing profile: more than 4294967294 entries");
    if (!link_strings(d))
        return cpprof__fail(d->error, CPPROF_BAD_DATA, 0,
                            "parsing profile: malformed profile format: no "
                            "such string in a table of %zu",
                            d->strings.n);
    status = link_mappings(d);
    if (status == CPPROF_OK)
        status = link_functions(d);
    if (status == CPPROF_OK &&
        !cpprof__id_map_make(&d->locations, p->locations.at, p->locations.n,
                             sizeof *p->locations.at))
        status = cpprof__fail_nomem(d->error);
    CPPROF__ARRAY_FREE(&d->mapping_ids);
    CPPROF__ARRAY_FREE(&d->function_ids);
    return status;
}
