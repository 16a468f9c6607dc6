/* SPDX-License-Identifier: MIT */
/*
 * /debug/pprof/ on a bare socket: what cpprof_http_handle() needs of a server,
 * and no more: one request after the other, of this machine alone. A program
 * without a server of its own takes cpprof_http_listen() instead.
 *
 *     cc http_bare_socket.c -lcpprof && ./a.out 8080
 *     go tool pprof http://localhost:8080/debug/pprof/heap
 */
#include <cpprof/http.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int
write_body(void *ctx, const void *data, size_t n)
{
    const char *at = data;
    ssize_t sent;

    for (; n; at += sent, n -= (size_t)sent) {
        sent = send(*(int *)ctx, at, n, MSG_NOSIGNAL);
        if (sent < 0)
            return errno;
    }
    return 0;
}

static int
begin(void *ctx, int status, const struct cpprof_http_header *headers,
      size_t n_headers, int64_t n_body)
{
    char head[2048];
    size_t n = (size_t)snprintf(head, sizeof head, "HTTP/1.0 %d .\r\n", status);

    (void)n_body; /* the end of the connection is that of the body, too */
    for (size_t i = 0; i < n_headers && n < sizeof head; i++)
        n += (size_t)snprintf(head + n, sizeof head - n, "%s: %s\r\n",
                              headers[i].name, headers[i].value);
    if (n + 2 >= sizeof head)
        return EMSGSIZE;
    memcpy(head + n, "\r\n", 2);
    return write_body(ctx, head, n + 2);
}

/* A client that left ends its capture. */
static bool
wait_or_left(void *ctx, uint64_t ns)
{
    struct pollfd left = {*(int *)ctx, POLLRDHUP, 0};

    return poll(&left, 1, (int)(ns / 1000000) + 1) > 0;
}

/* Up to the empty line; false: there is none. */
static bool
read_head(int fd, char *head, size_t room)
{
    size_t n = 0;
    ssize_t more;

    while (n < room - 1 && (more = recv(fd, head + n, room - 1 - n, 0)) > 0) {
        n += (size_t)more;
        head[n] = 0;
        if (strstr(head, "\r\n\r\n"))
            return true;
    }
    return false;
}

static void
answer(int fd)
{
    const struct cpprof_http_response response = {sizeof response, begin,
                                                  write_body, &fd};
    const struct linger reset = {1, 0};
    struct cpprof_http_request request = {
        .size = sizeof request, .wait = wait_or_left, .ctx = &fd};
    char head[4096], method[16], target[2048], *query;

    if (!read_head(fd, head, sizeof head) ||
        sscanf(head, "%15s %2047s", method, target) != 2)
        return;
    query = strchr(target, '?');
    if (query)
        *query++ = 0;
    request.method = method;
    request.path = target;
    request.query = query;
    /* A part of an answer must not look whole. */
    if (cpprof_http_handle(&request, &response, NULL) != CPPROF_OK)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

int
main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const struct timeval most = {10, 0};
    int fd, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_port = htons((in_port_t)atoi(argc > 1 ? argv[1] : "8080"));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) ||
        listen(listener, 16))
        return 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
        answer(fd);
        close(fd);
    }
    return 0;
}
