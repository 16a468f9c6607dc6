/* SPDX-License-Identifier: MIT */
/*
 * Completion. A function is found by the beginning of its name, or where none
 * begins so, by any part of it. It is written as an expression that matches
 * just that text: with a backslash before what means something in expressions,
 * and "\s" for a blank, which would end the word.
 */
#include "cli/shell/shell.h"

#include "cli/report/settings.h"

#include <stdlib.h>
#include <string.h>

#define BLANKS  " \t\n\v\f\r"
#define SPECIAL "\\.+*?()|[]{}^$"

/* Matches so far. */
struct matches {
    struct cpprof__completion *c;
    const char *word; /* what is written, unescaped */
    size_t n_word;
    size_t n_common; /* bytes that all matches share with the first */
    bool inside;     /* also in the middle of names */
};

static void
add(struct matches *m, const char *name)
{
    struct cpprof__completion *c = m->c;
    size_t i;

    if (m->inside ? !strstr(name, m->word)
                  : strncmp(name, m->word, m->n_word) != 0)
        return;
    for (i = 0; i < c->n_listed; i++)
        if (strcmp(c->listed[i], name) == 0)
            return;
    if (c->n_matches++ == 0)
        m->n_common = strlen(name);
    else
        for (i = 0; i <= m->n_common; i++)
            if (i == m->n_common || name[i] != c->listed[0][i]) {
                m->n_common = i;
                break;
            }
    if (c->n_listed < CPPROF__MAX_LISTED)
        c->listed[c->n_listed++] = name;
}

/* -------------------------------------------------------- candidates ---- */

static void
add_choices(struct matches *m, const struct cpprof__flag *setting)
{
    const struct cpprof__flag *word;
    size_t i;

    for (i = 0; (word = cpprof__report_choice(setting->name, i)) != NULL; i++)
        add(m, word->name);
}

static void
add_settings(struct matches *m)
{
    const struct cpprof__flag *row;
    size_t i;

    for (i = 0; (row = cpprof__setting(i)) != NULL; i++) {
        add(m, row->name);
        if (row->kind == CPPROF__FLAG_CHOICE)
            add_choices(m, row);
    }
}

static void
add_commands(struct matches *m)
{
    const struct cpprof__flag *row;
    size_t i;

    for (i = 0; (row = cpprof__report_flag_by_name(i)) != NULL; i++)
        if (row->format)
            add(m, row->name);
}

static void
add_types(struct matches *m, const struct pprof_profile *p)
{
    size_t n = pprof_sample_type_count(p), i;

    for (i = 0; i < n; i++)
        add(m, pprof_text(p, pprof_sample_types(p)[i].type, NULL));
}

static void
add_functions(struct matches *m, const struct pprof_profile *p)
{
    const struct pprof_function *f = pprof_functions(p);
    size_t n = pprof_function_count(p), i;

    for (i = 0; i < n; i++)
        add(m, pprof_text(p, f[i].name, NULL));
    if (m->c->n_matches || !m->n_word)
        return;
    m->inside = true;
    for (i = 0; i < n; i++)
        add(m, pprof_text(p, f[i].name, NULL));
}

/* Returns whether the matches are functions. */
static bool
add_values(struct matches *m, const struct pprof_profile *p, const char *name)
{
    /* Options whose value is an expression over functions. */
    static const char *const over_functions[] = {
        "focus", "ignore", "hide", "show", "show_from", "prune_from"};
    const struct cpprof__flag *s = cpprof__setting_find(name);
    size_t i;

    if (s && s->kind == CPPROF__FLAG_CHOICE)
        add_choices(m, s);
    else if (strcmp(name, "sample_index") == 0)
        add_types(m, p);
    else if (s && cpprof__flag_is_bool(s)) {
        add(m, "true");
        add(m, "false");
    } else {
        for (i = 0; i < sizeof over_functions / sizeof over_functions[0]; i++)
            if (strcmp(over_functions[i], name) == 0) {
                add_functions(m, p);
                return true;
            }
    }
    return false;
}

/* ------------------------------------------------------------- words ---- */

