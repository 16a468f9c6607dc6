/* SPDX-License-Identifier: MIT */
/*
 * `cpprof gate`: has a program become slower? docs/gate.md says what is tested
 * and why.
 *
 *     sources --> model.c --> match.c --> values.c --> judge.c --> print_*.c
 *     profiles    keys, tree  renamed     key x run    verdicts    reports
 *
 * A run is one profile of one side, base or head. A key is what is judged: a
 * function, a label or a package. The tree has the stacks of all runs.
 */
#ifndef CLI_GATE_GATE_H
#define CLI_GATE_GATE_H

#include "base/arena.h"
#include "base/array.h"
#include "base/hash.h"
#include "cli/report/report.h"

#include <cpprof/pprof/profile.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Exit statuses; there is no verdict, too, when something is wrong. */
#define CPPROF__GATE_PASS         0
#define CPPROF__GATE_FAIL         1
#define CPPROF__GATE_INCONCLUSIVE 2

#define CPPROF__GATE_NONE UINT32_MAX

/* Of more further runs it is said that no number would decide. */
#define CPPROF__GATE_MOST_RUNS 10000

/* Bytes of a name that people are shown: of templates it is long. */
#define CPPROF__GATE_SHOWN 100

enum cpprof__gate_by {
    CPPROF__GATE_FUNCTION,
    CPPROF__GATE_LABEL,
    CPPROF__GATE_PACKAGE,
};

/* ------------------------------------------------------- flags.c ------- */

struct cpprof__gate_flags {
    struct cpprof__report_flags report; /* how one profile is read */
    const char *fail_over_text, *of, *by_text, *per, *confidence_text;
    const char *smallest_text, *sure_text;
    const char *json, *junit, *markdown, *flamegraph; /* files, or NULL */
    const char *against;
    int last, n_record;
    const char *base_command, *head_command, *rate, *engine;
    bool one_core;
    bool help;

    /* Parsed. */
    double fail_over, alpha, smallest, sure; /* as parts of 1 */
    bool flat;
    enum cpprof__gate_by by;
    const char *label_key; /* the one of -by=label:KEY, or NULL */
    char **base, **head;   /* sources */
    int n_base, n_head;
};

/* Parse; false after printing what is wrong. argv is changed. */
bool
cpprof__gate_parse(int argc, char **argv, struct cpprof__gate_flags *flags);
void
cpprof__gate_flags_free(struct cpprof__gate_flags *flags);

/* ------------------------------------------------------- model.c ------- */

struct cpprof__gate_entry {
    uint32_t node;
    double value;
};

struct cpprof__gate_run {
    char *name; /* of the source, without a password */
    bool is_head;
    double total;
    double work; /* what was done, in units of -per */
    int64_t time_ns, duration_ns;
    CPPROF__ARRAY(struct cpprof__gate_entry) entries;
};

/* A function, label or package. Names are of the model's arena. */
struct cpprof__gate_key {
    const char *name;
    const char *renamed; /* its name in head, if that is another one */
    uint32_t is;         /* the key that it counts as: itself, mostly */
    bool is_judged;      /* false: a frame that only paths show */
    bool is_folded;      /* counts as a part of its callers */
    double base, head;   /* cumulative, of a run, before matching: match.c */
};

/* A key below its callers. A node comes behind its parent. */
struct cpprof__gate_node {
    uint32_t parent; /* or CPPROF__GATE_NONE */
    uint32_t key;
    double base, head; /* means of a run, with all below; values.c */
};

struct cpprof__gate_model {
    const struct cpprof__gate_flags *flags;
    struct cpprof__arena arena;
    CPPROF__ARRAY(struct cpprof__gate_run) runs; /* base, then head */
    size_t n_base, n_head;
    CPPROF__ARRAY(struct cpprof__gate_key) keys;
    CPPROF__ARRAY(struct cpprof__gate_node) nodes;
    struct cpprof__index key_index, node_index;
    char *type, *unit;               /* of the values; NULL: no profile yet */
    int64_t period;                  /* of samples; 0: unknown */
    double quantum;                  /* what one sample adds; 0: unknown */
    struct pprof_merger *mergers[2]; /* sums for a flame graph, or NULL */
};

#define CPPROF__GATE_SAME_RUN "it is the same run as"

/* Add a profile, filtered already, as a run, of which name, is_head and work
 * are known; its name is copied. Without samples it has the value 0, or is
 * CPPROF_BAD_DATA if it may not be empty. A copy of a run is that, too, and the
 * text begins as above. */
enum cpprof_status
cpprof__gate_add(struct cpprof__gate_model *model,
                 const struct pprof_profile *profile,
                 struct cpprof__gate_run run, bool may_be_empty,
                 struct cpprof_error *error);
void
cpprof__gate_model_free(struct cpprof__gate_model *model);

/* ------------------------------------------------------- names.c ------- */

/* How much of the name of a function is without what a compiler adds to clones
 * and parts of it: "f.constprop.0" and "f [clone .cold]" are f. All of it in Go
 * and in scripts, by the file of its source. */
size_t
cpprof__gate_plain_length(const char *name, const char *source);

