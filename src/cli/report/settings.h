/* SPDX-License-Identifier: MIT */
/*
 * The options of reports as variables that have a name: what the shell's
 * `focus=main` sets and `options` prints. They are rows of the table of flags
 * and live where the command line puts them, in struct cpprof__report_flags.
 */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include "cli/report/report.h"

#include <stdbool.h>
#include <stddef.h>

/* Values, and the memory of those that were set here. */
struct cpprof__settings {
    struct cpprof__report_flags report;
    char *owned[CPPROF__MAX_REPORT_FLAGS]; /* of a row of the table */
};

/* Variable i in the order of their names; NULL behind the last. */
const struct cpprof__flag *
cpprof__setting(size_t i);

/*
 * The variable that a name means: its own name, or one of its choices ("lines"
 * is a choice of granularity). NULL: none.
 */
const struct cpprof__flag *
cpprof__setting_find(const char *name);

/* Can it stand without a value: is it a bool, or `name` one of its choices? */
bool
cpprof__setting_is_bool(const struct cpprof__flag *setting, const char *name);

/* Room for any number, and for the reason why a value is refused. */
#define CPPROF__SETTING_TEXT 256

/*
 * Set one by its name, or by the name of a choice and a word for true. Returns
 * false and the reason.
 */
bool
cpprof__setting_set(struct cpprof__settings *settings, const char *name,
                    const char *value, char reason[CPPROF__SETTING_TEXT]);

/* The value as text, in `text` or where it is stored; "" if there is none. */
const char *
cpprof__setting_get(const struct cpprof__settings *settings,
                    const struct cpprof__flag *setting,
                    char text[CPPROF__SETTING_TEXT]);

void
cpprof__settings_free(struct cpprof__settings *settings);

/* strconv.Quote, cut to what fits in n_bytes. */
const char *
cpprof__quoted(const char *text, char *out, size_t n_bytes);

#endif
