/* SPDX-License-Identifier: MIT */
/*
 * The parameters of a request. Those of pprof's page have its names, and mean
 * options of reports, which are set as the shell sets them. An empty value
 * clears an option, also one of the command line. Source: internal/driver
 * config.go, webui.go.
 */
#include "cli/web/web.h"

#include "cli/commands.h"

#include "report/flame/stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of parameters that are options. Those that are missing have the name of
 * their option. */
static const struct {
    const char *parameter, *setting;
} names[] = {
    {"f", "focus"},
    {"i", "ignore"},
    {"h", "hide"},
    {"s", "show"},
    {"sf", "show_from"},
    {"prunefrom", "prune_from"},
    {"tf", "tagfocus"},
    {"ti", "tagignore"},
    {"tb", "tagbase"},
    {"ts", "tagshow"},
    {"th", "taghide"},
    {"tr", "tagroot"},
    {"tl", "tagleaf"},
    {"g", "granularity"},
    {"si", "sample_index"},
    {"n", "nodecount"},
    {"nf", "nodefraction"},
    {"ef", "edgefraction"},
    {"trim", "trim"},
    {"sort", "sort"},
    {"unit", "unit"},
    {"rel", "relative_percentages"},
    {"mean", "mean"},
    {"norm", "normalize"},
    {"dropneg", "drop_negative"},
    {"calltree", "call_tree"},
    {"compact", "compact_labels"},
    {"intel", "intel_syntax"},
    {"noinlines", "noinlines"},
    {"showcolumns", "showcolumns"},
    {"rec", "fold_recursion"},
};

const char *
cpprof__web_parameter(const char *setting)
{
    size_t i = 0;

    while (i + 1 < sizeof names / sizeof names[0] &&
           strcmp(names[i].setting, setting) != 0)
        i++;
    return names[i].parameter;
}

/* ------------------------------------------------------------ decoding ---- */

static int
hex(char c)
{
    const char *digits = "0123456789abcdef";
    const char *at = c ? strchr(digits, c | (c >= 'A' ? 32 : 0)) : NULL;

    return at ? (int)(at - digits) : -1;
}

/* Decode in place. False: a bad escape, or a NUL. */
static bool
decode(char *text)
{
    char *to = text;

    for (; *text; text++, to++) {
        *to = *text == '+' ? ' ' : *text;
        if (*text != '%')
            continue;
        if (hex(text[1]) < 0 || hex(text[2]) < 0)
            return false;
        *to = (char)(hex(text[1]) << 4 | hex(text[2]));
        if (!*to)
            return false;
        text += 2;
    }
    *to = 0;
    return true;
}

/* ----------------------------------------------------------- parameters ----
 */

static bool
is_true(const char *value)
{
    return strcmp(value, "t") == 0 || strcmp(value, "true") == 0 ||
           strcmp(value, "1") == 0;
}

/* What only the page asks for; false: it is something else. */
static bool
take_own(struct cpprof__web_query *q, const char *name, const char *value)
{
    if (strcmp(name, "p") == 0)
        q->pivot = *value ? value : NULL;
    else if (strcmp(name, "q") == 0)
        q->search = *value ? value : NULL;
    else if (strcmp(name, "z") == 0)
        q->zoom = *value ? value : NULL;
    else if (strcmp(name, "sym") == 0)
        q->symbol = value;
    else if (strcmp(name, "config") == 0)
        q->config = value;
    else if (strcmp(name, "w") == 0)
        q->width = strtod(value, NULL);
    else if (strcmp(name, "max") == 0)
        q->max = strtoull(value, NULL, 10);
    else if (strcmp(name, "inv") == 0)
        q->inverted = is_true(value);
    else if (strcmp(name, "callers") == 0)
        q->callers = is_true(value);
    else if (strcmp(name, "gz") == 0)
        q->packed = is_true(value);
    else
        return false;
    return true;
}

