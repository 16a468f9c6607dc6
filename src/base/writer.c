/* SPDX-License-Identifier: MIT */
/*
 * Writers: taken from the caller of a public call, and the ready ones for a
 * descriptor, a stream, a path.
 *
 * A path is written under a temporary name beside it and renamed at the end.
 * Between make and the first byte nothing is kept open: the program that is
 * profiled may close every descriptor it has, and the number may by then be
 * somebody's socket.
 */
#include "base/writer.h"

#include "base/buffer.h"
#include "base/options.h"
#include "base/status.h"
#include "own/memory.h"
#include "own/say.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

void (*cpprof__own_memory)(int by);

enum cpprof_status
cpprof__writer_take(const struct cpprof_writer *given,
                    struct cpprof_writer *writer, struct cpprof_error *error)
{
    enum cpprof_status status;

    memset(writer, 0, sizeof *writer);
    if (!given || !given->size)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "there is no writer: it is zeroed, as one that "
                            "could not be made is");
    status =
        cpprof__options(writer, sizeof *writer, given, "cpprof_writer", error);
    if (status == CPPROF_OK && !writer->write) {
        cpprof__writer_refuse(writer);
        memset(writer, 0, sizeof *writer);
        status = cpprof__fail(error, CPPROF_INVALID, 0,
                              "the writer has no write function");
    }
    return status;
}

void
cpprof__writer_refuse(const struct cpprof_writer *writer)
{
    if (writer->close)
        writer->close(writer->ctx, 1);
}

enum cpprof_status
cpprof__writer_refuse_call(const struct cpprof_writer *given,
                           struct cpprof_error *error, const char *call)
{
    struct cpprof_writer writer;
    enum cpprof_status status = cpprof__writer_take(given, &writer, error);

    cpprof__writer_refuse(&writer);
    return status == CPPROF_OK ? cpprof__fail_null(error, call) : status;
}

void
cpprof__writer_end(const struct cpprof_writer *writer,
                   struct cpprof_error *error)
{
    int sys = 0;

    if (writer->close)
        sys = writer->close(writer->ctx, error->status != CPPROF_OK);
    if (sys && error->status == CPPROF_OK)
        cpprof__fail(error, CPPROF_SYSTEM, sys, "close: %s", strerror(sys));
}

/* A descriptor that does not block is waited for. */
static bool
may_go_on(int fd)
{
    struct pollfd p = {fd, POLLOUT, 0};

    if (errno == EINTR)
        return true;
    return errno == EAGAIN && (poll(&p, 1, -1) >= 0 || errno == EINTR);
}

static int
write_all(int fd, const char *data, size_t n)
{
    while (n) {
        ssize_t written = cpprof__write_quietly(fd, data, n);

        if (written > 0) {
            data += written;
            n -= (size_t)written;
        } else if (written == 0) {
            return EIO;
        } else if (!may_go_on(fd)) {
            return errno;
        }
    }
    return 0;
}

static int
fd_write(void *ctx, const void *data, size_t n_bytes)
{
    return write_all((int)(intptr_t)ctx, data, n_bytes);
}

void
cpprof_writer_to_fd(int fd, struct cpprof_writer *writer)
{
    if (writer)
        *writer = (struct cpprof_writer){sizeof *writer, fd_write, NULL,
                                         (void *)(intptr_t)fd};
}

static int
file_write(void *ctx, const void *data, size_t n_bytes)
{
    struct cpprof__quiet quiet;
    int sys = 0;

    cpprof__quiet_begin(&quiet);
    errno = 0;
    if (fwrite(data, 1, n_bytes, ctx) != n_bytes)
        sys = errno ? errno : EIO;
    cpprof__quiet_end(&quiet, sys);
    return sys;
}

static int
file_close(void *ctx, int failed)
{
    struct cpprof__quiet quiet;
    int sys = 0;

    if (failed)
        return 0;
    cpprof__quiet_begin(&quiet);
    errno = 0;
    if (fflush(ctx))
        sys = errno ? errno : EIO;
    cpprof__quiet_end(&quiet, sys);
    return sys;
}

void
cpprof_writer_to_stream(FILE *file, struct cpprof_writer *writer)
{
    if (writer && file)
        *writer = (struct cpprof_writer){sizeof *writer, file_write, file_close,
                                         file};
    else if (writer)
        memset(writer, 0, sizeof *writer);
}

struct path_writer {
    char *path;      /* absolute, links followed: what rename replaces */
    char *temporary; /* beside it; NULL: none exists */
    bool in_place;   /* a device, a pipe or a file without a name: written
                      * where it is */
    int fd;          /* -1 until the first byte */
};

static void
free_path_writer(struct path_writer *w)
{
    cpprof__free(w->path);
    cpprof__free(w->temporary);
    cpprof__free(w);
}

static int
forget_temporary(struct path_writer *w, int sys)
{
    cpprof__free(w->temporary);
    w->temporary = NULL;
    return sys;
}

/* What a name grows by, at most. */
#define SUFFIX_BYTES sizeof ".4194304-4294967295.tmp"

/* Create the temporary file, under a name that no other process uses; 0 or an
 * errno. A name that would be too long for the folder is cut. */
static int
create_temporary(struct path_writer *w)
{
    static unsigned counter;
    size_t folder = (size_t)(strrchr(w->path, '/') - w->path) + 1;
    size_t most = NAME_MAX - SUFFIX_BYTES;

    for (;;) {
        unsigned n = __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
        struct cpprof__buffer name = {0};

        forget_temporary(w, 0);
        cpprof__buffer_printf(&name, "%.*s.%d-%u.tmp", (int)(folder + most),
                              w->path, (int)getpid(), n);
        if (name.failed)
            return ENOMEM;
        w->temporary = (char *)name.data;
        w->fd =
            open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (w->fd >= 0)
            return 0;
        if (errno != EEXIST)
            return forget_temporary(w, errno);
    }
}

