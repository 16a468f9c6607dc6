/* SPDX-License-Identifier: MIT */
/*
 * /debug/pprof/ in a server on civetweb that a program has already.
 *
 *     cc http_civetweb.c -lcivetweb -lcpprof && ./a.out 8080
 *     go tool pprof http://localhost:8080/debug/pprof/heap
 *
 * civetweb calls the handler on a thread for each connection, which may block:
 * a capture takes its time there. It does not tell that a client left, so that
 * one is noticed when the answer is sent.
 */
#include <cpprof/http.h>

#include <civetweb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX 65536

struct answer {
    struct mg_connection *connection;
    int64_t n_body; /* -1: in chunks */
};

static int
begin(void *ctx, int status, const struct cpprof_http_header *headers,
      size_t n_headers, int64_t n_body)
{
    struct answer *a = ctx;
    char length[24];
    size_t i;

    a->n_body = n_body;
    mg_response_header_start(a->connection, status);
    for (i = 0; i < n_headers; i++)
        mg_response_header_add(a->connection, headers[i].name, headers[i].value,
                               -1);
    snprintf(length, sizeof length, "%lld", (long long)n_body);
    if (n_body >= 0)
        mg_response_header_add(a->connection, "Content-Length", length, -1);
    else
        mg_response_header_add(a->connection, "Transfer-Encoding", "chunked",
                               -1);
    return mg_response_header_send(a->connection) < 0 ? 5 /* EIO */ : 0;
}

static int
write_body(void *ctx, const void *data, size_t n)
{
    struct answer *a = ctx;
    int sent;

    if (!n)
        return 0;
    sent = a->n_body < 0 ? mg_send_chunk(a->connection, data, (unsigned)n)
                         : mg_write(a->connection, data, n);
    return sent <= 0 ? 32 /* EPIPE */ : 0;
}

/* What came with a POST, as far as there is room. */
static size_t
read_body(struct mg_connection *connection, char *body)
{
    size_t n = 0;
    int more;

    while (n < BODY_MAX &&
           (more = mg_read(connection, body + n, BODY_MAX - n)) > 0)
        n += (size_t)more;
    return n;
}

static int
handle(struct mg_connection *connection, void *data)
{
    const struct mg_request_info *info = mg_get_request_info(connection);
    char *body = malloc(BODY_MAX);
    struct answer a = {connection, -1};
    struct cpprof_http_request request = {
        .size = sizeof request,
        .method = info->request_method,
        .path = info->local_uri,
        .query = info->query_string,
        .content_type = mg_get_header(connection, "Content-Type"),
        .body = body,
        .n_body = body ? read_body(connection, body) : 0,
        .max_seconds = 300,
    };
    const struct cpprof_http_response response = {sizeof response, begin,
                                                  write_body, &a};
    enum cpprof_status status = cpprof_http_handle(&request, &response, NULL);

    (void)data;
    free(body);
    /* Without its last chunk, nobody takes a part for the whole. */
    if (status == CPPROF_OK && a.n_body < 0 && strcmp(request.method, "HEAD"))
        mg_send_chunk(connection, "", 0);
    return 200;
}

int
main(int argc, char **argv)
{
    const char *options[] = {"listening_ports", argc > 1 ? argv[1] : "8080",
                             "num_threads", "50", NULL};
    struct mg_context *server = mg_start(NULL, NULL, options);

    if (!server)
        return 1;
    mg_set_request_handler(server, "/debug/**", handle, NULL);
    mg_set_request_handler(server, "/pprof/**", handle, NULL);
    getchar();
    mg_stop(server);
    return 0;
}
