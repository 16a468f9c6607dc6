/* SPDX-License-Identifier: MIT */
/*
 * libcpprof-push.so: requests by libcurl, on connections that are kept: mostly
 * one after the other, and at the end of a process several at once. TLS,
 * proxies and names are libcurl's.
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

/* No more than that is read of an answer, with its headers: a server that never
 * ends would cost the program a core. */
#define MOST_BYTES ((size_t)64 << 10)

struct transfer {
    CURL *easy; /* NULL: there was none so far */
    struct curl_slist *headers;
    CURLcode result;
    char why[CURL_ERROR_SIZE]; /* of a failure; "": what it is called */
    bool is_over, wants_answer;
    char answer[MOST_BYTES + 1]; /* its pages are used as it needs them */
    size_t n_answer;
    size_t n_read; /* with the headers; 0: nothing came */
};

struct connection {
    CURLM *multi;
    struct transfer transfers[CPPROF__PUSH_AT_ONCE];
};

static void
close_connection(void *arg)
{
    struct connection *c = arg;
    unsigned i;

    for (i = 0; i < CPPROF__PUSH_AT_ONCE; i++)
        curl_easy_cleanup(c->transfers[i].easy);
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
    if (c->multi)
        return c;
    free(c);
    return NULL;
}

/* ---- what comes back -------------------------------------------------- */

static size_t
note_answer(char *data, size_t one, size_t n, void *arg)
{
    struct transfer *t = arg;
    size_t left = MOST_BYTES - t->n_answer, used = n < left ? n : left;

    memcpy(t->answer + t->n_answer, data, used);
    t->n_answer += used;
    t->answer[t->n_answer] = 0;
    t->n_read += n;
    return t->n_read > MOST_BYTES ? 0 : one * n;
}

static size_t
note_header(char *data, size_t one, size_t n, void *arg)
{
    struct transfer *t = arg;

    (void)data;
    t->n_read += n;
    return t->n_read > MOST_BYTES ? 0 : one * n;
}

/* Behind `"key":` in JSON; NULL: it is not there. */
static char *
find_value(char *json, const char *key)
{
    char *at = *json == '{' ? strstr(json, key) : NULL;

    if (!at)
        return NULL;
    at += strlen(key);
    return at + strspn(at, " \t\r\n");
}

/* The text of a string, decoded in its place; false: it is none, or empty. */
static bool
decode_string(char *at, char **text, size_t *n_text)
{
    char *to;

    if (!at || *at != '"')
        return false;
    *text = to = ++at;
    for (; *at && *at != '"'; at++, to++) {
        *to = *at;
        if (*at != '\\' || !at[1])
            continue;
        at++;
        *to = strchr("\"\\/", *at) ? *at : ' ';
        if (*at == 'u')
            at += strnlen(at + 1, 4);
    }
    *n_text = (size_t)(to - *text);
    return *n_text > 0;
}

/* The "message" of an error, as Connect and gRPC's gateway write one; and what
 * OTLP in JSON says, from a server that was asked in protobuf. */
static void
note_answer_text(struct transfer *t, struct cpprof__push_reply *reply)
{
    bool is_success = reply->status < 300;
    char *text = t->answer,
         *rejected =
             is_success ? find_value(text, "\"rejectedProfiles\":") : NULL,
         *why = find_value(text,
                           is_success ? "\"errorMessage\":" : "\"message\":");
    size_t n = t->n_answer;

    if (rejected) /* a number of 64 bits is a string there */
        reply->n_rejected = strtoull(rejected + (*rejected == '"'), NULL, 10);
    if (decode_string(why, &text, &n) || !is_success || t->wants_answer)
        cpprof__push_reply_text(text, n, reply);
}

/* False: the server has not said what becomes of the request. It may have, and
 * then fallen silent: sent again, the profile would be there twice. */
