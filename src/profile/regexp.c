/* SPDX-License-Identifier: MIT */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "profile/regexp.h"

#include "base/status.h"

#include <pcre2.h>
#include <stdio.h>
#include <string.h>

/* Steps of backtracking for one text. A sensible expression needs a few for
 * each character of a name; this many take some ten milliseconds. */
#define MATCH_LIMIT 1000000
/* KiB that the backtracking of one text may keep. */
#define HEAP_LIMIT 20000

struct cpprof__regexp {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *context;
    char what[32];
    int failure; /* a PCRE2_ERROR_*, or 0 */
    /* By string number: 0 not matched yet, 1 does not match, 2 does. */
    CPPROF__ARRAY(uint8_t) known;
};

/* As RE2: $ is the end of the text, and only \n ends a line. */
static pcre2_code *
compile(const char *expression, int *failure)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    pcre2_code *code = NULL;
    PCRE2_SIZE offset;

    *failure = PCRE2_ERROR_NOMEMORY;
    if (!context)
        return NULL;
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    code = pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED,
                         PCRE2_UTF | PCRE2_MATCH_INVALID_UTF |
                             PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C,
                         failure, &offset, context);
    pcre2_compile_context_free(context);
    return code;
}

static enum cpprof_status
bad_expression(const char *expression, const char *what, int failure,
               struct cpprof_error *error)
{
    char text[120];

    if (failure == PCRE2_ERROR_NOMEMORY)
        return cpprof__fail_nomem(error);
    pcre2_get_error_message(failure, (PCRE2_UCHAR *)text, sizeof text);
    return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                        "parsing %s regexp: %s: `%s`", what, text, expression);
}

enum cpprof_status
cpprof__regexp_make(const char *expression, const char *what,
                    struct cpprof__regexp **regexp, struct cpprof_error *error)
{
    struct cpprof__regexp *r = calloc(1, sizeof *r);
    int failure = 0;

    if (!r)
        return cpprof__fail_nomem(error);
    snprintf(r->what, sizeof r->what, "%s", what);
    r->code = compile(expression, &failure);
    if (!r->code) {
        cpprof__regexp_free(r);
        return bad_expression(expression, what, failure, error);
    }
    r->match = pcre2_match_data_create(1, NULL);
    r->context = pcre2_match_context_create(NULL);
    if (!r->match || !r->context) {
        cpprof__regexp_free(r);
        return cpprof__fail_nomem(error);
    }
    pcre2_set_match_limit(r->context, MATCH_LIMIT);
    pcre2_set_heap_limit(r->context, HEAP_LIMIT);
    *regexp = r;
    return CPPROF_OK;
}

void
cpprof__regexp_free(struct cpprof__regexp *r)
{
    if (!r)
        return;
    pcre2_code_free(r->code);
    pcre2_match_data_free(r->match);
    pcre2_match_context_free(r->context);
    CPPROF__ARRAY_FREE(&r->known);
    free(r);
}

bool
cpprof__regexp_matches(struct cpprof__regexp *r, const char *text, size_t n)
{
    int result;

    if (r->failure)
        return false;
    result =
        pcre2_match(r->code, (PCRE2_SPTR)text, n, 0, 0, r->match, r->context);
    if (result >= 0)
        return true;
    if (result != PCRE2_ERROR_NOMATCH)
        r->failure = result;
    return false;
}

/* Room for an answer about the string. */
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
