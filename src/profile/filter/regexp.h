/* SPDX-License-Identifier: MIT */
/*
 * Regular expressions as users of pprof write them, matched by RE2 in linear
 * time. A text may be any bytes; one that is not UTF-8 counts as U+FFFD.
 * docs/profile.md says what differs from Go's.
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
cpprof__regexp_make_whole(const char *expression,
                          struct cpprof__regexp **regexp,
                          struct cpprof_error *error);
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

/* CPPROF_NOMEM when memory ran out while matching; else, and for NULL, OK. */
enum cpprof_status
cpprof__regexp_status(const struct cpprof__regexp *regexp,
                      struct cpprof_error *error);

#endif
