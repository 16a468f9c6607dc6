/* SPDX-License-Identifier: MIT */
/*
 * Is it true? Shares within 2 points of what was burnt, sums within 5 % of what
 * getrusage() says, and the rate that was asked for.
 */
#include "load.h"
#include "session.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#define N_HOGS 4

/* Since forget(): CPU time that each hog burnt, and that the process used. */
static uint64_t burnt_ns[N_HOGS];
static uint64_t used_ns;
static const char *const hog_names[N_HOGS] = {"hog_one", "hog_two", "hog_three",
                                              "hog_four"};
static void (*const hogs[N_HOGS])(uint64_t) = {hog_one, hog_two, hog_three,
                                               hog_four};

static void
burn(unsigned which, double seconds)
{
    uint64_t before = thread_cpu_ns();

    hogs[which]((uint64_t)(seconds * 1e9));
    __atomic_fetch_add(&burnt_ns[which], thread_cpu_ns() - before,
                       __ATOMIC_RELAXED);
}

static void
forget(void)
{
    unsigned i;

    for (i = 0; i < N_HOGS; i++)
        burnt_ns[i] = 0;
    used_ns = 0;
}

static double
share_seen(const struct profile *p, unsigned which)
{
    return 100.0 * (double)profile_cpu_in(p, hog_names[which]) /
           (double)profile_cpu_ns(p);
}

static double
share_burnt(unsigned which)
{
    double sum = 0;
    unsigned i;

    for (i = 0; i < N_HOGS; i++)
        sum += (double)burnt_ns[i];
    return 100.0 * (double)burnt_ns[which] / sum;
}

static bool
shares_within(const struct profile *p, double points)
{
    unsigned i;

    for (i = 0; i < N_HOGS; i++)
        if (fabs(share_seen(p, i) - share_burnt(i)) > points)
            return false;
    return true;
}

static bool
shares_agree(const struct profile *p)
{
    return shares_within(p, 2);
}

static void
check_shares(const struct profile *p, bool ok, const char *name)
{
    unsigned i;

    check(ok, name);
    for (i = 0; i < N_HOGS; i++)
        note("%s: %.2f %% seen, %.2f %% burnt", hog_names[i], share_seen(p, i),
             share_burnt(i));
}

/* --- one thread, 50/30/20 --------------------------------------------------
 */

static void
work_split(double seconds)
{
    uint64_t before = process_cpu_ns();
    int i;

    for (i = 0; i < 4; i++) {
        burn(0, seconds * 0.50 / 4);
        burn(1, seconds * 0.30 / 4);
        burn(2, seconds * 0.20 / 4);
    }
    used_ns += process_cpu_ns() - before;
}

/* The same in slices shorter than any period: chance decides which function a
 * tick meets, so it needs more of them. The slices have no common length, since
 * a program that keeps time with the sampler is seen at the same place always;
 * no sampler of even period can help that. */
static void
work_slices(double seconds)
{
    static uint64_t random = 88172645463325252u;
    double done, unit;

    for (done = 0; done < seconds; done += 10 * unit) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        unit = 0.0002 + (double)(random % 1000) * 0.0000003;
        burn(0, 5 * unit);
        burn(1, 3 * unit);
        burn(2, 2 * unit);
    }
}

/* --- a system call, page faults, and code ----------------------------------
 */

#define N_READS 512

static int zeros;

/* Into the same bytes again and again, which stay in the cache. */
__attribute__((noinline)) static void
read_zeros(uint64_t n)
{
    static char bytes[1 << 14];
    struct iovec reads[N_READS];
    uint64_t i;

    for (i = 0; i < n; i++)
        reads[i] = (struct iovec){bytes, sizeof bytes};
    if (preadv(zeros, reads, (int)n, 0) < 0)
        check(false, "preadv");
}

__attribute__((noinline)) static void
touch_pages(uint64_t n)
{
    char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0);

    for (uint64_t i = 0; p != MAP_FAILED && i < n; i += 4096)
        p[i] = 1;
    if (p != MAP_FAILED)
        munmap(p, n);
    __asm__ volatile(""); /* no tail call, this function has the time */
}

static void (*const kernel_hogs[])(uint64_t) = {hog_one, read_zeros,
                                                touch_pages};
static const char *const kernel_names[] = {"hog_one", "read_zeros",
                                           "touch_pages"};
#define N_KERNEL_HOGS 3
static uint64_t kernel_burnt_ns[N_KERNEL_HOGS];

