/* SPDX-License-Identifier: MIT */
/*
 * Every name of libc that is taken over, in one table, and what each of them is
 * underneath: the next definition after ours.
 *
 * All of them are found at once, by the constructor: later a look at the
 * loader's list could meet a module that is just being loaded or unloaded, and
 * dlsym() would wait for the loader's lock, which the caller may hold or wait
 * for. Who calls one of the names earlier (the loader itself, a constructor
 * that runs before ours) makes the same search first. It takes no lock and no
 * memory, and whoever makes it twice stores the same addresses twice.
 *
 * tests/lint/exports.py holds the exports of libcpprof.so against this table.
 */
#ifndef COLLECT_REAL_H
#define COLLECT_REAL_H

#include "arch/atomic.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* The sanitizers' allocators have to be first: they keep what surrounds each
 * block. A library that is built with one leaves the names to it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CPPROF__HAS_ALLOCATOR 0
#define CPPROF__ALLOCATOR_NAMES(X)
#else
#define CPPROF__HAS_ALLOCATOR 1
#define CPPROF__ALLOCATOR_NAMES(X)                                             \
    X(ALLOCATE, malloc)                                                        \
    X(ALLOCATE, calloc)                                                        \
    X(ALLOCATE, memalign)                                                      \
    X(ALLOCATE, aligned_alloc)                                                 \
    X(ALLOCATE, posix_memalign)                                                \
    X(ALLOCATE, valloc)                                                        \
    X(ALLOCATE, pvalloc)                                                       \
    X(RELEASE, realloc)                                                        \
    X(RELEASE, reallocarray)                                                   \
    X(RELEASE, free)                                                           \
    X(RELEASE, cfree)                                                          \
    X(RELEASE, free_sized)                                                     \
    X(RELEASE, free_aligned_sized)
#endif

/* Sanitizers set a limit before anything can run that is built with them. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CPPROF__LIMIT_NAMES(X)
#else
#define CPPROF__LIMIT_NAMES(X)                                                 \
    X(PROCESS, setrlimit)                                                      \
    X(PROCESS, setrlimit64)                                                    \
    X(PROCESS, prlimit)                                                        \
    X(PROCESS, prlimit64)
#endif

/*
 * X(group, symbol): names of one group do what they do here while the group is
 * on, and are a jump to the next definition while it is off
 * (src/interpose/take_over.h).
 */
#define CPPROF__NAMES(X)                                                       \
    CPPROF__ALLOCATOR_NAMES(X)                                                 \
    X(MAPS, mmap)                                                              \
    X(MAPS, mmap64)                                                            \
    X(MAPS, munmap)                                                            \
    X(MAPS, mremap)                                                            \
    X(WAITS, pthread_mutex_lock)                                               \
    X(WAITS, pthread_mutex_timedlock)                                          \
    X(WAITS, pthread_mutex_clocklock)                                          \
    X(WAITS, pthread_mutex_unlock)                                             \
    X(WAITS, pthread_rwlock_rdlock)                                            \
    X(WAITS, pthread_rwlock_timedrdlock)                                       \
    X(WAITS, pthread_rwlock_clockrdlock)                                       \
    X(WAITS, pthread_rwlock_wrlock)                                            \
    X(WAITS, pthread_rwlock_timedwrlock)                                       \
    X(WAITS, pthread_rwlock_clockwrlock)                                       \
    X(WAITS, pthread_rwlock_unlock)                                            \
    X(WAITS, pthread_cond_wait)                                                \
    X(WAITS, pthread_cond_timedwait)                                           \
    X(WAITS, pthread_cond_clockwait)                                           \
    X(WAITS, pthread_barrier_wait)                                             \
    X(WAITS, pthread_join)                                                     \
    X(WAITS, pthread_timedjoin_np)                                             \
    X(WAITS, pthread_clockjoin_np)                                             \
    X(WAITS, sem_wait)                                                         \
    X(WAITS, sem_timedwait)                                                    \
    X(WAITS, sem_clockwait)                                                    \
    X(WAITS, mtx_lock)                                                         \
    X(WAITS, mtx_timedlock)                                                    \
    X(WAITS, mtx_unlock)                                                       \
    X(WAITS, cnd_wait)                                                         \
    X(WAITS, cnd_timedwait)                                                    \
    X(WAITS, thrd_join)                                                        \
    X(PROCESS, pthread_create)                                                 \
    X(PROCESS, thrd_create)                                                    \
    X(PROCESS, fork)                                                           \
    X(PROCESS, _exit)                                                          \
    X(PROCESS, _Exit)                                                          \
    X(PROCESS, dlclose)                                                        \
    CPPROF__LIMIT_NAMES(X)                                                     \
    X(PROCESS, mlockall)                                                       \
    X(PROCESS, sigaltstack)                                                    \
    X(PROCESS, prctl)                                                          \
    X(PROCESS, setsid)                                                         \
    X(PROCESS, daemon)                                                         \
    X(PROCESS, setuid)                                                         \
    X(PROCESS, seteuid)                                                        \
    X(PROCESS, setreuid)                                                       \
    X(PROCESS, setresuid)                                                      \
    X(PROCESS, setgid)                                                         \
    X(PROCESS, setegid)                                                        \
    X(PROCESS, setregid)                                                       \
    X(PROCESS, setresgid)                                                      \
    X(PROCESS, setgroups)                                                      \
    X(PROCESS, initgroups)                                                     \
    X(PROCESS, capset)                                                         \
    X(PROCESS, unshare)                                                        \
    X(PROCESS, close_range)                                                    \
    X(PROCESS, setns)                                                          \
    X(PROCESS, chroot)

