/* SPDX-License-Identifier: MIT */
/*
 * The thread that sends.
 *
 * It has its own table of descriptors, which begins empty. So the sockets and
 * files that libcurl and the resolver open do not disturb the program, no child
 * inherits them, and a program that closes all its descriptors closes none of
 * them.
 */
#include "push/push.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "base/status.h"
#include "collect/runtime/own_threads.h"
#include "object/plug_in.h"
#include "push/message.h"
#include "push/request.h"
#include "push/resource.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS 1000000ull
#define LOOK_NS   (1000 * NS_PER_MS)

/* A failure that took longer than that: the server is silent rather than not
 * there, and the end of the process does not wait for it again. */
#define SLOW_NS (250 * NS_PER_MS)

/* ---- the plug-in ------------------------------------------------------ */

enum cpprof_status
cpprof__push_load(struct cpprof__push *push, struct cpprof_error *error)
{
    push->http = cpprof__plug_in_load("push", CPPROF__PUSH_SYMBOL,
                                      CPPROF__PUSH_ABI, error);
    return push->http ? CPPROF_OK : CPPROF_UNSUPPORTED;
}

/* ---- one after the other ---------------------------------------------- */

/* PAUSED: the item is kept. */
enum { PAUSED = CPPROF__PUSH_REFUSED + 1 };

/* Where the next request of an item goes. */
struct requests {
    const struct cpprof__push *push;
    const struct cpprof__push_item *item;
    struct cpprof__push_message **end;
};

static bool
add_request(void *ctx, const void *data, size_t n)
{
    struct requests *r = ctx;
    const struct cpprof__push_profile part = {
        r->item->kind, data, n, r->item->from_ns, r->item->until_ns, NULL};

    *r->end = cpprof__push_message(&r->push->plan, &part);
    if (!*r->end)
        return false;
    r->end = &(*r->end)->next;
    return true;
}

/* Make the requests of a profile that waited. */
static bool
make_ready(struct cpprof__push *push, struct cpprof__push_item *item)
{
    struct requests r = {push, item, &item->requests};
    bool is_otlp = push->plan.protocol == CPPROF_PUSH_OTLP;

    if (item->requests)
        return true;
    if (is_otlp && !push->resource.n)
        cpprof__push_resource(&push->plan, &push->resource);
    if (push->resource.failed ||
        !push->http->parts(item->body.data, item->body.n,
                           is_otlp ? (const char *)push->resource.data : NULL,
                           add_request, &r)) {
        cpprof__push_notice(push, "push: a profile is larger than 64 MiB, or "
                                  "there is no memory to send it; dropped");
        return false;
    }
    cpprof__buffer_free(&item->body);
    return true;
}

/* Send n requests once. A server that was silent is given up as soon as the
 * process ends. */
static void
try_once(struct cpprof__push *push, void *connection,
         struct cpprof__push_message *const *messages, unsigned n,
         struct cpprof__push_reply *replies)
{
    uint64_t begin_ns = cpprof__now_ns(CLOCK_MONOTONIC);

    cpprof__push_requests(&push->plan, push->http, connection, messages, n,
                          push->is_silent ? &push->stop : &push->cancelled,
                          replies);
    push->is_silent = !replies->status &&
                      cpprof__now_ns(CLOCK_MONOTONIC) - begin_ns > SLOW_NS;
}

/* What a reply means; what it says is told. */
static unsigned
outcome_of(struct cpprof__push *push, const struct cpprof__push_reply *reply)
{
    unsigned outcome = cpprof__push_outcome(&push->plan, reply->status);
    char line[CPPROF__PUSH_LINE_BYTES];

    if (outcome == CPPROF__PUSH_SENT)
        cpprof__push_say_rejected(&push->plan, reply, line, sizeof line);
    else
        cpprof__push_say(&push->plan, reply,
                         outcome == CPPROF__PUSH_AGAIN ? "trying again"
                                                       : "dropped",
                         line, sizeof line);
    if (*line && !load_acquire(&push->cancelled))
        cpprof__push_notice(push, line);
    return outcome;
}

static bool
is_too_old(struct cpprof__push *push, const struct cpprof__push_item *item)
{
    if (!cpprof__push_is_too_old(&push->plan, item->until_ns,
                                 (int64_t)cpprof__now_ns(CLOCK_REALTIME)))
        return false;
    cpprof__push_notice(push, "push: a profile has waited for an hour "
                              "and is too old for Pyroscope; dropped");
    return true;
}

/* Send a request until it is accepted, refused or too late. At the end each
 * gets one try, and none if the server was silent or unreachable before. */
static unsigned
send_request(struct cpprof__push *push, void *connection,
             const struct cpprof__push_item *item)
{
    struct cpprof__push_reply reply;
    unsigned outcome;
    unsigned n_failures = 0;

    for (;;) {
        if (is_too_old(push, item))
            return CPPROF__PUSH_REFUSED;
        try_once(push, connection, &item->requests, 1, &reply);
        outcome = outcome_of(push, &reply);
        if (outcome != CPPROF__PUSH_AGAIN || load_acquire(&push->stop))
            break;
        cpprof__push_wait(
            &push->stop, 0,
            cpprof__push_pause_ns(n_failures++, reply.retry_after_s));
        if (cpprof__own_threads_pause_now())
            return PAUSED;
    }
    if (outcome == CPPROF__PUSH_AGAIN)
        store_release(&push->cancelled, 1u);
    return outcome;
}

