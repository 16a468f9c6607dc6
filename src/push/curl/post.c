/* SPDX-License-Identifier: MIT */
/*
 * libcpprof-push.so: requests by libcurl, one after the other on a connection
 * that is kept. TLS, proxies and names are libcurl's.
 *
 * Credentials go to the host that they are meant for: no redirection is
 * followed.
 */
#include "push/plugin.h"

#include "arch/atomic.h"
#include "push/curl/otlp.h"

/* Options that all versions know, not those that took their place in 7.85. */
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* How often a request checks whether it has to give up. */
#define LOOK_MS 100

/* Of an answer that is kept, to be decoded. */
#define ANSWER_BYTES 4096

/* No more than that is read of an answer, with its headers: a server that never
 * ends would cost the program a core. */
#define MOST_BYTES ((size_t)64 << 10)

struct connection {
    CURLM *multi;
    CURL *easy;
    uint8_t answer[ANSWER_BYTES];
    size_t n_answer;
    size_t n_read; /* with the headers; 0: nothing came */
};

static void
close_connection(void *arg)
{
    struct connection *c = arg;

    curl_easy_cleanup(c->easy);
    curl_multi_cleanup(c->multi);
    free(c);
}

/* libcrypto's, where libcurl uses that one; OPENSSL_init_crypto(3). */
extern int
OPENSSL_init_crypto(uint64_t options, const void *settings)
    __attribute__((weak));
#define NO_ATEXIT 0x80000u

/* OpenSSL's exit handler frees what a thread of ours may be using, for instance
 * while it reads its tables. So it gets none by us; where the program has begun
 * with it, at_exit is registered later, and runs before. It may be called
 * twice. False also where that handler has run: libcurl would begin with locks
 * that are gone. */
static bool
start_once(void (*at_exit)(void))
{
    static bool started;

    if (started)
        return true;
    if (OPENSSL_init_crypto && !OPENSSL_init_crypto(NO_ATEXIT, NULL))
        return false;
    if (atexit(at_exit))
        return false;
    if (curl_global_init(CURL_GLOBAL_DEFAULT))
        return false;
    started = !atexit(at_exit);
    return started;
}

static void *
open_connection(void (*at_exit)(void))
{
    struct connection *c;

    if (!start_once(at_exit))
        return NULL;
    c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->multi = curl_multi_init();
    c->easy = curl_easy_init();
    if (c->multi && c->easy)
        return c;
    close_connection(c);
    return NULL;
}

/* ---- what comes back -------------------------------------------------- */

static size_t
note_answer(char *data, size_t one, size_t n, void *arg)
{
    struct connection *c = arg;
    size_t left = ANSWER_BYTES - c->n_answer, used = n < left ? n : left;

    memcpy(c->answer + c->n_answer, data, used);
    c->n_answer += used;
    c->n_read += n;
    return c->n_read > MOST_BYTES ? 0 : one * n;
}

static size_t
note_header(char *data, size_t one, size_t n, void *arg)
{
    struct connection *c = arg;

    (void)data;
    c->n_read += n;
    return c->n_read > MOST_BYTES ? 0 : one * n;
}

static void
note_text(const struct connection *c, struct cpprof__push_reply *reply)
{
    size_t n = c->n_answer < sizeof reply->text ? c->n_answer
                                                : sizeof reply->text - 1,
           i;

    for (i = 0; i < n; i++)
        reply->text[i] = c->answer[i] >= ' ' && c->answer[i] <= '~'
                             ? (char)c->answer[i]
                             : ' ';
    while (n && reply->text[n - 1] == ' ')
        n--;
    reply->text[n] = 0;
}

/* False: the server has not said what becomes of the request. It may have, and
 * then fallen silent: sent again, the profile would be there twice. */
