/* SPDX-License-Identifier: MIT */
/*
 * Locks behave under the profiles of waits as without them: every scenario is
 * run with both off and with both on, and has to return the same. Then every
 * call that can be cancelled is.
 */
#include "others.h"
#include "tap.h"

#include <cpprof/profiles.h>
#include <cpprof/records.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define BAD_TIME ((struct timespec){0, 2000000000})

static void
profiles(bool on)
{
    cpprof_block_set_rate(on);
    cpprof_mutex_set_fraction(on);
}

static struct timespec
in_ms(clockid_t clock, int ms)
{
    struct timespec t;

    clock_gettime(clock, &t);
    t.tv_nsec += (long)ms * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* What a scenario returned, one code after the other. */
static int codes[32];
static unsigned n_codes;

static void
say(int code)
{
    if (n_codes < 32)
        codes[n_codes++] = code;
}

static void
say_errno(int result)
{
    say(result);
    say(result ? errno : 0);
}

/* Run f(arg) in a thread of its own, to its end. */
static void
elsewhere(void *(*f)(void *), void *arg)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, f, arg) || pthread_join(thread, NULL))
        bail("no thread");
}

static pthread_mutex_t
make_mutex(int type, int robust, int protocol)
{
    pthread_mutexattr_t attr;
    pthread_mutex_t m;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, type);
    pthread_mutexattr_setrobust(&attr, robust);
    pthread_mutexattr_setprotocol(&attr, protocol);
    pthread_mutex_init(&m, &attr);
    return m;
}

static pthread_mutex_t shared;

/* ---- mutexes ---------------------------------------------------------- */

static void *
try_all_ways(void *arg)
{
    struct timespec end = in_ms(CLOCK_REALTIME, 5);
    struct timespec monotonic = in_ms(CLOCK_MONOTONIC, 5);

    say(pthread_mutex_unlock(arg));
    say(pthread_mutex_timedlock(arg, &end));
    say(pthread_mutex_timedlock(arg, &BAD_TIME));
    say(pthread_mutex_clocklock(arg, CLOCK_MONOTONIC, &monotonic));
    say(pthread_mutex_clocklock(arg, CLOCK_REALTIME, &end));
    say(pthread_mutex_clocklock(arg, CLOCK_PROCESS_CPUTIME_ID, &end));
    return NULL;
}

static void
of_type(int type, int robust, int protocol)
{
    struct timespec end = in_ms(CLOCK_REALTIME, 5);

    shared = make_mutex(type, robust, protocol);
    say(pthread_mutex_lock(&shared));
    if (type != PTHREAD_MUTEX_NORMAL)
        say(pthread_mutex_lock(&shared));
    say(pthread_mutex_timedlock(&shared, &end));
    if (type != PTHREAD_MUTEX_NORMAL) /* it is not its owner's to unlock */
        elsewhere(try_all_ways, &shared);
    say(pthread_mutex_unlock(&shared));
    if (type != PTHREAD_MUTEX_NORMAL) {
        say(pthread_mutex_unlock(&shared));
        say(pthread_mutex_unlock(&shared));
        say(pthread_mutex_unlock(&shared));
    }
    say(pthread_mutex_timedlock(&shared, &BAD_TIME));
    say(pthread_mutex_unlock(&shared));
    say(pthread_mutex_clocklock(&shared, CLOCK_MONOTONIC, &end));
    say(pthread_mutex_unlock(&shared));
    say(pthread_mutex_clocklock(&shared, CLOCK_PROCESS_CPUTIME_ID, &end));
}

static void
normal(void)
{
    of_type(PTHREAD_MUTEX_NORMAL, 0, PTHREAD_PRIO_NONE);
}

static void
error_checking(void)
{
    of_type(PTHREAD_MUTEX_ERRORCHECK, 0, PTHREAD_PRIO_NONE);
}

static void
recursive(void)
{
    of_type(PTHREAD_MUTEX_RECURSIVE, 0, PTHREAD_PRIO_NONE);
}

static void
inheriting(void)
{
    of_type(PTHREAD_MUTEX_ERRORCHECK, 0, PTHREAD_PRIO_INHERIT);
    of_type(PTHREAD_MUTEX_NORMAL, 0, PTHREAD_PRIO_INHERIT);
}

static void
robust_inheriting(void)
{
    of_type(PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ROBUST,
            PTHREAD_PRIO_INHERIT);
}

