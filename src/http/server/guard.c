/* SPDX-License-Identifier: MIT */
/*
 * What is read of a request before anything is done for it: its target, and the
 * headers that say who asks. All of it are bytes that anybody may have sent.
 */
#include "http/server/guard.h"

#include "base/text.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

/* ---- the target ------------------------------------------------------- */

/* Decodes in place. A decoded NUL is refused, because it would end the text for
 * us but not for others. */
static bool
decode_path(char *path)
{
    char *to = path;

    for (; *path; path++, to++) {
        unsigned high, low;

        *to = *path;
        if (*path != '%')
            continue;
        high = cpprof__digit(path[1]);
        low = high > 15 ? high : cpprof__digit(path[2]);
        if (low > 15 || !(high | low))
            return false;
        *to = (char)(high << 4 | low);
        path += 2;
    }
    *to = 0;
    return true;
}

/* "http://host/path" names the host itself, and wins over the header. */
static char *
skip_authority(char *text, struct cpprof__http_target *target)
{
    char *path;

    if (strncasecmp(text, "http://", 7))
        return text;
    for (path = text + 7; *path && *path != '/' && *path != '?';)
        path++;
    /* Room for a terminator: the name moves over the slashes. */
    memmove(text, text + 7, (size_t)(path - text - 7));
    path[-7] = 0;
    target->host = text;
    return path;
}

bool
cpprof__http_target_parse(char *text, struct cpprof__http_target *target)
{
    const unsigned char *p;
    char *query;

    memset(target, 0, sizeof *target);
    for (p = (const unsigned char *)text; *p; p++)
        if (*p <= ' ' || *p == 127)
            return false;
    text = skip_authority(text, target);
    query = strchr(text, '?');
    if (query) {
        *query = 0;
        target->query = query + 1;
    }
    target->path = target->host && !*text ? "/" : text;
    if (*target->path != '/' && strcmp(text, "*"))
        return false;
    return decode_path(text);
}

/* ---- who asks --------------------------------------------------------- */

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

/* Is it that path, or one below it? */
static bool
is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return !strncmp(path, folder, n) && (!path[n] || path[n] == '/');
}

/* Below /ui are the page of `cpprof http`, its files, and what they ask for. */
static bool
is_page(const char *path)
{
    if (is_below(path, "/ui"))
        return !is_below(path, "/ui/api") && !is_below(path, "/ui/download");
    return !strcmp(path, "/") || !strcmp(path, "/debug/pprof") ||
           !strcmp(path, "/debug/pprof/") || is_below(path, "/debug/pprof/ui");
}

bool
cpprof__http_site_may_ask(const char *fetch_site, const char *path)
{
    if (!fetch_site)
        return true;
    /* Another port of this machine is another page, too. */
    if (!strcasecmp(fetch_site, "same-site") && is_below(path, "/ui"))
        return is_page(path);
    return strcasecmp(fetch_site, "cross-site") != 0 || is_page(path);
}

bool
cpprof__http_is_same_origin(const char *fetch_site, const char *origin,
                            const char *host)
{
    const char *slashes = origin ? strstr(origin, "://") : NULL;

    if (fetch_site)
        return !strcasecmp(fetch_site, "same-origin");
    return slashes && host && !strcasecmp(slashes + 3, host);
}

/* ";q=0", ";q=0.000": not at all. */
static bool
is_refused(const char *weight)
{
    weight += strspn(weight, " \t");
    if (*weight != ';')
        return false;
    weight += 1 + strspn(weight + 1, " \t");
    if (strncasecmp(weight, "q=", 2) != 0)
        return false;
    weight += 2 + strspn(weight + 2, "0.");
    return !(*weight >= '1' && *weight <= '9');
}

bool
cpprof__http_takes_gzip(const char *accept_encoding)
{
    const char *word = accept_encoding ? accept_encoding : "";
    size_t n;

    for (; *word; word += strcspn(word, ",")) {
        word += strspn(word, ", \t");
        n = strcspn(word, ",; \t");
        if (n == 4 && strncasecmp(word, "gzip", 4) == 0)
            return !is_refused(word + n);
    }
    return false;
}

static bool
is_localhost(const char *name)
{
    static const char own[] = ".localhost";
    size_t n = strlen(name), n_own = sizeof own - 1;

    return !strcasecmp(name, own + 1) ||
           (n > n_own && !strcasecmp(name + n - n_own, own));
}

bool
cpprof__http_host_is_here(const char *host)
{
    unsigned char bytes[16];
    char name[256]; /* of a host, RFC 1035 */
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
    return is_localhost(name) || inet_pton(AF_INET, name, bytes) == 1 ||
           inet_pton(AF_INET6, name, bytes) == 1;
}
