/* SPDX-License-Identifier: MIT */
/*
 * The profile by wall time: every thread's time is in it, running or not, and
 * who sleeps is not disturbed.
 */
#include "command.h"
#include "dump.h"
#include "load.h"
#include "session.h"
#include "tap.h"

#include <cpprof/cpprof.h>
#include <cpprof/labels.h>
#include <cpprof/profiles.h>
#include <cpprof/wall.h>

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

#define TRIES 3 /* of what is sampled */

static void
nap(double seconds)
{
    uint64_t until = wall_ns() + (uint64_t)(seconds * 1e9);

    while (wall_ns() < until)
        usleep(10000);
}

static void
start(uint32_t rate_hz, uint32_t flags)
{
    const struct cpprof_wall_options options = {
        .size = sizeof options, .rate_hz = rate_hz, .flags = flags};
    struct cpprof_writer writer;
    struct cpprof_error error;

    if (cpprof_writer_to_path(scratch_path("wall.pb.gz"), &writer, &error) ||
        cpprof_wall_start(&writer, &options, &error))
        bail("start: %s", error.text);
}

static struct profile *
stop(void)
{
    struct cpprof_error error;

    if (cpprof_wall_stop(&error))
        bail("stop: %s", error.text);
    return profile_load(scratch_path("wall.pb.gz"));
}

static double
seconds_in(const struct profile *p, const char *function)
{
    return (double)profile_cpu_in(p, function) / 1e9;
}

/* In a function and a state. */
static double
seconds_in_state(const struct profile *p, const char *function,
                 const char *state)
{
    double sum = 0;
    size_t i, k;

    for (i = 0; i < p->n_samples; i++) {
        const struct sample *s = &p->samples[i];
        bool is_in = false, has_state = false;

        for (k = 0; k < s->n_frames; k++)
            is_in |= frame_is(&s->frames[k], function);
        for (k = 0; k < s->n_labels; k++)
            has_state |= !strcmp(s->labels[k].key, "state") &&
                         !strcmp(s->labels[k].text, state);
        if (is_in && has_state)
            sum += (double)s->cpu_ns / 1e9;
    }
    return sum;
}

static int64_t
looks_by_signal(const struct profile *p)
{
    const char *comment = profile_comment(p, "by signal"), *at;

    at = comment ? strstr(comment, "looks, ") : NULL;
    return at ? atoll(at + 7) : -1;
}

/* ---- who sleeps ------------------------------------------------------- */

NOINLINE static void *
sleeper(void *arg)
{
    crowd_wait();
    return arg;
}

static void
sleepers_are_charged_undisturbed(unsigned length)
{
    struct crowd crowd = crowd_make(20, sleeper);
    struct profile *p;

    start(0, 0);
    nap(2 * length);
    p = stop();
    check_near(seconds_in(p, "sleeper"), 20 * (double)p->duration_ns / 1e9,
               2 * length, "the_time_of_all_sleepers_is_in_it");
    check_near(seconds_in_state(p, "sleeper", "sleeping"),
               seconds_in(p, "sleeper"), 0.5 * length, "as_sleeping");
    /* each once or twice, and the main thread all the time */
    check_at_most((double)looks_by_signal(p), 20 * 3 + 260 * length,
                  "and_hardly_any_of_them_gets_a_signal");
    check_text(p->types[0].type, "samples", "the_first_value");
    check_text(p->types[1].type, "wall", "the_second_value");
    check_text(p->types[1].unit, "nanoseconds", "and_its_unit");
    check_equal(p->period, 10000000, "the_period");
    profile_free(p);
    crowd_end(&crowd);
}

static void
many_threads_share_the_looks(unsigned length)
{
    struct crowd crowd = crowd_make(300, sleeper);
    struct profile *p;

    start(0, 0);
    nap(3 * length);
    p = stop();
    check_near(seconds_in(p, "sleeper"), 300 * (double)p->duration_ns / 1e9,
               0.05 * 300 * 3 * length,
               "weights_make_up_for_looks_that_are_shared");
    profile_free(p);
    crowd_end(&crowd);
}

static uint64_t late_begun_ns;
static atomic_ullong late_ns; /* the sum of their starts, since then */

NOINLINE static void *
latecomer(void *arg)
{
    atomic_fetch_add(&late_ns, wall_ns() - late_begun_ns);
    crowd_wait();
    return arg;
}

/* A look at each takes a quarter of a second, and they are there for one. */
static void
threads_that_come_late_are_charged_since_then(unsigned length)
{
    struct crowd crowd;
    struct profile *p;
    double lived;

    atomic_store(&late_ns, 0);
    late_begun_ns = wall_ns();
    start(0, 0);
    crowd = crowd_make(800, latecomer);
    nap(length);
    p = stop();
    lived = 800 * (double)p->duration_ns / 1e9 -
            (double)atomic_load(&late_ns) / 1e9;
    check_near(seconds_in(p, "latecomer"), lived, 0.05 * lived,
               "threads_that_come_late_are_charged_since_then");
    profile_free(p);
    crowd_end(&crowd);
}

