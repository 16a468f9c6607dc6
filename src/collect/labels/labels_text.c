/* SPDX-License-Identifier: MIT */
/*
 * Labels as text, quoted as Go's %q does it: what is not printable is escaped.
 *
 * Source: Go strconv.Quote; runtime/pprof labelMap.String.
 */
#include "collect/labels/labels.h"

#include "base/utf8.h"
#include "collect/store/printable.h"

#include <inttypes.h>
#include <string.h>

static void
put_ascii(struct cpprof__buffer *out, char c)
{
    static const char special[] = "\a\b\f\n\r\t\v\"\\";
    static const char escapes[] = "abfnrtv\"\\";
    const char *found = strchr(special, c);

    if (found)
        cpprof__buffer_printf(out, "\\%c", escapes[found - special]);
    else if (c < ' ' || c == 0x7f)
        cpprof__buffer_printf(out, "\\x%02x", (unsigned)c);
    else
        cpprof__buffer_append(out, &c, 1);
}

/* Returns how many bytes of text were read. */
static size_t
put_rune(struct cpprof__buffer *out, const char *text)
{
    uint32_t rune;
    size_t n = cpprof__utf8_next(text, 4, &rune);

    if (!n) {
        cpprof__buffer_printf(out, "\\x%02x", (unsigned)(unsigned char)*text);
        return 1;
    }
    if (cpprof__is_printable(rune))
        cpprof__buffer_append(out, text, n);
    else
        cpprof__buffer_printf(out, rune < 0x10000 ? "\\u%04x" : "\\U%08x",
                              rune);
    return n;
}

static void
put_quoted(struct cpprof__buffer *out, const char *text)
{
    cpprof__buffer_append(out, "\"", 1);
    while (*text) {
        if ((unsigned char)*text < 0x80)
            put_ascii(out, *text++);
        else
            text += put_rune(out, text);
    }
    cpprof__buffer_append(out, "\"", 1);
}

static void
put_number(struct cpprof__buffer *out, const struct cpprof__builder_label *l)
{
    struct cpprof__buffer text = {0};

    if (!l->num_unit) {
        cpprof__buffer_printf(out, "%" PRId64, l->num);
        return;
    }
    cpprof__buffer_printf(&text, "%" PRId64 " %s", l->num, l->num_unit);
    out->failed |= text.failed;
    if (!text.failed)
        put_quoted(out, (char *)text.data);
    cpprof__buffer_free(&text);
}

void
cpprof__labels_print(struct cpprof__buffer *out,
                     const struct cpprof__builder_label *labels, size_t n)
{
    size_t i;

    cpprof__buffer_append(out, "{", 1);
    for (i = 0; i < n; i++) {
        if (i)
            cpprof__buffer_append(out, ", ", 2);
        put_quoted(out, labels[i].key);
        cpprof__buffer_append(out, ":", 1);
        if (labels[i].str)
            put_quoted(out, labels[i].str);
        else
            put_number(out, &labels[i]);
    }
    cpprof__buffer_append(out, "}", 1);
}
