/* SPDX-License-Identifier: MIT */
/*
 * -t vm: a process that has a known interpreter writes the profile of it by
 * itself, to the path that we pass (CPPROF=vm=). And a warning where there is
 * no module for an interpreter.
 */
#include "cli/record/record.h"

#include "cli/messages.h"

#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A tick is a signal to the interpreter. */
#define HZ_MAX 1000

/* As the command may see it from another folder; NULL: there is none. */
static char *
path_of(const struct cpprof__record_options *options)
{
    char *name, *path = NULL, folder[PATH_MAX];

    if (!options->vm || options->is_verdict || options->legacy)
        return NULL;
    name = cpprof__record_name_vm(options);
    if (name && cpprof__record_has_room_beside(name)) {
        if (*name == '/')
            path = strdup(name);
        else if (getcwd(folder, sizeof folder) &&
                 asprintf(&path, "%s/%s", folder, name) < 0)
            path = NULL;
    }
    free(name);
    return path;
}

/* Beside the library, where it is installed or was built. */
static bool
has_python_module(const char *library, unsigned minor)
{
    static const char *const folders[] = {"cpprof/python", "bindings/python"};
    char pattern[PATH_MAX + 64];
    bool has = false;
    size_t i;

    for (i = 0; i < 2 && !has; i++) {
        glob_t found;

        snprintf(pattern, sizeof pattern, "%.*s/%s/cpprof.cpython-3%u-*",
                 (int)(strrchr(library, '/') - library), library, folders[i],
                 minor);
        has = !glob(pattern, 0, NULL, &found);
        if (has)
            globfree(&found);
    }
    return has;
}

void
cpprof__record_vm_check(const struct cpprof__record_options *options)
{
    char path[PATH_MAX], file[PATH_MAX], library[PATH_MAX];
    unsigned minor;

    if ((options->scripts || options->vm) && options->command &&
        !cpprof__find_command(*options->command, path) &&
        realpath(path, file) &&
        sscanf(strrchr(file, '/'), "/python3.%u", &minor) == 1 &&
        cpprof__record_library(library) && !has_python_module(library, minor))
        cpprof__cli_warn("%s: there is no module of cpprof for this version: "
                         "its scripts are not in the profile",
                         strrchr(file, '/') + 1);
}

/* A comma ends a word of CPPROF, and a percent sign begins a placeholder: paths
 * with the first cannot be passed. */
void
cpprof__record_vm_flags(const struct cpprof__record_options *options,
                        struct cpprof__buffer *text)
{
    char *path = path_of(options);
    const char *at;

    if (path && !strchr(path, ',') && strlen(path) < PATH_MAX) {
        cpprof__buffer_printf(text, ",vm");
        if (options->rate_hz && options->rate_hz <= HZ_MAX)
            cpprof__buffer_printf(text, "=%u", options->rate_hz);
        cpprof__buffer_printf(text, ",out=");
        for (at = path; *at; at++)
            cpprof__buffer_printf(text, *at == '%' ? "%%%%" : "%c", *at);
    }
    free(path);
}

/* The file of the command itself, or FILE.NAME.PID of a process that it
 * started. */
static bool
is_of(const char *name, const char *base)
{
    size_t n_front = cpprof__record_suffix_at(base), n = strlen(name);
    size_t n_suffix = strlen(base) - n_front, end;

    if (!strcmp(name, base))
        return true;
    if (n <= n_front + n_suffix || strncmp(name, base, n_front) ||
        name[n_front] != '.' || strcmp(name + n - n_suffix, base + n_front))
        return false;
    end = n - n_suffix;
    while (end > n_front && strchr("0123456789", name[end - 1]))
        end--;
    return end < n - n_suffix && end > n_front + 1 && name[end - 1] == '.';
}

void
cpprof__record_vm_print(const struct cpprof__record_options *options,
                        time_t since)
{
    char *path = path_of(options), *slash = path ? strrchr(path, '/') : NULL;
    const struct dirent *entry;
    struct stat st;
    DIR *folder;

    if (!slash)
        return;
    *slash = 0;
    folder = opendir(*path ? path : "/");
    while (folder && (entry = readdir(folder)))
        if (is_of(entry->d_name, slash + 1) &&
            !fstatat(dirfd(folder), entry->d_name, &st, 0) &&
            S_ISREG(st.st_mode) && st.st_mtim.tv_sec >= since)
            cpprof__cli_warn("%s: what the interpreter ran, by wall time",
                             entry->d_name);
    if (folder)
        closedir(folder);
    free(path);
}
