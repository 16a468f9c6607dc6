/* SPDX-License-Identifier: MIT */
/*
 * Looks for binaries in folders of copies: by name, in a tree like the one they
 * ran in, or by build id, in the layouts of pprof, perf, LLVM and GDB.
 *
 * Source: internal/driver/fetch.go locateBinaries; the GDB manual, "Debugging
 * Information in Separate Files".
 */
#include "base/status.h"
#include "own/memory.h"
#include "profile/model/check.h"
#include "profile/model/path.h"
#include "symbolize/image.h"
#include "symbolize/warn.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Files looked at of those below FOLDER/BUILD-ID; there are two or three. */
#define MOST_FILES 256

/* The search for the file of one mapping. */
struct search {
    const struct pprof_symbolize_options *options;
    struct cpprof__mapped_range range;
    const char *file;           /* of the mapping, maybe "" */
    const char *build_id;       /* of the mapping, maybe "" */
    const char *base;           /* the last element of file */
    struct cpprof__buffer path; /* the one that is looked at; terminated */
    bool failed;                /* out of memory */
};

static bool
is_wanted(struct search *s, const struct cpprof__image *image, const char *path)
{
    struct cpprof_error error;

    if (cpprof__image_fits(image, path, &s->range, &error) != CPPROF_OK)
        return false;
    if (!*s->build_id ||
        strncmp(s->build_id, image->build_id, CPPROF_BUILD_ID_MAX - 1) == 0)
        return true;
    cpprof__symbolize_warn(
        s->options, "Ignoring local file %s: build-id mismatch (%s != %s)",
        path, s->build_id, image->build_id);
    return false;
}

/* Is the file at s->path the one? */
static bool
is_found(struct search *s)
{
    const char *path = (const char *)s->path.data;
    struct cpprof__image image = {0};
    struct cpprof_error error;
    enum cpprof_status status = cpprof__image_open(&image, path, &error);
    bool found = status == CPPROF_OK && is_wanted(s, &image, path);

    s->failed |= status == CPPROF_NOMEM;
    cpprof__image_close(&image);
    return found;
}

/* Look at the path of those parts: joined and cleaned. */
#define TRY(s, ...) try_path(s, (const char *const[]){__VA_ARGS__, NULL})

static bool
try_path(struct search *s, const char *const *parts)
{
    struct cpprof__buffer joined = {0};

    for (; *parts; parts++) {
        cpprof__buffer_append(&joined, *parts, strlen(*parts));
        if (parts[1] && **parts)
            cpprof__buffer_append(&joined, "/", 1);
    }
    s->path.n = 0;
    cpprof__path_clean((const char *)joined.data, joined.n, &s->path);
    cpprof__buffer_append(&s->path, "", 1);
    s->failed |= joined.failed || s->path.failed;
    cpprof__buffer_free(&joined);
    return !s->failed && is_found(s);
}

/* Any file in FOLDER/BUILD-ID, by name. */
static bool
try_all(struct search *s, const char *folder)
{
    struct cpprof__buffer path = {0};
    struct dirent **entries = NULL;
    bool found = false;
    int i, n = -1;

    cpprof__buffer_printf(&path, "%s/%s", folder, s->build_id);
    if (!path.failed)
        n = scandir((char *)path.data, &entries, NULL, alphasort);
    for (i = 0; i < n; i++) {
        if (!found && i < MOST_FILES && strcmp(entries[i]->d_name, ".") != 0 &&
            strcmp(entries[i]->d_name, "..") != 0)
            found = TRY(s, (char *)path.data, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    s->failed |= path.failed;
    cpprof__buffer_free(&path);
    return found;
}

static bool
try_build_id(struct search *s, const char *folder)
{
    const char *id = s->build_id;
    char first[3] = {id[0], id[0] ? id[1] : 0, 0};
    char rest[CPPROF_BUILD_ID_MAX + sizeof ".debug"] = "";

    if (TRY(s, folder, id, s->base) || try_all(s, folder) ||
        TRY(s, folder, s->file, id))
        return true;
    if (strlen(id) < 3 || strlen(id) >= CPPROF_BUILD_ID_MAX)
        return false;
    strcat(strcpy(rest, id + 2), ".debug");
    return TRY(s, folder, first, rest);
}

static bool
try_name(struct search *s, const char *folder)
{
    size_t n_dir = (size_t)(s->base - s->file);
    char *dir = cpprof__strndup(s->file, n_dir);
    struct cpprof__buffer debug = {0};
    bool found = false;

    cpprof__buffer_printf(&debug, "%s.debug", s->base);
    s->failed |= !dir || debug.failed;
    if (!s->failed) {
        const char *name = (const char *)debug.data;

        found = TRY(s, folder, s->base) || TRY(s, folder, s->file) ||
                TRY(s, folder, dir, name) ||
                TRY(s, folder, dir, ".debug", name) ||
                TRY(s, folder, "usr/lib/debug", dir, name);
    }
    cpprof__free(dir);
    cpprof__buffer_free(&debug);
    return found;
}

static bool
try_folder(struct search *s, const char *folder)
{
    if (access(folder, F_OK) != 0)
        return false;
    return (*s->build_id && try_build_id(s, folder)) ||
           (*s->file && try_name(s, folder));
}

/* Look in every folder; what is found is the mapping's file from now on. */
static bool
find_binary(struct pprof_profile *p, size_t mapping, struct search *s,
            const char *folders)
{
    const struct pprof_mapping *m = &p->mappings.at[mapping];
    char *list = cpprof__strdup(folders), *rest = list, *folder;
    const char *slash;
    bool found = false;
    uint32_t file;

    s->range = (struct cpprof__mapped_range){m->start, m->limit, m->offset};
    s->file = cpprof__strings_text(&p->strings, m->file);
    s->build_id = cpprof__strings_text(&p->strings, m->build_id);
    slash = strrchr(s->file, '/');
    s->base = slash ? slash + 1 : s->file;
    while (list && !found && (folder = strsep(&rest, ":")))
        found = try_folder(s, *folder ? folder : ".");
    cpprof__free(list);
    if (!list || s->failed)
        return false;
    if (!found)
        return true;
    file = cpprof__strings_add_text(&p->strings, (char *)s->path.data);
    if (file == CPPROF__NO_STRING)
        return false;
    p->mappings.at[mapping].file = file;
    return true;
}

/* The folders of the environment; from malloc. */
static char *
default_folders(void)
{
    const char *set = getenv("PPROF_BINARY_PATH"), *home = getenv("HOME");
    struct cpprof__buffer text = {0};

    if (set && *set)
        return cpprof__strdup(set);
    cpprof__buffer_printf(&text, "%s%spprof/binaries", home ? home : "",
                          home && *home ? "/" : "");
    return (char *)text.data;
}

enum cpprof_status
pprof_find_binaries(struct pprof_profile *p, const char *folders,
                    const struct pprof_symbolize_options *given,
                    struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    struct pprof_symbolize_options options;
    enum cpprof_status status = cpprof__symbolize_take(given, &options, error);
    char *list = folders ? cpprof__strdup(folders) : default_folders();
    struct search search = {.options = &options};
    size_t i;

    for (i = 0; status == CPPROF_OK && list && i < p->mappings.n; i++)
        if (!find_binary(p, i, &search, list))
            status = cpprof__fail_nomem(error);
    if (status == CPPROF_OK && !list)
        status = cpprof__fail_nomem(error);
    cpprof__free(list);
    cpprof__buffer_free(&search.path);
    cpprof__debug_check(p);
    return status;
}
