/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include "own/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES   4096
#define LARGEST_BYTES (1024 * 1024)
#define ALIGNMENT     16

struct cpprof__arena_chunk {
    struct cpprof__arena_chunk *before;
    size_t n_bytes;
};

static struct cpprof__arena_chunk *
add_chunk(struct cpprof__arena *arena, size_t n)
{
    size_t n_bytes = arena->chunks ? arena->chunks->n_bytes * 2 : FIRST_BYTES;
    size_t head = sizeof(struct cpprof__arena_chunk);
    struct cpprof__arena_chunk *chunk;

    if (n_bytes > LARGEST_BYTES)
        n_bytes = LARGEST_BYTES;
    if (n_bytes < n + head)
        n_bytes = n + head;
    chunk = cpprof__malloc(n_bytes);
    if (!chunk)
        return NULL;
    chunk->before = arena->chunks;
    chunk->n_bytes = n_bytes;
    arena->chunks = chunk;
    arena->next = (char *)(chunk + 1);
    arena->left = n_bytes - head;
    arena->n_bytes += n_bytes;
    return chunk;
}

static void *
take(struct cpprof__arena *arena, size_t n)
{
    void *p;

    if (n > arena->left && !add_chunk(arena, n))
        return NULL;
    p = arena->next;
    arena->next += n;
    arena->left -= n;
    return p;
}

void *
cpprof__arena_alloc(struct cpprof__arena *arena, size_t n)
{
    size_t pad = -(uintptr_t)arena->next & (ALIGNMENT - 1);

    if (n > SIZE_MAX / 2)
        return NULL;
    if (n == 0)
        n = 1; /* NULL means out of memory, and nothing else */
    if (pad > arena->left)
        pad = arena->left;
    arena->next += pad;
    arena->left -= pad;
    return take(arena, n);
}

char *
cpprof__arena_copy(struct cpprof__arena *arena, const char *text, size_t n)
{
    char *copy = n < SIZE_MAX / 2 ? take(arena, n + 1) : NULL;

    if (copy) {
        if (n) /* no text may have no address */
            memcpy(copy, text, n);
        copy[n] = 0;
    }
    return copy;
}

void
cpprof__arena_free(struct cpprof__arena *arena)
{
    while (arena->chunks) {
        struct cpprof__arena_chunk *chunk = arena->chunks;

        arena->chunks = chunk->before;
        cpprof__free(chunk);
    }
    memset(arena, 0, sizeof *arena);
}
