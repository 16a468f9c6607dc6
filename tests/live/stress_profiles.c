/* SPDX-License-Identifier: MIT */
/*
 * Every profile at once, while threads come and go, wait for each other, are
 * cancelled and interrupted, fork, load code and change what is sampled.
 * Nothing may hang, crash or be wrong.
 *
 *     stress_profiles [SECONDS]
 *     STRESS_SECONDS=SECONDS stress_profiles
 *     CPPROF=WORDS stress_profiles SECONDS     under a profile that goes on
 */
#include "command.h"
#include "stress_cancel.h"
#include "tap.h"
#include <cpprof/cpu.h>
#include <cpprof/heap.h>
#include <cpprof/labels.h>
#include <cpprof/profiles.h>
#include <cpprof/wall.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * TSan cannot follow a fork of several threads. Neither follows a thread that
 * is cancelled: one takes the lock that pthread_cond_wait() has again for one
 * that is never given, the other leaves the stack poisoned for who has it next.
 * Both have an allocator in front of ours.
 */
#if defined(__SANITIZE_THREAD__)
#define IS_TSAN 1
#else
#define IS_TSAN 0
#endif
#if IS_TSAN || defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

#define SECONDS 6
/* How often each kind of work is done; on a busy machine that takes longer. */
#define TIMES_MIN 10

/* One kind of work: what it does once, how often it did, what went wrong. */
struct kind {
    const char *name;
    bool (*once)(unsigned i);
    bool not_in_tsan;
    bool not_sanitized;
    unsigned n_done;
    unsigned n_wrong;
};

static bool stop_all;
static char plugin[4200];
static struct cpprof_profile *own;

/* ---- profiles --------------------------------------------------------- */

static int
swallow(void *ctx, const void *data, size_t n)
{
    const unsigned char *bytes = data;

    /* Read it, so that a sanitizer sees what is written. */
    while (n-- > 0)
        *(unsigned *)ctx += bytes[n];
    return 0;
}

static struct cpprof_writer
nowhere(unsigned *sum)
{
    return (struct cpprof_writer){sizeof(struct cpprof_writer), swallow, NULL,
                                  sum};
}

static bool
write_once(unsigned i)
{
    static const char *const names[] = {"allocs",  "block",       "goroutine",
                                        "heap",    "mutex",       "stress",
                                        "threads", "threadcreate"};
    static const uint32_t flags[] = {
        0, CPPROF_FLAG_LABELS | CPPROF_FLAG_IN_PROGRESS, CPPROF_FLAG_LEGACY};
    const struct cpprof_profile_options options = {
        .size = sizeof options,
        .debug = (int32_t)(i / 8 % 3),
        .symbolize = i % 16 ? CPPROF_SYMBOLIZE_NONE : CPPROF_SYMBOLIZE_FULL,
        .flags = flags[i / 24 % 3],
    };
    struct cpprof_profile *profile = cpprof_profile_lookup(names[i % 8]);
    struct cpprof_error error = {0};
    unsigned sum = 0;

    usleep(2000);
    if (cpprof_profile_write(profile, (struct cpprof_writer[]){nowhere(&sum)},
                             &options, &error) == CPPROF_OK)
        return sum > 0 && cpprof_profile_count(profile) < 1000000;
    if (IS_SANITIZED && error.status == CPPROF_UNSUPPORTED)
        return true;
    note("%s: %s", names[i % 8], error.text);
    return false;
}

/* A profile that CPPROF= asked for goes on: no second one is started. */
static bool
is_taken(enum cpprof_status status)
{
    return status == CPPROF_BUSY && getenv("CPPROF");
}

static bool
cpu_once(unsigned i)
{
    const struct cpprof_cpu_options options = {
        .size = sizeof options,
        .rate_hz = 1000,
        .symbolize = CPPROF_SYMBOLIZE_NONE,
        .flags = i % 2 ? CPPROF_FLAG_LEGACY : 0,
    };
    enum cpprof_status status;
    unsigned sum = 0;

    status = cpprof_cpu_start((struct cpprof_writer[]){nowhere(&sum)}, &options,
                              NULL);
    usleep(20000); /* which a signal may interrupt */
    if (status != CPPROF_OK)
        return is_taken(status);
    return cpprof_cpu_stop(NULL) == CPPROF_OK && sum;
}

static bool
wall_once(unsigned i)
{
    const struct cpprof_wall_options options = {
        .size = sizeof options,
        .rate_hz = 200,
        .symbolize = CPPROF_SYMBOLIZE_NONE,
        .flags = i % 2 ? CPPROF_FLAG_OFF_CPU : 0,
    };
    enum cpprof_status status;
    unsigned sum = 0;

    status = cpprof_wall_start((struct cpprof_writer[]){nowhere(&sum)},
                               &options, NULL);
    usleep(50000); /* which a signal may interrupt */
    if (status != CPPROF_OK)
        return is_taken(status);
    return cpprof_wall_stop(NULL) == CPPROF_OK && sum;
}

