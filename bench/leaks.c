/* SPDX-License-Identifier: MIT */
/*
 * A heap of so many MB in blocks of so many bytes, each of which leads to the
 * next one, in the order of addresses or in any; every 1 000th of them is lost.
 * Under LeakSanitizer it prints how long its check takes; else it prints how
 * many milliseconds the kernel needs to make a child of it, the median of nine,
 * and lives until its input ends.
 *
 *     leaks MB BYTES seq|random
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void **all, *first;

static double
seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#ifdef LSAN
int
__lsan_do_recoverable_leak_check(void);
#else
static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* By a system call: fork() would run handlers, too. */
static double
child_ms(void)
{
    double ms[9], begin;
    long pid;
    int i;

    for (i = 0; i < 9; i++) {
        begin = seconds(CLOCK_MONOTONIC);
        pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (pid == 0)
            _exit(0);
        ms[i] = (seconds(CLOCK_MONOTONIC) - begin) * 1e3;
        waitpid((pid_t)pid, NULL, 0);
    }
    qsort(ms, 9, sizeof ms[0], compare);
    return ms[4];
}
#endif

static uint64_t
next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 20;
}

int
main(int argc, char **argv)
{
    size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 64;
    size_t n = (argc > 1 ? strtoul(argv[1], NULL, 10) : 100) * 1000000 / bytes;
    size_t i, k;
    uint64_t state = 1;
    void *swap;

    all = malloc(n * sizeof *all);
    for (i = 0; i < n; i++)
        memset(all[i] = malloc(bytes), 0, bytes);
    for (i = n - 1; argc > 3 && argv[3][0] == 'r' && i > 0; i--) {
        k = next_random(&state) % (i + 1);
        swap = all[i];
        all[i] = all[k];
        all[k] = swap;
    }
    for (first = all[0], k = 0, i = 1; i < n; i++)
        if (i % 1000) {
            *(void **)all[k] = all[i];
            k = i;
        }
    memset(all, 0, n * sizeof *all);
    free(all);
#ifdef LSAN
    double wall = seconds(CLOCK_MONOTONIC);
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);

    __lsan_do_recoverable_leak_check();
    printf("%.3f %.3f\n", seconds(CLOCK_MONOTONIC) - wall,
           seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    fflush(stdout);
    _Exit(0);
#else
    printf("%.1f\n", child_ms());
    fflush(stdout);
#endif
    while (getchar() != EOF)
        ;
    return first == NULL;
}
