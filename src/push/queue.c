/* SPDX-License-Identifier: MIT */
/*
 * The queue between the thread that makes profiles and the thread that sends
 * them, guarded by one lock.
 *
 * Items are linked, oldest first. Putting one in drops the oldest until all
 * fit into the bound, but never the one that is being sent: it was taken out,
 * and its bytes still count until it is done.
 */
#include "push/queue.h"

#include "own/memory.h"

#include <stdlib.h>
#include <string.h>

void
cpprof__push_message_free(struct cpprof__push_message *message)
{
    if (!message)
        return;
    cpprof__free(message->url);
    cpprof__buffer_free(&message->body);
    cpprof__free(message);
}

/* Reserved at once, so that the buffer does not grow to twice the size. */
struct cpprof__push_part *
cpprof__push_part_make(const void *data, size_t n, uint64_t room_ns)
{
    struct cpprof__push_part *part = cpprof__calloc(1, sizeof *part);

    if (!part)
        return NULL;
    part->room_ns = room_ns;
    cpprof__buffer_reserve(&part->body, n);
    cpprof__buffer_append(&part->body, data, n);
    if (!part->body.failed)
        return part;
    cpprof__free(part);
    return NULL;
}

void
cpprof__push_item_drop_first(struct cpprof__push_item *item)
{
    struct cpprof__push_part *part = item->parts;

    cpprof__push_message_free(item->request);
    item->request = NULL;
    item->parts = part->next;
    cpprof__buffer_free(&part->body);
    cpprof__free(part);
}

void
cpprof__push_item_free(struct cpprof__push_item *item)
{
    if (!item)
        return;
    while (item->parts)
        cpprof__push_item_drop_first(item);
    cpprof__push_message_free(item->request);
    cpprof__free(item);
}

static void
free_all(struct cpprof__push_item *item)
{
    while (item) {
        struct cpprof__push_item *next = item->next;

        cpprof__push_item_free(item);
        item = next;
    }
}

/* Give back what was reserved and not needed. */
static void
measure(struct cpprof__push_item *item)
{
    struct cpprof__buffer *body = &item->parts->body;
    uint8_t *data = cpprof__realloc(body->data, body->n);

    if (data) {
        body->data = data;
        body->capacity = body->n;
    }
    item->n_bytes = sizeof *item + sizeof *item->parts + body->capacity;
}

/* The caller holds the lock. */
static struct cpprof__push_item *
unlink_first(struct cpprof__push_queue *queue)
{
    struct cpprof__push_item *item = queue->first;

    if (!item)
        return NULL;
    queue->first = item->next;
    if (!queue->first)
        queue->last = NULL;
    item->next = NULL;
    return item;
}

/* Take the oldest out until there is room. The caller holds the lock. */
static struct cpprof__push_item *
make_room(struct cpprof__push_queue *queue, size_t n_bytes)
{
    struct cpprof__push_item *gone = NULL, *item;

    while (queue->n_bytes + n_bytes > queue->max_bytes &&
           (item = unlink_first(queue))) {
        queue->n_bytes -= item->n_bytes;
        queue->n_dropped++;
        item->next = gone;
        gone = item;
    }
    return gone;
}

void
cpprof__push_queue_put(struct cpprof__push_queue *queue,
                       struct cpprof__push_item *item)
{
    struct cpprof__push_item *gone = NULL;

    measure(item);
    cpprof__own_lock_take(&queue->lock);
    if (queue->n_taken + item->n_bytes <= queue->max_bytes)
        gone = make_room(queue, item->n_bytes);
    if (queue->n_bytes + item->n_bytes > queue->max_bytes) {
        queue->n_dropped++;
        item->next = gone;
        gone = item;
    } else {
        queue->n_bytes += item->n_bytes;
        if (queue->last)
            queue->last->next = item;
        else
            queue->first = item;
        queue->last = item;
    }
    cpprof__own_lock_give(&queue->lock);
    free_all(gone);
}

struct cpprof__push_item *
cpprof__push_queue_take(struct cpprof__push_queue *queue)
{
    struct cpprof__push_item *item;

    cpprof__own_lock_take(&queue->lock);
    item = unlink_first(queue);
    if (item)
        queue->n_taken += item->n_bytes;
    cpprof__own_lock_give(&queue->lock);
    return item;
}

void
cpprof__push_queue_done(struct cpprof__push_queue *queue,
                        struct cpprof__push_item *item, bool was_sent)
{
    cpprof__own_lock_take(&queue->lock);
    queue->n_bytes -= item->n_bytes;
    queue->n_taken -= item->n_bytes;
    queue->n_dropped += !was_sent;
    cpprof__own_lock_give(&queue->lock);
    cpprof__push_item_free(item);
}

void
cpprof__push_queue_lose(struct cpprof__push_queue *queue)
{
    cpprof__own_lock_take(&queue->lock);
    queue->n_dropped++;
    cpprof__own_lock_give(&queue->lock);
}

uint64_t
cpprof__push_queue_dropped(struct cpprof__push_queue *queue, bool forget)
{
    uint64_t n;

    cpprof__own_lock_take(&queue->lock);
    n = queue->n_dropped;
    if (forget)
        queue->n_dropped = 0;
    cpprof__own_lock_give(&queue->lock);
    return n;
}

void
cpprof__push_queue_clear(struct cpprof__push_queue *queue)
{
    struct cpprof__push_item *all, *item;

    cpprof__own_lock_take(&queue->lock);
    all = queue->first;
    queue->first = queue->last = NULL;
    queue->n_bytes = queue->n_taken;
    for (item = all; item; item = item->next)
        queue->n_dropped++;
    cpprof__own_lock_give(&queue->lock);
    free_all(all);
}
