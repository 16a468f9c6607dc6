/* SPDX-License-Identifier: MIT */
/*
 * A request from its first header to the hand-over to a worker.
 *
 * libmicrohttpd calls cpprof__http_take() for the head, for each piece of the
 * body, and at the end. The head is checked before any body is taken: first
 * whether two readers could understand it differently (400), then whether the
 * client may ask at all (401, 403).
 *
 * Invariants: everything here runs on the server's thread, under its lock; a
 * request that a worker has is not touched until the worker gives it back.
 */
#include "http/server/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

/* ---- its life -------------------------------------------------------------
 */

struct cpprof__http_request *
cpprof__http_request(struct cpprof__http_connection *c, const char *target)
{
    struct cpprof__http_request *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->text = strdup(target);
    if (!r->text) {
        free(r);
        return NULL;
    }
    cpprof__http_condition(&r->changed);
    c->server->n_rounds = 0;
    r->server = c->server;
    r->connection = c;
    r->left = -1;
    c->request = r;
    if (c->state == CPPROF__HTTP_IDLE)
        cpprof__http_set_state(c, CPPROF__HTTP_HEAD,
                               c->server->options.header_seconds *
                                   UINT64_C(1000000000));
    return r;
}

void
cpprof__http_request_free(struct cpprof__http_request *r)
{
    if (r->response)
        MHD_destroy_response(r->response);
    r->server->n_bodies -= r->body_room;
    pthread_cond_destroy(&r->changed);
    free(r->body);
    free(r->content_type);
    free(r->method);
    free(r->text);
    free(r);
}

void
cpprof__http_request_done(struct cpprof__http_request *r)
{
    struct cpprof__http_connection *c = r->connection;

    c->request = NULL;
    if (c->state != CPPROF__HTTP_LINGER)
        cpprof__http_set_state(c, CPPROF__HTTP_IDLE, CPPROF__IDLE_NS);
    r->connection = NULL;
    if (r->has_worker)
        pthread_cond_signal(&r->changed);
    else
        cpprof__http_request_free(r);
}

/* ---- refusals -------------------------------------------------------------
 */

/* Errors that Go's server reports itself have the same form here. Errors that a
 * tool should show carry the header by which Go's handlers mark them. */
static bool
is_ours(unsigned status)
{
    return status == 401 || status == 403 || status == 503;
}

static size_t
make_text(char *to, size_t n, unsigned status, const char *text)
{
    const char *words = MHD_get_reason_phrase_for(status);
    int length;

    if (is_ours(status))
        length = snprintf(to, n, "%s\n", text ? text : words);
    else
        length = snprintf(to, n, "%u %s%s%s", status, words, text ? ": " : "",
                          text ? text : "");
    return (size_t)length;
}

/* Answer with the text of an error and "Connection: close". */
static enum MHD_Result
refuse(struct cpprof__http_request *r, unsigned status, const char *text)
{
    struct cpprof__http_connection *c = r->connection;
    struct MHD_Response *response;
    enum MHD_Result result;
    char body[200];

    response = MHD_create_response_from_buffer(
        make_text(body, sizeof body, status, text), body,
        MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type",
                            "text/plain; charset=utf-8");
    MHD_add_response_header(response, "Connection", "close");
    if (status == 401)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (is_ours(status)) {
        MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
        MHD_add_response_header(response, "X-Go-Pprof", "1");
    }
    cpprof__http_set_state(c, CPPROF__HTTP_LINGER, CPPROF__LINGER_NS);
    result = MHD_queue_response(c->mhd, status, response);
    MHD_destroy_response(response);
    return result;
}

/* The same between the head and the end of a body. libmicrohttpd accepts no
 * answer there, so the refusal is written to the socket directly: only "100
 * Continue" may have been sent so far, and libmicrohttpd sends nothing before
 * the end of the body.
 */
