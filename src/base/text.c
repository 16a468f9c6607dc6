/* SPDX-License-Identifier: MIT */
/*
 * Characters and numbers. UTF-8 as RFC 3629 has it: nothing longer than needed,
 * no surrogates. Numbers as Go's strconv reads them: the prefixes 0x, 0b, 0o
 * and 0, underscores, and the same refusals in the same words; nothing wraps.
 * What compilers append to symbols.
 */
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

size_t
cpprof__utf8_next(const char *text, size_t n, uint32_t *rune)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)*text;
    size_t length, i;
    uint32_t c;

    *rune = first;
    if (first < 0x80)
        return 1;
    length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || length > n)
        return 0;
    c = first & (0xff >> (length + 1));
    for (i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (text[i] & 0x3f);
    }
    *rune = c;
    if (c < least[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    return length;
}

bool
cpprof__is_utf8(const char *text, size_t n)
{
    uint32_t rune;
    size_t used;

    for (; n; text += used, n -= used) {
        /* It ends at a zero byte, which is a character, too. */
        used = *text ? cpprof__utf8_next(text, n, &rune) : 1;
        if (!used)
            return false;
    }
    return true;
}

void
cpprof__put_utf8(struct cpprof__buffer *out, const char *text, size_t n)
{
    uint32_t rune;
    size_t used;

    for (; n; text += used, n -= used) {
        used = *text ? cpprof__utf8_next(text, n, &rune) : 1;
        if (used) {
            cpprof__buffer_append(out, text, used);
        } else {
            cpprof__buffer_append(out, "\xef\xbf\xbd", 3);
            used = 1;
        }
    }
}

void
cpprof__clean_text(char *text)
{
    uint32_t rune;
    size_t n;

    while (*text) {
        n = cpprof__utf8_next(text, 4, &rune);
        if (n && rune >= ' ' && (rune < 0x7f || rune >= 0xa0))
            text += n;
        else
            *text++ = '?';
    }
}

/* ------------------------------------------------------------- numbers ---- */

static const char syntax[] = "invalid syntax";
static const char range[] = "value out of range";

/* The base that the prefix of a text asks for; skips the prefix. */
static unsigned
take_prefix(const char **text, size_t *n)
{
    unsigned base = 0;

    if (*n >= 3) {
        char c = (char)((*text)[1] | 0x20);

        base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
    }
    *text += base ? 2 : 1;
    *n -= base ? 2 : 1;
    return base ? base : 8;
}

/* Add one digit; NULL, or what is wrong. */
static const char *
add_digit(uint64_t *value, unsigned base, unsigned digit)
{
    if (digit >= base)
        return syntax;
    if (__builtin_mul_overflow(*value, (uint64_t)base, value) ||
        __builtin_add_overflow(*value, (uint64_t)digit, value))
        return range;
    return NULL;
}

const char *
cpprof__go_uint(const char *text, size_t n, unsigned base, uint64_t *value)
{
    bool may_underscore = base == 0, is_behind_digit = false, is_bad = false;
    const char *wrong = NULL;

    *value = 0;
    if (n == 0)
        return syntax;
    if (base == 0) {
        is_behind_digit = *text == '0';
        base = is_behind_digit ? take_prefix(&text, &n) : 10;
    } else {
        is_behind_digit = true;
    }
    for (; n && !wrong; text++, n--) {
        if (may_underscore && *text == '_') {
            is_bad = is_bad || !is_behind_digit;
            is_behind_digit = false;
            continue;
        }
        wrong = add_digit(value, base, cpprof__digit(*text));
        is_behind_digit = true;
    }
    if (!wrong && (is_bad || !is_behind_digit))
        wrong = syntax;
    if (wrong)
        *value = wrong == range ? UINT64_MAX : 0;
    return wrong;
}

/* ------------------------------------------------------------- symbols ---- */

/* Components that compilers append to the names of copies, most with a number
 * behind. A number alone is none: GCC numbers nested functions ("helper.0"). */
static bool
is_copy_suffix(const char *text, size_t n, bool has_number)
{
    static const char *const words[] = {
        "cold",  "localalias", "warm", "exit", /* from here on: numbered */
        "clone", "constprop",  "isra", "llvm", "lto_priv",
        "part",  "specialized"};
    size_t i;

    for (i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == n && memcmp(words[i], text, n) == 0)
            return i < 4 || has_number;
    return false;
}

static bool
is_number(const char *text, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (text[i] < '0' || text[i] > '9')
            return false;
    return n > 0;
}

size_t
cpprof__symbol_source_length(const char *symbol, size_t n)
{
    const char *at = memchr(symbol, '@', n);
    const char *dot;
    size_t length = at && at > symbol ? (size_t)(at - symbol) : n;
    size_t end = length;
    bool has_number = false;

    while ((dot = memrchr(symbol, '.', end)) && dot > symbol) {
        size_t n_word = end - (size_t)(dot + 1 - symbol);

        end = (size_t)(dot - symbol);
        if (is_copy_suffix(dot + 1, n_word, has_number))
            length = end;
        else if (!is_number(dot + 1, n_word))
            break;
        has_number = is_number(dot + 1, n_word);
    }
    return length;
}

bool
cpprof__parse_count(const char *text, uint32_t most, uint32_t *count)
{
    char *end;
    unsigned long v = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end || v < 1 || v > most)
        return false;
    *count = (uint32_t)v;
    return true;
}

bool
cpprof__parse_bytes(const char *text, uint64_t most, int64_t *bytes)
{
    static const char units[] = "kmg";
    char *end;
    unsigned long v = strtoul(text, &end, 10); /* the largest if it is larger */
    const char *unit = *end ? strchr(units, *end | 0x20) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;

    if (*text < '0' || *text > '9' || end[unit != NULL] || v > most >> shift)
        return false;
    *bytes = (int64_t)(v << shift);
    return true;
}

void
cpprof__put_escaped(struct cpprof__buffer *out, const char *text, size_t n,
                    const char *more)
{
    for (; n; text++, n--)
        if (cpprof__digit(*text) < 36 ||
            (*text && (strchr("-._~", *text) || strchr(more, *text))))
            cpprof__buffer_append(out, text, 1);
        else
            cpprof__buffer_printf(out, "%%%02X", (unsigned char)*text);
}

static bool
is_member(const char *text, size_t n)
{
    size_t i, blanks = strspn(text, " ");

    if (blanks >= n)
        return true;
    if (!memchr(text, '=', n) || text[blanks] == '=')
        return false;
    for (i = 0; i < n; i++)
        if (text[i] == '%' && (i + 2 >= n || cpprof__digit(text[i + 1]) > 15 ||
                               cpprof__digit(text[i + 2]) > 15))
            return false;
    return true;
}

const char *
cpprof__bad_member(const char *members, size_t *n)
{
    for (; *members; members += *n + (members[*n] == ',')) {
        *n = strcspn(members, ",");
        if (!is_member(members, *n))
            return members;
    }
    return NULL;
}
