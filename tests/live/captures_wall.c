/* SPDX-License-Identifier: MIT */
/*
 * Several captures of wall time at once: each shows its own stretch, by its own
 * flags, whatever the others begin and end.
 */
#include "capture.h"
#include "load.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES 4

static void
begin(struct one *c, uint32_t flags)
{
    struct cpprof_wall_options options = {.size = sizeof options,
                                          .flags = flags};
    struct cpprof_error error = {0};

    if (cpprof_capture_start_wall(
            (struct cpprof_writer[]){memory_writer(&c->file)}, &options,
            &c->capture, &error))
        bail("capture: %s", error.text);
}

/* Not the same, so that they are not made one. */
static double slept[3]; /* seconds, in the last of each */
static unsigned length; /* of all naps, as the try has it */

static inline __attribute__((always_inline)) void
nap(int i)
{
    uint64_t begin = wall_ns();

    usleep(300000 * length);
    slept[i] = (double)(wall_ns() - begin) / 1e9;
    load_sink += (uint64_t)i;
}

__attribute__((noinline)) static void
nap_one(void)
{
    nap(0);
}

__attribute__((noinline)) static void
nap_two(void)
{
    nap(1);
}

__attribute__((noinline)) static void
nap_three(void)
{
    nap(2);
}

/* Two periods for a nap of 0.3 s: where it begins and ends is seen by ticks. */
#define EDGE (0.03 * length)

static void
test_overlap(unsigned try_length)
{
    struct one a, b;
    struct profile *p, *q;
    uint64_t begun = wall_ns(), begins, ends, ended;

    length = try_length;
    begin(&a, 0);
    begins = wall_ns();
    nap_one();
    begin(&b, 0);
    nap_two();
    ends = wall_ns();
    p = end(&a);
    ended = wall_ns();
    nap_three();
    q = end(&b);
    check_near(seconds_in(p, "nap_one"), slept[0], EDGE,
               "the first capture has what came before the second");
    check_near(seconds_in(p, "nap_two"), slept[1], EDGE,
               "and what both were there for");
    check_equal(profile_cpu_in(p, "nap_three"), 0, "but nothing of later");
    check_near(seconds_in(q, "nap_one"), 0, EDGE,
               "the second capture has nothing of before");
    check_near(seconds_in(q, "nap_two"), slept[1], EDGE,
               "it has what both were there for");
    check_near(seconds_in(q, "nap_three"), slept[2], EDGE,
               "and what came later");
    check((uint64_t)p->duration_ns >= ends - begins &&
              (uint64_t)p->duration_ns <= ended - begun,
          "each has a duration of its own");
    profile_free(p);
    profile_free(q);
}

static int stop_sleeper;

__attribute__((noinline)) static void *
sleeper(void *arg)
{
    while (!__atomic_load_n(&stop_sleeper, __ATOMIC_RELAXED))
        usleep(50000);
    return arg;
}

