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
#include "collect/entries/libc_names.h"
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
    cpprof__libc_names_bind_plug_in(push->http);
    return push->http ? CPPROF_OK : CPPROF_UNSUPPORTED;
}

/* ---- one after the other ---------------------------------------------- */

/* PAUSED: the item is kept. */
enum { PAUSED = CPPROF__PUSH_REFUSED + 1 };

/* The parts of a part. */
struct parts {
    const struct cpprof__push_part *whole;
    struct cpprof__push_part *first, **end;
    size_t n;
    bool is_same; /* the only one is the whole */
};

static bool
add_part(void *ctx, const struct cpprof__push_piece *piece)
{
    struct parts *parts = ctx;

    parts->n++;
    parts->is_same = piece->data == parts->whole->body.data;
    if (parts->is_same)
        return true;
    *parts->end = cpprof__push_part_make(piece->data, piece->n, piece->room_ns);
    if (!*parts->end)
        return false;
    parts->end = &(*parts->end)->next;
    return true;
}

/* Put its parts in the place of the first part. Their number; 0: no memory, and
 * it stays. */
static size_t
divide(struct cpprof__push *push, struct cpprof__push_item *item,
       unsigned flags)
{
    struct cpprof__push_part *whole = item->parts;
    const struct cpprof__push_piece piece = {whole->body.data, whole->body.n,
                                             whole->room_ns};
    struct cpprof__push_item gone = {0};
    struct parts parts = {whole, NULL, &parts.first, 0, false};
    bool made;

    if (push->plan.protocol == CPPROF_PUSH_OTLP)
        flags |= CPPROF__PUSH_FOR_OTLP;
    made = push->http->parts(&piece, flags, add_part, &parts);
    if (made && !parts.is_same) {
        *parts.end = whole->next;
        whole->next = parts.first;
        cpprof__push_item_drop_first(item);
    } else if (!made) {
        gone.parts = parts.first;
        while (gone.parts)
            cpprof__push_item_drop_first(&gone);
    }
    return made ? parts.n : 0;
}

struct request {
    const struct cpprof__push *push;
    struct cpprof__push_item *item;
};

static bool
add_request(void *ctx, const struct cpprof__push_piece *piece)
{
    struct request *r = ctx;
    const struct cpprof__push_profile part = {
        r->item->kind,    piece->data,       piece->n,
        r->item->from_ns, r->item->until_ns, r->item->series};

    r->item->request = cpprof__push_message(&r->push->plan, &part);
    return r->item->request;
}

/* Whose profiles these are, and what of it cannot be read. */
static void
make_resource(struct cpprof__push *push)
{
    char line[CPPROF__PUSH_LINE_BYTES];
    const char *bad;
    size_t n;

    bad = cpprof__push_resource(&push->plan, &push->resource, &n);
    if (!bad)
        return;
    snprintf(line, sizeof line,
             "push: OTEL_RESOURCE_ATTRIBUTES: not KEY=VALUE with "
             "percent-encoding: '%.*s'",
             (int)(n < 100 ? n : 100), bad);
    cpprof__push_notice(push, line);
}

/* Make the request of the first part. */
static bool
make_request(struct cpprof__push *push, struct cpprof__push_item *item)
{
    const struct cpprof__push_part *part = item->parts;
    const struct cpprof__push_piece piece = {part->body.data, part->body.n,
                                             part->room_ns};
    struct request r = {push, item};

    if (push->plan.protocol != CPPROF_PUSH_OTLP)
        return add_request(&r, &piece);
    if (!push->resource.n)
        make_resource(push);
    return !push->resource.failed &&
           push->http->otlp(&piece, (const char *)push->resource.data,
                            add_request, &r);
}

/* False: it is one sample, or there is no memory. */
static bool
halve(struct cpprof__push *push, struct cpprof__push_item *item)
{
    return divide(push, item, CPPROF__PUSH_HALVE) > 1;
}

/* A name that a program gave is changed where it would be refused. The first is
 * told. */
