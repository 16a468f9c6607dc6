/* SPDX-License-Identifier: MIT */
/* The lines that were typed into shells before. */
#ifndef CLI_SHELL_HISTORY_H
#define CLI_SHELL_HISTORY_H

/* How many are kept. A file of twice as many is cut down. */
#define CPPROF__HISTORY_LINES 1000

/* Call add for each, the oldest first. Without a file there are none. */
void
cpprof__history_load(void (*add)(void *ctx, const char *line), void *ctx);

/* Keep one. A history that cannot be written is none, and nobody is told. */
void
cpprof__history_add(const char *line);

#endif