static bool
note_status(const struct connection *c, struct cpprof__push_reply *reply)
{
    /* In JSON, from a server that was asked in protobuf. */
    static const char rejected[] = "\"rejectedProfiles\"";
    curl_off_t seconds = 0;
    CURL *easy = c->easy;
    char *type = NULL;
    long status = 0;

    if (c->n_read)
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200)
        return false;
    reply->status = (int)status;
    curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
    if (type && !strncasecmp(type, "application/x-protobuf", 22))
        cpprof__push_otlp_reply(c->answer, c->n_answer, reply);
    else if (status >= 300 ||
             memmem(c->answer, c->n_answer, rejected, sizeof rejected - 1))
        note_text(c, reply);
    if (!curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds) && seconds > 0)
        reply->retry_after_s =
            seconds < UINT32_MAX ? (uint32_t)seconds : UINT32_MAX;
    return true;
}

static void
note_failure(struct cpprof__push_reply *reply, const char *why)
{
    reply->status = 0;
    snprintf(reply->text, sizeof reply->text, "%s", why);
}

/* ---- one request ------------------------------------------------------ */

static struct curl_slist *
make_headers(const char *const *headers)
{
    struct curl_slist *list = NULL, *longer;

    for (; *headers; headers++) {
        longer = curl_slist_append(list, *headers);
        if (!longer) {
            curl_slist_free_all(list);
            return NULL;
        }
        list = longer;
    }
    return list;
}

static void
set_up(struct connection *c, const struct cpprof__push_post *post,
       struct curl_slist *headers)
{
    const char *path = secure_getenv("CURL_CA_BUNDLE");
    CURL *easy = c->easy;

    curl_easy_reset(easy);
    /* The trusted certificates, chosen as the command curl does. */
    if (!path || !*path)
        path = secure_getenv("SSL_CERT_FILE");
    if (path && *path)
        curl_easy_setopt(easy, CURLOPT_CAINFO, path);
    curl_easy_setopt(easy, CURLOPT_URL, post->url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS,
                     (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)post->timeout_ms);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, post->body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     (curl_off_t)post->n_body);
    if (post->user) {
        curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
        curl_easy_setopt(easy, CURLOPT_USERNAME, post->user);
        curl_easy_setopt(easy, CURLOPT_PASSWORD, post->password);
    }
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, note_answer);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, note_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, c);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    c->n_answer = c->n_read = 0;
}

/* Wait until the request is done, with *result. False: it was given up. */
static bool
wait_for(struct connection *c, const uint32_t *cancelled, CURLcode *result)
{
    int n_running = 1, n_left;
    CURLMsg *message;

    while (n_running) {
        if (load_acquire(cancelled) ||
            curl_multi_perform(c->multi, &n_running) != CURLM_OK)
            return false;
        if (n_running)
            curl_multi_poll(c->multi, NULL, 0, LOOK_MS, NULL);
    }
    while ((message = curl_multi_info_read(c->multi, &n_left)))
        if (message->msg == CURLMSG_DONE)
            *result = message->data.result;
    return true;
}

static void
post(void *connection, const struct cpprof__push_post *post,
     struct cpprof__push_reply *reply)
{
    struct curl_slist *headers = make_headers(post->headers);
    struct connection *c = connection;
    CURLcode result = CURLE_OUT_OF_MEMORY;
    bool is_over;

    memset(reply, 0, sizeof *reply);
    if (!headers) {
        note_failure(reply, curl_easy_strerror(result));
        return;
    }
    set_up(c, post, headers);
    curl_multi_add_handle(c->multi, c->easy);
    is_over = wait_for(c, post->cancelled, &result);
    if (!note_status(c, reply))
        note_failure(reply, is_over ? curl_easy_strerror(result) : "given up");
    curl_multi_remove_handle(c->multi, c->easy);
    curl_slist_free_all(headers);
}

extern const struct cpprof__push_http cpprof__push_http;

__attribute__((visibility("default")))
const struct cpprof__push_http cpprof__push_http = {
    CPPROF__PUSH_ABI, open_connection, post, close_connection,
    cpprof__push_parts};
