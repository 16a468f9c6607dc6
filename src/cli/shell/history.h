/* SPDX-License-Identifier: MIT */
/* The lines that were typed into shells before. */
#ifndef CLI_SHELL_HISTORY_H
#define CLI_SHELL_HISTORY_H

/* How many lines are kept. A file with twice as many is cut. */
#define CPPROF__HISTORY_LINES 1000

/* Call add for each line, the oldest first. Without a file there are none. */
void
cpprof__history_load(void (*add)(void *ctx, const char *line), void *ctx);

/* Keep a line. If it cannot be written nothing is reported. */
void
cpprof__history_add(const char *line);

#endif
