/* SPDX-License-Identifier: MIT */
/*
 * What the sources expect of a libc and musl's headers lack; included in front
 * of each file of a build for musl (meson.build), and of no other. So the rooms
 * know one libc.
 *
 * Names that musl does not have are declared here, because a function is made
 * for each name of runtime/real.h. They are not exported (hidden.map): a
 * program that asks for one is told, as it would be without us, that there is
 * none. And so they are never called.
 */
#ifndef ARCH_MUSL_NAMES_H
#define ARCH_MUSL_NAMES_H

#include <dlfcn.h>
#include <link.h>
#include <linux/stat.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

/* ---- headers ---------------------------------------------------------- */

#define __THROW

/* Of a macro each the name, which binaries made elsewhere call. */
#undef mmap64
#undef setrlimit64
#undef prlimit64
typedef int __rlimit_resource_t;

void *
mmap64(void *want, size_t n, int prot, int flags, int fd, off_t offset);
int
setrlimit64(int resource, const struct rlimit *limit);
int
prlimit64(pid_t pid, int resource, const struct rlimit *now,
          struct rlimit *before);

/* ---- names that musl does not have ------------------------------------ */

int
pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock,
                        const struct timespec *end);
int
pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t clock,
                           const struct timespec *end);
int
pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t clock,
                           const struct timespec *end);
int
pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
                       const struct timespec *end);
int
pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock,
                     const struct timespec *end);
int
sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *end);
void *
pvalloc(size_t n);

/* All of them, for src/interpose/linked.c: the linker does not find them. */
#define CPPROF__NAMES_LACKING(X)                                               \
    X(pthread_mutex_clocklock)                                                 \
    X(pthread_rwlock_clockrdlock)                                              \
    X(pthread_rwlock_clockwrlock)                                              \
    X(pthread_cond_clockwait)                                                  \
    X(pthread_clockjoin_np)                                                    \
    X(sem_clockwait)                                                           \
    X(pvalloc)

/* ---- the loader ------------------------------------------------------- */

/* Its list of modules; glibc's _r_debug. */
extern struct r_debug *_dl_debug_addr;
#define _r_debug (*_dl_debug_addr)

/* loader.c */
#define RTLD_DL_LINKMAP 2
#define dladdr1         cpprof__musl_dladdr1
int
cpprof__musl_dladdr1(const void *address, Dl_info *info, void **map, int kind);

#endif
