/* SPDX-License-Identifier: MIT */
/*
 * How long a dump of all threads takes, and what the wall profile costs a
 * program that sleeps.
 *
 *     threads dump N [PID]   N sleeping threads: dumps in here
 *     threads hold N         the same threads; says so, and sleeps
 *     threads idle N HZ S    S seconds without and S with a wall profile
 *     threads busy N HZ S    the same, by turns, of N threads that take what
 *                            another puts into a queue, one at a time
 */
#include <cpprof/cpprof.h>
#include <cpprof/profiles.h>
#include <cpprof/wall.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 11

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void *
sleeper(void *arg)
{
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    return arg;
}

static double
seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
make_threads(int n)
{
    pthread_attr_t attr;
    pthread_t thread;
    int i;

    pthread_mutex_lock(&held);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 * 1024);
    for (i = 1; i < n; i++)
        if (pthread_create(&thread, &attr, sleeper, NULL)) {
            fprintf(stderr, "bench: thread %d of %d: not allowed\n", i, n);
            _exit(3);
        }
    usleep(300000);
}

static int
drop(void *ctx, const void *data, size_t n)
{
    *(size_t *)ctx += n;
    return 0;
}

struct took {
    double wall; /* seconds */
    double cpu;  /* of the process: of who asks and of who answers */
};

static struct took
dump(int debug)
{
    const struct cpprof_profile_options options = {.size = sizeof options,
                                                   .debug = debug,
                                                   .symbolize =
                                                       CPPROF_SYMBOLIZE_FULL};
    size_t written = 0;
    double begin = seconds(CLOCK_MONOTONIC);
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);

    if (cpprof_profile_write(
            cpprof_profile_lookup("goroutine"),
            &(struct cpprof_writer){sizeof(struct cpprof_writer), drop, NULL,
                                    &written},
            &options, NULL) ||
        !written)
        abort();
    return (struct took){seconds(CLOCK_MONOTONIC) - begin,
                         seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu};
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void
print_dumps(const char *what, int debug)
{
    double wall[ROUNDS], cpu[ROUNDS];
    struct took first = dump(debug);
    int i;

    for (i = 0; i < ROUNDS; i++) {
        struct took t = dump(debug);

        wall[i] = t.wall;
        cpu[i] = t.cpu;
    }
    qsort(wall, ROUNDS, sizeof *wall, by_value);
    qsort(cpu, ROUNDS, sizeof *cpu, by_value);
    printf("  cpprof, %-22s %9.1f ms best %9.1f median %9.1f first;"
           " CPU %9.1f median %9.1f first\n",
           what, wall[0] * 1e3, wall[ROUNDS / 2] * 1e3, first.wall * 1e3,
           cpu[ROUNDS / 2] * 1e3, first.cpu * 1e3);
}

/* CPU time of the process over some seconds, as a share of a processor. */
static double
share_while_asleep(double length)
{
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    double begin = seconds(CLOCK_MONOTONIC), now;

    do {
        usleep(200000);
        now = seconds(CLOCK_MONOTONIC);
    } while (now - begin < length);
    return (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (now - begin);
}

static int
idle(int n, uint32_t rate_hz, double length)
{
    const struct cpprof_wall_options options = {.size = sizeof options,
                                                .rate_hz = rate_hz};
    struct cpprof_writer writer;
    double without, with;

    make_threads(n);
    without = share_while_asleep(length);
    if (cpprof_writer_to_path("/dev/null", &writer, NULL) ||
        cpprof_wall_start(&writer, &options, NULL))
        return 1;
    usleep(500000 + 500 * (useconds_t)n); /* the first look at each */
    with = share_while_asleep(length);
    printf("  %5d threads, %4u Hz: %.2f %% of a processor (without: %.2f %%)\n",
           n, rate_hz, 100 * with, 100 * without);
    fflush(stdout);
    cpprof_wall_stop(NULL);
    _exit(0);
}

/* ---- a queue ---------------------------------------------------------- */

#define QUEUE 10
#define TURNS 24

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more, fewer;
    int n;
    uint64_t taken;
} queue = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
           PTHREAD_COND_INITIALIZER, 0, 0};

