/* SPDX-License-Identifier: MIT */
/* What a request asks for, "/path?query" or "http://host/path?query", from
 * bytes that anybody may have sent.
 *
 * Source: RFC 9112 (3.2). */
#ifndef HTTP_SERVER_TARGET_H
#define HTTP_SERVER_TARGET_H

#include <stdbool.h>

struct cpprof__http_target {
    const char *path;  /* decoded */
    const char *query; /* as it came; NULL: no '?' */
    const char *host;  /* NULL: not in there */
};

/* The bytes of text become those in *target, which live as long. False: it is
 * none. */
bool
cpprof__http_target_parse(char *text, struct cpprof__http_target *target);

#endif
