/* SPDX-License-Identifier: MIT */
/*
 * History in $XDG_STATE_HOME/cpprof/history, or ~/.local/state/cpprof/history:
 * a line each, readable by the user alone. Each line is appended when it was
 * typed, so that a shell that is killed loses none and several at once keep
 * them all.
 */
#include "cli/shell/shell.h"

#include "cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A line longer than this is not worth keeping. */
#define MAX_LINE 4096

static char *
file_path(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int n = -1;

    if (state && *state == '/')
        n = asprintf(&path, "%s/cpprof/history", state);
    else if (home && *home == '/')
        n = asprintf(&path, "%s/.local/state/cpprof/history", home);
    return n < 0 ? NULL : path;
}

void
cpprof__history_add(const char *line)
{
    char *path = file_path(), *text = NULL;
    int n = strlen(line) < MAX_LINE ? asprintf(&text, "%s\n", line) : -1;
    int fd = -1;

    if (path && n > 0) {
        cpprof__make_folders_above(path, 0700);
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    if (fd >= 0) {
        if (write(fd, text, (size_t)n) < 0)
            errno = 0; /* a full disk loses only history */
        close(fd);
    }
    if (n >= 0)
        free(text);
    free(path);
}

/* Keep the lines from `first` on. */
static void
cut_file(FILE *file, const char *path, long first)
{
    char *line = NULL, *new_path = NULL;
    size_t n_line = 0;
    FILE *new_file = NULL;
    bool ok = false;
    long i;
    int fd;

    if (asprintf(&new_path, "%s.XXXXXX", path) < 0)
        return;
    fd = mkostemp(new_path, O_CLOEXEC);
    if (fd >= 0)
        new_file = fdopen(fd, "w");
    rewind(file);
    for (i = 0; new_file && getline(&line, &n_line, file) > 0; i++)
        if (i >= first)
            fputs(line, new_file);
    if (new_file)
        ok = fclose(new_file) == 0;
    else if (fd >= 0)
        close(fd);
    if (fd >= 0 && (!ok || rename(new_path, path) != 0))
        unlink(new_path);
    free(line);
    free(new_path);
}

void
cpprof__history_load(void (*add)(void *ctx, const char *line), void *ctx)
{
    char *path = file_path(), *line = NULL;
    FILE *file = path ? fopen(path, "re") : NULL;
    size_t n_line = 0;
    long n = 0;

    while (file && getline(&line, &n_line, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        if (*line)
            add(ctx, line);
        n++;
    }
    if (n > 2 * CPPROF__HISTORY_LINES)
        cut_file(file, path, n - CPPROF__HISTORY_LINES);
    if (file)
        fclose(file);
    free(line);
    free(path);
}