/* Not taken over, but called underneath instead of those above: others may
 * have taken them over, too, and know of both or of none. */
#define CPPROF__NAMES_BENEATH(X)                                               \
    X(BENEATH, pthread_mutex_trylock)                                          \
    X(BENEATH, pthread_rwlock_tryrdlock)                                       \
    X(BENEATH, pthread_rwlock_trywrlock)                                       \
    X(BENEATH, pthread_tryjoin_np)                                             \
    X(BENEATH, pthread_detach)                                                 \
    X(BENEATH, sem_trywait)                                                    \
    X(BENEATH, mtx_trylock)

/* Of those that are taken over, what a program that is linked statically calls
 * as it is (src/interpose/linked.c): what would bring the loader and the name
 * service into it, and what is not in every libc. */
#define CPPROF__NAMES_UNWRAPPED(X)                                             \
    X(RELEASE, cfree)                                                          \
    X(RELEASE, free_sized)                                                     \
    X(RELEASE, free_aligned_sized)                                             \
    X(PROCESS, dlclose)                                                        \
    X(PROCESS, initgroups)

struct cpprof__definition;
struct link_map;

enum cpprof__name {
#define CPPROF__NUMBER(group, name) CPPROF__NAME_##name,
    CPPROF__NAMES(CPPROF__NUMBER) CPPROF__N_NAMES,
    CPPROF__LAST_TAKEN_OVER = CPPROF__N_NAMES - 1,
    CPPROF__NAMES_BENEATH(CPPROF__NUMBER) CPPROF__N_NEXT
#undef CPPROF__NUMBER
};

#pragma GCC visibility push(hidden)
/* The next definitions; NULL: not looked for, or nobody has one. */
extern void *cpprof__next[CPPROF__N_NEXT];
/* All of them as the linker has found them, in a program that is linked
 * statically; NULL in all others. */
extern void *const *cpprof__linked;
#pragma GCC visibility pop

/* Find the next definition of every name. Safety: AS, unless a module is being
 * unloaded. */
void
cpprof__names_find(void);

/* Of n names (runtime/next.h), the definitions in the module that malloc is in
 * underneath. Safety: as above. */
void
cpprof__names_beside_malloc(const char *names, struct cpprof__definition *found,
                            unsigned n);

/* A name as it is underneath, once it was found. */
#define cpprof__real(name)                                                     \
    ((__typeof__(name) *)load_relaxed(&cpprof__next[CPPROF__NAME_##name]))

/*
 * Something is asked of the library: a profile, labels, a server. Before, the
 * names of the group PROCESS are jumps, too, and no handler of fork is there:
 * a program that was only preloaded runs no code of ours. For good; what is on
 * already costs a load. Safety: MT.
 */
void
cpprof__use(void);

#pragma GCC visibility push(hidden)
/* Called at the first use; NULL: nothing is taken over. */
extern void (*cpprof__first_use)(void);
#pragma GCC visibility pop

/*
 * Is the program built with ThreadSanitizer? That ends it when a thread runs
 * which was made behind its back, or was made in a forked child. So nothing is
 * taken over and no thread is started then.
 */
#define CPPROF__NO_TSAN                                                        \
    "the program is built with ThreadSanitizer: nothing is profiled"
bool
cpprof__program_has_tsan(void);

int
cpprof__real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                            void *(*start)(void *), void *arg);

/* Of threads that were made so, by what is underneath, too: AddressSanitizer
 * ends the process where it is asked to join a thread that it does not know. */
int
cpprof__real_pthread_join(pthread_t thread, void **result);
int
cpprof__real_pthread_detach(pthread_t thread);

#endif
