/* SPDX-License-Identifier: MIT */
/*
 * What a client sends before anybody knows it: the head of a request, and a
 * body in chunks. A head that comes byte by byte ends where it does at once,
 * its texts lie in it and are terminated; chunks give the same body wherever
 * they are cut, never more than was sent.
 *
 * The first byte is the step in which chunks come; the rest is the head, and
 * what follows it the chunks. By hand: tests/fuzz/run http_request SECONDS.
 */
#include "http/server/chunks.h"
#include "http/server/head.h"

#include <stdlib.h>
#include <string.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define MAX_BYTES 16384

static void
expect(int holds)
{
    if (!holds)
        abort();
}

static void
check_text(const char *text, const char *head, size_t n)
{
    if (!text || !strcmp(text, "/"))
        return;
    expect(text >= head && text < head + n);
    expect(memchr(text, 0, (size_t)(head + n - text)) != NULL);
}

static void
check_head(char *data, size_t n)
{
    struct cpprof__http_head head;
    const char *why;
    int status = cpprof__http_head_parse(data, n, &head, &why);

    if (status) {
        expect(status >= 400 && status < 600 && why);
        return;
    }
    check_text(head.method, data, n);
    check_text(head.path, data, n);
    check_text(head.query, data, n);
    check_text(head.host, data, n);
    check_text(head.authorization, data, n);
    check_text(head.content_type, data, n);
    expect(head.path && head.method && *head.method);
    expect(!head.is_chunked || !head.n_body);
}

/* Returns the status it ends with; -1: there is no end. */
static int
join(const char *data, size_t n, size_t step, char *body, size_t *n_body)
{
    struct cpprof__http_chunks chunks = {0};
    size_t at = 0, piece, used, n_data;
    int what;

    *n_body = 0;
    while (at < n) {
        piece = step < n - at ? step : n - at;
        used = n_data = 0;
        what =
            cpprof__http_chunks_take(&chunks, data + at, piece, &used, &n_data);
        expect(used <= piece);
        at += used;
        if (what == CPPROF__CHUNKS_DATA) {
            expect(n_data && n_data <= piece - used);
            memcpy(body + *n_body, data + at, n_data);
            *n_body += n_data;
            at += n_data;
        } else if (what) {
            return what;
        }
    }
    return -1;
}

static void
check_chunks(const char *data, size_t n, size_t step)
{
    char *body = malloc(n + 1), *again = malloc(n + 1);
    size_t n_body, n_again;

    expect(body && again);
    expect(join(data, n, n + 1, body, &n_body) ==
           join(data, n, step, again, &n_again));
    expect(n_body == n_again && !memcmp(body, again, n_body));
    free(body);
    free(again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t seen = 0, length, by_byte = 0, i;
    char *text;

    if (!n || n > MAX_BYTES)
        return 0;
    text = malloc(n);
    expect(text != NULL);
    memcpy(text, data + 1, n - 1);
    length = cpprof__http_head_length(text, n - 1, &seen);
    seen = 0;
    for (i = 1; i < n && !by_byte; i++)
        by_byte = cpprof__http_head_length(text, i, &seen);
    expect(length == by_byte);
    check_chunks(text + length, n - 1 - length, data[0] % 61 + 1);
    if (length)
        check_head(text, length);
    free(text);
    return 0;
}
