/* SPDX-License-Identifier: MIT */
/*
 * The image of a mapping: the file itself, if it can be what ran; else a debug
 * file that is installed for the build id; else what somebody fetches.
 */
#include "symbolize/image_find.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEBUG_FOLDER "/usr/lib/debug/.build-id"

static enum cpprof_status
open_checked(struct cpprof__image *image, const char *path,
             const struct cpprof__wanted_image *wanted,
             struct cpprof_error *error)
{
    enum cpprof_status status = cpprof__image_open(image, path, error);
    const char *id = image->build_id;

    if (status != CPPROF_OK)
        return status;
    status = cpprof__image_fits(image, path, &wanted->range, error);
    if (status == CPPROF_OK && *wanted->build_id && *id &&
        strncmp(id, wanted->build_id, CPPROF_BUILD_ID_MAX - 1) != 0)
        status = cpprof__fail(error, CPPROF_BAD_DATA, 0,
                              "build ID mismatch, the file has %s", id);
    if (status != CPPROF_OK)
        cpprof__image_close(image);
    return status;
}

/* The file of debug information that is installed for the build id. */
static enum cpprof_status
open_debug_file(struct cpprof__image *image,
                const struct cpprof__wanted_image *wanted, char *path,
                size_t n_path)
{
    const char *build_id = wanted->build_id;
    struct cpprof_error none;
    size_t n = strlen(build_id);

    if (n < 4 || n >= CPPROF_BUILD_ID_MAX || strchr(build_id, '/'))
        return CPPROF_BAD_DATA;
    snprintf(path, n_path, "%s/%.2s/%s.debug", DEBUG_FOLDER, build_id,
             build_id + 2);
    return open_checked(image, path, wanted, &none);
}

/* What somebody else has: of a build id, the debug file, which names all
 * functions, or else the binary. */
static enum cpprof_status
open_fetched(struct cpprof__image *image,
             const struct cpprof__wanted_image *wanted, char path[PATH_MAX])
{
    static const enum pprof_wanted_file files[] = {PPROF_WANTED_DEBUG_FILE,
                                                   PPROF_WANTED_BINARY};
    const struct pprof_symbolize_options *o = wanted->options;
    enum cpprof_status status = CPPROF_BAD_DATA;
    struct cpprof_error none;
    size_t i;

    if (!*wanted->build_id || !o || !o->fetch)
        return status;
    for (i = 0; i < sizeof files / sizeof *files && status == CPPROF_BAD_DATA;
         i++)
        if (o->fetch(o->ctx, files[i], wanted->build_id, path, PATH_MAX))
            status = open_checked(image, path, wanted, &none);
    return status;
}

/* What came to lie there after the profile began is another build, as far as
 * can be known. */
static bool
is_newer(const char *path, int64_t time_ns)
{
    const int64_t ns_per_s = 1000000000;
    struct stat info;

    return time_ns && !stat(path, &info) &&
           info.st_ctim.tv_sec * ns_per_s + info.st_ctim.tv_nsec > time_ns;
}

static enum cpprof_status
open_file(struct cpprof__image *image,
          const struct cpprof__wanted_image *wanted, struct cpprof_error *error)
{
    enum cpprof_status status =
        open_checked(image, wanted->file, wanted, error);

    if (status != CPPROF_OK || *wanted->build_id ||
        !is_newer(wanted->file, wanted->time_ns))
        return status;
    cpprof__image_close(image);
    return cpprof__fail(
        error, CPPROF_BAD_DATA, 0,
        "it is newer than the profile, which has no build ID of "
        "it (-binary=%s if it is what ran)",
        wanted->file);
}

enum cpprof_status
cpprof__find_image(struct cpprof__image *image,
                   const struct cpprof__wanted_image *wanted,
                   char path[PATH_MAX], struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_BAD_DATA;

    if (*wanted->file)
        status = open_file(image, wanted, error);
    if (status == CPPROF_OK && !realpath(wanted->file, path)) {
        cpprof__image_close(image);
        status = cpprof__fail(error, CPPROF_SYSTEM, 0, "%m");
    }
    if (status != CPPROF_OK && status != CPPROF_NOMEM)
        status = open_debug_file(image, wanted, path, PATH_MAX);
    if (status != CPPROF_OK && status != CPPROF_NOMEM)
        status = open_fetched(image, wanted, path);
    return status;
}
