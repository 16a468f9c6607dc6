/* SPDX-License-Identifier: MIT */
/*
 * Flags from words, and help on them. A value is stored where its row says, so
 * the order of flags matters only where one is given twice: the last one
 * counts.
 */
#include "cli/flags.h"

#include "cli/messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The column in which help explains a flag. */
#define TEXT_COLUMN 24

/* ------------------------------------------------------------ values ---- */

/* strconv.ParseBool */
static bool
parse_bool(const char *text, bool *value)
{
    static const char *const words[] = {"1",    "t",     "T",     "TRUE",
                                        "true", "True",  "0",     "f",
                                        "F",    "FALSE", "false", "False"};

    return cpprof__parse_bool(text, words, sizeof words / sizeof *words, strcmp,
                              value);
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
set(const struct cpprof__flags *flags, const struct cpprof__flag *flag,
    const char *text)
{
    void *at = (char *)flags->into + flag->offset;
    bool ok = true, value;

    if (flags->given && !cpprof__flag_is_bool(flag))
        flags->given[flag - flags->table] = *text;
    switch (flag->kind) {
    case CPPROF__FLAG_INT:
        ok = cpprof__parse_int(text, 0, at);
        break;
    case CPPROF__FLAG_DOUBLE:
        ok = cpprof__parse_double(text, at);
        break;
    case CPPROF__FLAG_STRING:
    case CPPROF__FLAG_CHOICE:
        *(const char **)at = text;
        break;
    case CPPROF__FLAG_LIST:
        return append(at, text);
    case CPPROF__FLAG_FILES:
        if (*text)
            return append(at, text);
        cpprof__cli_fail("-%s= names no file", flag->name);
        return false;
    case CPPROF__FLAG_MAYBE:
        value = true;
        *(const char **)at = parse_bool(text, &value) ? "" : text;
        if (!value)
            *(const char **)at = NULL;
        break;
    default:
        ok = parse_bool(text, &value);
        if (ok)
            cpprof__set_bool_flag(flag, flags->into, value);
        if (ok && flags->given)
            flags->given[flag - flags->table] = value;
    }
    if (!ok)
        cpprof__cli_fail("invalid value \"%s\" for flag -%s: parse error", text,
                         flag->name);
    return ok;
}

/* ------------------------------------------------------------- words ---- */

/* The name in "-name=value", without its dashes; NULL: it is no flag. */
static const char *
flag_name(const char *word)
{
    if (word[0] != '-' || !word[1])
        return NULL;
    return word + 1 + (word[1] == '-');
}

/* Parse the flag at argv[*at] and its value, and move *at past them. */
static bool
parse_flag(int argc, char **argv, struct cpprof__flags *flags, int *at)
{
    const char *word = argv[(*at)++], *name = flag_name(word);
    size_t n = strcspn(name, "=");
    const struct cpprof__flag *flag = cpprof__find_flag(flags->table, name, n);

    if (!n || *name == '-') {
        cpprof__cli_fail("bad flag syntax: %s", word);
        return false;
    }
    if (!flag && (strcmp(name, "h") == 0 || strcmp(name, "help") == 0)) {
        flags->help = true;
        return true;
    }
    if (!flag) {
        cpprof__cli_fail("flag provided but not defined: -%.*s", (int)n, name);
        return false;
    }
    if (name[n])
        return set(flags, flag, name + n + 1);
    if (cpprof__flag_is_bool(flag))
        return set(flags, flag, "true");
    if (*at < argc)
        return set(flags, flag, argv[(*at)++]);
    cpprof__cli_fail("flag needs an argument: -%s", flag->name);
    return false;
}

bool
cpprof__cli_flags(int argc, char **argv, struct cpprof__flags *flags,
                  int *n_used)
{
    int at = 1;

    while (at < argc && flag_name(argv[at]) && !flags->help) {
        if (strcmp(argv[at], "--") == 0) {
            at++;
            break;
        }
        if (!parse_flag(argc, argv, flags, &at))
            return false;
    }
    *n_used = at;
    return true;
}

bool
cpprof__cli_flags_among_words(int argc, char **argv,
                              struct cpprof__flags *flags, int *n_words)
{
    int at = 1, n = 0;

    while (at < argc && !flags->help) {
        if (strcmp(argv[at], "--") == 0)
            break;
        if (!flag_name(argv[at]))
            argv[1 + n++] = argv[at++]; /* never behind `at` */
        else if (!parse_flag(argc, argv, flags, &at))
            return false;
    }
    for (at++; at < argc && !flags->help; at++)
        argv[1 + n++] = argv[at];
    *n_words = n;
    return true;
}

/* -------------------------------------------------------------- help ---- */

void
cpprof__print_flag(const struct cpprof__flag *flag, const char *dash,
                   bool whole)
{
    const char *argument = flag->argument ? flag->argument : "";
    const char *line = flag->text;
    int n = printf("  %s%s%s", dash, flag->name, argument);

    if (n >= TEXT_COLUMN) {
        putchar('\n');
        n = 0;
    }
    do {
        int length = (int)strcspn(line, "\n");

        printf("%*s%.*s\n", TEXT_COLUMN - n, "", length, line);
        line += length + (line[length] == '\n');
        n = 0;
    } while (whole && *line);
}

void
cpprof__print_flags(const struct cpprof__flag *row, bool whole)
{
    for (; row->name && row->kind != CPPROF__FLAG_TOPIC; row++)
        if (row->kind == CPPROF__FLAG_TEXT)
            fputs(row->text, stdout);
        else
            cpprof__print_flag(row, row->format ? "" : "-", whole);
}
