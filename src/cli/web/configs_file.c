/* SPDX-License-Identifier: MIT */
/*
 * The file: found, read, and changed at one place.
 *
 * Only what is saved or removed is changed in its text; the rest stays as it
 * is, also members that nobody here knows. A new file takes the place of the
 * old one, so a reader never sees a part of it.
 * Source: internal/driver settings.go.
 */
#include "cli/web/configs_file.h"

#include "base/status.h"
#include "cli/web/json.h"

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

/* Without a file the text is empty. */
static enum cpprof_status
read_text(const char *path, struct cpprof__configs *c,
          struct cpprof_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = 1;

    if (fd < 0 && errno == ENOENT)
        return CPPROF_OK;
    c->text = fd < 0 ? NULL : malloc(MOST_BYTES + 1);
    while (c->text && c->n_text <= MOST_BYTES && n > 0) {
        n = read(fd, c->text + c->n_text, MOST_BYTES + 1 - c->n_text);
        c->n_text += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && !c->text)
        return cpprof__fail_nomem(error);
    if (fd < 0 || n < 0)
        return cpprof__fail(error, CPPROF_SYSTEM, errno,
                            "could not read settings: %s: %s", path,
                            strerror(errno));
    return c->n_text <= MOST_BYTES
               ? CPPROF_OK
               : cpprof__fail(error, CPPROF_LIMIT, 0,
                              "could not read settings: %s is larger than "
                              "16 MB",
                              path);
}

