/* SPDX-License-Identifier: MIT */
/* What the command line of a report says. */
#ifndef CLI_REPORT_WORDS_H
#define CLI_REPORT_WORDS_H

#include "cli/cli.h"
#include "cli/fetch/origins.h"
#include "cli/report/symbols.h"

#include <cpprof/report.h>

#include <stdbool.h>

struct cpprof__report_flags {
    enum cpprof_report_format format;
    const char *picture; /* what Graphviz is to make of it, "svg"; or NULL */
    const char *viewer;  /* what is to show it, "web"; or NULL */
    struct cpprof_report_options options;
    struct cpprof__symbolize symbolize;
    const char *output;      /* NULL: standard output */
    const char *binary;      /* instead of the first mapping's file, or NULL */
    const char *build_id;    /* instead of its build id, or NULL */
    const char *add_comment; /* or NULL */
    struct cpprof__flag_list bases; /* what to compare with; to be freed */
    bool diff_base;                 /* bases are of -diff_base */
    bool normalize;
    bool all_frames;  /* ignore drop_frames */
    bool interactive; /* no format: the shell */
    char **sources;
    int n_sources;
    struct cpprof__fetch_options fetch;
    struct cpprof__origins *origins; /* of sources that are URLs */
    bool help;
};

/* Parse; false after printing what is wrong. words->bases.at is to be freed.
 * `command` names the format, "raw", or is "merge"; when it is NULL a flag
 * does. */
bool
cpprof__report_flags(int argc, char **argv, const char *command,
                     struct cpprof__report_flags *words);

/* Call with every flag; a bool of it needs no value. */
void
cpprof__report_each_flag(void (*each)(void *ctx, const char *name,
                                      bool is_bool),
                         void *ctx);

/* What a command of the shell is. */
enum cpprof__report_command {
    CPPROF__COMMAND_NONE = 0,
    CPPROF__COMMAND_REPORT,
    CPPROF__COMMAND_SEARCH, /* and wants a regular expression */
};

/* Choose the format that a word names. */
enum cpprof__report_command
cpprof__report_command(struct cpprof__report_flags *words, const char *name);

/* Print a report, to words->output or standard output. Changes the profile.
 * Returns the exit status. */
int
cpprof__print_report(struct cpprof_pprof *profile,
                     struct cpprof__report_flags *words);

/*
 * Read the sources, and the base they are compared with, into one profile.
 * A file that cannot be read is told of on stderr and left out, as long as
 * there are others. NULL after printing what is wrong.
 */
struct cpprof_pprof *
cpprof__read_sources(const struct cpprof__report_flags *words);

#endif
