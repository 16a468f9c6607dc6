/* SPDX-License-Identifier: MIT */
/*
 * Progress: a line on the terminal that tells what takes so long. Its own
 * thread prints it, so that loops that work need no calls, and no signal
 * interrupts system calls. If stderr is no terminal there is no line, but
 * others can still ask what is being done.
 */
#include "cli/messages.h"
#include "cli/terminal.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Milliseconds before the first line, and between two after that. */
#define FIRST_MS 1000
#define NEXT_MS  500

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* These are read and written under the lock. */
    char what[160];
    bool shown;
    bool ending;
    bool running;
    struct timespec begin;
    /* Only the calling thread uses this. */
    pthread_t thread;
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void
hide(void)
{
    static const char clear[] = "\r\033[K";

    if (progress.shown && write(STDERR_FILENO, clear, sizeof clear - 1) < 0)
        return;
    progress.shown = false;
}

static void
show(void)
{
    unsigned columns = cpprof__terminal_columns(STDERR_FILENO);
    char line[224];
    struct timespec now;
    int n;

    clock_gettime(CLOCK_MONOTONIC, &now);
    n = snprintf(line, sizeof line, "\r\033[K%.*s (%ld s)",
                 columns > 20 ? (int)columns - 12 : 68, progress.what,
                 (long)(now.tv_sec - progress.begin.tv_sec));
    progress.shown = write(STDERR_FILENO, line, (size_t)n) == n;
}

static void
add_ms(struct timespec *t, long ms)
{
    t->tv_nsec += ms * 1000000;
    t->tv_sec += t->tv_nsec / 1000000000;
    t->tv_nsec %= 1000000000;
}

static void *
run(void *arg)
{
    struct timespec next = progress.begin;

    (void)arg;
    add_ms(&next, FIRST_MS);
    pthread_mutex_lock(&progress.lock);
    while (!progress.ending) {
        if (pthread_cond_timedwait(&progress.changed, &progress.lock, &next) ==
            0)
            continue;
        show();
        add_ms(&next, NEXT_MS);
    }
    hide();
    pthread_mutex_unlock(&progress.lock);
    return NULL;
}

/* Make a thread that gets no signal: handlers run on the thread that works. */
static void
start(void)
{
    pthread_condattr_t attributes;
    sigset_t all, before;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&progress.changed, &attributes);
    pthread_condattr_destroy(&attributes);
    progress.ending = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    progress.running = pthread_create(&progress.thread, NULL, run, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void
cpprof__progress(const char *format, ...)
{
    va_list args;

    pthread_mutex_lock(&progress.lock);
    if (!*progress.what)
        clock_gettime(CLOCK_MONOTONIC, &progress.begin);
    va_start(args, format);
    cpprof__message_text(progress.what, sizeof progress.what, format, args);
    va_end(args);
    pthread_mutex_unlock(&progress.lock);
    if (!progress.running && isatty(STDERR_FILENO) &&
        !cpprof__terminal_is_dumb())
        start();
}

long
cpprof__progress_now(char *what, size_t n)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&progress.lock);
    snprintf(what, n, "%s", progress.what);
    pthread_mutex_unlock(&progress.lock);
    return *what ? (long)(now.tv_sec - progress.begin.tv_sec) : 0;
}

void
cpprof__progress_end(void)
{
    pthread_mutex_lock(&progress.lock);
    *progress.what = 0;
    progress.ending = true;
    if (progress.running)
        pthread_cond_signal(&progress.changed);
    pthread_mutex_unlock(&progress.lock);
    if (!progress.running)
        return;
    pthread_join(progress.thread, NULL);
    progress.running = false;
    pthread_cond_destroy(&progress.changed);
}

void
cpprof__progress_hide(void)
{
    if (!progress.running)
        return;
    pthread_mutex_lock(&progress.lock);
    hide();
    pthread_mutex_unlock(&progress.lock);
}
