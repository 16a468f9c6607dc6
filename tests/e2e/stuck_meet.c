/* SPDX-License-Identifier: MIT */
/*
 * Loaded before a program: has two of its threads take two of its mutexes in
 * the wrong order. A thread that is about to release one waits for a while
 * until another thread is about to release another one; then each takes what
 * the other one has. SEEDED is a part of the name of the file whose calls are
 * meant.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Tunable: the program begins undisturbed; how long a thread waits for another
 * one, in naps; and between two such waits. */
#define BEGIN_S 1
#define NAP_US  2500
#define NAPS    80
#define REST_MS 20
/* Of a mutex's kind. Source: glibc nptl/pthreadP.h. */
#define KIND      127
#define LAST_KIND 3

static int (*next_unlock)(pthread_mutex_t *);
static _Atomic uintptr_t lo, hi; /* of the file */
static uint64_t begun_ms;
static _Atomic uint64_t next_ms; /* when a thread may wait again */

enum { NOBODY, ONE, SECOND_COMES, TWO }; /* how many are there */
static _Atomic int state;
static pthread_mutex_t *mutexes[2];
static _Atomic int tid;

static uint64_t
now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The program itself has no name here. */
static int
find_file(struct dl_phdr_info *info, size_t bytes, void *part)
{
    const char *name =
        *info->dlpi_name ? info->dlpi_name : program_invocation_name;
    uintptr_t at;
    int i;

    (void)bytes;
    for (i = 0; strstr(name, part) && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD &&
            info->dlpi_phdr[i].p_flags & PF_X) {
            at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            hi = at + info->dlpi_phdr[i].p_memsz;
            lo = at;
        }
    return lo != 0;
}

__attribute__((constructor)) static void
find(void)
{
    next_unlock =
        (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    begun_ms = now_ms();
}

/* The file may be loaded at any time. */
static bool
is_meant(uintptr_t caller, const pthread_mutex_t *mutex)
{
    char *part = getenv("SEEDED");
    uint64_t now = now_ms();

    if (state == TWO || now - begun_ms < BEGIN_S * 1000 || now < next_ms ||
        (mutex->__data.__kind & KIND) > LAST_KIND)
        return false;
    if (!lo && part)
        dl_iterate_phdr(find_file, part);
    return caller >= lo && caller < hi;
}

static void
take(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    next_unlock(mutex);
}

static void
meet(pthread_mutex_t *mutex)
{
    int none = NOBODY, one = ONE, self = (int)syscall(SYS_gettid), i;

    if (!tid && atomic_compare_exchange_strong(&tid, &none, self)) {
        mutexes[0] = mutex;
        state = ONE;
        for (i = 0; i < NAPS && state == ONE; i++)
            usleep(NAP_US);
        if (!atomic_compare_exchange_strong(&state, &one, NOBODY)) {
            while (state != TWO)
                usleep(NAP_US);
            take(mutexes[1]);
        }
        next_ms = now_ms() + REST_MS;
        tid = 0;
    } else if (state == ONE && tid != self && mutexes[0] != mutex) {
        if (!atomic_compare_exchange_strong(&state, &one, SECOND_COMES))
            return;
        mutexes[1] = mutex;
        state = TWO;
        take(mutexes[0]);
    }
}

__attribute__((visibility("default"))) int
pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    if (!next_unlock)
        find();
    if (is_meant((uintptr_t)__builtin_return_address(0), mutex))
        meet(mutex);
    return next_unlock(mutex);
}