static bool
write_all(int fd, const struct cpprof__buffer *text)
{
    size_t at = 0;

    while (at < text->n) {
        ssize_t n = write(fd, text->data + at, text->n - at);

        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* If the file is a link, what it leads to gets the new text. */
static enum cpprof_status
write_file(const char *path, const struct cpprof__buffer *text,
           struct cpprof_error *error)
{
    char real[PATH_MAX], new[PATH_MAX + 8];
    bool ok;
    int fd, why;

    if (!realpath(path, real))
        snprintf(real, sizeof real, "%s", path);
    snprintf(new, sizeof new, "%s.XXXXXX", real);
    fd = mkostemp(new, O_CLOEXEC); /* mode 0600 */
    ok = fd >= 0 && write_all(fd, text) && fsync(fd) == 0;
    if (fd >= 0)
        ok = close(fd) == 0 && ok;
    if (ok && rename(new, real) == 0)
        return CPPROF_OK;
    why = errno;
    if (fd >= 0)
        unlink(new);
    return cpprof__fail(error, CPPROF_SYSTEM, why,
                        "failed to write settings: %s: %s", path,
                        strerror(why));
}

/* --------------------------------------------------------------- parse ---- */

/* The config in that part of the text has this name; "": none. */
static char *
name_of(struct cpprof__configs_part part)
{
    struct cpprof__json json = {part.at, part.end, false};
    char *name = strdup(""), *key;
    const char *from;
    size_t n = 0;

    while (cpprof__json_next(&json, '{', &n)) {
        key = cpprof__json_name(&json);
        if (key && strcmp(key, "name") == 0 &&
            cpprof__json_peek(&json) == '"') {
            free(name);
            name = cpprof__json_string(&json);
        } else {
            cpprof__json_skip(&json, &from);
        }
        free(key);
    }
    return name;
}

static void
parse_array(struct cpprof__json *json, struct cpprof__configs *c)
{
    size_t n = 0;

    while (cpprof__json_next(json, '[', &n)) {
        struct cpprof__config entry = {.name = NULL};

        json->bad |= cpprof__json_peek(json) != '{';
        cpprof__json_skip(json, &entry.part.at);
        entry.part.end = json->at;
        if (!json->bad)
            entry.name = name_of(entry.part);
        if (!entry.name || !CPPROF__ARRAY_ROOM(&c->configs, 1)) {
            free(entry.name);
            json->bad = true;
            return;
        }
        c->configs.at[c->configs.n++] = entry;
    }
}

static bool
parse(struct cpprof__configs *c)
{
    struct cpprof__json json = {c->text, c->text + c->n_text, false};
    const char *from;
    size_t n = 0;
    char *key;

    if (!cpprof__json_peek(&json))
        return true;
    c->all.at = json.at;
    while (!json.bad && cpprof__json_next(&json, '{', &n)) {
        c->has_members = true;
        key = cpprof__json_name(&json);
        if (key && strcmp(key, "configs") == 0 && !c->array.at) {
            bool is_null = cpprof__json_peek(&json) == 'n';

            c->array.at = json.at;
            if (is_null)
                cpprof__json_skip(&json, &from);
            else
                parse_array(&json, c);
            c->array.end = json.at;
        } else {
            cpprof__json_skip(&json, &from);
        }
        free(key);
    }
    c->all.end = json.at;
    return !json.bad && !cpprof__json_peek(&json);
}

enum cpprof_status
cpprof__configs_read(struct cpprof__configs *c, struct cpprof_error *error)
{
    char path[PATH_MAX];
    enum cpprof_status status;

    memset(c, 0, sizeof *c);
    status = find_file(path, error);
    if (status == CPPROF_OK)
        status = read_text(path, c, error);
    if (status == CPPROF_OK && !parse(c))
        status = cpprof__fail(error, CPPROF_BAD_DATA, 0,
                              "could not parse settings: %s", path);
    return status;
}

void
cpprof__configs_free(struct cpprof__configs *c)
{
    size_t i;

    for (i = 0; i < c->configs.n; i++)
        free(c->configs.at[i].name);
    CPPROF__ARRAY_FREE(&c->configs);
    free(c->text);
    c->text = NULL;
}

/* ---------------------------------------------------------------- edit ---- */

static const struct cpprof__config *
find_config(const struct cpprof__configs *c, const char *name)
{
    size_t i;

    for (i = 0; i < c->configs.n; i++)
        if (strcmp(c->configs.at[i].name, name) == 0)
            return &c->configs.at[i];
    return NULL;
}

/* What is cut out of the text, and what stands there instead, before and behind
 * the new config. */
struct cut {
    struct cpprof__configs_part part;
    const char *open, *close;
};

/* For a config that takes the place of one of its name, or is the last. */
static struct cut
cut_to_set(const struct cpprof__configs *c, const struct cpprof__config *old)
{
    const struct cpprof__config *last = c->configs.at + c->configs.n - 1;

    if (old)
        return (struct cut){old->part, "", ""};
    if (c->configs.n)
        return (struct cut){{last->part.end, last->part.end}, ",\n    ", ""};
    if (c->array.at)
        return (struct cut){c->array, "[\n    ", "\n  ]"};
    if (c->all.at)
        return (struct cut){{c->all.at + 1, c->all.at + 1},
                            "\n  \"configs\": [\n    ",
                            c->has_members ? "\n  ]," : "\n  ]\n"};
    return (struct cut){{c->text, c->text + c->n_text},
                        "{\n  \"configs\": [\n    ",
                        "\n  ]\n}"};
}

static struct cut
cut_to_remove(const struct cpprof__configs *c, const struct cpprof__config *old)
{
    if (c->configs.n == 1)
        return (struct cut){c->array, "[]", ""};
    if (old == c->configs.at)
        return (struct cut){{old->part.at, old[1].part.at}, "", ""};
    return (struct cut){{old[-1].part.end, old->part.end}, "", ""};
}

static void
put(struct cpprof__buffer *out, const char *at, const char *end)
{
    if (end > at)
        cpprof__buffer_append(out, at, (size_t)(end - at));
}

static enum cpprof_status
change(const struct cpprof__configs *c, const char *name,
       cpprof__config_print *print, void *ctx, struct cpprof__buffer *out,
       struct cpprof_error *error)
{
    const struct cpprof__config *old = find_config(c, name);
    enum cpprof_status status = CPPROF_OK;
    struct cut cut;

    if (!old && !print)
        return cpprof__fail(error, CPPROF_INVALID, 0, "config %s not found",
                            name);
    cut = print ? cut_to_set(c, old) : cut_to_remove(c, old);
    put(out, c->text, cut.part.at);
    put(out, cut.open, cut.open + strlen(cut.open));
    if (print)
        status = print(ctx, old ? old->part : (struct cpprof__configs_part){0},
                       out, error);
    put(out, cut.close, cut.close + strlen(cut.close));
    put(out, cut.part.end, c->text + c->n_text);
    if (status == CPPROF_OK && out->failed)
        status = cpprof__fail_nomem(error);
    if (status == CPPROF_OK && out->n > MOST_BYTES)
        status = cpprof__fail(error, CPPROF_LIMIT, 0,
                              "the settings would be larger than 16 MB");
    return status;
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
cpprof__configs_edit(const char *name, cpprof__config_print *print, void *ctx,
                     struct cpprof_error *error)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    struct cpprof__buffer made = {0};
    struct cpprof__configs c;
    char path[PATH_MAX];
    enum cpprof_status status = find_file(path, error);
    int folder;

    if (status != CPPROF_OK)
        return status;
    pthread_mutex_lock(&one);
    folder = lock_folder(path);
    status = cpprof__configs_read(&c, error);
    if (status == CPPROF_OK)
        status = change(&c, name, print, ctx, &made, error);
    if (status == CPPROF_OK)
        status = write_file(path, &made, error);
    if (folder >= 0)
        close(folder);
    pthread_mutex_unlock(&one);
    cpprof__configs_free(&c);
    cpprof__buffer_free(&made);
    return status;
}
