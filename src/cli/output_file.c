/* SPDX-License-Identifier: MIT */
/*
 * While a file is written the handler only notes the signal. The next write
 * then fails, which removes the temporary file, and the signal is raised again
 * with its default action. A file that is not regular has no temporary, and a
 * write to it may block: there signals act as usual.
 */
#include "cli/output_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* The first write begins to listen for signals. */
static int
write_file(void *ctx, const void *data, size_t n_bytes)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
    size_t i;

    (void)ctx;
    for (i = 0; !file.listening && i < N_SIGNALS; i++) {
        sigaction(signals[i], NULL, &file.before[i]);
        if (file.before[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
    file.listening = true;
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

/* ---------------------------------------------------------- in place ---- */

/* The file may be written but its folder may not, so no temporary file can be
 * made beside it. A failure leaves the file empty. */
static int in_place = -1;

static int
write_in_place(void *ctx, const void *data, size_t n_bytes)
{
    struct cpprof_writer writer;

    (void)ctx;
    cpprof_writer_to_fd(in_place, &writer);
    return writer.write(writer.ctx, data, n_bytes);
}

static int
close_in_place(void *ctx, int failed)
{
    int sys = 0;

    (void)ctx;
    if (failed && ftruncate(in_place, 0) != 0)
        sys = errno;
    if (close(in_place) != 0)
        sys = errno;
    in_place = -1;
    return sys;
}

static bool
open_in_place(const char *path, struct cpprof_writer *writer)
{
    struct stat st;

    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    in_place = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    *writer = (struct cpprof_writer){sizeof(struct cpprof_writer),
                                     write_in_place, close_in_place, NULL};
    return in_place >= 0;
}

/* -------------------------------------------------------------- open ---- */

/* Signals are held back, because this makes a file to see whether it can. */
static enum cpprof_status
open_file(const char *path, struct cpprof_writer *writer,
          struct cpprof_error *error)
{
    struct cpprof_writer made;
    enum cpprof_status status;
    sigset_t kept_back, before;
    size_t i;

    sigemptyset(&kept_back);
    for (i = 0; i < N_SIGNALS; i++)
        sigaddset(&kept_back, signals[i]);
    sigprocmask(SIG_BLOCK, &kept_back, &before);
    status = cpprof_writer_to_path(path, &made, error);
    if (status == CPPROF_SYSTEM && error->sys == EACCES &&
        open_in_place(path, &made))
        status = CPPROF_OK;
    if (status == CPPROF_OK)
        *writer = made;
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
    *writer = (struct cpprof_writer){sizeof(struct cpprof_writer), write_file,
                                     close_file, NULL};
    return status;
}

/* -------------------------------------------------------------- names ---- */

int
cpprof__numbered_file(char path[PATH_MAX], const char *front, const char *end)
{
    int i, fd;

    for (i = 1; i < 10000; i++) {
        if (snprintf(path, PATH_MAX, "%s%03d%s", front, i, end) >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

bool
cpprof__make_folders_above(const char *path, mode_t mode)
{
    char part[PATH_MAX], *slash;

    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(part, mode) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    return true;
}

/* ------------------------------------------------------------ remove ---- */

/* readdir(3) allocates, which a signal handler must not. */
void
cpprof__remove_files(int folder)
{
    _Alignas(struct dirent64) char entries[8192];
    ssize_t n, at;

    lseek(folder, 0, SEEK_SET);
    while ((n = getdents64(folder, entries, sizeof entries)) > 0)
        for (at = 0; at < n;) {
            struct dirent64 *entry = (void *)(entries + at);

            /* Not "." and "..". A folder is nothing of ours. */
            if (unlinkat(folder, entry->d_name, 0) && errno == EISDIR)
                unlinkat(folder, entry->d_name, AT_REMOVEDIR);
            at += entry->d_reclen;
        }
}
