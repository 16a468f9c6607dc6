/* SPDX-License-Identifier: MIT */
/* Help on words: of the shell, and flags of the command line. */
#include "cli/report/help.h"

#include "cli/commands.h"
#include "cli/report/settings.h"

#include <string.h>

const char *
cpprof__help_command(size_t i)
{
    return cpprof__help_commands[i].name;
}

static const struct cpprof__help_command_text *
find_command(const char *name)
{
    const struct cpprof__help_command_text *c = cpprof__help_commands;

    while (c->name && strcmp(c->name, name) != 0)
        c++;
    return c->name ? c : NULL;
}

static const struct cpprof__help_option_text *
find_option(const struct cpprof__help_option_text *o, const char *name)
{
    while (o->name && strcmp(o->name, name) != 0)
        o++;
    return o->name ? o : NULL;
}

/* ------------------------------------------------------------ of one ---- */

/* The line that a command is, its name left out. */
static const char *
words_of(enum cpprof__help_use use)
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
print_use(FILE *out, const char *name, enum cpprof__help_use use)
{
    const char *words = words_of(use);

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

/* ------------------------------------------------------------ of all ---- */

/* The first line of text. */
static void
print_short(FILE *out, const char *indent, const char *name, const char *text)
{
    fprintf(out, "%s    %-16s %.*s\n", indent, name, (int)strcspn(text, "\n"),
            text);
}

static void
print_groups(FILE *out)
{
    const struct cpprof__setting *s = cpprof__settings_table;
    const char *const *choice;
    size_t i;

    fputs("  Options that are one of several words:\n", out);
    for (i = 0; i < CPPROF__N_SETTINGS; i++) {
        if (!s[i].choices)
            continue;
        print_short(out, "", s[i].name, "");
        for (choice = s[i].choices; *choice; choice++)
            print_short(out, "  ", *choice,
                        find_option(cpprof__help_options, *choice)->text);
    }
}

static void
print_all(FILE *out)
{
    const struct cpprof__help_command_text *c = cpprof__help_commands;
    const struct cpprof__setting *s = cpprof__settings_table;
    size_t i;

    fputs("  Commands:\n", out);
    for (; c->name; c++)
        print_short(out, "", c->name, c->text);
    print_short(out, "", "o/options", "The options and their values");
    print_short(out, "", "q/quit/exit/^D", "The end");
    fputs("\n  Options:\n", out);
    for (i = 0; i < CPPROF__N_SETTINGS; i++)
        if (!s[i].choices)
            print_short(out, "", s[i].name,
                        find_option(cpprof__help_options, s[i].name)->text);
    fputs("\n", out);
    print_groups(out);
    fputs("  :   no focus, ignore, hide, tagfocus, tagignore\n\n"
          "  help WORD tells more of a command or an option\n",
          out);
}

bool
cpprof__help_word(FILE *out, const char *word)
{
    const struct cpprof__help_command_text *c = find_command(word);
    const struct cpprof__help_option_text *o =
        find_option(cpprof__help_options, word);

    if (!*word) {
        print_all(out);
    } else if (c) {
        fprintf(out, "%s\n", c->text);
        print_use(out, word, c->use);
    } else if (o) {
        fprintf(out, "%s", o->text);
    } else {
        return false;
    }
    return true;
}

bool
cpprof__help_flag(const char *name)
{
    const struct cpprof__help_option_text *o =
        find_option(cpprof__help_flags, name);

    if (!o)
        return *name && cpprof__help_word(stdout, name);
    fputs(o->text, stdout);
    return true;
}

const char *
cpprof__help_flag_text(const char *name)
{
    const struct cpprof__help_command_text *c = find_command(name);
    const struct cpprof__help_option_text *o =
        find_option(cpprof__help_options, name);

    if (c)
        return c->text;
    if (!o)
        o = find_option(cpprof__help_flags, name);
    return o ? o->text : "";
}