static void
protecting(void)
{
    shared = make_mutex(PTHREAD_MUTEX_ERRORCHECK, 0, PTHREAD_PRIO_PROTECT);
    say(pthread_mutex_lock(&shared));
    say(pthread_mutex_lock(&shared));
    say(pthread_mutex_unlock(&shared));
    say(pthread_mutex_unlock(&shared));
}

static volatile bool has_it;

static void *
die_with_it(void *arg)
{
    say(pthread_mutex_lock(&shared));
    has_it = true;
    if (arg)
        usleep(20000);
    return NULL;
}

static void
robust(void)
{
    pthread_t owner;

    shared = make_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, 0);
    elsewhere(die_with_it, NULL);
    say(pthread_mutex_lock(&shared));
    say(pthread_mutex_consistent(&shared));
    say(pthread_mutex_unlock(&shared));
    /* It dies while we wait. */
    has_it = false;
    pthread_create(&owner, NULL, die_with_it, &shared);
    while (!has_it)
        usleep(1000);
    say(pthread_mutex_lock(&shared));
    pthread_join(owner, NULL);
    say(pthread_mutex_unlock(&shared));
    say(pthread_mutex_lock(&shared));
    say(pthread_mutex_unlock(&shared));
}

/* ---- others ----------------------------------------------------------- */

static pthread_rwlock_t rwlock;

static void *
read_and_write(void *arg)
{
    struct timespec end = in_ms(CLOCK_REALTIME, 5);
    struct timespec monotonic = in_ms(CLOCK_MONOTONIC, 5);

    say(pthread_rwlock_timedrdlock(&rwlock, &end));
    say(pthread_rwlock_timedwrlock(&rwlock, &end));
    say(pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &monotonic));
    say(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &monotonic));
    say(pthread_rwlock_timedwrlock(&rwlock, &BAD_TIME));
    return NULL;
}

static void
rwlocks(void)
{
    struct timespec end = in_ms(CLOCK_REALTIME, 50);

    pthread_rwlock_init(&rwlock, NULL);
    say(pthread_rwlock_wrlock(&rwlock));
    say(pthread_rwlock_wrlock(&rwlock));
    say(pthread_rwlock_rdlock(&rwlock));
    say(pthread_rwlock_timedwrlock(&rwlock, &end));
    elsewhere(read_and_write, NULL);
    say(pthread_rwlock_unlock(&rwlock));
    say(pthread_rwlock_rdlock(&rwlock));
    say(pthread_rwlock_rdlock(&rwlock));
    say(pthread_rwlock_unlock(&rwlock));
    say(pthread_rwlock_unlock(&rwlock));
    say(pthread_rwlock_timedrdlock(&rwlock, &BAD_TIME));
    say(pthread_rwlock_clockrdlock(&rwlock, CLOCK_PROCESS_CPUTIME_ID, &end));
}

static void
conditions(void)
{
    pthread_mutex_t m = make_mutex(PTHREAD_MUTEX_ERRORCHECK, 0, 0);
    struct timespec end = in_ms(CLOCK_REALTIME, 5);
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;

    say(pthread_cond_timedwait(&c, &m, &end)); /* not ours */
    say(pthread_mutex_lock(&m));
    say(pthread_cond_timedwait(&c, &m, &end));
    say(pthread_cond_timedwait(&c, &m, &BAD_TIME));
    end = in_ms(CLOCK_MONOTONIC, 5);
    say(pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &end));
    say(pthread_cond_clockwait(&c, &m, CLOCK_PROCESS_CPUTIME_ID, &end));
    say(pthread_mutex_unlock(&m));
    say(pthread_mutex_unlock(&m));
}

static void
nothing(int signo)
{
}

static void
semaphores(void)
{
    struct timespec end = in_ms(CLOCK_REALTIME, 5);
    struct sigaction action = {.sa_handler = nothing};
    sem_t s;

    sem_init(&s, 0, 2);
    errno = 77;
    say(sem_wait(&s));
    say(errno);
    say(sem_timedwait(&s, &end));
    say(errno);
    say_errno(sem_timedwait(&s, &end));
    say_errno(sem_timedwait(&s, &BAD_TIME));
    end = in_ms(CLOCK_MONOTONIC, 5);
    say_errno(sem_clockwait(&s, CLOCK_MONOTONIC, &end));
    say_errno(sem_clockwait(&s, CLOCK_PROCESS_CPUTIME_ID, &end));
    sigaction(SIGALRM, &action, NULL);
    ualarm(10000, 0);
    say_errno(sem_wait(&s));
}