static atomic_int n_interrupted;
static atomic_bool enough;

NOINLINE static void *
poller(void *arg)
{
    while (!atomic_load(&enough))
        if (poll(NULL, 0, 3000) < 0)
            atomic_fetch_add(&n_interrupted, errno == EINTR);
    return arg;
}

static void
a_poll_is_not_interrupted(void)
{
    pthread_t thread;

    atomic_store(&enough, false);
    pthread_create(&thread, NULL, poller, NULL);
    usleep(20000);
    start(0, 0);
    nap(2);
    profile_free(stop());
    atomic_store(&enough, true);
    pthread_join(thread, NULL);
    check_equal(atomic_load(&n_interrupted), 0, "a_poll_is_not_interrupted");
}

/* Sleeps of 5 ms that any signal ends: between two looks the thread has run. */
#define NAP_NS 5000000

static int n_naps;
static sem_t never;

/* What is done with the result keeps the caller on the stack. */
static int
kept(int result)
{
    __asm__ volatile("" : "+r"(result));
    return result;
}

NOINLINE static int
by_usleep(void)
{
    return kept(usleep(NAP_NS / 1000));
}

NOINLINE static int
by_nanosleep(void)
{
    const struct timespec pause = {0, NAP_NS};
    struct timespec rest;

    return kept(nanosleep(&pause, &rest));
}

NOINLINE static int
by_poll(void)
{
    return kept(poll(NULL, 0, NAP_NS / 1000000));
}

NOINLINE static int
by_epoll(void)
{
    static int epoll;
    struct epoll_event event;

    if (!epoll)
        epoll = epoll_create1(EPOLL_CLOEXEC);
    return kept(epoll_wait(epoll, &event, 1, NAP_NS / 1000000));
}

NOINLINE static int
by_semaphore(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += NAP_NS;
    until.tv_sec += until.tv_nsec / SECOND;
    until.tv_nsec %= SECOND;
    return kept(sem_timedwait(&never, &until));
}

NOINLINE static void *
napper(void *arg)
{
    int (*nap_once)(void) = *(int (**)(void))arg;

    while (!atomic_load(&enough)) {
        errno = 0;
        nap_once();
        atomic_fetch_add(&n_interrupted, errno == EINTR);
        __atomic_add_fetch(&n_naps, 1, __ATOMIC_RELAXED);
    }
    return arg;
}

