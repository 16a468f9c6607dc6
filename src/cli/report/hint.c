/* SPDX-License-Identifier: MIT */
/*
 * What a table of functions without names could be told by, and how to get it:
 * the file that most samples without a name are in, and the Debian package of
 * its debug information. The package is the one that has the file: dpkg's lists
 * on this machine tell, which are read here since `dpkg -S` takes longer than
 * the report.
 */
#include "cli/report/report.h"

#include "cli/messages.h"

#include <cpprof/object.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Tunable: with less than this part of the samples nothing is said. */
#define LEAST_SHARE 0.1

#define LISTS       "/var/lib/dpkg/info"
#define LIST_ENDING ".list"

/* ------------------------------------------------------------- samples ---- */

/* Is it "[IMAGE+0xADDRESS]" or "[IMAGE after SYMBOL]"? */
static bool
is_stand_in(const char *name)
{
    return *name == '[' &&
           (strstr(name, "+0x") != NULL || strstr(name, " after ") != NULL);
}

/* The mapping of a leaf whose name stands for a missing one, or PPROF_NONE. */
static uint32_t
mapping_of_leaf(const struct pprof_profile *p,
                const struct pprof_sample *sample)
{
    const struct pprof_location *l;
    const struct pprof_function *f;
    const char *file;

    if (!sample->n_locations)
        return PPROF_NONE;
    l = &pprof_locations(p)[sample->locations[0]];
    if (l->mapping == PPROF_NONE || !l->n_lines)
        return PPROF_NONE;
    f = &pprof_functions(p)[pprof_lines(p)[l->first_line].function];
    file = pprof_text(p, pprof_mappings(p)[l->mapping].file, NULL);
    /* "[vdso]" and the like are no files, and have no debug information. */
    return is_stand_in(pprof_text(p, f->name, NULL)) && *file && *file != '['
               ? l->mapping
               : PPROF_NONE;
}

/* The mapping with most samples without a name, and their share; PPROF_NONE
 * where there is none. */
static uint32_t
find_mapping(const struct pprof_profile *p, size_t type, double *share)
{
    size_t n = pprof_mapping_count(p), i;
    double *sums = calloc(n + 1, sizeof *sums), all = 0;
    uint32_t largest = PPROF_NONE;

    for (i = 0; sums && i < pprof_sample_count(p); i++) {
        struct pprof_sample sample = {.size = sizeof sample};
        uint32_t mapping;
        double value;

        pprof_get_sample(p, i, &sample);
        value = sample.values[type] < 0 ? -(double)sample.values[type]
                                        : (double)sample.values[type];
        all += value;
        mapping = mapping_of_leaf(p, &sample);
        if (mapping == PPROF_NONE)
            continue;
        sums[mapping] += value;
        if (largest == PPROF_NONE || sums[mapping] > sums[largest])
            largest = mapping;
    }
    *share = largest == PPROF_NONE || all <= 0 ? 0 : sums[largest] / all;
    free(sums);
    return largest;
}

/* ------------------------------------------------------------ packages ---- */

static bool
ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);

    return n > n_end && strcmp(text + n - n_end, end) == 0;
}

/* Has a list this file? It is a line for each. */
static bool
lists(int folder, const char *list, const char *file)
{
    int fd = openat(folder, list, O_RDONLY | O_CLOEXEC);
    size_t n = strlen(file), n_text;
    struct stat info;
    char *text = MAP_FAILED, *at, *end;
    bool found = false;

    if (fd < 0)
        return false;
    if (fstat(fd, &info) == 0 && info.st_size > 0)
        text = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (text == MAP_FAILED)
        return false;
    n_text = (size_t)info.st_size;
    end = text + n_text;
    for (at = text; !found && at && (size_t)(end - at) > n; at++) {
        at = memmem(at, (size_t)(end - at), file, n);
        if (!at)
            break;
        found = (at == text || at[-1] == '\n') && at + n < end && at[n] == '\n';
    }
    munmap(text, n_text);
    return found;
}

/* The package that has a file; false: none, or no dpkg. */
static bool
find_package(const char *file, char *package, size_t n_package)
{
    DIR *folder = opendir(LISTS);
    struct dirent *entry;
    bool found = false;

    while (folder && !found && (entry = readdir(folder))) {
        if (!ends_in(entry->d_name, LIST_ENDING) ||
            !lists(dirfd(folder), entry->d_name, file))
            continue;
        found = true; /* "liblzma5:amd64.list" */
        snprintf(package, n_package, "%s", entry->d_name);
        package[strlen(package) - strlen(LIST_ENDING)] = 0;
        package[strcspn(package, ":")] = 0;
    }
    if (folder)
        closedir(folder);
    return found;
}

/* The package with the debug information of a file; false: not known. Lists may
 * have a path from before /bin and /lib were links into /usr. */
static bool
find_debug_package(const char *file, char *package, size_t n_package)
{
    char name[NAME_MAX + 1];
    bool found = find_package(file, name, sizeof name);

    if (!found && strncmp(file, "/usr/", 5) == 0)
        found = find_package(file + 4, name, sizeof name);
    if (found) /* libc6 is the one that Debian builds no -dbgsym of */
        snprintf(package, n_package, "%s%s", name,
                 strcmp(name, "libc6") == 0 ? "-dbg" : "-dbgsym");
    return found;
}

/* Is the file of a mapping here, and the one that ran? */
static bool
is_here(const struct pprof_profile *p, const struct pprof_mapping *m)
{
    char id[CPPROF_BUILD_ID_MAX] = "";

    return cpprof_build_id_of_file(pprof_text(p, m->file, NULL), id, NULL) ==
               CPPROF_OK &&
           strcmp(id, pprof_text(p, m->build_id, NULL)) == 0;
}

void
cpprof__hint(const struct pprof_profile *p, const char *sample_index,
             char *text, size_t n_text)
{
    const char *server = cpprof__debuginfod_is_on() ? "" : ", or -debuginfod";
    const struct pprof_mapping *m;
    const char *file, *base;
    char package[NAME_MAX + 16];
    uint32_t mapping;
    double share;
    size_t type;

    if (pprof_find_sample_type(p, sample_index, &type, NULL) != CPPROF_OK)
        return;
    mapping = find_mapping(p, type, &share);
    if (share < LEAST_SHARE)
        return;
    m = &pprof_mappings(p)[mapping];
    file = pprof_text(p, m->file, NULL);
    base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    if (is_here(p, m) && find_debug_package(file, package, sizeof package))
        snprintf(text, n_text,
                 "%.0f%% of the samples are in %s, which is stripped: apt "
                 "install %s%s",
                 share * 100, base, package, server);
    else
        snprintf(text, n_text,
                 "%.0f%% of the samples are in %s, which is stripped: "
                 "-binary=FILE with its symbols%s",
                 share * 100, base, server);
}
