/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the translation: the position in the expression, and
 * what is known about the output so far. regexp_syntax.c has groups, branches
 * and repetitions, regexp_classes.c what stands for one character. See
 * regexp_syntax.h for what it does.
 *
 * Invariants: `at` never passes `end`; what was written from atom_start on is
 * the atom that a repetition would repeat. Once a function has returned false,
 * *error or no_memory says why, and nothing more is read.
 */
#ifndef PROFILE_REGEXP_INTERNAL_H
#define PROFILE_REGEXP_INTERNAL_H

#include "base/array.h"
#include "base/utf8.h"
#include "profile/filter/regexp_syntax.h"

#include <string.h>

/* What a repetition would repeat. */
enum cpprof__regexp_atom {
    /* Nothing: the start of an expression, a group, a branch. */
    CPPROF__NO_ATOM,
    /* A character, a class, a group. */
    CPPROF__ONE_ATOM,
    /* An assertion or a repetition: PCRE2 wants them in a group. */
    CPPROF__TO_GROUP,
};

struct cpprof__regexp_flags {
    bool fold;  /* (?i) */
    bool lines; /* (?m) */
    bool dots;  /* (?s) */
};

/* A group that is open. */
struct cpprof__regexp_group {
    struct cpprof__regexp_flags flags; /* to go back to */
    bool out_fold;
    unsigned weight;
    size_t start; /* in the output */
};

struct cpprof__regexp_syntax {
    const char *all, *at, *end;
    cpprof__property_fn check_property;
    struct cpprof__buffer *out;
    struct cpprof__regexp_flags flags;
    bool out_fold; /* does what is written so far fold? */
    CPPROF__ARRAY(struct cpprof__regexp_group) groups;
    enum cpprof__regexp_atom atom;
    size_t atom_start;    /* in the output */
    unsigned atom_weight; /* repetitions in the atom */
    unsigned weight;      /* the most in any atom of this group */
    const char *repeat;   /* the repetition right before, or NULL */
    struct cpprof__syntax_error *error;
    bool no_memory;
};

/* Which characters are digits, letters and so on, whatever the locale. */

static inline bool
is_digit(uint32_t c)
{
    return c >= '0' && c <= '9';
}

static inline bool
is_octal(uint32_t c)
{
    return c >= '0' && c <= '7';
}

static inline bool
is_lower(uint32_t c)
{
    return c >= 'a' && c <= 'z';
}

static inline bool
is_upper(uint32_t c)
{
    return c >= 'A' && c <= 'Z';
}

static inline bool
is_alpha(uint32_t c)
{
    return is_lower(c) || is_upper(c);
}

static inline bool
is_alnum(uint32_t c)
{
    return is_alpha(c) || is_digit(c);
}

static inline bool
is_word(uint32_t c)
{
    return is_alnum(c) || c == '_';
}

static inline bool
is_xdigit(uint32_t c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static inline bool
fail(struct cpprof__regexp_syntax *s, const char *what, const char *from,
     const char *to)
{
    s->error->what = what;
    s->error->at = from;
    s->error->n = (size_t)(to - from);
    return false;
}

static inline size_t
left(const struct cpprof__regexp_syntax *s)
{
    return (size_t)(s->end - s->at);
}

/* The byte `ahead` of here; 0, which is a literal, past the end. */
static inline char
peek(const struct cpprof__regexp_syntax *s, size_t ahead)
{
    return ahead < left(s) ? s->at[ahead] : 0;
}

/* The next character, or 0 at the end. The expression is known to be UTF-8. */
static inline uint32_t
next_rune(struct cpprof__regexp_syntax *s)
{
    uint32_t rune = 0;

    if (left(s))
        s->at += cpprof__utf8_next(s->at, left(s), &rune);
    return rune;
}

static inline void
put(struct cpprof__regexp_syntax *s, const char *text)
{
    cpprof__buffer_append(s->out, text, strlen(text));
}

/* Begin an atom. Case folding is switched only now, so that a (?i) between an
 * atom and its repetition does not separate them. */
void
cpprof__regexp_begin_atom(struct cpprof__regexp_syntax *s,
                          enum cpprof__regexp_atom atom);

/* Write an assertion (text), which stands for the next n_read bytes of the
 * input. */
bool
cpprof__regexp_put_assertion(struct cpprof__regexp_syntax *s, const char *text,
                             size_t n_read);
void
cpprof__regexp_put_literal(struct cpprof__regexp_syntax *s, uint32_t rune);

/* Write a character as PCRE2 wants it, also between brackets. */
void
cpprof__put_rune(struct cpprof__buffer *out, uint32_t rune);

/* Translate a set in brackets, or whatever a backslash begins. */
bool
cpprof__regexp_class(struct cpprof__regexp_syntax *s);
bool
cpprof__regexp_backslash(struct cpprof__regexp_syntax *s);

#endif
