/* SPDX-License-Identifier: MIT */
/*
 * Regular expressions with bounded work: PCRE2 does the matching,
 * regexp_syntax.c has made sure that it sees only what RE2 knows.
 *
 * PCRE2 backtracks, so an expression may take exponential time. Three limits
 * stop that: steps for each match, how many texts may take many steps, and
 * time for each expression. An expression that exceeds one fails for good:
 * `failure` is set, and every later match is false.
 *
 * The answer for each string of a profile is remembered by its number, so a
 * name that a million frames share is matched once.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "profile/filter/regexp.h"

#include "arch/clock.h"
#include "base/buffer.h"
#include "base/status.h"
#include "base/utf8.h"
#include "profile/filter/regexp_syntax.h"

#include <pcre2.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/*
 * Steps of backtracking that a match may take from each place where it can
 * begin. A sensible expression needs a few for each character of a name. A text
 * that needs more than FEW_STEPS is tried again with MANY_STEPS, which take
 * about ten milliseconds. At most MAX_HARD texts get a second try, so that an
 * expression cannot multiply its time by the number of names.
 */
#define FEW_STEPS  10000
#define MANY_STEPS 1000000
#define MAX_HARD   64
/*
 * PCRE2 counts steps anew for each start position, and does not count some
 * loops, so a long text can take time in proportion to the square of its
 * length. Texts up to this long, in bytes, are matched with one call. In longer
 * ones each start position is a call of its own, and the clock is read in
 * between.
 */
#define SHORT_TEXT 1024
/* The time that one expression may take: MOST_NS, and NS_PER_BYTE for each byte
 * that it is matched with, a hundred times what a sensible one needs. So the
 * time is bounded in proportion to the names in a file. */
#define MOST_NS     1000000000
#define NS_PER_BYTE 5000
/* KiB of memory that PCRE2 may use for backtracking. */
#define HEAP_LIMIT 20000
/* How deeply groups may nest in the expression that PCRE2 gets; the translation
 * adds some. */
#define MAX_NESTING 1000

struct cpprof__regexp {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *context;
    char what[32];
    int failure;                 /* a PCRE2_ERROR_*, or 0 */
    unsigned n_hard;             /* texts that took many steps */
    int64_t used_ns;             /* by all matches so far */
    int64_t most_ns;             /* that they may use, */
    int64_t ns_per_byte;         /* more with each byte */
    struct cpprof__buffer clean; /* a text made UTF-8 */
    /* By string number: 0 not matched yet, 1 does not match, 2 does. */
    CPPROF__ARRAY(uint8_t) known;
};

/* ----------------------------------------------------------- compile ---- */

/* A PCRE2 expression; NULL and a PCRE2 error when it cannot be made. */
static pcre2_code *
compile(const char *expression, size_t n, int *failure)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    pcre2_code *code = NULL;
    PCRE2_SIZE offset;

    *failure = PCRE2_ERROR_NOMEMORY;
    if (!context)
        return NULL;
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, MAX_NESTING);
    pcre2_set_compile_extra_options(context,
                                    PCRE2_EXTRA_ALLOW_SURROGATE_ESCAPES);
    code = pcre2_compile((PCRE2_SPTR)expression, n,
                         PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_DOLLAR_ENDONLY |
                             PCRE2_NEVER_BACKSLASH_C,
                         failure, &offset, context);
    pcre2_compile_context_free(context);
    return code;
}

/* Compiling has an error of its own for it. */
static bool
is_nomem(int failure)
{
    return failure == PCRE2_ERROR_NOMEMORY ||
           failure == PCRE2_ERROR_HEAP_FAILED;
}

static enum cpprof_status
check_property(const char *name)
{
    char text[64];
    int failure;
    pcre2_code *code;

    snprintf(text, sizeof text, "\\p{%s}", name);
    code = compile(text, strlen(text), &failure);
    pcre2_code_free(code);
    if (code)
        return CPPROF_OK;
    return is_nomem(failure) ? CPPROF_NOMEM : CPPROF_BAD_DATA;
}

/* Compile the expression for r. A syntax error is filled in, with its position.
 */
static enum cpprof_status
set_expression(struct cpprof__regexp *r, const char *expression,
               struct cpprof__syntax_error *syntax)
{
    struct cpprof__buffer translated = {0};
    size_t n = strlen(expression);
    enum cpprof_status status = cpprof__regexp_translate(
        expression, n, check_property, &translated, syntax);
    int failure;

