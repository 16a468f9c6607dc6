/* SPDX-License-Identifier: MIT */
/*
 * Shows a picture or a page: writes it to a file that is removed at the end,
 * and starts a program that shows it, the first one of a list that is there.
 *
 * The programs and their order are those of the reference
 * (internal/driver/commands.go). $BROWSER may have arguments.
 */
#include "cli/report/report.h"

#include "base/status.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define MAX_PROGRAMS 8
#define MAX_WORDS    16

/* ------------------------------------------------------------- files ---- */

/* The most files that are kept; with more, the oldest are removed. */
#define MOST_FILES 32

/* In memory that is shared with children, because a shell's reports are made by
 * children, one after the other. */
static struct {
    unsigned n;
    char paths[MOST_FILES][PATH_MAX];
} * files;

void
cpprof__viewer_begin(void)
{
    files = mmap(NULL, sizeof *files, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (files == MAP_FAILED)
        files = NULL;
}

static void
remove_file(char *path)
{
    if (*path)
        unlink(path);
    *path = 0;
}

void
cpprof__viewer_end(void)
{
    unsigned i;

    for (i = 0; files && i < files->n && i < MOST_FILES; i++)
        remove_file(files->paths[i]);
    if (files)
        munmap(files, sizeof *files);
    files = NULL;
}

enum cpprof_status
cpprof__viewer_file(const char *ending, char *path, struct cpprof_error *error)
{
    const char *folder = getenv("TMPDIR");
    char *slot;
    int fd;

    snprintf(path, PATH_MAX, "%s/pprofXXXXXX.%s",
             folder && *folder ? folder : "/tmp", ending);
    fd = mkstemps(path, (int)strlen(ending) + 1);
    if (fd < 0)
        return cpprof__fail(error, CPPROF_SYSTEM, errno,
                            "cannot make a temporary file: %s",
                            strerror(errno));
    close(fd);
    if (files) {
        slot = files->paths[files->n++ % MOST_FILES];
        remove_file(slot);
        snprintf(slot, PATH_MAX, "%s", path);
    }
    return CPPROF_OK;
}

/* ---------------------------------------------------------- programs ---- */

static bool
is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value && *value;
}

/* Without a desktop, as over ssh, they only complain that there is none. */
static size_t
browsers(const char *programs[MAX_PROGRAMS])
{
    static const char *const known[] = {"chrome", "google-chrome", "chromium",
                                        "firefox", "sensible-browser"};
    size_t n = 0, i;

    if (is_set("BROWSER"))
        programs[n++] = getenv("BROWSER");
    if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY"))
        return n;
    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        programs[n++] = known[i];
    programs[n++] = "xdg-open";
    return n;
}

/* Start "PROGRAM ARGUMENTS" with a file; 0 or an errno. */
static int
start(const char *program, const char *path, pid_t *pid)
{
    char *flags = strdup(program), *next = flags, *word;
    char *argv[MAX_WORDS + 2];
    size_t n = 0;
    int failure;

    if (!flags)
        return ENOMEM;
    while ((word = strsep(&next, " ")) && n < MAX_WORDS)
        if (*word)
            argv[n++] = word;
    argv[n] = (char *)path;
    argv[n + 1] = NULL;
    failure =
        n ? posix_spawnp(pid, argv[0], NULL, NULL, argv, environ) : ENOENT;
    free(flags);
    return failure;
}

/* Start the first program that is there; *program is its name. */
static enum cpprof_status
start_first(const char *viewer, const char *path, const char **program,
            pid_t *pid, struct cpprof_error *error)
{
    const char *programs[MAX_PROGRAMS] = {
        strcmp(viewer, "gv") == 0 ? "gv --noantialias" : viewer};
    bool is_browser = strcmp(viewer, "web") == 0;
    size_t n = is_browser ? browsers(programs) : 1, i;
    int failure = ENOENT;

    for (i = 0; i < n && failure; i++)
        failure = start(programs[i], path, pid);
    if (failure && is_browser)
        return cpprof__fail(error, CPPROF_SYSTEM, failure,
                            "no browser found; set BROWSER, or open %s", path);
    if (failure)
        return cpprof__fail(error, CPPROF_SYSTEM, failure,
                            "cannot start the viewer: %s", programs[0]);
    *program = programs[i - 1];
    return CPPROF_OK;
}

enum cpprof_status
cpprof__browse(const char *url, struct cpprof_error *error)
{
    const char *programs[MAX_PROGRAMS], *program;
    pid_t pid;

    if (!browsers(programs)) /* the address was told */
        return CPPROF_OK;
    return start_first("web", url, &program, &pid, error);
}

enum cpprof_status
cpprof__view(const char *viewer, const char *path, bool to_the_end,
             struct cpprof_error *error)
{
    const char *program = NULL;
    pid_t pid = 0;
    int how = 0;
    enum cpprof_status status =
        start_first(viewer, path, &program, &pid, error);

    if (status != CPPROF_OK)
        return status;
    while (to_the_end && waitpid(pid, &how, 0) < 0 && errno == EINTR)
        continue;
    if (how)
        status = cpprof__fail(error, CPPROF_SYSTEM, 0,
                              "the viewer has failed: %s", program);
    /* Many viewers only tell another program to open it, and then end. */
    sleep(1);
    return status;
}