static unsigned
mend_flag(struct cpprof__push *push, const struct cpprof__push_item *item)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"
                                "abcdefghijklmnopqrstuvwxyz";
    bool is_refused = push->plan.protocol <= CPPROF_PUSH_INGEST ||
                      push->plan.protocol == CPPROF_PUSH_PARCA;
    char line[CPPROF__PUSH_LINE_BYTES];

    if (!item->series || !is_refused)
        return 0;
    if (item->series[strspn(item->series, plain)] && !push->has_told_name) {
        push->has_told_name = true;
        snprintf(line, sizeof line,
                 "push: the profile %.100s is sent with _ "
                 "for what servers refuse in names",
                 item->series);
        cpprof__push_notice(push, line);
    }
    return CPPROF__PUSH_MEND;
}

/* Make a request of what waited, no larger than the server takes. */
static bool
make_ready(struct cpprof__push *push, struct cpprof__push_item *item)
{
    item->is_fit = item->is_fit || divide(push, item, mend_flag(push, item));
    while (item->is_fit && !item->request && make_request(push, item))
        if (item->request->body.n > push->most_bytes)
            halve(push, item);
    if (item->request)
        return true;
    cpprof__push_notice(push, "push: a profile is larger than 64 MiB, or "
                              "there is no memory to send it; dropped");
    return false;
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

/* What a reply means; what it says is told. After CPPROF__PUSH_SENT the parts
 * that are left are to be sent, if there are any: of one that was too large,
 * smaller ones. */
static unsigned
outcome_of(struct cpprof__push *push, struct cpprof__push_item *item,
           const struct cpprof__push_reply *reply)
{
    unsigned outcome = cpprof__push_outcome(&push->plan, reply);
    char line[CPPROF__PUSH_LINE_BYTES];

    if (outcome == CPPROF__PUSH_TOO_LARGE) {
        if (!cpprof__push_lower(&push->most_bytes, item->request->body.n))
            outcome = CPPROF__PUSH_REFUSED;
        else if (halve(push, item))
            return CPPROF__PUSH_SENT;
        else
            item->has_lost = true;
    }
    if (outcome == CPPROF__PUSH_SENT)
        item->has_lost |=
            cpprof__push_say_rejected(&push->plan, reply, line, sizeof line);
    else
        cpprof__push_say(&push->plan, reply,
                         outcome == CPPROF__PUSH_AGAIN &&
                                 !load_acquire(&push->stop)
                             ? "trying again"
                             : "dropped",
                         line, sizeof line);
    if (*line)
        cpprof__push_notice(push, line);
    if (outcome != CPPROF__PUSH_SENT && outcome != CPPROF__PUSH_TOO_LARGE)
        return outcome;
    cpprof__push_item_drop_first(item);
    return CPPROF__PUSH_SENT;
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
             struct cpprof__push_item *item)
{
    struct cpprof__push_reply reply;
    unsigned outcome;
    unsigned n_failures = 0;

    for (;;) {
        if (is_too_old(push, item))
            return CPPROF__PUSH_REFUSED;
        try_once(push, connection, &item->request, 1, &reply);
        outcome = outcome_of(push, item, &reply);
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
    unsigned outcome = CPPROF__PUSH_SENT;

    while (outcome == CPPROF__PUSH_SENT && item->parts)
        outcome = make_ready(push, item) ? send_request(push, connection, item)
                                         : CPPROF__PUSH_REFUSED;
    return outcome;
}

static void
done_with(struct cpprof__push *push, struct cpprof__push_item *item,
          unsigned outcome)
{
    cpprof__push_queue_done(&push->queue, item,
                            outcome == CPPROF__PUSH_SENT && !item->has_lost);
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
            done_with(push, item, CPPROF__PUSH_REFUSED);
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
        messages[i] = batch->items[i]->request;
    try_once(push, connection, messages, n, replies);
    for (i = batch->n = 0; i < n; i++) {
        struct cpprof__push_item *item = batch->items[i];

        outcome = outcome_of(push, item, &replies[i]);
        n_again += outcome == CPPROF__PUSH_AGAIN;
        if (outcome == CPPROF__PUSH_SENT && item->parts &&
            !make_ready(push, item))
            outcome = CPPROF__PUSH_REFUSED;
        if (outcome == CPPROF__PUSH_SENT && item->parts)
            batch->items[batch->n++] = item;
        else
            done_with(push, item, outcome);
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
        done_with(push, batch.items[--batch.n], CPPROF__PUSH_REFUSED);
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
        done_with(push, push->item, outcome);
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
