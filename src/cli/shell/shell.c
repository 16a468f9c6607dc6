/* SPDX-License-Identifier: MIT */
/*
 * The shell's loop: assignments, words of its own, reports. What it answers
 * goes to stderr, in the words of the reference; reports go to standard output.
 * Source: internal/driver/interactive.go.
 */
#include "cli/shell/shell.h"

#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/report/report.h"
#include "cli/terminal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLANKS  " \t\n\v\f\r"
#define COMMENT "//:"

struct shell {
    struct pprof_profile *profile;
    struct cpprof__settings settings;
    struct cpprof__shell_input *input;
};

void
cpprof__shell_error(const char *format, ...)
{
    va_list args;

    fputs(cpprof__color(STDERR_FILENO, "31"), stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "%s\n", cpprof__color(STDERR_FILENO, ""));
}

/* Cut blanks off both ends. */
static char *
trimmed(char *text)
{
    char *end;

    text += strspn(text, BLANKS);
    end = text + strlen(text);
    while (end > text && strchr(BLANKS, end[-1]))
        end--;
    *end = '\0';
    return text;
}

static const char *
type_name(const struct shell *sh, size_t i)
{
    return pprof_text(sh->profile, pprof_sample_types(sh->profile)[i].type,
                      NULL);
}

static size_t
n_types(const struct shell *sh)
{
    return pprof_sample_type_count(sh->profile);
}

/* ---------------------------------------------------------- greeting ---- */

static bool
has_values(const struct shell *sh)
{
    struct pprof_sample sample = {.size = sizeof sample};
    size_t n = pprof_sample_count(sh->profile), i, type;

    if (pprof_find_sample_type(sh->profile,
                               sh->settings.report.options.sample_index, &type,
                               NULL) != CPPROF_OK)
        return true;
    for (i = 0; i < n; i++) {
        pprof_get_sample(sh->profile, i, &sample);
        if (sample.values[type])
            return true;
    }
    return false;
}

/* Describe the profile as above a table; all of it, without filters. */
static void
greet(const struct shell *sh)
{
    const struct pprof_report_options *o = &sh->settings.report.options;
    struct pprof_report_options heading = PPROF_REPORT_DEFAULTS;
    struct cpprof_writer writer;

    heading.flags = o->flags & PPROF_REPORT_MEAN;
    heading.sample_index = o->sample_index;
    heading.unit = o->unit;
    heading.divide_by = o->divide_by;
    cpprof_writer_to_stream(stderr, &writer);
    writer = cpprof__clean_writer(writer, STDERR_FILENO);
    if (pprof_report_write(sh->profile, &writer, PPROF_REPORT_HEADING, &heading,
                           NULL) == CPPROF_OK &&
        n_types(sh) > 1 && !has_values(sh))
        fputs("No samples were found with the default sample value type.\n"
              "Try \"sample_index\" command to analyze different sample "
              "values.\n",
              stderr);
    fputs("Entering interactive mode (type \"help\" for commands, \"o\" for "
          "options)\n",
          stderr);
}

/* ----------------------------------------------------------- options ---- */

static void
print_choices(const char *group)
{
    const char *before = COMMENT " [";
    const struct cpprof__flag *word;
    size_t i;

    for (i = 0; (word = cpprof__report_flag_by_name(i)) != NULL; i++)
        if (word->group && strcmp(word->group, group) == 0) {
            fprintf(stderr, "%s%s", before, word->name);
            before = " | ";
        }
    fputs("]\n", stderr);
}