/* In slices of about 0.1 ms each, whose lengths differ by chance: what is in
 * the kernel is seen by the kernel's own tick, and rounds that all take the
 * same time are in step with it. */
static void
work_in_kernel(double seconds)
{
    static const uint64_t sizes[N_KERNEL_HOGS] = {100000, N_READS / 2,
                                                  50 * 4096};
    uint64_t end = thread_cpu_ns() + (uint64_t)(seconds * 1e9);
    static unsigned seed = 1;
    unsigned i;

    zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    while (thread_cpu_ns() < end)
        for (i = 0; i < N_KERNEL_HOGS; i++) {
            uint64_t size = 1 + (uint64_t)rand_r(&seed) % (2 * sizes[i]);
            uint64_t before = thread_cpu_ns();

            kernel_hogs[i](size);
            kernel_burnt_ns[i] += thread_cpu_ns() - before;
        }
    close(zeros);
}

static double
kernel_share(const struct profile *p, unsigned which, bool seen)
{
    double sum = 0;
    unsigned i;

    for (i = 0; i < N_KERNEL_HOGS; i++)
        sum += (double)kernel_burnt_ns[i];
    return seen ? 100.0 * (double)profile_cpu_in(p, kernel_names[which]) /
                      (double)profile_cpu_ns(p)
                : 100.0 * (double)kernel_burnt_ns[which] / sum;
}

/* At any rate CONFIG_HZ ticks a second say what is in the kernel. */
static bool
kernel_agrees(const struct profile *p)
{
    unsigned i;

    for (i = 0; i < N_KERNEL_HOGS; i++)
        if (fabs(kernel_share(p, i, true) - kernel_share(p, i, false)) > 4)
            return false;
    return true;
}

static void
test_in_kernel(uint32_t rate_hz, const char *name)
{
    struct profile *p;
    unsigned i;

    memset(kernel_burnt_ns, 0, sizeof kernel_burnt_ns);
    p = session_adding(rate_hz, 2, 24, work_in_kernel, kernel_agrees);
    check(kernel_agrees(p), name);
    for (i = 0; i < N_KERNEL_HOGS; i++)
        note("%s: %.2f %% seen, %.2f %% burnt", kernel_names[i],
             kernel_share(p, i, true), kernel_share(p, i, false));
    profile_free(p);
}

/* --- four threads of unequal load ------------------------------------------
 */

static double thread_seconds;

static void *
thread_burn(void *which)
{
    static const double parts[N_HOGS] = {0.4, 0.3, 0.2, 0.1};
    unsigned i = (unsigned)(uintptr_t)which;

    burn(i, thread_seconds * parts[i]);
    return NULL;
}

static void
work_unequal(double seconds)
{
    uint64_t before = process_cpu_ns();
    pthread_t threads[N_HOGS];
    uintptr_t i;

    thread_seconds = seconds;
    for (i = 0; i < N_HOGS; i++)
        pthread_create(&threads[i], NULL, thread_burn, (void *)i);
    for (i = 0; i < N_HOGS; i++)
        pthread_join(threads[i], NULL);
    used_ns += process_cpu_ns() - before;
}

/* --- sums against getrusage() ----------------------------------------------
 */

static void
work_serial(double seconds)
{
    uint64_t before = process_cpu_ns();

    hog_one((uint64_t)(seconds * 1e9));
    used_ns += process_cpu_ns() - before;
}

static void *
thread_short(void *arg)
{
    hog_two(3 * MS);
    return NULL;
}

