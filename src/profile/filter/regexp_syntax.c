/* SPDX-License-Identifier: MIT */
/*
 * The parser of regular expressions: reads RE2's syntax from left to right and
 * writes the PCRE2 expression as it goes; there is no tree.
 *
 * What PCRE2 must know of an atom before it can be repeated is kept while the
 * atom is the last one written: where it begins in the output, and its weight,
 * which is how often repetitions around it multiply it. Go refuses an
 * expression whose repetitions multiply to more than 1000, and so does this.
 *
 * Invariants: groups open and close in pairs (a stack of MAX_DEPTH); the
 * output contains only characters that this file has chosen.
 */
#include "profile/filter/regexp_internal.h"

#include <stdio.h>

/* How deep groups nest: 1000 in Go, but then PCRE2 has no room. */
#define MAX_DEPTH 400
/* The largest product of nested repetition counts, as in Go. */
#define MAX_REPEAT 1000
/* The longest expression in bytes. PCRE2 itself refuses shorter ones, but only
 * after more work. */
#define MAX_BYTES (256 << 10)

static bool
fail_all(struct cpprof__regexp_syntax *s, const char *what)
{
    return fail(s, what, s->all, s->end);
}

/* ------------------------------------------------------------ output ---- */

void
cpprof__regexp_begin_atom(struct cpprof__regexp_syntax *s,
                          enum cpprof__regexp_atom atom)
{
    if (s->out_fold != s->flags.fold)
        put(s, s->flags.fold ? "(?i)" : "(?-i)");
    s->out_fold = s->flags.fold;
    s->atom = atom;
    s->atom_start = s->out->n;
    s->atom_weight = 1;
}

bool
cpprof__regexp_put_assertion(struct cpprof__regexp_syntax *s, const char *text,
                             size_t n_read)
{
    cpprof__regexp_begin_atom(s, CPPROF__TO_GROUP);
    put(s, text);
    s->at += n_read;
    return true;
}

void
cpprof__regexp_put_literal(struct cpprof__regexp_syntax *s, uint32_t rune)
{
    cpprof__regexp_begin_atom(s, CPPROF__ONE_ATOM);
    cpprof__put_rune(s->out, rune);
}

/* ------------------------------------------------------------- groups ---- */

static bool
open_group(struct cpprof__regexp_syntax *s)
{
    struct cpprof__regexp_group *g;

    if (s->groups.n == MAX_DEPTH)
        return fail_all(s, "expression nests too deeply");
    cpprof__regexp_begin_atom(s, CPPROF__NO_ATOM);
    g = CPPROF__ARRAY_ADD(&s->groups);
    if (!g) {
        s->no_memory = true;
        return false;
    }
    *g = (struct cpprof__regexp_group){s->flags, s->out_fold, s->weight,
                                       s->out->n};
    s->weight = 1;
    put(s, "(?:");
    return true;
}

/* Add the atom just written to the weight of its group. */
static void
add_weight(struct cpprof__regexp_syntax *s)
{
    if (s->atom_weight > s->weight)
        s->weight = s->atom_weight;
}

static bool
close_group(struct cpprof__regexp_syntax *s)
{
    unsigned inside = s->weight;
    struct cpprof__regexp_group *g;

    if (!s->groups.n)
        return fail_all(s, "unexpected )");
    g = &s->groups.at[--s->groups.n];
    put(s, ")");
    s->at++;
    s->flags = g->flags;
    s->out_fold = g->out_fold;
    s->weight = g->weight;
    s->atom = CPPROF__ONE_ATOM;
    s->atom_start = g->start;
    s->atom_weight = inside;
    add_weight(s);
    return true;
}

/* (?P<name> or (?<name>: n bytes lie before the name. */
static bool
open_named(struct cpprof__regexp_syntax *s, size_t n)
{
    const char *start = s->at, *name = start + n, *c;
    const char *close = memchr(start, '>', left(s));

    if (!close)
        return fail(s, "invalid named capture", start, s->end);
    for (c = name; c < close; c++)
        if (!is_word((unsigned char)*c))
            break;
    if (c < close || c == name)
        return fail(s, "invalid named capture", start, close + 1);
    s->at = close + 1;
    return open_group(s);
}