static int
open_path(struct path_writer *w)
{
    if (!w->in_place)
        return create_temporary(w);
    w->fd = open(w->path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
    return w->fd >= 0 ? 0 : errno;
}

static int
path_write(void *ctx, const void *data, size_t n_bytes)
{
    struct path_writer *w = ctx;
    int sys = w->fd < 0 ? open_path(w) : 0;

    return sys ? sys : write_all(w->fd, data, n_bytes);
}

bool
cpprof__writer_is_path(const struct cpprof_writer *writer)
{
    return writer->write == path_write;
}

/* The new file is as accessible as the one it replaces. */
static void
copy_mode(const struct path_writer *w)
{
    struct stat old;

    if (!w->in_place && stat(w->path, &old) == 0 &&
        fchmod(w->fd, old.st_mode & 0777) < 0)
        errno = 0; /* not ours: it keeps the mode it was made with */
}

static int
path_close(void *ctx, int failed)
{
    struct path_writer *w = ctx;
    int sys = 0;

    if (!failed && w->fd < 0)
        sys = open_path(w);
    if (w->fd >= 0) {
        copy_mode(w);
        if (close(w->fd) < 0)
            sys = errno;
    }
    if (w->temporary && !failed && !sys && rename(w->temporary, w->path) < 0)
        sys = errno;
    if (w->temporary && (failed || sys))
        unlink(w->temporary);
    free_path_writer(w);
    return sys;
}

/* The directory of a file that is not there yet, resolved, and its name. */
static char *
resolve_new(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    struct cpprof__buffer whole = {0};
    char *parent, directory[PATH_MAX];

    if (!*name) {
        errno = *path ? EISDIR : ENOENT;
        return NULL;
    }
    parent = slash ? cpprof__strndup(path, (size_t)(name - path))
                   : cpprof__strdup(".");
    if (parent && realpath(parent, directory))
        cpprof__buffer_printf(&whole, "%s/%s", directory, name);
    cpprof__free(parent);
    if (whole.failed)
        errno = ENOMEM;
    return (char *)whole.data;
}

static char *
resolve_path(const char *path)
{
    char whole[PATH_MAX];

    if (realpath(path, whole))
        return cpprof__strdup(whole);
    return errno == ENOENT ? resolve_new(path) : NULL;
}

static int
try_temporary(struct path_writer *w)
{
    int sys = create_temporary(w);

    if (!sys) {
        close(w->fd);
        unlink(w->temporary);
    }
    w->fd = -1;
    return forget_temporary(w, sys);
}

/* May a file be made in this folder? None is made to find out: somebody may
 * watch it, and it costs more than all else at the start of a short program.
 * One without blocks, as /proc, may take none, whatever its rights are. */
static int
check_folder(struct path_writer *w, const char *folder)
{
    struct statfs fs;

    if (eaccess(folder, W_OK | X_OK) < 0)
        return errno;
    return statfs(folder, &fs) < 0 || fs.f_blocks ? 0 : try_temporary(w);
}

static int
check_new(struct path_writer *w)
{
    const char *slash = strrchr(w->path, '/');
    char *folder = cpprof__strndup(w->path, (size_t)(slash - w->path) + 1);
    int sys = folder ? check_folder(w, folder) : ENOMEM;

    cpprof__free(folder);
    return sys || strlen(slash + 1) <= NAME_MAX ? sys : ENAMETOOLONG;
}

/* Check that the file can be written later; 0 or an errno. */
static int
check_path(struct path_writer *w)
{
    struct stat st;

    if (stat(w->path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return EISDIR;
        if (eaccess(w->path, W_OK) < 0)
            return errno;
        w->in_place = !S_ISREG(st.st_mode) || !st.st_nlink;
    }
    return w->in_place ? 0 : check_new(w);
}

static enum cpprof_status
fail_path(struct cpprof_error *error, const char *path, int sys)
{
    if (sys == ENOMEM)
        return cpprof__fail_nomem(error);
    return cpprof__fail(error, CPPROF_SYSTEM, sys, "%s: %s", path,
                        strerror(sys));
}

static enum cpprof_status
make_path_writer(const char *path, struct cpprof_writer *writer,
                 struct cpprof_error *error)
{
    struct path_writer *w = cpprof__calloc(1, sizeof *w);
    int sys;

    if (!w)
        return cpprof__fail_nomem(error);
    w->fd = -1;
    w->path = resolve_path(path);
    sys = w->path ? check_path(w) : errno;
    if (sys) {
        free_path_writer(w);
        return fail_path(error, path, sys);
    }
    *writer = (struct cpprof_writer){sizeof *writer, path_write, path_close, w};
    return CPPROF_OK;
}

enum cpprof_status
cpprof_writer_to_path(const char *path, struct cpprof_writer *writer,
                      struct cpprof_error *error)
{
    CPPROF__NEED(error, writer);

    void (*own)(int by) =
        __atomic_load_n(&cpprof__own_memory, __ATOMIC_RELAXED);
    enum cpprof_status status;

    memset(writer, 0, sizeof *writer);
    CPPROF__NEED(error, path);
    if (own)
        own(1);
    status = make_path_writer(path, writer, error);
    if (own)
        own(-1);
    return status;
}
