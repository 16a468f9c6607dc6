/* SPDX-License-Identifier: MIT */
/* What musl.py records: each part of it takes a time, or memory, that is known.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N_THREADS 3

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int n_at_mutex; /* threads that have it or are about to wait */
static void *volatile kept[N_THREADS];

__attribute__((noinline)) void
burn(double seconds)
{
    struct timespec begin, now;
    volatile unsigned sum = 0;
    unsigned i;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do {
        for (i = 0; i < 1000000; i++)
            sum += i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((double)(now.tv_sec - begin.tv_sec) +
                 1e-9 * (double)(now.tv_nsec - begin.tv_nsec) <
             seconds);
}

static double
used(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

__attribute__((noinline)) static int
compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* libc calls the program back. */
__attribute__((noinline)) void
sort(double seconds)
{
    static int numbers[10000];
    double end = used() + seconds;
    size_t i;

    while (used() < end) {
        for (i = 0; i < 10000; i++)
            numbers[i] = rand();
        qsort(numbers, 10000, sizeof *numbers, compare);
    }
}

__attribute__((noinline)) void *
keep(void)
{
    void *block = malloc(1 << 20);

    return block ? memset(block, 1, 1 << 20) : NULL;
}

__attribute__((noinline)) void *
work(void *number)
{
    burn(0.2);
    kept[(size_t)number] = keep();
    __atomic_add_fetch(&n_at_mutex, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&mutex);
    while (__atomic_load_n(&n_at_mutex, __ATOMIC_RELAXED) < N_THREADS)
        usleep(1000);
    usleep(100000);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

__attribute__((noinline)) void *
doze(void *unused)
{
    (void)unused;
    for (;;)
        usleep(20000);
    return NULL;
}

__attribute__((noinline)) void *
spin(void *unused)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;)
        (void)unused;
    return NULL;
}

/* musl's cancellation is the signal that makes ticks. */
static int
cancels(void *(*start)(void *))
{
    pthread_t thread;
    void *result = NULL;

    if (pthread_create(&thread, NULL, start, NULL))
        return 0;
    usleep(50000);
    return !pthread_cancel(thread) && !pthread_join(thread, &result) &&
           result == PTHREAD_CANCELED;
}

static int
forks(void)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        burn(0.2);
        _exit(7);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 7;
}

/* No name came that this libc has not. */
static int
lacks_names(void)
{
    return !dlsym(RTLD_DEFAULT, "gnu_get_libc_version") &&
           !dlsym(RTLD_DEFAULT, "pthread_mutex_clocklock") &&
           !dlsym(RTLD_DEFAULT, "sem_clockwait") &&
           !dlsym(RTLD_DEFAULT, "cfree") && !dlsym(RTLD_DEFAULT, "close_range");
}

static int
waits_as_alone(void)
{
    struct timespec none = {0, 1000000};
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    burn(0.1);
    return sigtimedwait(&all, NULL, &none) == -1;
}

/* In a child where another one follows. */
static int
goes_on_as(char **words)
{
    pid_t child = 0;
    int status = 0;

    burn(0.2);
    if (words[1])
        child = fork();
    if (child == 0)
        execv(words[0], words);
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

int
main(int argc, char **argv)
{
    pthread_t threads[N_THREADS];
    size_t i;

    if (argc > 1)
        return goes_on_as(argv + 1);
    for (i = 0; i < N_THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            return 2;
    for (i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("cancelled: %d %d, forked: %d, names: %d, signals: %d\n",
           cancels(doze), cancels(spin), forks(), lacks_names(),
           waits_as_alone());
    sort(0.2);
    return 3;
}
