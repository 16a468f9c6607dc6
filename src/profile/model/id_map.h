/* SPDX-License-Identifier: MIT */
/*
 * From the ids of a file to indices. Writers number from 1, so small ids are
 * looked up in an array; ids far beyond their count go through a hash.
 */
#ifndef PROFILE_ID_MAP_H
#define PROFILE_ID_MAP_H

#include "base/hash.h"

#include <stdint.h>

#define CPPROF__NO_INDEX UINT32_MAX

struct cpprof__id_map {
    uint32_t *dense; /* by id; CPPROF__NO_INDEX: not there */
    size_t n_dense;
    struct cpprof__table sparse; /* the others */
};

/* Of n records of `stride` bytes, each of which begins with its 64-bit id;
 * the index of the last one where an id comes twice. False when out of memory;
 * free it in either case. */
bool
cpprof__id_map_make(struct cpprof__id_map *map, const void *records, size_t n,
                    size_t stride);
void
cpprof__id_map_free(struct cpprof__id_map *map);

uint32_t
cpprof__id_map_sparse(const struct cpprof__id_map *map, uint64_t id);

/* The index of an id, or CPPROF__NO_INDEX. */
static inline uint32_t
cpprof__id_map_get(const struct cpprof__id_map *map, uint64_t id)
{
    return id < map->n_dense ? map->dense[id] : cpprof__id_map_sparse(map, id);
}

#endif