static bool
rates_once(unsigned i)
{
    static const int64_t heap[] = {0, 1, 4096, 524288};
    static const int64_t block[] = {0, 1, 10000};
    static const int fractions[] = {1, 0, 5};

    cpprof_heap_set_rate(heap[i % 4]);
    cpprof_block_set_rate(block[i % 3]);
    cpprof_mutex_set_fraction(fractions[i % 3]);
    usleep(3000);
    return cpprof_mutex_set_fraction(-1) == fractions[i % 3];
}

static bool
own_once(unsigned i)
{
    static char values[64];
    bool first, again;

    first = cpprof_profile_add(own, &values[i % 64], 0, NULL) == CPPROF_OK;
    again = cpprof_profile_add(own, &values[i % 64], 0, NULL) == CPPROF_OK;
    cpprof_profile_remove(own, &values[i % 64]);
    return first && !again;
}

/* ---- waits ------------------------------------------------------------ */

static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned long n_counted, n_expected;
static sem_t turns[2];

/* Several threads do this: none of their steps may get lost. */
static bool
lock_once(unsigned i)
{
    volatile unsigned spin;

    pthread_mutex_lock(&count_lock);
    n_counted++;
    for (spin = 0; spin < 200; spin++)
        ;
    if (i % 16 == 0)
        pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&count_lock);
    __atomic_fetch_add(&n_expected, 1, __ATOMIC_RELAXED);
    return true;
}

static bool
read_once(unsigned i)
{
    int failed =
        i % 4 ? pthread_rwlock_rdlock(&rwlock) : pthread_rwlock_wrlock(&rwlock);

    return !failed && !pthread_rwlock_unlock(&rwlock);
}

static bool
condition_once(unsigned i)
{
    struct timespec t;
    int result;

    (void)i;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += 2000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_mutex_lock(&count_lock);
    result = pthread_cond_timedwait(&changed, &count_lock, &t);
    n_counted++;
    pthread_mutex_unlock(&count_lock);
    __atomic_fetch_add(&n_expected, 1, __ATOMIC_RELAXED);
    return !result || result == ETIMEDOUT;
}

/* Signals interrupt it: EINTR is what it says without us, too. */
static bool
take_turn(sem_t *sem)
{
    while (sem_wait(sem))
        if (errno != EINTR)
            return false;
    return true;
}

static bool
ping_once(unsigned i)
{
    (void)i;
    return take_turn(&turns[0]) && !sem_post(&turns[1]);
}

static bool
pong_once(unsigned i)
{
    (void)i;
    return take_turn(&turns[1]) && !sem_post(&turns[0]);
}

/* ---- threads ---------------------------------------------------------- */

static void *
short_life(void *arg)
{
    CPPROF_LABELS_SCOPE("thread", "short", "parity",
                        *(unsigned *)arg % 2 ? "odd" : "even");

    free(malloc(1000 + *(unsigned *)arg % 5000));
    lock_once(1);
    *(unsigned *)arg = cpprof_labels_find(cpprof_labels_current(), "born")
                           ? 1
                           : 0; /* inherited */
    return NULL;
}

static bool
threads_once(unsigned i)
{
    CPPROF_LABELS_SCOPE("born", "by a test");
    pthread_t threads[4];
    unsigned args[4], n, n_right = 0;

    for (n = 0; n < 4; n++) {
        args[n] = i + n;
        if (pthread_create(&threads[n], NULL, short_life, &args[n]))
            abort();
    }
    for (n = 0; n < 4; n++) {
        pthread_join(threads[n], NULL);
        n_right += args[n];
    }
    return IS_TSAN || n_right == 4; /* pthread_create() is not ours there */
}

/* Locks and profiles must be usable in the child. */
static bool
fork_once(unsigned i)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        cpprof_block_add(1000, 0);
        own_once(i);
        free(malloc(100));
        _exit((int)(i % 100));
    }
    usleep(1000);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == (int)(i % 100);
}

static bool
load_once(unsigned i)
{
    void *handle = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    uint64_t (*hog)(uint64_t);
    bool found;

    (void)i;
    if (!handle)
        return false;
    *(void **)&hog = dlsym(handle, "plugin_a_hog");
    found = hog != NULL;
    if (found)
        hog(500000);
    return !dlclose(handle) && found;
}

static bool
malloc_once(unsigned i)
{
    void *blocks[16];
    size_t n;

    for (n = 0; n < 16; n++)
        blocks[n] = malloc((i + n) * 7919 % 100000);
    for (n = 0; n < 16; n++)
        free(blocks[n]);
    return true;
}

/* ---- signals ---------------------------------------------------------- */

static unsigned n_signals;
static sem_t spare;

/* What a handler may call. */
static void
on_signal(int signal)
{
    int saved_errno = errno;

    (void)signal;
    __atomic_fetch_add(&n_signals, 1, __ATOMIC_RELAXED);
    sem_post(&spare);
    sem_trywait(&spare);
    errno = saved_errno;
}

