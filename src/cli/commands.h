/* SPDX-License-Identifier: MIT */
/*
 * The commands, and where main.c leaves for the folders below this one. Each is
 * defined in its folder; the folders include this one, never the other way.
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include <stdbool.h>

/*
 * Each gets the words from its own name on (argv[0]) and returns the exit
 * status of the program.
 */
int
cpprof__cli_record(int argc, char **argv);
int
cpprof__cli_leaks(int argc, char **argv);
int
cpprof__cli_convert(int argc, char **argv);
/* A report whose format is argv[0], "top"; or "merge". */
int
cpprof__cli_report(int argc, char **argv);
/* A report whose format is among the flags; argv[0] is the program. */
int
cpprof__cli_flag_report(int argc, char **argv);

/* Is it the name of a format of reports? */
bool
cpprof__cli_is_report(const char *word);

struct cpprof_pprof;
struct cpprof__report_flags;

/* Run the shell until `quit` or the end of its input. Returns the exit status
 * of the program. */
int
cpprof__shell(struct cpprof_pprof *profile,
              const struct cpprof__report_flags *words);

/* The text of `cpprof help report`. */
void
cpprof__cli_report_help(void);

/* On a topic, or on a flag of reports; false when it is none. */
bool
cpprof__help_topic(const char *word);
bool
cpprof__help_flag(const char *name);

/* A line for each topic. */
void
cpprof__help_topics(void);

#endif
