/* SPDX-License-Identifier: MIT */
/*
 * The folder that the samples are in while the command runs: private, in
 * memory where there is such a file system, and gone afterwards. And the
 * library that is preloaded, found from where this program is.
 */
#include "cli/record/record.h"

#include "cli/messages.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Separators of LD_PRELOAD (ld.so(8)) and of CPPROF=. */
#define SEPARATORS " :,"

/* Relative to the folder of this program: the build folder first, then where
 * an installation puts libraries; the last two for multiarch. */
static const char *const library_suffixes[] = {
    "/libcpprof.so",
    "/../lib*/libcpprof.so",
    "/../lib*/libcpprof.so.0",
    "/../lib*/*-linux-*/libcpprof.so",
    "/../lib*/*-linux-*/libcpprof.so.0",
};

/* The folder of this program, with what glob(3) would expand made literal. */
static bool
own_folder(char *pattern, size_t n)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash, *from;
    size_t at = 0;

    if (length < 0)
        return false;
    self[length] = 0;
    slash = strrchr(self, '/');
    if (!slash)
        return false;
    *slash = 0;
    for (from = self; *from && at + 2 < n; from++) {
        if (strchr("*?[\\", *from))
            pattern[at++] = '\\';
        pattern[at++] = *from;
    }
    pattern[at] = 0;
    return !*from;
}

static bool
find_library(char library[PATH_MAX])
{
    char folder[2 * PATH_MAX], pattern[3 * PATH_MAX];
    bool is_found = false, has_folder = own_folder(folder, sizeof folder);
    glob_t found;
    size_t i;

    for (i = 0; has_folder && !is_found &&
                i < sizeof library_suffixes / sizeof *library_suffixes;
         i++) {
        snprintf(pattern, sizeof pattern, "%s%s", folder, library_suffixes[i]);
        if (glob(pattern, 0, NULL, &found) != 0)
            continue;
        is_found = found.gl_pathc && realpath(found.gl_pathv[0], library);
        globfree(&found);
    }
    if (!is_found)
        cpprof__cli_fail("record: libcpprof.so is neither beside this program "
                         "nor in ../lib");
    return is_found;
}

/* mkdtemp makes it for the user alone (0700). */
static bool
make_in(const char *parent, char path[PATH_MAX])
{
    return parent && parent[0] == '/' && !strpbrk(parent, SEPARATORS) &&
           snprintf(path, PATH_MAX, "%s/cpprof-XXXXXX", parent) < PATH_MAX &&
           mkdtemp(path);
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

    if (!find_library(folder->library))
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
        return true;
    }
    cpprof__record_folder_remove(folder);
    return false;
}

/* readdir(3) allocates, which a signal handler must not. */
static void
remove_files(int folder)
{
    _Alignas(struct dirent64) char entries[8192];
    ssize_t n, at;

    lseek(folder, 0, SEEK_SET);
    while ((n = getdents64(folder, entries, sizeof entries)) > 0)
        for (at = 0; at < n;) {
            struct dirent64 *entry = (void *)(entries + at);

            /* "." and ".." are skipped because they are folders. */
            unlinkat(folder, entry->d_name, 0);
            at += entry->d_reclen;
        }
}

void
cpprof__record_folder_remove(const struct cpprof__record_folder *folder)
{
    int fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int n_tries = 3; /* a process that outlives the command may add a file */

    if (fd < 0)
        return;
    do
        remove_files(fd);
    while (rmdir(folder->path) < 0 && --n_tries);
    close(fd);
}
