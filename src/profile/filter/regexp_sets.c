/* SPDX-License-Identifier: MIT */
/*
 * The named sets of characters, and how a set is written as a PCRE2 class.
 *
 * A set is a predicate on ASCII characters. Writing one lists the ranges for
 * which the predicate holds, folds case where (?i) asks for it, and negates.
 * Two characters beyond ASCII fold to one of it (the long s and the Kelvin
 * sign); they are added by hand.
 *
 * Source: Go's regexp/syntax (perl_groups.go).
 */
#include "profile/filter/regexp_sets.h"

#include <string.h>

/* --------------------------------------------------------------- sets ---- */

static bool
is_ascii(uint32_t c)
{
    return c < 0x80;
}

static bool
is_blank(uint32_t c)
{
    return c == ' ' || c == '\t';
}

static bool
is_cntrl(uint32_t c)
{
    return c < 0x20 || c == 0x7f;
}

static bool
is_graph(uint32_t c)
{
    return c > ' ' && c < 0x7f;
}

static bool
is_print(uint32_t c)
{
    return c >= ' ' && c < 0x7f;
}

static bool
is_punct(uint32_t c)
{
    return is_graph(c) && !is_alnum(c);
}

static bool
is_space(uint32_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* As \s: without the vertical tab. */
static bool
is_perl_space(uint32_t c)
{
    return is_space(c) && c != '\v';
}

static const struct {
    const char *name;
    cpprof__set_fn has;
} sets[] = {
    {"alnum", is_alnum}, {"alpha", is_alpha},   {"ascii", is_ascii},
    {"blank", is_blank}, {"cntrl", is_cntrl},   {"digit", is_digit},
    {"graph", is_graph}, {"lower", is_lower},   {"print", is_print},
    {"punct", is_punct}, {"space", is_space},   {"upper", is_upper},
    {"word", is_word},   {"xdigit", is_xdigit},
};

cpprof__set_fn
cpprof__posix_set(const char *name, size_t n)
{
    size_t i;

    for (i = 0; i < sizeof sets / sizeof sets[0]; i++)
        if (strlen(sets[i].name) == n && memcmp(sets[i].name, name, n) == 0)
            return sets[i].has;
    return NULL;
}

cpprof__set_fn
cpprof__perl_set(char name)
{
    switch (name) {
    case 'd':
        return is_digit;
    case 's':
        return is_perl_space;
    case 'w':
        return is_word;
    }
    return NULL;
}

/* ------------------------------------------------------------- output ---- */

void
cpprof__put_rune(struct cpprof__buffer *out, uint32_t rune)
{
    if (is_alnum(rune))
        cpprof__buffer_printf(out, "%c", (int)rune);
    else
        cpprof__buffer_printf(out, "\\x{%x}", (unsigned)rune);
}

void
cpprof__put_range(struct cpprof__buffer *out, uint32_t low, uint32_t high)
{
    cpprof__put_rune(out, low);
    if (high == low)
        return;
    cpprof__buffer_append(out, "-", 1);
    cpprof__put_rune(out, high);
}

/* The two characters outside ASCII that fold to one of it. */
#define LONG_S 0x17fu
#define KELVIN 0x212au

static bool
set_has(cpprof__set_fn has, bool fold, uint32_t c)
{
    if (fold && c == LONG_S)
        c = 's';
    else if (fold && c == KELVIN)
        c = 'k';
    if (c >= 0x80)
        return false;
    return has(c) || (fold && is_alpha(c) && has(c ^ 0x20));
}

/* What is not in the set beyond ASCII. */
static void
put_beyond(struct cpprof__buffer *out, cpprof__set_fn has, bool fold)
{
    cpprof__put_range(out, 0x80, LONG_S - 1);
    if (!set_has(has, fold, LONG_S))
        cpprof__put_rune(out, LONG_S);
    cpprof__put_range(out, LONG_S + 1, KELVIN - 1);
    if (!set_has(has, fold, KELVIN))
        cpprof__put_rune(out, KELVIN);
    cpprof__put_range(out, KELVIN + 1, 0x10ffff);
}

void
cpprof__put_set(struct cpprof__buffer *out, cpprof__set_fn has, bool fold,
                bool negated)
{
    uint32_t c, start;

    for (c = 0; c < 0x80; c++) {
        if (set_has(has, fold, c) == negated)
            continue;
        for (start = c; c + 1 < 0x80; c++)
            if (set_has(has, fold, c + 1) == negated)
                break;
        cpprof__put_range(out, start, c);
    }
    if (negated)
        put_beyond(out, has, fold);
}
