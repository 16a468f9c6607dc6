/* SPDX-License-Identifier: MIT */
/*
 * What a library costs by being there. presence START_NS N says on one line
 *
 *     address space and resident memory in KB, in main()
 *     microseconds: from START_NS on the monotonic clock to main(); then of a
 *     fork whose child ends at once, of a fork and an exec of /bin/true, of a
 *     thread that does nothing, the median of N each
 *     the monotonic clock in nanoseconds when main() ends
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N_MAX 1000

static int64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static long
status_kb(const char *key)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kb = -1;

    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key)))
            kb = atol(line + strlen(key));
    if (f)
        fclose(f);
    return kb;
}

static void
run_fork(void)
{
    pid_t pid = fork();
    int status;

    if (!pid)
        _exit(0);
    if (waitpid(pid, &status, 0) != pid || status)
        abort();
}

static void
run_exec(void)
{
    pid_t pid = fork();
    int status;

    if (!pid) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    if (waitpid(pid, &status, 0) != pid || status)
        abort();
}

static void *
nothing(void *arg)
{
    return arg;
}

static void
run_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, nothing, NULL) ||
        pthread_join(thread, NULL))
        abort();
}

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double
median_us(void (*run)(void), int n)
{
    static double us[N_MAX];
    int i;

    for (i = 0; i < n; i++) {
        int64_t start = now_ns();

        run();
        us[i] = (double)(now_ns() - start) / 1e3;
    }
    qsort(us, (size_t)n, sizeof *us, by_size);
    return us[n / 2];
}

int
main(int argc, char **argv)
{
    int64_t at_main = now_ns();
    long size = status_kb("VmSize:"), rss = status_kb("VmRSS:");
    int n = argc > 2 ? atoi(argv[2]) : 0;
    double fork_us, exec_us, thread_us;

    if (n < 1 || n > N_MAX)
        return 2;
    fork_us = median_us(run_fork, n);
    exec_us = median_us(run_exec, n);
    thread_us = median_us(run_thread, n);
    printf("%ld %ld %.1f %.1f %.1f %.1f %lld\n", size, rss,
           (double)(at_main - atoll(argv[1])) / 1e3, fork_us, exec_us,
           thread_us, (long long)now_ns());
    return 0;
}
