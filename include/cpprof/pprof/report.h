/* SPDX-License-Identifier: MIT */
/*
 * Reports from a profile, in the words and to the byte of `go tool pprof`.
 */
#ifndef PPROF_REPORT_H
#define PPROF_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include <cpprof/pprof/change.h>
#include <cpprof/status.h>
#include <cpprof/writer.h>

#ifdef __cplusplus
extern "C" {
#endif

enum pprof_report_format {
    PPROF_REPORT_TOP = 0,   /* a line per function: flat and cumulative value */
    PPROF_REPORT_TAGS,      /* label keys and their values, with sums */
    PPROF_REPORT_COMMENTS,  /* the comments, a line each */
    PPROF_REPORT_RAW,       /* all that is left of the profile, as text */
    PPROF_REPORT_PROTO,     /* the same as profile.proto, gzip-compressed */
    PPROF_REPORT_TOPPROTO,  /* the table of TOP as profile.proto */
    PPROF_REPORT_TREE,      /* each function between its callers and callees */
    PPROF_REPORT_PEEK,      /* the same of those that match options->symbol */
    PPROF_REPORT_TRACES,    /* every sample, a line per frame */
    PPROF_REPORT_DOT,       /* the graph of calls, for Graphviz */
    PPROF_REPORT_CALLGRIND, /* the same for KCachegrind */
    PPROF_REPORT_LIST,      /* source of functions that match options->symbol */
    PPROF_REPORT_DISASM,    /* instructions of symbols that match it */
    PPROF_REPORT_HEADING,   /* the lines about the profile above TOP */
    PPROF_REPORT_COLLAPSED, /* a line per stack, for flame graph tools */
    PPROF_REPORT_JSON,      /* stacks, for other programs */
    PPROF_REPORT_FLAMEGRAPH, /* a page of HTML that needs nothing else */
    PPROF_REPORT_WEBLIST,    /* what LIST and DISASM show, as such a page */
};

/* What a line of a report stands for. */
enum pprof_report_granularity {
    PPROF_REPORT_FUNCTIONS = 0,
    PPROF_REPORT_FILEFUNCTIONS, /* a function of a file */
    PPROF_REPORT_FILES,
    PPROF_REPORT_LINES,
    PPROF_REPORT_ADDRESSES,
};

/* struct pprof_report_options flags */
#define PPROF_REPORT_CUM            1u    /* sort by cumulative value */
#define PPROF_REPORT_MEAN           2u    /* divide by the first value */
#define PPROF_REPORT_NO_TRIM        4u    /* show every node */
#define PPROF_REPORT_NO_INLINES     8u    /* leave out inlined functions */
#define PPROF_REPORT_COLUMNS        16u   /* line:column */
#define PPROF_REPORT_COMPACT_LABELS 32u   /* short heading */
#define PPROF_REPORT_RELATIVE       64u   /* percent of what filters leave */
#define PPROF_REPORT_DROP_NEGATIVE  128u  /* no nodes of negative value */
#define PPROF_REPORT_CALL_TREE      256u  /* DOT, CALLGRIND: a node per way */
#define PPROF_REPORT_INTEL_SYNTAX   512u  /* of instructions */
#define PPROF_REPORT_PICTURE        1024u /* DOT: not too dense to be drawn */
/* FLAMEGRAPH: calls of a function by itself are one box. */
#define PPROF_REPORT_FOLD_RECURSION 2048u

/*
 * Every option of the reference by its name there. Fill with
 * PPROF_REPORT_DEFAULTS; strings may be NULL or "" for none.
 */
struct pprof_report_options {
    size_t size; /* sizeof (struct pprof_report_options) */
    enum pprof_report_granularity granularity;
    uint32_t flags;           /* PPROF_REPORT_* */
    int32_t nodecount;        /* most nodes shown; -1: the format's own */
    double nodefraction;      /* hide nodes below this part of the total */
    double edgefraction;      /* and edges below this one */
    double divide_by;         /* every value; not 0 */
    const char *unit;         /* "minimum", "auto", or a unit */
    const char *sample_index; /* number or name of a sample type; none: the
                               * profile's default, else its last */
    /* Regular expressions over function, file and mapping names. */
    const char *focus;      /* only samples with a match */
    const char *ignore;     /* no samples with a match */
    const char *hide;       /* no matching frames */
    const char *show;       /* only matching frames */
    const char *show_from;  /* nothing above the highest match */
    const char *prune_from; /* nothing below the lowest match */
    /* Labels: regular expressions, numeric ranges ("16kb:4mb"), "key=..." */
    const char *tagfocus;
    const char *tagignore;
    /* Label keys: regular expressions. */
    const char *tagshow;
    const char *taghide;
    /* Label keys, parted by commas, that become frames. */
    const char *tagroot;
    const char *tagleaf;
    /* Source files: prefixes to cut, parted by colons; where to look. */
    const char *trim_path;
    const char *source_path;
    /* A regular expression over names, that PEEK, LIST and DISASM ask for;
     * for DISASM an address, too. */
    const char *symbol;
    /* Where programs of binutils are: "objdump:DIR,nm:DIR,DIR"; then PATH. */
    const char *tools;
    /* Told of what the user may want to know: an expression that matched
     * nothing. May be NULL. */
    void (*warn)(void *ctx, const char *line);
    void *ctx; /* of warn */
};

/* Every member, in the order of the struct: C++ before C++20 has no other way,
 * and compilers warn of members that are missing. */
#define PPROF_REPORT_DEFAULTS                                                  \
    {                                                                          \
        sizeof(struct pprof_report_options), PPROF_REPORT_FUNCTIONS, 0,        \
            -1 /* nodecount */, 0.005 /* nodefraction */,                      \
            0.001 /* edgefraction */, 1.0 /* divide_by */,                     \
            "minimum" /* unit */, NULL, NULL, NULL, NULL, NULL, NULL, NULL,    \
            NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,  \
            NULL                                                               \
    }

/*
 * Write a report. The filters are applied to the profile itself: make another
 * report of the same profile only with the same ones.
 *
 * options  NULL for PPROF_REPORT_DEFAULTS.
 * writer   receives the report.
 * error    filled on failure; may be NULL.
 *
 * Shape:   TOP: heading lines, a line of column names, a line for each node
 *          with flat, flat%, sum%, cum, cum%, name; largest first.
 *          TAGS: a block for each label key, in the order of their names: its
 *          sum, then a line for each of its values, largest sum first; an
 *          empty line behind it. Percentages are of all samples.
 *          COMMENTS: also those that TOP leaves out, which begin with #.
 *          RAW, PROTO: what the filters leave, with every location and number;
 *          granularity and the options of graphs do not matter, noinlines
 *          does. divide_by is for PROTO.
 *          TOPPROTO: a sample of one location for each line of TOP, in its
 *          order, with the values cum and flat.
 * Units:   of the sample type, scaled as options->unit says; RAW and PROTO as
 *          they are in the profile.
 * Errors:  CPPROF_INVALID (an option), CPPROF_BAD_DATA (a regular expression,
 *          a sample type the profile does not have), CPPROF_SYSTEM (a write
 *          failed), CPPROF_NOMEM.
 * Owner:   the writer is closed by this call, whatever happens.
 * Safety:  OBJ. Reads TZ for the time in the heading.
 * Source:  internal/report, internal/graph, internal/driver.
 */
CPPROF_API enum cpprof_status
pprof_report_write(struct pprof_profile *profile,
                   const struct cpprof_writer *writer,
                   enum pprof_report_format format,
                   const struct pprof_report_options *options,
                   struct cpprof_error *error);

/* pprof_report_write() to the file at path, in one call: with a writer of
 * cpprof_writer_to_path(), whose errors come too. Safety: as that. */
CPPROF_API enum cpprof_status
pprof_report_write_to_path(struct pprof_profile *profile, const char *path,
                           enum pprof_report_format format,
                           const struct pprof_report_options *options,
                           struct cpprof_error *error);

#ifdef __cplusplus
}
#endif

#endif
