/* SPDX-License-Identifier: MIT */
#include "profile/regexp_syntax.h"

#include "profile/array.h"
#include "profile/regexp_sets.h"
#include "profile/utf8.h"

#include <stdio.h>
#include <string.h>

/* How deep groups nest: 1000 in Go, but then PCRE2 has no room. */
#define MAX_DEPTH 400
/* How often the same thing may be asked for by repetitions within each other,
 * as in Go. */
#define MAX_REPEAT 1000
/* Bytes of an expression; PCRE2 refuses far shorter ones, but later. */
#define MAX_BYTES (256 << 10)

/* Before a script's name, which of itself means its extensions as well. */
#define SCRIPT "sc:"

/* What a repetition would repeat. */
enum atom {
    NO_ATOM,  /* nothing: the start of an expression, a group, a branch */
    ONE_ATOM, /* a character, a class, a group */
    TO_GROUP, /* an assertion or a repetition: PCRE2 wants them in a group */
};

struct flags {
    bool fold;  /* (?i) */
    bool lines; /* (?m) */
    bool dots;  /* (?s) */
};

/* A group that is open. */
struct group {
    struct flags flags; /* to go back to */
    bool out_fold;
    unsigned weight;
    size_t start; /* in the output */
};

struct syntax {
    const char *all, *at, *end;
    cpprof__property_fn check_property;
    struct cpprof__buffer *out;
    struct flags flags;
    bool out_fold; /* does what is written so far fold? */
    CPPROF__ARRAY(struct group) groups;
    enum atom atom;
    size_t atom_start;    /* in the output */
    unsigned atom_weight; /* repetitions in the atom */
    unsigned weight;      /* the most in any atom of this group */
    const char *repeat;   /* the repetition right before, or NULL */
    struct cpprof__syntax_error *error;
    bool no_memory;
};

static bool
fail(struct syntax *s, const char *what, const char *from, const char *to)
{
    s->error->what = what;
    s->error->at = from;
    s->error->n = (size_t)(to - from);
    return false;
}

static bool
fail_all(struct syntax *s, const char *what)
{
    return fail(s, what, s->all, s->end);
}

static size_t
left(const struct syntax *s)
{
    return (size_t)(s->end - s->at);
}

/* The byte `ahead` of here; 0, which is a literal, past the end. */
static char
peek(const struct syntax *s, size_t ahead)
{
    return ahead < left(s) ? s->at[ahead] : 0;
}

/* The next character; the expression is known to be UTF-8. 0 at the end. */
static uint32_t
next_rune(struct syntax *s)
{
    uint32_t rune = 0;

    if (left(s))
        s->at += cpprof__utf8_next(s->at, left(s), &rune);
    return rune;
}

/* ------------------------------------------------------------ output ---- */

static void
put(struct syntax *s, const char *text)
{
    cpprof__buffer_append(s->out, text, strlen(text));
}

/* What is written next is an atom. Case folding is switched only now, so that
 * (?i) between an atom and its repetition does not part them. */
static void
begin_atom(struct syntax *s, enum atom atom)
{
    if (s->out_fold != s->flags.fold)
        put(s, s->flags.fold ? "(?i)" : "(?-i)");
    s->out_fold = s->flags.fold;
    s->atom = atom;
    s->atom_start = s->out->n;
    s->atom_weight = 1;
}

static bool
put_assertion(struct syntax *s, const char *text, size_t n_read)
{
    begin_atom(s, TO_GROUP);
    put(s, text);
    s->at += n_read;
    return true;
}

static void
put_literal(struct syntax *s, uint32_t rune)
{
    begin_atom(s, ONE_ATOM);
    cpprof__put_rune(s->out, rune);
}

/* ------------------------------------------------------------- sets ---- */

static void
put_set(struct syntax *s, cpprof__set_fn has, bool negated)
{
    cpprof__put_set(s->out, has, s->flags.fold, negated);
}

/* \d, \S and so on; false when there is none here. */
static bool
perl_set(struct syntax *s)
{
    char c = left(s) >= 2 && *s->at == '\\' ? s->at[1] : 0;
    bool negated = is_upper((unsigned char)c);
    cpprof__set_fn has = cpprof__perl_set(negated ? (char)(c | 0x20) : c);

    if (!has)
        return false;
    put_set(s, has, negated);
    s->at += 2;
    return true;
}

/* [:alpha:], [:^alpha:]; *found when there is one here. */
static bool
posix_set(struct syntax *s, bool *found)
{
    const char *start = s->at, *name = start + 2, *close;
    cpprof__set_fn has;
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
    has = cpprof__posix_set(name, (size_t)(close - name));
    if (has) {
        put_set(s, has, negated);
        *found = true;
        return true;
    }
    return fail(s, "invalid character class range", start, s->at);
}

/* "Lu", "Greek" and "Any", as PCRE2 wants them; false if there is none such.
 * Scripts are those of the character alone, without script extensions. */
static bool
put_property(struct syntax *s, const char *name, size_t n, bool negated)
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
unicode_set(struct syntax *s, bool *found)
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
hex_escape(struct syntax *s)
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
octal_escape(struct syntax *s, uint32_t first)
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
escape(struct syntax *s, uint32_t *rune)
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
quoted(struct syntax *s)
{
    const char *close;

    s->at += 2;
    close = memmem(s->at, left(s), "\\E", 2);
    while (s->at < (close ? close : s->end))
        put_literal(s, next_rune(s));
    if (close)
        s->at += 2;
    return true;
}

