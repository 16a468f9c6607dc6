/* SPDX-License-Identifier: MIT */
/*
 * Allocates, frees some of it, and writes the heap as it then is: as a pprof
 * file, as text, and both once more after the rate has changed.
 *
 *     heap_writer DIRECTORY
 */
#include <cpprof/heap.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 2000

static void *volatile kept[N];

static __attribute__((noinline)) void
allocate(int i, size_t n, int depth)
{
    if (depth > 0)
        allocate(i, n, depth - 1);
    else
        kept[i] = malloc(n);
    __asm__ volatile("" ::: "memory");
}

static void
work(void)
{
    static const size_t sizes[] = {24, 100, 1000, 5000, 40000, 300000};
    int i;

    for (i = 0; i < N; i++)
        allocate(i, sizes[i % 6], i % 7);
    for (i = 0; i < N; i += 3)
        free(kept[i]);
}

static struct cpprof_error error;

static struct cpprof_writer
open_in(const char *directory, const char *name)
{
    struct cpprof_writer out;
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (cpprof_writer_to_path(path, &out, &error) != CPPROF_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return out;
}

static void
write_to(struct cpprof_writer *out, int32_t debug)
{
    struct cpprof_heap_options options = {.size = sizeof options,
                                          .debug = debug};

    if (cpprof_heap_write(out, &options, &error) != CPPROF_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
}

/* Files are opened before anything is sampled: names tell readers to drop the
 * leaves of what that allocates, and text has no names. */
int
main(int argc, char **argv)
{
    struct cpprof_writer out[4];

    if (argc != 2)
        return 2;
    cpprof_heap_set_rate(0);
    out[0] = open_in(argv[1], "one.pb.gz");
    out[1] = open_in(argv[1], "one.txt");
    out[2] = open_in(argv[1], "two.pb.gz");
    out[3] = open_in(argv[1], "two.txt");
    cpprof_heap_set_rate(4096);
    work();
    write_to(&out[0], 0);
    write_to(&out[1], 1);
    cpprof_heap_set_rate(512);
    work();
    write_to(&out[2], 0);
    write_to(&out[3], 1);
    return 0;
}