static void
short_sleeps_are_not_cut_short(void)
{
    static int (*const ways[])(void) = {by_usleep, by_nanosleep, by_poll,
                                        by_epoll, by_semaphore};
    static const char *const names[] = {"by_usleep", "by_nanosleep", "by_poll",
                                        "by_epoll", "by_semaphore"};
    struct cpprof_labels *set = cpprof_labels_new("who", "napper", NULL);
    double seconds, labelled;
    pthread_t threads[5];
    struct profile *p;
    size_t i;

    atomic_store(&enough, false);
    atomic_store(&n_interrupted, 0);
    sem_init(&never, 0, 0);
    cpprof_labels_set_current(set); /* which they inherit */
    for (i = 0; i < 5; i++)
        pthread_create(&threads[i], NULL, napper, (void *)&ways[i]);
    cpprof_labels_set_current(NULL);
    /* The first look may come late on a busy machine: once more, for longer. */
    for (seconds = 2;; seconds *= 2) {
        start(0, 0);
        nap(seconds);
        p = stop();
        labelled = (double)profile_cpu_labelled(p, "who", "napper") / 1e9;
        if (seconds == 8 || fabs(labelled - 5 * seconds) <= 0.75 * seconds)
            break;
        profile_free(p);
    }
    atomic_store(&enough, true);
    for (i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    /* one may begin while a question is on its way */
    check_at_most(atomic_load(&n_interrupted), n_naps / 200,
                  "hardly_a_sleep_is_cut_short");
    for (i = 0; i < 5; i++)
        check_at_least(seconds_in_state(p, names[i], "sleeping"), seconds / 2,
                       "and_who_sleeps_is_seen_asleep_where_it_is");
    check_near(labelled, 5 * seconds, 0.75 * seconds, "with_its_labels");
    check_at_most(seconds_in(p, "[unwind failed]"), seconds / 20,
                  "by_stacks_that_are_whole");
    profile_free(p);
    cpprof_labels_free(set);
}

/* ---- who runs --------------------------------------------------------- */

NOINLINE static void *
spinner(void *arg)
{
    while (!atomic_load(&enough))
        load_sink += churn(load_sink);
    return arg;
}

/* Runs for about a third of the time, by the wall clock. */
NOINLINE static void *
worker(void *arg)
{
    uint64_t *slept = arg;

    while (!atomic_load(&enough)) {
        uint64_t begin = wall_ns(), end = begin + 14 * MS, woken;
        const struct timespec until = {(time_t)(end / SECOND),
                                       (long)(end % SECOND)};

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
            continue; /* a sleep that a signal ended */
        woken = wall_ns();
        *slept += woken - begin;
        while (wall_ns() - woken < 7 * MS)
            load_sink += churn(load_sink);
    }
    return arg;
}

static void
time_is_split_by_state(unsigned length)
{
    uint64_t slept = 0;
    pthread_t threads[2];
    struct profile *p;
    double all;

    atomic_store(&enough, false);
    pthread_create(&threads[0], NULL, spinner, NULL);
    pthread_create(&threads[1], NULL, worker, &slept);
    start(0, 0);
    nap(4 * length);
    p = stop();
    atomic_store(&enough, true);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    all = (double)p->duration_ns / 1e9;
    check_near(seconds_in(p, "spinner"), all, 0.1 * all,
               "who_runs_has_all_of_its_time");
    check_near(seconds_in_state(p, "spinner", "running"),
               seconds_in(p, "spinner"), 0.1 * all, "as_running");
    check_near(seconds_in(p, "worker"), all, 0.1 * all,
               "who_does_both_has_all_of_its_time");
    check_near(seconds_in_state(p, "worker", "sleeping"), (double)slept / 1e9,
               0.15 * all, "and_as_much_of_it_asleep_as_it_slept");
    profile_free(p);
}

static void
off_cpu_is_without_who_runs(unsigned length)
{
    pthread_t thread;
    struct profile *p;

    atomic_store(&enough, false);
    pthread_create(&thread, NULL, spinner, NULL);
    start(0, CPPROF_FLAG_OFF_CPU);
    nap(length);
    p = stop();
    atomic_store(&enough, true);
    pthread_join(thread, NULL);
    check_at_most(seconds_in(p, "spinner"), 0.1 * length,
                  "without_who_runs_there_is_nothing_of_it");
    check_at_least(seconds_in(p, "main"), 0.7 * length,
                   "and_who_sleeps_is_in_it");
    profile_free(p);
}

/* Threads of 5 ms, one after the other: most of them are never looked at. */
NOINLINE static void *
brief(void *arg)
{
    const struct timespec pause = {0, 5000000};

    nanosleep(&pause, NULL);
    return arg;
}

static void
short_threads_count_on_average(unsigned length)
{
    uint64_t until, lived = 0;
    struct profile *p;

    start(200, 0);
    until = wall_ns() + 5 * length * SECOND;
    while (wall_ns() < until) {
        uint64_t begin = wall_ns();
        pthread_t thread;

        pthread_create(&thread, NULL, brief, NULL);
        pthread_join(thread, NULL);
        lived += wall_ns() - begin;
    }
    p = stop();
    check_near(seconds_in(p, "brief"), (double)lived / 1e9, 1.7 * length,
               "short_threads_count_on_average");
    profile_free(p);
}

/* ---- who blocks all signals --------------------------------------------- */

NOINLINE static void *
deaf(void *arg)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    crowd_wait();
    return arg;
}

NOINLINE static void *
deaf_worker(void *arg)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    while (!atomic_load(&enough))
        load_sink += churn(load_sink);
    return arg;
}

NOINLINE static void *
vforker(void *arg)
{
    while (!atomic_load(&enough)) {
        pid_t pid = vfork();
        int status;

        if (!pid) {
            const struct timespec pause = {0, 100000000};

            syscall(SYS_nanosleep, &pause, NULL);
            _exit(0);
        }
        waitpid(pid, &status, 0);
    }
    return arg;
}

static void
who_blocks_all_signals_is_sampled(unsigned length)
{
    struct crowd crowd = crowd_make(1, deaf);
    pthread_t thread, running;
    struct profile *p;

    atomic_store(&enough, false);
    pthread_create(&thread, NULL, vforker, NULL);
    pthread_create(&running, NULL, deaf_worker, NULL);
    start(0, 0);
    nap(2 * length);
    p = stop();
    check_near(seconds_in(p, "churn"), (double)p->duration_ns / 1e9,
               0.3 * length, "who_runs_and_blocks_all_signals_has_its_stack");
    check_at_least(seconds_in(p, "deaf_worker"), 1.7 * length,
                   "from_its_start_routine_on");
    check_near(seconds_in_state(p, "deaf", "sleeping"),
               (double)p->duration_ns / 1e9, 0.3 * length,
               "and_so_has_who_sleeps");
    if (!check_skip_asan("an_uninterruptible_sleep_is_said_to_be_one",
                         "ASan has a vfork() of its own"))
        check_at_least(seconds_in_state(p, "vforker", "uninterruptible"),
                       1.2 * length,
                       "an_uninterruptible_sleep_is_said_to_be_one");
    profile_free(p);
    atomic_store(&enough, true);
    pthread_join(thread, NULL);
    pthread_join(running, NULL);
    crowd_end(&crowd);
}

