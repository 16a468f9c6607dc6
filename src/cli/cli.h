/* SPDX-License-Identifier: MIT */
/* What the commands share. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>

/* Exit statuses: of the reference, and of nearly every other tool. */
#define CPPROF__EXIT_OK    0
#define CPPROF__EXIT_ERROR 2

/* ------------------------------------------------------------ errors ---- */

/* Print "cpprof: TEXT" on stderr, as one line; returns CPPROF__EXIT_ERROR. */
int
cpprof__cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print "cpprof: TEXT" on stderr, and go on. */
void
cpprof__cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What stands in front of the text of both, instead of "cpprof: ". */
void
cpprof__cli_prefix(const char *text);

/* ------------------------------------------------------------- flags ---- */

enum cpprof__flag_kind {
    CPPROF__FLAG_BOOL,   /* bool; -x, -x=false */
    CPPROF__FLAG_INT,    /* int */
    CPPROF__FLAG_DOUBLE, /* double */
    CPPROF__FLAG_STRING, /* const char *, a part of argv */
    CPPROF__FLAG_LIST,   /* struct cpprof__flag_list: given several times */
};

/* Parts of argv, without empty ones. The array is to be freed. */
struct cpprof__flag_list {
    char **at;
    int n;
};

/* A flag and where its value goes. A table of them ends with {0}. */
struct cpprof__flag {
    const char *name;
    enum cpprof__flag_kind kind;
    void *value;
};

/*
 * Parse argv[1], ... as Go's package flag does: -x, --x, -x=v, -x v; the first
 * word that is no flag ends them, and so does "--". *n_used is the index of
 * the first word behind the flags.
 *
 * Returns false after printing what is wrong; *help is set for -h and -help,
 * unless they are in the table.
 */
bool
cpprof__cli_flags(int argc, char **argv, const struct cpprof__flag *flags,
                  int *n_used, bool *help);

/*
 * The same for commands whose words may stand anywhere: flags are taken from
 * among them, until "--". A lone "-" is a word. The words are moved to argv[1],
 * ..., argv[*n_words].
 */
bool
cpprof__cli_flags_among_words(int argc, char **argv,
                              const struct cpprof__flag *flags, int *n_words,
                              bool *help);

#endif
