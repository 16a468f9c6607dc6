/* SPDX-License-Identifier: MIT */
/*
 * Sets names that the caller has found, location by location. The old lines of
 * a location stay in the table without a reference to them; compacting drops
 * them.
 */
#include "profile/model/model.h"

#include "base/status.h"
#include "profile/model/debug.h"

#include <string.h>

enum cpprof_status
pprof_set_mapping_file(struct pprof_profile *p, size_t mapping,
                       const char *file, struct cpprof_error *error)
{
    uint32_t string = cpprof__strings_add_text(&p->strings, file);

    if (string == CPPROF__NO_STRING)
        return cpprof__fail_nomem(error);
    p->mappings.at[mapping].file = string;
    cpprof__debug_check(p);
    return CPPROF_OK;
}

/* The functions made here, by the number of their name. */
struct namer {
    struct pprof_profile *p;
    CPPROF__ARRAY(uint32_t) functions; /* by string, NONE where there is none */
    uint64_t next_id;
};

static uint64_t
free_id(const struct pprof_profile *p)
{
    uint64_t id = 1;
    size_t i;

    for (i = 0; i < p->functions.n; i++)
        if (p->functions.at[i].id >= id && p->functions.at[i].id < UINT64_MAX)
            id = p->functions.at[i].id + 1;
    return id;
}

/* The function of a name, made at its first use; NONE without memory. */
static uint32_t
function_of(struct namer *namer, const char *name)
{
    uint32_t string = cpprof__strings_add_text(&namer->p->strings, name);
    struct pprof_function *function;
    uint32_t *known;

    if (string == CPPROF__NO_STRING)
        return PPROF_NONE;
    while (namer->functions.n <= string) {
        known = CPPROF__ARRAY_ADD(&namer->functions);
        if (!known)
            return PPROF_NONE;
        *known = PPROF_NONE;
    }
    known = &namer->functions.at[string];
    if (*known != PPROF_NONE || namer->p->functions.n >= PPROF_NONE)
        return *known;
    function = CPPROF__ARRAY_ADD(&namer->p->functions);
    if (!function)
        return PPROF_NONE;
    memset(function, 0, sizeof *function);
    function->id = namer->next_id++;
    function->name = function->system_name = string;
    *known = (uint32_t)(namer->p->functions.n - 1);
    return *known;
}

static bool
set_name(struct namer *namer, struct pprof_location *location, const char *name)
{
    uint32_t function = function_of(namer, name);
    struct pprof_line *line;

    if (function == PPROF_NONE)
        return false;
    line = CPPROF__ARRAY_ADD(&namer->p->lines);
    if (!line)
        return false;
    *line = (struct pprof_line){.function = function};
    location->first_line = namer->p->lines.n - 1;
    location->n_lines = 1;
    return true;
}

static const struct pprof_symbol *
find(const struct pprof_symbol *symbols, size_t n, uint64_t address)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (symbols[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && symbols[low].address == address ? &symbols[low] : NULL;
}

enum cpprof_status
pprof_set_symbols(struct pprof_profile *p, size_t mapping,
                  const struct pprof_symbol *symbols, size_t n,
                  struct cpprof_error *error)
{
    struct namer namer = {.p = p, .next_id = free_id(p)};
    bool ok = true;
    size_t i;

    for (i = 0; i < p->locations.n && ok; i++) {
        struct pprof_location *l = &p->locations.at[i];
        const struct pprof_symbol *symbol;

        symbol = l->mapping == mapping ? find(symbols, n, l->address) : NULL;
        ok = !symbol || set_name(&namer, l, symbol->name);
    }
    if (ok)
        p->mappings.at[mapping].flags |= PPROF_HAS_FUNCTIONS;
    CPPROF__ARRAY_FREE(&namer.functions);
    cpprof__debug_check(p);
    return ok ? CPPROF_OK : cpprof__fail_nomem(error);
}
