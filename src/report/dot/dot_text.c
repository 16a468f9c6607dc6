/* SPDX-License-Identifier: MIT */
/*
 * Text for drawings: colours, quoted text, and short names of functions.
 *
 * For a short name three patterns are tried in turn, as the reference does with
 * regular expressions: Go (package path and version), Java (package and
 * arguments), C++ (namespaces and template arguments). They are written as
 * scanners here. A name that none of them fits stays as it is.
 *
 * Source: internal/graph/dotgraph.go; internal/graph/graph.go
 * ShortenFunctionName.
 */
#include "report/dot/dot_text.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Colours are moved away from grey by this much, so that signs differ and the
 * range is used. */
#define SHIFT 0.7
/* Below this part of the whole they fade to grey. */
#define FADING 0.2
/* In pictures: a name is a box of at most some lines, a legend a page. */
#define NAME_BYTES   500
#define LEGEND_BYTES 4000

void
cpprof__dot_color(char text[CPPROF__COLOR_TEXT], double part, bool pale)
{
    double saturation = pale ? 0.1 : 1.0, value = pale ? 0.93 : 0.7;
    double red = value, green = value;

    part = part < -1 ? -1 : part > 1 ? 1 : part;
    if (fabs(part) < FADING)
        saturation *= fabs(part) / FADING;
    if (part > 0)
        part = pow(part, 1.0 - SHIFT);
    else if (part < 0)
        part = -pow(-part, 1.0 - SHIFT);
    if (part < 0)
        red = value * (1 + saturation * part);
    else
        green = value * (1 - saturation * part);
    snprintf(text, CPPROF__COLOR_TEXT, "#%02x%02x%02x",
             (unsigned)(uint8_t)(red * 255.0),
             (unsigned)(uint8_t)(green * 255.0),
             (unsigned)(uint8_t)(value * (1 - saturation) * 255.0));
}

void
cpprof__dot_escape(const void *text, size_t n, struct cpprof__buffer *out)
{
    const char *p = text;

    for (; n; n--, p++)
        switch (*p) {
        case '\\':
        case '"':
            cpprof__buffer_append(out, "\\", 1);
            cpprof__buffer_append(out, p, 1);
            break;
        case '\n':
            cpprof__buffer_append(out, "\\l", 2);
            break;
        default:
            cpprof__buffer_append(out, p, 1);
        }
}

void
cpprof__dot_value(const struct cpprof__report *r, int64_t value,
                  char text[CPPROF__DOT_VALUE])
{
    char plain[CPPROF__LABEL_TEXT];
    const char *p;

    cpprof__format_value(r, value, plain);
    for (p = plain; *p; p++) {
        if (*p == '"' || *p == '\\' || *p == '\n')
            *text++ = '\\';
        *text++ = *p == '\n' ? 'l' : *p;
    }
    *text = 0;
}

size_t
cpprof__dot_most(const struct cpprof__report *r, bool legend)
{
    if (!(r->options->flags & PPROF_REPORT_PICTURE))
        return 0;
    return legend ? LEGEND_BYTES : NAME_BYTES;
}

/* ----------------------------------------------------------- short names -- */

/* A name, read from the front. */
struct scan {
    const char *at, *end;
};

static bool
is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_';
}

static bool
is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool
is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool
is_letter(char c)
{
    return is_upper(c) || is_lower(c) || c == '_';
}

static bool
take(struct scan *s, const char *text)
{
    size_t n = strlen(text);

    if ((size_t)(s->end - s->at) < n || memcmp(s->at, text, n) != 0)
        return false;
    s->at += n;
    return true;
}

/* Word characters, and '$' where it may be in one. */
static void
take_word(struct scan *s, bool dollar)
{
    while (s->at < s->end && (is_word(*s->at) || (dollar && *s->at == '$')))
        s->at++;
}

/* ---------------------------------------------------------------- Go ---- */

/* "/v2" up to "/v9", "/v10" and up, before a slash or a dot: the length, or 0.
 */
static size_t
version(const char *at, const char *end)
{
    const char *p = at + 2;

    if (end - at < 3 || at[0] != '/' || at[1] != 'v' || *p < '1' || *p > '9')
        return 0;
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    if ((p - at == 3 && at[2] == '1') || p == end || (*p != '/' && *p != '.'))
        return 0;
    return (size_t)(p - at);
}

