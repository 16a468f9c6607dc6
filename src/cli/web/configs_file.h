/* SPDX-License-Identifier: MIT */
/*
 * The file of saved configs, which is pprof's: pprof/settings.json in
 * $XDG_CONFIG_HOME or ~/.config.
 *
 *     {"configs": [{"name": "x", "focus": "main", "trim": true}, ...]}
 *
 * What is in a config is known by configs.c alone.
 */
#ifndef CLI_WEB_CONFIGS_FILE_H
#define CLI_WEB_CONFIGS_FILE_H

#include "base/array.h"
#include "base/buffer.h"

#include <cpprof/status.h>

/* A part of the text of the file; at NULL: there is none. */
struct cpprof__configs_part {
    const char *at, *end;
};

struct cpprof__config {
    char *name;
    struct cpprof__configs_part part; /* the object */
};

struct cpprof__configs {
    char *text;
    size_t n_text;
    struct cpprof__configs_part all;   /* the object that is the file */
    struct cpprof__configs_part array; /* the value of "configs" */
    bool has_members;
    CPPROF__ARRAY(struct cpprof__config) configs;
};

/* Read the file; without one there are no configs. To be freed, also after a
 * failure. */
enum cpprof_status
cpprof__configs_read(struct cpprof__configs *configs,
                     struct cpprof_error *error);
void
cpprof__configs_free(struct cpprof__configs *configs);

/* Append a config as an object; `old` is the one that it replaces. */
typedef enum cpprof_status
cpprof__config_print(void *ctx, struct cpprof__configs_part old,
                     struct cpprof__buffer *out, struct cpprof_error *error);

/* Read the file, set the config of that name or without `print` remove it, and
 * write the file. Safety: MT; other processes that do the same wait. */
enum cpprof_status
cpprof__configs_edit(const char *name, cpprof__config_print *print, void *ctx,
                     struct cpprof_error *error);

#endif
