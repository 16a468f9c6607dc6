/* SPDX-License-Identifier: MIT */
#include "report/dot/dot_text.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

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
