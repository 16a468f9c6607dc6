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
    /* Never past the end of what was given: its NUL differs. */
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
cpprof__http_host_is_here(const char *host)
{
    char name[64];
    size_t n;

    if (!host || !*host)
        return true;
    if (*host == '[')
        n = strcspn(++host, "]");
    else
        n = strcspn(host, ":");
    if (n >= sizeof name)
        return false;
    memcpy(name, host, n);
    name[n] = 0;
    if (n && name[n - 1] == '.')
        name[n - 1] = 0;
    return !strcasecmp(name, "localhost") || is_address(name);
}

static bool
has_seconds(const char *text, const char *end)
{
    static const char key[] = "seconds=";
    const size_t n = sizeof key - 1;
    const char *at = text;

    while ((size_t)(end - at) >= n &&
           (at = memmem(at, (size_t)(end - at), key, n))) {
        if (at == text || at[-1] == '&' || at[-1] == ';')
            return true;
        at += n;
    }
    return false;
}

bool
cpprof__http_takes_time(const char *path, const char *query, const void *body,
                        unsigned long n_body)
{
    static const char *const names[] = {"/profile", "/wall", "/offcpu",
                                        "/fgprof"};
    const char *last = strrchr(path, '/');
    size_t i;

    for (i = 0; last && i < sizeof names / sizeof *names; i++)
        if (!strcmp(last, names[i]))
            return true;
    return (query && has_seconds(query, query + strlen(query))) ||
           (body && has_seconds(body, (const char *)body + n_body));
}
