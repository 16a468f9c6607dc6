/* SPDX-License-Identifier: MIT */
/*
 * Is a source of the command line a URL, and which? A file of that name comes
 * first; then what Go's net/url takes for a URL with a host, also without a
 * scheme (host:port/path). Source: internal/driver/fetch.go adjustURL,
 * net/url; cmd/pprof for the path of a host alone.
 */
#ifndef CLI_FETCH_URL_H
#define CLI_FETCH_URL_H

#include <cpprof/status.h>

#include <stdbool.h>

/* The flags about fetching. */
struct cpprof__fetch_options {
    int seconds;          /* -seconds; 0 or less: not given */
    int timeout;          /* -timeout in seconds; 0 or less: not given */
    const char *tls_cert; /* files in PEM; NULL or "": not given */
    const char *tls_key;
    const char *tls_ca;
};

struct cpprof__url {
    char *text;    /* what to ask for; a source of its own */
    char *shown;   /* the same for messages, without a password */
    bool insecure; /* its scheme is https+insecure: https without looking at
                    * certificates */
    bool loopback; /* no proxy can know this host */
    int timeout_s; /* to the first byte of the answer */
};

enum cpprof__source_kind {
    CPPROF__SOURCE_FILE, /* and anything else that is no URL */
    CPPROF__SOURCE_URL,
    CPPROF__SOURCE_NOMEM,
};

/* *url is filled, for cpprof__url_free(), when it is one. */
enum cpprof__source_kind
cpprof__source_url(const char *source,
                   const struct cpprof__fetch_options *options,
                   struct cpprof__url *url);

void
cpprof__url_free(struct cpprof__url *url);

/*
 * The path that file:///path or file://localhost/path names, to be freed; NULL
 * when the source is none of these, or when there is no memory.
 */
char *
cpprof__file_url_path(const char *source);

/*
 * Where to ask for the symbols of the program that a profile was fetched from:
 * "symbol" beside it for Go and gperftools, else "/symbolz". To be freed; NULL
 * without memory. url is the `text` of a struct cpprof__url.
 *
 * Source: internal/symbolz.symbolz.
 */
char *
cpprof__symbol_url(const char *url);

#endif
