/* SPDX-License-Identifier: MIT */
/*
 * Reads the profiles that a command line names into one. A file of a folder
 * that is no profile is reported and left out, as any source among others.
 * Source: internal/driver fetch.go.
 */
#include "cli/messages.h"
#include "cli/report/ahead.h"
#include "cli/report/report.h"
#include "cli/terminal.h"

#include "base/buffer.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The name of a source is cut to this in messages. */
#define SHOWN_BYTES 900

/* ----------------------------------------------------------- folders ---- */

/* Sources as they are to be read: a CPPROF__ARRAY with a name. */
struct paths {
    char **at;
    size_t n, capacity;
};

/* Takes text over. */
static bool
add_path(struct paths *paths, char *text)
{
    if (!text || !CPPROF__ARRAY_ROOM(paths, 1)) {
        free(text);
        cpprof__cli_fail("out of memory");
        return false;
    }
    paths->at[paths->n++] = text;
    return true;
}

static bool
has_mode(const char *path, mode_t mode)
{
    struct stat info;

    return stat(path, &info) == 0 && (info.st_mode & S_IFMT) == mode;
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

/* Add the files of a folder, in the order of their names: not those whose names
 * begin with a dot, and not those of folders inside. One without any is named.
 * False: no memory. */
static bool
add_folder(struct paths *paths, const char *folder)
{
    size_t n_folder = strlen(folder), before = paths->n;
    const char *slash = n_folder && folder[n_folder - 1] == '/' ? "" : "/";
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, visible, by_name), i;
    bool ok = true;

    if (n < 0) {
        cpprof__cli_warn("%s: %s", folder, strerror(errno));
        return true;
    }
    for (i = 0; i < n; i++) {
        char *path;

        if (asprintf(&path, "%s%s%s", folder, slash, entries[i]->d_name) < 0)
            path = NULL;
        if (!ok || (path && !has_mode(path, S_IFREG)))
            free(path);
        else
            ok = add_path(paths, path);
        free(entries[i]);
    }
    free(entries);
    if (ok && paths->n == before)
        cpprof__cli_warn("%s: no files in this folder%s", folder,
                         n ? " (folders below it are not read)" : "");
    return ok;
}

/* Add copies of sources; a folder is replaced by its files. False after
 * printing why there is nothing. */
static bool
add_paths(struct paths *paths, char *const *sources, int n)
{
    size_t before = paths->n;
    int i;

    for (i = 0; i < n; i++)
        if (!(has_mode(sources[i], S_IFDIR)
                  ? add_folder(paths, sources[i])
                  : add_path(paths, strdup(sources[i]))))
            return false;
    return !n || paths->n > before;
}

/* -------------------------------------------------------------- files ---- */

/* "-" is the standard input. *url is where it came from, or NULL. */
static enum cpprof_status
read_path(const char *path, const struct cpprof__report_flags *w,
          struct cpprof__ahead *ahead, struct pprof_profile **profile,
          const char **url, struct cpprof_error *error)
{
    struct cpprof__fetch *fetch = w->origins->fetch;
    enum cpprof_status status;
    char *file;

    *url = NULL;
    if (ahead)
        return cpprof__ahead_next(ahead, profile, error);
    if (cpprof__fetch_is_next(fetch, path))
        return cpprof__fetch_read(fetch, profile, url, error);
    if (strcmp(path, "-") == 0)
        return pprof_read_fd(STDIN_FILENO, NULL, profile, error);
    file = cpprof__file_url_path(path);
    status = pprof_read_path(file ? file : path, NULL, profile, error);
    free(file);
    return status;
}

/* Read one, with the binary and build id of the command line. */
static enum cpprof_status
read_one(const char *path, const struct cpprof__report_flags *w,
         struct cpprof__ahead *ahead, struct pprof_profile **profile)
{
    struct cpprof_error error = {0};
    struct pprof_profile *p = NULL;
    enum cpprof_status status;
    const char *url;
    char shown[SHOWN_BYTES];

    status = read_path(path, w, ahead, &p, &url, &error);
    if (status == CPPROF_OK)
        status = cpprof__find_binaries(p, &error);
    /* Done even if neither is given: a profile without mappings gets one. */
    if (status == CPPROF_OK)
        status = pprof_set_binary(p, w->binary, w->build_id, &error);
    if (status == CPPROF_OK && url)
        status = cpprof__origins_note(w->origins, p, url, &error);
    if (status == CPPROF_OK) {
        *profile = p;
        return status;
    }
    cpprof__hide_password(path, shown, sizeof shown);
    if (error.offset)
        cpprof__cli_warn("%s: %s at byte %llu", shown, error.text,
                         (unsigned long long)error.offset);
    else
        cpprof__cli_warn("%s: %s", shown, error.text);
    pprof_free(p);
    return status;
}

