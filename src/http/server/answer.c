/* SPDX-License-Identifier: MIT */
/*
 * An answer, sent by the worker that makes it. The socket never blocks: where
 * it would, the worker waits for the reader, as long as that one keeps a pace.
 */
#include "http/server/server.h"

#include "arch/atomic.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Of a head without its end. */
#define HEAD_ROOM 4096

struct answer {
    struct cpprof__http_connection *c;
    bool has_begun;
    bool has_body; /* may send one: not to HEAD, nor with 204 and 304 */
    bool is_chunked;
    int64_t left; /* of a length that was told; -1: none was */
    uint64_t n_sent;
    uint64_t stalled_ns; /* in all */
};

/* ---- the socket -----------------------------------------------------------
 */

static uint64_t
least(uint64_t ns)
{
    return ns < CPPROF__STALL_NS ? ns : CPPROF__STALL_NS;
}

/* Wait until it takes more. ETIMEDOUT: the reader is too slow. */
static int
wait_for_reader(struct answer *a)
{
    uint64_t most =
        CPPROF__STALL_NS + a->n_sent / CPPROF__PACE * UINT64_C(1000000000);
    struct pollfd poll_fd = {a->c->fd, POLLOUT, 0};
    uint64_t begun = cpprof__http_now();
    int n = 0;

    if (a->stalled_ns < most) {
        store_relaxed(&a->c->stalled_ns, begun);
        n = poll(&poll_fd, 1, (int)(least(most - a->stalled_ns) / 1000000) + 1);
        store_relaxed(&a->c->stalled_ns, (uint64_t)0);
        a->stalled_ns += cpprof__http_now() - begun;
    }
    if (n > 0 || (n < 0 && errno == EINTR))
        return 0;
    return n ? errno : ETIMEDOUT;
}

static void
advance(struct iovec *parts, size_t n_parts, size_t n)
{
    size_t i;

    for (i = 0; i < n_parts; i++) {
        size_t here = n < parts[i].iov_len ? n : parts[i].iov_len;

        parts[i].iov_base = (char *)parts[i].iov_base + here;
        parts[i].iov_len -= here;
        n -= here;
    }
}

