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

#include <cpprof/status.h>

#include <jansson.h>

/* Read the file: an object whose member "configs" is an array of objects; with
 * none of them where there is no file. To be given up by json_decref(). NULL:
 * an error. */
json_t *
cpprof__configs_read(struct cpprof_error *error);

/* "" where it has none. */
const char *
cpprof__config_name(const json_t *config);

/* Make a config; `old` is the one that it replaces, or NULL. NULL: an error. */
typedef json_t *
cpprof__config_make(void *ctx, json_t *old, struct cpprof_error *error);

/* Read the file, set the config of that name or without `make` remove it, and
 * write the file. Safety: MT; other processes that do the same wait. */
enum cpprof_status
cpprof__configs_edit(const char *name, cpprof__config_make *make, void *ctx,
                     struct cpprof_error *error);

#endif
