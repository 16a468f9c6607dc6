/* SPDX-License-Identifier: MIT */
/*
 * One request over libcurl: sets it up, takes the answer in pieces, and turns
 * every failure into an error in the reference's words.
 *
 * Bounds are enforced in callbacks: size while pieces arrive, time in the
 * progress function. The first byte and every further 16 KiB must come within
 * the same time.
 *
 * Source: internal/driver/fetch.go fetchURL, statusCodeError.
 */
#include "cli/fetch/request.h"

#include "arch/clock.h"
#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

/* As Go's client. */
#define MAX_REDIRECTS 10
/* The most of a failure's body that is shown. */
#define ERROR_BYTES 1024
/* An answer must bring this many bytes in each period that it has for its first
 * byte, or it is given up. Otherwise a server that sends a byte a minute would
 * hold us forever. */
#define SLOWEST_BYTES (16 * 1024)

static int64_t
now_ms(void)
{
    return (int64_t)(cpprof__now_ns(CLOCK_MONOTONIC) / 1000000);
}

/* ----------------------------------------------------------- answers ---- */

static bool
is_ok(const struct cpprof__request *r)
{
    return strncmp(r->status, "200", 3) == 0 &&
           (r->status[3] == 0 || r->status[3] == ' ');
}

/* The value of a line that begins with "name:", else NULL. */
static bool
header(const char *line, const char *name, const char **value)
{
    size_t n = strlen(name);

    if (strncasecmp(line, name, n) != 0 || line[n] != ':')
        return false;
    *value = line + n + 1 + strspn(line + n + 1, " \t");
    return true;
}

/* Each answer begins with a line of its status; redirections make several. */
static size_t
take_header(char *bytes, size_t size, size_t n, void *ctx)
{
    struct cpprof__request *r = ctx;
    char line[256];
    const char *value;
    size_t used = size * n < sizeof line ? size * n : sizeof line - 1;

    memcpy(line, bytes, used);
    line[used] = 0;
    line[strcspn(line, "\r\n")] = 0;
    if (strncmp(line, "HTTP/", 5) == 0) {
        value = line + strcspn(line, " ");
        value += strspn(value, " ");
        snprintf(r->status, sizeof r->status, "%s", value);
        r->verbose_status = r->is_text = false;
    } else if (header(line, "X-Go-Pprof", &value)) {
        r->verbose_status = *value != 0;
    } else if (header(line, "Content-Type", &value)) {
        r->is_text = strcasestr(value, "text/plain") != NULL;
    }
    return size * n;
}

/* Room for n more bytes and a zero. */
static bool
grow(struct cpprof__request *r, size_t n)
{
    size_t wanted = r->n + n + 1;
    size_t capacity = r->capacity ? r->capacity : 16 * 1024;
    char *body;

    if (wanted <= r->capacity)
        return true;
    while (capacity < wanted)
        capacity *= 2;
    body = realloc(r->body, capacity);
    if (!body)
        return false;
    r->body = body;
    r->capacity = capacity;
    return true;
}

static size_t
give_up(struct cpprof__request *r, const char *why)
{
    r->stopped = why;
    return 0; /* to curl: a failure */
}

