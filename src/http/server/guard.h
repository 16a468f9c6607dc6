/* SPDX-License-Identifier: MIT */
/* Access control: the token, and the host names that a local server accepts. */
#ifndef HTTP_SERVER_GUARD_H
#define HTTP_SERVER_GUARD_H

#include <stdbool.h>

/* Is an "Authorization" header, or NULL, "Bearer" with this token? The time
 * depends only on the length of the token. */
bool
cpprof__http_token_is(const char *authorization, const char *token);

/*
 * Is a "Host" header, or NULL, an address or localhost? Any other name may
 * belong to a web page whose name was pointed at this machine (DNS rebinding),
 * in order to read through a local browser what the page cannot reach itself.
 */
bool
cpprof__http_host_is_here(const char *host);

/* May a request with this "Sec-Fetch-Site" header do what it asks? A page of
 * another site may link to the lists, but may not take a profile or a delta.
 * NULL: no such header. */
bool
cpprof__http_site_may_ask(const char *fetch_site, const char *path);

#endif
