/* SPDX-License-Identifier: MIT */
#include "http/server/target.h"

#include <string.h>
#include <strings.h>

static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes in place. A decoded NUL is refused, because it would end the text for
 * us but not for others. */
static bool
decode_path(char *path)
{
    char *to = path;

    for (; *path; path++, to++) {
        int high, low;

        *to = *path;
        if (*path != '%')
            continue;
        high = hex_digit(path[1]);
        low = high < 0 ? -1 : hex_digit(path[2]);
        if (low < 0 || !(high | low))
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
    path = text + 7 + strcspn(text + 7, "/?");
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