static bool
note_status(struct transfer *t, struct cpprof__push_reply *reply)
{
    curl_off_t seconds = 0;
    CURL *easy = t->easy;
    char *type = NULL;
    long status = 0;

    if (t->n_read)
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200)
        return false;
    reply->status = (int)status;
    curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
    if (type && !strncasecmp(type, "application/x-protobuf", 22))
        cpprof__push_otlp_reply((const uint8_t *)t->answer, t->n_answer, reply);
    else
        note_answer_text(t, reply);
    if (!curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds) && seconds > 0)
        reply->retry_after_s =
            seconds < UINT32_MAX ? (uint32_t)seconds : UINT32_MAX;
    return true;
}

static void
note_failure(const struct transfer *t, struct cpprof__push_reply *reply)
{
    const char *why = t->is_over ? t->why : "no answer before the end";

    reply->status = 0;
    if (!*why)
        why = curl_easy_strerror(t->result);
    cpprof__push_reply_text(why, strlen(why), reply);
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
set_up(struct transfer *t, const struct cpprof__push_post *post)
{
    const char *path = secure_getenv("CURL_CA_BUNDLE");
    CURL *easy = t->easy;

    curl_easy_reset(easy);
    /* The trusted certificates, chosen as the command curl does. */
    if (!path || !*path)
        path = secure_getenv("SSL_CERT_FILE");
    if (path && *path)
        curl_easy_setopt(easy, CURLOPT_CAINFO, path);
    curl_easy_setopt(easy, CURLOPT_URL, post->url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS,
                     (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->why);
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)post->timeout_ms);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, t->headers);
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
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, note_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
}

/* False: no memory. */
static bool
begin_transfer(struct connection *c, struct transfer *t,
               const struct cpprof__push_post *post)
{
    t->n_answer = t->n_read = 0;
    *t->answer = *t->why = 0;
    t->is_over = false;
    t->wants_answer = post->wants_answer;
    t->result = CURLE_OUT_OF_MEMORY;
    if (!t->easy)
        t->easy = curl_easy_init();
    t->headers = t->easy ? make_headers(post->headers) : NULL;
    if (!t->headers)
        return false;
    set_up(t, post);
    return curl_multi_add_handle(c->multi, t->easy) == CURLM_OK;
}

static void
note_ended(struct connection *c)
{
    CURLMsg *message;
    int n_left;

    while ((message = curl_multi_info_read(c->multi, &n_left))) {
        struct transfer *t = NULL;
        char *private = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
        t = (struct transfer *)(void *)private;
        t->result = message->data.result;
        t->is_over = true;
    }
}

/* Until all are done, or given up. */
static void
wait_for_all(struct connection *c, const uint32_t *cancelled)
{
    int n_running = 1;

    while (n_running) {
        if (load_acquire(cancelled) ||
            curl_multi_perform(c->multi, &n_running) != CURLM_OK)
            break;
        if (n_running)
            curl_multi_poll(c->multi, NULL, 0, LOOK_MS, NULL);
    }
    note_ended(c);
}

static void
end_transfer(struct connection *c, struct transfer *t, bool has_begun,
             struct cpprof__push_reply *reply)
{
    t->is_over |= !has_begun;
    if (!has_begun || !note_status(t, reply))
        note_failure(t, reply);
    if (has_begun)
        curl_multi_remove_handle(c->multi, t->easy);
    curl_slist_free_all(t->headers);
    t->headers = NULL;
}

static void
post(void *connection, const struct cpprof__push_post *posts, unsigned n,
     struct cpprof__push_reply *replies)
{
    struct connection *c = connection;
    bool has_begun[CPPROF__PUSH_AT_ONCE];
    unsigned i;

    memset(replies, 0, n * sizeof *replies);
    for (i = 0; i < n; i++)
        has_begun[i] = begin_transfer(c, &c->transfers[i], &posts[i]);
    wait_for_all(c, posts->cancelled);
    for (i = 0; i < n; i++)
        end_transfer(c, &c->transfers[i], has_begun[i], &replies[i]);
}

extern const struct cpprof__push_http cpprof__push_http;

__attribute__((visibility("default")))
const struct cpprof__push_http cpprof__push_http = {
    CPPROF__PUSH_ABI, open_connection,    post,
    close_connection, cpprof__push_parts, cpprof__push_otlp};
