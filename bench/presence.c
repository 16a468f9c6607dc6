/* SPDX-License-Identifier: MIT */
/*
 * What a library costs by being there. presence START_NS N says on one line
 *
 *     address space and resident memory in KB, in main()
 *     microseconds, of CPU time and then elapsed: until main(), the latter from
 *     START_NS on the monotonic clock; of a fork whose child ends at once; of a
 *     fork and an exec of /bin/true; of a thread that does nothing. Of the last
 *     three the median of N; a child's CPU time is in it
 *     when main() ends: the CPU time of the process and its children in
 *     microseconds, the monotonic clock in nanoseconds
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N_MAX 1000

static int64_t
clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double
microseconds(const struct timeval *t)
{
    return (double)t->tv_sec * 1e6 + (double)t->tv_usec;
}

/* Of this process and of the children that it has waited for. */
static double
cpu_us(void)
{
    struct rusage children;

    getrusage(RUSAGE_CHILDREN, &children);
    return (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e3 +
           microseconds(&children.ru_utime) + microseconds(&children.ru_stime);
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
median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_size);
    return values[n / 2];
}

static void
print_medians(void (*run)(void), int n)
{
    static double cpu[N_MAX], elapsed[N_MAX];
    int i;

    for (i = 0; i < n; i++) {
        int64_t start = clock_ns(CLOCK_MONOTONIC);
        double used = cpu_us();

        run();
        cpu[i] = cpu_us() - used;
        elapsed[i] = (double)(clock_ns(CLOCK_MONOTONIC) - start) / 1e3;
    }
    printf("%.1f %.1f ", median(cpu, n), median(elapsed, n));
}

int
main(int argc, char **argv)
{
    double cpu = (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e3;
    int64_t now = clock_ns(CLOCK_MONOTONIC);
    int n = argc > 2 ? atoi(argv[2]) : 0;

    if (n < 1 || n > N_MAX)
        return 2;
    printf("%ld %ld ", status_kb("VmSize:"), status_kb("VmRSS:"));
    printf("%.1f %.1f ", cpu, (double)(now - atoll(argv[1])) / 1e3);
    print_medians(run_fork, n);
    print_medians(run_exec, n);
    print_medians(run_thread, n);
    printf("%.1f ", cpu_us());
    printf("%lld\n", (long long)clock_ns(CLOCK_MONOTONIC));
    return 0;
}
