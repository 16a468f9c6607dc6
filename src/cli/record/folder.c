/* SPDX-License-Identifier: MIT */
/*
 * The folder that the samples are in while the command runs: in memory where
 * there is such a file system, and gone afterwards. And the library that is
 * preloaded, found from where this program is.
 *
 * There are two folders, one in the other. The outer one has the name
 * cpprof-XXXXXX, and nobody else may list it. The inner one has a name that
 * cannot be guessed, and the samples. A server may drop root before it forks,
 * and root may run a command as another user. So the inner folder of root may
 * be written to by whoever knows its name, which are the processes that are
 * recorded. As in /tmp, nobody can remove the files of others there.
 *
 * A recorder that is killed leaves its folder behind, and nobody reads it any
 * more. The next one removes it. It has found a folder of the same user that a
 * recorder has marked as its own, whose recorder is gone, since that had a lock
 * on it (flock), and whose processes are gone, since the files of each begin
 * with its pid. Without the mark it may be anybody's.
 */
#include "cli/record/record.h"

#include "arch/kernel.h"
#include "base/status.h"
#include "cli/attach/attach.h"
#include "cli/messages.h"
#include "cli/output_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NAME        "cpprof-"
#define NAMES_MAX   100
#define N_SECRET    32 /* letters */
#define OWN_MODE    0700
#define SHARED_MODE 0711
#define OPEN_FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Separators of LD_PRELOAD (ld.so(8)) and of CPPROF=. */
#define SEPARATORS " :,"

/* From the folder of this program: a build folder, then an installation,
 * wherever it was moved. */
static const char *const libraries[] = {
    "/libcpprof.so",
    "/" CPPROF_BIN_TO_LIB "/libcpprof.so." CPPROF_SOVERSION,
};

bool
cpprof__record_library(char library[PATH_MAX])
{
    char self[PATH_MAX], path[PATH_MAX + 128];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *slash;
    size_t i;

    self[length < 0 ? 0 : length] = 0;
    slash = strrchr(self, '/');
    for (i = 0; slash && i < sizeof libraries / sizeof *libraries; i++) {
        snprintf(path, sizeof path, "%.*s%s", (int)(slash - self), self,
                 libraries[i]);
        if (realpath(path, library))
            return true;
    }
    cpprof__cli_fail("record: libcpprof.so is neither beside this program nor "
                     "in " CPPROF_BIN_TO_LIB);
    return false;
}

bool
cpprof__record_musl_library(const char *library, char path[PATH_MAX])
{
    static const char *const folders[] = {"/musl", "/cpprof/musl"};
    const char *slash = strrchr(library, '/');
    size_t i;
    int n;

    for (i = 0; slash && i < sizeof folders / sizeof *folders; i++) {
        n = snprintf(path, PATH_MAX, "%.*s%s/$LIB/libcpprof.so",
                     (int)(slash - library), library, folders[i]);
        if (n < PATH_MAX && !strpbrk(path, SEPARATORS) && !access(path, R_OK))
            return true;
    }
    return false;
}

bool
cpprof__record_library_for(pid_t pid, char library[PATH_MAX])
{
    char usual[PATH_MAX], path[PATH_MAX];

    if (!cpprof__record_library(library))
        return false;
    if (!cpprof__attach_is_musl(pid))
        return true;
    strcpy(usual, library);
    if (!cpprof__record_musl_library(usual, path) || !realpath(path, library))
        *library = 0;
    return true;
}

/* A folder of this user in an open one. Other users may mount something at a
 * name, in a namespace of theirs: that is not it. The kernels that such a
 * namespace can be entered on all have openat2() (inside.c). */
static int
open_folder(int parent, const char *name)
{
    struct open_how how = {.flags = OPEN_FOLDER,
                           .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS};
    int fd = (int)syscall(SYS_openat2, parent, name, &how, sizeof how);
    struct stat st;

    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        fd = openat(parent, name, OPEN_FOLDER);
    if (fd < 0 || (!fstat(fd, &st) && st.st_uid == geteuid()))
        return fd;
    close(fd);
    errno = EXDEV;
    return -1;
}

/* ---- what killed recorders left ---------------------------------------- */

/* A folder so young may have no lock and no file yet. */
#define YOUNG_S 60

/* A file in each folder that was made here, and in no other. */
#define MARK "made-by-cpprof-record"

/* The files of processes begin with their pids. A file of another user that
 * says that it is of one of somebody else is of none. */
static bool
is_of_process(int folder, const char *name)
{
    long pid = strtol(name, NULL, 10);
    struct stat file, process;
    char proc[32];

    if (pid < 1 || (kill((pid_t)pid, 0) && errno == ESRCH) ||
        fstatat(folder, name, &file, AT_SYMLINK_NOFOLLOW))
        return false;
    snprintf(proc, sizeof proc, "/proc/%ld", pid);
    return S_ISREG(file.st_mode) &&
           (file.st_uid == geteuid() || stat(proc, &process) ||
            process.st_uid == file.st_uid);
}

