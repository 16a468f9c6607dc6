/* SPDX-License-Identifier: MIT */
/*
 * The file: found, read, and changed at one place.
 *
 * Members that nobody here knows stay, and so does the order. A new file takes
 * the place of the old one, so a reader never sees a part of it.
 * Source: internal/driver settings.go.
 */
#include "cli/web/configs_file.h"

#include "base/buffer.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that is larger is none of settings. */
#define MOST_BYTES (16 << 20)

/* ---------------------------------------------------------------- file ---- */

/* $XDG_CONFIG_HOME/pprof/settings.json, or below ~/.config. */
static enum cpprof_status
find_file(char path[PATH_MAX], struct cpprof_error *error)
{
    const char *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n;

    if (folder && *folder) {
        if (*folder != '/')
            return cpprof__fail(error, CPPROF_INVALID, 0,
                                "path in $XDG_CONFIG_HOME is relative");
        n = snprintf(path, PATH_MAX, "%s/pprof/settings.json", folder);
    } else {
        if (!home || !*home)
            return cpprof__fail(error, CPPROF_INVALID, 0,
                                "neither $XDG_CONFIG_HOME nor $HOME are "
                                "defined");
        n = snprintf(path, PATH_MAX, "%s/.config/pprof/settings.json", home);
    }
    if (n >= PATH_MAX)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "the path of the settings is too long");
    return CPPROF_OK;
}

/* What is in the file; an empty one is as good as none. */
static enum cpprof_status
read_text(const char *path, struct cpprof__buffer *text,
          struct cpprof_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), why = errno;

    if (fd >= 0) {
        why = cpprof__buffer_read(text, fd, MOST_BYTES);
        close(fd);
    }
    if ((fd < 0 && why == ENOENT) || (fd >= 0 && !why))
        return CPPROF_OK;
    if (why == ENOMEM)
        return cpprof__fail_nomem(error);
    if (why == EFBIG)
        return cpprof__fail(error, CPPROF_LIMIT, 0,
                            "could not read settings: %s is larger than 16 MB",
                            path);
    return cpprof__fail(error, CPPROF_SYSTEM, why,
                        "could not read settings: %s: %s", path, strerror(why));
}

/* If the file is a link, what it leads to gets the new text. */
static enum cpprof_status
write_file(const char *path, const json_t *settings, struct cpprof_error *error)
{
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(15);
    char real[PATH_MAX], new[PATH_MAX + 8];
    struct stat written = {.st_size = 0};
    FILE *file;
    bool ok;
    int fd, why;

    if (!realpath(path, real))
        snprintf(real, sizeof real, "%s", path);
    snprintf(new, sizeof new, "%s.XXXXXX", real);
    fd = mkostemp(new, O_CLOEXEC); /* mode 0600 */
    file = fd >= 0 ? fdopen(fd, "w") : NULL;
    ok = file && json_dumpf(settings, file, flags) == 0 && fflush(file) == 0 &&
         fsync(fd) == 0 && fstat(fd, &written) == 0;
    why = errno;
    if (file)
        fclose(file);
    if (ok && written.st_size > MOST_BYTES) {
        unlink(new);
        return cpprof__fail(error, CPPROF_LIMIT, 0,
                            "the settings would be larger than 16 MB");
    }
    if (ok && rename(new, real) == 0)
        return CPPROF_OK;
    why = ok ? errno : why;
    if (fd >= 0)
        unlink(new);
    return cpprof__fail(error, CPPROF_SYSTEM, why,
                        "failed to write settings: %s: %s", path,
                        strerror(why));
}

/* ------------------------------------------------------------- configs ---- */

const char *
cpprof__config_name(const json_t *config)
{
    const char *name = json_string_value(json_object_get(config, "name"));

    return name ? name : "";
}

static bool
are_settings(json_t *settings)
{
    json_t *configs, *config;
    size_t i;

    if (!json_is_object(settings))
        return false;
    configs = json_object_get(settings, "configs");
    if ((!configs || json_is_null(configs)) &&
        json_object_set_new(settings, "configs", json_array()))
        return false;
    configs = json_object_get(settings, "configs");
    json_array_foreach(configs, i,
                       config) if (!json_is_object(config)) return false;
    return json_is_array(configs);
}

json_t *
cpprof__configs_read(struct cpprof_error *error)
{
    struct cpprof__buffer text = {0};
    json_t *settings = NULL;
    char path[PATH_MAX];

    if (find_file(path, error) == CPPROF_OK &&
        read_text(path, &text, error) == CPPROF_OK) {
        settings =
            text.n ? json_loadb((char *)text.data, text.n, JSON_ALLOW_NUL, NULL)
                   : json_object();
        if (!are_settings(settings)) {
            json_decref(settings);
            settings = NULL;
            cpprof__fail(error, CPPROF_BAD_DATA, 0,
                         "could not parse settings: %s", path);
        }
    }
    cpprof__buffer_free(&text);
    return settings;
}

static enum cpprof_status
change(json_t *configs, const char *name, cpprof__config_make *make, void *ctx,
       struct cpprof_error *error)
{
    size_t i = 0, n = json_array_size(configs);
    json_t *new;

    while (i < n &&
           strcmp(cpprof__config_name(json_array_get(configs, i)), name) != 0)
        i++;
    if (!make && i == n)
        return cpprof__fail(error, CPPROF_INVALID, 0, "config %s not found",
                            name);
    if (!make)
        return json_array_remove(configs, i) ? cpprof__fail_nomem(error)
                                             : CPPROF_OK;
    new = make(ctx, json_array_get(configs, i), error);
    if (!new)
        return error->status;
    if (i < n ? json_array_set_new(configs, i, new)
              : json_array_append_new(configs, new))
        return cpprof__fail_nomem(error);
    return CPPROF_OK;
}

/* Make the folder of a path, and lock it. Without a lock chance decides. */
static int
lock_folder(char *path)
{
    char *slash = path;
    int fd;

    while ((slash = strchr(slash + 1, '/'))) {
        *slash = 0;
        mkdir(path, 0700); /* most are there */
        *slash = '/';
    }
    slash = strrchr(path, '/');
    *slash = 0;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *slash = '/';
    if (fd >= 0)
        flock(fd, LOCK_EX);
    return fd;
}

enum cpprof_status
cpprof__configs_edit(const char *name, cpprof__config_make *make, void *ctx,
                     struct cpprof_error *error)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    char path[PATH_MAX];
    enum cpprof_status status = find_file(path, error);
    json_t *settings;
    int folder;

    if (status != CPPROF_OK)
        return status;
    pthread_mutex_lock(&one);
    folder = lock_folder(path);
    settings = cpprof__configs_read(error);
    status = settings ? change(json_object_get(settings, "configs"), name, make,
                               ctx, error)
                      : error->status;
    if (status == CPPROF_OK)
        status = write_file(path, settings, error);
    if (folder >= 0)
        close(folder);
    pthread_mutex_unlock(&one);
    json_decref(settings);
    return status;
}
