/* SPDX-License-Identifier: MIT */
#include "http/server/guard.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define SCHEME "Bearer "

bool
cpprof__http_token_is(const char *authorization, const char *token)
{
    size_t n_token = strlen(token), n_given, i;
    const char *given = "";
    unsigned char differs;

    if (authorization && !strncasecmp(authorization, SCHEME, 7))
        given = authorization + 7 + strspn(authorization + 7, " ");
    n_given = strlen(given);
    differs = n_given != n_token;
    /* Never reads past the end of the given text, because its NUL differs. */
    for (i = 0; i < n_token; i++)
        differs |= (unsigned char)(token[i] ^ given[i < n_given ? i : n_given]);
    return !*(volatile unsigned char *)&differs;
}

static bool
is_address(const char *name)
{
    unsigned char bytes[16];

    return inet_pton(AF_INET, name, bytes) == 1 ||
           inet_pton(AF_INET6, name, bytes) == 1;
}

bool
cpprof__http_site_may_ask(const char *fetch_site, const char *path)
{
    static const char page[] = "/debug/pprof/ui";

    if (!fetch_site || strcasecmp(fetch_site, "cross-site"))
        return true;
    return !strcmp(path, "/") || !strcmp(path, "/debug/pprof") ||
           !strcmp(path, "/debug/pprof/") ||
           (!strncmp(path, page, sizeof page - 1) &&
            (!path[sizeof page - 1] || path[sizeof page - 1] == '/'));
}

bool
cpprof__http_host_is_here(const char *host)
{
    char name[64];
    size_t n;

    if (!host || !*host)
        return true;
    if (*host == '[') {
        n = strcspn(++host, "]");
        if (host[n] != ']' || (host[n + 1] && host[n + 1] != ':'))
            return false;
    } else {
        n = strcspn(host, ":");
    }
    if (n >= sizeof name)
        return false;
    memcpy(name, host, n);
    name[n] = 0;
    if (n && name[n - 1] == '.')
        name[n - 1] = 0;
    return !strcasecmp(name, "localhost") || is_address(name);
}
