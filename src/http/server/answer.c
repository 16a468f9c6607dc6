/* SPDX-License-Identifier: MIT */
/*
 * Workers, which answer requests: threads that are started on demand and end
 * after some time without work.
 *
 * An answer is passed from the worker that makes it to the connection that
 * sends it. Protocol, under the server's lock: the worker offers a piece of its
 * memory and waits. libmicrohttpd asks for bytes when the socket can take some,
 * and they are copied from that piece. When the piece is used up the worker
 * goes on. A reader that does not keep a minimum pace makes the worker's write
 * fail.
 */
#include "http/server/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* Tunable. How long a thread waits for work. */
#define PATIENCE_SECONDS 5

/* ---- one request, on a worker ---------------------------------------------
 */

/* Bytes of the body, as libmicrohttpd asks for them. */
static ssize_t
read_body(void *request, uint64_t at, char *to, size_t n);

/* A value may come from a program's names: no line ends in there. */
static int
add_header(struct MHD_Response *response, const struct cpprof_http_header *h)
{
    char *value = strdup(h->value);
    const char *from = value;
    size_t n = 0;
    bool ok;

    for (; value && *from; from++)
        if ((unsigned char)*from >= ' ' && *from != 127)
            value[n++] = *from;
    if (value)
        value[n] = 0;
    ok = value && MHD_add_response_header(response, h->name, value) == MHD_YES;
    free(value);
    return ok ? 0 : ENOMEM;
}

/* Their names before 0.9.74. */
#if MHD_VERSION < 0x00097400
#define MHD_RF_HTTP_1_0_COMPATIBLE_STRICT MHD_RF_HTTP_VERSION_1_0_ONLY
#define MHD_RF_HTTP_1_0_SERVER            MHD_RF_HTTP_VERSION_1_0_RESPONSE
#endif

static struct MHD_Response *
make_response(struct cpprof__http_request *r, int64_t n_body)
{
    bool is_short = n_body >= 0 && n_body < CPPROF__POOL;
    struct MHD_Response *response = MHD_create_response_from_callback(
        n_body < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)n_body,
        is_short ? (size_t)n_body + 1 : CPPROF__POOL, read_body, r, NULL);

    if (response && r->has_version_0)
        MHD_set_response_options(response, MHD_RF_HTTP_1_0_SERVER, MHD_RO_END);
    /* Otherwise libmicrohttpd would send a final chunk where none is allowed.
     */
    else if (response && n_body < 0 && !strcmp(r->method, "HEAD"))
        MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT,
                                 MHD_RO_END);
    return response;
}

static int
begin(void *ctx, int status, const struct cpprof_http_header *headers,
      size_t n_headers, int64_t n_body)
{
    bool is_bare = status == 204 || status == 304;
    struct cpprof__http_request *r = ctx;
    struct MHD_Response *response;
    int failed = 0;
    size_t i;

    if (r->has_begun)
        return EALREADY;
    response = make_response(r, n_body);
    if (!response)
        return ENOMEM;
    for (i = 0; !failed && i < n_headers; i++)
        failed = add_header(response, &headers[i]);
    if (failed) {
        MHD_destroy_response(response);
        return failed;
    }
    r->has_begun = true;
    r->has_body = strcmp(r->method, "HEAD") && !is_bare;
    r->left = is_bare ? -1 : n_body;
    pthread_mutex_lock(&r->server->lock);
    r->status = (unsigned)status;
    r->response = response;
    cpprof__http_wake(r->server);
    pthread_mutex_unlock(&r->server->lock);
    return 0;
}

static int
write_body(void *ctx, const void *data, size_t n)
{
    struct cpprof__http_request *r = ctx;
    bool is_taken;

    if (!r->has_begun)
        return EINVAL;
    if (!r->has_body || !n)
        return 0;
    if (r->left >= 0 && (uint64_t)r->left < n)
        return EMSGSIZE;
    if (r->left >= 0)
        r->left -= (int64_t)n;
    pthread_mutex_lock(&r->server->lock);
    r->data = data;
    r->n_data = n;
    cpprof__http_wake(r->server);
    while (r->n_data && r->connection)
        pthread_cond_wait(&r->changed, &r->server->lock);
    is_taken = !r->n_data;
    pthread_mutex_unlock(&r->server->lock);
    return is_taken ? 0 : EPIPE;
}

