/* SPDX-License-Identifier: MIT */
/*
 * What a request asks for, and whether it may: its target, the token, and the
 * host names that a local server accepts.
 */
#ifndef HTTP_SERVER_GUARD_H
#define HTTP_SERVER_GUARD_H

#include <stdbool.h>

/* "/path?query" or "http://host/path?query". Source: RFC 9112 (3.2). */
struct cpprof__http_target {
    const char *path;  /* decoded */
    const char *query; /* as it came; NULL: no '?' */
    const char *host;  /* NULL: not in there */
};

/* The bytes of text become those in *target, which live as long. False: it is
 * none. */
bool
cpprof__http_target_parse(char *text, struct cpprof__http_target *target);

/* Is an "Authorization" header, or NULL, "Bearer" with this token? The time
 * depends only on the length of the token. */
bool
cpprof__http_token_is(const char *authorization, const char *token);

/*
 * Is a "Host" header, or NULL, an address, localhost, or a name that ends in
 * ".localhost", which leads to this machine (RFC 6761)? Any other name may
 * belong to a web page whose name was pointed at this machine (DNS rebinding),
 * in order to read through a local browser what the page cannot reach itself.
 */
bool
cpprof__http_host_is_here(const char *host);

/* May a request with this "Sec-Fetch-Site" header do what it asks? A page of
 * another site may link to the lists and to the page of `cpprof http`, but may
 * not take a profile, a delta or a report.
 * NULL: no such header. */
bool
cpprof__http_site_may_ask(const char *fetch_site, const char *path);

/* Does an "Accept-Encoding" header list gzip? Whoever sends none takes anything
 * by RFC 9110 (12.5.3), but curl then prints what it gets: false. */
bool
cpprof__http_takes_gzip(const char *accept_encoding);

/* Does a page of this server ask, by its "Sec-Fetch-Site" header, or without
 * one by an "Origin" that is the host? Each NULL: no such header. */
bool
cpprof__http_is_same_origin(const char *fetch_site, const char *origin,
                            const char *host);

#endif
