/* SPDX-License-Identifier: MIT */
/*
 * Profiles that wait for the server. Their memory, including the one that is
 * being sent, is bounded: the oldest are dropped for the newest.
 */
#ifndef PUSH_QUEUE_H
#define PUSH_QUEUE_H

#include "base/buffer.h"
#include "collect/runtime/own_lock.h"

/* A profile, or a part of one that is too large for a server. */
struct cpprof__push_part {
    struct cpprof__push_part *next;
    struct cpprof__buffer body; /* gzipped */
    uint64_t room_ns;           /* see plugin.h */
};

/* A profile that waits. A request is made of it when it is sent. */
struct cpprof__push_item {
    struct cpprof__push_item *next;
    size_t n_bytes;                  /* of memory; set by put */
    uint32_t kind;                   /* CPPROF_PUSH_* */
    const char *series;              /* NULL: that of the kind; never freed */
    int64_t from_ns, until_ns;       /* since 1970 */
    struct cpprof__push_part *parts; /* that are left to be sent: all of it */
    bool is_fit;                     /* they are as the server takes them */
    bool has_lost;                   /* one was refused, or a part of it */
    struct cpprof__push_message *request; /* of the first part; NULL: none */
};

struct cpprof__push_queue {
    struct cpprof__own_lock lock;
    struct cpprof__push_item *first, *last;
    size_t n_bytes; /* of those in here and those taken */
    size_t n_taken; /* of those taken */
    size_t max_bytes;
    uint64_t n_dropped; /* since they were forgotten */
};

/* One request. */
struct cpprof__push_message {
    char *url;
    char type[96];       /* Content-Type */
    uint32_t timeout_ms; /* 0: that of profiles */
    bool wants_answer;   /* see plugin.h */
    struct cpprof__buffer body;
};

void
cpprof__push_message_free(struct cpprof__push_message *message);
void
cpprof__push_item_free(struct cpprof__push_item *item);

/* A part of what data is, NULL: no memory; and the end of the first one, and of
 * its request. */
struct cpprof__push_part *
cpprof__push_part_make(const void *data, size_t n, uint64_t room_ns);
void
cpprof__push_item_drop_first(struct cpprof__push_item *item);

/* The queue owns the item, and may drop it. */
void
cpprof__push_queue_put(struct cpprof__push_queue *queue,
                       struct cpprof__push_item *item);

/* The oldest, which is the caller's until it is done with; NULL: none. */
struct cpprof__push_item *
cpprof__push_queue_take(struct cpprof__push_queue *queue);
void
cpprof__push_queue_done(struct cpprof__push_queue *queue,
                        struct cpprof__push_item *item, bool was_sent);

/* Count one that found no way in. */
void
cpprof__push_queue_lose(struct cpprof__push_queue *queue);

/* How many were dropped; forget: the next call counts from here. */
uint64_t
cpprof__push_queue_dropped(struct cpprof__push_queue *queue, bool forget);

/* Drop all that is in it. */
void
cpprof__push_queue_clear(struct cpprof__push_queue *queue);

#endif
