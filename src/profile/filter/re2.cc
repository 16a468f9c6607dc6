// SPDX-License-Identifier: MIT
// RE2 for C. Its errors become the words of Go's package regexp, whose syntax
// it shares.
#include "profile/filter/re2.h"

#include <cstdio>
#include <memory>
#include <new>
#include <re2/re2.h>

struct cpprof__re2 {
    RE2 expression;
};

static const char *
words_of(RE2::ErrorCode code)
{
    switch (code) {
    case RE2::ErrorBadEscape:
        return "invalid escape sequence";
    case RE2::ErrorBadCharClass:
    case RE2::ErrorBadCharRange:
        return "invalid character class range";
    case RE2::ErrorMissingBracket:
        return "missing closing ]";
    case RE2::ErrorMissingParen:
        return "missing closing )";
    case RE2::ErrorUnexpectedParen:
        return "unexpected )";
    case RE2::ErrorTrailingBackslash:
        return "trailing backslash at end of expression";
    case RE2::ErrorRepeatArgument:
        return "missing argument to repetition operator";
    case RE2::ErrorRepeatSize:
        return "invalid repeat count";
    case RE2::ErrorRepeatOp:
        return "invalid nested repetition operator";
    case RE2::ErrorBadPerlOp:
        return "invalid or unsupported Perl syntax";
    case RE2::ErrorBadUTF8:
        return "invalid UTF-8";
    case RE2::ErrorBadNamedCapture:
        return "invalid named capture";
    case RE2::ErrorPatternTooLarge:
        return "expression too large";
    case RE2::NoError:
    case RE2::ErrorInternal:
        break;
    }
    return "internal error";
}

struct cpprof__re2 *
cpprof__re2_make(const char *expression, size_t n,
                 struct cpprof__re2_error *error)
{
    *error = {};
    try {
        RE2::Options options;

        options.set_log_errors(false);
        std::unique_ptr<cpprof__re2> re2(
            new cpprof__re2{{re2::StringPiece(expression, n), options}});
        if (re2->expression.ok())
            return re2.release();
        snprintf(error->what, sizeof error->what, "%s",
                 words_of(re2->expression.error_code()));
        snprintf(error->where, sizeof error->where, "%s",
                 re2->expression.error_arg().c_str());
    } catch (const std::bad_alloc &) {
        *error = {};
    }
    return nullptr;
}

void
cpprof__re2_free(struct cpprof__re2 *re2)
{
    delete re2;
}

bool
cpprof__re2_matches(const struct cpprof__re2 *re2, const char *text, size_t n,
                    bool *failed)
{
    try {
        return re2->expression.Match(re2::StringPiece(text, n), 0, n,
                                     RE2::UNANCHORED, nullptr, 0);
    } catch (const std::bad_alloc &) {
        *failed = true;
        return false;
    }
}

static const RE2 &
made(cpprof__pattern *pattern)
{
    cpprof__re2 *there = __atomic_load_n(&pattern->made, __ATOMIC_ACQUIRE);

    if (there)
        return there->expression;
    std::unique_ptr<cpprof__re2> mine(
        new cpprof__re2{{pattern->expression, RE2::Latin1}});
    if (__atomic_compare_exchange_n(&pattern->made, &there, mine.get(), false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        there = mine.release();
    return there->expression;
}

bool
cpprof__pattern_find(cpprof__pattern *pattern, cpprof__text text,
                     cpprof__text *found, size_t n_found, bool *failed)
{
    re2::StringPiece groups[8];

    try {
        if (!made(pattern).Match(re2::StringPiece(text.at, text.n), 0, text.n,
                                 RE2::UNANCHORED, groups,
                                 static_cast<int>(n_found)))
            return false;
    } catch (const std::bad_alloc &) {
        *failed = true;
        return false;
    }
    for (size_t i = 0; i < n_found; i++)
        found[i] = {groups[i].data() ? groups[i].data() : "", groups[i].size()};
    return true;
}