static void
refuse_midway(struct cpprof__http_request *r, unsigned status)
{
    struct cpprof__http_connection *c = r->connection;
    char body[64], answer[256];
    size_t n_body = make_text(body, sizeof body, status, NULL);
    int n = snprintf(answer, sizeof answer,
                     "HTTP/1.1 %u %s\r\n"
                     "Content-Type: text/plain; charset=utf-8\r\n"
                     "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                     status, MHD_get_reason_phrase_for(status), n_body, body);

    r->is_refused = true;
    if (send(c->fd, answer, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) == n)
        cpprof__http_shut(c, SHUT_WR);
    cpprof__http_set_state(c, CPPROF__HTTP_LINGER, CPPROF__LINGER_NS);
}

/* ---- its head -------------------------------------------------------------
 */

/* The headers that are looked at. */
struct headers {
    const char *host;
    const char *authorization; /* several are an error */
    const char *fetch_site;
    const char *origin;
    const char *content_type;
    const char *content_length;
    const char *transfer_encoding;
    bool are_doubtful, take_gzip;
};

static enum MHD_Result
note_header(void *ctx, enum MHD_ValueKind kind, const char *name, size_t n_name,
            const char *value, size_t n_value)
{
    struct headers *h = ctx;
    const struct {
        const char *name;
        const char **value;
    } once[] = {
        {"Host", &h->host},
        {"Authorization", &h->authorization},
        {"Sec-Fetch-Site", &h->fetch_site},
        {"Origin", &h->origin},
        {"Content-Type", &h->content_type},
        {"Content-Length", &h->content_length},
        {"Transfer-Encoding", &h->transfer_encoding},
    };
    size_t i;

    (void)kind;
    (void)n_name;
    (void)n_value;
    value = value ? value : "";
    if (strcasecmp(name, "Accept-Encoding") == 0)
        h->take_gzip |= cpprof__http_takes_gzip(value);
    for (i = 0; i < sizeof once / sizeof *once; i++) {
        if (strcasecmp(name, once[i].name))
            continue;
        if (*once[i].value && strcmp(*once[i].value, value) != 0)
            h->are_doubtful = true;
        *once[i].value = value;
    }
    return MHD_YES;
}

/* A request that two readers could understand differently gets status 400. 0:
 * it is fine. */
static unsigned
find_fault(struct cpprof__http_request *r, const char *version,
           struct headers *h, const char **why)
{
    const union MHD_ConnectionInfo *size;
    size_t most = r->server->pool / 3;

    r->has_version_0 = !strcmp(version, "HTTP/1.0");
    MHD_get_connection_values_n(r->connection->mhd, MHD_HEADER_KIND,
                                note_header, h);
    size = MHD_get_connection_info(r->connection->mhd,
                                   MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (strlen(r->text) > most)
        return 414;
    /* More than the pool there cannot be: libmicrohttpd 0.9.72 does not know.
     */
    if (size && size->header_size > most &&
        size->header_size <= r->server->pool)
        return 431;
    *why = "a header that is there twice";
    if (h->are_doubtful)
        return 400;
    *why = "malformed target";
    if (!cpprof__http_target_parse(r->text, &r->target))
        return 400;
    *why = "missing required Host header";
    if (!h->host && !r->has_version_0)
        return 400;
    *why = "malformed length of the body";
    if (h->transfer_encoding && (h->content_length || r->has_version_0))
        return 400;
    *why = "unsupported transfer encoding";
    if (h->transfer_encoding && strcasecmp(h->transfer_encoding, "chunked"))
        return 501;
    *why = NULL;
    return 0;
}

static bool
is_reading(const char *method)
{
    return !strcmp(method, "GET") || !strcmp(method, "HEAD");
}

/* May the client ask at all? 0, or the status that denies it. */
static unsigned
find_denial(struct cpprof__http_request *r, const struct headers *h,
            const char *method, const char **why)
{
    const struct cpprof__http_server *s = r->server;
    const char *host = r->target.host ? r->target.host : h->host;
    const char *site = h->fetch_site;

    /* Browsers that do not say it name the page. */
    if (!site && h->origin &&
        !cpprof__http_is_same_origin(NULL, h->origin, host))
        site = "cross-site";
    *why = "Unauthorized: \"Authorization: Bearer TOKEN\" is needed";
    if (s->token && !cpprof__http_token_is(h->authorization, s->token))
        return 401;
    *why = "Forbidden: the kernel does not tell that this connection is yours";
    if (r->connection->is_strange)
        return 403;
    *why = "Forbidden: the Host header must be an address or localhost";
    if (s->guards_names && !cpprof__http_host_is_here(host))
        return 403;
    *why = "Forbidden: a page of another site asks";
    if (s->guards_names && !cpprof__http_site_may_ask(site, r->target.path))
        return 403;
    *why = "Forbidden: only its own page may change something";
    if (s->host->is_private && !is_reading(method) &&
        !cpprof__http_is_same_origin(h->fetch_site, h->origin, host))
        return 403;
    *why = NULL;
    if (h->content_length &&
        strtoull(h->content_length, NULL, 10) > s->options.max_body)
        return 413;
    return 0;
}

static enum MHD_Result
take_head(struct cpprof__http_request *r, const char *method,
          const char *version)
{
    struct headers h = {0};
    const char *why = NULL;
    unsigned status = find_fault(r, version, &h, &why);

    r->is_checked = true;
    if (!status)
        status = find_denial(r, &h, method, &why);
    if (status)
        return refuse(r, status, why);
    r->takes_gzip = h.take_gzip;
    r->is_from_others =
        h.fetch_site && (strcasecmp(h.fetch_site, "cross-site") == 0 ||
                         strcasecmp(h.fetch_site, "same-site") == 0);
    r->method = strdup(method);
    if (h.content_type)
        r->content_type = strdup(h.content_type);
    return r->method && (!h.content_type || r->content_type) ? MHD_YES : MHD_NO;
}

/* ---- its body -------------------------------------------------------------
 */

static unsigned
grow_body(struct cpprof__http_request *r, size_t n)
{
    struct cpprof__http_server *s = r->server;
    size_t room = r->body_room ? r->body_room : 1024;
    char *body;

    if (n > s->options.max_body - r->n_body)
        return 413;
    while (room < r->n_body + n)
        room *= 2;
    if (room == r->body_room)
        return 0;
    if (s->n_bodies + (room - r->body_room) >
        (size_t)CPPROF__BODIES * (s->options.max_body + 4096u))
        return 503;
    body = realloc(r->body, room);
    if (!body)
        return 503;
    s->n_bodies += room - r->body_room;
    r->body = body;
    r->body_room = room;
    return 0;
}

static void
add_body(struct cpprof__http_request *r, const char *data, size_t n)
{
    unsigned status = grow_body(r, n);

    if (status) {
        refuse_midway(r, status);
        return;
    }
    memcpy(r->body + r->n_body, data, n);
    r->n_body += n;
}

/* ---- its end --------------------------------------------------------------
 */

/* Hand the request to a worker, or queue the answer that the worker has begun.
 */
static enum MHD_Result
serve(struct cpprof__http_request *r)
{
    struct MHD_Response *response = r->response;
    enum MHD_Result result;

    if (!r->is_served) {
        r->is_served = r->has_worker = true;
        if (cpprof__http_queue(r)) {
            r->has_worker = false;
            return refuse(r, 503, "Could not start: no thread for it");
        }
        cpprof__http_set_state(r->connection, CPPROF__HTTP_SERVED, 0);
    }
    if (!response && !r->has_worker)
        return MHD_NO;
    if (!response) {
        r->is_suspended = true;
        MHD_suspend_connection(r->connection->mhd);
        return MHD_YES;
    }
    r->response = NULL;
    cpprof__http_set_state(r->connection, CPPROF__HTTP_SENDING,
                           CPPROF__STALL_NS);
    result = MHD_queue_response(r->connection->mhd, r->status, response);
    MHD_destroy_response(response);
    return result;
}

enum MHD_Result
cpprof__http_take(struct cpprof__http_request *r, const char *method,
                  const char *version, const char *data, size_t *n)
{
    r->server->n_rounds = 0;
    if (!r->is_checked)
        return take_head(r, method, version);
    if (*n) {
        if (!r->is_refused)
            add_body(r, data, *n);
        *n = 0;
        return MHD_YES;
    }
    return r->is_refused ? MHD_NO : serve(r);
}
