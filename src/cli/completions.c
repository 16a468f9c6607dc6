/* SPDX-License-Identifier: MIT */
/*
 * `cpprof complete WORD...`: prints what the last word, which may be empty, can
 * become. The files in completions/ ask this for bash, zsh and fish, so that no
 * shell has a list of its own.
 *
 * Each candidate is a line: the whole word, a tab, and its meaning. A line
 * ":files" or ":commands" stands for names that only the shell knows.
 */
#include "cli/commands.h"
#include "cli/messages.h"

#include <stdio.h>
#include <string.h>

/* Print the candidate if it begins with the word. */
static void
offer(const char *word, const char *before, const char *name, size_t n_name,
      const char *end, const char *text)
{
    size_t n = strlen(before);

    if (strncmp(word, before, n) != 0 ||
        strncmp(word + n, name, strlen(word + n)) != 0 ||
        strlen(word + n) > n_name)
        return;
    printf("%s%.*s%s\t%.*s\n", before, (int)n_name, name, end,
           (int)strcspn(text, "\n"), text);
}

static void
offer_name(const char *word, const char *name, const char *text)
{
    offer(word, "", name, strlen(name), "", text);
}

/* ------------------------------------------------------------- flags ---- */

static void
offer_flags(const struct cpprof__flag *flag, const char *word)
{
    for (; flag->name; flag++)
        if (!cpprof__flag_is_text(flag))
            offer(word, "-", flag->name, strlen(flag->name),
                  flag->argument && *flag->argument == '=' ? "=" : "",
                  flag->text);
    offer_name(word, "-help", "help");
}

/* The flag that a word, "-name" or "-name=...", is. */
static const struct cpprof__flag *
flag_of(const struct cpprof__flag *table, const char *word)
{
    const char *name = word + 1 + (word[0] == '-' && word[1] == '-');

    return *word == '-' ? cpprof__find_flag(table, name, strcspn(name, "="))
                        : NULL;
}

/* In a value of several words, separated by commas or colons, the last word is
 * completed. */
static void
offer_values(const struct cpprof__flag *table, const struct cpprof__flag *flag,
             const char *word, const char *value)
{
    const char *words = flag->words ? flag->words : "", *part = value, *c;
    char before[256];

    if (*words == ':') {
        puts(words);
        return;
    }
    for (c = value; *c; c++)
        if (*c == ',' || *c == ':')
            part = c + 1;
    snprintf(before, sizeof before, "%.*s", (int)(part - word), word);
    for (; *words; words += strspn(words, " ")) {
        offer(word, before, words, strcspn(words, " "), "", "");
        words += strcspn(words, " ");
    }
    for (; flag->kind == CPPROF__FLAG_CHOICE && table->name; table++)
        if (table->group && strcmp(table->group, flag->name) == 0)
            offer(word, before, table->name, strlen(table->name), "",
                  table->text);
}

/* ------------------------------------------------------------- words ---- */

static void
offer_commands(const char *word)
{
    const struct cpprof__command *c = cpprof__commands;
    const struct cpprof__flag *flag = cpprof__report_flag_table;

    for (; c->name; c++)
        if (c->summary)
            offer_name(word, c->name, c->summary);
    for (; flag->name; flag++)
        if (flag->format)
            offer_name(word, flag->name, flag->text);
    puts(":files");
}

static void
offer_topics(const char *word)
{
    const struct cpprof__command *c = cpprof__commands;
    const struct cpprof__flag *flag = cpprof__report_flag_table;

    for (; flag->name; flag++)
        if (flag->kind == CPPROF__FLAG_TOPIC)
            offer_name(word, flag->name, flag->argument);
    for (; c->name; c++)
        if (c->flags)
            offer_name(word, c->name, c->summary);
    offer_name(word, "flags", "every flag of reports, in a line");
    offer_name(word, "report", "all on reports");
}

/* Complete a word of a command: its flags and their values, else its arguments,
 * which are all that follows "--". */
static void
offer_of_command(int argc, char **argv, const struct cpprof__flag *table,
                 const char *arguments)
{
    const char *word = argv[argc - 1], *before = argv[argc - 2];
    const struct cpprof__flag *flag = flag_of(table, before);
    const char *equals = *word == '-' ? strchr(word, '=') : NULL;
    int i;

    for (i = 1; i < argc - 1; i++)
        if (strcmp(argv[i], "--") == 0) {
            fputs(arguments, stdout);
            return;
        }
    if (strcmp(word, "=") == 0)
        word = ""; /* bash splits "-flag=value" into three words */
    else if (strcmp(before, "=") == 0 && argc > 3)
        flag = flag_of(table, argv[argc - 3]);
    else if (equals)
        flag = flag_of(table, word);
    else if (flag && (cpprof__flag_is_bool(flag) || strchr(before, '=')))
        flag = NULL;
    if (flag)
        offer_values(table, flag, word, equals ? equals + 1 : word);
    else if (*word == '-')
        offer_flags(table, word);
    else
        fputs(arguments, stdout);
}

int
cpprof__cli_complete(int argc, char **argv)
{
    const struct cpprof__command *c = cpprof__commands;

    if (argc < 2)
        return CPPROF__EXIT_ERROR;
    while (c->name && strcmp(c->name, argv[1]) != 0)
        c++;
    if (argc == 2 && *argv[1] != '-')
        offer_commands(argv[1]);
    else if (argc > 2 && strcmp(argv[1], "help") == 0)
        offer_topics(argv[argc - 1]);
    else if (argc > 2 && c->flags)
        offer_of_command(argc, argv, c->flags,
                         c->flags == cpprof__convert_flag_table ||
                                 c->flags == cpprof__push_flag_table ||
                                 c->flags == cpprof__pgo_flag_table ||
                                 c->flags == cpprof__gate_flag_table
                             ? ":files\n"
                             : ":commands\n:files\n");
    else
        offer_of_command(argc, argv, cpprof__report_flag_table, ":files\n");
    return CPPROF__EXIT_OK;
}
