/* SPDX-License-Identifier: MIT */
/* Requests, as their bytes come. */
#include "http/server/guard.h"
#include "http/server/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* ---- whole requests ----------------------------------------------------- */

static void
serve(struct cpprof__http_connection *c)
{
    c->state = CPPROF__HTTP_SERVED;
    if (cpprof__http_queue(c))
        cpprof__http_refuse(c, 503, "Could not start: no thread for it");
}

/* May it ask at all? False: it was told. */
static bool
is_admitted(struct cpprof__http_connection *c)
{
    struct cpprof__http_server *s = c->server;

    if (s->token && !cpprof__http_token_is(c->head.authorization, s->token))
        cpprof__http_refuse(
            c, 401, "Unauthorized: \"Authorization: Bearer TOKEN\" is needed");
    else if (s->guards_names && !cpprof__http_host_is_here(c->head.host))
        cpprof__http_refuse(
            c, 403,
            "Forbidden: the Host header must be an address or localhost");
    else if (!c->head.is_chunked && c->head.n_body > s->options.max_body)
        cpprof__http_refuse(c, 413, NULL);
    else
        return true;
    return false;
}

static void
say_continue(struct cpprof__http_connection *c)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

    if (c->head.wants_continue && (c->head.is_chunked || c->head.n_body) &&
        c->n_input == c->n_head)
        if (send(c->fd, text, sizeof text - 1, MSG_NOSIGNAL) < 0)
            return; /* seen when it is read */
}

static bool
take_head(struct cpprof__http_connection *c)
{
    size_t n = cpprof__http_head_length(c->input, c->n_input, &c->seen);
    bool is_line;
    const char *why;
    int status;

    if (n > CPPROF__HEAD_MAX || (!n && c->n_input >= CPPROF__HEAD_MAX)) {
        is_line = !memchr(c->input, '\n', CPPROF__HEAD_MAX);
        cpprof__http_refuse(c, is_line ? 414 : 431, NULL);
        return false;
    }
    if (!n)
        return false;
    c->n_head = n;
    status = cpprof__http_head_parse(c->input, n, &c->head, &why);
    if (status) {
        cpprof__http_refuse(c, status, why);
        return false;
    }
    if (!is_admitted(c))
        return false;
    say_continue(c);
    c->state = CPPROF__HTTP_BODY;
    return true;
}

/* ---- bodies ---------------------------------------------------------------
 */

static int
grow_body(struct cpprof__http_connection *c, size_t n)
{
    struct cpprof__http_server *s = c->server;
    size_t room = c->body_room ? c->body_room : 1024;
    char *body;

    if (n > s->options.max_body - c->n_body)
        return 413;
    while (room < c->n_body + n)
        room *= 2;
    if (room == c->body_room)
        return 0;
    if (s->n_bodies + (room - c->body_room) >
        (size_t)CPPROF__BODIES * (s->options.max_body + 4096u))
        return 503;
    body = realloc(c->body, room);
    if (!body)
        return 503;
    s->n_bodies += room - c->body_room;
    c->body = body;
    c->body_room = room;
    return 0;
}

static int
add_body(struct cpprof__http_connection *c, const char *data, size_t n)
{
    int status = grow_body(c, n);

    if (status)
        return status;
    memcpy(c->body + c->n_body, data, n);
    c->n_body += n;
    return 0;
}

/* Those bytes behind the head are done with. */
static void
drop_input(struct cpprof__http_connection *c, size_t n)
{
    memmove(c->input + c->n_head, c->input + c->n_head + n,
            c->n_input - c->n_head - n);
    c->n_input -= n;
}

/* -1: not yet whole, 0: whole, or a status. */
static int
take_chunks(struct cpprof__http_connection *c)
{
    size_t at = c->n_head, used, n_data;
    int what = CPPROF__CHUNKS_DATA, status = 0;

    while (!status && what == CPPROF__CHUNKS_DATA) {
        what = cpprof__http_chunks_take(&c->chunks, c->input + at,
                                        c->n_input - at, &used, &n_data);
        at += used;
        if (what == CPPROF__CHUNKS_DATA) {
            status = add_body(c, c->input + at, n_data);
            at += n_data;
        }
    }
    drop_input(c, at - c->n_head);
    if (status || what == 400)
        return status ? status : 400;
    return what == CPPROF__CHUNKS_END ? 0 : -1;
}

static int
take_length(struct cpprof__http_connection *c)
{
    size_t n = c->n_input - c->n_head;
    int status;

    if (n > c->head.n_body - c->n_body)
        n = (size_t)c->head.n_body - c->n_body;
    status = n ? add_body(c, c->input + c->n_head, n) : 0;
    drop_input(c, n);
    if (status)
        return status;
    return c->n_body == c->head.n_body ? 0 : -1;
}

static void
take_body(struct cpprof__http_connection *c)
{
    int status = c->head.is_chunked ? take_chunks(c) : take_length(c);

    if (!status)
        serve(c);
    else if (status > 0)
        cpprof__http_refuse(c, status, NULL);
}

void
cpprof__http_proceed(struct cpprof__http_connection *c)
{
    if (c->state == CPPROF__HTTP_HEAD && c->n_input && c->is_idle) {
        c->is_idle = false;
        c->since_ns = cpprof__http_now();
        c->deadline_ns = c->since_ns + c->server->options.header_seconds *
                                           UINT64_C(1000000000);
    }
    if (c->state == CPPROF__HTTP_HEAD && !take_head(c))
        return;
    take_body(c);
}

/* ---- bytes ----------------------------------------------------------------
 */

static void
drop_all(struct cpprof__http_connection *c)
{
    ssize_t n;

    do
        n = recv(c->fd, c->input, CPPROF__INPUT, 0);
    while (n > 0);
    if (!n || (errno != EAGAIN && errno != EINTR))
        cpprof__http_close_one(c);
}

void
cpprof__http_readable(struct cpprof__http_connection *c)
{
    ssize_t n;

    if (c->state == CPPROF__HTTP_LINGER) {
        drop_all(c);
        return;
    }
    n = recv(c->fd, c->input + c->n_input, CPPROF__INPUT - c->n_input, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        cpprof__http_close_one(c);
        return;
    }
    c->n_input += (size_t)n;
    cpprof__http_proceed(c);
}

/* The next request, of which some may have been read. */
static void
begin_anew(struct cpprof__http_connection *c)
{
    memmove(c->input, c->input + c->n_head, c->n_input - c->n_head);
    c->n_input -= c->n_head;
    c->n_head = c->seen = 0;
    c->server->n_bodies -= c->body_room;
    free(c->body);
    c->body = NULL;
    c->n_body = c->body_room = 0;
    memset(&c->chunks, 0, sizeof c->chunks);
    c->state = CPPROF__HTTP_HEAD;
    c->is_idle = true;
    c->since_ns = cpprof__http_now();
    c->deadline_ns = c->since_ns + CPPROF__IDLE_NS;
    if (c->n_input)
        cpprof__http_proceed(c);
}

void
cpprof__http_served(struct cpprof__http_connection *c)
{
    if (c->is_cut) {
        cpprof__http_close_one(c);
    } else if (c->keeps) {
        begin_anew(c);
    } else {
        shutdown(c->fd, SHUT_WR);
        c->state = CPPROF__HTTP_LINGER;
        c->since_ns = cpprof__http_now();
        c->deadline_ns = c->since_ns + CPPROF__LINGER_NS;
    }
}
