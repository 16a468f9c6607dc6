/* SPDX-License-Identifier: MIT */
/*
 * Requests that anybody may send: any method, path, query, type and body. The
 * answer has one head, as many bytes as it said, and headers of one line.
 *
 * The first byte chooses what the request is; the rest is its path, query,
 * content type and body, parted by line feeds. By hand:
 * tests/fuzz/run http SECONDS.
 */
#include <cpprof/http.h>

#include <stdlib.h>
#include <string.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define MAX_BYTES 16384
#define N_PARTS   4

struct answer {
    int64_t said_bytes;
    int64_t n_bytes;
    unsigned n_begins;
};

static void
expect(int holds)
{
    if (!holds)
        abort();
}

static int
begin(void *ctx, int status, const struct cpprof_http_header *headers,
      size_t n_headers, int64_t n_body)
{
    struct answer *a = ctx;
    size_t i;

    a->n_begins++;
    a->said_bytes = n_body;
    expect(status >= 200 && status < 600);
    for (i = 0; i < n_headers; i++)
        expect(!headers[i].value[strcspn(headers[i].value, "\r\n")]);
    return 0;
}

static int
write_body(void *ctx, const void *data, size_t n)
{
    struct answer *a = ctx;

    expect(a->n_begins == 1 && data && n);
    a->n_bytes += (int64_t)n;
    return 0;
}

static bool
leave(void *ctx, uint64_t ns)
{
    (void)ctx;
    return !ns;
}

static void
ask(const struct cpprof_http_request *request)
{
    struct answer a = {0};
    const struct cpprof_http_response response = {sizeof response, begin,
                                                  write_body, &a};

    expect(cpprof_http_handle(request, &response, NULL) == CPPROF_OK);
    expect(a.n_begins == 1);
    if (strcmp(request->method, "HEAD") == 0)
        expect(!a.n_bytes);
    else if (a.said_bytes >= 0)
        expect(a.n_bytes == a.said_bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const methods[] = {"GET", "POST", "HEAD", "CONNECT",
                                          "PUT", "",     "get",  "OPTIONS"};
    char text[MAX_BYTES + 1], *next = text, *parts[N_PARTS] = {0};
    struct cpprof_http_request request = {.size = sizeof request,
                                          .wait = leave};
    int i;

    if (!n || n > MAX_BYTES)
        return 0;
    request.method = methods[data[0] & 7];
    request.max_seconds = data[0] >> 5;
    request.flags = data[0] & 8 ? CPPROF_HTTP_NO_NAMES : 0;
    memcpy(text, data + 1, n - 1);
    text[n - 1] = 0;
    for (i = 0; i < N_PARTS - 1; i++)
        parts[i] = strsep(&next, "\n");
    parts[N_PARTS - 1] = next;
    request.path = parts[0];
    request.query = parts[1];
    request.content_type = parts[2];
    request.body = parts[3];
    request.n_body = parts[3] ? n - 1 - (size_t)(parts[3] - text) : 0;
    ask(&request);
    return 0;
}
