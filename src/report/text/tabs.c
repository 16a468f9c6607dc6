/* SPDX-License-Identifier: MIT */
/*
 * Columns as Go's text/tabwriter makes them (padding 1, AlignRight): every run
 * of neighbouring lines that have a column has a width of its own for it.
 *
 * Two passes over the text: the first finds for each cell the run it is in and
 * how wide that is, the second prints. Both see the cells in the same order.
 */
#include "report/report.h"

#include "base/array.h"
#include "base/text.h"

#include <string.h>

struct columns {
    CPPROF__ARRAY(size_t) widths; /* of runs */
    CPPROF__ARRAY(size_t) runs;   /* by cell, in the order of the text */
    CPPROF__ARRAY(size_t) open;   /* by column: its run in the line before */
};

/* In characters; a byte that is none counts as one. */
static size_t
width_of(const uint8_t *s, size_t n)
{
    const char *text = (const char *)s;
    size_t width = 0, at = 0, length;
    uint32_t rune;

    for (; at < n; at += length ? length : 1) {
        length = cpprof__utf8_next(text + at, n - at, &rune);
        width++;
    }
    return width;
}

static bool
ends_cell(uint8_t c)
{
    return c == '\t' || c == '\v';
}

static bool
ends_line(uint8_t c)
{
    return c == '\n' || c == '\f';
}

/* Up to the next mark, or to the end. */
static size_t
part_bytes(const uint8_t *s, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (ends_cell(s[i]) || ends_line(s[i]))
            break;
    return i;
}

/* One more cell of that width, in a column of its line. */
static bool
add_cell(struct columns *c, size_t column, size_t width)
{
    if (!CPPROF__ARRAY_ROOM(&c->widths, 1) ||
        !CPPROF__ARRAY_ROOM(&c->open, 1) || !CPPROF__ARRAY_ROOM(&c->runs, 1))
        return false;
    if (column == c->open.n) {
        c->open.at[c->open.n++] = c->widths.n;
        c->widths.at[c->widths.n++] = 0;
    }
    c->runs.at[c->runs.n++] = c->open.at[column];
    if (c->widths.at[c->open.at[column]] < width)
        c->widths.at[c->open.at[column]] = width;
    return true;
}

static bool
measure(struct columns *c, const uint8_t *s, size_t n)
{
    size_t column = 0, at, bytes;

    for (at = 0; at < n; at += bytes + 1) {
        bytes = part_bytes(s + at, n - at);
        if (at + bytes == n)
            break;
        if (ends_cell(s[at + bytes])) {
            if (!add_cell(c, column++, width_of(s + at, bytes)))
                return false;
            continue;
        }
        if (column < c->open.n) /* the others end here */
            c->open.n = column;
        if (s[at + bytes] == '\f')
            c->open.n = 0;
        column = 0;
    }
    return true;
}

static void
pad(struct cpprof__buffer *out, size_t n)
{
    if (!cpprof__buffer_reserve(out, n))
        return;
    memset(out->data + out->n, ' ', n);
    out->n += n;
}

static void
print(const struct columns *c, const uint8_t *s, size_t n,
      struct cpprof__buffer *out)
{
    size_t cell = 0, at, bytes;

    for (at = 0; at < n; at += bytes + 1) {
        bytes = part_bytes(s + at, n - at);
        if (at + bytes < n && ends_cell(s[at + bytes]))
            pad(out,
                c->widths.at[c->runs.at[cell++]] + 1 - width_of(s + at, bytes));
        cpprof__buffer_append(out, s + at, bytes);
        if (at + bytes < n && ends_line(s[at + bytes]))
            cpprof__buffer_append(out, "\n", 1);
    }
}

bool
cpprof__tabs_align(const uint8_t *text, size_t n, struct cpprof__buffer *out)
{
    struct columns c = {.widths = {0}};
    bool ok = measure(&c, text, n);

    if (ok)
        print(&c, text, n, out);
    CPPROF__ARRAY_FREE(&c.widths);
    CPPROF__ARRAY_FREE(&c.runs);
    CPPROF__ARRAY_FREE(&c.open);
    return ok && !out->failed;
}
