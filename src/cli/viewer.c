/* SPDX-License-Identifier: MIT */
/*
 * The programs and their order are those of the reference
 * (internal/driver/commands.go). $BROWSER may have arguments.
 */
#include "viewer.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

#define MAX_PROGRAMS 8
#define MAX_WORDS    16

static enum cpprof_status
fail(struct cpprof_error *error, int sys, const char *what, const char *why)
{
    error->status = CPPROF_SYSTEM;
    error->sys = sys;
    error->offset = 0;
    snprintf(error->text, sizeof error->text, "%s%s", what, why);
    return CPPROF_SYSTEM;
}

enum cpprof_status
cpprof__viewer_file(const char *ending, char *path, struct cpprof_error *error)
{
    const char *folder = getenv("TMPDIR");
    int fd;

    snprintf(path, PATH_MAX, "%s/pprofXXXXXX.%s",
             folder && *folder ? folder : "/tmp", ending);
    fd = mkstemps(path, (int)strlen(ending) + 1);
    if (fd < 0)
        return fail(error, errno,
                    "cannot make a temporary file: ", strerror(errno));
    close(fd);
    return CPPROF_OK;
}

static size_t
browsers(const char *programs[MAX_PROGRAMS])
{
    static const char *const known[] = {"chrome", "google-chrome", "chromium",
                                        "firefox", "sensible-browser"};
    const char *own = getenv("BROWSER"), *display = getenv("DISPLAY");
    size_t n = 0, i;

    if (own && *own)
        programs[n++] = own;
    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        programs[n++] = known[i];
    if (display && *display) /* of a desktop only */
        programs[n++] = "xdg-open";
    return n;
}

static size_t
programs_of(const char *viewer, const char *programs[MAX_PROGRAMS])
{
    if (strcmp(viewer, "web") == 0)
        return browsers(programs);
    programs[0] = strcmp(viewer, "gv") == 0 ? "gv --noantialias" : viewer;
    return 1;
}

/* Start "PROGRAM ARGUMENTS" with a file; 0 or an errno. */
static int
start(const char *program, const char *path)
{
    char *words = strdup(program), *next = words, *word;
    char *argv[MAX_WORDS + 2];
    size_t n = 0;
    pid_t pid;
    int failure;

    if (!words)
        return ENOMEM;
    while ((word = strsep(&next, " ")) && n < MAX_WORDS)
        if (*word)
            argv[n++] = word;
    argv[n] = (char *)path;
    argv[n + 1] = NULL;
    failure =
        n ? posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) : ENOENT;
    free(words);
    return failure;
}

enum cpprof_status
cpprof__view(const char *viewer, const char *path, struct cpprof_error *error)
{
    const char *programs[MAX_PROGRAMS];
    size_t n = programs_of(viewer, programs), i;
    int failure = ENOENT;

    for (i = 0; i < n && failure; i++)
        failure = start(programs[i], path);
    if (failure && n > 1)
        return fail(error, failure, "no browser found; set BROWSER, or open ",
                    path);
    if (failure)
        return fail(error, failure, "cannot start the viewer: ", programs[0]);
    /* Many only tell another program to open it, and then end. */
    sleep(1);
    return CPPROF_OK;
}
