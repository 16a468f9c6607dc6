/* SPDX-License-Identifier: MIT */
/*
 * One request over HTTP, and its answer in memory.
 *
 * What an answer may cost is bounded: its bytes, unpacked where the server
 * packs them; the time to its first byte; the time without progress; and the
 * number of redirections, which only lead to http and https. Anything but 200
 * is a failure. Source: internal/driver/fetch.go fetchURL, statusCodeError.
 */
#ifndef CLI_FETCH_REQUEST_H
#define CLI_FETCH_REQUEST_H

#include "cli/fetch/curl.h"
#include "cli/fetch/url.h"

#include <stddef.h>
#include <stdint.h>

/* Longest answer: what a profile of some 20 million samples takes. */
#define CPPROF__FETCH_MAX_BYTES ((size_t)1 << 30)

/* Bytes of all answers that wait to be read. Above it, requests whose turn has
 * not come are paused. */
struct cpprof__fetch_budget {
    size_t used;
    size_t max;
};

struct cpprof__request {
    const struct cpprof__curl *curl;
    CURL *easy;
    struct curl_slist *headers;
    struct cpprof__fetch_budget *budget; /* or NULL: never paused */
    bool is_next;                        /* not to be paused */
    bool paused;
    bool verbose_status; /* the server says that the body tells the error */
    bool is_text;
    int timeout_s;
    size_t max_bytes;
    char status[128]; /* "404 Not Found" of the last answer */
    /* The body; of a failure only the beginning. */
    char *body;
    size_t n;
    size_t capacity;
    /* When there was progress last, and how many bytes there were. */
    int64_t since_ms;
    size_t since_n;
    const char *stopped; /* why it was given up from here, or NULL */
    char curl_text[CURL_ERROR_SIZE];
};

/* Make everything ready for easy_perform() or a multi handle. `post` is the
 * body to send, which has to stay, or NULL for GET. */
enum cpprof_status
cpprof__request_begin(struct cpprof__request *r,
                      const struct cpprof__curl *curl,
                      const struct cpprof__url *url,
                      const struct cpprof__fetch_options *options,
                      const char *post, struct cpprof_error *error);

/* What a post is said to be, instead of bytes. */
enum cpprof_status
cpprof__request_content(struct cpprof__request *r, const char *type,
                        struct cpprof_error *error);

/* The result of the request: OK and a body, or an error in one line. */
enum cpprof_status
cpprof__request_result(const struct cpprof__request *r, CURLcode code,
                       const struct cpprof__url *url,
                       struct cpprof_error *error);

/* Frees the body too, and gives its bytes back to the budget. */
void
cpprof__request_free(struct cpprof__request *r);

/* Check -tls_cert, -tls_key and -tls_ca. */
enum cpprof_status
cpprof__fetch_check_tls(const struct cpprof__fetch_options *options,
                        struct cpprof_error *error);

#endif