/* The package of a function: its namespace, the package of Go, the file of a
 * script, else the file of its mapping. Returns its length. */
size_t
cpprof__gate_package(const char *name, const char *source, const char *mapping,
                     const char **package);

/* -------------------------------------------------------- runs.c ------- */

/* Read all sources of both sides. False after printing what is wrong. */
bool
cpprof__gate_read(struct cpprof__gate_model *model);

/* ------------------------------------------------------- match.c ------- */

/* Find functions that only one side has: renamed ones count as one; others as
 * parts of their callers. Errors: CPPROF_NOMEM. */
enum cpprof_status
cpprof__gate_match(struct cpprof__gate_model *model,
                   struct cpprof_error *error);

/* ------------------------------------------------------ values.c ------- */

/* By key and run: [key * n_runs + run]. */
struct cpprof__gate_values {
    double *flat, *cum;
    size_t n_keys, n_runs;
};

/* Count values by key, as work says, and the means of nodes. Errors:
 * CPPROF_NOMEM. */
enum cpprof_status
cpprof__gate_count(struct cpprof__gate_model *model,
                   struct cpprof__gate_values *values,
                   struct cpprof_error *error);
void
cpprof__gate_values_free(struct cpprof__gate_values *values);

/* ------------------------------------------------- statistics.c ------- */

/* Numbers of both sides of one thing: [0] is of base, [1] of head. */
struct cpprof__gate_sides {
    double mean[2];
    double squares[2]; /* sums of them around the mean */
    double n[2];
};
/* The first n_base of x are of base. */
struct cpprof__gate_sides
cpprof__gate_sides(const double *x, size_t n_base, size_t n_head);

/* The variance of a run, if both sides scatter alike. */
double
cpprof__gate_pooled(const struct cpprof__gate_sides *sides);

/* The standard error of the difference of the means, and its degrees of
 * freedom: 0 where a side has one run, of which nobody knows how it scatters. A
 * run scatters as much as is typical, and as the runs of both sides do; or
 * more, where those of its own side do. */
struct cpprof__gate_error {
    double se, df;
};
struct cpprof__gate_error
cpprof__gate_welch(const struct cpprof__gate_sides *sides, double typical);

/* How rare t is: the deviate of the normal distribution that is as rare; 0 of
 * no degrees of freedom. And the t that is as rare as a deviate of 0 or more:
 * HUGE_VAL of no degrees of freedom. */
double
cpprof__gate_rarity(double t, double df);
double
cpprof__gate_t(double z, double df);

/* P(Z > z) of the normal distribution. */
double
cpprof__gate_tail(double z);

/* ------------------------------------------------------ chance.c ------- */

/* The differences that chance makes, in units of cpprof__gate_rarity(). Where
 * one side has more runs and the other scatters more, splits mix what is not
 * alike, and theory is asked, too. */
struct cpprof__gate_chance {
    CPPROF__ARRAY(double) z; /* of all rows and splits, falling */
    size_t n_rows;
    bool is_even;    /* as many runs of both sides */
    size_t n_splits; /* 0: there are too few, the normal distribution tells */
};

/* How many splits there are for so many runs. */
size_t
cpprof__gate_n_splits(size_t n_rows, size_t n_base, size_t n_head);

/* x: [row * runs + run]; typical: see cpprof__gate_welch(), by row. Errors:
 * CPPROF_NOMEM. */
enum cpprof_status
cpprof__gate_chance_make(struct cpprof__gate_chance *chance, const double *x,
                         const double *typical, size_t n_rows, size_t n_base,
                         size_t n_head, struct cpprof_error *error);
void
cpprof__gate_chance_free(struct cpprof__gate_chance *chance);

/* How many rows have z or more where nothing has changed; and the least z of
 * which so many are expected. */
double
cpprof__gate_expected(const struct cpprof__gate_chance *chance, double z);
double
cpprof__gate_limit(const struct cpprof__gate_chance *chance, double n_expected);

/* The z of which P(Z > z) is tail. */
double
cpprof__gate_deviate(double tail);

/* ------------------------------------------------------ factor.c ------- */

/* The speed of the machine in each run, around 1; false without memory. It is
 * not known, and `factor` stays as it is, where *is_relative is false. */
bool
cpprof__gate_factor(const struct cpprof__gate_model *model,
                    const struct cpprof__gate_values *values, double *factor,
                    bool *is_relative);

/* ------------------------------------------------------- judge.c ------- */

/* One judged thing. */
struct cpprof__gate_row {
    uint32_t key;             /* CPPROF__GATE_NONE: the whole */
    int verdict;              /* CPPROF__GATE_PASS, FAIL, INCONCLUSIVE */
    double base, head;        /* means of a run, by work */
    double growth, low, high; /* parts of the base; HUGE_VAL: appeared */
    double of_whole;          /* growth as a part of the whole's base */
    double share;             /* of the whole, the larger side */
    double with_machine;      /* growth before the machine was taken out */
    struct cpprof__gate_sides sides;
    double typical; /* variance of a run; see cpprof__gate_welch() */
    struct cpprof__gate_error error;
    double z;          /* how rare the difference is */
    double p, q;       /* one-sided; q: false discovery rate */
    bool must_be_sure; /* the verdict of all waits for it */
    double n_further;  /* runs of the smaller side; 0: it is decided */
    bool is_proven;
    uint32_t because; /* the row of a callee that its growth comes from; NONE */
    uint32_t node;    /* where most of its growth is; NONE */
};

