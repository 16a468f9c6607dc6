/* SPDX-License-Identifier: MIT */
/*
 * The block and the mutex profile: what the tables of waits hold, as records,
 * and as the text that contention profiles have.
 */
#ifndef COLLECT_BLOCK_PROFILE_H
#define COLLECT_BLOCK_PROFILE_H

#include "collect/encode/records_profile.h"
#include "collect/signal/waits/wait_buckets.h"

/* Values of a record: contentions, delay in nanoseconds. */
extern const struct cpprof__records_form cpprof__block_form;
extern const struct cpprof__records_form cpprof__mutex_form;

/*
 * The records of one of the profiles; what found no room has the frame "[lost
 * samples]" as its stack, when lost is its number in the tree.
 *
 * Errors:  CPPROF_NOMEM.
 * Owner:   *records is the caller's, from malloc.
 */
enum cpprof_status
cpprof__block_records(const struct cpprof__waits *waits,
                      enum cpprof__wait_profile profile, uint32_t lost,
                      struct cpprof__stack_record **records, size_t *n,
                      struct cpprof_error *error);

#endif
