/* SPDX-License-Identifier: MIT */
/*
 * Help on reports: in the shell, and on the command line by topic or for one
 * flag. All of its text is in the table of flags.
 */
#include "cli/report/report.h"

#include "cli/commands.h"
#include "cli/report/settings.h"

#include <string.h>

/* ------------------------------------------------------------ of one ---- */

/* The arguments that a command of the shell takes, as help shows them. */
static const char *
arguments_of(enum cpprof__report_use use)
{
    switch (use) {
    case CPPROF__USE_TABLE:
        return "[N] [RE]... [-RE]... [-cum] [>FILE]";
    case CPPROF__USE_GRAPH:
        return "[N] [RE]... [-RE]... [>FILE]";
    case CPPROF__USE_VIEWER:
        return "[N] [RE]... [-RE]...";
    case CPPROF__USE_LIST:
        return "FUNCTIONS [RE]... [-RE]...";
    case CPPROF__USE_LIST_FILE:
        return "FUNCTIONS [RE]... [-RE]... [>FILE]";
    case CPPROF__USE_PEEK:
        return "FUNCTIONS";
    case CPPROF__USE_TAGS:
        return "[RE]... [-RE]... [>FILE]";
    default:
        return "";
    }
}

static void
print_use(FILE *out, const char *name, enum cpprof__report_use use)
{
    const char *words = arguments_of(use);

    if (!*words)
        return;
    fprintf(out, "  In the shell: %s %s\n", name, words);
    if (*words == '[' && words[1] == 'N')
        fputs("    N     at most this many lines or nodes\n", out);
    if (*words == 'F')
        fputs("    FUNCTIONS  an expression for their names, or an address\n",
              out);
    if (use == CPPROF__USE_TAGS)
        fputs("    RE    only such labels; -RE no such labels\n", out);
    else if (use != CPPROF__USE_PEEK)
        fputs("    RE    only samples with a frame that matches; -RE none "
              "with one\n",
              out);
    if (strstr(words, "-cum"))
        fputs("    -cum  sorted by cumulative value\n", out);
    if (strchr(words, '>'))
        fputs("    FILE  where the report goes; or | and a program\n", out);
}

/* ------------------------------------------------------- of the shell ---- */

/* The first line of text. */
static void
print_short(FILE *out, const char *indent, const char *name, const char *text)
{
    fprintf(out, "%s    %-16s %.*s\n", indent, name, (int)strcspn(text, "\n"),
            text);
}

static void
print_all(FILE *out)
{
    const struct cpprof__flag *row, *word;
    size_t i, k;

    fputs("  Commands:\n", out);
    for (i = 0; (row = cpprof__report_flag_by_name(i)) != NULL; i++)
        if (row->format)
            print_short(out, "", row->name, row->text);
    print_short(out, "", "o/options", "The options and their values");
    print_short(out, "", "q/quit/exit/^D", "The end");
    fputs("\n  Options:\n", out);
    for (i = 0; (row = cpprof__setting(i)) != NULL; i++)
        if (row->kind != CPPROF__FLAG_CHOICE)
            print_short(out, "", row->name, row->text);
    fputs("\n  Options that are one of several words:\n", out);
    for (i = 0; (row = cpprof__setting(i)) != NULL; i++) {
        if (row->kind != CPPROF__FLAG_CHOICE)
            continue;
        print_short(out, "", row->name, "");
        for (k = 0; (word = cpprof__report_choice(row->name, k)) != NULL; k++)
            print_short(out, "  ", word->name, word->text);
    }
    fputs("  :   no focus, ignore, hide, tagfocus, tagignore\n\n"
          "  help WORD tells more of a command or an option\n",
          out);
}

static void
print_one(FILE *out, const struct cpprof__flag *flag)
{
    size_t n = strlen(flag->text);

    fputs(flag->text, out);
    if (!n || flag->text[n - 1] != '\n')
        fputc('\n', out);
    if (flag->format)
        print_use(out, flag->name, flag->format->use);
}

bool
cpprof__help_word(FILE *out, const char *word)
{
    const struct cpprof__flag *flag = cpprof__report_flag(word);

    if (!*word)
        print_all(out);
    else if (flag && (flag->format || cpprof__setting_find(word)))
        print_one(out, flag);
    else
        return false;
    return true;
}

/* ------------------------------------------------- of the command line ---- */

bool
cpprof__help_flag(const char *name)
{
    const struct cpprof__flag *flag = cpprof__report_flag(name);

    if (flag)
        print_one(stdout, flag);
    return flag != NULL;
}

static void
print_topic(const struct cpprof__flag *topic)
{
    fputs(topic->text, stdout);
    cpprof__print_flags(topic + 1, false);
}

void
cpprof__cli_report_help(void)
{
    const struct cpprof__flag *row = cpprof__report_flag_table;

    puts("usage: cpprof -FORMAT [flags] [BINARY] SOURCE...\n"
         "       cpprof FORMAT [flags] [BINARY] SOURCE...\n"
         "       cpprof merge [-output=FILE] SOURCE...\n"
         "       cpprof symbolize [-binary=FILE] [-o=FILE] SOURCE...\n"
         "       cpprof [flags] [BINARY] SOURCE...");
    for (; row->name; row++) {
        if (row->kind != CPPROF__FLAG_TOPIC)
            continue;
        printf("\n%s: %s\n\n", row->name, row->argument);
        print_topic(row);
    }
}

void
cpprof__help_topics(void)
{
    const struct cpprof__flag *row = cpprof__report_flag_table;

    puts("\nTopics for cpprof help:\n");
    for (; row->name; row++)
        if (row->kind == CPPROF__FLAG_TOPIC)
            printf("  %-12s %s\n", row->name, row->argument);
    puts("  flags        every flag of reports, in a line\n"
         "  report       all of these in one piece\n"
         "  -FLAG        a flag of reports by its name");
}

bool
cpprof__help_topic(const char *word)
{
    const struct cpprof__flag *row = cpprof__report_flag_table;
    size_t i;

    if (strcmp(word, "flags") == 0) {
        for (i = 0; (row = cpprof__report_flag_by_name(i)) != NULL; i++)
            cpprof__print_flag(row, "-", false);
        return true;
    }
    for (; row->name; row++)
        if (row->kind == CPPROF__FLAG_TOPIC && strcmp(row->name, word) == 0) {
            print_topic(row);
            return true;
        }
    return false;
}
