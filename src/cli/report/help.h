/* SPDX-License-Identifier: MIT */
/*
 * Help: in the shell on a command or an option; on the command line by topic,
 * or on a flag.
 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* ------------------------------------------------------- of the shell ---- */

/* Print what a command or an option is, "" for a list of all. Returns false,
 * and prints nothing, when there is no such word. */
bool
cpprof__help_word(FILE *out, const char *word);

/* The name of command i, in their order; NULL behind the last. */
const char *
cpprof__help_command(size_t i);

/* ------------------------------------------------- of the command line ---- */

/* What help says of a flag; "" where it does not. */
const char *
cpprof__help_flag_text(const char *name);

/* Print every flag of reports, with a line for each. */
void
cpprof__help_all_flags(void);

/* --------------------------------------------------------- the words ---- */

/* How a command is used, in the shell. */
enum cpprof__help_use {
    CPPROF__USE_NOTHING,
    CPPROF__USE_TABLE,     /* number, expressions, -cum, file */
    CPPROF__USE_GRAPH,     /* the same without -cum */
    CPPROF__USE_VIEWER,    /* and without a file */
    CPPROF__USE_LIST,      /* functions, expressions */
    CPPROF__USE_LIST_FILE, /* the same and a file */
    CPPROF__USE_PEEK,
    CPPROF__USE_TAGS,
};

struct cpprof__help_command_text {
    const char *name;
    enum cpprof__help_use use;
    const char *text;
};

struct cpprof__help_option_text {
    const char *name;
    const char *text; /* lines; the first is the short one */
};

/* In the order of their names; the last one has none. */
extern const struct cpprof__help_command_text cpprof__help_commands[];
extern const struct cpprof__help_option_text cpprof__help_options[];
/* That the shell does not have. */
extern const struct cpprof__help_option_text cpprof__help_flags[];

#endif
