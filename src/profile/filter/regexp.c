/* SPDX-License-Identifier: MIT */
/*
 * Regular expressions: RE2 does the matching, in linear time.
 *
 * The answer for each string of a profile is remembered by its number, so a
 * name that a million frames share is matched once.
 */
#include "profile/filter/regexp.h"

#include "base/buffer.h"
#include "base/status.h"
#include "base/text.h"
#include "own/memory.h"
#include "profile/filter/re2.h"

#include <string.h>

struct cpprof__regexp {
    struct cpprof__re2 *re2;
    bool failed;                 /* out of memory while matching */
    struct cpprof__buffer clean; /* a text made UTF-8 */
    /* By string number: 0 not matched yet, 1 does not match, 2 does. */
    CPPROF__ARRAY(uint8_t) known;
};

/* How many bytes at the front are UTF-8. */
static size_t
n_utf8(const char *text, size_t n)
{
    size_t at = 0, length;
    uint32_t rune;

    while (at < n && (length = cpprof__utf8_next(text + at, n - at, &rune)))
        at += length;
    return at;
}

/* Make an expression; what is wrong with it is appended to `head`. */
static enum cpprof_status
make(const char *expression, struct cpprof__buffer *head,
     struct cpprof__regexp **regexp, struct cpprof_error *error)
{
    struct cpprof__regexp *r = cpprof__calloc(1, sizeof *r);
    struct cpprof__re2_error wrong = {"", ""};
    enum cpprof_status status = CPPROF_OK;

    cpprof__buffer_append(head, "", 1);
    if (r && !head->failed)
        r->re2 = cpprof__re2_make(expression, strlen(expression), &wrong);
    if (r && r->re2) {
        *regexp = r;
        r = NULL;
    } else if (!*wrong.what) {
        status = cpprof__fail_nomem(error);
    } else {
        /* RE2 does not tell where a byte is that is not UTF-8. */
        status = cpprof__fail(
            error, CPPROF_BAD_DATA, 0, "%s: error parsing regexp: %s: `%s`",
            (char *)head->data, wrong.what,
            *wrong.where ? wrong.where
                         : expression + n_utf8(expression, strlen(expression)));
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
    return make(expression, &head, regexp, error);
}

enum cpprof_status
cpprof__regexp_make_whole(const char *expression,
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
    status = make((char *)whole.data, &head, regexp, error);
    cpprof__buffer_free(&whole);
    return status;
}

void
cpprof__regexp_free(struct cpprof__regexp *r)
{
    if (!r)
        return;
    cpprof__re2_free(r->re2);
    cpprof__buffer_free(&r->clean);
    CPPROF__ARRAY_FREE(&r->known);
    cpprof__free(r);
}

/* ------------------------------------------------------------- match ---- */

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

bool
cpprof__regexp_matches(struct cpprof__regexp *r, const char *text, size_t n)
{
    text = make_clean(r, text, &n);
    if (!text) {
        r->failed = true;
        return false;
    }
    return cpprof__re2_matches(r->re2, text, n, &r->failed);
}

/* Make room for the answer about a string. */
static bool
grow_known(struct cpprof__regexp *r, const struct cpprof__strings *strings)
{
    size_t n = strings->table.n;

    if (!CPPROF__ARRAY_ROOM(&r->known, n - r->known.n)) {
        r->failed = true;
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
    return r && r->failed ? cpprof__fail_nomem(error) : CPPROF_OK;
}
