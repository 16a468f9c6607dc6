/* SPDX-License-Identifier: MIT */
/*
 * Help: in the shell on a command or an option, in the words and the layout of
 * the reference; on the command line by topic.
 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* ------------------------------------------------------- of the shell ---- */

/* Print on stderr what a command or an option is, "" for a list of all.
 * Returns false, and prints nothing, when there is no such word. */
bool
cpprof__help_word(const char *word);

/* The name of command i, in their order; NULL behind the last. */
const char *
cpprof__help_command(size_t i);

/* ------------------------------------------------- of the command line ---- */

/* Print what `cpprof help WORD` says: on a topic, or on a command or option of
 * reports. Returns false when there is no such topic. */
bool
cpprof__help_topic(const char *word);

/* Print the names of the topics, with a line for each. */
void
cpprof__help_topics(void);

/* --------------------------------------------------------- the words ---- */

/* How a command is used, in the shell. */
enum cpprof__help_use {
    CPPROF__USE_NOTHING,
    CPPROF__USE_TABLE,     /* [n] [focus]* [-ignore]* [-cum] >f */
    CPPROF__USE_GRAPH,     /* the same without -cum */
    CPPROF__USE_VIEWER,    /* and without >f */
    CPPROF__USE_LIST,      /* <func> [-focus]* [-ignore]* */
    CPPROF__USE_LIST_FILE, /* the same and >f */
    CPPROF__USE_PEEK,
    CPPROF__USE_TAGS,
};

struct cpprof__help_command_words {
    const char *name;
    enum cpprof__help_use use;
    const char *text;
};

struct cpprof__help_option_words {
    const char *name;
    const char *text; /* lines; the first is the short one */
};

/* In the order of their names; the last one has none. */
extern const struct cpprof__help_command_words cpprof__help_commands[];
extern const struct cpprof__help_option_words cpprof__help_options[];

#endif
