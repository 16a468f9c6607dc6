/* SPDX-License-Identifier: MIT */
/* Help in the shell on a command or an option; cli/commands.h has the calls for
 * the command line. */
#ifndef CLI_REPORT_HELP_H
#define CLI_REPORT_HELP_H

#include <stdbool.h>
#include <stdio.h>

/* Print what a command or an option is, "" for a list of all. Returns false,
 * and prints nothing, when there is no such word. */
bool
cpprof__help_word(FILE *out, const char *word);

#endif