static bool *
flag_of(struct cpprof__regexp_flags *flags, uint32_t c, bool *no_matter)
{
    switch (c) {
    case 'i':
        return &flags->fold;
    case 'm':
        return &flags->lines;
    case 's':
        return &flags->dots;
    case 'U': /* lazy: which match is found does not matter */
        return no_matter;
    }
    return NULL;
}

/* (?i), (?i-s:, (?: */
static bool
open_flags(struct cpprof__regexp_syntax *s)
{
    const char *start = s->at;
    struct cpprof__regexp_flags flags = s->flags;
    bool value = true, seen = true, no_matter, *flag;
    uint32_t c;

    s->at += 2;
    while (left(s)) {
        c = next_rune(s);
        flag = flag_of(&flags, c, &no_matter);
        if (flag) {
            *flag = value;
            seen = true;
        } else if (c == '-' && value) {
            value = seen = false;
        } else if ((c == ':' || c == ')') && seen) {
            if (c == ':' && !open_group(s))
                return false;
            s->flags = flags;
            return true;
        } else {
            break;
        }
    }
    return fail(s, "invalid or unsupported Perl syntax", start, s->at);
}

static bool
open_any(struct cpprof__regexp_syntax *s)
{
    if (peek(s, 1) != '?') {
        s->at++;
        return open_group(s);
    }
    if (left(s) > 4 && s->at[2] == 'P' && s->at[3] == '<')
        return open_named(s, 4);
    if (left(s) > 3 && s->at[2] == '<')
        return open_named(s, 3);
    return open_flags(s);
}

/* -------------------------------------------------------- repetitions ---- */

/* A number without leading zeros; -1 when it is too large. */
static bool
number(const char **at, const char *end, int *value)
{
    const char *c = *at;
    int n = 0;

    if (c == end || !is_digit((unsigned char)*c) ||
        (*c == '0' && end - c > 1 && is_digit((unsigned char)c[1])))
        return false;
    for (; c < end && is_digit((unsigned char)*c); c++)
        n = n < 0 || n > MAX_REPEAT ? -1 : n * 10 + (*c - '0');
    *value = n;
    *at = c;
    return true;
}

/* {2}, {2,}, {2,3}; otherwise the brace is a character like others. high is
 * INT32_MAX where there is none. */
static bool
counts(const struct cpprof__regexp_syntax *s, int *low, int *high,
       const char **after)
{
    const char *c = s->at + 1;

    if (!number(&c, s->end, low))
        return false;
    *high = *low;
    if (c < s->end && *c == ',') {
        c++;
        *high = INT32_MAX;
        if (c < s->end && *c != '}' && !number(&c, s->end, high))
            return false;
    }
    if (c == s->end || *c != '}')
        return false;
    *after = c + 1;
    return true;
}

/* PCRE2 repeats characters, classes and groups only. */
static void
group_atom(struct cpprof__regexp_syntax *s)
{
    if (!cpprof__buffer_reserve(s->out, 4))
        return;
    memmove(s->out->data + s->atom_start + 3, s->out->data + s->atom_start,
            s->out->n - s->atom_start);
    memcpy(s->out->data + s->atom_start, "(?:", 3);
    s->out->n += 3;
    put(s, ")");
}

/* A repetition that reads from s->at to `after`. */
static bool
repeat(struct cpprof__regexp_syntax *s, const char *after, const char *text)
{
    const char *start = s->at;

    if (after < s->end && *after == '?')
        after++;
    s->at = after;
    if (s->repeat)
        return fail(s, "invalid nested repetition operator", s->repeat, after);
    if (s->atom == CPPROF__NO_ATOM)
        return fail(s, "missing argument to repetition operator", start, after);
    if (s->atom == CPPROF__TO_GROUP)
        group_atom(s);
    put(s, text);
    s->atom = CPPROF__TO_GROUP;
    s->repeat = start;
    return true;
}

