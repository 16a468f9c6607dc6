/* SPDX-License-Identifier: MIT */
/* guest: 2. A program with AddressSanitizer, whose malloc has locks that a
 * child inherits as they are, forks while the profiler is at work, and each
 * child allocates.
 * sanitizer: address */
#include "host.h"

extern int
__sanitizer_install_malloc_and_free_hooks(
    void (*allocated)(const volatile void *block, size_t n),
    void (*freed)(const volatile void *block));

static _Thread_local bool is_mine;
static unsigned n_others;

static void
freed(const volatile void *block)
{
    (void)block;
    if (!is_mine)
        __atomic_add_fetch(&n_others, 1, __ATOMIC_RELAXED);
}

static void
allocated(const volatile void *block, size_t n)
{
    (void)n;
    freed(block);
}

/* What begins may load a library, which is not for ever: a second and more
 * without a call, as something may be loaded a second after the begin. */
static void
wait_until_quiet(void)
{
    unsigned before = 0, after = 1, n_quiet = 0, i;

    for (i = 0; i < 50 && n_quiet < 7; i++) {
        before = __atomic_load_n(&n_others, __ATOMIC_RELAXED);
        sleep_ms(200);
        after = __atomic_load_n(&n_others, __ATOMIC_RELAXED);
        n_quiet = after == before ? n_quiet + 1 : 0;
    }
    EXPECT(after == before, "%u calls of malloc", after - before);
}

static void
child(void)
{
    alarm(50); /* it waits for ever */
    for (int i = 0; i < 100; i++)
        free(malloc((size_t)(i * 37 % 5000)));
    _exit(7);
}

int
main(void)
{
    is_mine = true;
    __sanitizer_install_malloc_and_free_hooks(allocated, freed);
    wait_until_quiet();
    for (int i = 0; i < 60 && !host_wrong; i++) {
        pid_t pid = fork();
        int status;

        if (pid == 0)
            child();
        status = status_of(pid);
        EXPECT(status == 7, "a child ended with %d", status);
        busy_ms(2);
    }
    return host_wrong;
}
