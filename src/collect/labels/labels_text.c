/* SPDX-License-Identifier: MIT */
/*
 * Label sets to and from bytes, and as text, quoted as Go's %q does it: what is
 * not printable is escaped.
 *
 * Source: Go strconv.Quote, strconv.IsPrint; runtime/pprof labelMap.String.
 */
#include "collect/labels/labels.h"
#include "own/memory.h"

#include "base/reader.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- bytes ------------------------------------------------------------ */

#define KIND_TEXT   's'
#define KIND_NUMBER 'n'

static void
put_text(struct cpprof__buffer *out, const char *text)
{
    cpprof__buffer_append(out, text, strlen(text) + 1);
}

void
cpprof__labels_encode(struct cpprof__buffer *out,
                      const struct cpprof_label *label)
{
    char kind = label->str ? KIND_TEXT : KIND_NUMBER;

    cpprof__buffer_append(out, &kind, 1);
    put_text(out, label->key);
    if (label->str) {
        put_text(out, label->str);
        return;
    }
    put_text(out, label->unit ? label->unit : "");
    cpprof__buffer_append(out, &label->num, sizeof label->num);
}

static const char *
get_text(struct cpprof__reader *r)
{
    const char *text = (const char *)r->next;
    const void *end = memchr(r->next, 0, cpprof__reader_left(r));

    if (!end) {
        r->bad = true;
        return "";
    }
    r->next = (const uint8_t *)end + 1;
    return text;
}

void
cpprof__label_list_add(struct cpprof__label_list *list,
                       const struct cpprof__builder_label *label)
{
    if (list->n == list->max) {
        size_t max = list->max ? list->max * 2 : 16;
        struct cpprof__builder_label *at =
            cpprof__realloc(list->at, max * sizeof *at);

        if (!at) {
            list->failed = true;
            return;
        }
        list->at = at;
        list->max = max;
    }
    list->at[list->n++] = *label;
}

void
cpprof__label_list_free(struct cpprof__label_list *list)
{
    cpprof__free(list->at);
    cpprof__free(list->bytes);
    memset(list, 0, sizeof *list);
}

void
cpprof__labels_decode(const char *data, size_t n,
                      struct cpprof__label_list *list)
{
    struct cpprof__reader r = cpprof__reader(data, n);

    while (cpprof__reader_left(&r)) {
        struct cpprof__builder_label label = {0};
        uint8_t kind = cpprof__read_u8(&r);
        const char *value;

        label.key = get_text(&r);
        value = get_text(&r);
        if (kind == KIND_TEXT) {
            label.str = value;
        } else {
            label.num_unit = *value ? value : NULL;
            label.num = (int64_t)cpprof__read_u64(&r);
        }
        if (r.bad)
            break;
        cpprof__label_list_add(list, &label);
    }
}

/* ---- printable characters --------------------------------------------- */

/* clang-format off */

/* From U+0080 on: so many characters that are not printable, so many that are,
 * and so on. Made from the answers of Go 1.19's strconv.IsPrint, which are
 * those of Unicode 13: letters, marks, numbers, punctuation, symbols. */
