/* SPDX-License-Identifier: MIT */
/*
 * From the first byte to the last the handler only notes the signal; the next
 * write fails then, which takes the temporary file away, and the signal is
 * raised again where nobody listens. What is no regular file has no temporary,
 * and may keep a write waiting: there signals do what they always do.
 */
#include "output_file.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define N_SIGNALS (sizeof signals / sizeof signals[0])

static struct {
    struct cpprof_writer to;
    struct sigaction before[N_SIGNALS];
    bool listening;
    volatile sig_atomic_t came; /* the signal, or 0 */
} file;

static void
note(int number)
{
    file.came = number;
}

static void
listen_for_signals(void)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
    size_t i;

    for (i = 0; i < N_SIGNALS; i++) {
        sigaction(signals[i], NULL, &file.before[i]);
        if (file.before[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
    file.listening = true;
}

static int
write_file(void *ctx, const void *data, size_t n_bytes)
{
    (void)ctx;
    if (!file.listening)
        listen_for_signals();
    return file.came ? EINTR : file.to.write(file.to.ctx, data, n_bytes);
}

static int
close_file(void *ctx, int failed)
{
    int sys = file.to.close(file.to.ctx, failed || file.came);
    size_t i;

    (void)ctx;
    for (i = 0; file.listening && i < N_SIGNALS; i++)
        sigaction(signals[i], &file.before[i], NULL);
    file.listening = false;
    if (file.came)
        raise(file.came);
    return sys;
}

/* That tries whether the file can be made, so no signal may end it. */
static enum cpprof_status
open_file(const char *path, struct cpprof_writer *writer,
          struct cpprof_error *error)
{
    enum cpprof_status status;
    sigset_t kept_back, before;
    size_t i;

    sigemptyset(&kept_back);
    for (i = 0; i < N_SIGNALS; i++)
        sigaddset(&kept_back, signals[i]);
    sigprocmask(SIG_BLOCK, &kept_back, &before);
    status = cpprof_path_writer(path, writer, error);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

enum cpprof_status
cpprof__output_file(const char *path, struct cpprof_writer *writer,
                    struct cpprof_error *error)
{
    enum cpprof_status status = open_file(path, writer, error);
    struct stat st;

    if (status != CPPROF_OK || (stat(path, &st) == 0 && !S_ISREG(st.st_mode)))
        return status;
    file.to = *writer;
    file.came = 0;
    *writer = (struct cpprof_writer){write_file, close_file, NULL};
    return status;
}