static bool
has_process(int inner)
{
    DIR *dir = fdopendir(dup(inner));
    const struct dirent *entry;
    bool has = !dir;

    while (!has && (entry = readdir(dir)))
        has = is_of_process(inner, entry->d_name);
    if (dir)
        closedir(dir);
    return has;
}

/* A folder as recorders of this user make it. */
static bool
is_ours(int folder)
{
    struct stat st, mark;

    return !fstat(folder, &st) && st.st_uid == geteuid() &&
           ((st.st_mode & 07777) == OWN_MODE ||
            (st.st_mode & 07777) == SHARED_MODE) &&
           time(NULL) - st.st_mtime > YOUNG_S &&
           !fstatat(folder, MARK, &mark, AT_SYMLINK_NOFOLLOW) &&
           mark.st_uid == geteuid();
}

/* The inner folder is the only one of this user with such a name. */
static int
find_inner(int outer, char name[CPPROF__RECORD_NAME])
{
    DIR *dir = fdopendir(dup(outer));
    const struct dirent *entry;
    int inner = -1;

    while (dir && inner < 0 && (entry = readdir(dir)))
        if (strlen(entry->d_name) == N_SECRET &&
            strspn(entry->d_name, "0123456789abcdef") == N_SECRET) {
            snprintf(name, CPPROF__RECORD_NAME, "%.32s", entry->d_name);
            inner = open_folder(outer, name);
        }
    if (dir)
        closedir(dir);
    return inner;
}

static void
remove_if_left(int parent, const char *name, bool has_our_pids)
{
    struct cpprof__record_folder left = {.parent = parent};

    snprintf(left.name, sizeof left.name, "%.15s", name);
    left.outer = open_folder(parent, left.name);
    if (left.outer < 0)
        return;
    left.inner = find_inner(left.outer, left.inner_name);
    if (is_ours(left.outer) && !flock(left.outer, LOCK_EX | LOCK_NB) &&
        !(has_our_pids && left.inner >= 0 && has_process(left.inner)))
        cpprof__record_folder_remove(&left);
    if (left.inner >= 0)
        close(left.inner);
    close(left.outer);
}

/* In the folder that this one was made in. */
static void
remove_left(const struct cpprof__record_folder *made, const char *parent,
            bool has_our_pids)
{
    char pattern[PATH_MAX + 32];
    const char *name;
    glob_t found;
    size_t i;

    snprintf(pattern, sizeof pattern, "%s/" NAME "??????", parent);
    if (glob(pattern, GLOB_NOSORT, NULL, &found))
        return;
    for (i = 0; i < found.gl_pathc; i++) {
        name = strrchr(found.gl_pathv[i], '/') + 1;
        if (strcmp(name, made->name))
            remove_if_left(made->parent, name, has_our_pids);
    }
    globfree(&found);
}

/* ---- making one -------------------------------------------------------- */

/* One without the mark is not removed by others, which is no failure. */
static void
mark(int folder)
{
    int fd =
        openat(folder, MARK, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
}

/* A new folder of this user alone: its descriptor, or -1. */
static int
make_folder(int parent, const char *name)
{
    int fd, saved_errno;

    if (mkdirat(parent, name, OWN_MODE))
        return -1;
    fd = open_folder(parent, name);
    saved_errno = errno;
    if (fd < 0)
        unlinkat(parent, name, AT_REMOVEDIR);
    errno = saved_errno;
    return fd;
}

static bool
make_outer(struct cpprof__record_folder *folder)
{
    unsigned i;
    uint32_t drawn;

    folder->outer = -1;
    for (i = 0; i < NAMES_MAX && folder->outer < 0; i++) {
        if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
            return false;
        snprintf(folder->name, sizeof folder->name, NAME "%06x",
                 drawn & 0xffffff);
        folder->outer = make_folder(folder->parent, folder->name);
        if (folder->outer < 0 && errno != EEXIST)
            return false;
    }
    if (folder->outer < 0 || flock(folder->outer, LOCK_SH))
        return false;
    mark(folder->outer);
    return true;
}

static bool
make_inner(struct cpprof__record_folder *folder)
{
    uint64_t drawn[2];

    if (getrandom(drawn, sizeof drawn, 0) != sizeof drawn)
        return false;
    snprintf(folder->inner_name, sizeof folder->inner_name,
             "%016" PRIx64 "%016" PRIx64, drawn[0], drawn[1]);
    folder->inner = make_folder(folder->outer, folder->inner_name);
    return folder->inner >= 0;
}

bool
cpprof__record_folder_make_in(struct cpprof__record_folder *folder,
                              const char *parent, const char *parent_seen)
{
    bool is_here = !strcmp(parent, parent_seen);
    int n;

    folder->outer = folder->inner = -1;
    folder->is_shared = false;
    folder->parent = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder->parent < 0)
        return false;
    if (!make_outer(folder) || !make_inner(folder)) {
        cpprof__record_folder_remove(folder);
        close(folder->parent);
        return false;
    }
    remove_left(folder, parent, is_here);
    n = snprintf(folder->seen, sizeof folder->seen, "%s/%s/%s", parent_seen,
                 folder->name, folder->inner_name);
    if (is_here)
        strcpy(folder->path, folder->seen);
    else
        snprintf(folder->path, sizeof folder->path, "/proc/self/fd/%d",
                 folder->inner);
    return n < PATH_MAX;
}

