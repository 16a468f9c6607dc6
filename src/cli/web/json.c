/* SPDX-License-Identifier: MIT */
/*
 * The cursor. A value that is skipped is checked as far as its brackets, commas
 * and strings go; numbers and words only by their characters. Values may lie in
 * each other DEEPEST deep, so that no text ends our stack.
 */
#include "cli/web/json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 64

static bool
fail(struct cpprof__json *json)
{
    json->bad = true;
    json->at = json->end;
    return false;
}

char
cpprof__json_peek(struct cpprof__json *json)
{
    while (json->at < json->end && memchr(" \t\r\n", *json->at, 4))
        json->at++;
    return json->at < json->end ? *json->at : 0;
}

static bool
take(struct cpprof__json *json, char c)
{
    if (cpprof__json_peek(json) != c || !c)
        return false;
    json->at++;
    return true;
}

bool
cpprof__json_next(struct cpprof__json *json, char open, size_t *n)
{
    char close = open == '{' ? '}' : ']';

    if (*n == 0 && !take(json, open))
        return fail(json);
    if (take(json, close))
        return false;
    if (*n > 0 && !take(json, ','))
        return fail(json);
    ++*n;
    return true;
}

/* ------------------------------------------------------------- strings ---- */

static bool
take_hex(struct cpprof__json *json, uint32_t *value)
{
    static const char digits[] = "0123456789abcdef";
    int i;

    *value = 0;
    if (json->end - json->at < 4)
        return fail(json);
    for (i = 0; i < 4; i++) {
        char c = *json->at++;
        const char *at = c ? strchr(digits, c | (c > '9' ? 32 : 0)) : NULL;

        if (!at)
            return fail(json);
        *value = *value << 4 | (uint32_t)(at - digits);
    }
    return true;
}

/* What follows "\u": one half of a pair needs the other. */
static bool
take_code(struct cpprof__json *json, uint32_t *c)
{
    uint32_t low;

    if (!take_hex(json, c))
        return false;
    if (*c < 0xd800 || *c > 0xdfff)
        return *c || fail(json);
    if (*c < 0xdc00 && json->end - json->at >= 6 && json->at[0] == '\\' &&
        json->at[1] == 'u') {
        json->at += 2;
        if (!take_hex(json, &low))
            return false;
        if (low >= 0xdc00 && low <= 0xdfff) {
            *c = 0x10000 + ((*c - 0xd800) << 10) + (low - 0xdc00);
            return true;
        }
    }
    *c = 0xfffd;
    return true;
}

static char *
put_code(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c >= 0x10000) {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 63));
    } else if (c >= 0x800) {
        *to++ = (char)(0xe0 | c >> 12);
    } else {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 63));
        return to;
    }
    *to++ = (char)(0x80 | (c >> 6 & 63));
    *to++ = (char)(0x80 | (c & 63));
    return to;
}

/* What follows a backslash; NULL: nothing that may. */
static char *
take_escape(struct cpprof__json *json, char *to)
{
    static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    char c = json->at < json->end ? *json->at++ : 0;
    const char *at = c ? strchr(names, c) : NULL;
    uint32_t code;

    if (at) {
        *to++ = means[at - names];
        return to;
    }
    if (c != 'u' || !take_code(json, &code))
        return NULL;
    return put_code(to, code);
}

/* No escape is shorter than what it means. */
char *
cpprof__json_string(struct cpprof__json *json)
{
    char *text, *to;

    if (!take(json, '"') ||
        !(text = malloc((size_t)(json->end - json->at) + 1)))
        return fail(json), NULL;
    for (to = text; to && json->at < json->end && *json->at != '"';) {
        if ((unsigned char)*json->at < ' ')
            to = NULL;
        else if (*json->at != '\\')
            *to++ = *json->at++;
        else
            json->at++, to = take_escape(json, to);
    }
    if (!to || !take(json, '"')) {
        free(text);
        return fail(json), NULL;
    }
    *to = 0;
    return text;
}

char *
cpprof__json_name(struct cpprof__json *json)
{
    char *name = cpprof__json_string(json);

    if (name && !take(json, ':')) {
        free(name);
        return fail(json), NULL;
    }
    return name;
}

/* ---------------------------------------------------------------- skip ---- */

static void
skip(struct cpprof__json *json, unsigned depth)
{
    char c = cpprof__json_peek(json);
    const char *from = json->at;
    size_t n = 0;

    if (c == '"') {
        free(cpprof__json_string(json));
    } else if (c == '{' || c == '[') {
        if (depth == DEEPEST)
            fail(json);
        while (cpprof__json_next(json, c, &n)) {
            if (c == '{')
                free(cpprof__json_name(json));
            skip(json, depth + 1);
        }
    } else {
        while (json->at < json->end && *json->at &&
               strchr("+-.0123456789Eaeflnrstu", *json->at))
            json->at++;
        if (json->at == from)
            fail(json);
    }
}

void
cpprof__json_skip(struct cpprof__json *json, const char **from)
{
    cpprof__json_peek(json);
    *from = json->at;
    skip(json, 0);
}
