/* SPDX-License-Identifier: MIT */
/*
 * Folders as sources: `cpprof -top profiles/`. A file in there that is no
 * profile is reported and left out when it is read, as any source among others.
 */
#include "cli/report/source_list.h"

#include "cli/messages.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Takes text over. */
static bool
add(struct cpprof__source_list *list, char *text)
{
    char **at = NULL;

    if (text && list->n < INT_MAX / 2 &&
        (list->n & (list->n + 1)) == 0) /* at 0, 1, 3, 7, ... */
        at = reallocarray(list->at, (size_t)list->n * 2 + 2, sizeof *at);
    else if (text)
        at = list->at;
    if (!at) {
        free(text);
        cpprof__cli_fail("out of memory");
        return false;
    }
    list->at = at;
    list->at[list->n++] = text;
    return true;
}

static bool
has_mode(const char *path, mode_t mode)
{
    struct stat info;

    return stat(path, &info) == 0 && (info.st_mode & S_IFMT) == mode;
}

static bool
add_entry(struct cpprof__source_list *list, const char *folder,
          const char *name)
{
    size_t n = strlen(folder);
    char *path;

    if (asprintf(&path, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/",
                 name) < 0)
        path = NULL;
    if (path && !has_mode(path, S_IFREG)) {
        free(path);
        return true;
    }
    return add(list, path);
}

static int
visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int
by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name); /* whatever the locale */
}

static bool
add_folder(struct cpprof__source_list *list, const char *folder)
{
    struct dirent **entries = NULL;
    int before = list->n, n, i;
    bool ok = true;

    n = scandir(folder, &entries, visible, by_name);
    if (n < 0) {
        cpprof__cli_fail("%s: %s", folder, strerror(errno));
        return false;
    }
    for (i = 0; i < n; i++) {
        ok = ok && add_entry(list, folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    if (ok && list->n == before) {
        cpprof__cli_fail("%s: no files in this folder", folder);
        return false;
    }
    return ok;
}

bool
cpprof__source_list_make(char **sources, int n,
                         struct cpprof__source_list *list)
{
    bool ok = true;
    int i;

    memset(list, 0, sizeof *list);
    for (i = 0; i < n && ok; i++)
        ok = has_mode(sources[i], S_IFDIR) ? add_folder(list, sources[i])
                                           : add(list, strdup(sources[i]));
    if (!ok)
        cpprof__source_list_free(list);
    return ok;
}

void
cpprof__source_list_free(struct cpprof__source_list *list)
{
    int i;

    for (i = 0; i < list->n; i++)
        free(list->at[i]);
    free(list->at);
    memset(list, 0, sizeof *list);
}
