/* SPDX-License-Identifier: MIT */
/*
 * The one table of the options of reports: the flags of the command line, and
 * the shell's commands (formats) and variables (rows with in_shell). Parsing,
 * the shell, help and completion use it; tests compare the manual with it.
 */
#ifndef CLI_REPORT_FLAG_TABLE_H
#define CLI_REPORT_FLAG_TABLE_H

#include "cli/flags.h"

#include <cpprof/pprof/report.h>

/* More than the table has rows. */
#define CPPROF__MAX_REPORT_FLAGS 128

/* In the order of help: by topic. */
extern const struct cpprof__flag cpprof__report_flag_table[];

/* The index of "cum" in the group "sort". */
#define CPPROF__CUM 1

/* The arguments that a command of the shell takes. */
enum cpprof__report_use {
    CPPROF__USE_NOTHING,
    CPPROF__USE_TABLE,     /* number, expressions, -cum, file */
    CPPROF__USE_GRAPH,     /* the same without -cum */
    CPPROF__USE_VIEWER,    /* and without a file */
    CPPROF__USE_LIST,      /* functions, expressions */
    CPPROF__USE_LIST_FILE, /* the same and a file */
    CPPROF__USE_PEEK,
    CPPROF__USE_TAGS,
};

struct cpprof__report_format {
    enum pprof_report_format format;
    enum cpprof__report_use use;
    const char
        *picture; /* the type that Graphviz converts it to, "svg"; or NULL */
    const char *viewer; /* the viewer that shows it, "web"; or NULL */
};

/* NULL: there is none. Texts of the table have names of their own. */
const struct cpprof__flag *
cpprof__report_flag(const char *name);

/* Row i in the order of names; NULL after the last one. */
const struct cpprof__flag *
cpprof__report_flag_by_name(size_t i);

/* Word i of a group, in the order of the table; NULL after the last one. */
const struct cpprof__flag *
cpprof__report_choice(const char *group, size_t i);

/* Does a report of this format want a regular expression? */
static inline bool
cpprof__report_flag_is_search(const struct cpprof__flag *flag)
{
    return flag->format && flag->kind == CPPROF__FLAG_STRING;
}

#endif
