/* SPDX-License-Identifier: MIT */
/* Short answers, and the words that all answers are made of. */
#include "http/server/server.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

const char *
cpprof__http_status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } texts[] = {
        {200, "OK"},
        {204, "No Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Request Entity Too Large"},
        {414, "Request URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    size_t i;

    for (i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].status == status)
            return texts[i].text;
    return "Status";
}

/* No strftime(): its names are of the program's locale. */
size_t
cpprof__http_date(char *text, size_t n)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t now = time(NULL);
    struct tm tm;
    int length;

    if (!gmtime_r(&now, &tm))
        return 0;
    length =
        snprintf(text, n, "Date: %.3s, %02d %.3s %d %02d:%02d:%02d GMT\r\n",
                 days + 3 * tm.tm_wday, tm.tm_mday, months + 3 * tm.tm_mon,
                 tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    return length > 0 && (size_t)length < n ? (size_t)length : 0;
}

/* A refusal that a tool should show has the header by which Go's does. */
void
cpprof__http_refuse(struct cpprof__http_connection *c, int status,
                    const char *text)
{
    const char *words = cpprof__http_status_text(status);
    bool is_ours = status == 401 || status == 403 || status == 503;
    char body[200], answer[640];
    int n_body, n;

    if (is_ours)
        n_body = snprintf(body, sizeof body, "%s\n", text ? text : words);
    else if (text)
        n_body = snprintf(body, sizeof body, "%d %s: %s", status, words, text);
    else
        n_body = snprintf(body, sizeof body, "%d %s", status, words);
    n = snprintf(
        answer, sizeof answer,
        "HTTP/1.%d %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n%s%s"
        "Content-Length: %d\r\nConnection: close\r\n\r\n%s",
        c->head.has_version_0 ? 0 : 1, status, words,
        status == 401 ? "WWW-Authenticate: Bearer\r\n" : "",
        is_ours ? "X-Content-Type-Options: nosniff\r\nX-Go-Pprof: 1\r\n" : "",
        n_body, c->head.method && !strcmp(c->head.method, "HEAD") ? "" : body);
    /* A socket that takes no 600 bytes has a client that reads nothing. */
    if (send(c->fd, answer, (size_t)n, MSG_NOSIGNAL) < 0)
        n = 0;
    shutdown(c->fd, SHUT_WR);
    c->state = CPPROF__HTTP_LINGER;
    c->since_ns = cpprof__http_now();
    c->deadline_ns = c->since_ns + CPPROF__LINGER_NS;
}