/* A set of its own, in brackets. */
static bool
lone_set(struct syntax *s, bool *found)
{
    size_t start;

    begin_atom(s, ONE_ATOM);
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

static bool
backslash(struct syntax *s)
{
    uint32_t rune;
    bool found;

    switch (peek(s, 1)) {
    case 'A':
        return put_assertion(s, "\\A", 2);
    case 'b':
        return put_assertion(s, "\\b", 2);
    case 'B':
        return put_assertion(s, "\\B", 2);
    case 'z':
        return put_assertion(s, "\\z", 2);
    case 'Q':
        return quoted(s);
    }
    if (!lone_set(s, &found))
        return false;
    if (found)
        return true;
    if (!escape(s, &rune))
        return false;
    put_literal(s, rune);
    return true;
}

/* ------------------------------------------------------------ classes ---- */

static bool
class_rune(struct syntax *s, const char *class_start, uint32_t *rune)
{
    if (!left(s))
        return fail(s, "missing closing ]", class_start, s->end);
    if (*s->at == '\\')
        return escape(s, rune);
    *rune = next_rune(s);
    return true;
}

static bool
class_range(struct syntax *s, const char *class_start)
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
    cpprof__put_range(s->out, low, high);
    return true;
}

static bool
class_item(struct syntax *s, const char *class_start)
{
    bool found;

    if (!posix_set(s, &found))
        return false;
    if (!found && !unicode_set(s, &found))
        return false;
    return found || perl_set(s) || class_range(s, class_start);
}

static bool class(struct syntax *s)
{
    const char *start = s->at++;

    begin_atom(s, ONE_ATOM);
    put(s, "[");
    if (peek(s, 0) == '^') {
        put(s, "^");
        s->at++;
    }
    /* A bracket that comes first stands for itself. */
    do {
        if (!class_item(s, start))
            return false;
    } while (peek(s, 0) != ']');
    put(s, "]");
    s->at++;
    return true;
}

/* ------------------------------------------------------------- groups ---- */

static bool
open_group(struct syntax *s)
{
    struct group *g;

    if (s->groups.n == MAX_DEPTH)
        return fail_all(s, "expression nests too deeply");
    begin_atom(s, NO_ATOM);
    g = CPPROF__ARRAY_ADD(&s->groups);
    if (!g) {
        s->no_memory = true;
        return false;
    }
    *g = (struct group){s->flags, s->out_fold, s->weight, s->out->n};
    s->weight = 1;
    put(s, "(?:");
    return true;
}

/* The atom just written counts for what it repeats. */
static void
add_weight(struct syntax *s)
{
    if (s->atom_weight > s->weight)
        s->weight = s->atom_weight;
}

static bool
close_group(struct syntax *s)
{
    unsigned inside = s->weight;
    struct group *g;

    if (!s->groups.n)
        return fail_all(s, "unexpected )");
    g = &s->groups.at[--s->groups.n];
    put(s, ")");
    s->at++;
    s->flags = g->flags;
    s->out_fold = g->out_fold;
    s->weight = g->weight;
    s->atom = ONE_ATOM;
    s->atom_start = g->start;
    s->atom_weight = inside;
    add_weight(s);
    return true;
}

/* (?P<name> or (?<name>: n bytes lie before the name. */
static bool
open_named(struct syntax *s, size_t n)
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
flag_of(struct flags *flags, uint32_t c, bool *no_matter)
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
open_flags(struct syntax *s)
{
    const char *start = s->at;
    struct flags flags = s->flags;
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
open_any(struct syntax *s)
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

/* A number without leading zeros; -1 when it is past all measure. */
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
counts(const struct syntax *s, int *low, int *high, const char **after)
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
group_atom(struct syntax *s)
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
repeat(struct syntax *s, const char *after, const char *text)
{
    const char *start = s->at;

    if (after < s->end && *after == '?')
        after++;
    s->at = after;
    if (s->repeat)
        return fail(s, "invalid nested repetition operator", s->repeat, after);
    if (s->atom == NO_ATOM)
        return fail(s, "missing argument to repetition operator", start, after);
    if (s->atom == TO_GROUP)
        group_atom(s);
    put(s, text);
    s->atom = TO_GROUP;
    s->repeat = start;
    return true;
}

static bool
repeat_counted(struct syntax *s, int low, int high, const char *after)
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
brace(struct syntax *s)
{
    const char *after;
    int low, high;

    if (counts(s, &low, &high, &after))
        return repeat_counted(s, low, high, after);
    put_literal(s, next_rune(s));
    return true;
}

static bool
branch(struct syntax *s)
{
    put(s, "|");
    s->atom = NO_ATOM;
    s->at++;
    return true;
}

static bool
dot(struct syntax *s)
{
    begin_atom(s, ONE_ATOM);
    put(s, s->flags.dots ? "\\p{Any}" : "[^\\n]");
    s->at++;
    return true;
}

static bool
item(struct syntax *s)
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
        return put_assertion(s, s->flags.lines ? "(?<![^\\n])" : "\\A", 1);
    case '$':
        return put_assertion(s, s->flags.lines ? "(?![^\\n])" : "\\z", 1);
    case '.':
        return dot(s);
    case '[':
        return class(s);
    case '*':
    case '+':
    case '?':
        return repeat(s, s->at + 1, text);
    case '{':
        return brace(s);
    case '\\':
        return backslash(s);
    }
    put_literal(s, next_rune(s));
    return true;
}

static bool
check_utf8(struct syntax *s)
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
translate(struct syntax *s)
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
    struct syntax s = {.all = expression,
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
