/* SPDX-License-Identifier: MIT */
/*
 * Numbers as Go's strconv reads them: the prefixes 0x, 0b, 0o and 0,
 * underscores, signs, and the same refusals in the same words. A parsed value
 * is exact or the text is refused; nothing wraps while it is read.
 */
#include "profile/legacy/numbers.h"

#include "base/status.h"

static const char syntax[] = "invalid syntax";
static const char range[] = "value out of range";

/* The base that the prefix of a text asks for; skips the prefix. */
static unsigned
take_prefix(struct cpprof__text *text)
{
    unsigned base = 0;

    if (text->n >= 3) {
        char c = (char)(text->at[1] | 0x20);

        base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
    }
    cpprof__skip(text, base ? 2 : 1);
    return base ? base : 8;
}

/* Add one digit; NULL, or what is wrong. */
static const char *
add_digit(uint64_t *value, unsigned base, unsigned digit)
{
    if (digit >= base)
        return syntax;
    if (__builtin_mul_overflow(*value, (uint64_t)base, value) ||
        __builtin_add_overflow(*value, (uint64_t)digit, value))
        return range;
    return NULL;
}

const char *
cpprof__parse_uint(struct cpprof__text text, unsigned base, uint64_t *value)
{
    bool may_underscore = base == 0, is_behind_digit = false, is_bad = false;
    const char *wrong = NULL;

    *value = 0;
    if (text.n == 0)
        return syntax;
    if (base == 0) {
        is_behind_digit = text.at[0] == '0';
        base = is_behind_digit ? take_prefix(&text) : 10;
    } else {
        is_behind_digit = true;
    }
    for (; text.n && !wrong; cpprof__skip(&text, 1)) {
        if (may_underscore && text.at[0] == '_') {
            is_bad = is_bad || !is_behind_digit;
            is_behind_digit = false;
            continue;
        }
        wrong = add_digit(value, base, cpprof__digit(text.at[0]));
        is_behind_digit = true;
    }
    return wrong ? wrong : is_bad || !is_behind_digit ? syntax : NULL;
}

const char *
cpprof__parse_int(struct cpprof__text text, unsigned base, int64_t *value)
{
    bool is_negative = text.n && text.at[0] == '-';
    const char *wrong;
    uint64_t u;

    if (is_negative || (text.n && text.at[0] == '+'))
        cpprof__skip(&text, 1);
    wrong = cpprof__parse_uint(text, base, &u);
    if (wrong)
        return wrong;
    if (u > (uint64_t)INT64_MAX + is_negative)
        return range;
    *value = (int64_t)(is_negative ? -u : u);
    return NULL;
}

enum cpprof_status
cpprof__fail_number(const char *prefix, struct cpprof__text line,
                    const char *function, struct cpprof__text word,
                    const char *wrong, struct cpprof_error *error)
{
    return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                        "%s%.*s: strconv.%s: parsing \"%.*s\": %s", prefix,
                        cpprof__print_n(line), line.at, function,
                        cpprof__print_n(word), word.at, wrong);
}

enum cpprof_status
cpprof__read_int(struct cpprof__text word, unsigned base, int64_t *value,
                 const char *prefix, struct cpprof__text line,
                 struct cpprof_error *error)
{
    const char *wrong = cpprof__parse_int(word, base, value);

    return wrong ? cpprof__fail_number(prefix, line, "ParseInt", word, wrong,
                                       error)
                 : CPPROF_OK;
}
