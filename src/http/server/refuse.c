/* SPDX-License-Identifier: MIT */
/* Answers that need no worker. */
#include "http/server/server.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* Refusals. Errors that Go's server reports itself have the same form here.
 * Errors that a tool should show carry the header by which Go's handlers mark
 * them. */
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

enum MHD_Result
cpprof__http_refuse(struct cpprof__http_request *r, unsigned status,
                    const char *text)
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

/* libmicrohttpd accepts no answer between the head and the end of a body. So
 * the refusal is written to the socket directly: only "100 Continue" may have
 * been sent so far, and libmicrohttpd sends nothing before the end of the body.
 */
void
cpprof__http_refuse_midway(struct cpprof__http_request *r, unsigned status)
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
