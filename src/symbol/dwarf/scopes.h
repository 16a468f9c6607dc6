/* SPDX-License-Identifier: MIT */
/*
 * The namespaces, classes and functions that a DIE stands in, which DWARF says
 * only from the outside in. Needed for the functions of C++ that have no
 * linkage name, and so no qualified one: GCC leaves it out for what is local
 * to its file and inlined everywhere (lambdas, anonymous namespaces).
 */
#ifndef SYMBOL_SCOPES_H
#define SYMBOL_SCOPES_H

#include "base/hash.h"
#include "base/ranges.h"
#include "symbol/dwarf/names.h"

#include <elfutils/libdw.h>

/* Zero bytes is a valid, empty set. */
struct cpprof__scopes {
    /* Those that were asked for. */
    CPPROF__ARRAY(struct cpprof__unit_scopes {
        Dwarf_CU *unit;
        CPPROF__ARRAY(struct cpprof__scope {
            const char *name; /* in the DWARF's strings */
            uint32_t parent;  /* in items, or UINT32_MAX */
            bool is_linkage;  /* name is mangled, and complete */
        })
        items;
        struct cpprof__ranges ranges; /* of DIE offsets; value: in items */
    })
    units;
    struct cpprof__index index; /* of units, by address */
};

/*
 * The name of the function at die with the scopes it is declared in before it,
 * "app::work::<lambda(int)>::operator()"; NULL when out of memory.
 */
const char *
cpprof__scopes_qualify(struct cpprof__scopes *scopes,
                       struct cpprof__names *names, Dwarf_Die *die,
                       const char *name);

void
cpprof__scopes_free(struct cpprof__scopes *scopes);

#endif