/* The client has left, or has shut down its side, which counts as leaving, as
 * in Go. */
static bool
wait_or_left(void *ctx, uint64_t ns)
{
    struct cpprof__http_request *r = ctx;
    struct timespec until;
    bool has_left;
    int failed = 0;

    until = cpprof__timespec_of(cpprof__now_ns(CLOCK_MONOTONIC) + ns);
    pthread_mutex_lock(&r->server->lock);
    while (r->connection && !r->has_left && !r->server->stops &&
           !r->server->host->pauses() && !failed)
        failed = pthread_cond_timedwait(&r->changed, &r->server->lock, &until);
    has_left = !r->connection || r->has_left;
    pthread_mutex_unlock(&r->server->lock);
    return has_left;
}

static bool
say_failure(struct cpprof__http_request *r)
{
    static const char text[] = "Internal Server Error\n";
    static const struct cpprof_http_header headers[] = {
        {"Content-Type", "text/plain; charset=utf-8"},
        {"X-Go-Pprof", "1"},
        {"Connection", "close"}};

    return !begin(r, 500, headers, 3, sizeof text - 1) &&
           !write_body(r, text, sizeof text - 1);
}

static bool
handle(struct cpprof__http_request *r)
{
    const struct cpprof_http_options *options = &r->server->options;
    const struct cpprof_http_request request = {
        .size = sizeof request,
        .method = r->method,
        .path = r->target.path,
        .query = r->target.query,
        .content_type = r->content_type,
        .body = r->body,
        .n_body = r->n_body,
        .flags = (options->flags & ~CPPROF_HTTP_INSECURE) |
                 (r->takes_gzip ? CPPROF__HTTP_TAKES_GZIP : 0) |
                 (r->is_from_others ? CPPROF__HTTP_FROM_OTHERS : 0),
        .max_seconds = options->max_seconds,
        .max_captures = options->max_captures,
        .wait = wait_or_left,
        .ctx = r,
    };
    const struct cpprof_http_response response = {sizeof response, begin,
                                                  write_body, r};
    enum cpprof_status status;

    status = r->server->host->handle(&request, &response, NULL);
    if (!r->has_begun)
        return say_failure(r);
    return status == CPPROF_OK && (!r->has_body || r->left <= 0);
}

/* Answer the request, and give it back. */
static void
answer(struct cpprof__http_request *r)
{
    struct cpprof__http_server *s = r->server;
    bool is_whole = handle(r);

    pthread_mutex_lock(&s->lock);
    r->is_cut = !is_whole;
    r->n_data = 0;
    r->has_worker = false;
    if (r->connection)
        cpprof__http_wake(s);
    else
        cpprof__http_request_free(r);
    pthread_mutex_unlock(&s->lock);
}

/* ---- the queue for workers -------------------------------------------------
 */

static struct cpprof__http_request *
take_queued(struct cpprof__http_server *s)
{
    struct cpprof__http_request *r = s->first;

    if (!r)
        return NULL;
    s->first = r->next;
    if (!s->first)
        s->last = NULL;
    s->n_queued--;
    r->next = NULL;
    return r;
}

/* In a pause what is queued stays so. */
static struct cpprof__http_request *
take_now(struct cpprof__http_server *s)
{
    return s->host->pauses() ? NULL : take_queued(s);
}

/* NULL: nothing came, or it is over. */
static struct cpprof__http_request *
wait_for_work(struct cpprof__http_server *s)
{
    struct cpprof__http_request *r = take_now(s);
    const struct timespec until = cpprof__timespec_of(
        cpprof__now_ns(CLOCK_MONOTONIC) + PATIENCE_SECONDS * CPPROF__NS_PER_S);
    int failed = 0;

    s->n_idle_workers++;
    while (!r && !s->stops && failed != ETIMEDOUT && !s->host->pauses()) {
        failed = pthread_cond_timedwait(&s->work, &s->lock, &until);
        r = take_now(s);
    }
    s->n_idle_workers--;
    return r;
}

