/* SPDX-License-Identifier: MIT */
/*
 * A program with an arena of its own, and where its memory goes. An arena gets
 * its memory from the kernel in one piece and hands it out itself, so no
 * profiler of malloc sees what is in it; here it says so.
 *
 *     cc heap_arena.c -lcpprof && ./a.out
 *     cpprof top arena.pb.gz
 *     cpprof top heap.pb.gz
 */
#include <cpprof/heap.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ARENA_BYTES (64u << 20)

struct arena {
    struct cpprof_heap *heap;
    char *memory;
    size_t used;
};

static void *
arena_alloc(struct arena *a, size_t n)
{
    void *p;

    n = (n + 15) / 16 * 16;
    if (n > ARENA_BYTES - a->used)
        return NULL;
    p = a->memory + a->used;
    a->used += n;
    cpprof_heap_record_in(a->heap, p, n);
    return p;
}

/* An arena that can give back single blocks would do so here. */
static void
arena_free(struct arena *a, void *p)
{
    cpprof_heap_release_in(a->heap, p);
}

/* ---- a program that uses it -------------------------------------------- */

static void
parse(struct arena *a)
{
    int i;

    for (i = 0; i < 10000; i++)
        arena_alloc(a, 4096); /* kept */
}

static void
compile(struct arena *a)
{
    int i;

    for (i = 0; i < 1000; i++)
        arena_free(a, arena_alloc(a, 16384));
}

static int
write_profile(const char *path, const struct cpprof_heap *heap)
{
    struct cpprof_heap_options options = {.size = sizeof options, .heap = heap};
    struct cpprof_error error;
    struct cpprof_writer out;

    if (cpprof_writer_to_path(path, &out, &error) != CPPROF_OK ||
        cpprof_heap_write(&out, &options, &error) != CPPROF_OK) {
        fprintf(stderr, "%s: %s\n", path, error.text);
        return 1;
    }
    return 0;
}

int
main(void)
{
    struct cpprof_error error;
    struct arena a = {0};

    a.memory = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (a.memory == MAP_FAILED)
        return 1;
    if (cpprof_heap_new("arena", &a.heap, &error) != CPPROF_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    parse(&a);
    compile(&a);
    return write_profile("arena.pb.gz", a.heap) |
           write_profile("heap.pb.gz", NULL);
}
