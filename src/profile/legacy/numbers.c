/* SPDX-License-Identifier: MIT */
/*
 * Numbers as Go's strconv reads them (base/text.h), with signs, and with its
 * errors.
 */
#include "profile/legacy/numbers.h"

#include "base/status.h"

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
        return "value out of range";
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
