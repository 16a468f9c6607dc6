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
        r->item->kind, data, n, r->item->from_ns, r->item->until_ns};

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

/* Send a request once. A server that was silent is given up as soon as the
 * process ends. */
static unsigned
try_once(struct cpprof__push *push, void *connection,
         const struct cpprof__push_message *message,
         struct cpprof__push_reply *reply)
{
    uint64_t begin_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    unsigned outcome;

    cpprof__push_request(&push->plan, push->http, connection, message,
                         push->is_silent ? &push->stop : &push->cancelled,
                         reply);
    outcome = cpprof__push_outcome(&push->plan, reply->status);
    push->is_silent =
        !reply->status && cpprof__now_ns(CLOCK_MONOTONIC) - begin_ns > SLOW_NS;
    return outcome;
}

/* Send a request until it is accepted, refused or too late. At the end each
 * gets one try, and none if the server was silent or unreachable before. */
static unsigned
send_request(struct cpprof__push *push, void *connection,
             const struct cpprof__push_message *message, int64_t until_ns)
{
    struct cpprof__push_reply reply;
    char line[sizeof push->notice];
    unsigned outcome;
    unsigned n_failures = 0;

    for (;;) {
        if (cpprof__push_is_too_old(&push->plan, until_ns,
                                    (int64_t)cpprof__now_ns(CLOCK_REALTIME))) {
            cpprof__push_notice(push, "push: a profile has waited for an hour "
                                      "and is too old for Pyroscope; dropped");
            return CPPROF__PUSH_REFUSED;
        }
        outcome = try_once(push, connection, message, &reply);
        if (outcome == CPPROF__PUSH_SENT)
            cpprof__push_say_rejected(&push->plan, &reply, line, sizeof line);
        else
            cpprof__push_say(&push->plan, &reply,
                             outcome == CPPROF__PUSH_AGAIN ? "trying again"
                                                           : "dropped",
                             line, sizeof line);
        if (*line && !load_acquire(&push->cancelled))
            cpprof__push_notice(push, line);
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

/* Send all of an item. What is sent of it is not sent again after a pause. */
static unsigned
send_one(struct cpprof__push *push, void *connection,
         struct cpprof__push_item *item)
{
    struct cpprof__push_message *next;
    unsigned outcome = CPPROF__PUSH_SENT;

    if (!make_ready(push, item))
        return CPPROF__PUSH_REFUSED;
    while (item->requests) {
        outcome =
            send_request(push, connection, item->requests, item->until_ns);
        if (outcome != CPPROF__PUSH_SENT)
            break;
        next = item->requests->next;
        cpprof__push_message_free(item->requests);
        item->requests = next;
    }
    return outcome;
}

/* Send all that is queued; false: there will be nothing more. */
static bool
send_queued(struct cpprof__push *push, void *connection)
{
    uint32_t seen = load_acquire(&push->n_queued);
    bool is_last = load_acquire(&push->has_taken);
    unsigned outcome;

    while (
        !load_acquire(&push->cancelled) &&
        (push->item || (push->item = cpprof__push_queue_take(&push->queue)))) {
        outcome = send_one(push, connection, push->item);
        if (outcome == PAUSED)
            return false;
        cpprof__push_queue_done(&push->queue, push->item,
                                outcome == CPPROF__PUSH_SENT);
        push->item = NULL;
    }
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