static const uint16_t runs[] = {
    33, 12, 1, 714, 2, 6, 4, 7, 1, 1, 1, 20, 1, 397, 1, 38, 2, 50, 2, 3, 1,
    55, 8, 27, 4, 6, 17, 22, 2, 191, 1, 48, 2, 59, 2, 101, 14, 59, 2, 49, 2,
    15, 1, 28, 2, 1, 1, 11, 53, 21, 1, 18, 11, 15, 1, 161, 1, 8, 2, 2, 2,
    22, 1, 7, 1, 1, 3, 4, 2, 9, 2, 2, 2, 4, 8, 1, 4, 2, 1, 5, 2, 25, 2, 3,
    1, 6, 4, 2, 2, 22, 1, 7, 1, 2, 1, 2, 1, 2, 2, 1, 1, 5, 4, 2, 2, 3, 3, 1,
    7, 4, 1, 1, 7, 17, 10, 3, 1, 9, 1, 3, 1, 22, 1, 7, 1, 2, 1, 5, 2, 10, 1,
    3, 1, 3, 2, 1, 15, 4, 2, 12, 7, 7, 1, 3, 1, 8, 2, 2, 2, 22, 1, 7, 1, 2,
    1, 5, 2, 9, 2, 2, 2, 3, 7, 3, 4, 2, 1, 5, 2, 18, 10, 2, 1, 6, 3, 3, 1,
    4, 3, 2, 1, 1, 1, 2, 3, 2, 3, 3, 3, 12, 4, 5, 3, 3, 1, 4, 2, 1, 6, 1,
    14, 21, 5, 13, 1, 3, 1, 23, 1, 16, 3, 8, 1, 3, 1, 4, 7, 2, 1, 3, 5, 4,
    2, 10, 7, 22, 1, 3, 1, 23, 1, 10, 1, 5, 2, 9, 1, 3, 1, 4, 7, 2, 7, 1, 1,
    4, 2, 10, 1, 2, 13, 13, 1, 3, 1, 51, 1, 3, 1, 6, 4, 16, 2, 26, 1, 3, 1,
    18, 3, 24, 1, 9, 1, 1, 2, 7, 3, 1, 4, 6, 1, 1, 1, 8, 6, 10, 2, 3, 12,
    58, 4, 29, 37, 2, 1, 1, 1, 5, 1, 24, 1, 1, 1, 23, 2, 5, 1, 1, 1, 6, 2,
    10, 2, 4, 32, 72, 1, 36, 4, 39, 1, 36, 1, 15, 1, 13, 37, 198, 1, 1, 5,
    1, 2, 377, 1, 4, 2, 7, 1, 1, 1, 4, 2, 41, 1, 4, 2, 33, 1, 4, 2, 7, 1, 1,
    1, 4, 2, 15, 1, 57, 1, 4, 2, 67, 2, 32, 3, 26, 6, 86, 2, 6, 2, 640, 1,
    28, 3, 89, 7, 13, 1, 7, 11, 23, 9, 20, 12, 13, 1, 3, 1, 2, 12, 94, 2,
    10, 6, 10, 6, 14, 2, 10, 6, 89, 7, 43, 5, 70, 10, 31, 1, 12, 4, 12, 4,
    1, 3, 42, 2, 5, 11, 44, 4, 26, 6, 11, 3, 62, 2, 65, 1, 29, 2, 11, 6, 10,
    6, 14, 2, 17, 63, 76, 4, 45, 3, 116, 8, 60, 3, 15, 3, 60, 7, 43, 2, 11,
    8, 43, 5, 250, 1, 283, 2, 6, 2, 38, 2, 6, 2, 8, 1, 1, 1, 1, 1, 1, 1, 31,
    2, 53, 1, 15, 1, 14, 2, 6, 1, 19, 2, 3, 1, 9, 17, 24, 8, 47, 17, 2, 2,
    27, 1, 13, 3, 32, 16, 33, 15, 140, 4, 663, 25, 11, 21, 1812, 2, 32, 1,
    152, 1, 47, 1, 148, 5, 45, 1, 1, 5, 1, 2, 56, 7, 2, 14, 24, 9, 7, 1, 7,
    1, 7, 1, 7, 1, 7, 1, 7, 1, 7, 1, 7, 1, 115, 45, 26, 1, 89, 12, 214, 26,
    12, 5, 63, 1, 86, 2, 103, 5, 43, 1, 94, 1, 84, 12, 47, 1, 28125, 3,
    1165, 3, 55, 9, 348, 20, 184, 8, 192, 2, 9, 42, 56, 3, 10, 6, 56, 8, 70,
    8, 12, 6, 116, 11, 30, 3, 78, 1, 11, 4, 33, 1, 55, 9, 14, 2, 10, 2, 103,
    24, 28, 10, 6, 2, 6, 2, 6, 9, 7, 1, 7, 1, 60, 4, 126, 2, 10, 6, 11172,
    12, 23, 4, 49, 8452, 366, 2, 106, 38, 7, 12, 5, 5, 26, 1, 5, 1, 1, 1, 2,
    1, 2, 1, 124, 17, 365, 16, 64, 2, 54, 40, 14, 2, 26, 6, 51, 1, 19, 1, 4,
    4, 5, 1, 135, 4, 190, 3, 6, 2, 6, 2, 6, 2, 3, 3, 7, 1, 7, 13, 2, 2, 12,
    1, 26, 1, 19, 1, 2, 1, 15, 2, 14, 34, 123, 5, 3, 4, 45, 3, 88, 1, 13, 3,
    1, 47, 46, 130, 29, 3, 49, 15, 28, 4, 36, 9, 30, 5, 43, 5, 30, 1, 37, 4,
    14, 42, 158, 2, 10, 6, 36, 4, 36, 4, 40, 8, 52, 11, 1, 144, 311, 9, 22,
    10, 8, 152, 6, 2, 1, 1, 44, 1, 2, 3, 1, 2, 23, 1, 72, 8, 9, 48, 19, 1,
    2, 5, 33, 3, 27, 5, 1, 64, 56, 4, 20, 2, 50, 1, 2, 5, 8, 1, 3, 1, 29, 2,
    3, 4, 10, 7, 9, 7, 64, 32, 39, 4, 12, 9, 54, 3, 29, 2, 27, 5, 26, 7, 4,
    12, 7, 80, 73, 55, 51, 13, 51, 7, 46, 8, 10, 294, 31, 1, 42, 1, 3, 2, 2,
    78, 40, 8, 42, 86, 28, 20, 23, 9, 78, 4, 30, 15, 62, 1, 4, 14, 25, 7,
    10, 6, 53, 1, 18, 8, 39, 9, 96, 1, 20, 11, 18, 1, 44, 65, 7, 1, 1, 1, 4,
    1, 15, 1, 11, 6, 59, 5, 10, 6, 4, 1, 8, 2, 2, 2, 22, 1, 7, 1, 2, 1, 5,
    1, 10, 2, 2, 2, 3, 2, 1, 6, 1, 5, 7, 2, 7, 3, 5, 139, 92, 1, 5, 30, 72,
    8, 10, 166, 54, 2, 38, 34, 69, 11, 10, 6, 13, 19, 57, 7, 10, 54, 27, 2,
    15, 4, 16, 192, 60, 100, 83, 12, 8, 2, 1, 2, 8, 1, 2, 1, 30, 1, 2, 2,
    12, 9, 10, 70, 8, 2, 46, 2, 11, 27, 72, 8, 83, 29, 57, 263, 9, 1, 45, 1,
    14, 10, 29, 3, 32, 2, 22, 1, 14, 73, 7, 1, 2, 1, 44, 3, 1, 1, 2, 1, 9,
    8, 10, 6, 6, 1, 2, 1, 37, 1, 2, 1, 6, 7, 10, 310, 25, 183, 1, 15, 50,
    13, 923, 102, 111, 1, 5, 11, 196, 2748, 1071, 4049, 583, 8633, 569, 7,
    31, 1, 10, 4, 2, 96, 30, 2, 6, 10, 70, 10, 10, 1, 7, 1, 21, 5, 19, 688,
    91, 101, 75, 4, 57, 7, 17, 64, 5, 11, 2, 14, 6136, 8, 1238, 42, 9, 8951,
    287, 49, 3, 17, 4, 8, 396, 2308, 107, 5, 13, 3, 9, 7, 10, 2, 4, 4960,
    246, 10, 39, 2, 74, 8, 110, 23, 70, 154, 20, 12, 87, 9, 25, 135, 85, 1,
    71, 1, 2, 2, 1, 2, 2, 2, 4, 1, 12, 1, 1, 1, 7, 1, 65, 1, 4, 2, 8, 1, 7,
    1, 28, 1, 4, 1, 5, 1, 1, 3, 7, 1, 340, 2, 292, 2, 702, 15, 5, 1, 15,
    1360, 7, 1, 17, 2, 7, 1, 2, 1, 5, 213, 45, 3, 14, 2, 10, 4, 2, 368, 58,
    5, 1, 1280, 197, 2, 16, 41, 76, 4, 10, 4, 2, 785, 68, 76, 61, 194, 4, 1,
    27, 1, 2, 1, 1, 2, 1, 1, 10, 1, 4, 1, 1, 1, 1, 6, 1, 4, 1, 1, 1, 1, 1,
    1, 3, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 2, 4, 1, 7,
    1, 4, 1, 4, 1, 1, 1, 10, 1, 17, 5, 3, 1, 5, 1, 17, 52, 2, 270, 44, 4,
    100, 12, 15, 2, 15, 1, 15, 1, 37, 10, 174, 56, 29, 13, 44, 4, 9, 7, 2,
    14, 6, 154, 984, 8, 13, 3, 13, 3, 116, 12, 89, 7, 12, 20, 12, 4, 56, 8,
    10, 6, 40, 8, 30, 2, 2, 78, 121, 1, 82, 1, 135, 12, 14, 2, 5, 3, 3, 5,
    7, 9, 25, 7, 7, 9, 3, 13, 7, 41, 147, 1, 55, 37, 10, 1030, 42718, 34,
    4149, 11, 222, 2, 5762, 14, 7473, 3103, 542, 1506, 4939,
};
/* clang-format on */

/* Variation selectors, which follow a gap that 16 bits cannot hold. */
#define LAST_BEGIN 0xe0100u
#define LAST_END   0xe01f0u

bool
cpprof__is_printable(uint32_t rune)
{
    uint32_t end = 0x80;
    size_t i;

    if (rune < end)
        return rune >= ' ' && rune < 0x7f;
    for (i = 0; i < sizeof runs / sizeof *runs; i++) {
        end += runs[i];
        if (rune < end)
            return i % 2 == 1;
    }
    return rune >= LAST_BEGIN && rune < LAST_END;
}

/* ---- text ------------------------------------------------------------- */

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