/* Turn an expression that we made back into its text, in place. */
static void
unescape(char *text)
{
    char *to = text;

    for (; *text; text++) {
        if (*text == '\\' && text[1] == 's') {
            *to++ = ' ';
            text++;
        } else if (*text == '\\' && text[1] && strchr(SPECIAL, text[1]))
            *to++ = *++text;
        else
            *to++ = *text;
    }
    *to = '\0';
}

/* The first n bytes of a name, as an expression if `escape`. Room for `end`. */
static char *
made_text(const char *name, size_t n, bool escape, const char *end)
{
    char *text = malloc(2 * n + strlen(end) + 1), *to = text;
    size_t i;

    for (i = 0; text && i < n; i++) {
        bool blank = strchr(BLANKS, name[i]) != NULL;

        if (escape && (blank || strchr(SPECIAL, name[i])))
            *to++ = '\\';
        *to++ = name[i];
        if (escape && blank)
            to[-1] = 's';
    }
    if (text)
        strcpy(to, end);
    return text;
}

/* A line up to the cursor, cut into its parts. */
struct context {
    char *line;  /* a copy up to the cursor */
    char *first; /* its first word, cut */
    char *word;  /* what is to be completed */
    char *name;  /* what is assigned to, or NULL */
    bool is_first;
};

static bool
find_context(struct context *context, const char *line, size_t cursor)
{
    char *equals;

    context->line = strndup(line, cursor);
    if (!context->line)
        return false;
    context->name = NULL;
    context->first = context->line + strspn(context->line, BLANKS);
    equals = strchr(context->first, '=');
    context->word = context->line + strlen(context->line);
    while (context->word > context->first && !strchr(BLANKS, context->word[-1]))
        context->word--;
    context->is_first = context->word == context->first;
    context->first[strcspn(context->first, BLANKS "=")] =
        context->is_first && !equals ? context->first[strlen(context->first)]
                                     : '\0';
    if (equals && cpprof__setting_find(context->first)) {
        context->name = context->first;
        if (context->word <= equals)
            context->word = equals + 1;
        context->is_first = false;
    }
    return true;
}

/* Fill matches for the word at the cursor. Returns whether they are functions.
 */
static bool
find_matches(struct matches *m, const struct context *context,
             const struct pprof_profile *p)
{
    static const char *const own[] = {"help", "options", "quit", "exit"};
    size_t i;

    if (context->name)
        return add_values(m, p, context->name);
    if (context->is_first || strcmp(context->first, "help") == 0) {
        add_commands(m);
        add_settings(m);
        for (i = 0; context->is_first && i < sizeof own / sizeof own[0]; i++)
            add(m, own[i]);
        if (context->is_first && m->n_word) /* else they would hide the rest */
            add_types(m, p);
        return false;
    }
    if (strcmp(context->first, "tags") == 0 ||
        strcmp(context->first, "o") == 0 ||
        strcmp(context->first, "options") == 0)
        return false;
    add_functions(m, p);
    return true;
}

bool
cpprof__complete(const struct pprof_profile *profile, const char *line,
                 size_t cursor, struct cpprof__completion *c)
{
    struct matches m = {.c = c};
    struct context context;
    bool functions, ok = true;

    memset(c, 0, sizeof *c);
    if (!find_context(&context, line, cursor))
        return false;
    if (*context.word == '-' && !context.is_first && !context.name)
        context.word++;
    c->n_replaced = strlen(context.word);
    unescape(context.word);
    m.word = context.word;
    m.n_word = strlen(context.word);
    functions = find_matches(&m, &context, profile);
    if (c->n_matches == 1 ||
        (c->n_matches && !m.inside && m.n_common > m.n_word)) {
        const char *name = c->listed[0], *end = "";

        /* A complete word gets a blank, an option that needs a value "=". */
        if (c->n_matches == 1 && context.is_first) {
            const struct cpprof__flag *s = cpprof__setting_find(name);

            end = s && !cpprof__setting_is_bool(s, name) ? "=" : " ";
        } else if (c->n_matches == 1 && !context.name) {
            end = " ";
        }
        c->text = made_text(name, m.n_common, functions, end);
        ok = c->text != NULL;
    }
    free(context.line);
    return ok;
}

void
cpprof__completion_free(struct cpprof__completion *c)
{
    free(c->text);
    c->text = NULL;
}
