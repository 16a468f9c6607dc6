/* SPDX-License-Identifier: MIT */
/*
 * Requests that wait for the server. Their memory, including the one that is
 * being sent, is bounded: the oldest are dropped for the newest.
 */
#ifndef PUSH_QUEUE_H
#define PUSH_QUEUE_H

#include "base/buffer.h"
#include "collect/runtime/own_lock.h"

struct cpprof__push_item {
    struct cpprof__push_item *next;
    size_t n_bytes; /* of memory; set by put */
    char *url;
    char type[96]; /* Content-Type */
    bool is_raw;   /* body is a profile that is not OTLP yet */
    struct cpprof__buffer body;
};

struct cpprof__push_queue {
    struct cpprof__own_lock lock;
    struct cpprof__push_item *first, *last;
    size_t n_bytes; /* of those in here and those taken */
    size_t n_taken; /* of those taken */
    size_t max_bytes;
    uint64_t n_dropped; /* since they were forgotten */
};

void
cpprof__push_item_free(struct cpprof__push_item *item);

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

/* How many were dropped; forget: the next call counts from here. */
uint64_t
cpprof__push_queue_dropped(struct cpprof__push_queue *queue, bool forget);

void
cpprof__push_queue_clear(struct cpprof__push_queue *queue);

#endif
