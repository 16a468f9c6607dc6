/* SPDX-License-Identifier: MIT */
/*
 * Who may ask: the token, and the names under which a server of this machine
 * alone may be asked for.
 */
#ifndef HTTP_SERVER_GUARD_H
#define HTTP_SERVER_GUARD_H

#include <stdbool.h>

/* Is an "Authorization" header, or NULL, "Bearer" and this token? How long that
 * takes depends on nothing but the token's length. */
bool
cpprof__http_token_is(const char *authorization, const char *token);

/*
 * Is a "Host" header, or NULL, an address or localhost? Any other name may have
 * come from a page that had its own name lead here (DNS rebinding), to read
 * with a browser of this machine what it may not reach itself.
 */
bool
cpprof__http_host_is_here(const char *host);

/* What browsers say of a request that a page of another site makes: that may
 * lead to the lists, but not take a profile, nor what has changed since. NULL:
 * no such header. */
bool
cpprof__http_site_may_ask(const char *fetch_site, const char *path);

#endif
