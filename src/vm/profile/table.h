/* SPDX-License-Identifier: MIT */
/*
 * Numbers of functions and of locations in them: dense, in the order in which
 * they were met, found by hash. A function that is gone is not found any more,
 * but keeps its number and its locations for samples that have them; the same
 * address may get a new number.
 *
 * Memory is bounded: a full table is cleared, which begins a new generation,
 * and what is met again is described again.
 */
#ifndef VM_TABLE_H
#define VM_TABLE_H

#include "base/hash.h"

/*
 * Entries until a table is cleared: some 3 MB with what output.c has for them.
 * More takes more memory; fewer makes a program of many lines be described more
 * often than it changes.
 */
#define CPPROF__VM_FUNCTIONS_MAX 32768u
#define CPPROF__VM_LOCATIONS_MAX 65536u

#define CPPROF__VM_NONE CPPROF__INDEX_NONE

/* Keys have no padding: they are hashed and compared as bytes. */
struct cpprof__vm_function_key {
    const void *vm;       /* NULL: gone */
    const void *function; /* as the interpreter has it */
};

struct cpprof__vm_location_key {
    uint32_t function;
    uint32_t pc;
    int32_t line; /* as the interpreter has it: -1 is asked for once */
};

struct cpprof__vm_table {
    struct cpprof__table functions; /* struct cpprof__vm_function_key */
    struct cpprof__table locations; /* struct cpprof__vm_location_key */
    uint32_t generation;
};

void
cpprof__vm_table_gone(struct cpprof__vm_table *table,
                      const struct cpprof__vm_function_key *key);

bool
cpprof__vm_table_is_full(const struct cpprof__vm_table *table);
void
cpprof__vm_table_clear(struct cpprof__vm_table *table);

#endif