static bool
signal_once(unsigned i)
{
    (void)i;
    usleep(1000);
    return !kill(getpid(), SIGUSR1);
}

/* ---- all of them ------------------------------------------------------ */

static struct kind kinds[] = {
    {.name = "writing", .once = write_once},
    {.name = "CPU profiles", .once = cpu_once},
    {.name = "wall profiles", .once = wall_once},
    {.name = "changing rates", .once = rates_once},
    {.name = "a profile of its own", .once = own_once},
    {.name = "locking", .once = lock_once},
    {.name = "locking elsewhere", .once = lock_once},
    {.name = "reading", .once = read_once},
    {.name = "reading elsewhere", .once = read_once},
    {.name = "conditions", .once = condition_once},
    {.name = "ping", .once = ping_once},
    {.name = "pong", .once = pong_once},
    {.name = "threads", .once = threads_once},
    {.name = "cancelling", .once = cancel_once, .not_sanitized = true},
    {.name = "signals", .once = signal_once},
    {.name = "malloc", .once = malloc_once},
    {.name = "fork", .once = fork_once, .not_in_tsan = true},
    {.name = "dlopen", .once = load_once, .not_in_tsan = true},
};
#define N_KINDS (sizeof kinds / sizeof *kinds)

static bool
is_left_out(const struct kind *k)
{
    return (IS_TSAN && k->not_in_tsan) || (IS_SANITIZED && k->not_sanitized);
}

static void *
run_kind(void *arg)
{
    struct kind *k = arg;

    while (!__atomic_load_n(&stop_all, __ATOMIC_RELAXED)) {
        k->n_wrong += !k->once(k->n_done);
        __atomic_store_n(&k->n_done, k->n_done + 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void
on_alarm(int signal)
{
    static const char text[] = "Bail out! it hangs\n";

    (void)signal;
    if (write(STDOUT_FILENO, text, sizeof text - 1) < 0)
        _exit(98);
    abort();
}

static void
nap(double seconds)
{
    struct timespec left = {(time_t)seconds,
                            (long)((seconds - (double)(time_t)seconds) * 1e9)};

    while (nanosleep(&left, &left))
        continue;
}

static bool
all_went_on(void)
{
    bool all = true;
    size_t i;

    for (i = 0; i < N_KINDS; i++)
        all &= is_left_out(&kinds[i]) ||
               __atomic_load_n(&kinds[i].n_done, __ATOMIC_RELAXED) >= TIMES_MIN;
    return all;
}

/* Longer, for half a minute at most, until all kinds went on. */
static void
run(double seconds)
{
    pthread_t threads[N_KINDS];
    size_t i;
    int left;

    for (i = 0; i < N_KINDS; i++)
        if (!is_left_out(&kinds[i]) &&
            pthread_create(&threads[i], NULL, run_kind, &kinds[i]))
            bail("pthread_create");
    nap(seconds);
    for (left = 30; left > 0 && !all_went_on(); left--)
        nap(1);
    __atomic_store_n(&stop_all, true, __ATOMIC_RELAXED);
    for (i = 0; i < 100; i++) { /* whoever waits for a turn */
        sem_post(&turns[0]);
        sem_post(&turns[1]);
    }
    for (i = 0; i < N_KINDS; i++)
        if (!is_left_out(&kinds[i]))
            pthread_join(threads[i], NULL);
}

int
main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    const char *wanted = argc > 1 ? argv[1] : getenv("STRESS_SECONDS");
    double seconds = wanted ? atof(wanted) : SECONDS;
    char name[64];
    size_t i;

    snprintf(plugin, sizeof plugin, "%s", beside_path("libplugin_a.so"));
    if (cpprof_profile_new("stress", &own, NULL) != CPPROF_OK)
        bail("cpprof_profile_new");
    sem_init(&turns[0], 0, 1);
    sem_init(&turns[1], 0, 0);
    sem_init(&spare, 0, 0);
    sigaction(SIGUSR1, &action, NULL);
    signal(SIGALRM, on_alarm);
    alarm((unsigned)seconds * 4 + 60);
    cancel_begin();
    run(seconds);
    cancel_end();
    for (i = 0; i < N_KINDS; i++) {
        snprintf(name, sizeof name, "%s went on", kinds[i].name);
        if (is_left_out(&kinds[i])) {
            check_skip(name, "not under this sanitizer");
            continue;
        }
        check_at_least(kinds[i].n_done, TIMES_MIN, name);
        snprintf(name, sizeof name, "%s went right", kinds[i].name);
        check_equal(kinds[i].n_wrong, 0, name);
        note("%u times", kinds[i].n_done);
    }
    check_equal((int64_t)n_counted, (int64_t)n_expected, "no step was lost");
    check_at_least(n_signals, 10, "signals came");
    return check_done();
}
