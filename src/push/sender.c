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
#include "base/status.h"
#include "collect/runtime/first_line.h"
#include "collect/runtime/own_threads.h"
#include "object/plug_in.h"
#include "push/resource.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Tunable: how long a server may take, and how long it is left alone when it
 * could not: twice as long each time. */
#define TIMEOUT_MS  10000
#define PAUSE_MS    1000u
#define PAUSE_MAX_S 60u

#define NS_PER_MS 1000000ull
#define LOOK_NS   (1000 * NS_PER_MS)

/* ---- the plug-in ------------------------------------------------------ */

enum cpprof_status
cpprof__push_load(struct cpprof__push *push, struct cpprof_error *error)
{
    push->http = cpprof__plug_in_load("push", CPPROF__PUSH_SYMBOL,
                                      CPPROF__PUSH_ABI, error);
    return push->http ? CPPROF_OK : CPPROF_UNSUPPORTED;
}

/* ---- one request ------------------------------------------------------ */

/* The headers of a request, and its secret. */
struct request_head {
    char secret[4096]; /* the token, or the password of user */
    char type[128];
    char tenant[300];
    char bearer[4200];
    const char *headers[8];
};

static bool
make_head(const struct cpprof__push_plan *plan, const char *type,
          struct request_head *head)
{
    unsigned n = 0;

    snprintf(head->secret, sizeof head->secret, "%s",
             *plan->user ? plan->password : plan->token);
    if (*plan->token_file && /* which may change */
        cpprof__first_line(plan->token_file, head->secret, sizeof head->secret))
        return false;
    snprintf(head->type, sizeof head->type, "Content-Type: %s", type);
    head->headers[n++] = head->type;
    head->headers[n++] = "User-Agent: cpprof";
    head->headers[n++] = "Expect:";
    if (plan->protocol == CPPROF_PUSH_V1)
        head->headers[n++] = "Connect-Protocol-Version: 1";
    if (plan->protocol == CPPROF_PUSH_OTLP)
        head->headers[n++] = "Content-Encoding: gzip";
    if (*plan->tenant) {
        snprintf(head->tenant, sizeof head->tenant, "X-Scope-OrgID: %s",
                 plan->tenant);
        head->headers[n++] = head->tenant;
    }
    if (!*plan->user && *head->secret) {
        snprintf(head->bearer, sizeof head->bearer, "Authorization: Bearer %s",
                 head->secret);
        head->headers[n++] = head->bearer;
    }
    head->headers[n] = NULL;
    return true;
}

static void
post(struct cpprof__push *push, void *connection,
     const struct cpprof__push_item *item, struct cpprof__push_reply *reply)
{
    const struct cpprof__push_plan *plan = &push->plan;
    struct cpprof__push_post post = {
        .url = item->url,
        .body = item->body.data,
        .n_body = item->body.n,
        .timeout_ms = TIMEOUT_MS,
        .cancelled = &push->cancelled,
    };
    struct request_head head;

    memset(reply, 0, sizeof *reply);
    if (!make_head(plan, item->type, &head)) {
        snprintf(reply->text, sizeof reply->text,
                 "there is no token of one line in %.100s", plan->token_file);
        return;
    }
    post.headers = head.headers;
    if (*plan->user) {
        post.user = plan->user;
        post.password = head.secret;
    }
    push->http->post(connection, &post, reply);
    explicit_bzero(&head, sizeof head);
}

/* ---- one after the other ---------------------------------------------- */

enum outcome { SENT, AGAIN, REFUSED, PAUSED };

/* OTLP names all that may be tried again. */
static enum outcome
outcome_of(const struct cpprof__push_plan *plan, int status)
{
    bool is_otlp = plan->protocol == CPPROF_PUSH_OTLP,
         is_again = status == 0 || status == 429 ||
                    (is_otlp ? status >= 502 && status <= 504
                             : status == 408 || status >= 500);

    if (status >= 200 && status < 300)
        return SENT;
    return is_again ? AGAIN : REFUSED;
}

static void
tell(struct cpprof__push *push, const struct cpprof__push_reply *reply,
     enum outcome outcome)
{
    char line[sizeof push->notice], status[32] = "";

