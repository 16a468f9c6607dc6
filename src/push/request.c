/* SPDX-License-Identifier: MIT */
/*
 * The headers of a request, its secrets, and what answers mean: the same for
 * what a program pushes and for `cpprof push`.
 *
 * Source: opentelemetry-proto docs/specification.md ("Failures"); grafana
 * pyroscope, api.
 */
#include "push/request.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Tunable: how long a server is left alone when it could not: twice as long
 * each time. */
#define PAUSE_MS    1000u
#define PAUSE_MAX_S 60u

/* Limit of Pyroscope's distributor: reject_older_than. */
#define MOST_AGE_S 3600

/* Tunable: smaller requests that are too large are dropped. Less of it means
 * more requests in vain to a server that takes none. */
#define LEAST_BYTES ((size_t)16 << 10)

#define NS_PER_MS 1000000ull

/* What all requests have in common. */
struct credentials {
    char secret[4096]; /* the token, or the password of user */
    char tenant[300];
    char bearer[4200];
};

struct headers {
    char type[128];
    const char *list[8];
};

static bool
read_credentials(const struct cpprof__push_plan *plan, struct credentials *c)
{
    snprintf(c->secret, sizeof c->secret, "%s",
             *plan->user ? plan->password : plan->token);
    if (*plan->token_file && /* which may change */
        cpprof__first_line(plan->token_file, c->secret, sizeof c->secret))
        return false;
    snprintf(c->tenant, sizeof c->tenant, "X-Scope-OrgID: %s", plan->tenant);
    snprintf(c->bearer, sizeof c->bearer, "Authorization: Bearer %s",
             c->secret);
    return true;
}

static void
make_headers(const struct cpprof__push_plan *plan, const struct credentials *c,
             const char *type, struct headers *headers)
{
    unsigned n = 0;

    snprintf(headers->type, sizeof headers->type, "Content-Type: %s", type);
    headers->list[n++] = headers->type;
    headers->list[n++] = "User-Agent: cpprof";
    headers->list[n++] = "Expect:";
    if (plan->protocol == CPPROF_PUSH_V1)
        headers->list[n++] = "Connect-Protocol-Version: 1";
    if (plan->protocol == CPPROF_PUSH_OTLP)
        headers->list[n++] = "Content-Encoding: gzip";
    if (*plan->tenant)
        headers->list[n++] = c->tenant;
    if (!*plan->user && *c->secret)
        headers->list[n++] = c->bearer;
    headers->list[n] = NULL;
}

void
cpprof__push_requests(const struct cpprof__push_plan *plan,
                      const struct cpprof__push_http *http, void *connection,
                      struct cpprof__push_message *const *messages, unsigned n,
                      const uint32_t *cancelled,
                      struct cpprof__push_reply *replies)
{
    struct cpprof__push_post posts[CPPROF__PUSH_AT_ONCE];
    struct headers headers[CPPROF__PUSH_AT_ONCE];
    struct credentials credentials;
    unsigned i;

    memset(replies, 0, n * sizeof *replies);
    if (!read_credentials(plan, &credentials)) {
        for (i = 0; i < n; i++)
            snprintf(replies[i].text, sizeof replies[i].text,
                     "there is no token of one line in %.100s",
                     plan->token_file);
        return;
    }
    for (i = 0; i < n; i++) {
        make_headers(plan, &credentials, messages[i]->type, &headers[i]);
        posts[i] = (struct cpprof__push_post){
            .url = messages[i]->url,
            .headers = headers[i].list,
            .user = *plan->user ? plan->user : NULL,
            .password = *plan->user ? credentials.secret : NULL,
            .body = messages[i]->body.data,
            .n_body = messages[i]->body.n,
            .timeout_ms = messages[i]->timeout_ms ? messages[i]->timeout_ms
                                                  : CPPROF__PUSH_TIMEOUT_MS,
            .wants_answer = messages[i]->wants_answer,
            .cancelled = cancelled,
        };
    }
    http->post(connection, posts, n, replies);
    explicit_bzero(&credentials, sizeof credentials);
}

/* Servers of RPCs have one status for what is too large, and what is too much
 * now; Pyroscope, and the collector of OpenTelemetry, one for all that is
 * wrong. Of OTLP Pyroscope may have taken a part before that. Source:
 * connect-go (envelope.go), grpc-go (rpc_util.go); pyroscope
 * pkg/validation/validate.go, pkg/distributor; Go's net/http, MaxBytesError,
 * which the collector passes on (config/confighttp, receiver/otlpreceiver). */
static bool
is_too_large(const struct cpprof__push_plan *plan,
             const struct cpprof__push_reply *reply)
{
    bool is_pyroscopes =
        plan->protocol <= CPPROF_PUSH_INGEST &&
        (strstr(reply->text, "size exceeds") ||
         strstr(reply->text, "exceeds the size limit") ||
         strstr(reply->text, "exceeds the samples count limit"));

    return reply->status == 413 ||
           (reply->status == 429 && strstr(reply->text, "larger than")) ||
           (reply->status == 400 &&
            strstr(reply->text, "request body too large")) ||
           ((reply->status == 400 || reply->status == 422) && is_pyroscopes);
}

/* OTLP names all that may be tried again. */
enum cpprof__push_outcome
cpprof__push_outcome(const struct cpprof__push_plan *plan,
                     const struct cpprof__push_reply *reply)
{
    int status = reply->status;
    bool is_otlp = plan->protocol == CPPROF_PUSH_OTLP,
         is_again = status == 0 || status == 429 ||
                    (is_otlp ? status >= 502 && status <= 504
                             : status == 408 || status >= 500);

    if (status >= 200 && status < 300)
        return CPPROF__PUSH_SENT;
    if (is_too_large(plan, reply))
        return CPPROF__PUSH_TOO_LARGE;
    return is_again ? CPPROF__PUSH_AGAIN : CPPROF__PUSH_REFUSED;
}

bool
cpprof__push_lower(size_t *most_bytes, size_t n_body)
{
    /* Halves are larger than a half: names are in both. */
    size_t most = n_body / 8 * 5;

    if (most < LEAST_BYTES)
        most = LEAST_BYTES;
    if (most < *most_bytes)
        *most_bytes = most;
    return n_body > LEAST_BYTES;
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
    snprintf(line, n, "push: %.70s: %s%s; %s", plan->shown, status, reply->text,
             end);
}

/* A server of OTLP took a request, and not all that was in it, or has a
 * warning. */
bool
cpprof__push_say_rejected(const struct cpprof__push_plan *plan,
                          const struct cpprof__push_reply *reply, char *line,
                          size_t n)
{
    *line = 0;
    if (plan->protocol != CPPROF_PUSH_OTLP)
        return false;
    if (reply->n_rejected)
        snprintf(line, n, "push: %.70s: rejects %llu profiles: %s", plan->shown,
                 (unsigned long long)reply->n_rejected, reply->text);
    else if (*reply->text)
        snprintf(line, n, "push: %.70s: warns: %s", plan->shown, reply->text);
    return reply->n_rejected;
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
