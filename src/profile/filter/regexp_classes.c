/* SPDX-License-Identifier: MIT */
/*
 * Characters in an expression, and sets of them: escapes, \d and \pL, and what
 * stands in brackets.
 *
 * A named set is a predicate on ASCII characters. Writing one lists the ranges
 * for which the predicate holds, folds case where (?i) asks for it, and
 * negates. Two characters beyond ASCII fold to one of it (the long s and the
 * Kelvin sign); they are added by hand.
 *
 * Source: Go's regexp/syntax (perl_groups.go).
 */
#include "profile/filter/regexp_internal.h"

#include <stdio.h>

/* Put in front of a script's name, which without it includes script extensions.
 */
#define SCRIPT "sc:"

/* ------------------------------------------------------- named sets ---- */

/* A set of ASCII characters: is c one of them? */
typedef bool (*set_fn)(uint32_t c);

static bool
is_ascii(uint32_t c)
{
    return c < 0x80;
}

static bool
is_blank(uint32_t c)
{
    return c == ' ' || c == '\t';
}

static bool
is_cntrl(uint32_t c)
{
    return c < 0x20 || c == 0x7f;
}

static bool
is_graph(uint32_t c)
{
    return c > ' ' && c < 0x7f;
}

static bool
is_print(uint32_t c)
{
    return c >= ' ' && c < 0x7f;
}

static bool
is_punct(uint32_t c)
{
    return is_graph(c) && !is_alnum(c);
}