static bool
repeat_counted(struct cpprof__regexp_syntax *s, int low, int high,
               const char *after)
{
    const char *start = s->at;
    int most = high == INT32_MAX ? low : high;
    char text[32];

    if (low < 0 || high < 0 || low > MAX_REPEAT || most > MAX_REPEAT ||
        low > high)
        return fail(s, "invalid repeat count", start, after);
    if (high == INT32_MAX)
        snprintf(text, sizeof text, "{%d,}", low);
    else
        snprintf(text, sizeof text, "{%d,%d}", low, high);
    if (!repeat(s, after, text))
        return false;
    if (most >= 2)
        s->atom_weight *= (unsigned)most;
    if (s->atom_weight > MAX_REPEAT)
        return fail(s, "invalid repeat count", start, s->at);
    add_weight(s);
    return true;
}

/* ------------------------------------------------------------- items ---- */

static bool
brace(struct cpprof__regexp_syntax *s)
{
    const char *after;
    int low, high;

    if (counts(s, &low, &high, &after))
        return repeat_counted(s, low, high, after);
    cpprof__regexp_put_literal(s, next_rune(s));
    return true;
}

static bool
branch(struct cpprof__regexp_syntax *s)
{
    put(s, "|");
    s->atom = CPPROF__NO_ATOM;
    s->at++;
    return true;
}

static bool
dot(struct cpprof__regexp_syntax *s)
{
    cpprof__regexp_begin_atom(s, CPPROF__ONE_ATOM);
    put(s, s->flags.dots ? "\\p{Any}" : "[^\\n]");
    s->at++;
    return true;
}

static bool
item(struct cpprof__regexp_syntax *s)
{
    char text[2] = {*s->at, 0};

    switch (*s->at) {
    case '(':
        return open_any(s);
    case ')':
        return close_group(s);
    case '|':
        return branch(s);
    case '^':
        return cpprof__regexp_put_assertion(
            s, s->flags.lines ? "(?<![^\\n])" : "\\A", 1);
    case '$':
        return cpprof__regexp_put_assertion(
            s, s->flags.lines ? "(?![^\\n])" : "\\z", 1);
    case '.':
        return dot(s);
    case '[':
        return cpprof__regexp_class(s);
    case '*':
    case '+':
    case '?':
        return repeat(s, s->at + 1, text);
    case '{':
        return brace(s);
    case '\\':
        return cpprof__regexp_backslash(s);
    }
    cpprof__regexp_put_literal(s, next_rune(s));
    return true;
}

static bool
check_utf8(struct cpprof__regexp_syntax *s)
{
    const char *c = s->all;
    uint32_t rune;
    size_t n;

    for (; c < s->end; c += n) {
        n = cpprof__utf8_next(c, (size_t)(s->end - c), &rune);
        if (!n)
            return fail(s, "invalid UTF-8", c, s->end);
    }
    return true;
}

static bool
translate(struct cpprof__regexp_syntax *s)
{
    const char *repeat_before;

    if (left(s) > MAX_BYTES)
        return fail(s, "expression too large", s->all, s->all);
    if (!check_utf8(s))
        return false;
    while (left(s)) {
        repeat_before = s->repeat;
        if (!item(s))
            return false;
        if (s->repeat == repeat_before)
            s->repeat = NULL;
    }
    if (s->groups.n)
        return fail_all(s, "missing closing )");
    return true;
}

enum cpprof_status
cpprof__regexp_translate(const char *expression, size_t n,
                         cpprof__property_fn check_property,
                         struct cpprof__buffer *out,
                         struct cpprof__syntax_error *error)
{
    struct cpprof__regexp_syntax s = {.all = expression,
                                      .at = expression,
                                      .end = expression + n,
                                      .out = out,
                                      .check_property = check_property,
                                      .weight = 1,
                                      .error = error};
    bool ok = translate(&s);

    CPPROF__ARRAY_FREE(&s.groups);
    if (s.no_memory || out->failed)
        return CPPROF_NOMEM;
    return ok ? CPPROF_OK : CPPROF_BAD_DATA;
}