static sem_t may_return;

static void *
wait_and_return(void *arg)
{
    while (sem_wait(&may_return))
        ;
    return arg;
}

static void *
join_oneself(void *arg)
{
    say(pthread_join(pthread_self(), NULL));
    return NULL;
}

static void
joins(void)
{
    struct timespec end = in_ms(CLOCK_REALTIME, 3);
    void *result = NULL;
    pthread_t thread;

    sem_init(&may_return, 0, 0);
    elsewhere(join_oneself, NULL);
    pthread_create(&thread, NULL, wait_and_return, &end);
    say(pthread_timedjoin_np(thread, &result, &end));
    end = in_ms(CLOCK_MONOTONIC, 2);
    say(pthread_clockjoin_np(thread, &result, CLOCK_MONOTONIC, &end));
    sem_post(&may_return);
    say(pthread_join(thread, &result));
    say(result == &end);
    sem_post(&may_return);
    pthread_create(&thread, NULL, wait_and_return, &end);
    usleep(60000); /* it has ended */
    say(pthread_join(thread, &result));
    say(result == &end);
    pthread_create(&thread, NULL, wait_and_return, NULL);
    pthread_detach(thread);
    say(pthread_join(thread, NULL));
    sem_post(&may_return);
    usleep(30000);
}

static void
barriers(void)
{
    pthread_barrier_t b;

    pthread_barrier_init(&b, NULL, 1);
    say(pthread_barrier_wait(&b));
    say(pthread_barrier_wait(&b));
}

static mtx_t c11_mutex;

static int
c11_thread(void *arg)
{
    struct timespec end = in_ms(CLOCK_REALTIME, 5);

    say(mtx_timedlock(&c11_mutex, &end));
    usleep((unsigned)(uintptr_t)arg);
    return 42;
}

static void
c11(void)
{
    struct timespec end = in_ms(CLOCK_REALTIME, 5);
    thrd_t thread;
    int result = 0;
    cnd_t c;

    mtx_init(&c11_mutex, mtx_timed | mtx_recursive);
    cnd_init(&c);
    say(mtx_lock(&c11_mutex));
    say(mtx_lock(&c11_mutex));
    thrd_create(&thread, c11_thread, (void *)20000);
    say(thrd_join(thread, &result));
    say(result);
    thrd_create(&thread, c11_thread, NULL);
    usleep(30000); /* it has ended */
    say(thrd_join(thread, &result));
    say(mtx_unlock(&c11_mutex));
    end = in_ms(CLOCK_REALTIME, 5);
    say(cnd_timedwait(&c, &c11_mutex, &end));
    say(mtx_unlock(&c11_mutex));
}

static const struct {
    void (*run)(void);
    const char *name;
} scenarios[] = {
    {normal, "normal mutexes return what they do without us"},
    {error_checking, "error-checking mutexes return what they do without us"},
    {recursive, "recursive mutexes return what they do without us"},
    {robust, "robust mutexes return what they do without us"},
    {inheriting, "priority-inheriting mutexes return what they do without us"},
    {robust_inheriting, "robust recursive inheriting ones, too"},
    {protecting, "priority-protecting mutexes return what they do without us"},
    {rwlocks, "read-write locks return what they do without us"},
    {conditions, "conditions return what they do without us"},
    {semaphores, "semaphores return what they do without us"},
    {joins, "joins return what they do without us"},
    {barriers, "barriers return what they do without us"},
    {c11, "C11's locks return what they do without us"},
};

static void
same_codes(void (*run)(void), const char *name)
{
    int without[32];
    unsigned i, n;
    bool same;

    n_codes = 0;
    profiles(false);
    run();
    memcpy(without, codes, sizeof without);
    n = n_codes;
    n_codes = 0;
    profiles(true);
    run();
    same = n == n_codes && !memcmp(codes, without, n * sizeof *codes);
    for (i = 0; i < n && !same; i++)
        note("%2u: %d without, %d with", i, without[i], codes[i]);
    check(same && n > 1, name);
}

/* ---- cancellation ----------------------------------------------------- */

static pthread_mutex_t cancel_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cancel_condition = PTHREAD_COND_INITIALIZER;
static sem_t cancel_semaphore;
static pthread_t sleeper;
static volatile bool has_mutex;

static void *
sleep_on(void *arg)
{
    pause();
    return NULL;
}

static void
unlock(void *m)
{
    has_mutex = pthread_mutex_trylock(m) == EBUSY;
    pthread_mutex_unlock(m);
}