static bool
work(void *arg)
{
    struct cpprof__http_server *s = arg;
    struct cpprof__http_request *r;

    pthread_mutex_lock(&s->lock);
    while ((r = wait_for_work(s))) {
        s->n_answers++;
        pthread_mutex_unlock(&s->lock);
        answer(r);
        pthread_mutex_lock(&s->lock);
        s->n_answers--;
    }
    if (!s->stops && s->host->pauses()) {
        cpprof__http_wake(s); /* its thread leaves after the last answer */
        pthread_mutex_unlock(&s->lock);
        return true;
    }
    s->n_workers--;
    s->n_threads--;
    if (s->stops)
        cpprof__http_wake(s); /* its thread waits for the last one */
    pthread_cond_broadcast(&s->ended);
    pthread_mutex_unlock(&s->lock);
    return false;
}

int
cpprof__http_queue(struct cpprof__http_request *r)
{
    struct cpprof__http_server *s = r->server;
    int failed = 0;

    /* One that answers takes it after the pause. */
    if (!(s->n_answers && s->host->pauses()) &&
        s->n_queued >= s->n_idle_workers && s->n_workers < s->max_workers) {
        failed = s->host->start_thread(work, s);
        s->n_workers += !failed;
        s->n_threads += !failed;
    }
    if (failed && !s->n_workers)
        return failed;
    r->next = NULL;
    if (s->last)
        s->last->next = r;
    else
        s->first = r;
    s->last = r;
    s->n_queued++;
    pthread_cond_signal(&s->work);
    return 0;
}

/* ---- the connection -------------------------------------------------------
 */

bool
cpprof__http_answer_has_news(const struct cpprof__http_request *r)
{
    return r->response || r->n_data || !r->has_worker;
}

/* The buffer is full. How long its reader has for it. */
static void
enter_sending(struct cpprof__http_request *r)
{
    uint64_t most =
        CPPROF__STALL_NS + r->n_sent / CPPROF__PACE * UINT64_C(1000000000);
    uint64_t left = most > r->stalled_ns ? most - r->stalled_ns : 0;

    cpprof__http_set_state(r->connection, CPPROF__HTTP_SENDING,
                           left < CPPROF__STALL_NS ? left : CPPROF__STALL_NS);
}

static ssize_t
take(struct cpprof__http_request *r, char *to, size_t n)
{
    n = n < r->n_data ? n : r->n_data;
    memcpy(to, r->data, n);
    r->data += n;
    r->n_data -= n;
    r->n_sent += n;
    if (!r->n_data)
        pthread_cond_signal(&r->changed);
    enter_sending(r);
    return (ssize_t)n;
}

/* An incomplete answer must not look complete, even if the end of the
 * connection marks the end of the answer. */
static ssize_t
end(struct cpprof__http_request *r)
{
    const struct linger reset = {1, 0};

    enter_sending(r);
    if (!r->is_cut)
        return MHD_CONTENT_READER_END_OF_STREAM;
    setsockopt(r->connection->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static ssize_t
read_body(void *request, uint64_t at, char *to, size_t n)
{
    struct cpprof__http_request *r = request;
    struct cpprof__http_connection *c = r->connection;

    (void)at;
    r->server->n_rounds = 0;
    if (c->state == CPPROF__HTTP_SENDING)
        r->stalled_ns += cpprof__now_ns(CLOCK_MONOTONIC) - c->since_ns;
    if (r->n_data)
        return take(r, to, n);
    if (!r->has_worker)
        return end(r);
    cpprof__http_set_state(c, CPPROF__HTTP_SERVED, 0);
    r->is_suspended = true;
    MHD_suspend_connection(c->mhd);
    return 0;
}
