/* SPDX-License-Identifier: MIT */
/* Threads that are cancelled in the calls; see stress_cancel.h. */
#include "stress_cancel.h"

#include "load.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* Nobody posts, signals or ends these. */
static sem_t never;
static pthread_cond_t no_signal = PTHREAD_COND_INITIALIZER;
static cnd_t no_cnd;
static pthread_t endless;

/* Of the thread that is to be cancelled. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Held by who cancels, until it did. */
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static mtx_t held_mtx, own_mtx;
static pthread_barrier_t barrier; /* of the two */

static int is_waiting;
static int n_cleaned;

/* ---- what is waited in ------------------------------------------------ */

static void
wait_cond(void)
{
    pthread_cond_wait(&no_signal, &lock);
}

static void
wait_cond_timed(void)
{
    const struct timespec t = in_an_hour(CLOCK_REALTIME);

    pthread_cond_timedwait(&no_signal, &lock, &t);
}

static void
wait_cond_clock(void)
{
    const struct timespec t = in_an_hour(CLOCK_MONOTONIC);

    pthread_cond_clockwait(&no_signal, &lock, CLOCK_MONOTONIC, &t);
}

static void
wait_sem(void)
{
    sem_wait(&never);
}

static void
wait_sem_timed(void)
{
    const struct timespec t = in_an_hour(CLOCK_REALTIME);

    sem_timedwait(&never, &t);
}

static void
wait_sem_clock(void)
{
    const struct timespec t = in_an_hour(CLOCK_MONOTONIC);

    sem_clockwait(&never, CLOCK_MONOTONIC, &t);
}

static void
wait_join(void)
{
    pthread_join(endless, NULL);
}

static void
wait_join_timed(void)
{
    const struct timespec t = in_an_hour(CLOCK_REALTIME);

    pthread_timedjoin_np(endless, NULL, &t);
}

static void
wait_join_clock(void)
{
    const struct timespec t = in_an_hour(CLOCK_MONOTONIC);

    pthread_clockjoin_np(endless, NULL, CLOCK_MONOTONIC, &t);
}

/* These are no cancellation points: the lock is got first. */

static void
wait_mutex(void)
{
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    pthread_testcancel();
}

static void
wait_mutex_timed(void)
{
    const struct timespec t = in_an_hour(CLOCK_REALTIME);

    if (!pthread_mutex_timedlock(&held, &t))
        pthread_mutex_unlock(&held);
    pthread_testcancel();
}

static void
wait_mutex_clock(void)
{
    const struct timespec t = in_an_hour(CLOCK_MONOTONIC);

    if (!pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, &t))
        pthread_mutex_unlock(&held);
    pthread_testcancel();
}

static void
done_with_rwlock(int failed)
{
    if (!failed)
        pthread_rwlock_unlock(&rwlock);
    pthread_testcancel();
}

static void
wait_to_read(void)
{
    done_with_rwlock(pthread_rwlock_rdlock(&rwlock));
}

static void
wait_to_read_timed(void)
{
    const struct timespec t = in_an_hour(CLOCK_REALTIME);

    done_with_rwlock(pthread_rwlock_timedrdlock(&rwlock, &t));
}

static void
wait_to_read_clock(void)
{
    const struct timespec t = in_an_hour(CLOCK_MONOTONIC);

    done_with_rwlock(pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &t));
}

static void
wait_to_write(void)
{
    done_with_rwlock(pthread_rwlock_wrlock(&rwlock));
}

static void
wait_to_write_timed(void)
{
    const struct timespec t = in_an_hour(CLOCK_REALTIME);

    done_with_rwlock(pthread_rwlock_timedwrlock(&rwlock, &t));
}

static void
wait_to_write_clock(void)
{
    const struct timespec t = in_an_hour(CLOCK_MONOTONIC);

    done_with_rwlock(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &t));
}

/* Who cancels comes to it, too. */
static void
wait_barrier(void)
{
    pthread_barrier_wait(&barrier);
    pthread_testcancel();
}

/* ---- of C11 ----------------------------------------------------------- */

static void
wait_mtx(void)
{
    mtx_lock(&held_mtx);
    mtx_unlock(&held_mtx);
    pthread_testcancel();
}

static void
wait_mtx_timed(void)
{
    const struct timespec t = in_an_hour(CLOCK_REALTIME);

    if (mtx_timedlock(&held_mtx, &t) == thrd_success)
        mtx_unlock(&held_mtx);
    pthread_testcancel();
}

static void
unlock_own_mtx(void *arg)
{
    if (mtx_unlock(arg) != thrd_success)
        abort();
}

static void
wait_cnd(void)
{
    mtx_lock(&own_mtx);
    pthread_cleanup_push(unlock_own_mtx, &own_mtx);
    cnd_wait(&no_cnd, &own_mtx);
    pthread_cleanup_pop(1);
}

static void
wait_cnd_timed(void)
{
    const struct timespec t = in_an_hour(CLOCK_REALTIME);

    mtx_lock(&own_mtx);
    pthread_cleanup_push(unlock_own_mtx, &own_mtx);
    cnd_timedwait(&no_cnd, &own_mtx, &t);
    pthread_cleanup_pop(1);
}

static void
wait_thrd(void)
{
    thrd_join(endless, NULL);
}

