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

/* What names can be had: NONE, where the loader has to be asked and a thread is
 * stuck in it, or it has not answered within some seconds. To be asked for
 * before others than sentences are written. */
enum cpprof_symbolize
cpprof__stuck_names(const struct cpprof__stuck *stuck,
                    enum cpprof_symbolize wanted);

/* In a child made by fork. */
void
cpprof__stuck_names_in_child(void);

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