/* --------------------------------------------------------- adding up ---- */

/* The sum of profiles. If there is only one it is not merged, which makes a
 * difference: merging renumbers everything and adds up equal samples. */
struct sum {
    struct pprof_profile *only;  /* while there is but one */
    struct pprof_merger *merger; /* of several */
    int n;
    size_t n_processes; /* in them, if they are counted */
    char *types;        /* of the first one, a line for each */
};

/* Add a profile; frees it. */
static enum cpprof_status
add(struct sum *sum, struct pprof_profile *p, struct cpprof_error *error)
{
    struct pprof_profile *only = sum->only;
    enum cpprof_status status = CPPROF_OK;

    if (sum->n++ == 0) {
        sum->only = p;
        return CPPROF_OK;
    }
    sum->only = NULL;
    if (only)
        status = pprof_merger_new(&sum->merger, error);
    if (only && status == CPPROF_OK)
        status = pprof_merger_add(sum->merger, only, error);
    if (status == CPPROF_OK)
        status = pprof_merger_add(sum->merger, p, error);
    pprof_free(only);
    pprof_free(p);
    return status;
}

/* Frees the rest. */
static enum cpprof_status
take(struct sum *sum, enum cpprof_status status, struct pprof_profile **profile,
     struct cpprof_error *error)
{
    if (status == CPPROF_OK && sum->merger)
        status = pprof_merger_finish(sum->merger, profile, error);
    else if (status == CPPROF_OK)
        *profile = sum->only;
    else
        pprof_free(sum->only);
    pprof_merger_free(sum->merger);
    free(sum->types);
    return status;
}

static bool
has_type(const struct pprof_profile *p, const char *name, size_t n)
{
    size_t i;

    for (i = 0; i < pprof_sample_type_count(p); i++) {
        const char *own = pprof_text(p, pprof_sample_types(p)[i].type, NULL);

        if (strlen(own) == n && memcmp(own, name, n) == 0)
            return true;
    }
    return false;
}

/* Has a profile all sample types of the first one? It may be the first. */
static bool
has_types_of_first(struct sum *sum, const struct pprof_profile *p)
{
    struct cpprof__buffer types = {0};
    const char *line;
    size_t i;

    if (!sum->types) {
        for (i = 0; i < pprof_sample_type_count(p); i++)
            cpprof__buffer_printf(
                &types, "%s\n",
                pprof_text(p, pprof_sample_types(p)[i].type, NULL));
        cpprof__buffer_append(&types, "", 1);
        sum->types = (char *)types.data;
        return true;
    }
    for (line = sum->types; *line; line += strcspn(line, "\n") + 1)
        if (!has_type(p, line, strcspn(line, "\n")))
            return false;
    return true;
}

/* Add a source that was read, as -by says and with its processes counted, or
 * leave it out; frees it. */
static enum cpprof_status
add_source(struct sum *sum, struct pprof_profile *p, const char *shown,
           const struct cpprof__report_flags *w, struct cpprof_error *error)
{
    size_t n_processes = 0;
    enum cpprof_status status;

    if (w->keep_going && !has_types_of_first(sum, p)) {
        cpprof__cli_warn("%s: other sample types than the first; left out",
                         shown);
        pprof_free(p);
        return CPPROF_OK;
    }
    status = cpprof__label_source(p, w->by, shown, error);
    if (status == CPPROF_OK && w->tell_sum)
        status = cpprof__count_processes(p, &n_processes, error);
    sum->n_processes += n_processes;
    if (status == CPPROF_OK)
        return add(sum, p, error);
    pprof_free(p);
    return status;
}

/* Begin to read files, if all of them are such. */
static struct cpprof__ahead *
begin_ahead(char *const *paths, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (!has_mode(paths[i], S_IFREG))
            return NULL;
    return cpprof__ahead_begin(paths, n);
}

/* Add up n files; `what` is "source" or "base". One after the other, so that
 * few of them are in memory. NULL after printing why there is nothing. Of
 * *sum, only the numbers can be looked at then. */