/* What is charged to two threads adds up to twice the time, in each part. */
static void
test_adjacent(unsigned try_length)
{
    struct one whole, part;
    struct profile *p;
    pthread_t thread;
    int64_t ns_parts = 0, ns_time = 0;
    int i;

    length = try_length;
    __atomic_store_n(&stop_sleeper, 0, __ATOMIC_RELAXED);
    pthread_create(&thread, NULL, sleeper, NULL);
    begin(&whole, 0);
    for (i = 0; i < 5; i++) {
        begin(&part, 0);
        usleep(100000 * length);
        p = end(&part);
        ns_parts += profile_cpu_ns(p);
        ns_time += p->duration_ns;
        profile_free(p);
    }
    p = end(&whole);
    note("%.3f s in parts of %.3f s, %.3f s in the whole of %.3f s",
         (double)ns_parts / 1e9, (double)ns_time / 1e9,
         (double)profile_cpu_ns(p) / 1e9, (double)p->duration_ns / 1e9);
    check_near((double)ns_parts, 2.0 * (double)ns_time, 2 * EDGE * 1e9,
               "parts have the time of all threads");
    check_near((double)profile_cpu_ns(p), 2.0 * (double)p->duration_ns,
               2 * EDGE * 1e9, "as the whole has");
    profile_free(p);
    __atomic_store_n(&stop_sleeper, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
}

static void
test_off_cpu(unsigned try_length)
{
    struct one all, off;
    struct profile *p, *q;

    length = try_length;
    begin(&all, 0);
    begin(&off, CPPROF_FLAG_OFF_CPU);
    hog_one(300 * MS * length);
    nap_one();
    q = end(&off);
    p = end(&all);
    check_at_least(seconds_in(p, "hog_one"), 0.25 * length,
                   "who wants all has it");
    check_at_most(seconds_in(q, "hog_one") / ((double)profile_cpu_ns(p) / 1e9),
                  0.4, "who wants only waits has no time on a processor");
    check_near(seconds_in(q, "nap_one"), slept[0], EDGE, "but all waits");
    check_equal(profile_cpu_labelled(q, "state", "running"), 0,
                "and nothing that runs");
    profile_free(p);
    profile_free(q);
}

static void
test_ordinary(unsigned try_length)
{
    struct memory file, refused;
    struct cpprof_error error = {0};
    struct profile *p, *q;
    struct one c;

    length = try_length;
    begin(&c, 0);
    nap_one();
    if (cpprof_wall_start((struct cpprof_writer[]){memory_writer(&file)}, NULL,
                          &error))
        bail("start: %s", error.text);
    check_equal(
        cpprof_wall_start((struct cpprof_writer[]){memory_writer(&refused)},
                          NULL, &error),
        CPPROF_BUSY, "a second ordinary profile is refused");
    nap_two();
    if (cpprof_wall_stop(&error))
        bail("stop: %s", error.text);
    nap_three();
    q = end(&c);
    p = memory_profile(&file);
    if (!p)
        bail("that is no profile");
    check_near(seconds_in(p, "nap_two"), slept[1], EDGE,
               "an ordinary profile within a capture has its own stretch");
    check_near(seconds_in(p, "nap_one") + seconds_in(p, "nap_three"), 0, EDGE,
               "and nothing else");
    check_near(seconds_in(q, "nap_three"), slept[2], EDGE,
               "its end does not end the capture");
    profile_free(p);
    profile_free(q);
}

static int
in_child(struct one *parents)
{
    struct profile *p;
    struct one own;

    if (cpprof_capture_stop(parents->capture, NULL) != CPPROF_INVALID ||
        parents->file.n_closed)
        return 1;
    begin(&own, 0);
    nap_two();
    p = end(&own);
    return seconds_in(p, "nap_two") < 0.2 ? 2 : 0;
}

/* ASan's malloc is not made ready for fork(): if the thread that reads sleepers
 * is in it, the child waits for ever. */
static void
test_fork(unsigned try_length)
{
    struct profile *p;
    struct one c;
    int status = -1;
    pid_t child;

    if (check_skip_asan("a child may begin its own",
                        "another thread may be in ASan's malloc"))
        return;
    length = try_length;
    begin(&c, 0);
    child = fork();
    if (child == 0)
        _exit(in_child(&c));
    waitpid(child, &status, 0);
    nap_one();
    check_equal(status, 0,
                "a child may end its parent's capture and begin its own");
    p = end(&c);
    check_near(seconds_in(p, "nap_one"), slept[0], EDGE,
               "the parent's goes on");
    profile_free(p);
}

int
main(void)
{
    check_tries(TRIES, test_overlap);
    check_tries(TRIES, test_adjacent);
    check_tries(TRIES, test_off_cpu);
    check_tries(TRIES, test_ordinary);
    check_tries(TRIES, test_fork);
    return check_done();
}
