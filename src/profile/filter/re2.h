/* SPDX-License-Identifier: MIT */
/*
 * RE2, which is written in C++, for C. No exception leaves it. Expressions come
 * from users (regexp.h), or are ours: those by which the reference reads lines.
 */
#ifndef PROFILE_RE2_H
#define PROFILE_RE2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* ------------------------------------------------------ lines of text ---- */

/* A slice of a text, not terminated. */
struct cpprof__text {
    const char *at;
    size_t n;
};

/* An expression of ours over bytes. It is made at its first use, by any thread,
 * and kept. */
struct cpprof__pattern {
    const char *expression;
    struct cpprof__re2 *made; /* NULL: not yet */
};

/*
 * Find the first match in a text: found[0] is all of it, the others its groups,
 * empty where they took no part; at most 8. *failed is set, and never cleared,
 * when out of memory.
 */
bool
cpprof__pattern_find(struct cpprof__pattern *pattern, struct cpprof__text text,
                     struct cpprof__text *found, size_t n_found, bool *failed);

/* ---------------------------------------------------------- plug-in ---- */

#define CPPROF__RE2_ABI    1
#define CPPROF__RE2_SYMBOL "cpprof__re2_ops"

/* The functions above in libcpprof-re2.so, which the command loads when it has
 * an expression (cli/re2.c). */
struct cpprof__re2_ops {
    uint32_t abi; /* CPPROF__RE2_ABI */
    struct cpprof__re2 *(*make)(const char *expression, size_t n,
                                struct cpprof__re2_error *error);
    void (*free)(struct cpprof__re2 *re2);
    bool (*matches)(const struct cpprof__re2 *re2, const char *text, size_t n,
                    bool *failed);
    bool (*find)(struct cpprof__pattern *pattern, struct cpprof__text text,
                 struct cpprof__text *found, size_t n_found, bool *failed);
};

#ifdef __cplusplus
}
#endif

#endif