#define WITH_MUTEX(call)                                                       \
    pthread_mutex_lock(&cancel_mutex);                                         \
    pthread_cleanup_push(unlock, &cancel_mutex);                               \
    (call);                                                                    \
    pthread_cleanup_pop(1)

static void *
wait_in(void *arg)
{
    struct timespec end = in_ms(CLOCK_REALTIME, 0);
    struct timespec monotonic = in_ms(CLOCK_MONOTONIC, 0);

    end.tv_sec += 60;
    monotonic.tv_sec += 60;
    switch ((intptr_t)arg) {
    case 0:
        WITH_MUTEX(pthread_cond_wait(&cancel_condition, &cancel_mutex));
        break;
    case 1:
        WITH_MUTEX(
            pthread_cond_timedwait(&cancel_condition, &cancel_mutex, &end));
        break;
    case 2:
        WITH_MUTEX(pthread_cond_clockwait(&cancel_condition, &cancel_mutex,
                                          CLOCK_MONOTONIC, &monotonic));
        break;
    case 3:
        WITH_MUTEX(
            cnd_wait((cnd_t *)&cancel_condition, (mtx_t *)&cancel_mutex));
        break;
    case 4:
        sem_wait(&cancel_semaphore);
        break;
    case 5:
        sem_timedwait(&cancel_semaphore, &end);
        break;
    case 6:
        sem_clockwait(&cancel_semaphore, CLOCK_MONOTONIC, &monotonic);
        break;
    case 7:
        pthread_join(sleeper, NULL);
        break;
    case 8:
        pthread_timedjoin_np(sleeper, NULL, &end);
        break;
    case 9:
        pthread_clockjoin_np(sleeper, NULL, CLOCK_MONOTONIC, &monotonic);
        break;
    }
    return NULL;
}

static int64_t
n_waits(void)
{
    static struct cpprof_wait_record records[512];
    size_t i, n = 0;
    int64_t sum = 0;

    if (cpprof_block_records(records, 512, &n, NULL) || n > 512)
        bail("no records");
    for (i = 0; i < n; i++)
        sum += records[i].count;
    return sum;
}

static void
cancel_in(int which)
{
    static const char *const names[] = {"pthread_cond_wait",
                                        "pthread_cond_timedwait",
                                        "pthread_cond_clockwait",
                                        "cnd_wait",
                                        "sem_wait",
                                        "sem_timedwait",
                                        "sem_clockwait",
                                        "pthread_join",
                                        "pthread_timedjoin_np",
                                        "pthread_clockjoin_np"};
    int64_t waits = n_waits();
    void *result = NULL;
    pthread_t thread;
    char name[100];

    has_mutex = false;
    pthread_create(&thread, NULL, wait_in, (void *)(intptr_t)which);
    let_others_sleep();
    pthread_cancel(thread);
    /* No join that waits: it would be counted, or not, as the thread ends. */
    while (pthread_tryjoin_np(thread, &result))
        usleep(1000);
    snprintf(name, sizeof name, "%s is cancelled", names[which]);
    check(result == PTHREAD_CANCELED, name);
    snprintf(name, sizeof name, "%s: its wait is counted", names[which]);
    check_at_least((double)(n_waits() - waits), 1, name);
    if (which < 4)
        check(has_mutex, "the mutex was had in the cleanup handler");
}

static void *
lock_shared(void *arg)
{
    int code;

    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    code = pthread_mutex_lock(&cancel_mutex);
    pthread_mutex_unlock(&cancel_mutex);
    return (void *)(intptr_t)(code + 1);
}

static void
cancel_a_lock(void)
{
    void *result = NULL;
    pthread_t thread;

    pthread_mutex_lock(&cancel_mutex);
    pthread_create(&thread, NULL, lock_shared, NULL);
    let_others_sleep();
    pthread_cancel(thread);
    usleep(10000);
    pthread_mutex_unlock(&cancel_mutex);
    pthread_join(thread, &result);
    check(result == (void *)1, "pthread_mutex_lock is not cancelled");
}

int
main(void)
{
    size_t i;

    protecting(); /* the first lock of all is where glibc learns priorities */
    for (i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        same_codes(scenarios[i].run, scenarios[i].name);
    profiles(true);
    sem_init(&cancel_semaphore, 0, 0);
    pthread_create(&sleeper, NULL, sleep_on, NULL);
    for (i = 0; i < 10; i++)
        cancel_in((int)i);
    cancel_a_lock();
    return check_done();
}
