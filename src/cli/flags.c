/* SPDX-License-Identifier: MIT */
/* Command-line flags in the syntax of Go's package flag. */
#include "cli/cli.h"
#include "cli/hide_password.h"
#include "cli/terminal.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In front of messages. */
static const char *prefix = "cpprof: ";

static void
print_line(const char *format, va_list args)
{
    char whole[2048], text[1024], *c;

    vsnprintf(whole, sizeof whole, format, args);
    cpprof__hide_passwords(whole, text, sizeof text);
    for (c = text; *c; c++) /* a line, whatever a file name brings with it */
        if ((unsigned char)*c < ' ')
            *c = '?';
    cpprof__progress_hide();
    fprintf(stderr, "%s%s%s%s\n", cpprof__color(STDERR_FILENO, "31"), prefix,
            text, cpprof__color(STDERR_FILENO, ""));
}

void
cpprof__cli_prefix(const char *text)
{
    prefix = text;
}

int
cpprof__cli_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_line(format, args);
    va_end(args);
    return CPPROF__EXIT_ERROR;
}

void
cpprof__cli_warn(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_line(format, args);
    va_end(args);
}

/* ------------------------------------------------------------ values ---- */

/* strconv.ParseBool */
static bool
parse_bool(const char *text, bool *value)
{
    static const char *const words[] = {"1",    "t",     "T",     "TRUE",
                                        "true", "True",  "0",     "f",
                                        "F",    "FALSE", "false", "False"};
    size_t i;

    for (i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i]) == 0) {
            *value = i < 6;
            return true;
        }
    return false;
}

static bool
parse_int(const char *text, int *value)
{
    char *end;
    long n;

    errno = 0;
    n = strtol(text, &end, 0);
    if (!*text || *end || errno || n < INT_MIN || n > INT_MAX)
        return false;
    *value = (int)n;
    return true;
}

static bool
parse_double(const char *text, double *value)
{
    char *end;
    double d = strtod(text, &end);

    if (!*text || *end)
        return false;
    *value = d;
    return true;
}

static bool
append(struct cpprof__flag_list *list, const char *text)
{
    char **at;

    if (!*text)
        return true;
    at = reallocarray(list->at, (size_t)list->n + 1, sizeof *at);
    if (!at) {
        cpprof__cli_fail("out of memory");
        return false;
    }
    list->at = at;
    list->at[list->n++] = (char *)text;
    return true;
}

static bool
set(const struct cpprof__flag *flag, const char *text)
{
    bool ok = true;

    switch (flag->kind) {
    case CPPROF__FLAG_BOOL:
        ok = parse_bool(text, flag->value);
        break;
    case CPPROF__FLAG_INT:
        ok = parse_int(text, flag->value);
        break;
    case CPPROF__FLAG_DOUBLE:
        ok = parse_double(text, flag->value);
        break;
    case CPPROF__FLAG_STRING:
        *(const char **)flag->value = text;
        break;
    case CPPROF__FLAG_LIST:
        return append(flag->value, text);
    }
    if (!ok)
        cpprof__cli_fail("invalid value \"%s\" for flag -%s: parse error", text,
                         flag->name);
    return ok;
}

/* ------------------------------------------------------------- words ---- */

static const struct cpprof__flag *
find(const struct cpprof__flag *flags, const char *name, size_t n)
{
    for (; flags->name; flags++)
        if (strlen(flags->name) == n && memcmp(flags->name, name, n) == 0)
            return flags;
    return NULL;
}

/* The name in "-name=value", without its dashes; NULL: it is no flag. */
static const char *
flag_name(const char *word)
{
    if (word[0] != '-' || !word[1])
        return NULL;
    return word + 1 + (word[1] == '-');
}

/* Parse the flag at argv[*at], and its value; moves *at behind them. */
static bool
parse_flag(int argc, char **argv, const struct cpprof__flag *flags, int *at,
           bool *help)
{
    const char *word = argv[(*at)++], *name = flag_name(word);
    size_t n = strcspn(name, "=");
    const struct cpprof__flag *flag = find(flags, name, n);

    if (!n || *name == '-') {
        cpprof__cli_fail("bad flag syntax: %s", word);
        return false;
    }
    if (!flag && (strcmp(name, "h") == 0 || strcmp(name, "help") == 0)) {
        *help = true;
        return true;
    }
    if (!flag) {
        cpprof__cli_fail("flag provided but not defined: -%.*s", (int)n, name);
        return false;
    }
    if (name[n])
        return set(flag, name + n + 1);
    if (flag->kind == CPPROF__FLAG_BOOL)
        return set(flag, "true");
    if (*at < argc)
        return set(flag, argv[(*at)++]);
    cpprof__cli_fail("flag needs an argument: -%s", flag->name);
    return false;
}

bool
cpprof__cli_flags(int argc, char **argv, const struct cpprof__flag *flags,
                  int *n_used, bool *help)
{
    int at = 1;

    *help = false;
    while (at < argc && flag_name(argv[at]) && !*help) {
        if (strcmp(argv[at], "--") == 0) {
            at++;
            break;
        }
        if (!parse_flag(argc, argv, flags, &at, help))
            return false;
    }
    *n_used = at;
    return true;
}

bool
cpprof__cli_flags_among_words(int argc, char **argv,
                              const struct cpprof__flag *flags, int *n_words,
                              bool *help)
{
    int at = 1, n = 0;

    *help = false;
    while (at < argc && !*help) {
        if (strcmp(argv[at], "--") == 0)
            break;
        if (!flag_name(argv[at]))
            argv[1 + n++] = argv[at++]; /* never behind `at` */
        else if (!parse_flag(argc, argv, flags, &at, help))
            return false;
    }
    for (at++; at < argc && !*help; at++)
        argv[1 + n++] = argv[at];
    *n_words = n;
    return true;
}
