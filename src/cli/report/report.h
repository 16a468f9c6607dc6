/* SPDX-License-Identifier: MIT */
/* The parts of a report: its command line, its sources, their names, and how it
 * is written and shown. */
#ifndef CLI_REPORT_REPORT_H
#define CLI_REPORT_REPORT_H

#include "cli/fetch/debuginfod.h"
#include "cli/fetch/fetch.h"
#include "cli/report/flag_table.h"

#include <cpprof/pprof/change.h>
#include <cpprof/pprof/report.h>

#include <stdbool.h>
#include <stdio.h>

/* ---------------------------------------------- report_flags.c ------- */

/* The value of -symbolize, parsed. All 0: it was not given. */
struct cpprof__symbolize {
    bool none;      /* leave names as they are; nothing below counts */
    bool no_local;  /* not from binaries */
    bool no_remote; /* not from where the profile was fetched */
    bool fast;      /* functions only */
    bool force;     /* also what has names */
    bool lines;     /* also what has no lines */
    enum pprof_demangle demangle;
    struct cpprof__flag_list binaries; /* of -binary; to be freed */
    const char *debuginfod;            /* as debuginfod.h takes it */
};

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
    const char *tagbase;     /* labels of the samples to subtract, or NULL */
    struct cpprof__flag_list bases;      /* what to compare with; to be freed */
    bool diff_base;                      /* bases are of -diff_base */
    struct cpprof__flag_list diff_bases; /* as given, until they are bases */
    const char *symbolize_text, *granularity, *sort; /* as given */
    const char *by;   /* how sources are labelled (by.c), or NULL or "" */
    bool keep_going;  /* leave out sources of other sample types */
    const char *http; /* where the page is served; NULL or "": nowhere */
    bool no_browser;
    bool normalize;
    bool all_frames;  /* ignore drop_frames */
    bool interactive; /* no format: the shell */
    char **sources;
    int n_sources;
    struct cpprof__fetch_options fetch;
    struct cpprof__origins *origins; /* of sources that are URLs */
    bool help;
    bool keeps_no_copy; /* of what was fetched */
    bool tell_sum;      /* say in the heading what was added up, and at the end
                         * what could tell the names that are missing */
    /* Results: the sources that were added up, and the processes in them as
     * far as they are counted, which is with tell_sum alone. */
    size_t n_added, n_processes;
};

/* Parse a command line; false after printing what is wrong. flags->bases.at is
 * to be freed. `command` names the format, "raw", or is "merge"; when it is
 * NULL a flag does. */
bool
cpprof__report_flags(int argc, char **argv, const char *command,
                     struct cpprof__report_flags *flags);

/* Choose the format that a word names. Returns its row; NULL: it names none. */
const struct cpprof__flag *
cpprof__choose_format(struct cpprof__report_flags *flags, const char *name);

/* ---------------------------------------------------- sources.c ------- */

/*
 * Read the sources, and the base that they are compared with, into one profile.
 * A file that cannot be read is reported on stderr and left out, as long as
 * there are others. NULL after printing what is wrong. Sets the flags' results.
 */
struct pprof_profile *
cpprof__read_sources(struct cpprof__report_flags *flags);

/* Copies of sources in place of these, each folder replaced by its files: to be
 * freed, each and the array, whatever is returned. False after printing what is
 * wrong. */
bool
cpprof__expand_sources(char *const *sources, int n,
                       struct cpprof__flag_list *all);

/* ---------------------------------------------------- compare.c ------- */

/* Both change p and make *difference, which may be p again and is to be freed
 * besides. */

/* Of the samples that options.tagfocus keeps, subtract those of flags->tagbase,
 * and clear the former: it is done. */
enum cpprof_status
cpprof__compare_labels(struct pprof_profile *p,
                       struct cpprof__report_flags *flags,
                       struct pprof_profile **difference,
                       struct cpprof_error *error);

/* Make a difference of -diff_base again, with the first side scaled to the
 * total of the second. */
enum cpprof_status
cpprof__normalize(struct pprof_profile *p, struct pprof_profile **difference,
                  struct cpprof_error *error);

/* --------------------------------------------------------- by.c ------- */

