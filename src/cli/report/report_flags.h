/* SPDX-License-Identifier: MIT */
/* The command line of a report, parsed. */
#ifndef CLI_REPORT_WORDS_H
#define CLI_REPORT_WORDS_H

#include "cli/fetch/origins.h"
#include "cli/report/flag_table.h"
#include "cli/report/symbols.h"

#include <cpprof/pprof/report.h>

#include <stdbool.h>

struct cpprof__report_flags {
    enum pprof_report_format format;
    const char
        *picture; /* the type that Graphviz converts it to, "svg"; or NULL */
    const char *viewer; /* the viewer that shows it, "web"; or NULL */
    struct pprof_report_options options;
    struct cpprof__symbolize symbolize;
    const char *output;      /* NULL: standard output */
    const char *binary;      /* instead of the first mapping's file, or NULL */
    const char *build_id;    /* instead of its build id, or NULL */
    const char *add_comment; /* or NULL */
    struct cpprof__flag_list bases;      /* what to compare with; to be freed */
    bool diff_base;                      /* bases are of -diff_base */
    struct cpprof__flag_list diff_bases; /* as given, until they are bases */
    const char *symbolize_text, *granularity, *sort; /* as given */
    const char *http;                                /* as given, and refused */
    bool no_browser;
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

/* Choose the format that a word names. Returns its row; NULL: it names none. */
const struct cpprof__flag *
cpprof__choose_format(struct cpprof__report_flags *words, const char *name);

/* Print a report, to words->output or standard output. Changes the profile.
 * Returns the exit status. */
int
cpprof__print_report(struct pprof_profile *profile,
                     struct cpprof__report_flags *words);

/*
 * Read the sources, and the base that they are compared with, into one profile.
 * A file that cannot be read is reported on stderr and left out, as long as
 * there are others. NULL after printing what is wrong.
 */
struct pprof_profile *
cpprof__read_sources(const struct cpprof__report_flags *words);

#endif
