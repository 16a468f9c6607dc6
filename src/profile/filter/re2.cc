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
