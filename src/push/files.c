/* SPDX-License-Identifier: MIT */
/*
 * Profiles as files in a folder, the newest of each kind kept.
 *
 * A profile is written under a temporary name beside its place and renamed to
 * the first free name, so that a reader never sees half a file and two
 * processes never overwrite each other's. Which files are ours is decided by
 * their names alone: a name that the pattern could have made.
 */
#include "push/files.h"

#include "arch/kernel.h"
#include "base/arena.h"
#include "base/status.h"
#include "collect/runtime/proc.h"
#include "own/folder.h"
#include "own/sort.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NS_PER_S 1000000000

/* Names that are tried, one for each second. */
#define SECONDS_TRIED 1000

static enum cpprof_status
failed(const char *what, const char *path, struct cpprof_error *error)
{
    return cpprof__fail(error, CPPROF_SYSTEM, errno, "push: %s %.150s: %s",
                        what, path, strerror(errno));
}

/* ---- names ------------------------------------------------------------ */

static bool
expand(const char *pattern, const char *kind, int64_t seconds, char *path,
       size_t room)
{
    struct cpprof__buffer out = {0};
    char name[256];
    bool fits;

    cpprof__proc_name(name, sizeof name);
    for (; *pattern; pattern++) {
        const char *letter =
            *pattern == '%' && pattern[1] ? strchr("kpte%", pattern[1]) : NULL;

        pattern += letter != NULL;
        if (!letter)
            cpprof__buffer_append(&out, pattern, 1);
        else if (*letter == 'p')
            cpprof__buffer_printf(&out, "%d", (int)getpid());
        else if (*letter == 't')
            cpprof__buffer_printf(&out, "%lld", (long long)seconds);
        else
            cpprof__buffer_printf(&out, "%s",
                                  *letter == 'k'   ? kind
                                  : *letter == 'e' ? name
                                                   : "%");
    }
    cpprof__buffer_append(&out, "", 1);
    fits = !out.failed && out.n <= room;
    if (fits)
        memcpy(path, out.data, out.n);
    cpprof__buffer_free(&out);
    return fits;
}

/* Digits in front of *text, which goes behind them; -1: none, or too many. */
static int64_t
take_digits(const char **text)
{
    int64_t number = 0;
    unsigned n = 0;

    for (; **text >= '0' && **text <= '9' && n < 18; n++)
        number = number * 10 + (*(*text)++ - '0');
    return n ? number : -1;
}

static bool
take_text(const char **name, const char *text)
{
    size_t n = strlen(text);

    if (strncmp(*name, text, n))
        return false;
    *name += n;
    return true;
}

int64_t
cpprof__push_file_time(const char *pattern, const char *name, const char *kind)
{
    char exe[256], one[2] = "";
    int64_t seconds = -1;

    cpprof__proc_name(exe, sizeof exe);
    for (; *pattern; pattern++) {
        char letter = *pattern == '%' ? pattern[1] : 0;

        one[0] = *pattern;
        if (letter && strchr("kpte%", letter)) {
            pattern++;
            one[0] = '%';
        } else {
            letter = 0;
        }
        if (letter == 'p' && take_digits(&name) >= 0)
            continue;
        if (letter == 't' && (seconds = take_digits(&name)) >= 0)
            continue;
        if (letter == 'p' || letter == 't' ||
            !take_text(&name, letter == 'k'   ? kind
                              : letter == 'e' ? exe
                                              : one))
            return -1;
    }
    return *name ? -1 : seconds;
}

/* ---- the oldest go ---------------------------------------------------- */

struct old {
    int64_t seconds;
    char *name;
};

static int
newest_first(const void *a, const void *b)
{
    const struct old *x = a, *y = b;

    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? 1 : -1;
    return strcmp(y->name, x->name);
}