static size_t
take_body(char *bytes, size_t size, size_t n, void *ctx)
{
    struct cpprof__request *r = ctx;
    size_t n_bytes = size * n, max = is_ok(r) ? r->max_bytes : ERROR_BYTES;

    if (r->budget && !r->is_next && r->budget->used >= r->budget->max) {
        r->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    if (n_bytes > max - r->n) {
        if (is_ok(r))
            return give_up(r, "the answer is too long");
        n_bytes = max - r->n;
    }
    if (!grow(r, n_bytes))
        return give_up(r, "out of memory");
    memcpy(r->body + r->n, bytes, n_bytes);
    r->n += n_bytes;
    r->body[r->n] = 0;
    if (r->budget)
        r->budget->used += n_bytes;
    return n_bytes < size * n ? 0 : n_bytes; /* enough of a failure */
}

/* Called every second, and for every piece. */
static int
look_at_clock(void *ctx, curl_off_t down_total, curl_off_t down,
              curl_off_t up_total, curl_off_t up)
{
    struct cpprof__request *r = ctx;
    int64_t now = now_ms();
    (void)down_total;
    (void)down;
    (void)up_total;
    (void)up;

    if (!r->since_ms || r->paused ||
        (r->n > r->since_n &&
         (r->since_n == 0 || r->n - r->since_n >= SLOWEST_BYTES))) {
        r->since_ms = now;
        r->since_n = r->n;
    }
    if (now - r->since_ms <= (int64_t)r->timeout_s * 1000)
        return 0;
    r->stopped = r->n ? "the answer came to a halt" : "no answer in time";
    return 1;
}

/* ---------------------------------------------------------- requests ---- */

/* Go's rules for proxies: HTTP_PROXY counts in capitals too, but not in a CGI,
 * where it comes from a header of the request. This machine itself needs no
 * proxy. */
static void
set_proxy(struct cpprof__request *r, const struct cpprof__url *url)
{
    const char *proxy = getenv("HTTP_PROXY");

    if (url->loopback)
        r->curl->easy_setopt(r->easy, CURLOPT_PROXY, "");
    else if (strncmp(url->text, "http:", 5) == 0 && proxy && *proxy &&
             !getenv("http_proxy") && !getenv("REQUEST_METHOD"))
        r->curl->easy_setopt(r->easy, CURLOPT_PROXY, proxy);
}

static bool
given(const char *text)
{
    return text && *text;
}

static void
set_tls(struct cpprof__request *r, const struct cpprof__url *url,
        const struct cpprof__fetch_options *options)
{
    const struct cpprof__curl *curl = r->curl;

    if (url->insecure) {
        curl->easy_setopt(r->easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl->easy_setopt(r->easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (given(options->tls_ca)) { /* instead of the system's */
        curl->easy_setopt(r->easy, CURLOPT_CAINFO, options->tls_ca);
        curl->easy_setopt(r->easy, CURLOPT_CAPATH, NULL);
    }
    if (given(options->tls_cert)) {
        curl->easy_setopt(r->easy, CURLOPT_SSLCERT, options->tls_cert);
        curl->easy_setopt(r->easy, CURLOPT_SSLKEY, options->tls_key);
    }
}

static void
set_callbacks(struct cpprof__request *r)
{
    const struct cpprof__curl *curl = r->curl;

    curl->easy_setopt(r->easy, CURLOPT_HEADERFUNCTION, take_header);
    curl->easy_setopt(r->easy, CURLOPT_HEADERDATA, (void *)r);
    curl->easy_setopt(r->easy, CURLOPT_WRITEFUNCTION, take_body);
    curl->easy_setopt(r->easy, CURLOPT_WRITEDATA, (void *)r);
    curl->easy_setopt(r->easy, CURLOPT_XFERINFOFUNCTION, look_at_clock);
    curl->easy_setopt(r->easy, CURLOPT_XFERINFODATA, (void *)r);
    curl->easy_setopt(r->easy, CURLOPT_NOPROGRESS, 0L);
    curl->easy_setopt(r->easy, CURLOPT_ERRORBUFFER, r->curl_text);
    curl->easy_setopt(r->easy, CURLOPT_PRIVATE, (void *)r);
}

/* Without the "+insecure" that curl does not know. */
static bool
set_url(struct cpprof__request *r, const struct cpprof__url *url)
{
    char *text;
    bool ok;

    if (!url->insecure)
        return r->curl->easy_setopt(r->easy, CURLOPT_URL, url->text) ==
               CURLE_OK;
    if (asprintf(&text, "https%s", url->text + strcspn(url->text, ":")) < 0)
        return false;
    ok = r->curl->easy_setopt(r->easy, CURLOPT_URL, text) == CURLE_OK;
    free(text);
    return ok;
}

/* HTTP/1.1, because its answers have a status in words, which the reference
 * prints. */
static bool
set_all(struct cpprof__request *r, const struct cpprof__url *url,
        const struct cpprof__fetch_options *options)
{
    const struct cpprof__curl *curl = r->curl;

    set_callbacks(r);
    set_proxy(r, url);
    set_tls(r, url, options);
    curl->easy_setopt(r->easy, CURLOPT_PROTOCOLS,
                      (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl->easy_setopt(r->easy, CURLOPT_REDIR_PROTOCOLS,
                      (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl->easy_setopt(r->easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl->easy_setopt(r->easy, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
    curl->easy_setopt(r->easy, CURLOPT_HTTP_VERSION,
                      (long)CURL_HTTP_VERSION_1_1);
    curl->easy_setopt(r->easy, CURLOPT_CONNECTTIMEOUT, (long)url->timeout_s);
    curl->easy_setopt(r->easy, CURLOPT_MAXFILESIZE_LARGE,
                      (curl_off_t)r->max_bytes);
    return curl->easy_setopt(r->easy, CURLOPT_ACCEPT_ENCODING, "gzip") ==
               CURLE_OK &&
           curl->easy_setopt(r->easy, CURLOPT_USERAGENT, "cpprof") ==
               CURLE_OK &&
           set_url(r, url);
}

static bool
set_post(struct cpprof__request *r, const char *post)
{
    const struct cpprof__curl *curl = r->curl;

    if (!post)
        return true;
    r->headers =
        curl->slist_append(NULL, "Content-Type: application/octet-stream");
    curl->easy_setopt(r->easy, CURLOPT_POST, 1L);
    curl->easy_setopt(r->easy, CURLOPT_POSTFIELDS, post);
    curl->easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                      (curl_off_t)strlen(post));
    return r->headers && curl->easy_setopt(r->easy, CURLOPT_HTTPHEADER,
                                           r->headers) == CURLE_OK;
}

enum cpprof_status
cpprof__request_begin(struct cpprof__request *r,
                      const struct cpprof__curl *curl,
                      const struct cpprof__url *url,
                      const struct cpprof__fetch_options *options,
                      const char *post, struct cpprof_error *error)
{
    memset(r, 0, sizeof *r);
    r->curl = curl;
    r->timeout_s = url->timeout_s;
    r->max_bytes = CPPROF__FETCH_MAX_BYTES;
    r->easy = curl->easy_init();
    if (r->easy && set_all(r, url, options) && set_post(r, post))
        return CPPROF_OK;
    cpprof__request_free(r);
    return cpprof__fail_nomem(error);
}

enum cpprof_status
cpprof__request_content(struct cpprof__request *r, const char *type,
                        struct cpprof_error *error)
{
    char header[128];

    snprintf(header, sizeof header, "Content-Type: %s", type);
    r->curl->slist_free_all(r->headers);
    r->headers = r->curl->slist_append(NULL, header);
    if (r->headers && r->curl->easy_setopt(r->easy, CURLOPT_HTTPHEADER,
                                           r->headers) == CURLE_OK)
        return CPPROF_OK;
    return cpprof__fail_nomem(error);
}

void
cpprof__request_free(struct cpprof__request *r)
{
    if (r->easy)
        r->curl->easy_cleanup(r->easy);
    if (r->headers)
        r->curl->slist_free_all(r->headers);
    if (r->budget)
        r->budget->used -= r->n;
    free(r->body);
    memset(r, 0, sizeof *r);
}

/* ------------------------------------------------------------ errors ---- */

enum cpprof_status
cpprof__request_result(const struct cpprof__request *r, CURLcode code,
                       const struct cpprof__url *url,
                       struct cpprof_error *error)
{
    const char *why = r->stopped      ? r->stopped
                      : *r->curl_text ? r->curl_text
                                      : r->curl->easy_strerror(code);
    size_t n = r->n;
    bool answered =
        code == CURLE_OK || (code == CURLE_WRITE_ERROR && !r->stopped);

    if (answered && is_ok(r) && code == CURLE_OK)
        return CPPROF_OK;
    if (answered && !is_ok(r) && r->verbose_status && r->is_text) {
        while (n && strchr(" \t\r\n", r->body[n - 1]))
            n--;
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            "server response: %s - %.*s", r->status, (int)n,
                            n ? r->body : "");
    }
    if (answered && !is_ok(r))
        return cpprof__fail(error, CPPROF_BAD_DATA, 0, "server response: %s",
                            r->status);
    /* libcurl says the same of an answer without a line of HTTP. */
    if (code == CURLE_UNSUPPORTED_PROTOCOL && r->status[0] == 0 &&
        strncasecmp(url->text, "http", 4) != 0)
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            "http fetch: unsupported protocol scheme \"%.*s\"",
                            (int)strcspn(url->text, ":"), url->text);
    return cpprof__fail(error, CPPROF_BAD_DATA, 0, "http fetch: %s", why);
}

/* --------------------------------------------------------------- tls ---- */

static bool
readable(const char *path)
{
    return access(path, R_OK) == 0;
}

enum cpprof_status
cpprof__fetch_check_tls(const struct cpprof__fetch_options *options,
                        struct cpprof_error *error)
{
    const char *cert = options->tls_cert, *key = options->tls_key;
    const char *missing;

    if (given(key) && !given(cert))
        return cpprof__fail(
            error, CPPROF_INVALID, 0,
            "-tls_key is specified, so -tls_cert must also be specified");
    if (given(cert) && !given(key))
        return cpprof__fail(
            error, CPPROF_INVALID, 0,
            "-tls_cert is specified, so -tls_key must also be specified");
    missing = given(cert) && !readable(cert) ? cert
              : given(key) && !readable(key) ? key
                                             : NULL;
    if (missing)
        return cpprof__fail(error, CPPROF_SYSTEM, 0,
                            "could not load certificate/key pair specified by "
                            "-tls_cert and -tls_key: open %s: %s",
                            missing, strerror(errno));
    if (given(options->tls_ca) && !readable(options->tls_ca))
        return cpprof__fail(
            error, CPPROF_SYSTEM, 0,
            "could not load CA specified by -tls_ca: open %s: %s",
            options->tls_ca, strerror(errno));
    return CPPROF_OK;
}
