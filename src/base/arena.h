/* SPDX-License-Identifier: MIT */
/*
 * Memory that is freed all at once: chunks that double up to 1 MiB. Pointers
 * stay valid until the arena is freed. Zero bytes is a valid, empty arena.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct cpprof__arena {
    struct cpprof__arena_chunk *chunks;
    char *next;
    size_t left;
    size_t n_bytes; /* held from malloc */
};

/* n bytes aligned for any object, or NULL. */
void *
cpprof__arena_alloc(struct cpprof__arena *arena, size_t n);
/* A terminated copy of n bytes, or NULL. */
char *
cpprof__arena_copy(struct cpprof__arena *arena, const char *text, size_t n);
void
cpprof__arena_free(struct cpprof__arena *arena);

#endif