    /* An empty buffer has no data. */
    cpprof__buffer_append(&translated, "", 1);
    if (status == CPPROF_OK && translated.failed)
        status = CPPROF_NOMEM;
    if (status == CPPROF_OK) {
        translated.n--;
        r->code = compile((char *)translated.data, translated.n, &failure);
        if (!r->code && is_nomem(failure))
            status = CPPROF_NOMEM;
        else if (!r->code)
            status = CPPROF_BAD_DATA;
        *syntax = (struct cpprof__syntax_error){"expression too large",
                                                expression, n};
    }
    cpprof__buffer_free(&translated);
    return status;
}

static enum cpprof_status
make_match(struct cpprof__regexp *r)
{
    r->match = pcre2_match_data_create(1, NULL);
    r->context = pcre2_match_context_create(NULL);
    if (!r->match || !r->context)
        return CPPROF_NOMEM;
    pcre2_set_heap_limit(r->context, HEAP_LIMIT);
    return CPPROF_OK;
}

/* Make an expression as given, or "^(...)$" of it. The text of an error is
 * appended to `head`. */
static enum cpprof_status
make(const char *expression, const char *what, struct cpprof__buffer *head,
     struct cpprof__regexp **regexp, struct cpprof_error *error)
{
    struct cpprof__regexp *r = calloc(1, sizeof *r);
    struct cpprof__syntax_error syntax = {"", "", 0};
    enum cpprof_status status = r ? CPPROF_OK : CPPROF_NOMEM;

    cpprof__buffer_append(head, "", 1);
    if (status == CPPROF_OK && head->failed)
        status = CPPROF_NOMEM;
    if (status == CPPROF_OK)
        status = set_expression(r, expression, &syntax);
    if (status == CPPROF_OK)
        status = make_match(r);
    if (status == CPPROF_OK) {
        snprintf(r->what, sizeof r->what, "%s", what);
        r->most_ns = MOST_NS;
        r->ns_per_byte = NS_PER_BYTE;
        *regexp = r;
        r = NULL;
    } else if (status == CPPROF_NOMEM) {
        cpprof__fail_nomem(error);
    } else {
        cpprof__fail(error, status, 0, "%s: error parsing regexp: %s: `%.*s`",
                     (char *)head->data, syntax.what,
                     (int)(syntax.n < 1000 ? syntax.n : 1000), syntax.at);
    }
    cpprof__regexp_free(r);
    cpprof__buffer_free(head);
    return status;
}

enum cpprof_status
cpprof__regexp_make(const char *expression, const char *what,
                    struct cpprof__regexp **regexp, struct cpprof_error *error)
{
    struct cpprof__buffer head = {0};

    cpprof__buffer_printf(&head, "parsing %s regexp", what);
    return make(expression, what, &head, regexp, error);
}

enum cpprof_status
cpprof__regexp_make_whole(const char *expression, const char *what,
                          struct cpprof__regexp **regexp,
                          struct cpprof_error *error)
{
    struct cpprof__buffer head = {0}, whole = {0};
    enum cpprof_status status;

    cpprof__buffer_printf(&head, "failed to compile regexp %s", expression);
    cpprof__buffer_printf(&whole, "^(%s)$", expression);
    if (whole.failed) {
        cpprof__buffer_free(&head);
        return cpprof__fail_nomem(error);
    }
    status = make((char *)whole.data, what, &head, regexp, error);
    cpprof__buffer_free(&whole);
    return status;
}

void
cpprof__regexp_limit(struct cpprof__regexp *r, int64_t most_ns,
                     int64_t ns_per_byte)
{
    r->most_ns = most_ns;
    r->ns_per_byte = ns_per_byte;
}

void
cpprof__regexp_free(struct cpprof__regexp *r)
{
    if (!r)
        return;
    pcre2_code_free(r->code);
    pcre2_match_data_free(r->match);
    pcre2_match_context_free(r->context);
    cpprof__buffer_free(&r->clean);
    CPPROF__ARRAY_FREE(&r->known);
    free(r);
}

/* ------------------------------------------------------------- match ---- */

static size_t
n_utf8(const char *text, size_t n)
{
    size_t at = 0, length;
    uint32_t rune;

    while (at < n && (length = cpprof__utf8_next(text + at, n - at, &rune)))
        at += length;
    return at;
}

/* The text with each byte that is not UTF-8 as U+FFFD, which is how Go reads
 * it; NULL when out of memory. */