static void *
take(void *arg)
{
    for (;;) {
        pthread_mutex_lock(&queue.lock);
        while (!queue.n)
            pthread_cond_wait(&queue.more, &queue.lock);
        queue.n--;
        queue.taken++;
        pthread_cond_signal(&queue.fewer);
        pthread_mutex_unlock(&queue.lock);
    }
    return arg;
}

static void *
put(void *arg)
{
    for (;;) {
        pthread_mutex_lock(&queue.lock);
        while (queue.n == QUEUE)
            pthread_cond_wait(&queue.fewer, &queue.lock);
        queue.n++;
        pthread_cond_signal(&queue.more);
        pthread_mutex_unlock(&queue.lock);
    }
    return arg;
}

struct turn {
    double us;    /* of CPU time for each that was taken */
    double share; /* of a processor */
};

static struct turn
pass_on(double length)
{
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    double begin = seconds(CLOCK_MONOTONIC);
    uint64_t n = __atomic_load_n(&queue.taken, __ATOMIC_RELAXED);

    usleep((useconds_t)(length * 1e6));
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    n = __atomic_load_n(&queue.taken, __ATOMIC_RELAXED) - n;
    return (struct turn){cpu * 1e6 / (double)(n ? n : 1),
                         cpu / (seconds(CLOCK_MONOTONIC) - begin)};
}

static int
busy(int n, uint32_t rate_hz, double length)
{
    const struct cpprof_wall_options options = {.size = sizeof options,
                                                .rate_hz = rate_hz};
    double us[TURNS], ratio[TURNS], more[TURNS];
    struct cpprof_writer writer;
    pthread_t thread;
    int i;

    for (i = 0; i <= n; i++)
        if (pthread_create(&thread, NULL, i ? take : put, NULL))
            return 1;
    for (i = 0; i < TURNS; i++) {
        struct turn without = pass_on(length / TURNS), with;

        if (cpprof_writer_to_path("/dev/null", &writer, NULL) ||
            cpprof_wall_start(&writer, &options, NULL))
            return 1;
        with = pass_on(length / TURNS);
        cpprof_wall_stop(NULL);
        us[i] = without.us;
        ratio[i] = with.us / without.us;
        more[i] = 100 * with.share * (1 - 1 / ratio[i]);
    }
    qsort(us, TURNS, sizeof *us, by_value);
    qsort(ratio, TURNS, sizeof *ratio, by_value);
    qsort(more, TURNS, sizeof *more, by_value);
    printf("  %5d threads, %4u Hz: %.2f us each without, times %.2f with: "
           "%.1f %% of a processor (half of the turns: %.1f to %.1f)\n",
           n, rate_hz, us[TURNS / 2], ratio[TURNS / 2], more[TURNS / 2],
           more[TURNS / 4], more[TURNS * 3 / 4]);
    fflush(stdout);
    _exit(0);
}

int
main(int argc, char **argv)
{
    int n = argc > 2 ? atoi(argv[2]) : 0;

    if (argc > 4 && !strcmp(argv[1], "idle"))
        return idle(n, (uint32_t)atoi(argv[3]), atof(argv[4]));
    if (argc > 4 && !strcmp(argv[1], "busy"))
        return busy(n, (uint32_t)atoi(argv[3]), atof(argv[4]));
    if (n < 1)
        return 2;
    make_threads(n);
    if (!strcmp(argv[1], "hold")) {
        puts("ready");
        fflush(stdout);
        sleep(600);
        _exit(0);
    }
    printf("%d threads\n", n);
    print_dumps("protobuf", 0);
    print_dumps("text (debug=1)", 1);
    print_dumps("readable (debug=2)", 2);
    fflush(stdout);
    _exit(0);
}