static int
send_all(struct answer *a, struct iovec *parts, size_t n_parts, int flags)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = n_parts};
    size_t left = 0, i;
    ssize_t n;
    int failed;

    for (i = 0; i < n_parts; i++)
        left += parts[i].iov_len;
    while (left) {
        n = sendmsg(a->c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT | flags);
        if (n >= 0) {
            advance(parts, n_parts, (size_t)n);
            left -= (size_t)n;
            a->n_sent += (uint64_t)n;
        } else if (errno == EAGAIN) {
            failed = wait_for_reader(a);
            if (failed)
                return failed;
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

/* ---- what the handler calls -----------------------------------------------
 */

struct text {
    char *data;
    size_t n, room;
    bool is_too_long;
};

static void
add(struct text *text, const char *data, size_t n)
{
    if (n > text->room - text->n) {
        text->is_too_long = true;
        return;
    }
    memcpy(text->data + text->n, data, n);
    text->n += n;
}

static void
add_text(struct text *text, const char *data)
{
    add(text, data, strlen(data));
}

/* A value may come from a program's names: no line ends in there. */
static void
add_header(struct text *text, const char *name, const char *value)
{
    size_t n;

    add_text(text, name);
    add(text, ": ", 2);
    for (; *value; value += n) {
        n = 0;
        while (value[n] && ((unsigned char)value[n] >= ' ' || value[n] == '\t'))
            n++;
        add(text, value, n);
        n += value[n] != 0;
    }
    add(text, "\r\n", 2);
}

static void
add_framing(struct answer *a, struct text *text, int64_t n_body)
{
    const struct cpprof__http_head *head = &a->c->head;
    char line[64];

    if (a->left >= 0) {
        snprintf(line, sizeof line, "Content-Length: %lld\r\n",
                 (long long)n_body);
        add_text(text, line);
    } else if (!a->has_body) {
        /* as Go: nothing is said of a body that does not come */
    } else if (head->has_version_0) {
        a->c->keeps = false;
    } else {
        a->is_chunked = true;
        add_text(text, "Transfer-Encoding: chunked\r\n");
    }
    if (!a->c->keeps)
        add_text(text, "Connection: close\r\n");
    else if (head->has_version_0)
        add_text(text, "Connection: keep-alive\r\n");
}

static int
begin(void *ctx, int status, const struct cpprof_http_header *headers,
      size_t n_headers, int64_t n_body)
{
    char data[HEAD_ROOM], line[64];
    struct text text = {data, 0, sizeof data, false};
    bool is_bare = status == 204 || status == 304;
    struct answer *a = ctx;
    struct iovec part;
    size_t i;

    if (a->has_begun)
        return EALREADY;
    a->has_body = strcmp(a->c->head.method, "HEAD") && !is_bare;
    a->left = is_bare ? -1 : n_body;
    snprintf(line, sizeof line, "HTTP/1.%d %d %s\r\n",
             a->c->head.has_version_0 ? 0 : 1, status,
             cpprof__http_status_text(status));
    add_text(&text, line);
    for (i = 0; i < n_headers; i++)
        add_header(&text, headers[i].name, headers[i].value);
    add(&text, line, cpprof__http_date(line, sizeof line));
    add_framing(a, &text, n_body);
    add(&text, "\r\n", 2);
    if (text.is_too_long)
        return EMSGSIZE;
    a->has_begun = true;
    part = (struct iovec){data, text.n};
    return send_all(a, &part, 1, a->has_body && n_body > 0 ? MSG_MORE : 0);
}

static int
write_body(void *ctx, const void *data, size_t n)
{
    struct answer *a = ctx;
    char size[24];
    struct iovec parts[3];

    if (!a->has_begun)
        return EINVAL;
    if (!a->has_body || !n)
        return 0;
    if (a->left >= 0 && (uint64_t)a->left < n)
        return EMSGSIZE;
    if (a->left >= 0)
        a->left -= (int64_t)n;
    parts[0] = (struct iovec){size, 0};
    parts[1] = (struct iovec){(void *)(uintptr_t)data, n};
    parts[2] = (struct iovec){(char *)(uintptr_t) "\r\n", 0};
    if (a->is_chunked) {
        parts[0].iov_len = (size_t)snprintf(size, sizeof size, "%zx\r\n", n);
        parts[2].iov_len = 2;
    }
    return send_all(a, parts, 3, 0);
}

/* A client that left, or that says that it sends no more, as in Go. A server
 * that stops shuts the socket for reading itself, and wants an answer. */
static bool
wait_or_left(void *ctx, uint64_t ns)
{
    const struct answer *a = ctx;
    struct pollfd poll_fd = {a->c->fd, POLLRDHUP, 0};
    uint64_t now = cpprof__http_now(), until = now + ns;

    for (; now < until; now = cpprof__http_now()) {
        uint64_t ms = (until - now + 999999) / 1000000;

        if (poll(&poll_fd, 1, ms < 1000000 ? (int)ms : 1000000) > 0)
            return !load_acquire(&a->c->server->stops);
    }
    return false;
}

/* ---- one request ------------------------------------------------------------
 */

static int
finish(struct answer *a)
{
    static char last[] = "0\r\n\r\n";
    struct iovec part = {last, 5};

    if (!a->has_body)
        return 0;
    if (a->left > 0)
        return EMSGSIZE;
    return a->is_chunked ? send_all(a, &part, 1, 0) : 0;
}

static void
say_failure(struct answer *a)
{
    static const char text[] = "Internal Server Error\n";
    static const struct cpprof_http_header headers[] = {
        {"Content-Type", "text/plain; charset=utf-8"}, {"X-Go-Pprof", "1"}};

    a->c->keeps = false;
    a->c->is_cut = begin(a, 500, headers, 2, sizeof text - 1) ||
                   write_body(a, text, sizeof text - 1) || finish(a);
}

void
cpprof__http_answer(struct cpprof__http_connection *c)
{
    const struct cpprof_http_options *options = &c->server->options;
    struct answer a = {.c = c, .left = -1};
    const struct cpprof_http_request request = {
        .size = sizeof request,
        .method = c->head.method,
        .path = c->head.path,
        .query = c->head.query,
        .content_type = c->head.content_type,
        .body = c->body,
        .n_body = c->n_body,
        .flags = options->flags & ~CPPROF_HTTP_INSECURE,
        .max_seconds = options->max_seconds,
        .max_captures = options->max_captures,
        .wait = wait_or_left,
        .ctx = &a,
    };
    const struct cpprof_http_response response = {sizeof response, begin,
                                                  write_body, &a};
    enum cpprof_status status;

    c->keeps = c->head.keeps_alive && !load_acquire(&c->server->stops);
    status = c->server->host->handle(&request, &response, NULL);
    if (!a.has_begun)
        say_failure(&a);
    else if (status != CPPROF_OK || finish(&a))
        c->is_cut = true;
}
