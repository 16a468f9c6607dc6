/* SPDX-License-Identifier: MIT */
/*
 * The state of pushing. It has two own threads: the taker takes profiles every
 * interval; with a server, the sender sends them, so that waiting for the
 * network delays no profile.
 */
#ifndef PUSH_PUSH_H
#define PUSH_PUSH_H

#include "push/budget.h"
#include "push/plan.h"
#include "push/plugin.h"
#include "push/queue.h"
#include "push/request.h"
#include "push/rounds.h"

struct cpprof__push {
    /* Fixed when the threads are made. */
    struct cpprof__push_plan plan;
    int32_t pid;

    /* Shared. */
    uint32_t stop;      /* futex; 1: send what there is, and end */
    uint32_t cancelled; /* 1: the time for that is over */
    uint32_t has_taken; /* 1: nothing more will be queued */
    uint32_t n_queued;  /* futex: changes when something was */
    uint32_t n_running; /* futex: threads */
    uint32_t n_users;   /* threads and who has started them */
    struct cpprof__push_queue queue;
    struct cpprof__own_lock notice_lock;
    char notice[CPPROF__PUSH_LINE_BYTES]; /* "": none; a line that waits to be
                                           * told */

    /* Used by the thread that starts it, and then by the taker. */
    struct cpprof__push_rounds rounds;
    uint64_t end_ns; /* of the round that runs, or of the rest behind it; 0:
                      * none has begun */
    struct cpprof__push_budget budget;
    bool is_resting; /* no round runs */
    bool has_turned; /* one has ended */

    /* Used by the taker, and at the end by the thread that ends it. */
    uint64_t told_ns; /* when a line was told; 0: none */

    /* Used by the sender. */
    const struct cpprof__push_http *http; /* NULL: not loaded */
    struct cpprof__push_item *item;       /* that it sends; NULL: none */
    struct cpprof__buffer resource; /* OTLP; made with the first request */
    size_t most_bytes;              /* that the server may take in a request */
    bool has_told_name;             /* of a profile, which was changed */
    bool is_silent; /* the server did not answer the last request */
};

/* Errors: CPPROF_UNSUPPORTED. */
enum cpprof_status
cpprof__push_load(struct cpprof__push *push, struct cpprof_error *error);

/* The sender, a thread of ours. at_exit: see plugin.h. */
void
cpprof__push_send_all(struct cpprof__push *push, void (*at_exit)(void));

/* Leave a message, which the taker tells if there was none for a minute: the
 * first one that waits, or at the end the last, which is of the last try. Where
 * a function of the program is told, only the taker has the program's
 * descriptors. Safety: MT. */
void
cpprof__push_notice(struct cpprof__push *push, const char *line);

/* Sleep on *word while it is value, for ns at most. */
void
cpprof__push_wait(const uint32_t *word, uint32_t value, uint64_t ns);

#endif
