/* SPDX-License-Identifier: MIT */
/* guest: 5. malloc is the program's: a program that counts the calls of its own
 * counts none of others while it sleeps.
 * malloc: own */
#include "host.h"

extern void *
__libc_malloc(size_t n);
extern void *
__libc_calloc(size_t n, size_t each);
extern void *
__libc_realloc(void *old, size_t n);
extern void
__libc_free(void *block);

static _Thread_local bool is_mine;
static unsigned n_others;

static void
count(void)
{
    if (!is_mine)
        __atomic_add_fetch(&n_others, 1, __ATOMIC_RELAXED);
}

void *
malloc(size_t n)
{
    count();
    return __libc_malloc(n);
}

void *
calloc(size_t n, size_t each)
{
    count();
    return __libc_calloc(n, each);
}

void *
realloc(void *old, size_t n)
{
    count();
    return __libc_realloc(old, n);
}

void
free(void *block)
{
    if (block)
        count();
    __libc_free(block);
}

static void *
sleeps(void *arg)
{
    is_mine = true;
    sleep_ms(600);
    return arg;
}

int
main(void)
{
    unsigned before = 0, after = 1, i;
    pthread_t threads[8];

    is_mine = true;
    for (i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, sleeps, NULL);
    /* What begins may load a library; that comes to an end. */
    for (i = 0; i < 100 && after != before; i++) {
        before = __atomic_load_n(&n_others, __ATOMIC_RELAXED);
        sleep_ms(100);
        after = __atomic_load_n(&n_others, __ATOMIC_RELAXED);
    }
    EXPECT(after == before, "%u calls in a tenth of a second", after - before);
    for (i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    return host_wrong;
}