static struct pprof_profile *
read_group(const char *what, char *const *paths, size_t n,
           const struct cpprof__report_flags *w, struct sum *sum)
{
    struct cpprof_error error = {0};
    struct pprof_profile *p, *all = NULL;
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__ahead *ahead = begin_ahead(paths, n);
    char shown[SHOWN_BYTES] = "";
    size_t i;

    for (i = 0; i < n && status == CPPROF_OK; i++) {
        cpprof__hide_password(paths[i], shown, sizeof shown);
        cpprof__progress("reading %s (%zu of %zu)", shown, i + 1, n);
        if (read_one(paths[i], w, ahead, &p) == CPPROF_OK)
            status = add_source(sum, p, shown, w, &error);
    }
    cpprof__ahead_end(ahead);
    if (status != CPPROF_OK)
        cpprof__cli_fail("problem fetching %s profiles: %s: %s", what, shown,
                         error.text);
    else if (sum->n && (size_t)sum->n < n)
        cpprof__cli_warn("Fetched %d %s profiles out of %zu", sum->n, what, n);
    else if (!sum->n && n > 1) /* of one file, all is said */
        cpprof__cli_fail("failed to fetch any %s profiles", what);
    if (take(sum, status, &all, &error) != CPPROF_OK && status == CPPROF_OK)
        cpprof__cli_fail("%s", error.text);
    return all;
}

/* -------------------------------------------------------------- base ---- */

/* The profile minus its base; frees both. */
static struct pprof_profile *
subtract(struct pprof_profile *p, struct pprof_profile *base,
         const struct cpprof__report_flags *w)
{
    struct cpprof_error error = {0};
    struct pprof_profile *difference = NULL;
    struct sum sum = {0};
    enum cpprof_status status = CPPROF_OK;

    if (w->diff_base)
        status = pprof_set_label(base, "pprof::base", "true", &error);
    if (status == CPPROF_OK && w->normalize)
        status = pprof_normalize(p, base, &error);
    pprof_scale(base, -1);
    if (status == CPPROF_OK) {
        status = add(&sum, p, &error);
        p = NULL;
    }
    if (status == CPPROF_OK) {
        status = add(&sum, base, &error);
        base = NULL;
    }
    pprof_free(p);
    pprof_free(base);
    if (take(&sum, status, &difference, &error) != CPPROF_OK)
        cpprof__cli_fail("%s", error.text);
    return difference;
}

/* Read n sources, and the rest as the base of a comparison. All URLs are asked
 * for at once. NULL after printing what is wrong. */
static struct pprof_profile *
read_all(const struct paths *paths, size_t n, struct cpprof__report_flags *w)
{
    struct cpprof_error error = {0};
    struct sum sum = {0}, base_sum = {0};
    struct pprof_profile *p, *base;

    w->origins->options = &w->fetch;
    if (cpprof__fetch_begin(paths->at, paths->n, &w->fetch, &w->origins->fetch,
                            &error) != CPPROF_OK) {
        cpprof__cli_fail("%s", error.text);
        return NULL;
    }
    p = read_group("source", paths->at, n, w, &sum);
    w->n_added = (size_t)sum.n;
    w->n_processes = sum.n_processes;
    if (!p || n == paths->n)
        return p;
    base = read_group("base", paths->at + n, paths->n - n, w, &base_sum);
    if (base)
        return subtract(p, base, w);
    pprof_free(p);
    return NULL;
}

/* Only files are opened: a pipe would lose what is read of it. */
static bool
is_elf(const char *path)
{
    char magic[4] = "";
    FILE *file = has_mode(path, S_IFREG) ? fopen(path, "rbe") : NULL;
    size_t n = file ? fread(magic, 1, sizeof magic, file) : 0;

    if (file)
        fclose(file);
    return n == sizeof magic && memcmp(magic, "\177ELF", n) == 0;
}

/* The first of several arguments may be the program. */
static void
take_binary(struct cpprof__report_flags *w)
{
    if (w->n_sources < 2 || !is_elf(w->sources[0]))
        return;
    w->binary = *w->sources++;
    w->n_sources--;
}

struct pprof_profile *
cpprof__read_sources(struct cpprof__report_flags *w)
{
    struct paths paths = {0};
    struct pprof_profile *p = NULL;
    size_t n, i;

    take_binary(w);
    if (add_paths(&paths, w->sources, w->n_sources)) {
        n = paths.n;
        if (add_paths(&paths, w->bases.at, w->bases.n))
            p = read_all(&paths, n, w);
    }
    for (i = 0; i < paths.n; i++)
        free(paths.at[i]);
    CPPROF__ARRAY_FREE(&paths);
    return p;
}

bool
cpprof__expand_sources(char *const *sources, int n,
                       struct cpprof__flag_list *all)
{
    struct paths paths = {0};
    bool ok = add_paths(&paths, sources, n);

    all->at = paths.at;
    all->n = (int)paths.n;
    return ok;
}
