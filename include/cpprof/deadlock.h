/* SPDX-License-Identifier: MIT */
/*
 * To be told of deadlocks while the program runs: threads that wait for each
 * other's locks or ends, and threads that wait for a lock whose holder has
 * ended. Locks are not hooked; a thread of the library looks a few times a
 * second.
 *
 *     cpprof_deadlock_start(NULL, NULL);      // on standard error
 *
 * CPPROF=deadlock=report and deadlock=abort do the same without code.
 * docs/leaks.md
 */
#ifndef CPPROF_DEADLOCK_H
#define CPPROF_DEADLOCK_H

#include <stddef.h>
#include <stdint.h>

#include <cpprof/options.h>
#include <cpprof/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What was found. All of it is valid until the callback returns. */
struct cpprof_deadlock {
    size_t size;      /* sizeof (struct cpprof_deadlock) */
    const char *text; /* sentences, then the stacks of all threads in them, as
                       * the profile threadleak with debug=2 */
    const int32_t *tids; /* of the threads that can never go on, ascending */
    size_t n_threads;
    size_t n_cycles; /* 0: the holder of a lock has ended */
};

typedef void (*cpprof_deadlock_told)(const struct cpprof_deadlock *deadlock,
                                     void *ctx);

struct cpprof_deadlock_options {
    size_t size; /* sizeof (struct cpprof_deadlock_options) */
    /* Called on a thread of the library, with all signals blocked, once for
     * what is new. It returns soon, and does not end its thread. It must take
     * no lock that threads of the program may wait for. NULL: the text goes to
     * standard error. */
    cpprof_deadlock_told told;
    void *ctx;
    enum cpprof_symbolize symbolize; /* names in the stacks */
};

/*
 * Look for deadlocks until cpprof_deadlock_stop(). One is told within a second
 * of its making, if the machine has a processor for that. A child made by fork
 * does not go on with it.
 *
 * options  NULL for defaults.
 * error    filled on failure; may be NULL.
 *
 * Errors:  CPPROF_BUSY (it runs already), CPPROF_INVALID, CPPROF_NOMEM,
 *          CPPROF_UNSUPPORTED (threads cannot be read here), CPPROF_SYSTEM (no
 *          thread could be made).
 * Owner:   ctx stays the caller's.
 * Safety:  MT. Not AS.
 * Source:  docs/leaks.md.
 */
CPPROF_API enum cpprof_status
cpprof_deadlock_start(const struct cpprof_deadlock_options *options,
                      struct cpprof_error *error);

/* Look no more. When it returns no callback runs, and none comes; called by the
 * callback, none comes after that one. Harmless when nobody looks. Safety: MT.
 * Not AS. */
CPPROF_API void
cpprof_deadlock_stop(void);

#ifdef __cplusplus
}
#endif

#endif