enum cpprof_status
cpprof__record_folder_prepare(struct cpprof__record_folder *folder,
                              struct cpprof_error *error)
{
    enum cpprof_status status = cpprof_recording_prepare(folder->path, error);

    if (status == CPPROF_OK && !geteuid() &&
        !cpprof__record_folder_share(folder))
        status = cpprof__fail(error, CPPROF_SYSTEM, errno, "%s: %s",
                              folder->path, strerror(errno));
    return status;
}

/* Once others may write there, what is named control may be something else. */
bool
cpprof__record_folder_share(struct cpprof__record_folder *folder)
{
    if (!folder->is_shared)
        folder->is_shared = !fchmodat(folder->inner, "control", 0644, 0) &&
                            !fchmod(folder->inner, 01733) &&
                            !fchmod(folder->outer, SHARED_MODE);
    return folder->is_shared;
}

/* May everybody get there? */
static bool
is_open_to_all(const char *path)
{
    char part[PATH_MAX];
    struct stat st;
    size_t i;

    for (i = 1; i <= strlen(path); i++) {
        if (path[i] && path[i] != '/')
            continue;
        snprintf(part, sizeof part, "%.*s", (int)i, path);
        if (stat(part, &st) || !(st.st_mode & S_IXOTH))
            return false;
    }
    return true;
}

/* Root's processes may become those of other users. */
static bool
try_parent(struct cpprof__record_folder *folder, const char *parent)
{
    return parent && parent[0] == '/' && !strpbrk(parent, SEPARATORS) &&
           strlen(parent) < PATH_MAX - 64 &&
           (geteuid() || is_open_to_all(parent)) &&
           cpprof__record_folder_make_in(folder, parent, parent);
}

/* A path that LD_PRELOAD would take apart gets a plain name in our folder. */
static bool
make_preloadable(struct cpprof__record_folder *folder)
{
    char link[PATH_MAX + 16];

    if (!strpbrk(folder->library, SEPARATORS))
        return true;
    snprintf(link, sizeof link, "%.*s/libcpprof.so",
             (int)(strrchr(folder->path, '/') - folder->path), folder->path);
    if (strlen(link) >= sizeof folder->library ||
        symlink(folder->library, link) < 0)
        return false;
    strcpy(folder->library, link);
    return true;
}

bool
cpprof__record_folder_make(struct cpprof__record_folder *folder)
{
    struct cpprof_error error;

    if (!cpprof__record_library(folder->library))
        return false;
    if (!try_parent(folder, getenv("XDG_RUNTIME_DIR")) &&
        !try_parent(folder, "/dev/shm") &&
        !try_parent(folder, getenv("TMPDIR")) && !try_parent(folder, "/tmp")) {
        cpprof__cli_fail("record: no folder for the samples in "
                         "XDG_RUNTIME_DIR, /dev/shm, TMPDIR or /tmp: %s",
                         strerror(errno));
        return false;
    }
    if (!make_preloadable(folder)) {
        cpprof__cli_fail("record: %s: %s", folder->path, strerror(errno));
    } else if (cpprof__record_folder_prepare(folder, &error) != CPPROF_OK) {
        cpprof__cli_fail("record: %s", error.text);
    } else {
        strcpy(folder->seen_library, folder->library);
        return true;
    }
    cpprof__record_folder_remove(folder);
    return false;
}

/* A folder that others have made in there is removed if it is empty: what is in
 * it need not be theirs. So the two folders stay then. */
void
cpprof__record_folder_remove(const struct cpprof__record_folder *folder)
{
    int n_tries = 3; /* a process that outlives the command may add a file */

    if (folder->outer < 0)
        return;
    if (folder->inner >= 0) {
        fchmod(folder->inner, OWN_MODE);
        do
            cpprof__remove_files(folder->inner);
        while (unlinkat(folder->outer, folder->inner_name, AT_REMOVEDIR) &&
               --n_tries);
    }
    if (n_tries) /* the mark goes at last */
        cpprof__remove_files(folder->outer);
    unlinkat(folder->parent, folder->name, AT_REMOVEDIR);
}
