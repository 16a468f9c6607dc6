/* SPDX-License-Identifier: MIT */
/*
 * The strings of a profile: texts, and a table of them.
 *
 * Invariants: no two strings are equal, so they are compared by number; number
 * 0 is the empty string once strings_begin() returned; every text is followed
 * by a zero byte, and never moves. So a caller may give texts of the profile
 * itself to a call that adds others first.
 */
#ifndef PROFILE_STRINGS_H
#define PROFILE_STRINGS_H

#include "base/arena.h"
#include "base/array.h"
#include "base/hash.h"

#include <stdint.h>

/* Not a string: out of memory, or too many. */
#define CPPROF__NO_STRING UINT32_MAX

struct cpprof__strings {
    struct cpprof__arena texts;
    CPPROF__ARRAY(struct cpprof__string {
        const char *text;
        size_t n;
    })
    table;
    struct cpprof__index index; /* by text */
};

/* Zero bytes is a valid empty table without the empty string. */
bool
cpprof__strings_begin(struct cpprof__strings *s);
void
cpprof__strings_free(struct cpprof__strings *s);

/* The number of a text, added if it is new; or CPPROF__NO_STRING. */
uint32_t
cpprof__strings_add(struct cpprof__strings *s, const char *text, size_t n);

/* Of a terminated text. */
uint32_t
cpprof__strings_add_text(struct cpprof__strings *s, const char *text);

/* The number of a text that is there already, or CPPROF__NO_STRING. */
uint32_t
cpprof__strings_find(const struct cpprof__strings *s, const char *text,
                     size_t n);

static inline const char *
cpprof__strings_text(const struct cpprof__strings *s, uint32_t string)
{
    return s->table.at[string].text;
}

static inline size_t
cpprof__strings_n(const struct cpprof__strings *s, uint32_t string)
{
    return s->table.at[string].n;
}

/* Bytewise order, as Go compares strings: below, at or above 0. */
int
cpprof__strings_compare(const struct cpprof__strings *s, uint32_t a,
                        uint32_t b);

#endif