static void
drop_first_request(struct cpprof__push_item *item)
{
    struct cpprof__push_message *next = item->requests->next;

    cpprof__push_message_free(item->requests);
    item->requests = next;
}

/* Send all of an item. What is sent of it is not sent again after a pause. */
static unsigned
send_one(struct cpprof__push *push, void *connection,
         struct cpprof__push_item *item)
{
    unsigned outcome = CPPROF__PUSH_SENT;

    if (!make_ready(push, item))
        return CPPROF__PUSH_REFUSED;
    while (item->requests) {
        outcome = send_request(push, connection, item);
        if (outcome != CPPROF__PUSH_SENT)
            break;
        drop_first_request(item);
    }
    return outcome;
}

/* ---- at the end ------------------------------------------------------- */

/* Profiles that are sent at the same time. */
struct batch {
    struct cpprof__push_item *items[CPPROF__PUSH_AT_ONCE];
    unsigned n;
};

static void
fill(struct cpprof__push *push, struct batch *batch)
{
    struct cpprof__push_item *item;

    while (
        batch->n < CPPROF__PUSH_AT_ONCE &&
        (push->item || (push->item = cpprof__push_queue_take(&push->queue)))) {
        item = push->item;
        push->item = NULL;
        if (!is_too_old(push, item) && make_ready(push, item))
            batch->items[batch->n++] = item;
        else
            cpprof__push_queue_done(&push->queue, item, false);
    }
}

/* Send a request of each, and keep those that have more. */
static void
send_batch(struct cpprof__push *push, void *connection, struct batch *batch)
{
    struct cpprof__push_message *messages[CPPROF__PUSH_AT_ONCE] = {NULL};
    struct cpprof__push_reply replies[CPPROF__PUSH_AT_ONCE];
    unsigned i, outcome, n = batch->n, n_again = 0;

    for (i = 0; i < n; i++)
        messages[i] = batch->items[i]->requests;
    try_once(push, connection, messages, n, replies);
    for (i = batch->n = 0; i < n; i++) {
        struct cpprof__push_item *item = batch->items[i];

        outcome = outcome_of(push, &replies[i]);
        n_again += outcome == CPPROF__PUSH_AGAIN;
        if (outcome == CPPROF__PUSH_SENT)
            drop_first_request(item);
        if (outcome == CPPROF__PUSH_SENT && item->requests)
            batch->items[batch->n++] = item;
        else
            cpprof__push_queue_done(&push->queue, item,
                                    outcome == CPPROF__PUSH_SENT);
    }
    if (n_again)
        store_release(&push->cancelled, 1u);
}

/* The time is short, and a server may keep each request for half a second. */
static void
send_last(struct cpprof__push *push, void *connection)
{
    struct batch batch = {.n = 0};

    for (;;) {
        fill(push, &batch);
        if (!batch.n || load_acquire(&push->cancelled))
            break;
        send_batch(push, connection, &batch);
    }
    while (batch.n)
        cpprof__push_queue_done(&push->queue, batch.items[--batch.n], false);
}

/* ---- all -------------------------------------------------------------- */

/* Send all that is queued; false: there will be nothing more. */
static bool
send_queued(struct cpprof__push *push, void *connection)
{
    uint32_t seen = load_acquire(&push->n_queued);
    bool is_last = load_acquire(&push->has_taken);
    unsigned outcome;

    while (
        !load_acquire(&push->cancelled) && !load_acquire(&push->stop) &&
        (push->item || (push->item = cpprof__push_queue_take(&push->queue)))) {
        outcome = send_one(push, connection, push->item);
        if (outcome == PAUSED)
            return false;
        cpprof__push_queue_done(&push->queue, push->item,
                                outcome == CPPROF__PUSH_SENT);
        push->item = NULL;
    }
    if (load_acquire(&push->stop))
        send_last(push, connection);
    if (is_last || load_acquire(&push->cancelled) ||
        cpprof__own_threads_pause_now())
        return false;
    cpprof__push_wait(&push->n_queued, seen, LOOK_NS);
    return true;
}

/* The plug-in is loaded when there is something to send, so that a short-lived
 * process never loads it. */
static bool
wait_for_first(struct cpprof__push *push)
{
    while (!load_acquire(&push->n_queued)) {
        if (load_acquire(&push->has_taken) || load_acquire(&push->cancelled) ||
            cpprof__own_threads_pause_now())
            return false;
        cpprof__push_wait(&push->n_queued, 0, LOOK_NS);
    }
    return true;
}

void
cpprof__push_send_all(struct cpprof__push *push, void (*at_exit)(void))
{
    struct cpprof_error error;
    void *connection = NULL;

    if (!wait_for_first(push))
        return;
    if (!push->http && cpprof__push_load(push, &error) != CPPROF_OK)
        cpprof__push_notice(push, error.text);
    else if (!(connection = push->http->open(at_exit)))
        cpprof__push_notice(push, "push: libcurl does not start");
    if (!connection) {
        store_release(&push->cancelled, 1u);
        return;
    }
    while (send_queued(push, connection)) {
    }
    push->http->close(connection);
}
