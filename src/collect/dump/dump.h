/* SPDX-License-Identifier: MIT */
/*
 * The stacks of all threads at one moment. Who sleeps is read from outside
 * (blocked_thread.h). Every other thread is asked at once, by the sampling
 * signal, and answers in its handler (signal/sample/dump.h). A thread that
 * cannot answer is listed too, with what /proc says of it.
 */
#ifndef COLLECT_DUMP_H
#define COLLECT_DUMP_H

#include "collect/dump/blocked_thread.h"
#include "collect/encode/source.h"
#include "collect/signal/sample/dump.h"
#include "collect/threads/tasks.h"
#include "collect/threads/thread_creation.h"
#include <cpprof/profiles.h>

#include <stdbool.h>

enum cpprof__dump_how {
    CPPROF__DUMP_HAS_STACK,
    CPPROF__DUMP_UNREADABLE, /* it sleeps, and cannot be read from outside */
    CPPROF__DUMP_SILENT,     /* it did not answer in time */
    CPPROF__DUMP_GONE,       /* it ended meanwhile: not in the result */
};

struct cpprof__dump_thread {
    int32_t tid;
    uint32_t stack;  /* always a node; made up if there was no answer */
    uint32_t labels; /* cpprof__label_set_number(), or 0 */
    enum cpprof__dump_how how;
    struct cpprof__task task; /* before it was asked */
    struct cpprof__dump_wait wait;
    /* With details: */
    char wchan[40];
    uint64_t idle_ns; /* time since it last ran, if it sleeps; 0: not known */
};

struct cpprof__dump {
    struct cpprof__dump_thread *threads; /* by tid */
    size_t n;
    struct cpprof__creation_info *creations; /* or NULL */
    size_t n_creations;
    int32_t caller; /* tid */
};

struct cpprof__dump_wanted {
    bool details;
    uint32_t depth;  /* frames of a stack, at most */
    uintptr_t above; /* return address: the caller's own stack begins there */
};

/*
 * The stacks are nodes of cpprof__tables.tree. Takes a second at most after
 * the last answer.
 *
 * Errors: CPPROF_NOMEM, CPPROF_SYSTEM.
 */
enum cpprof_status
cpprof__dump_take_all(const struct cpprof__dump_wanted *wanted,
                      struct cpprof__dump *dump, struct cpprof_error *error);

void
cpprof__dump_free(struct cpprof__dump *dump);

/* As text, in the shape of Go's; the calling thread comes first, then the
 * others by tid. This call closes the writer. */
enum cpprof_status
cpprof__dump_write_text(const struct cpprof__dump *dump,
                        enum cpprof_symbolize symbolize,
                        struct cpprof_writer writer,
                        struct cpprof_error *error);

/* Of such a text: a stack of the tables, a frame in two lines. */
void
cpprof__dump_put_stack(struct cpprof__source_profile *profile, uint32_t stack);

/* ---- asking, for the wall profile too --------------------------------- */

/* Make the tables: enough to read threads from outside. */
enum cpprof_status
cpprof__dump_start_reading(struct cpprof_error *error);
/* And install the handler. */
enum cpprof_status
cpprof__dump_start(struct cpprof_error *error);

/* Make slots until there are n. One caller at a time for each user. */
bool
cpprof__dump_make_slots(enum cpprof__dump_user user, uint32_t n);

/* Send the question of a slot, or send it again: 0 or an errno, ESRCH when the
 * thread is gone. */
int
cpprof__dump_send(enum cpprof__dump_user user, uint32_t index, int32_t tid);

/* The stack of a thread that does not answer: its start routine, and at the
 * leaf a frame of our own (builder.h). */
uint32_t
cpprof__dump_made_up(uintptr_t frame, uintptr_t start);

void
cpprof__dump_in_child(void);

#endif
