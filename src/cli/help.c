/* SPDX-License-Identifier: MIT */
/* The shell's help. Source: internal/driver/commands.go usage(), help(). */
#include "help.h"

#include "settings.h"

#include <string.h>

const char *
cpprof__help_command(size_t i)
{
    return cpprof__help_commands[i].name;
}

static const struct cpprof__help_command_words *
find_command(const char *name)
{
    const struct cpprof__help_command_words *c = cpprof__help_commands;

    while (c->name && strcmp(c->name, name) != 0)
        c++;
    return c->name ? c : NULL;
}

static const struct cpprof__help_option_words *
find_option(const char *name)
{
    const struct cpprof__help_option_words *o = cpprof__help_options;

    while (o->name && strcmp(o->name, name) != 0)
        o++;
    return o->name ? o : NULL;
}

/* ------------------------------------------------------------ of one ---- */

static void
print_use(const char *name, enum cpprof__help_use use)
{
    static const char include[] =
        "    Include samples matching focus_regex, and exclude ignore_regex.\n";
    bool file = use == CPPROF__USE_TABLE || use == CPPROF__USE_GRAPH ||
                use == CPPROF__USE_LIST_FILE;

    switch (use) {
    case CPPROF__USE_NOTHING:
        return;
    case CPPROF__USE_TAGS:
        fputs("  Usage:\n    tags [tag_regex]* [-ignore_regex]* [>file]\n"
              "    List tags with key:value matching tag_regex and exclude "
              "ignore_regex.\n",
              stderr);
        return;
    case CPPROF__USE_PEEK:
        fputs("  Usage:\n    peek func_regex\n"
              "    Display callers and callees of functions matching "
              "func_regex.\n",
              stderr);
        return;
    case CPPROF__USE_LIST:
    case CPPROF__USE_LIST_FILE:
        fprintf(stderr,
                "  Usage:\n"
                "    %s<func_regex|address> [-focus_regex]* [-ignore_regex]*%s"
                "\n"
                "    Include functions matching func_regex, or including the "
                "address specified.\n",
                name, file ? " >f" : "");
        break;
    default:
        fprintf(stderr,
                "  Usage:\n    %s [n] [focus_regex]* [-ignore_regex]*%s%s\n"
                "    Include up to n samples\n",
                name, use == CPPROF__USE_TABLE ? " [-cum]" : "",
                file ? " >f" : "");
    }
    fputs(include, stderr);
    if (use == CPPROF__USE_TABLE)
        fputs("    -cum sorts the output by cumulative weight\n", stderr);
    if (file)
        fputs("    Optionally save the report on the file f\n", stderr);
}

/* ------------------------------------------------------------ of all ---- */

/* The first line of text. */
static void
print_short(const char *indent, const char *name, const char *text)
{
    fprintf(stderr, "%s    %-16s %.*s\n", indent, name,
            (int)strcspn(text, "\n"), text);
}

static void
print_groups(void)
{
    const struct cpprof__setting *s = cpprof__settings_table;
    const char *const *choice;
    size_t i;

    fputs("  Option groups (only set one per group):\n", stderr);
    for (i = 0; i < CPPROF__N_SETTINGS; i++) {
        if (!s[i].choices)
            continue;
        print_short("", s[i].name, "");
        for (choice = s[i].choices; *choice; choice++)
            print_short("  ", *choice, find_option(*choice)->text);
    }
}

static void
print_all(void)
{
    const struct cpprof__help_command_words *c = cpprof__help_commands;
    const struct cpprof__setting *s = cpprof__settings_table;
    size_t i;

    fputs("  Commands:\n", stderr);
    for (; c->name; c++)
        print_short("", c->name, c->text);
    print_short("", "o/options", "List options and their current values");
    print_short("", "q/quit/exit/^D", "Exit pprof");
    fputs("\n  Options:\n", stderr);
    for (i = 0; i < CPPROF__N_SETTINGS; i++)
        if (!s[i].choices)
            print_short("", s[i].name, find_option(s[i].name)->text);
    fputs("\n", stderr);
    print_groups();
    fputs("  :   Clear focus/ignore/hide/tagfocus/tagignore\n\n"
          "  type \"help <cmd|option>\" for more information\n",
          stderr);
}

bool
cpprof__help_word(const char *word)
{
    const struct cpprof__help_command_words *c = find_command(word);
    const struct cpprof__help_option_words *o = find_option(word);

    if (!*word) {
        print_all();
    } else if (c) {
        fprintf(stderr, "%s\n", c->text);
        print_use(word, c->use);
    } else if (o) {
        fprintf(stderr, "%s", o->text);
    } else {
        return false;
    }
    return true;
}
