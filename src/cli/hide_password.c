/* SPDX-License-Identifier: MIT */
/*
 * A password is between the first colon after "//" and the last "@" before the
 * next slash. If there is no "@" and no port, the slash belongs to the
 * password, which then ends at the last "@" of the word.
 */
#include "cli/hide_password.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Is it the port of a host, or nothing? */
static bool
is_port(const char *text, size_t n)
{
    return strspn(text, "0123456789") >= n;
}

/* The password in the n bytes after "//"; NULL: there is none. */
static const char *
find(const char *word, size_t n, size_t *n_password)
{
    size_t n_authority = strcspn(word, "/?#");
    const char *colon, *at;

    if (n_authority > n)
        n_authority = n;
    at = memrchr(word, '@', n_authority);
    colon = memchr(word, ':', at ? (size_t)(at - word) : n_authority);
    if (!colon)
        return NULL;
    colon++;
    if (!at && *word != '[' &&
        !is_port(colon, n_authority - (size_t)(colon - word)))
        at = memrchr(colon, '@', n - (size_t)(colon - word));
    if (!at)
        return NULL;
    *n_password = (size_t)(at - colon);
    return colon;
}

/* Append what fits; returns the room that is left. */
static size_t
append(char **out, size_t size, const char *text, size_t n)
{
    if (n >= size)
        n = size - 1;
    memcpy(*out, text, n);
    *out += n;
    **out = 0;
    return size - n;
}

void
cpprof__hide_passwords(const char *text, char *out, size_t size)
{
    const char *slashes, *password;
    size_t n;

    while ((slashes = strstr(text, "://"))) {
        slashes += 3;
        password = find(slashes, strcspn(slashes, " \t\n\"'"), &n);
        if (!password) {
            size = append(&out, size, text, (size_t)(slashes - text));
            text = slashes;
            continue;
        }
        size = append(&out, size, text, (size_t)(password - text));
        size = append(&out, size, "xxxxx", 5);
        text = password + n;
    }
    append(&out, size, text, strlen(text));
}

void
cpprof__hide_password(const char *source, char *out, size_t size)
{
    const char *slashes = strstr(source, "://"), *password = NULL;
    const char *word = slashes ? slashes + 3 : source;
    size_t n = 0;

    if (access(source, F_OK) != 0)
        password = find(word, strlen(word), &n);
    if (password) {
        size = append(&out, size, source, (size_t)(password - source));
        size = append(&out, size, "xxxxx", 5);
        source = password + n;
    }
    append(&out, size, source, strlen(source));
}
