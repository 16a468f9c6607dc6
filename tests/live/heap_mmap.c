/* SPDX-License-Identifier: MIT */
/*
 * The heap "mmap": mappings that come, go in parts, are mapped over and move.
 * At rate 1 every byte of them is in it, and nothing else.
 */
#include "tap.h"

#include "collect/heap/heap_maps.h"
#include "collect/signal/heap/heap.h"
#include "collect/signal/heap/heap_tables.h"
#include <cpprof/heap.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE  ((size_t)4096)
#define WRITE (PROT_READ | PROT_WRITE)
#define OWN   (MAP_PRIVATE | MAP_ANONYMOUS)

/* Blocks of the heap, and their bytes. */
static size_t
in_use(size_t *bytes)
{
    uint32_t i, n = cpprof__heap_n_blocks(&cpprof__heap);
    struct cpprof__heap_block block;
    size_t found = 0;

    *bytes = 0;
    for (i = 1; i < n; i++)
        if (cpprof__heap_read_block(&cpprof__heap, i, &block) &&
            (block.use & 0xff) == cpprof__maps_heap) {
            found++;
            *bytes += block.bytes;
        }
    return found;
}

static size_t n_start, bytes_start;

static void
begin(void)
{
    n_start = in_use(&bytes_start);
}

static void
holds(size_t n, size_t n_pages, const char *name)
{
    size_t bytes, found = in_use(&bytes) - n_start;

    bytes -= bytes_start;
    if (found != n || bytes != n_pages * PAGE)
        note("%zu blocks of %zu bytes, want %zu of %zu", found, bytes, n,
             n_pages * PAGE);
    check(found == n && bytes == n_pages * PAGE, name);
}

static char *
map(size_t n_pages)
{
    char *at = mmap(NULL, n_pages * PAGE, WRITE, OWN, -1, 0);

    if (at == MAP_FAILED)
        bail("mmap");
    return at;
}

static void
test_off(void)
{
    char *at = map(4);

    check(!cpprof__maps_heap && at[0] == 0, "mmap works while it is off");
    check_equal(munmap(at, 4 * PAGE), 0, "so does munmap");
    errno = 0;
    check(mmap(NULL, 0, WRITE, OWN, -1, 0) == MAP_FAILED && errno == EINVAL,
          "and errno is the kernel's");
}

static void
test_parts(void)
{
    char *at;

    begin();
    at = map(10);
    holds(1, 10, "a mapping is a block");
    munmap(at + 4 * PAGE, 2 * PAGE);
    holds(1, 8, "a hole in it makes it smaller");
    munmap(at, PAGE);
    holds(1, 7, "so does what is gone from its front");
    at[PAGE] = at[9 * PAGE] = 1;
    munmap(at + 9 * PAGE, 100);
    holds(1, 6, "and from its end, by less than a page");
    munmap(at, 10 * PAGE);
    holds(0, 0, "the rest goes as one");
}

static void
test_over(void)
{
    char *at;

    begin();
    at = map(10);
    mmap(at + 2 * PAGE, 3 * PAGE, WRITE, OWN | MAP_FIXED, -1, 0);
    holds(2, 10, "what is mapped over a part is a block of its own");
    mmap(at, PAGE, PROT_NONE, OWN | MAP_FIXED, -1, 0);
    holds(2, 9, "a reservation over a part gives it back");
    mmap(at, 10 * PAGE, WRITE, OWN | MAP_FIXED, -1, 0);
    holds(1, 10, "a mapping over all of it is one block");
    munmap(at, 10 * PAGE);
    holds(0, 0, "and goes");
}

static void
test_two_at_once(void)
{
    char *at;

    begin();
    at = mmap(NULL, 20 * PAGE, PROT_NONE, OWN, -1, 0);
    holds(0, 0, "a reservation is none");
    mmap(at, 10 * PAGE, WRITE, OWN | MAP_FIXED, -1, 0);
    mmap(at + 10 * PAGE, 10 * PAGE, WRITE, OWN | MAP_FIXED, -1, 0);
    munmap(at + 5 * PAGE, 10 * PAGE);
    holds(2, 10, "one munmap takes from two mappings");
    munmap(at, 20 * PAGE);
    holds(0, 0, "another takes the rest");
}

static void
test_moves(void)
{
    char *at, *room;

    begin();
    room = mmap(NULL, 40 * PAGE, PROT_NONE, OWN, -1, 0);
    at = mremap(map(10), 10 * PAGE, 5 * PAGE, 0);
    holds(1, 5, "mremap shrinks");
    at = mremap(at, 5 * PAGE, 20 * PAGE, MREMAP_MAYMOVE);
    holds(1, 20, "and grows");
    at = mremap(at, 20 * PAGE, 30 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room);
    check(at == room, "and moves");
    holds(1, 30, "what it was goes with it");
    errno = 0;
    check(mremap(at, 30 * PAGE, SIZE_MAX / 2, 0) == MAP_FAILED && errno,
          "an mremap that fails");
    holds(1, 30, "leaves it");
    errno = 0;
    check(munmap(at + 1, PAGE) == -1 && errno == EINVAL, "a munmap that fails");
    holds(1, 30, "leaves it too");
    munmap(room, 40 * PAGE);
    holds(0, 0, "and it goes");
}

static void
test_others(void)
{
    int fd = open("/proc/self/exe", O_RDONLY);
    char *at;

    begin();
    at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    holds(0, 0, "a file is none");
    munmap(at, PAGE);
    free(malloc(64 << 20));
    holds(0, 0, "nor is libc's malloc");
}

static void *
map_and_unmap(void *arg)
{
    unsigned i;

    for (i = 0; i < 3000; i++) {
        char *at = map(1 + i % 7);

        munmap(at, PAGE);
        if (i % 7)
            munmap(at + PAGE, (i % 7) * PAGE);
    }
    return arg;
}

static void
test_threads(void)
{
    pthread_t threads[4];
    int i, status = -1;
    pid_t pid;

    begin();
    for (i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, map_and_unmap, NULL);
    for (i = 0; i < 20; i++) {
        pid = fork();
        if (!pid) {
            map_and_unmap(NULL);
            _exit(0);
        }
        waitpid(pid, &status, 0);
        if (status)
            break;
    }
    for (i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    check_equal(status, 0, "children map while threads of their parent did");
    holds(0, 0, "four threads leave nothing behind");
    check_equal((int64_t)cpprof__maps_n, 0, "nor in the table of pieces");
}

int
main(void)
{
    struct cpprof_heap *heap, *again;

    if (!cpprof__heap.head)
        return check_skip_all("the heap's tables are not made");
    cpprof_heap_set_rate(1);
    test_off();
    check_equal(cpprof_heap_follow_mmap(&heap, NULL), CPPROF_OK,
                "it can be had");
    cpprof_heap_follow_mmap(&again, NULL);
    check(again == heap, "and is one heap");
    test_parts();
    test_over();
    test_two_at_once();
    test_moves();
    test_others();
    test_threads();
    return check_done();
}