/* ---- what does not wait ----------------------------------------------- */

/* Cancelled somewhere in there, the thread dies behind it. */

static void
use_malloc(void)
{
    void *volatile p[] = {malloc(5000),
                          calloc(3, 700),
                          aligned_alloc(64, 640),
                          memalign(4096, 100),
                          valloc(100),
                          pvalloc(100),
                          reallocarray(NULL, 9, 9)};
    void *aligned = NULL;
    size_t i;

    p[0] = realloc(p[0], 60000);
    if (posix_memalign(&aligned, 256, 2000))
        abort();
    free(aligned);
    for (i = 0; i < sizeof p / sizeof *p; i++)
        free(p[i]);
    pthread_testcancel();
}

static void
use_mmap(void)
{
    const size_t page = 4096;
    char *p = mmap(NULL, page, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p != MAP_FAILED)
        p = mremap(p, page, 4 * page, MREMAP_MAYMOVE);
    if (p != MAP_FAILED)
        munmap(p, 4 * page);
    pthread_testcancel();
}

static void *
end_at_once(void *arg)
{
    return arg;
}

static int
end_at_once_c11(void *arg)
{
    (void)arg;
    return 0;
}

static void
use_threads(void)
{
    pthread_t thread;
    thrd_t thrd;

    if (!pthread_create(&thread, NULL, end_at_once, NULL))
        pthread_detach(thread);
    if (thrd_create(&thrd, end_at_once_c11, NULL) == thrd_success)
        thrd_detach(thrd);
    pthread_testcancel();
}

static void
use_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_IGN};

    sigaction(SIGURG, &action, NULL);
    signal(SIGURG, SIG_DFL);
    sysv_signal(SIGURG, SIG_DFL);
    pthread_testcancel();
}

static void
use_processes(void)
{
    char *const words[] = {"nothing", NULL};
    int state;
    pid_t child;

    execv("/nowhere/nothing", words);
    execvp("no such command", words);
    child = fork();
    if (!child)
        _exit(0);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    pthread_setcancelstate(state, NULL);
    pthread_testcancel();
}

static void
use_loader(void)
{
    void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);

    if (library)
        dlclose(library);
    pthread_testcancel();
}

static void (*const points[])(void) = {
    wait_cond,           wait_cond_timed,
    wait_cond_clock,     wait_sem,
    wait_sem_timed,      wait_sem_clock,
    wait_join,           wait_join_timed,
    wait_join_clock,     wait_mutex,
    wait_mutex_timed,    wait_mutex_clock,
    wait_to_read,        wait_to_read_timed,
    wait_to_read_clock,  wait_to_write,
    wait_to_write_timed, wait_to_write_clock,
    wait_barrier,        wait_mtx,
    wait_mtx_timed,      wait_cnd,
    wait_cnd_timed,      wait_thrd,
    use_malloc,          use_mmap,
    use_threads,         use_signals,
    use_processes,       use_loader,
};
#define N_POINTS (sizeof points / sizeof *points)

/* ---- once ------------------------------------------------------------- */

/* Whatever it waited in, it has its lock when it is cleaned up. */
static void
clean_up(void *arg)
{
    (void)arg;
    if (!pthread_mutex_unlock(&lock))
        __atomic_fetch_add(&n_cleaned, 1, __ATOMIC_RELAXED);
}

static void *
wait_at(void *arg)
{
    void (*const *point)(void) = arg;

    pthread_mutex_lock(&lock);
    pthread_cleanup_push(clean_up, NULL);
    __atomic_store_n(&is_waiting, 1, __ATOMIC_RELEASE);
    for (;;)
        (*point)();
    pthread_cleanup_pop(1);
    return NULL;
}

bool
cancel_once(unsigned i)
{
    void (*const *point)(void) = &points[i % N_POINTS];
    int before = n_cleaned;
    void *result = NULL;
    pthread_t thread;

    __atomic_store_n(&is_waiting, 0, __ATOMIC_RELEASE);
    pthread_mutex_lock(&held);
    pthread_rwlock_wrlock(&rwlock);
    mtx_lock(&held_mtx);
    if (pthread_create(&thread, NULL, wait_at, (void *)point))
        return false;
    while (!__atomic_load_n(&is_waiting, __ATOMIC_ACQUIRE))
        usleep(50);
    usleep(i * 7919 % 300);
    pthread_cancel(thread);
    if (*point == wait_barrier)
        pthread_barrier_wait(&barrier);
    mtx_unlock(&held_mtx);
    pthread_rwlock_unlock(&rwlock);
    pthread_mutex_unlock(&held);
    pthread_join(thread, &result);
    return result == PTHREAD_CANCELED && n_cleaned == before + 1;
}

static void *
sleep_for_ever(void *arg)
{
    for (;;)
        pause();
    return arg;
}

void
cancel_begin(void)
{
    sem_init(&never, 0, 0);
    mtx_init(&held_mtx, mtx_timed);
    mtx_init(&own_mtx, mtx_plain);
    cnd_init(&no_cnd);
    pthread_barrier_init(&barrier, NULL, 2);
    if (pthread_create(&endless, NULL, sleep_for_ever, NULL))
        abort();
}

void
cancel_end(void)
{
    pthread_cancel(endless);
    pthread_join(endless, NULL);
}
