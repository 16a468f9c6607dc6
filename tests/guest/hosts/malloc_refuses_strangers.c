/* SPDX-License-Identifier: MIT */
/* guest: 2. An allocator for programs of one thread sees no call by a thread of
 * ours once what we need is loaded.
 * malloc: own */
#include "host.h"
#include <sys/mman.h>
#include <sys/syscall.h>

static char heap[64 << 20] __attribute__((aligned(16)));
static size_t used;
static long owner;
static unsigned n_strangers;

static void
check(void)
{
    if (owner && syscall(SYS_gettid) != owner)
        __atomic_add_fetch(&n_strangers, 1, __ATOMIC_RELAXED);
}

void *
malloc(size_t n)
{
    size_t at, need = (n + 31) & ~(size_t)15;

    check();
    at = __atomic_fetch_add(&used, need, __ATOMIC_RELAXED);
    if (at + need > sizeof heap) {
        errno = ENOMEM;
        return NULL;
    }
    *(size_t *)(heap + at) = n;
    return heap + at + 16;
}

void
free(void *p)
{
    if (p)
        check();
}

void *
calloc(size_t n, size_t each)
{
    return malloc(n * each); /* never used before */
}

void *
realloc(void *old, size_t n)
{
    void *p = malloc(n);
    size_t before = old ? ((size_t *)old)[-2] : 0;

    if (p && old)
        memcpy(p, old, before < n ? before : n);
    return p;
}

/* What begins may load libraries, on a thread of ours. */
static void
wait_until_loaded(void)
{
    unsigned before, i = 0;

    do {
        before = __atomic_load_n(&n_strangers, __ATOMIC_RELAXED);
        for (int j = 0; j < 15; j++) {
            busy_ms(10);
            sleep_ms(100);
        }
    } while (++i < 8 && before != n_strangers);
}

int
main(void)
{
    unsigned before;

    owner = syscall(SYS_gettid);
    wait_until_loaded();
    before = n_strangers;
    for (int i = 0; i < 40; i++) {
        free(malloc(100 + i));
        busy_ms(10);
        sleep_ms(50);
    }
    EXPECT(n_strangers == before, "%u calls of others", n_strangers - before);
    owner = 0; /* destructors are others' */
    return host_wrong;
}
