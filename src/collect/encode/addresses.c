/* SPDX-License-Identifier: MIT */
/*
 * Names for single addresses, for /debug/pprof/symbol: the mappings of this
 * process as they are now, and a symbolizer over them.
 *
 * It reads the maps once when it is opened. An address in no mapping, such as
 * JIT code, is asked for without one.
 */
#include "collect/encode/addresses.h"

#include "arch/atomic.h"
#include "collect/encode/names.h"
#include "collect/store/tables.h"

#include <stdlib.h>
#include <unistd.h>

#define FRAMES_MAX 256

struct cpprof__addresses {
    const struct cpprof__symbolizer_ops *ops; /* NULL: no names */
    struct cpprof__symbolizer *symbolizer;
    size_t n_mappings;
    size_t *numbers; /* the symbolizer's, of the store's mappings */
    struct cpprof__frame frames[FRAMES_MAX];
};

static void
add_mappings(struct cpprof__addresses *a, const struct cpprof__store *store)
{
    size_t i;

    for (i = 0; i < a->n_mappings; i++) {
        const struct cpprof__symbolizer_mapping mapping =
            cpprof__store_mapping_at(store, i);

        a->numbers[i] = a->ops->add_mapping(a->symbolizer, &mapping);
    }
}

/* False: no memory. */
static bool
open_symbolizer(struct cpprof__addresses *a)
{
    const struct cpprof__symbolizer_options options = {.pid =
                                                           (int32_t)getpid()};
    const struct cpprof__store *store = &cpprof__tables.store;

    if (cpprof__tables_make(NULL) != CPPROF_OK)
        return false;
    cpprof__tables_read_maps();
    a->n_mappings = load_acquire(&store->head->n_mappings);
    a->numbers = calloc(a->n_mappings + 1, sizeof *a->numbers);
    a->symbolizer = a->numbers ? a->ops->make(&options) : NULL;
    if (!a->symbolizer)
        return false;
    add_mappings(a, store);
    return true;
}

struct cpprof__addresses *
cpprof__addresses_open(void)
{
    struct cpprof__addresses *a = calloc(1, sizeof *a);

    if (!a)
        return NULL;
    a->ops = cpprof__names_load();
    if (a->ops && !open_symbolizer(a)) {
        cpprof__addresses_close(a);
        return NULL;
    }
    return a;
}

const char *
cpprof__addresses_name(struct cpprof__addresses *a, uint64_t pc)
{
    uint32_t mapping;
    size_t n;

    if (!a->symbolizer)
        return NULL;
    mapping =
        cpprof__store_find_mapping(&cpprof__tables.store, pc, a->n_mappings);
    n = a->ops->resolve(a->symbolizer,
                        mapping == CPPROF__NO_MAPPING ? SIZE_MAX
                                                      : a->numbers[mapping],
                        pc, a->frames, FRAMES_MAX);
    return n ? a->frames[0].system_name : NULL;
}

void
cpprof__addresses_close(struct cpprof__addresses *a)
{
    if (!a)
        return;
    if (a->symbolizer)
        a->ops->free(a->symbolizer);
    free(a->numbers);
    free(a);
}
