/* SPDX-License-Identifier: MIT */
/*
 * A folder for a process that does not see ours, since it is in a container: in
 * its own root, with a copy of the library in it.
 *
 * Who is root in there may replace each name by a link that leads out of it. So
 * the folder is opened once, without links, and is named by the descriptor from
 * then on. That also holds after the process has ended.
 *
 * Pids in files of the folder are those of the process's namespace. Its own
 * /proc, opened likewise, is where they mean something.
 */
#include "cli/record/record.h"

#include "arch/kernel.h"
#include "cli/messages.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIBRARY "libcpprof.so"

/* A folder of the process's root; -1 with errno. */
static int
open_inside(pid_t pid, const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS |
                                      RESOLVE_NO_MAGICLINKS};
    char root_path[32];
    int root, fd;

    snprintf(root_path, sizeof root_path, "/proc/%d/root", (int)pid);
    root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -1;
    fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    close(root);
    return fd;
}

static bool
is_same(const char *a, const char *b)
{
    struct stat x, y;

    return !stat(a, &x) && !stat(b, &y) && x.st_ino == y.st_ino &&
           x.st_dev == y.st_dev;
}

bool
cpprof__record_sees(pid_t pid, const char *path, const char *seen)
{
    char there[PATH_MAX + 32];

    snprintf(there, sizeof there, "/proc/%d/root", (int)pid);
    if (access(there, F_OK))
        return true; /* it is gone, or not ours: others say so */
    snprintf(there, sizeof there, "/proc/%d/root%s", (int)pid, seen);
    return is_same(path, there);
}

/* --------------------------------------------------------- the folder ---- */

/* Where the process's users may make files, and code may be mapped: containers
 * often have a /dev/shm where it may not. */
static const char *const parents[] = {"/dev/shm", "/tmp", "/var/tmp"};
#define N_PARENTS (sizeof parents / sizeof *parents)

static int
open_parent(pid_t pid, const char *path)
{
    int fd = open_inside(pid, path);
    struct statvfs fs;

    if (fd >= 0 && !fstatvfs(fd, &fs) &&
        !(fs.f_flag & (ST_NOEXEC | ST_RDONLY)) && !faccessat(fd, ".", W_OK, 0))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

const char *
cpprof__record_inside(pid_t pid)
{
    size_t i;
    int fd;

    for (i = 0; i < N_PARENTS; i++) {
        fd = open_parent(pid, parents[i]);
        if (fd >= 0) {
            close(fd);
            return parents[i];
        }
    }
    return NULL;
}

static bool
copy_library(struct cpprof__record_folder *folder)
{
    ssize_t n = -1;
    int from, to;

    if (!*folder->library) /* for this libc: who needs it is refused */
        return true;
    from = open(folder->library, O_RDONLY | O_CLOEXEC);
    to = openat(folder->outer, LIBRARY, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                0644);
    if (from >= 0 && to >= 0 && !fchmod(to, 0644))
        while ((n = sendfile(to, from, NULL, 1u << 30)) > 0)
            ;
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    snprintf(folder->library, sizeof folder->library,
             "/proc/self/fd/%d/" LIBRARY, folder->outer);
    return n == 0;
}

static bool
make_in(struct cpprof__record_folder *folder, pid_t pid, const char *parent)
{
    int fd = open_parent(pid, parent);
    char path[32];
    bool is_made;

    if (fd < 0)
        return false;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    is_made = cpprof__record_folder_make_in(folder, path, parent);
    close(fd);
    snprintf(folder->seen_library, sizeof folder->seen_library,
             "%s/%s/" LIBRARY, parent, folder->name);
    return is_made;
}

bool
cpprof__record_folder_make_inside(struct cpprof__record_folder *folder,
                                  pid_t pid)
{
    struct cpprof_error error;
    bool is_made = false;
    size_t i;

    if (!cpprof__record_library_for(pid, folder->library))
        return false;
    for (i = 0; i < N_PARENTS && !is_made; i++)
        is_made = make_in(folder, pid, parents[i]);
    if (!is_made) {
        cpprof__cli_fail("%d: has another root (a container, a chroot), and no "
                         "/dev/shm, /tmp or /var/tmp there that can be written "
                         "to and is not mounted noexec",
                         (int)pid);
        return false;
    }
    if (!copy_library(folder))
        cpprof__cli_fail("record: %s: %s", folder->library, strerror(errno));
    else if (cpprof__record_folder_prepare(folder, &error) != CPPROF_OK)
        cpprof__cli_fail("record: %s", error.text);
    else
        return true;
    cpprof__record_folder_remove(folder);
    return false;
}

/* ---------------------------------------------------------------- pids ---- */

ino_t
cpprof__record_pid_namespace(pid_t pid)
{
    char path[32];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
    return stat(path, &st) ? 0 : st.st_ino;
}

const char *
cpprof__record_proc(pid_t pid, pid_t inside)
{
    static char proc[32];
    char here[32], there[64];
    int fd;

    if (inside == pid && cpprof__record_pid_namespace(pid) ==
                             cpprof__record_pid_namespace(getpid()))
        return NULL;
    fd = open_inside(pid, "/proc");
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
    snprintf(here, sizeof here, "/proc/%d/ns/pid", (int)pid);
    snprintf(there, sizeof there, "%s/%d/ns/pid", proc, (int)inside);
    return fd >= 0 && is_same(here, there) ? proc : "/dev/null";
}