/* Threads of 3 ms each: most end before their first tick can come. */
static void
work_short_lived(double seconds)
{
    uint64_t before = process_cpu_ns();
    double done;

    for (done = 0; done < seconds; done += 4 * 0.003) {
        pthread_t threads[4];
        int i;

        for (i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, thread_short, NULL);
        for (i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    }
    used_ns += process_cpu_ns() - before;
}

static double
ratio(const struct profile *p)
{
    return (double)profile_cpu_ns(p) / (double)used_ns;
}

static bool
sum_agrees(const struct profile *p)
{
    return fabs(ratio(p) - 1) <= 0.05;
}

static void
check_sum(const struct profile *p, const char *name)
{
    check_near(ratio(p), 1, 0.05, name);
    note("%.1f ms seen, %.1f ms used", (double)profile_cpu_ns(p) / 1e6,
         (double)used_ns / 1e6);
    if (!sum_agrees(p))
        profile_note(p, 8);
}

static bool
shares_and_sum_agree(const struct profile *p)
{
    return shares_agree(p) && sum_agrees(p);
}

static void
test_shares_and_sum(void (*work)(double), double first, const char *shares,
                    const char *sum)
{
    struct profile *p;

    forget();
    p = session_adding(0, first, 12, work, shares_and_sum_agree);
    check_shares(p, shares_agree(p), shares);
    check_sum(p, sum);
    profile_free(p);
}

static void
test_sum(void (*work)(double), double first, const char *name)
{
    struct profile *p;

    forget();
    p = session_adding(0, first, 8, work, sum_agrees);
    check_sum(p, name);
    profile_free(p);
}

/* --- the rate --------------------------------------------------------------
 */

static bool
rate_agrees(const struct profile *p)
{
    double ticks = (double)profile_count(p);

    return fabs(ticks / ((double)used_ns / 1e6) - 1) <= 0.02;
}

/* The tick of the kernel bounds the timers: they weigh, so the sum is right,
 * but fewer stacks come. */
static void
test_rate_1000(void)
{
    struct profile *p;
    double hz;

    forget();
    p = session_adding(1000, 0.5, 4, work_serial, rate_agrees);
    hz = (double)profile_count(p) / ((double)used_ns / 1e9);
    check_near(hz, 1000, 20, "1000 Hz asked for are 1000 Hz within 2 %");
    check(profile_comment(p, "Hz"), "the profile says what it got");
    profile_note(p, 2);
    profile_free(p);
}

/* In all tables of descriptors of this process. */
static int
count_events(void)
{
    static const char name[] = "anon_inode:[perf_event]";
    glob_t found = {0};
    char to[sizeof name];
    int n = 0;
    size_t i;

    glob("/proc/self/task/*/fd/*", 0, NULL, &found);
    for (i = 0; i < found.gl_pathc; i++)
        n += readlink(found.gl_pathv[i], to, sizeof to) == sizeof name - 1 &&
             memcmp(to, name, sizeof name - 1) == 0;
    globfree(&found);
    return n;
}

/* Who lowers the limit waits until they are closed, nobody else does. */
static void
test_limit(void)
{
    struct rlimit limit, lower;
    int i;

    session_start(0);
    for (i = 0; i < 100 && !count_events(); i++)
        burn(0, 0.01);
    check(count_events() > 0, "there are perf events");
    getrlimit(RLIMIT_SIGPENDING, &limit);
    lower = limit;
    lower.rlim_cur--;
    check(setrlimit(RLIMIT_SIGPENDING, (struct rlimit *)8) < 0 &&
              errno == EFAULT,
          "a limit that cannot be read is refused");
    setrlimit(RLIMIT_SIGPENDING, &limit);
    check(count_events() > 0, "they stay when a limit is not lowered");
    setrlimit(RLIMIT_SIGPENDING, &lower);
    check(count_events() == 0, "and are gone when it is");
    setrlimit(RLIMIT_SIGPENDING, &limit);
    profile_free(session_stop());
}

int
main(int argc, char **argv)
{
    struct profile *p;

    session_engine(argc, argv);
    /* A thread that shares its processor is seldom running when the kernel's
     * tick comes: other programs are kept away where that is allowed. */
    (void)setpriority(PRIO_PROCESS, 0, -20);
    if (engine == CPPROF_ENGINE_PERF)
        test_limit();
    test_shares_and_sum(work_split, 1,
                        "a split of 50/30/20 is seen within 2 points",
                        "one thread: the sum is what getrusage says");
    test_shares_and_sum(work_unequal, 1.5,
                        "four threads of unequal load within 2 points",
                        "four threads: the sum is right");
    /* The timer has the kernel's 250 Hz: it needs longer for as many samples.
     */
    forget();
    p = session_adding(1000, engine == CPPROF_ENGINE_PERF ? 1 : 3, 24,
                       work_slices, shares_agree);
    check_shares(p, shares_agree(p),
                 "a split is seen in slices of some milliseconds, too");
    profile_free(p);
    test_sum(work_short_lived, 0.75, "short-lived threads: the sum is right");
    test_rate_1000();
    test_in_kernel(100,
                   "time in the kernel is whose call it is, within 4 points");
    test_in_kernel(1000, "the same at 1000 Hz");
    return check_done();
}