static bool
take(struct cpprof__web_query *q, const char *name, const char *value,
     char reason[CPPROF__SETTING_TEXT])
{
    const struct pprof_report_options defaults = PPROF_REPORT_DEFAULTS;
    const struct cpprof__flag *setting = NULL;
    struct cpprof__settings plain = {.owned = {0}};
    char text[CPPROF__SETTING_TEXT];
    size_t i;

    if (take_own(q, name, value))
        return true;
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].parameter, name) == 0)
            setting = cpprof__setting_find(names[i].setting);
    q->has_granularity |= strcmp(name, "g") == 0 && *value;
    /* Others are the page's own business. */
    if (!setting)
        return true;
    if (!*value && setting->kind != CPPROF__FLAG_STRING) {
        plain.report.options = defaults;
        value = cpprof__setting_get(&plain, setting, text);
    }
    return cpprof__setting_set(&q->settings, setting->name, value, reason);
}

bool
cpprof__web_query(const struct cpprof__web_call *call,
                  struct cpprof__web_query *q,
                  char reason[CPPROF__SETTING_TEXT])
{
    const char *query = call->request->query ? call->request->query : "";
    const struct pprof_report_options defaults = PPROF_REPORT_DEFAULTS;
    char *part, *next, *value;
    bool ok = true;

    memset(q, 0, sizeof *q);
    q->settings.report = call->web->flags;
    if (call->is_whole)
        q->settings.report.options = defaults;
    q->text = next = strdup(query);
    snprintf(reason, CPPROF__SETTING_TEXT, "out of memory");
    ok = q->text;
    while (ok && (part = strsep(&next, "&"))) {
        value = strchr(part, '=');
        if (value)
            *value++ = 0;
        snprintf(reason, CPPROF__SETTING_TEXT, "a bad escape in the address");
        ok = decode(part) && (!value || decode(value)) &&
             take(q, part, value ? value : "", reason);
    }
    return ok;
}

void
cpprof__web_query_free(struct cpprof__web_query *q)
{
    cpprof__settings_free(&q->settings);
    free(q->text);
}

/* --------------------------------------------------------------- start ---- */

static void
print_text(struct cpprof__buffer *out, const char *text)
{
    cpprof__json_text(out, text, strlen(text));
}

static void
print_list(struct cpprof__buffer *out, const char *name, char *const *words,
           int n)
{
    int i;

    cpprof__buffer_printf(out, ",\"%s\":[", name);
    for (i = 0; i < n; i++) {
        cpprof__buffer_printf(out, i ? "," : "");
        print_text(out, words[i]);
    }
    cpprof__buffer_printf(out, "]");
}

void
cpprof__web_print_start(const struct cpprof__web *web,
                        struct cpprof__buffer *out)
{
    struct cpprof__settings now = {.report = web->flags},
                            plain = {.owned = {0}};
    const struct pprof_report_options defaults = PPROF_REPORT_DEFAULTS;
    char text[CPPROF__SETTING_TEXT], other[CPPROF__SETTING_TEXT];
    const struct cpprof__flag *flag;
    const char *comma = "";
    size_t i;

    plain.report.options = defaults;
    cpprof__buffer_printf(out, "\"settings\":{");
    for (i = 0; (flag = cpprof__setting(i)) != NULL; i++) {
        const char *value = cpprof__setting_get(&now, flag, text);

        if (strcmp(value, cpprof__setting_get(&plain, flag, other)) == 0)
            continue;
        cpprof__buffer_printf(out, "%s\"%s\":", comma, flag->name);
        print_text(out, value);
        comma = ",";
    }
    cpprof__buffer_printf(out, "},\"parameters\":{");
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        cpprof__buffer_printf(out, "%s\"%s\":\"%s\"", i ? "," : "",
                              names[i].parameter, names[i].setting);
    cpprof__buffer_printf(out, "},\"base_flag\":\"%s\"",
                          web->flags.diff_base ? "diff_base" : "base");
    print_list(out, "bases", web->flags.bases.at, web->flags.bases.n);
    print_list(out, "sources",
               cpprof__live ? (char *const *)&cpprof__live->words
                            : web->flags.sources,
               cpprof__live ? 1 : web->flags.n_sources);
}
