/* SPDX-License-Identifier: MIT */
#include "report/flame/json_text.h"

#include "base/utf8.h"

static bool
is_escaped(uint32_t c)
{
    return c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' ||
           c == '&' || c == 0x7f || c == 0x2028 || c == 0x2029;
}

void
cpprof__json_text(struct cpprof__buffer *out, const char *text, size_t n)
{
    const char *end = text + n, *plain = text;

    cpprof__buffer_append(out, "\"", 1);
    while (text < end) {
        uint32_t c;
        size_t length = cpprof__utf8_next(text, (size_t)(end - text), &c);

        if (length && !is_escaped(c)) {
            text += length;
            continue;
        }
        cpprof__buffer_append(out, plain, (size_t)(text - plain));
        cpprof__buffer_printf(out, "\\u%04x", length ? c : 0xfffd);
        text += length ? length : 1;
        plain = text;
    }
    cpprof__buffer_append(out, plain, (size_t)(end - plain));
    cpprof__buffer_append(out, "\"", 1);
}
