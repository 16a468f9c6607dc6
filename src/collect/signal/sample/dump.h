/* SPDX-License-Identifier: MIT */
/*
 * A thread is asked for its stack by the sampling signal with a value of ours
 * (question_timer.h), and answers into a slot that was made before.
 *
 * A slot is one word that only compare-and-swap changes:
 *
 *   free -> asked      by who asks, with a new sequence number
 *   asked -> taken     by the handler; no room to walk: back to asked
 *   taken -> answered  by the handler, with the answer in the same word
 *   any -> free        by who asks, when it has the answer or gives up
 *
 * So a handler that comes late, or is held up in the middle, finds another
 * word than it left and writes nowhere. Slots are never taken away.
 */
#ifndef COLLECT_SIGNAL_DUMP_H
#define COLLECT_SIGNAL_DUMP_H

#include "collect/signal/tables/stack_tree.h"
#include "collect/signal/tables/thread.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Who asks. */
enum cpprof__dump_user {
    CPPROF__DUMP_ALL,  /* a dump of all threads (collect/dump/dump.c) */
    CPPROF__DUMP_WALL, /* the wall profile (collect/wall/wall.c) */
    CPPROF__DUMP_ASKERS,
    /* It only reads sleeping threads (collect/stuck/stuck.c). */
    CPPROF__DUMP_STUCK = CPPROF__DUMP_ASKERS,
    CPPROF__DUMP_USERS
};

enum cpprof__dump_state {
    CPPROF__DUMP_FREE,
    CPPROF__DUMP_ASKED,
    CPPROF__DUMP_TAKEN,
    CPPROF__DUMP_ANSWERED
};

#define CPPROF__DUMP_PER_CHUNK 1024u
#define CPPROF__DUMP_CHUNKS    (CPPROF__MAX_THREADS / CPPROF__DUMP_PER_CHUNK)

/* Handlers that walk at the same time; others are asked again. What is never
 * used of them is never touched. */
#define CPPROF__DUMP_BUFFERS 64

struct cpprof__dump_slot {
    uint64_t word;
    uint64_t cpu_ns; /* wall: the thread's CPU clock when it answered */
    const struct cpprof__thread_self *self; /* wall: who answered */
    int32_t tid;                            /* who is asked */
    uint32_t place; /* of the question's timer; for who asks */
    uint64_t wait;  /* dump: what it waits for, with the sequence number */
};

/* A wait that the hooks of locks know of (signal/waits/waits.h). */
struct cpprof__dump_wait {
    uint32_t kind;     /* enum cpprof__wait_kind; 0: none */
    uint64_t since_ns; /* CLOCK_MONOTONIC, exact to a microsecond or so */
};

/* An answer. */
struct cpprof__dump_answer {
    uint32_t stack;  /* node of cpprof__tables.tree, 0: no room */
    uint32_t labels; /* cpprof__label_set_number(), or 0 */
};

#pragma GCC visibility push(hidden)
extern struct cpprof__dump_slot
    *cpprof__dump_slots[CPPROF__DUMP_ASKERS][CPPROF__DUMP_CHUNKS];
/* Where stacks go. Set before the first question. */
extern struct cpprof__tree *cpprof__dump_tree;
/* Frames kept of a stack. */
extern uint32_t cpprof__dump_depth[CPPROF__DUMP_USERS];
#pragma GCC visibility pop

/* The slot with that index, or NULL. Safety: AS. */
struct cpprof__dump_slot *
cpprof__dump_slot(enum cpprof__dump_user user, uint32_t index);

/* A question to thread tid, whatever was asked before; returns what its signal
 * carries. It is to be sent. */
uint64_t
cpprof__dump_ask(enum cpprof__dump_user user, uint32_t index, int32_t tid);

/* The value that the last question has. */
uint64_t
cpprof__dump_value(enum cpprof__dump_user user, uint32_t index);

enum cpprof__dump_state
cpprof__dump_state(const struct cpprof__dump_slot *slot);

/* The answer of a slot that has one, which is then free. */
struct cpprof__dump_answer
cpprof__dump_take(struct cpprof__dump_slot *slot);

/* The start of a wait out of the low bits of it that a slot holds. */
uint64_t
cpprof__dump_since_ns(uint64_t stored, uint64_t now_ns);

/* What the thread that answered waits for. Before the answer is taken. */
struct cpprof__dump_wait
cpprof__dump_wait(const struct cpprof__dump_slot *slot);

/* Give up; false: the answer came meanwhile. */
bool
cpprof__dump_give_up(struct cpprof__dump_slot *slot);

/* The handler's part; context is NULL on a thread without libc's thread-local
 * storage. Safety: AS. */
void
cpprof__dump_answer(const siginfo_t *info, const void *context);

/* The caller's own stack, labels included, from its caller on. False: no room
 * to walk. Safety: AS. */
bool
cpprof__dump_own(enum cpprof__dump_user user,
                 struct cpprof__dump_answer *answer);

/* In a forked child: other threads' buffers are free. */
void
cpprof__dump_forked(void);

#endif
