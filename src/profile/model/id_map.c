/* SPDX-License-Identifier: MIT */
/*
 * The ids of a file, mapped to indices of our tables.
 *
 * An array answers for ids up to four times the number of entries, which
 * covers every writer that counts from 1. Larger ids go through a hash index.
 * If an id occurs twice, the last one counts.
 *
 * Invariants: memory is in proportion to the number of entries, whatever the
 * ids are.
 */
#include "profile/model/id_map.h"

#include "own/memory.h"

#include <stdlib.h>
#include <string.h>

/* The array covers ids up to this many times their count. */
#define DENSE_FACTOR 4
#define DENSE_EXTRA  1024

static uint64_t
id_at(const void *records, size_t i, size_t stride)
{
    uint64_t id;

    memcpy(&id, (const char *)records + i * stride, sizeof id);
    return id;
}

static bool
make_dense(struct cpprof__id_map *map, const void *records, size_t n,
           size_t stride)
{
    uint64_t limit = (uint64_t)n * DENSE_FACTOR + DENSE_EXTRA, largest = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        uint64_t id = id_at(records, i, stride);

        if (id < limit && id > largest)
            largest = id;
    }
    map->n_dense = largest + 1;
    map->dense = cpprof__malloc(map->n_dense * sizeof *map->dense);
    if (!map->dense)
        return false;
    memset(map->dense, 0xff, map->n_dense * sizeof *map->dense);
    return true;
}

struct sparse {
    uint64_t id; /* the key */
    uint64_t index;
};

/* The entry of an id, or NULL. */
static struct sparse *
find(const struct cpprof__id_map *map, uint64_t id)
{
    uint32_t at =
        cpprof__table_find(&map->sparse, &id, sizeof id, sizeof(struct sparse));

    return at == CPPROF__INDEX_NONE
               ? NULL
               : (struct sparse *)map->sparse.entries.data + at;
}

uint32_t
cpprof__id_map_sparse(const struct cpprof__id_map *map, uint64_t id)
{
    const struct sparse *found = find(map, id);

    return found ? (uint32_t)found->index : CPPROF__NO_INDEX;
}

static bool
set_sparse(struct cpprof__id_map *map, uint64_t id, uint32_t index)
{
    const struct sparse entry = {id, index};
    bool added;

    if (cpprof__table_add(&map->sparse, &entry, sizeof id, sizeof entry,
                          &added) == CPPROF__INDEX_NONE)
        return false;
    find(map, id)->index = index;
    return true;
}

bool
cpprof__id_map_make(struct cpprof__id_map *map, const void *records, size_t n,
                    size_t stride)
{
    size_t i;

    memset(map, 0, sizeof *map);
    if (!make_dense(map, records, n, stride)) {
        map->n_dense = 0;
        return false;
    }
    for (i = 0; i < n; i++) {
        uint64_t id = id_at(records, i, stride);

        if (id < map->n_dense)
            map->dense[id] = (uint32_t)i;
        else if (!set_sparse(map, id, (uint32_t)i))
            return false;
    }
    return true;
}

void
cpprof__id_map_free(struct cpprof__id_map *map)
{
    cpprof__free(map->dense);
    cpprof__table_free(&map->sparse);
    memset(map, 0, sizeof *map);
}
