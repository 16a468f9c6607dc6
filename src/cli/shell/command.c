/* SPDX-License-Identifier: MIT */
/*
 * A command of the shell: the name of a report, maybe with a number glued to
 * it; the expression that some want; then numbers, expressions to focus on and
 * "-expressions" to ignore, "-cum", and where the report goes. Source:
 * internal/driver/interactive.go; " | program" is an addition: there, a lone
 * "|" is an expression that matches everything.
 */
#include "cli/shell/shell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\n\v\f\r"

/* Take the next word off the rest of a line; NULL at its end. */
static char *
take(char **rest)
{
    char *word = *rest + strspn(*rest, BLANKS);

    if (!*word)
        return NULL;
    *rest = word + strcspn(word, BLANKS);
    if (**rest)
        *(*rest)++ = '\0';
    return word;
}

/* -------------------------------------------------------------- name ---- */

/* Cut the digits off "top10"; false: there are none, or nothing else. */
static bool
split_digits(char *name, int32_t *number)
{
    size_t n = strlen(name), i = n;

    while (i && name[i - 1] >= '0' && name[i - 1] <= '9')
        i--;
    if (i == 0 || i == n || !cpprof__parse_int(name + i, 10, number))
        return false;
    name[i] = '\0';
    return true;
}

static void
unknown(const char *name, const char *value)
{
    const struct cpprof__flag *s = cpprof__setting_find(name);
    char quoted[128];

    /* The name of a group has no text of its own. */
    if (s && !(s->kind == CPPROF__FLAG_CHOICE && strcmp(s->name, name) == 0))
        cpprof__shell_error("did you mean: %s=%s", name,
                            value ? value : "<val>");
    else
        cpprof__shell_error("unrecognized command: %s",
                            cpprof__quoted(name, quoted, sizeof quoted));
}

static bool
take_name(char **rest, struct cpprof__report_flags *w)
{
    char *name = take(rest);
    const struct cpprof__flag *word = cpprof__choose_format(w, name);
    int32_t number;

    if (!word && split_digits(name, &number)) {
        word = cpprof__choose_format(w, name);
        /* A command that wants an expression takes a number as one. */
        if (word && cpprof__report_flag_is_search(word)) {
            cpprof__shell_error("command %s requires an argument", name);
            return false;
        }
        w->options.nodecount = number;
    }
    if (!word) {
        unknown(name, take(rest));
        return false;
    }
    if (!cpprof__report_flag_is_search(word))
        return true;
    w->options.symbol = take(rest);
    if (!w->options.symbol)
        cpprof__shell_error("command %s requires an argument", name);
    return w->options.symbol != NULL;
}

/* --------------------------------------------------------- arguments ---- */

/* Add an alternative: "a|b". */
static bool
add_expression(char **all, const char *one)
{
    char *sum;

    if (!*one)
        return true;
    if (asprintf(&sum, "%s%s%s", *all ? *all : "", *all ? "|" : "", one) < 0)
        return false;
    free(*all);
    *all = sum;
    return true;
}

static bool
take_arguments(char **rest, struct cpprof__shell_command *c)
{
    struct cpprof__report_flags *w = &c->report;
    bool ok = true;
    char *word;

    while (ok && (word = take(rest)) != NULL) {
        if (cpprof__parse_int(word, 10, &w->options.nodecount))
            continue;
        if (*word == '>') {
            w->output = word[1] ? word + 1 : take(rest);
            if (w->output)
                continue;
            cpprof__shell_error("unexpected end of line after >");
            return false;
        }
        if (strcmp(word, "-cum") == 0 || strcmp(word, "--cum") == 0)
            w->options.flags |= PPROF_REPORT_CUM;
        else if (*word == '-')
            ok = add_expression(&c->ignore, word + 1);
        else
            ok = add_expression(&c->focus, word);
    }
    if (!ok)
        cpprof__shell_error("out of memory");
    return ok;
}

/* -------------------------------------------------------------- line ---- */

/* Cut " | program" off: a "|" after a blank, or in the name of the command,
 * where no expression can be. */
static const char *
split_program(char *line)
{
    char *c = line + strspn(line, BLANKS), *end = c + strcspn(c, BLANKS);

    for (; *c; c++) {
        if (*c != '|' || (c > end && !strchr(BLANKS, c[-1])))
            continue;
        *c++ = '\0';
        return c + strspn(c, BLANKS);
    }
    return NULL;
}

static bool
parse(struct cpprof__shell_command *c)
{
    struct pprof_report_options *o = &c->report.options;
    char *rest = c->line;
    bool tags;

    c->program = split_program(c->line);
    if (!c->line[strspn(c->line, BLANKS)]) {
        cpprof__shell_error("no command before |");
        return false;
    }
    if (!take_name(&rest, &c->report) || !take_arguments(&rest, c))
        return false;
    if (c->program && !*c->program) {
        cpprof__shell_error("unexpected end of line after |");
        return false;
    }
    if (c->program)
        c->report.output = NULL; /* a pipe is where it goes */
    tags = c->report.format == PPROF_REPORT_TAGS;
    /* Options of the command, in place of the shell's. */
    if (c->focus)
        *(tags ? &o->tagfocus : &o->focus) = c->focus;
    if (c->ignore)
        *(tags ? &o->tagignore : &o->ignore) = c->ignore;
    if (o->nodecount == -1 && c->report.format == PPROF_REPORT_TOP)
        o->nodecount = 10;
    return true;
}

bool
cpprof__shell_parse(const char *line, const struct cpprof__settings *settings,
                    struct cpprof__shell_command *c)
{
    memset(c, 0, sizeof *c);
    c->report = settings->report;
    c->line = strdup(line);
    if (!c->line) {
        cpprof__shell_error("out of memory");
        return false;
    }
    if (parse(c))
        return true;
    cpprof__shell_command_free(c);
    return false;
}

void
cpprof__shell_command_free(struct cpprof__shell_command *c)
{
    free(c->line);
    free(c->focus);
    free(c->ignore);
    memset(c, 0, sizeof *c);
}
