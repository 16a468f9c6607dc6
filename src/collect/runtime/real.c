/* SPDX-License-Identifier: MIT */
/*
 * The names underneath, and what the library itself calls of them. The
 * constructor looks for all at once; a name is never looked for again, but for
 * C++'s operators, which come and go with libraries.
 */
#include "collect/runtime/real.h"

#include "collect/runtime/next.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

void *cpprof__next[CPPROF__N_NEXT];

/* Where malloc is in one of these, the next definition of a name is too, or is
 * not the allocator's. */
static const struct link_map *modules[CPPROF__N_NEXT];

static void
find(enum cpprof__name name, const char *symbol)
{
    const struct link_map *module = NULL;
    void *next = cpprof__next_symbol(symbol, &module);

    store_relaxed(&modules[name], module);
    store_release(&cpprof__next[name], next);
}

void
cpprof__names_find(void)
{
#define FIND(group, name) find(CPPROF__NAME_##name, #name);
    CPPROF__NAMES(FIND)
    CPPROF__NAMES_BENEATH(FIND)
}

void
cpprof__names_find_operators(void)
{
#if CPPROF__HAS_ALLOCATOR
    CPPROF__CXX_NAMES(FIND)
#endif
}

bool
cpprof__is_of_allocator(enum cpprof__name name)
{
#if CPPROF__HAS_ALLOCATOR
    return modules[name] == modules[CPPROF__NAME_malloc];
#else
    return false;
#endif
}

/* ---- use -------------------------------------------------------------- */

void (*cpprof__first_use)(void);
static bool is_used;

void
cpprof__use(void)
{
    void (*first)(void);

    if (load_acquire(&is_used) || swap_acq_rel(&is_used, true))
        return;
    first = load_acquire(&cpprof__first_use);
    if (first)
        first();
}

/* ---- what the library itself calls ------------------------------------ */

/* Where nothing is taken over, as in a test of these files, nobody has looked
 * before. */
static void
be_found(enum cpprof__name name)
{
    if (!load_acquire(&cpprof__next[name]))
        cpprof__names_find();
}

int
cpprof__real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                            void *(*start)(void *), void *arg)
{
    be_found(CPPROF__NAME_pthread_create);
    cpprof__use();
    return cpprof__real(pthread_create)(thread, attr, start, arg);
}

int
cpprof__real_sigaction(int signo, const struct sigaction *action,
                       struct sigaction *old)
{
    be_found(CPPROF__NAME_sigaction);
    return cpprof__real(sigaction)(signo, action, old);
}

/* Of the kernel's size, 8 bytes, and not of libc's. */
int
cpprof__real_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    if (old)
        sigemptyset(old);
    return syscall(SYS_rt_sigprocmask, how, set, old, 8) ? errno : 0;
}
