/* SPDX-License-Identifier: MIT */
/*
 * The folder that the samples are in while the command runs: private, in
 * memory where there is such a file system, and gone afterwards. And the
 * library that is preloaded, found from where this program is.
 *
 * A recorder that is killed leaves its folder behind, and nobody reads it any
 * more. The next one removes it. It has found a folder of the same user that a
 * recorder has marked as its own, whose recorder is gone, since that had a lock
 * on it (flock), and whose processes are gone, since the files of each begin
 * with its pid. Without the mark it may be anybody's: cpprof-report is a name
 * that mkdtemp could make.
 */
#include "cli/record/record.h"

#include "cli/attach/attach.h"
#include "cli/messages.h"
#include "cli/output_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

/* ---- what killed recorders left ---------------------------------------- */

/* A folder so young may have no lock and no file yet. */
#define YOUNG_S 60

/* A file in each folder that was made here, and in no other. */
#define MARK "made-by-cpprof-record"

static bool
has_process(int folder)
{
    DIR *dir = fdopendir(dup(folder));
    const struct dirent *entry;
    bool has = !dir;

    while (!has && (entry = readdir(dir))) {
        long pid = strtol(entry->d_name, NULL, 10);

        has = pid > 0 && (!kill((pid_t)pid, 0) || errno != ESRCH);
    }
    if (dir)
        closedir(dir);
    return has;
}

/* A folder as recorders of this user make it, and perhaps give away. */
static bool
is_ours(int folder)
{
    struct stat st, mark;

    return !fstat(folder, &st) && (st.st_mode & 07777) == 0700 &&
           time(NULL) - st.st_mtime > YOUNG_S &&
           !fstatat(folder, MARK, &mark, AT_SYMLINK_NOFOLLOW) &&
           mark.st_uid == geteuid();
}

static void
remove_if_left(const char *path, bool has_our_pids)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return;
    if (is_ours(fd) && !flock(fd, LOCK_EX | LOCK_NB) &&
        !(has_our_pids && has_process(fd))) {
        cpprof__remove_files(fd);
        rmdir(path);
    }
    close(fd);
}

/* In the folder that this one was made in. */
static void
remove_left(const char *made, bool has_our_pids)
{
    const char *last = strrchr(made, '/');
    char pattern[PATH_MAX + 8];
    glob_t found;
    size_t i;

    snprintf(pattern, sizeof pattern, "%.*s/cpprof-??????", (int)(last - made),
             made);
    if (glob(pattern, GLOB_NOSORT, NULL, &found))
        return;
    for (i = 0; i < found.gl_pathc; i++)
        if (strcmp(found.gl_pathv[i], made))
            remove_if_left(found.gl_pathv[i], has_our_pids);
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

void
cpprof__record_folder_take(const char *path, int fd, bool has_our_pids)
{
    if (fd >= 0 && !flock(fd, LOCK_SH))
        mark(fd);
    remove_left(path, has_our_pids);
}

/* mkdtemp makes it for the user alone (0700). */
static bool
make_in(const char *parent, char path[PATH_MAX])
{
    if (!parent || parent[0] != '/' || strpbrk(parent, SEPARATORS) ||
        snprintf(path, PATH_MAX, "%s/cpprof-XXXXXX", parent) >= PATH_MAX ||
        !mkdtemp(path))
        return false;
    cpprof__record_folder_take(
        path, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), true);
    return true;
}

/* A path that LD_PRELOAD would take apart gets a plain name in our folder. */
static bool
make_preloadable(struct cpprof__record_folder *folder)
{
    char link[PATH_MAX + 16];

    if (!strpbrk(folder->library, SEPARATORS))
        return true;
    snprintf(link, sizeof link, "%s/libcpprof.so", folder->path);
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

    folder->parent = -1;
    if (!cpprof__record_library(folder->library))
        return false;
    if (!make_in(getenv("XDG_RUNTIME_DIR"), folder->path) &&
        !make_in("/dev/shm", folder->path) &&
        !make_in(getenv("TMPDIR"), folder->path) &&
        !make_in("/tmp", folder->path)) {
        cpprof__cli_fail("record: no folder for the samples in "
                         "XDG_RUNTIME_DIR, /dev/shm, TMPDIR or /tmp: %s",
                         strerror(errno));
        return false;
    }
    if (!make_preloadable(folder)) {
        cpprof__cli_fail("record: %s: %s", folder->path, strerror(errno));
    } else if (cpprof_recording_prepare(folder->path, &error) != CPPROF_OK) {
        cpprof__cli_fail("record: %s", error.text);
    } else {
        strcpy(folder->seen, folder->path);
        strcpy(folder->seen_library, folder->library);
        return true;
    }
    cpprof__record_folder_remove(folder);
    return false;
}

bool
cpprof__record_folder_give(struct cpprof__record_folder *folder, uid_t uid,
                           gid_t gid)
{
    char *name = strrchr(folder->path, '/');
    bool is_given;
    int fd, control;

    if (folder->parent < 0) {
        *name = 0;
        folder->parent = open(folder->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        *name = '/';
    }
    fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    control = openat(fd, "control", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    is_given = folder->parent >= 0 && control >= 0 && !fchmod(control, 0644) &&
               !fchown(fd, uid, gid);
    if (control >= 0)
        close(control);
    if (is_given)
        snprintf(folder->path, sizeof folder->path, "/proc/self/fd/%d", fd);
    return is_given;
}

static int
remove_empty(const struct cpprof__record_folder *folder)
{
    if (folder->parent < 0)
        return rmdir(folder->path);
    return unlinkat(folder->parent, strrchr(folder->seen, '/') + 1,
                    AT_REMOVEDIR);
}

void
cpprof__record_folder_remove(const struct cpprof__record_folder *folder)
{
    int fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int n_tries = 3; /* a process that outlives the command may add a file */

    if (fd < 0)
        return;
    do
        cpprof__remove_files(fd);
    while (remove_empty(folder) < 0 && --n_tries);
    close(fd);
}
