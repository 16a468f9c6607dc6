/* SPDX-License-Identifier: MIT */
#include "http/number.h"

#include <stdbool.h>

static unsigned
digit_of(char c)
{
    char lower = (char)(c | ('a' - 'A'));

    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (lower >= 'a' && lower <= 'z')
        return (unsigned)(lower - 'a') + 10;
    return UINT32_MAX;
}

/* The base, and past its prefix. A 0 before octal digits counts as one. */
static unsigned
base_of(const char **text, size_t *n)
{
    unsigned base = 8;
    char letter;

    if (!*n || **text != '0')
        return 10;
    letter = *n > 2 ? (char)((*text)[1] | ('a' - 'A')) : 0;
    if (letter == 'x')
        base = 16;
    else if (letter == 'b')
        base = 2;
    else if (letter != 'o') {
        *text += 1;
        *n -= 1;
        return 8;
    }
    *text += 2;
    *n -= 2;
    return base;
}

static uint64_t
add_digit(uint64_t sum, unsigned base, unsigned digit)
{
    if (sum > (UINT64_MAX - digit) / base)
        return UINT64_MAX;
    return sum * base + digit;
}

uint64_t
cpprof__number(const char *text, size_t n)
{
    size_t i, n_text = n;
    unsigned base = base_of(&text, &n);
    bool after_digit = n < n_text; /* the prefix is one */
    uint64_t sum = 0;

    if (!n_text)
        return 0;
    for (i = 0; i < n; i++) {
        unsigned digit = digit_of(text[i]);

        if (text[i] == '_' ? !after_digit : digit >= base)
            return 0;
        after_digit = text[i] != '_';
        if (after_digit)
            sum = add_digit(sum, base, digit);
    }
    return after_digit ? sum : 0;
}