struct cpprof__gate_result {
    CPPROF__ARRAY(struct cpprof__gate_row) rows; /* the whole, then by growth */
    int verdict;
    double n_further; /* HUGE_VAL: no number would do */
    bool is_relative; /* compared with the rest of the program */
    bool has_whole;
    double least_sure;           /* functions of that share must be sure */
    size_t n_tested;             /* functions */
    size_t n_splits;             /* 0: Welch's test */
    CPPROF__ARRAY(char *) notes; /* lines for people */
};

enum cpprof_status
cpprof__gate_judge(const struct cpprof__gate_model *model,
                   const struct cpprof__gate_values *values,
                   struct cpprof__gate_result *result,
                   struct cpprof_error *error);
void
cpprof__gate_result_free(struct cpprof__gate_result *result);

/* Append a line for people. */
void
cpprof__gate_note(struct cpprof__gate_result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ------------------------------------------------------- blame.c ------- */

/* Fill `because` and `node` of the rows that fail, `node` of the whole. */
void
cpprof__gate_blame(const struct cpprof__gate_model *model,
                   struct cpprof__gate_result *result);

/* The call path to a row's node and to what is new below it, from the root:
 * "main > parse > ...", each name cut to max_name bytes. "" where there is
 * none. */
void
cpprof__gate_path(const struct cpprof__gate_model *model,
                  const struct cpprof__gate_row *row, int max_name,
                  struct cpprof__buffer *out);

/* ------------------------------------------------------- print.c ------- */

/* What all reports say in the same words. */
const char *
cpprof__gate_word(int verdict);
const char *
cpprof__gate_name(const struct cpprof__gate_model *model,
                  const struct cpprof__gate_row *row);
/* "+5.1 %", "new", "gone". */
void
cpprof__gate_percent(double part, char *out, size_t size);
/* A mean in its unit, by work. */
void
cpprof__gate_amount(const struct cpprof__gate_model *model, double value,
                    char *out, size_t size);
/* "function", "label", "package". */
const char *
cpprof__gate_by_word(const struct cpprof__gate_model *model);
/* What was compared with what, in one line. */
void
cpprof__gate_setting(const struct cpprof__gate_model *model,
                     const struct cpprof__gate_result *result,
                     struct cpprof__buffer *out);
/* Why the verdict of all is what it is, in one line. */
void
cpprof__gate_summary(const struct cpprof__gate_model *model,
                     const struct cpprof__gate_result *result,
                     struct cpprof__buffer *out);
/* Why a row has its verdict, in one line. */
void
cpprof__gate_reason(const struct cpprof__gate_model *model,
                    const struct cpprof__gate_row *row,
                    struct cpprof__buffer *out);

/* Write one report to a buffer. */
void
cpprof__gate_text(const struct cpprof__gate_model *model,
                  const struct cpprof__gate_result *result,
                  struct cpprof__buffer *out);
void
cpprof__gate_json(const struct cpprof__gate_model *model,
                  const struct cpprof__gate_result *result,
                  struct cpprof__buffer *out);
void
cpprof__gate_junit(const struct cpprof__gate_model *model,
                   const struct cpprof__gate_result *result,
                   struct cpprof__buffer *out);
void
cpprof__gate_markdown(const struct cpprof__gate_model *model,
                      const struct cpprof__gate_result *result,
                      struct cpprof__buffer *out);

/* Write the flame graph of the difference. False after printing why not. */
bool
cpprof__gate_flame(struct cpprof__gate_model *model, const char *path);

/* ------------------------------------------------------ folder.c ------- */

/* Make a private folder with one for each side, which a signal removes. False
 * after printing why there is none. */
bool
cpprof__gate_folder_make(void);
/* Remove it; end by the signal that a recorder got, if any. */
void
cpprof__gate_folder_remove(void);

/* The folder of base (0), of head (1), of what is in neither. */
#define CPPROF__GATE_OTHERS 2
const char *
cpprof__gate_folder(int which);
/* The same as a list of one source. */
char **
cpprof__gate_folder_source(bool is_head);

/* fork() and waitpid() for a process that is ended when a signal ends us.
 * Waiting returns one that came, or 0. */
pid_t
cpprof__gate_fork(void);
int
cpprof__gate_wait(pid_t pid, int *status);

/* ------------------------------------------- record.c, against.c, query.c
 * ------- */

/* Record both commands in turn into the folder, of which files are the sources
 * then. */
bool
cpprof__gate_record(struct cpprof__gate_flags *flags);

/* -against is a URL with a query: ask for base. */
bool
cpprof__gate_query(struct cpprof__gate_flags *flags);

/* The last files of the folder of -against become the sources of base, or the
 * windows of a query. */
bool
cpprof__gate_against(struct cpprof__gate_flags *flags);
void
cpprof__gate_against_free(void);

#endif
