/* SPDX-License-Identifier: MIT */
/*
 * Lines and words of a legacy text profile: pieces of the input that are
 * pointed to, never copied.
 *
 * Invariants: a piece lies inside the input; it has no terminating zero.
 */
#include "profile/legacy/lines.h"

#include "profile/legacy/numbers.h"

bool
cpprof__next_line(struct cpprof__legacy_lines *lines, struct cpprof__text *line)
{
    size_t left = (size_t)(lines->end - lines->next);
    const char *end;

    if (left == 0)
        return false;
    line->at = lines->next;
    end = memchr(lines->next, '\n', left);
    line->n = end ? (size_t)(end - lines->next) : left;
    lines->next = end ? end + 1 : lines->end;
    if (line->n && line->at[line->n - 1] == '\r')
        line->n--;
    return true;
}

static bool
is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct cpprof__text
cpprof__trim(struct cpprof__text text)
{
    while (text.n && is_space(text.at[0])) {
        text.at++;
        text.n--;
    }
    while (text.n && is_space(text.at[text.n - 1]))
        text.n--;
    return text;
}

bool
cpprof__is_space_or_comment(struct cpprof__text line)
{
    line = cpprof__trim(line);
    return line.n == 0 || line.at[0] == '#';
}

bool
cpprof__contains(struct cpprof__text line, const char *text)
{
    return memmem(line.at, line.n, text, strlen(text)) != NULL;
}

bool
cpprof__begins(struct cpprof__text line, const char *text)
{
    size_t n = strlen(text);

    return line.n >= n && memcmp(line.at, text, n) == 0;
}

bool
cpprof__is_maps_sentinel(struct cpprof__text line)
{
    return cpprof__contains(line, "--- Memory map: ---") ||
           cpprof__contains(line, "MAPPED_LIBRARIES:");
}

static bool
is_of_stack(char c)
{
    return c == ' ' || c == 'x' || cpprof__is_hex_digit(c);
}

struct cpprof__text
cpprof__stack_behind(struct cpprof__text line, struct cpprof__text match)
{
    cpprof__skip(&line, (size_t)(match.at + match.n - line.at));
    return cpprof__take_while(&line, is_of_stack);
}

bool
cpprof__hex_addresses(struct cpprof__text text,
                      struct cpprof__legacy_addresses *out,
                      struct cpprof__text *failed_at)
{
    while (text.n >= 3) {
        struct cpprof__text word = text, digits;
        uint64_t value, *added;

        if (!cpprof__take(&text, "0x")) {
            cpprof__skip(&text, 1);
            continue;
        }
        digits = cpprof__take_while(&text, cpprof__is_hex_digit);
        if (!digits.n)
            continue;
        if (cpprof__parse_uint(digits, 16, &value)) {
            word.n = digits.n + 2;
            *failed_at = word;
            return false;
        }
        added = CPPROF__ARRAY_ADD(&out->list);
        if (!added) {
            out->nomem = true;
            return true;
        }
        *added = value;
    }
    return true;
}