static void
prune(const char *folder, const char *pattern, const char *kind, uint32_t keep)
{
    struct cpprof__buffer buffer = {0}; /* struct old */
    struct cpprof__arena names = {0};
    struct cpprof__folder files;
    const char *name;
    struct old *olds;
    size_t i, n;

    if (!cpprof__folder_open(&files, folder))
        return;
    while (!buffer.failed && (name = cpprof__folder_next(&files))) {
        struct old old = {cpprof__push_file_time(pattern, name, kind), NULL};

        if (old.seconds < 0)
            continue;
        old.name = cpprof__arena_copy(&names, name, strlen(name));
        buffer.failed |= !old.name;
        cpprof__buffer_append(&buffer, &old, sizeof old);
    }
    olds = (struct old *)buffer.data;
    n = buffer.n / sizeof *olds;
    /* If the list is incomplete, nobody knows which files are the oldest. */
    if (!buffer.failed && n > keep) {
        cpprof__sort(olds, n, sizeof *olds, newest_first);
        for (i = keep; i < n; i++)
            unlinkat(files.fd, olds[i].name, 0);
    }
    cpprof__arena_free(&names);
    cpprof__buffer_free(&buffer);
    cpprof__folder_close(&files);
}

/* ---- one file --------------------------------------------------------- */

static enum cpprof_status
write_path(const char *path, const struct cpprof__push_profile *profile,
           struct cpprof_error *error)
{
    struct cpprof_writer writer;
    enum cpprof_status status = cpprof_writer_to_path(path, &writer, error);
    int sys;

    if (status != CPPROF_OK)
        return status;
    errno = writer.write(writer.ctx, profile->data, profile->n);
    if (errno)
        status = failed("cannot write", path, error);
    sys = writer.close(writer.ctx, status != CPPROF_OK);
    errno = sys;
    return sys && status == CPPROF_OK ? failed("cannot write", path, error)
                                      : status;
}

/* 0 or an errno: EEXIST, with nothing changed, where there is one already. */
static int
rename_new(const char *from, const char *to)
{
    if (!syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    if (!link(from, to))
        return unlink(from) ? errno : 0;
    if (errno != EPERM && errno != EOPNOTSUPP)
        return errno;
    /* The file system supports neither way, so a file that another process
     * makes at this moment may be overwritten. */
    if (!access(to, F_OK))
        return EEXIST;
    return rename(from, to) ? errno : 0;
}

/* Rename it to the first free name. Forked processes may use the same second,
 * and the clock may be set back. */
static enum cpprof_status
name_it(const struct cpprof__push_plan *plan, const char *kind, int64_t seconds,
        const char *temporary, struct cpprof_error *error)
{
    char path[PATH_MAX] = "";
    int sys = EEXIST;
    unsigned i;

    for (i = 0; sys == EEXIST && i < SECONDS_TRIED; i++)
        if (expand(plan->pattern, kind, seconds + i, path, sizeof path))
            sys = rename_new(temporary, path);
        else
            sys = ENAMETOOLONG;
    if (!sys)
        return CPPROF_OK;
    unlink(temporary);
    errno = sys;
    return failed("cannot write", path, error);
}

enum cpprof_status
cpprof__push_file_write(const struct cpprof__push_plan *plan,
                        const struct cpprof__push_profile *profile,
                        struct cpprof_error *error)
{
    int64_t seconds = profile->from_ns / NS_PER_S;
    char kind[CPPROF__PUSH_SERIES_BYTES];
    char path[PATH_MAX], folder[PATH_MAX];
    enum cpprof_status status;

    cpprof__push_file_kind(plan, profile, kind);
    if (!expand(plan->pattern, kind, seconds, folder, sizeof folder) ||
        snprintf(path, sizeof path, "%s.%d.part", folder, (int)getpid()) >=
            (int)sizeof path) {
        errno = ENAMETOOLONG;
        return failed("cannot write", plan->pattern, error);
    }
    *strrchr(folder, '/') = 0;
    /* Accessible by its user only. Who wants other permissions creates the
     * folder beforehand. */
    if (*folder && mkdir(folder, 0700) && errno != EEXIST)
        return failed("cannot make", folder, error);
    status = write_path(path, profile, error);
    if (status == CPPROF_OK)
        status = name_it(plan, kind, seconds, path, error);
    if (status == CPPROF_OK)
        prune(*folder ? folder : "/", strrchr(plan->pattern, '/') + 1, kind,
              plan->keep);
    return status;
}
