/* SPDX-License-Identifier: MIT */
/* Requests to cpprof_http_handle(), and what came back. */
#ifndef TESTS_HTTP_FIXTURE_H
#define TESTS_HTTP_FIXTURE_H

#include <cpprof/http.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX 262144

/* Bytes behind the first BODY_MAX are counted, not kept. */
struct reply {
    int n_begins;
    int status;
    int64_t said_bytes; /* n_body */
    char headers[2048]; /* "Name: value\n" */
    char body[BODY_MAX + 1];
    size_t n_body;

    size_t fail_at; /* bytes after which write fails; 0: never */
    int n_after;    /* calls after one that failed */
    bool failed;

    uint64_t waited_ns;
    unsigned n_waits;
    bool leaves; /* the client does, in the first wait */
    void (*meanwhile)(void);
};

static struct reply reply;

static int
reply_begin(void *ctx, int status, const struct cpprof_http_header *headers,
            size_t n_headers, int64_t n_body)
{
    struct reply *r = ctx;
    size_t i, n = 0;

    r->n_begins++;
    r->n_after += r->failed;
    r->status = status;
    r->said_bytes = n_body;
    for (i = 0; i < n_headers && n < sizeof r->headers; i++)
        n += (size_t)snprintf(r->headers + n, sizeof r->headers - n, "%s: %s\n",
                              headers[i].name, headers[i].value);
    return 0;
}

static int
reply_write(void *ctx, const void *data, size_t n)
{
    struct reply *r = ctx;
    size_t room = r->n_body < BODY_MAX ? BODY_MAX - r->n_body : 0;

    r->n_after += r->failed;
    memcpy(r->body + BODY_MAX - room, data, n < room ? n : room);
    r->n_body += n;
    r->failed = r->fail_at && r->n_body >= r->fail_at;
    return r->failed ? EPIPE : 0;
}

static bool
reply_wait(void *ctx, uint64_t ns)
{
    struct reply *r = ctx;

    r->waited_ns += ns;
    r->n_waits++;
    if (r->meanwhile)
        r->meanwhile();
    return r->leaves;
}

static enum cpprof_status
send_to(struct reply *r, struct cpprof_http_request request,
        struct cpprof_error *error)
{
    const struct cpprof_http_response response = {sizeof response, reply_begin,
                                                  reply_write, r};

    request.size = sizeof request;
    request.wait = reply_wait;
    request.ctx = r;
    return cpprof_http_handle(&request, &response, error);
}

static enum cpprof_status
send_request(struct cpprof_http_request request, struct cpprof_error *error)
{
    return send_to(&reply, request, error);
}

/* Keeps what is set of how the client behaves. */
static void
clear_reply(void)
{
    struct reply r = {.fail_at = reply.fail_at,
                      .leaves = reply.leaves,
                      .meanwhile = reply.meanwhile};

    reply = r;
}

/* query: behind a '?' in the address, if there is one. */
static enum cpprof_status
ask(const char *method, const char *address)
{
    char path[512];
    const char *query = strchr(address, '?');
    struct cpprof_http_request request = {.method = method, .path = path};

    snprintf(path, sizeof path, "%.*s", (int)strcspn(address, "?"), address);
    if (query)
        request.query = query + 1;
    clear_reply();
    return send_request(request, NULL);
}

static inline enum cpprof_status
get(const char *address)
{
    return ask("GET", address);
}

static inline enum cpprof_status
post_form(const char *path, const char *query, const char *type,
          const char *body)
{
    struct cpprof_http_request request = {
        .method = "POST",
        .path = path,
        .query = query,
        .content_type = type,
        .body = body,
        .n_body = strlen(body),
    };

    clear_reply();
    return send_request(request, NULL);
}

#define FORM "application/x-www-form-urlencoded"

#endif