static const char *
make_clean(struct cpprof__regexp *r, const char *text, size_t *n)
{
    size_t good = n_utf8(text, *n), at = 0;

    if (good == *n)
        return text;
    r->clean.n = 0;
    while (at < *n) {
        cpprof__buffer_append(&r->clean, text + at, good);
        at += good;
        if (at < *n) {
            cpprof__buffer_append(&r->clean, "\xef\xbf\xbd", 3);
            at++;
        }
        good = n_utf8(text + at, *n - at);
    }
    *n = r->clean.n;
    return r->clean.failed ? NULL : (char *)r->clean.data;
}

static int64_t
now_ns(void)
{
    return (int64_t)cpprof__now_ns(CLOCK_MONOTONIC);
}

/* A match that begins at `from`, or with PCRE2_ANCHORED nowhere else. */
static int
match_from(struct cpprof__regexp *r, const char *text, size_t n, size_t from,
           uint32_t how)
{
    return pcre2_match(r->code, (PCRE2_SPTR)text, n, from,
                       PCRE2_NO_UTF_CHECK | how, r->match, r->context);
}

/* Try each start position until the time is used up. */
static int
match_long(struct cpprof__regexp *r, const char *text, size_t n)
{
    int64_t end = now_ns() + r->most_ns - r->used_ns;
    int result = PCRE2_ERROR_NOMATCH;
    size_t i;

    for (i = 0; i <= n && result == PCRE2_ERROR_NOMATCH; i++) {
        if (i < n && ((unsigned char)text[i] & 0xc0) == 0x80)
            continue; /* inside of a character */
        result = match_from(r, text, n, i, PCRE2_ANCHORED);
        if (result == PCRE2_ERROR_NOMATCH && i % 16 == 0 && now_ns() > end)
            result = PCRE2_ERROR_MATCHLIMIT;
    }
    return result;
}

static int
match(struct cpprof__regexp *r, const char *text, size_t n, uint32_t steps)
{
    int64_t begin = now_ns(), more = (int64_t)n * r->ns_per_byte;
    int result;

    r->most_ns += more;
    pcre2_set_match_limit(r->context, steps);
    result =
        n <= SHORT_TEXT ? match_from(r, text, n, 0, 0) : match_long(r, text, n);
    r->used_ns += now_ns() - begin;
    return r->used_ns > r->most_ns && result < 0 ? PCRE2_ERROR_MATCHLIMIT
                                                 : result;
}

bool
cpprof__regexp_matches(struct cpprof__regexp *r, const char *text, size_t n)
{
    int result;

    if (r->failure)
        return false;
    text = make_clean(r, text, &n);
    if (!text) {
        r->failure = PCRE2_ERROR_NOMEMORY;
        return false;
    }
    result = match(r, text, n, FEW_STEPS);
    if (result == PCRE2_ERROR_MATCHLIMIT && r->n_hard++ < MAX_HARD &&
        r->used_ns < r->most_ns)
        result = match(r, text, n, MANY_STEPS);
    if (result >= 0)
        return true;
    if (result != PCRE2_ERROR_NOMATCH)
        r->failure = result;
    return false;
}

/* Make room for the answer about a string. */
static bool
grow_known(struct cpprof__regexp *r, const struct cpprof__strings *strings)
{
    size_t n = strings->table.n;

    if (!CPPROF__ARRAY_ROOM(&r->known, n - r->known.n)) {
        r->failure = PCRE2_ERROR_NOMEMORY;
        return false;
    }
    memset(r->known.at + r->known.n, 0, n - r->known.n);
    r->known.n = n;
    return true;
}

bool
cpprof__regexp_matches_string(struct cpprof__regexp *r,
                              const struct cpprof__strings *strings,
                              uint32_t string)
{
    if (string >= r->known.n && !grow_known(r, strings))
        return false;
    if (!r->known.at[string])
        r->known.at[string] =
            1 + cpprof__regexp_matches(r, cpprof__strings_text(strings, string),
                                       cpprof__strings_n(strings, string));
    return r->known.at[string] == 2;
}

enum cpprof_status
cpprof__regexp_status(const struct cpprof__regexp *r,
                      struct cpprof_error *error)
{
    if (!r || !r->failure)
        return CPPROF_OK;
    if (r->failure == PCRE2_ERROR_NOMEMORY)
        return cpprof__fail_nomem(error);
    return cpprof__fail(error, CPPROF_LIMIT, 0,
                        "the %s regexp takes too long to match", r->what);
}
