/* SPDX-License-Identifier: MIT */
/*
 * RE2, which is written in C++, for C. No exception leaves it.
 */
#ifndef PROFILE_RE2_H
#define PROFILE_RE2_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cpprof__re2;

/* What an expression lacks: what is wrong, and the part of it where; or "". */
struct cpprof__re2_error {
    char what[64], where[1024];
};

/*
 * NULL when the expression is not one, or with an empty error when out of
 * memory.
 */
struct cpprof__re2 *
cpprof__re2_make(const char *expression, size_t n,
                 struct cpprof__re2_error *error);
void
cpprof__re2_free(struct cpprof__re2 *re2);

/* Does any part of the UTF-8 text match? In linear time. *failed is set, and
 * never cleared, when out of memory. */
bool
cpprof__re2_matches(const struct cpprof__re2 *re2, const char *text, size_t n,
                    bool *failed);

#ifdef __cplusplus
}
#endif

#endif