static bool
is_space(uint32_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* As \s: without the vertical tab. */
static bool
is_perl_space(uint32_t c)
{
    return is_space(c) && c != '\v';
}

static const struct {
    const char *name;
    set_fn has;
} sets[] = {
    {"alnum", is_alnum}, {"alpha", is_alpha},   {"ascii", is_ascii},
    {"blank", is_blank}, {"cntrl", is_cntrl},   {"digit", is_digit},
    {"graph", is_graph}, {"lower", is_lower},   {"print", is_print},
    {"punct", is_punct}, {"space", is_space},   {"upper", is_upper},
    {"word", is_word},   {"xdigit", is_xdigit},
};

/* The set of [:NAME:]; NULL when there is no such one. */
static set_fn
posix_set_of(const char *name, size_t n)
{
    size_t i;

    for (i = 0; i < sizeof sets / sizeof sets[0]; i++)
        if (strlen(sets[i].name) == n && memcmp(sets[i].name, name, n) == 0)
            return sets[i].has;
    return NULL;
}

/* The set of \d, \s, \w; NULL when there is no such one. */
static set_fn
perl_set_of(char name)
{
    switch (name) {
    case 'd':
        return is_digit;
    case 's':
        return is_perl_space;
    case 'w':
        return is_word;
    }
    return NULL;
}

void
cpprof__put_rune(struct cpprof__buffer *out, uint32_t rune)
{
    if (is_alnum(rune))
        cpprof__buffer_printf(out, "%c", (int)rune);
    else
        cpprof__buffer_printf(out, "\\x{%x}", (unsigned)rune);
}

/* A range, as PCRE2 wants it between brackets. */
static void
put_range(struct cpprof__buffer *out, uint32_t low, uint32_t high)
{
    cpprof__put_rune(out, low);
    if (high == low)
        return;
    cpprof__buffer_append(out, "-", 1);
    cpprof__put_rune(out, high);
}

/* The two characters outside ASCII that fold to one of it. */
#define LONG_S 0x17fu
#define KELVIN 0x212au

static bool
set_has(set_fn has, bool fold, uint32_t c)
{
    if (fold && c == LONG_S)
        c = 's';
    else if (fold && c == KELVIN)
        c = 'k';
    if (c >= 0x80)
        return false;
    return has(c) || (fold && is_alpha(c) && has(c ^ 0x20));
}

/* What is not in the set beyond ASCII. */
static void
put_beyond(struct cpprof__buffer *out, set_fn has, bool fold)
{
    put_range(out, 0x80, LONG_S - 1);
    if (!set_has(has, fold, LONG_S))
        cpprof__put_rune(out, LONG_S);
    put_range(out, LONG_S + 1, KELVIN - 1);
    if (!set_has(has, fold, KELVIN))
        cpprof__put_rune(out, KELVIN);
    put_range(out, KELVIN + 1, 0x10ffff);
}

/* The members of a set, or all others. fold: case is folded. */
static void
put_members(struct cpprof__buffer *out, set_fn has, bool fold, bool negated)
{
    uint32_t c, start;

    for (c = 0; c < 0x80; c++) {
        if (set_has(has, fold, c) == negated)
            continue;
        for (start = c; c + 1 < 0x80; c++)
            if (set_has(has, fold, c + 1) == negated)
                break;
        put_range(out, start, c);
    }
    if (negated)
        put_beyond(out, has, fold);
}

/* --------------------------------------------- sets in expressions ---- */

/* \d, \S and so on; false when there is none here. */
static bool
perl_set(struct cpprof__regexp_syntax *s)
{
    char c = left(s) >= 2 && *s->at == '\\' ? s->at[1] : 0;
    bool negated = is_upper((unsigned char)c);
    set_fn has = perl_set_of(negated ? (char)(c | 0x20) : c);

    if (!has)
        return false;
    put_members(s->out, has, s->flags.fold, negated);
    s->at += 2;
    return true;
}

/* [:alpha:], [:^alpha:]; *found when there is one here. */
static bool
posix_set(struct cpprof__regexp_syntax *s, bool *found)
{
    const char *start = s->at, *name = start + 2, *close;
    set_fn has;
    bool negated;

    *found = false;
    if (left(s) < 3 || start[0] != '[' || start[1] != ':')
        return true;
    close = memmem(name, (size_t)(s->end - name), ":]", 2);
    if (!close)
        return true;
    s->at = close + 2;
    negated = name < close && *name == '^';
    name += negated;
    has = posix_set_of(name, (size_t)(close - name));
    if (has) {
        put_members(s->out, has, s->flags.fold, negated);
        *found = true;
        return true;
    }
    return fail(s, "invalid character class range", start, s->at);
}

/* "Lu", "Greek" and "Any", as PCRE2 wants them; false if there is none such.
 * Scripts are those of the character alone, without script extensions. */
static bool
put_property(struct cpprof__regexp_syntax *s, const char *name, size_t n,
             bool negated)
{
    bool is_any = n == 3 && memcmp(name, "Any", 3) == 0;
    enum cpprof_status status;
    char text[48];
    size_t i;

    for (i = 0; i < n; i++)
        if (!is_alpha((unsigned char)name[i]) && !(i && name[i] == '_'))
            return false;
    if (!n || !is_upper((unsigned char)*name) || n > sizeof text - 8)
        return false;
    snprintf(text, sizeof text, "%s%.*s", n > 2 && !is_any ? SCRIPT : "",
             (int)n, name);
    status = s->check_property(text);
    s->no_memory |= status == CPPROF_NOMEM;
    if (status != CPPROF_OK)
        return false;
    /* Upper, lower and title case are one when case is folded. */
    if (s->flags.fold && n == 2 && *name == 'L' && strchr("ult", name[1]))
        strcpy(text, "L&");
    cpprof__buffer_printf(s->out, "\\%c{%s}", negated ? 'P' : 'p', text);
    return true;
}

/* \pN, \p{Greek}, \P{^Lu}; *found when there is one here. */
static bool
unicode_set(struct cpprof__regexp_syntax *s, bool *found)
{
    const char *start = s->at, *name, *name_end;
    bool negated;

    *found = left(s) >= 2 && start[0] == '\\' && (start[1] | 0x20) == 'p';
    if (!*found)
        return true;
    negated = start[1] == 'P';
    s->at += 2;
    name = s->at;
    if (next_rune(s) == '{') {
        name_end = memchr(name, '}', (size_t)(s->end - name));
        s->at = name_end ? name_end + 1 : s->end;
        name++;
    } else {
        name_end = s->at;
    }
    if (name_end && name < name_end && *name == '^') {
        negated = !negated;
        name++;
    }
    if (name_end && put_property(s, name, (size_t)(name_end - name), negated))
        return true;
    return fail(s, "invalid character class range", start, s->at);
}

/* ----------------------------------------------------------- escapes ---- */

static int
hex_value(uint32_t c)
{
    if (is_digit(c))
        return (int)(c - '0');
    return is_xdigit(c) ? (int)((c | 0x20) - 'a' + 10) : -1;
}

/* What follows \x; -1 when it is no number of a character. */
static int
hex_escape(struct cpprof__regexp_syntax *s)
{
    uint32_t c = next_rune(s);
    int value = 0, digit, n = 0, high, low;

    if (c != '{') {
        high = hex_value(c);
        low = hex_value(next_rune(s));
        return high < 0 || low < 0 ? -1 : high * 16 + low;
    }
    while (left(s) && (c = next_rune(s)) != '}') {
        digit = hex_value(c);
        if (digit < 0 || (value = value * 16 + digit) > 0x10ffff)
            return -1;
        n++;
    }
    return c == '}' && n ? value : -1;
}

/* Up to three digits, the first of which was read. */
static int
octal_escape(struct cpprof__regexp_syntax *s, uint32_t first)
{
    int value = (int)(first - '0'), i;

    if (first != '0' && !is_octal((unsigned char)peek(s, 0)))
        return -1; /* it would be a back reference */
    for (i = 1; i < 3 && is_octal((unsigned char)peek(s, 0)); i++)
        value = value * 8 + (int)(next_rune(s) - '0');
    return value;
}

/* The character of an escape that stands for one. */
static bool
escape(struct cpprof__regexp_syntax *s, uint32_t *rune)
{
    static const char names[] = "afnrtv", values[] = "\a\f\n\r\t\v";
    const char *start = s->at++, *name;
    uint32_t c;
    int value = -1;

    if (!left(s))
        return fail(s, "trailing backslash at end of expression", s->at, s->at);
    c = next_rune(s);
    name = is_lower(c) ? strchr(names, (int)c) : NULL;
    if (c < 0x80 && !is_alnum(c))
        value = (int)c;
    else if (is_octal(c))
        value = octal_escape(s, c);
    else if (c == 'x')
        value = hex_escape(s);
    else if (name)
        value = values[name - names];
    if (value < 0)
        return fail(s, "invalid escape sequence", start, s->at);
    *rune = (uint32_t)value;
    return true;
}

/* \Q...\E: each character stands for itself. */
static bool
quoted(struct cpprof__regexp_syntax *s)
{
    const char *close;

    s->at += 2;
    close = memmem(s->at, left(s), "\\E", 2);
    while (s->at < (close ? close : s->end))
        cpprof__regexp_put_literal(s, next_rune(s));
    if (close)
        s->at += 2;
    return true;
}

/* A set of its own, in brackets. */
static bool
lone_set(struct cpprof__regexp_syntax *s, bool *found)
{
    size_t start;

    cpprof__regexp_begin_atom(s, CPPROF__ONE_ATOM);
    start = s->out->n;
    put(s, "[");
    if (!unicode_set(s, found))
        return false;
    if (!*found)
        *found = perl_set(s);
    if (*found) {
        put(s, "]");
        return true;
    }
    if (!s->out->failed)
        s->out->n = start;
    return true;
}

bool
cpprof__regexp_backslash(struct cpprof__regexp_syntax *s)
{
    uint32_t rune;
    bool found;

    switch (peek(s, 1)) {
    case 'A':
        return cpprof__regexp_put_assertion(s, "\\A", 2);
    case 'b':
        return cpprof__regexp_put_assertion(s, "\\b", 2);
    case 'B':
        return cpprof__regexp_put_assertion(s, "\\B", 2);
    case 'z':
        return cpprof__regexp_put_assertion(s, "\\z", 2);
    case 'Q':
        return quoted(s);
    }
    if (!lone_set(s, &found))
        return false;
    if (found)
        return true;
    if (!escape(s, &rune))
        return false;
    cpprof__regexp_put_literal(s, rune);
    return true;
}

/* ------------------------------------------------------------ classes ---- */

static bool
class_rune(struct cpprof__regexp_syntax *s, const char *class_start,
           uint32_t *rune)
{
    if (!left(s))
        return fail(s, "missing closing ]", class_start, s->end);
    if (*s->at == '\\')
        return escape(s, rune);
    *rune = next_rune(s);
    return true;
}

static bool
class_range(struct cpprof__regexp_syntax *s, const char *class_start)
{
    const char *start = s->at;
    uint32_t low, high;

    if (!class_rune(s, class_start, &low))
        return false;
    high = low;
    if (left(s) >= 2 && s->at[0] == '-' && s->at[1] != ']') {
        s->at++;
        if (!class_rune(s, class_start, &high))
            return false;
        if (high < low)
            return fail(s, "invalid character class range", start, s->at);
    }
    put_range(s->out, low, high);
    return true;
}

static bool
class_item(struct cpprof__regexp_syntax *s, const char *class_start)
{
    bool found;

    if (!posix_set(s, &found))
        return false;
    if (!found && !unicode_set(s, &found))
        return false;
    return found || perl_set(s) || class_range(s, class_start);
}

bool
cpprof__regexp_class(struct cpprof__regexp_syntax *s)
{
    const char *start = s->at++;

    cpprof__regexp_begin_atom(s, CPPROF__ONE_ATOM);
    put(s, "[");
    if (peek(s, 0) == '^') {
        put(s, "^");
        s->at++;
    }
    /* A bracket that comes first is a literal. */
    do {
        if (!class_item(s, start))
            return false;
    } while (peek(s, 0) != ']');
    put(s, "]");
    s->at++;
    return true;
}
