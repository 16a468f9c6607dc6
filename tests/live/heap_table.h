/* SPDX-License-Identifier: MIT */
/*
 * The table of live blocks, seen from inside: for programs that have the whole
 * library in them. At rate 1 every block that is live must be in it, once, with
 * its size, and nothing else.
 */
#ifndef LIVE_HEAP_TABLE_H
#define LIVE_HEAP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_entry {
    uintptr_t address;
    size_t bytes;
};

/* What is live now, sorted by address; in memory that is no part of it. */
struct heap_table {
    struct heap_entry *entries;
    size_t n;
};

void
heap_table_read(struct heap_table *table);
void
heap_table_free(struct heap_table *table);

/* How many entries an address has, and the bytes of the last of them. */
size_t
heap_table_find(const struct heap_table *table, const void *address,
                size_t *bytes);

/* The same for one address, now. */
size_t
heap_entries_of(const void *address, size_t *bytes);

/* How many entries are live now. */
size_t
heap_n_live(void);

/* How many blocks were ever sampled. */
uint64_t
heap_n_sampled(void);

/* Is the allocator underneath ours the one that the run is about (argv[1], as
 * in its file's name; "glibc" or none: libc's)? */
bool
heap_is_on(int argc, char **argv);

/* Is the malloc underneath ours that of glibc? Is a function part of the same
 * library as it? (An allocator that lacks one leaves it to glibc, and its own
 * free may not take what that one gave.) */
bool
heap_is_glibc(void);
bool
heap_has(const char *function);

#endif
