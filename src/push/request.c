/* SPDX-License-Identifier: MIT */
/*
 * The headers of a request, its secrets, and what answers mean: the same for
 * what a program pushes and for `cpprof push`.
 *
 * Source: opentelemetry-proto docs/specification.md ("Failures"); grafana
 * pyroscope, api.
 */
#include "push/request.h"

#include "collect/runtime/first_line.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Tunable: how long a server may take, and how long it is left alone when it
 * could not: twice as long each time. */
#define TIMEOUT_MS  10000
#define PAUSE_MS    1000u
#define PAUSE_MAX_S 60u

/* Limit of Pyroscope's distributor: reject_older_than. */
#define MOST_AGE_S 3600

#define NS_PER_MS 1000000ull

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

void
cpprof__push_request(const struct cpprof__push_plan *plan,
                     const struct cpprof__push_http *http, void *connection,
                     const struct cpprof__push_message *message,
                     const uint32_t *cancelled,
                     struct cpprof__push_reply *reply)
{
    struct cpprof__push_post post = {
        .url = message->url,
        .body = message->body.data,
        .n_body = message->body.n,
        .timeout_ms = TIMEOUT_MS,
        .cancelled = cancelled,
    };
    struct request_head head;

    memset(reply, 0, sizeof *reply);
    if (!make_head(plan, message->type, &head)) {
        snprintf(reply->text, sizeof reply->text,
                 "there is no token of one line in %.100s", plan->token_file);
        return;
    }
    post.headers = head.headers;
    if (*plan->user) {
        post.user = plan->user;
        post.password = head.secret;
    }
    http->post(connection, &post, reply);
    explicit_bzero(&head, sizeof head);
}

/* OTLP names all that may be tried again. */
enum cpprof__push_outcome
cpprof__push_outcome(const struct cpprof__push_plan *plan, int status)
{
    bool is_otlp = plan->protocol == CPPROF_PUSH_OTLP,
         is_again = status == 0 || status == 429 ||
                    (is_otlp ? status >= 502 && status <= 504
                             : status == 408 || status >= 500);

    if (status >= 200 && status < 300)
        return CPPROF__PUSH_SENT;
    return is_again ? CPPROF__PUSH_AGAIN : CPPROF__PUSH_REFUSED;
}

bool
cpprof__push_is_too_old(const struct cpprof__push_plan *plan, int64_t until_ns,
                        int64_t now_ns)
{
    return plan->protocol <= CPPROF_PUSH_INGEST &&
           now_ns - until_ns > MOST_AGE_S * 1000000000ll;
}

void
cpprof__push_say(const struct cpprof__push_plan *plan,
                 const struct cpprof__push_reply *reply, const char *end,
                 char *line, size_t n)
{
    char status[32] = "";

    if (reply->status)
        snprintf(status, sizeof status, "answers %d%s", reply->status,
                 *reply->text ? ": " : "");
    snprintf(line, n, "push: %.70s: %s%.80s; %s", plan->shown, status,
             reply->text, end);
}

/* A server of OTLP took a request, and not all that was in it, or has a
 * warning. */
void
cpprof__push_say_rejected(const struct cpprof__push_plan *plan,
                          const struct cpprof__push_reply *reply, char *line,
                          size_t n)
{
    *line = 0;
    if (plan->protocol != CPPROF_PUSH_OTLP)
        return;
    if (reply->n_rejected)
        snprintf(line, n, "push: %.70s: rejects %llu profiles: %.80s",
                 plan->shown, (unsigned long long)reply->n_rejected,
                 reply->text);
    else if (*reply->text)
        snprintf(line, n, "push: %.70s: warns: %.100s", plan->shown,
                 reply->text);
}

uint64_t
cpprof__push_random_ns(uint64_t most)
{
    uint16_t part = 0;

    if (getrandom(&part, sizeof part, GRND_NONBLOCK) < 0)
        part = (uint16_t)getpid();
    return most / (UINT16_MAX + 1) * part;
}

/* Lengthen a pause by up to a half at random. */
uint64_t
cpprof__push_pause_ns(unsigned n_failures, uint32_t asked_s)
{
    uint64_t ms = (uint64_t)PAUSE_MS << (n_failures < 6 ? n_failures : 6);

    if (ms < asked_s * 1000ull)
        ms = asked_s * 1000ull;
    if (ms > PAUSE_MAX_S * 1000ull)
        ms = PAUSE_MAX_S * 1000ull;
    return ms * NS_PER_MS + cpprof__push_random_ns(ms * NS_PER_MS / 2);
}