    if (reply->status)
        snprintf(status, sizeof status, "answers %d%s", reply->status,
                 *reply->text ? ": " : "");
    snprintf(line, sizeof line, "push: %.70s: %s%.80s; %s", push->plan.shown,
             status, reply->text,
             outcome == AGAIN ? "trying again" : "dropped");
    cpprof__push_notice(push, line);
}

/* A server of OTLP took a request, and not all that was in it, or has a
 * warning.
 */
static void
tell_rejected(struct cpprof__push *push, const struct cpprof__push_reply *reply)
{
    char line[sizeof push->notice];

    if (push->plan.protocol != CPPROF_PUSH_OTLP ||
        (!reply->n_rejected && !*reply->text))
        return;
    snprintf(line, sizeof line, "push: %.70s: rejects %llu profiles: %.80s",
             push->plan.shown, (unsigned long long)reply->n_rejected,
             reply->text);
    cpprof__push_notice(push, line);
}

/* Lengthen a pause by up to a half at random, so that many processes do not
 * come at the same time. */
static uint64_t
pause_ns(unsigned n_failures, uint32_t asked_s)
{
    uint64_t ms = (uint64_t)PAUSE_MS << (n_failures < 6 ? n_failures : 6);
    uint16_t part = 0;

    if (ms < asked_s * 1000ull)
        ms = asked_s * 1000ull;
    if (ms > PAUSE_MAX_S * 1000ull)
        ms = PAUSE_MAX_S * 1000ull;
    if (getrandom(&part, sizeof part, GRND_NONBLOCK) < 0)
        part = (uint16_t)getpid();
    return ms * NS_PER_MS + ms * NS_PER_MS / 2 * part / UINT16_MAX;
}

/* Make the request of a profile that waited. */
static bool
make_ready(struct cpprof__push *push, struct cpprof__push_item *item)
{
    size_t n = 0;
    void *body;

    if (!item->is_raw)
        return true;
    if (!push->resource.n)
        cpprof__push_resource(&push->plan, &push->resource);
    if (push->resource.failed ||
        !push->http->otlp(item->body.data, item->body.n,
                          (const char *)push->resource.data, &body, &n)) {
        cpprof__push_notice(push, "push: a profile is larger than 64 MiB, or "
                                  "there is no memory to send it; dropped");
        return false;
    }
    cpprof__buffer_free(&item->body);
    item->body = (struct cpprof__buffer){body, n, n, false};
    item->is_raw = false;
    return true;
}

/* Send an item until it is accepted, refused or too late. At the end each item
 * gets one try, and none if the server was unreachable before. */
static enum outcome
send_one(struct cpprof__push *push, void *connection,
         struct cpprof__push_item *item)
{
    struct cpprof__push_reply reply;
    enum outcome outcome;
    unsigned n_failures = 0;

    if (!make_ready(push, item))
        return REFUSED;

    for (;;) {
        post(push, connection, item, &reply);
        outcome = outcome_of(&push->plan, reply.status);
        if (outcome == SENT)
            tell_rejected(push, &reply);
        else if (!load_acquire(&push->cancelled))
            tell(push, &reply, outcome);
        if (outcome != AGAIN || load_acquire(&push->stop))
            break;
        cpprof__push_wait(&push->stop, 0,
                          pause_ns(n_failures++, reply.retry_after_s));
        if (cpprof__own_threads_pause_now())
            return PAUSED;
    }
    if (outcome == AGAIN)
        store_release(&push->cancelled, 1u);
    return outcome;
}

/* Send all that is queued; false: there will be nothing more. */
static bool
send_queued(struct cpprof__push *push, void *connection)
{
    uint32_t seen = load_acquire(&push->n_queued);
    bool is_last = load_acquire(&push->has_taken);
    enum outcome outcome;

    while (
        !load_acquire(&push->cancelled) &&
        (push->item || (push->item = cpprof__push_queue_take(&push->queue)))) {
        outcome = send_one(push, connection, push->item);
        if (outcome == PAUSED)
            return false;
        cpprof__push_queue_done(&push->queue, push->item, outcome == SENT);
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
