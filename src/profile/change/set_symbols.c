/* SPDX-License-Identifier: MIT */
/*
 * Sets names that the caller has found, location by location. The old lines of
 * a location stay in the table without a reference to them; compacting drops
 * them.
 */
#include "base/status.h"
#include "profile/change/change.h"
#include "profile/model/check.h"
#include "profile/model/make.h"

enum cpprof_status
pprof_set_mapping_file(struct pprof_profile *p, size_t mapping,
                       const char *file, struct cpprof_error *error)
{
    CPPROF__NEED(error, p && file);

    enum cpprof_status status =
        cpprof__build_index("mapping", mapping, p->mappings.n, error);

    if (status == CPPROF_OK)
        status =
            cpprof__build_string(p, file, &p->mappings.at[mapping].file, error);
    cpprof__debug_check(p);
    return status;
}

static void
set_name(struct cpprof__maker *m, struct pprof_location *location,
         const char *name)
{
    uint32_t string = cpprof__make_text(m, name);
    uint32_t function = cpprof__make_function(m, string, string, 0);
    size_t line = m->p->lines.n;

    cpprof__make_line(m, (struct pprof_line){.function = function});
    if (m->failed)
        return;
    location->first_line = line;
    location->n_lines = 1;
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
    CPPROF__NEED(error, p && (symbols || !n));

    struct cpprof__maker m = {.p = p};
    enum cpprof_status status =
        cpprof__build_index("mapping", mapping, p->mappings.n, error);
    size_t i;

    for (i = 0; i < n && status == CPPROF_OK; i++)
        if (!symbols[i].name)
            status = cpprof__fail(error, CPPROF_INVALID, 0,
                                  "symbol %zu has no name", i);
    if (status != CPPROF_OK)
        return status;
    for (i = 0; i < p->locations.n && !m.failed; i++) {
        struct pprof_location *l = &p->locations.at[i];
        const struct pprof_symbol *symbol =
            l->mapping == mapping ? find(symbols, n, l->address) : NULL;

        if (symbol)
            set_name(&m, l, symbol->name);
    }
    if (!m.failed)
        p->mappings.at[mapping].flags |= PPROF_HAS_FUNCTIONS;
    cpprof__maker_free(&m);
    cpprof__debug_check(p);
    return m.failed ? cpprof__fail_nomem(error) : CPPROF_OK;
}