/* Append a name without its first module version. A name of several lines has
 * none. */
static void
without_version(const char *name, size_t n, struct cpprof__buffer *out)
{
    const char *p, *end = name + n;
    size_t skip = 0;

    for (p = name; p < end && !skip; p++)
        skip = version(p, end);
    if (!skip || memchr(name, '\n', n)) {
        cpprof__buffer_append(out, name, n);
        return;
    }
    p--;
    cpprof__buffer_append(out, name, (size_t)(p - name));
    cpprof__buffer_append(out, p + skip, (size_t)(end - p) - skip);
}

/* Behind the last of the slashes that nothing but a path is before. */
static bool
go_name(struct scan s, struct scan *name)
{
    const char *part = s.at, *found = NULL;

    for (; s.at < s.end; s.at++) {
        if (*s.at == '/' && s.at > part && s.at + 1 < s.end) {
            part = s.at + 1;
            found = *part == '\n' ? found : part;
        } else if (!is_word(*s.at) && *s.at != '-' && *s.at != '.') {
            break;
        }
    }
    if (!found)
        return false;
    s.at = memchr(found, '\n', (size_t)(s.end - found));
    *name = (struct scan){found, s.at ? s.at : s.end};
    return true;
}

/* -------------------------------------------------------------- Java ---- */

/* Packages in small letters; "Class.method", maybe with "$1" behind it; and
 * then the end or arguments. */
static bool
java_name(struct scan s, struct scan *name)
{
    const char *begin;

    while (s.at < s.end && is_lower(*s.at)) {
        take_word(&s, false);
        if (!take(&s, "."))
            return false;
    }
    begin = s.at;
    if (s.at == s.end || !is_upper(*s.at))
        return false;
    take_word(&s, true);
    if (!take(&s, "."))
        return false;
    if (!take(&s, "<init>")) {
        if (s.at == s.end || !is_lower(*s.at))
            return false;
        take_word(&s, true);
    }
    if (s.at < s.end && *s.at != '(')
        return false;
    *name = (struct scan){begin, s.at};
    return true;
}

/* --------------------------------------------------------------- C++ ---- */

/* "_*Class::function<...>"; "<" is nothing special where no ">" follows. */
static bool
cpp_method(struct scan s, struct scan *name)
{
    const char *begin = s.at, *close;

    while (take(&s, "_"))
        continue;
    if (s.at == s.end || !is_upper(*s.at))
        return false;
    take_word(&s, false);
    if (!take(&s, "::"))
        return false;
    take(&s, "~");
    if (s.at == s.end || !is_letter(*s.at))
        return false;
    take_word(&s, false);
    if (s.at < s.end && *s.at == '<') {
        const char *line = memchr(s.at, '\n', (size_t)(s.end - s.at));

        close = memrchr(s.at, '>', (size_t)((line ? line : s.end) - s.at));
        s.at = close ? close + 1 : s.at;
    }
    *name = (struct scan){begin, s.at};
    return true;
}

/* The last class that is a class's or a namespace's, and its function. */
static bool
cpp_name(struct scan s, struct scan *name)
{
    bool found = false;

    while (s.at < s.end && is_letter(*s.at)) {
        take_word(&s, false);
        if (!take(&s, "::"))
            break;
        found |= cpp_method(s, name);
    }
    return found;
}

void
cpprof__short_name(const char *name, size_t n, struct cpprof__buffer *out)
{
    struct cpprof__buffer plain = {0};
    struct scan s = {name, name + n}, found = {NULL, NULL};

    take(&s, "(anonymous namespace)::");
    without_version(s.at, (size_t)(s.end - s.at), &plain);
    s = (struct scan){(char *)plain.data, (char *)plain.data + plain.n};
    if (plain.n &&
        (go_name(s, &found) || java_name(s, &found) || cpp_name(s, &found)))
        s = found;
    if (plain.n)
        cpprof__buffer_append(out, s.at, (size_t)(s.end - s.at));
    out->failed |= plain.failed;
    cpprof__buffer_free(&plain);
}
