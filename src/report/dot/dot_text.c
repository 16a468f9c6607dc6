/* SPDX-License-Identifier: MIT */
/*
 * Text for drawings: colours, quoted text, and short names of functions.
 *
 * For a short name the reference's expressions are tried in turn: Go (package
 * path and version), Java (package and arguments), C++ (namespaces). A name
 * that none of them fits stays as it is.
 *
 * Source: internal/graph/dotgraph.go; internal/graph/graph.go
 * ShortenFunctionName.
 */
#include "report/dot/dot_text.h"

#include "profile/filter/re2.h"

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

void
cpprof__short_name(const char *name, size_t n, struct cpprof__buffer *out)
{
    static struct cpprof__pattern anonymous = {"^\\(anonymous namespace\\)::",
                                               NULL};
    static struct cpprof__pattern version = {
        "^(.*?)/v(?:[2-9]|[1-9][0-9]+)([./].*)$", NULL};
    /* Go, Java, C++ */
    static struct cpprof__pattern kinds[] = {
        {"^(?:[\\w\\-\\.]+\\/)+(.+)", NULL},
        {"^(?:[a-z]\\w*\\.)*([A-Z][\\w\\$]*\\.(?:<init>|[a-z][\\w\\$]*))(?:\\(|"
         "$)",
         NULL},
        {"^(?:[_a-zA-Z]\\w*::)+(_*[A-Z]\\w*::~?[_a-zA-Z]\\w*(?:<.*>)?)", NULL},
    };
    struct cpprof__text text = {name, n}, found[3];
    struct cpprof__buffer plain = {0};
    bool failed = false;
    size_t i;

    if (cpprof__pattern_find(&anonymous, text, found, 1, &failed))
        text = (struct cpprof__text){name + found->n, n - found->n};
    if (cpprof__pattern_find(&version, text, found, 3, &failed)) {
        cpprof__buffer_append(&plain, found[1].at, found[1].n);
        cpprof__buffer_append(&plain, found[2].at, found[2].n);
        text = (struct cpprof__text){(char *)plain.data, plain.n};
    }
    for (i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (cpprof__pattern_find(&kinds[i], text, found, 2, &failed)) {
            text = found[1];
            break;
        }
    cpprof__buffer_append(out, text.at, text.n);
    out->failed |= failed || plain.failed;
    cpprof__buffer_free(&plain);
}