/* Is it a word of -by? */
bool
cpprof__by_is_known(const char *by);

/*
 * Label the samples of a source as -by says (by.c tells how). `source` has no
 * password. NULL and "" do nothing.
 */
enum cpprof_status
cpprof__label_source(struct pprof_profile *profile, const char *by,
                     const char *source, struct cpprof_error *error);

/* -------------------------------------------------- processes.c ------- */

/* Count the processes of a source by the labels "process" and "pid"; samples
 * without either are of one process. */
enum cpprof_status
cpprof__count_processes(const struct pprof_profile *profile, size_t *n,
                        struct cpprof_error *error);

/* Say in the heading of the report what was added up, if flags->tell_sum. */
enum cpprof_status
cpprof__tell_sum(struct pprof_profile *profile,
                 const struct cpprof__report_flags *flags,
                 struct cpprof_error *error);

/* ---------------------------------------------------- symbols.c ------- */

/* Parse "fastlocal:force:demangle=full", or NULL. Unknown parts are reported on
 * stderr and ignored. */
void
cpprof__parse_symbolize(struct cpprof__symbolize *symbolize, const char *text);

/*
 * Look for the binaries of a profile in the folders of PPROF_BINARY_PATH. Part
 * of reading it, whatever -symbolize says.
 */
enum cpprof_status
cpprof__find_binaries(struct pprof_profile *profile,
                      struct cpprof_error *error);

/*
 * Give a profile names, from binaries and from the servers that it came from,
 * and demangle them. What is missing is reported on stderr.
 */
enum cpprof_status
cpprof__symbolize(struct pprof_profile *profile,
                  const struct cpprof__symbolize *symbolize,
                  const struct cpprof__origins *origins,
                  struct cpprof_error *error);

/* -------------------------------------------------------- hint.c ------- */

/* Tell in `text` where the debug information comes from that would name most of
 * the functions without a name, if those have a tenth of the samples. */
void
cpprof__hint(const struct pprof_profile *profile, const char *sample_index,
             char *text, size_t n_text);

/* ----------------------------------------------------- report.c ------- */

/* Read the sources of `flags`, a struct cpprof__report_flags, and make them
 * ready for reports: names, and without the frames that a profile says to drop.
 * NULL after printing what is wrong. */
struct pprof_profile *
cpprof__read_prepared(void *flags);

/* Print a report, to flags->output or standard output. Changes the profile.
 * Returns the exit status. */
int
cpprof__print_report(struct pprof_profile *profile,
                     struct cpprof__report_flags *flags);

/* --------------------------------------------------- graphviz.c ------- */

/*
 * Draw the graph of a profile. `type` is one that dot -T knows; svg gets a
 * script to move and enlarge it. The writer is closed, whatever happens.
 */
enum cpprof_status
cpprof__draw(struct pprof_profile *profile,
             const struct pprof_report_options *options, const char *type,
             struct cpprof_writer writer, struct cpprof_error *error);

/* ----------------------------------------------------- viewer.c ------- */

/*
 * Make a file for a report that `viewer` is to show, "web", "gv", "evince",
 * "eog" or "kcachegrind", in $TMPDIR; path has room for PATH_MAX bytes.
 */
enum cpprof_status
cpprof__viewer_file(const char *ending, char *path, struct cpprof_error *error);

/* Show the file with the first program that is there. Wait for its end, or only
 * a moment, while it opens the file. */
enum cpprof_status
cpprof__view(const char *viewer, const char *path, bool to_the_end,
             struct cpprof_error *error);

/* Show an address in a browser, which is not waited for. */
enum cpprof_status
cpprof__browse(const char *url, struct cpprof_error *error);

/*
 * Between these, files are remembered, also those that forked children make;
 * the end removes them.
 */
void
cpprof__viewer_begin(void);
void
cpprof__viewer_end(void);

/* ------------------------------------------------------- help.c ------- */

/* Print what a command or an option of the shell is, "" for a list of all.
 * Returns false, and prints nothing, when there is no such word. Help for the
 * command line is in cli/commands.h. */
bool
cpprof__help_word(FILE *out, const char *word);

#endif
