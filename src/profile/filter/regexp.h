/* SPDX-License-Identifier: MIT */
/*
 * Regular expressions as users of pprof write them: RE2's (regexp_syntax.h),
 * matched by PCRE2 with a limit on the work, so that no expression can hang the
 * program. A text may be any bytes; one that is not UTF-8 counts as U+FFFD.
 * docs/profile.md says what still differs from RE2.
 */
#ifndef PROFILE_REGEXP_H
#define PROFILE_REGEXP_H

#include "profile/model/strings.h"
#include <cpprof/status.h>

struct cpprof__regexp;

/*
 * Compile a terminated expression; `what` names it in errors. make_whole():
 * that must match the whole text.
 *
 * Errors: CPPROF_BAD_DATA "parsing WHAT regexp: ...", or of make_whole()
 *         "failed to compile regexp EXPRESSION: ..."; CPPROF_NOMEM.
 */
enum cpprof_status
cpprof__regexp_make(const char *expression, const char *what,
                    struct cpprof__regexp **regexp, struct cpprof_error *error);
enum cpprof_status
cpprof__regexp_make_whole(const char *expression, const char *what,
                          struct cpprof__regexp **regexp,
                          struct cpprof_error *error);
/* Let all matches together take this long: so much at once, and so much for
 * each byte that is matched. */
void
cpprof__regexp_limit(struct cpprof__regexp *regexp, int64_t most_ns,
                     int64_t ns_per_byte);
void
cpprof__regexp_free(struct cpprof__regexp *regexp);

/* Does any part of the text match? False also when matching failed, which is
 * remembered. */
bool
cpprof__regexp_matches(struct cpprof__regexp *regexp, const char *text,
                       size_t n);

/* The same for a string of a table; each is matched once and remembered. */
bool
cpprof__regexp_matches_string(struct cpprof__regexp *regexp,
                              const struct cpprof__strings *strings,
                              uint32_t string);

/* What went wrong while matching; CPPROF_OK when nothing did, or for NULL. */
enum cpprof_status
cpprof__regexp_status(const struct cpprof__regexp *regexp,
                      struct cpprof_error *error);

#endif
