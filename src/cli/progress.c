/* SPDX-License-Identifier: MIT */
/*
 * Progress: a line on the terminal that tells what takes so long. Its own
 * thread prints it, so that loops that work need no calls, and no signal
 * interrupts system calls. If stderr is no terminal there is no line, but
 * others can still ask what is being done.
 */
#include "arch/clock.h"
#include "cli/messages.h"
#include "cli/terminal.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* Milliseconds before the first line, and between two after that. */
#define FIRST_MS 1000
#define NEXT_MS  500

#define NS_PER_MS 1000000u

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* These are read and written under the lock. */
    char what[160];
    bool shown;
    bool ending;
    bool running;
    uint64_t begin_ns;
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
    uint64_t ns = cpprof__now_ns(CLOCK_MONOTONIC) - progress.begin_ns;
    unsigned columns = cpprof__terminal_columns(STDERR_FILENO);
    char line[224];
    int n;

    n = snprintf(line, sizeof line, "\r\033[K%.*s (%u s)",
                 columns > 20 ? (int)columns - 12 : 68, progress.what,
                 (unsigned)(ns / CPPROF__NS_PER_S));
    progress.shown = write(STDERR_FILENO, line, (size_t)n) == n;
}

static void *
run(void *arg)
{
    uint64_t next_ns = progress.begin_ns + FIRST_MS * NS_PER_MS;

    (void)arg;
    pthread_mutex_lock(&progress.lock);
    while (!progress.ending) {
        const struct timespec next = cpprof__timespec_of(next_ns);

        if (pthread_cond_timedwait(&progress.changed, &progress.lock, &next) ==
            0)
            continue;
        show();
        next_ns += NEXT_MS * NS_PER_MS;
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
        progress.begin_ns = cpprof__now_ns(CLOCK_MONOTONIC);
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
    uint64_t ns = cpprof__now_ns(CLOCK_MONOTONIC);

    pthread_mutex_lock(&progress.lock);
    snprintf(what, n, "%s", progress.what);
    pthread_mutex_unlock(&progress.lock);
    return *what ? (long)((ns - progress.begin_ns) / CPPROF__NS_PER_S) : 0;
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
