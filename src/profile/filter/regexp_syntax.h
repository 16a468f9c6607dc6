/* SPDX-License-Identifier: MIT */
/*
 * The syntax of regular expressions: RE2's, as Go's regexp reads it, written
 * anew as an expression that PCRE2 matches just so. Nothing is passed through:
 * what RE2 does not know is refused here, in Go's words, and PCRE2's own
 * extensions (recursion, callouts, verbs, look-around) cannot be reached.
 *
 * Only whether a text matches is asked for, so groups are not captured and
 * lazy repetition is the same as any.
 *
 * Source: regexp/syntax of Go (its doc.go has the syntax).
 */
#ifndef PROFILE_REGEXP_SYNTAX_H
#define PROFILE_REGEXP_SYNTAX_H

#include "base/buffer.h"
#include <cpprof/status.h>

/* What is wrong, and the part of the expression where it is. */
struct cpprof__syntax_error {
    const char *what; /* "missing closing )" */
    const char *at;
    size_t n;
};

typedef enum cpprof_status (*cpprof__property_fn)(const char *name);

/*
 * Write n bytes of expression anew; `out` is not terminated. is_property()
 * tells whether PCRE2 knows one as \p{NAME}.
 *
 * Errors: CPPROF_BAD_DATA, *error tells; CPPROF_NOMEM.
 */
enum cpprof_status
cpprof__regexp_translate(const char *expression, size_t n,
                         cpprof__property_fn check_property,
                         struct cpprof__buffer *out,
                         struct cpprof__syntax_error *error);

#endif
