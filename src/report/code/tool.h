/* SPDX-License-Identifier: MIT */
/*
 * Programs that reports ask: objdump and nm. They are run without a
 * shell, and neither for ever nor for any amount of output.
 */
#ifndef REPORT_TOOL_H
#define REPORT_TOOL_H

#include "base/buffer.h"
#include <cpprof/status.h>

/*
 * Find the first of several programs, of which each does: in the folders that
 * the option -tools, "nm:DIR,DIR", gives for tool `of` or for all, else on
 * PATH. The names end with NULL. Appends its path, terminated; false when there
 * is none (or no memory: then path->failed).
 */
bool
cpprof__tool_find(const char *tools, const char *of, const char *const *names,
                  struct cpprof__buffer *path);

struct cpprof__tool_run {
    const char *const *words;           /* argv; the first is the path */
    const struct cpprof__buffer *input; /* or NULL */
    size_t most_bytes;                  /* of output */
    int timeout_s;
};

/*
 * Run it and append what it prints on its standard output. Its messages are
 * dropped.
 *
 * Errors: CPPROF_SYSTEM "[WORDS]: exit status 1", or what else failed;
 *         CPPROF_LIMIT it took too long or printed too much; CPPROF_NOMEM.
 */
enum cpprof_status
cpprof__tool_run(const struct cpprof__tool_run *run, struct cpprof__buffer *out,
                 struct cpprof_error *error);

/* A file name that no program takes for an option or a list of options, made
 * of a terminated one: appended, terminated. */
void
cpprof__tool_file(const char *path, struct cpprof__buffer *out);

#endif
