/* SPDX-License-Identifier: MIT */
/*
 * What faults.py runs: a program that does a little of everything, checks
 * itself, and ends with 7. Its own system calls are few and come from here or
 * from libc alone.
 */
#include "host.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>

#ifdef PLUGIN

int
plugin_work(int n)
{
    return n + 1;
}

#else

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t n_signals;

static void
on_signal(int signal)
{
    (void)signal;
    n_signals++;
}

static void *
worker(void *arg)
{
    for (int i = 0; i < 4; i++) {
        pthread_mutex_lock(&lock);
        sleep_ms(1);
        pthread_mutex_unlock(&lock);
        for (int n = 0; n < 50; n++)
            free(malloc(5000));
        busy_ms(1);
    }
    return arg;
}

static void
threads(void)
{
    pthread_t thread[3];
    void *result;

    for (uintptr_t i = 0; i < 3; i++) {
        int failed = pthread_create(&thread[i], NULL, worker, (void *)i);

        EXPECT(failed == 0, "pthread_create: %s", strerror(failed));
    }
    for (uintptr_t i = 0; i < 3; i++) {
        int failed = pthread_join(thread[i], &result);

        EXPECT(failed == 0 && result == (void *)i, "pthread_join: %s",
               strerror(failed));
    }
}

static void
children(void)
{
    char *const again[] = {"faults_host", "again", NULL};
    pid_t pid = fork();
    int status;

    EXPECT(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) {
        busy_ms(15);
        sleep_ms(5);
        free(malloc(100000));
        exit(3);
    }
    status = status_of(pid);
    EXPECT(status == 3, "a child ended with %d", status);
    pid = fork();
    EXPECT(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) {
        execv("/proc/self/exe", again);
        _exit(4);
    }
    status = status_of(pid);
    EXPECT(status == 5, "a program ended with %d", status);
}

static void
library(void)
{
    void *handle = dlopen(getenv("HOST_PLUGIN"), RTLD_NOW);
    int (*work)(int) = handle ? dlsym(handle, "plugin_work") : NULL;

    EXPECT(work && work(1) == 2, "dlopen: %s", dlerror());
    EXPECT(!handle || dlclose(handle) == 0, "dlclose: %s", dlerror());
}

static void
sleeps(void)
{
    struct pollfd nothing = {-1, 0, 0};
    struct timespec t = {0, 3000000};

    EXPECT(nanosleep(&t, NULL) == 0, "nanosleep: %s", strerror(errno));
    EXPECT(poll(&nothing, 1, 2) == 0, "poll: %s", strerror(errno));
    EXPECT(setresuid(-1, -1, -1) == 0, "setresuid: %s", strerror(errno));
}

static void
descriptors(void)
{
    int fd = open("/dev/null", O_WRONLY);

    EXPECT(fd >= 0, "open: %s", strerror(errno));
    EXPECT(write(fd, "x", 1) == 1, "write: %s", strerror(errno));
    EXPECT(close(fd) == 0, "close: %s", strerror(errno));
}

static void
at_end(void)
{
    if (write(STDOUT_FILENO, "end\n", 4) != 4)
        _exit(6);
}

int
main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    (void)argv;
    if (argc > 1)
        return 5;
    atexit(at_end);
    EXPECT(sigaction(SIGUSR1, &action, NULL) == 0, "sigaction: %s",
           strerror(errno));
    descriptors();
    threads();
    children();
    library();
    sleeps();
    EXPECT(raise(SIGUSR1) == 0 && n_signals == 1, "signals: %d",
           (int)n_signals);
    busy_ms(5);
    descriptors();
    return host_wrong ? 1 : 7;
}

#endif
