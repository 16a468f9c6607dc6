/* SPDX-License-Identifier: MIT */
/*
 * /debug/pprof/ in a server on libmicrohttpd that a program has already.
 *
 *     cc http_microhttpd.c -lmicrohttpd -lcpprof && ./a.out 8080
 *     go tool pprof http://localhost:8080/debug/pprof/heap
 *
 * An answer is collected, and sent when it is whole. Each connection has a
 * thread, so a capture keeps nobody else waiting.
 */
#include <cpprof/http.h>

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct call {
    char uri[2048]; /* as it came */
    bool is_begun;
    char body[65536];
    size_t n_body;
    unsigned status;
    struct MHD_Response *response;
    FILE *out; /* to the next two */
    char *answer;
    size_t n_answer;
};

static ssize_t
read_answer(void *ctx, uint64_t at, char *to, size_t n)
{
    const struct call *c = ctx;

    n = n < c->n_answer - at ? n : c->n_answer - at;
    memcpy(to, c->answer + at, n);
    return n ? (ssize_t)n : MHD_CONTENT_READER_END_OF_STREAM;
}

static int
begin(void *ctx, int status, const struct cpprof_http_header *headers,
      size_t n_headers, int64_t n_body)
{
    struct call *c = ctx;

    c->status = (unsigned)status;
    c->response = MHD_create_response_from_callback(
        n_body < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)n_body, 65536, read_answer, c,
        NULL);
    for (size_t i = 0; c->response && i < n_headers; i++)
        MHD_add_response_header(c->response, headers[i].name, headers[i].value);
    return c->response ? 0 : ENOMEM;
}

static int
write_body(void *ctx, const void *data, size_t n)
{
    return fwrite(data, 1, n, ((struct call *)ctx)->out) == n ? 0 : ENOMEM;
}

/* First of all: the target. */
static void *
start_call(void *cls, const char *uri, struct MHD_Connection *connection)
{
    struct call *c = calloc(1, sizeof *c);

    if (c) {
        snprintf(c->uri, sizeof c->uri, "%s", uri);
        c->out = open_memstream(&c->answer, &c->n_answer);
    }
    return c;
}

static enum MHD_Result
handle(void *cls, struct MHD_Connection *connection, const char *path,
       const char *method, const char *version, const char *data, size_t *n,
       void **ctx)
{
    struct call *c = *ctx;
    const struct cpprof_http_response to = {sizeof to, begin, write_body, c};
    struct cpprof_http_request request = {
        .size = sizeof request, .method = method, .path = path};

    if (!c || !c->out || *n > sizeof c->body - c->n_body)
        return MHD_NO;
    memcpy(c->body + c->n_body, data ? data : "", *n);
    c->n_body += *n;
    if (*n || !c->is_begun) { /* more of the body, or all of it, comes */
        *n = 0;
        c->is_begun = true;
        return MHD_YES;
    }
    request.query = strchr(c->uri, '?') ? strchr(c->uri, '?') + 1 : NULL;
    request.content_type = MHD_lookup_connection_value(
        connection, MHD_HEADER_KIND, "Content-Type");
    request.body = c->body;
    request.n_body = c->n_body;
    if (cpprof_http_handle(&request, &to, NULL) != CPPROF_OK || fflush(c->out))
        return MHD_NO; /* cuts the connection */
    return MHD_queue_response(connection, c->status, c->response);
}

static void
end_call(void *cls, struct MHD_Connection *connection, void **ctx,
         enum MHD_RequestTerminationCode how)
{
    struct call *c = *ctx;

    if (c && c->response)
        MHD_destroy_response(c->response);
    if (c && c->out)
        fclose(c->out);
    if (c)
        free(c->answer);
    free(c);
}

int
main(int argc, char **argv)
{
    struct MHD_Daemon *server = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION,
        (uint16_t)atoi(argc > 1 ? argv[1] : "8080"), NULL, NULL, handle, NULL,
        MHD_OPTION_URI_LOG_CALLBACK, start_call, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, end_call, NULL, MHD_OPTION_END);

    return server ? pause() : 1;
}
