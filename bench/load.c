/* SPDX-License-Identifier: MIT */
/*
 * Programs whose profile is known:
 *
 *     load split              half, 3/10 and 2/10 of the time in three
 * functions load threads N SECONDS  N threads that share the processors load
 * churn N            N threads one after the other, 2 ms each
 *
 * Each prints its CPU time by getrusage and its resident memory at the end.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static volatile double sink;

static double
seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Work for some CPU time of the calling thread. The clock is read rarely, so
 * that the time is spent here and not there. */
#define BURN(name)                                                             \
    __attribute__((noipa)) static void name(double cpu_seconds)                \
    {                                                                          \
        double end = seconds(CLOCK_THREAD_CPUTIME_ID) + cpu_seconds;           \
        int i;                                                                 \
                                                                               \
        while (seconds(CLOCK_THREAD_CPUTIME_ID) < end)                         \
            for (i = 0; i < 100000; i++)                                       \
                sink = sink * 1.0000001 + i;                                   \
    }
BURN(burn_half)
BURN(burn_three)
BURN(burn_two)

static void
split(void)
{
    int i;

    for (i = 0; i < 40; i++) {
        burn_half(0.050);
        burn_three(0.030);
        burn_two(0.020);
    }
}

static void *
burn_thread(void *arg)
{
    burn_half(*(double *)arg);
    return NULL;
}

static void
threads(int n, double cpu_seconds)
{
    pthread_t *ids = calloc((size_t)n, sizeof *ids);
    double each = cpu_seconds / n;
    int i;

    for (i = 0; i < n; i++)
        if (pthread_create(&ids[i], NULL, burn_thread, &each))
            exit(1);
    for (i = 0; i < n; i++)
        pthread_join(ids[i], NULL);
    free(ids);
}

static void
churn(int n)
{
    double each = 0.002;
    pthread_t id;

    while (n--) {
        if (pthread_create(&id, NULL, burn_thread, &each))
            exit(1);
        pthread_join(id, NULL);
    }
}

static long
resident_kb(void)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    long kb = 0;

    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "VmHWM:", 6))
            kb = atol(line + 6);
    if (status)
        fclose(status);
    return kb;
}

int
main(int argc, char **argv)
{
    struct rusage usage;
    const char *mode = argc > 1 ? argv[1] : "";

    if (!strcmp(mode, "split"))
        split();
    else if (!strcmp(mode, "threads") && argc == 4)
        threads(atoi(argv[2]), atof(argv[3]));
    else if (!strcmp(mode, "churn") && argc == 3)
        churn(atoi(argv[2]));
    else
        return 2;
    getrusage(RUSAGE_SELF, &usage);
    printf("getrusage %.3f s  resident %ld KB\n",
           (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
           resident_kb());
    return 0;
}
