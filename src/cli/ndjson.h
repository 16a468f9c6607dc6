/* SPDX-License-Identifier: MIT */
/*
 * Samples and stacks as lines of JSON, for engines of SQL (docs/sql.md): one
 * profile after another, of which nothing is kept.
 */
#ifndef CLI_NDJSON_H
#define CLI_NDJSON_H

#include <cpprof/pprof/profile.h>
#include <cpprof/writer.h>

struct cpprof__ndjson;

/* labels: "key=value,key=value", of all samples; NULL: none. Takes the writer.
 * NULL: no memory, the writer is closed. */
struct cpprof__ndjson *
cpprof__ndjson_make(const struct cpprof_writer *writer, const char *labels);

/* The lines of a profile that came from `source`.
 *
 * Errors:  CPPROF_SYSTEM, CPPROF_NOMEM. */
enum cpprof_status
cpprof__ndjson_add(struct cpprof__ndjson *n, const struct pprof_profile *p,
                   const char *source, struct cpprof_error *error);

/* Write the rest and free it; failed: what was written is of no use. */
enum cpprof_status
cpprof__ndjson_end(struct cpprof__ndjson *n, bool failed,
                   struct cpprof_error *error);

#endif