/* ---- the rest --------------------------------------------------------- */

static void
labels_come_along(void)
{
    struct cpprof_labels *set = cpprof_labels_new("who", "main", NULL);
    struct profile *p;

    cpprof_labels_set_current(set);
    start(0, 0);
    nap(0.5);
    p = stop();
    check_at_least((double)profile_cpu_labelled(p, "who", "main") / 1e9, 0.3,
                   "labels_come_along");
    profile_free(p);
    start(0, CPPROF_FLAG_NO_LABELS);
    nap(0.3);
    p = stop();
    check_equal(profile_cpu_labelled(p, "who", "main"), 0,
                "without_labels_when_asked");
    profile_free(p);
    cpprof_labels_set_current(NULL);
    cpprof_labels_free(set);
}

static void
one_at_a_time(void)
{
    const struct cpprof_wall_options fast = {.size = sizeof fast,
                                             .rate_hz = 1001};
    struct cpprof_writer writer;
    struct cpprof_error error;

    start(0, 0);
    cpprof_writer_to_path("/dev/null", &writer, NULL);
    check_equal(cpprof_wall_start(&writer, NULL, &error), CPPROF_BUSY,
                "a_second_one_is_refused");
    check_text(error.text, "wall profiling already in use", "and_says_why");
    profile_free(stop());
    check_equal(cpprof_wall_stop(NULL), CPPROF_OK,
                "to_stop_twice_does_no_harm");
    cpprof_writer_to_path("/dev/null", &writer, NULL);
    check_equal(cpprof_wall_start(&writer, &fast, &error), CPPROF_INVALID,
                "a_rate_out_of_range_is_refused");
    check_text(error.text, "rate 1001 Hz is outside 1 to 1000", "and_named");
}

static void
child_starts_its_own(void)
{
    int status = -1;
    pid_t pid = fork();

    if (!pid) {
        struct cpprof_writer writer;

        if (cpprof_wall_stop(NULL) ||
            cpprof_writer_to_path("/dev/null", &writer, NULL) ||
            cpprof_wall_start(&writer, NULL, NULL))
            _exit(1);
        usleep(50000);
        _exit(cpprof_wall_stop(NULL) ? 1 : 0);
    }
    waitpid(pid, &status, 0);
    check_equal(status, 0, "a_forked_child_can_start_its_own");
}

static void
children_have_none(void)
{
    int status = -1;
    pid_t pid;

    start(0, 0);
    if (!check_skip_asan("a_forked_child_can_start_its_own",
                         "another thread may be in ASan's malloc"))
        child_starts_its_own();
    pid = fork();
    if (!pid) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    waitpid(pid, &status, 0);
    check_equal(status, 0, "an_exec_meanwhile_succeeds");
    profile_free(stop());
}

/* What is written at the end takes longer than such a program runs. */
static void
what_is_written_is_not_in_it(void)
{
    const char *argv[] = {beside_path("victim"), "burn=100", "return=0", NULL};
    char preload[4200], variable[1024];
    const char *environment[] = {preload, variable, NULL};
    struct result result;
    struct profile *p;

    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library_path());
    snprintf(variable, sizeof variable,
             "CPPROF=wall,heap=1,goroutine,threadcreate,out=%s",
             scratch_path("at-end"));
    run_command(argv, environment, 60, &result);
    check_equal(result.status, 0, "a_program_with_all_profiles_ends_well");
    p = profile_load(scratch_path("at-end.wall"));
    check_at_least(seconds_in(p, "victim_burn"), 0.05,
                   "what_it_does_is_in_its_wall_profile");
    check_equal(profile_cpu_in(p, "cpprof_heap_write"), 0,
                "and_no_writing_of_others");
    check_equal(profile_cpu_in(p, "cpprof_profile_write"), 0, "of_any_kind");
    profile_free(p);
}

int
main(void)
{
    check_tries(TRIES, sleepers_are_charged_undisturbed);
    check_tries(TRIES, many_threads_share_the_looks);
    check_tries(TRIES, threads_that_come_late_are_charged_since_then);
    a_poll_is_not_interrupted();
    short_sleeps_are_not_cut_short();
    check_tries(TRIES, time_is_split_by_state);
    check_tries(TRIES, off_cpu_is_without_who_runs);
    check_tries(TRIES, short_threads_count_on_average);
    check_tries(TRIES, who_blocks_all_signals_is_sampled);
    labels_come_along();
    one_at_a_time();
    children_have_none();
    what_is_written_is_not_in_it();
    return check_done();
}
