/* SPDX-License-Identifier: MIT */
/*
 * The list of threads of ours: what the library asks of it, and what those say
 * that start and end (own_threads.c, keeper.c).
 */
#ifndef COLLECT_OWN_LIST_H
#define COLLECT_OWN_LIST_H

#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- who is one ------------------------------------------------------- */

/* runs: but not one that has said that it ends. */
bool
cpprof__is_own_thread(int32_t tid);
bool
cpprof__own_thread_runs(int32_t tid);

/* CPU time of all that there are and were. */
uint64_t
cpprof__own_list_cpu_ns(void);

/* How many there are. */
uint32_t
cpprof__own_threads(void);

/* The kernel lists a thread before it can say that it is ours: who has read
 * that list lets those settle that are being made, and asks then. */
void
cpprof__own_threads_wait_named(void);

/* ---- for who starts and ends them ------------------------------------- */

/* Before a thread is made; and when it has an entry, or could not be made. */
void
cpprof__own_list_expect(void);
void
cpprof__own_list_expect_no_more(void);

/* The calling thread has begun. pauses: when it is asked to; wake: the futex
 * that it sleeps on, or NULL. */
void
cpprof__own_list_begin(bool pauses, uint32_t *wake);

/* The calling thread is about to end. */
void
cpprof__own_list_end(void);

/* Is there none, not even one that has ended and that the kernel counts still,
 * and is none being made? */
bool
cpprof__own_list_is_empty(void);

/* The same, for the last second. */
bool
cpprof__own_list_was_empty(void);

/* Are all threads that the kernel lists, but the main thread, ours? */
bool
cpprof__own_list_is_all(void);

/* Wake all that are to pause; how many are still there, or will be. */
uint32_t
cpprof__own_list_wake(void);

/* Are there others than the calling thread and that one, as the kernel knows
 * it? 0: than the calling thread alone. */
bool
cpprof__own_list_has_others(int32_t besides);

/* Are there others than the calling thread that we have made, not a library? */
bool
cpprof__own_list_has_others_of_ours(void);

/* In a forked child: none. */
void
cpprof__own_list_in_child(void);

/* The word may be gone: only the kernel looks. */
static inline void
cpprof__futex_wake(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

#endif
