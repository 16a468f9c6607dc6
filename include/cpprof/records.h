/* SPDX-License-Identifier: MIT */
/*
 * What the profiles are made of, as plain arrays: for a program that wants the
 * numbers and no file.
 *
 *     struct cpprof_wait_record *records = NULL;
 *     size_t n = 0, there = 0;
 *
 *     while (!cpprof_block_records(records, n, &there, NULL) && there > n) {
 *         n = there + 50;
 *         records = realloc(records, n * sizeof *records);
 *     }
 *
 * Every call stores how many records there are. When the array is too short
 * for them (n may be 0, and the array NULL) it is left as it is, and the
 * caller comes again with a longer one; there may be more by then.
 */
#ifndef CPPROF_RECORDS_H
#define CPPROF_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cpprof/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Frames of a stack; the rest of a longer one is left out. */
#define CPPROF_RECORD_DEPTH 128

/*
 * A stack: return addresses as backtrace(3) gives them, leaf first, zeros
 * after the last; the address before each lies in the call. Below 32 is no
 * address, but a frame of cpprof's own ("[lost samples]", "[truncated]").
 */
struct cpprof_stack_record {
    uintptr_t stack[CPPROF_RECORD_DEPTH];
};

/* Allocations at one stack, of one size class: what was sampled of them, not
 * scaled up (cpprof_heap_scale_sample() does). */
struct cpprof_alloc_record {
    int64_t alloc_bytes;
    int64_t free_bytes;
    int64_t alloc_objects;
    int64_t free_objects;
    uintptr_t stack[CPPROF_RECORD_DEPTH];
};

/* Waits at one stack (block), or that it made others wait (mutex). */
struct cpprof_wait_record {
    int64_t count;
    int64_t delay_ns;
    uintptr_t stack[CPPROF_RECORD_DEPTH];
};

/*
 * Each stores how many records there are in *n_records, and the records when
 * that is at most n.
 *
 * not_in_use  false leaves out stacks of which nothing is in use.
 *
 * Errors:  CPPROF_NOMEM, CPPROF_UNSUPPORTED (as the profile of that name).
 * Owner:   nothing changes hands.
 * Safety:  MT. Not AS.
 * Source:  Go runtime.MemProfile, BlockProfile, MutexProfile,
 *          ThreadCreateProfile, GoroutineProfile.
 */
CPPROF_API enum cpprof_status
cpprof_heap_records(struct cpprof_alloc_record *records, size_t n,
                    bool not_in_use, size_t *n_records,
                    struct cpprof_error *error);
CPPROF_API enum cpprof_status
cpprof_block_records(struct cpprof_wait_record *records, size_t n,
                     size_t *n_records, struct cpprof_error *error);
CPPROF_API enum cpprof_status
cpprof_mutex_records(struct cpprof_wait_record *records, size_t n,
                     size_t *n_records, struct cpprof_error *error);
CPPROF_API enum cpprof_status
cpprof_threadcreate_records(struct cpprof_stack_record *records, size_t n,
                            size_t *n_records, struct cpprof_error *error);
CPPROF_API enum cpprof_status
cpprof_goroutine_records(struct cpprof_stack_record *records, size_t n,
                         size_t *n_records, struct cpprof_error *error);

#ifdef __cplusplus
}
#endif

#endif
