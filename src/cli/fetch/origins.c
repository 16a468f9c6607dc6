/* SPDX-License-Identifier: MIT */
/*
 * Remembers for each mapping of fetched profiles which server can name its
 * addresses, by build id or file; a mapping with neither gets the URL as its
 * file name until the names are found.
 *
 * Source: internal/driver/fetch.go, internal/symbolz.
 */
#include "cli/fetch/origins.h"

#include <cpprof/pprof/change.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum cpprof_status
fail_nomem(struct cpprof_error *error)
{
    *error = (struct cpprof_error){.status = CPPROF_NOMEM};
    snprintf(error->text, sizeof error->text, "out of memory");
    return CPPROF_NOMEM;
}

static struct cpprof__origin *
add(struct cpprof__origins *r)
{
    struct cpprof__origin *grown;
    size_t capacity = r->capacity ? 2 * r->capacity : 16;

    if (r->n == r->capacity) {
        grown = realloc(r->mappings, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        r->mappings = grown;
        r->capacity = capacity;
    }
    memset(&r->mappings[r->n], 0, sizeof r->mappings[r->n]);
    return &r->mappings[r->n++];
}

/* Note one mapping; *unnamed when its key is the URL. */
static bool
note_mapping(struct cpprof__origins *r, const struct pprof_profile *p,
             size_t mapping, const char *url, bool *unnamed)
{
    const struct pprof_mapping *m = &pprof_mappings(p)[mapping];
    struct cpprof__origin *noted = add(r);
    const char *key;

    if (!noted)
        return false;
    *unnamed = !m->build_id && !m->file;
    key = *unnamed ? url
                   : pprof_text(p, m->build_id ? m->build_id : m->file, NULL);
    noted->start = m->start;
    noted->key = strdup(key);
    noted->url = strdup(url);
    return noted->key && noted->url;
}

enum cpprof_status
cpprof__origins_note(struct cpprof__origins *r, struct pprof_profile *p,
                     const char *url, struct cpprof_error *error)
{
    size_t n = pprof_mapping_count(p), i;
    enum cpprof_status status = CPPROF_OK;
    bool unnamed;

    for (i = 0; i < n && status == CPPROF_OK; i++) {
        if (!note_mapping(r, p, i, url, &unnamed))
            return fail_nomem(error);
        if (unnamed)
            status = pprof_set_mapping_file(p, i, url, error);
    }
    r->n_profiles++;
    return status;
}

/* Was this name given to a mapping that had none? */
static bool
is_given(const struct cpprof__origins *r, const char *file)
{
    size_t i;

    for (i = 0; i < r->n; i++)
        if (strcmp(r->mappings[i].key, file) == 0 &&
            strcmp(r->mappings[i].url, file) == 0)
            return true;
    return false;
}

enum cpprof_status
cpprof__origins_forget(const struct cpprof__origins *r, struct pprof_profile *p,
                       struct cpprof_error *error)
{
    size_t n = pprof_mapping_count(p), i;
    enum cpprof_status status = CPPROF_OK;

    for (i = 0; r->n && i < n && status == CPPROF_OK; i++) {
        const struct pprof_mapping *m = &pprof_mappings(p)[i];

        if (!m->build_id && is_given(r, pprof_text(p, m->file, NULL)))
            status = pprof_set_mapping_file(p, i, "", error);
    }
    return status;
}

void
cpprof__origins_free(struct cpprof__origins *r)
{
    size_t i;

    cpprof__fetch_free(r->fetch);
    for (i = 0; i < r->n; i++) {
        free(r->mappings[i].key);
        free(r->mappings[i].url);
    }
    free(r->mappings);
    memset(r, 0, sizeof *r);
}