/* Sample types are words of the profile. */
static void
print_type(const struct shell *sh, size_t i, const char *before)
{
    const char *c;

    fputs(before, stderr);
    for (c = type_name(sh, i); *c; c++)
        fputc((unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c, stderr);
}

static void
print_option(const struct shell *sh, const struct cpprof__flag *s)
{
    char text[CPPROF__SETTING_TEXT];
    const char *value = cpprof__setting_get(&sh->settings, s, text);
    bool types = strcmp(s->name, "sample_index") == 0 && n_types(sh);
    bool none = strcmp(s->name, "nodecount") == 0 && strcmp(value, "-1") == 0;
    size_t i;

    if (types && !*value && /* the type that is shown if nobody chose one */
        pprof_find_sample_type(sh->profile, NULL, &i, NULL) == CPPROF_OK)
        value = type_name(sh, i);
    fprintf(stderr, "  %-25s = %-20s ", s->name, *value ? value : "\"\"");
    if (s->kind == CPPROF__FLAG_CHOICE)
        print_choices(s->name);
    else if (types) {
        for (i = 0; i < n_types(sh); i++)
            print_type(sh, i, i ? " | " : COMMENT " [");
        fputs("]\n", stderr);
    } else
        fputs(none ? COMMENT " default\n" : "\n", stderr);
}

static void
print_options(const struct shell *sh)
{
    const struct cpprof__flag *s;
    size_t i;

    for (i = 0; (s = cpprof__setting(i)) != NULL; i++)
        if (strcmp(s->name, "source_path") != 0)
            print_option(sh, s);
}

static void
help(const struct shell *sh, char *flags)
{
    char *word = trimmed(flags);
    size_t i;

    if (!cpprof__help_word(stderr, word)) {
        cpprof__shell_error("Unknown command: %s", word);
        return;
    }
    if (strcmp(word, "sample_index") == 0) {
        fputs("Or use sample_index=name, with name in [", stderr);
        for (i = 0; i < n_types(sh); i++)
            print_type(sh, i, i ? " " : "");
        fputs("].\n", stderr);
    }
    if (*word)
        fputs("\n", stderr);
}

/* ------------------------------------------------------- assignments ---- */

/* Set an option. A sample type becomes its name, so that "3" and "inuse_space"
 * read alike. */
static void
set(struct shell *sh, const char *name, const char *value)
{
    char reason[CPPROF__SETTING_TEXT];
    struct cpprof_error error = {0};
    size_t type;

    if (strcmp(name, "sample_index") == 0) {
        if (pprof_find_sample_type(sh->profile, value, &type, &error) !=
            CPPROF_OK) {
            cpprof__shell_error("%s", error.text);
            return;
        }
        value = type_name(sh, type);
    }
    if (!cpprof__setting_set(&sh->settings, name, value, reason))
        cpprof__shell_error("%s", reason);
}

/* "name = value //: comment". Is it one? */
static bool
assign(struct shell *sh, char *line)
{
    char *value = strchr(line, '='), *comment, *next;
    const struct cpprof__flag *s;
    char *name;

    if (value)
        *value++ = '\0';
    name = trimmed(line);
    s = cpprof__setting_find(name);
    if (!s)
        return false;
    if (!value && !cpprof__setting_is_bool(s, name)) {
        cpprof__shell_error("please specify a value, e.g. %s=<val>", name);
        return true;
    }
    if (!value) {
        /* A lone `lines` does nothing in the reference, though its help says
         * otherwise. Scripts may rely on that; a user who types it means it. */
        bool on = strcmp(s->name, name) != 0 &&
                  cpprof__shell_input_is_terminal(sh->input);

        set(sh, name, on ? "true" : "");
        return true;
    }
    for (comment = NULL, next = value; (next = strstr(next, COMMENT)); next++)
        comment = next;
    if (comment)
        *comment = '\0';
    set(sh, name, trimmed(value));
    return true;
}

/* -------------------------------------------------------- short words ---- */

/* ":" clears filters. The name of a sample type chooses it; with "total_" in
 * front as a sum, with "mean_" as a mean. */
static bool
is_short(struct shell *sh, const char *line)
{
    static const char *const filters[] = {"focus", "ignore", "hide", "tagfocus",
                                          "tagignore"};
    bool total = strncmp(line, "total_", 6) == 0;
    bool mean = strncmp(line, "mean_", 5) == 0;
    const char *rest = line + (total ? 6 : mean ? 5 : 0);
    size_t i;

    if (strcmp(line, ":") == 0) {
        for (i = 0; i < sizeof filters / sizeof filters[0]; i++)
            set(sh, filters[i], "");
        return true;
    }
    for (i = 0; i < n_types(sh); i++) {
        const char *type = type_name(sh, i);
        bool prefixed = rest != line && strcmp(rest, type) == 0;

        if (!*type || (!prefixed && strcmp(line, type) != 0))
            continue;
        if (prefixed)
            set(sh, "mean", mean ? "1" : "0");
        set(sh, "sample_index", type);
        return true;
    }
    return false;
}

/* ------------------------------------------------------------- lines ---- */

static bool
is_word(const char *line, const char *word)
{
    size_t n = strlen(word);

    return strncmp(line, word, n) == 0 && (!line[n] || strchr(BLANKS, line[n]));
}

/* Returns false when the shell is to end. */
static bool
do_line(struct shell *sh, const char *text)
{
    struct cpprof__shell_command command;
    char *copy = strdup(text), *line;
    bool ends = false;

    if (!copy) {
        cpprof__shell_error("out of memory");
        return true;
    }
    line = trimmed(copy);
    if (*line && !is_short(sh, line) && !assign(sh, line)) {
        strcpy(copy, text); /* assign() cut it */
        line = trimmed(copy);
        if (is_word(line, "o") || is_word(line, "options"))
            print_options(sh);
        else if (is_word(line, "help"))
            help(sh, line + strlen("help"));
        else if (is_word(line, "q") || is_word(line, "quit") ||
                 is_word(line, "exit"))
            ends = true;
        else if (cpprof__shell_parse(line, &sh->settings, &command)) {
            cpprof__shell_run(sh->profile, &command);
            cpprof__shell_command_free(&command);
        }
    }
    free(copy);
    return !ends;
}

int
cpprof__shell(struct pprof_profile *profile,
              const struct cpprof__report_flags *flags)
{
    struct shell sh = {.profile = profile, .settings = {.report = *flags}};
    const char *line;

    cpprof__progress_end();
    sh.input = cpprof__shell_input_open(profile);
    if (!sh.input)
        return cpprof__cli_fail("out of memory");
    cpprof__cli_prefix("");
    sh.settings.report.options.flags |= PPROF_REPORT_COMPACT_LABELS;
    greet(&sh);
    do
        line = cpprof__shell_input_line(sh.input);
    while (line && do_line(&sh, line));
    cpprof__shell_input_close(sh.input);
    cpprof__settings_free(&sh.settings);
    return CPPROF__EXIT_OK;
}
