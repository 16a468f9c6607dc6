/* SPDX-License-Identifier: MIT */
/* Who is stuck, as sentences. */
#ifndef COLLECT_STUCK_TEXT_H
#define COLLECT_STUCK_TEXT_H

#include "base/buffer.h"
#include "collect/stuck/stuck.h"
#include <cpprof/options.h>
#include <cpprof/writer.h>

/* "deadlock", "holder ended", "behind", "suspicion" */
const char *
cpprof__stuck_verdict_name(enum cpprof__stuck_verdict verdict);

/* What was found, a paragraph for each cycle; needs no name of a function, so
 * nothing of the loader. */
void
cpprof__stuck_put_sentences(struct cpprof__buffer *out,
                            const struct cpprof__stuck *stuck);

/* The stacks of all who are in it, without a sentence. This call closes the
 * writer. */
enum cpprof_status
cpprof__stuck_write_stacks(const struct cpprof__stuck *stuck,
                           enum cpprof_symbolize symbolize,
                           struct cpprof_writer writer,
                           struct cpprof_error *error);

/* The same, then the stacks of all who are in it. This call closes the writer.
 */
enum cpprof_status
cpprof__stuck_write_text(const struct cpprof__stuck *stuck,
                         enum cpprof_symbolize symbolize,
                         struct cpprof_writer writer,
                         struct cpprof_error *error);

#endif
