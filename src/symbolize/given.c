/* SPDX-License-Identifier: MIT */
/*
 * Which mapping is a given binary for? The one of its build id; where either
 * has none, the one whose file has its name. A binary of no mapping is refused:
 * whoever names it takes it for the one that ran.
 */
#include "symbolize/given.h"

#include "base/status.h"
#include "own/memory.h"
#include "profile/model/path.h"
#include "symbolize/image.h"

#include <stdlib.h>
#include <string.h>

#define DEBUG_ENDING ".debug"

/* Is the file that a mapping names called as the one at path, but for
 * ".debug"? */
static bool
has_name(const struct pprof_profile *p, const struct pprof_mapping *m,
         const char *path)
{
    const size_t n_ending = strlen(DEBUG_ENDING);
    const char *file = cpprof__strings_text(&p->strings, m->file);
    size_t n_base, n_name;
    const char *base = cpprof__path_base(file, strlen(file), &n_base);
    const char *name = cpprof__path_base(path, strlen(path), &n_name);

    if (n_name == n_base + n_ending &&
        !memcmp(name + n_base, DEBUG_ENDING, n_ending))
        n_name = n_base;
    return n_base && n_name == n_base && !memcmp(name, base, n_base);
}

static bool
is_for(const struct cpprof__given *given, const struct pprof_profile *p,
       const struct pprof_mapping *m)
{
    const char *id = cpprof__strings_text(&p->strings, m->build_id);

    if (!*id || !*given->build_id)
        return has_name(p, m, given->path);
    return strncmp(id, given->build_id, CPPROF_BUILD_ID_MAX - 1) == 0;
}

const char *
cpprof__given_for(const struct cpprof__given *given, size_t n,
                  const struct pprof_profile *p, size_t mapping)
{
    const struct cpprof__given *found = NULL;
    size_t i;

    for (i = 0; i < n; i++)
        if (is_for(&given[i], p, &p->mappings.at[mapping]) &&
            (!found || given[i].n_symbols > found->n_symbols))
            found = &given[i];
    return found ? found->path : NULL;
}

/* Refuse what is of no mapping, with what the one of its name has instead. */
static enum cpprof_status
check(const struct cpprof__given *given, const struct pprof_profile *p,
      struct cpprof_error *error)
{
    const char *id = *given->build_id ? given->build_id : "none", *other = NULL;
    size_t n;
    const char *name = cpprof__path_base(given->path, strlen(given->path), &n);
    size_t i;

    for (i = 0; i < p->mappings.n; i++) {
        const struct pprof_mapping *m = &p->mappings.at[i];

        if (is_for(given, p, m))
            return CPPROF_OK;
        if (!other && has_name(p, m, given->path))
            other = cpprof__strings_text(&p->strings, m->build_id);
    }
    if (other)
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            "%.*s: build ID %.16s..., but %.16s... ran", (int)n,
                            name, id, other);
    return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                        "%.*s: build ID %s: the profile has no such file",
                        (int)n, name, id);
}

static enum cpprof_status
read_one(struct cpprof__given *given, const char *path,
         const struct pprof_profile *p, struct cpprof_error *error)
{
    struct cpprof__image image = {0};
    enum cpprof_status status = cpprof__image_open(&image, path, error);

    if (status != CPPROF_OK)
        return status;
    given->path = path;
    given->n_symbols = cpprof__image_symbol_bytes(path);
    memcpy(given->build_id, image.build_id, sizeof given->build_id);
    cpprof__image_close(&image);
    return check(given, p, error);
}

enum cpprof_status
cpprof__given_read(const struct pprof_profile *p,
                   const struct pprof_symbolize_options *options,
                   struct cpprof__given **given, struct cpprof_error *error)
{
    struct cpprof__given *all;
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    *given = NULL;
    if (!options || !options->n_binaries)
        return CPPROF_OK;
    all = cpprof__calloc(options->n_binaries, sizeof *all);
    if (!all)
        return cpprof__fail_nomem(error);
    for (i = 0; i < options->n_binaries && status == CPPROF_OK; i++)
        status = read_one(&all[i], options->binaries[i], p, error);
    if (status == CPPROF_OK)
        *given = all;
    else
        cpprof__free(all);
    return status;
}
