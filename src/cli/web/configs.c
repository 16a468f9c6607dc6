/* SPDX-License-Identifier: MIT */
/*
 * Saved configs: options of reports under a name, in the file where pprof's
 * page has them, so that both show the same ones.
 *
 * A member of a config that is missing is false, 0 or empty, as Go reads it,
 * whatever the default of the option is; one that is that is not written.
 * Source: internal/driver settings.go, config.go.
 */
#include "cli/web/web.h"

#include "base/status.h"
#include "cli/web/configs_file.h"
#include "cli/web/json.h"
#include "report/flame/stacks.h"

#include <stdlib.h>
#include <string.h>

/* What a config has, in the order in which pprof writes it. */
static const char *const saved[] = {
    "call_tree",     "relative_percentages",
    "unit",          "compact_labels",
    "intel_syntax",  "mean",
    "normalize",     "sort",
    "tagroot",       "tagleaf",
    "drop_negative", "nodecount",
    "nodefraction",  "edgefraction",
    "trim",          "focus",
    "ignore",        "prune_from",
    "hide",          "show",
    "show_from",     "tagfocus",
    "tagignore",     "tagshow",
    "taghide",       "noinlines",
    "showcolumns",   "granularity",
};

#define N_SAVED (sizeof saved / sizeof saved[0])

static bool
is_text(const struct cpprof__flag *setting)
{
    return setting->kind == CPPROF__FLAG_STRING ||
           setting->kind == CPPROF__FLAG_CHOICE;
}

static bool
is_number(const struct cpprof__flag *setting)
{
    return setting->kind == CPPROF__FLAG_INT ||
           setting->kind == CPPROF__FLAG_DOUBLE;
}

/* --------------------------------------------------------------- print ---- */

static void
put(struct cpprof__buffer *out, const char *text)
{
    cpprof__buffer_append(out, text, strlen(text));
}

static void
put_text(struct cpprof__buffer *out, const char *text)
{
    cpprof__json_text(out, text, strlen(text));
}

/* What Go would leave out is left out. False: no number of JSON. */
static bool
put_setting(struct cpprof__buffer *out, const struct cpprof__flag *setting,
            const char *value)
{
    bool is_word = !is_text(setting) && !is_number(setting);

    if (!*value || (is_word && strcmp(value, "true") != 0) ||
        (is_number(setting) && strtod(value, NULL) == 0))
        return true;
    cpprof__buffer_printf(out, ",\n      \"%s\": ", setting->name);
    if (is_text(setting))
        put_text(out, value);
    else
        put(out, value);
    return !is_number(setting) ||
           strspn(value, "+-.0123456789e") == strlen(value);
}

/* In `saved`; N_SAVED: it is not there. */
static size_t
index_of(const char *name)
{
    size_t i = 0;

    while (i < N_SAVED && strcmp(saved[i], name) != 0)
        i++;
    return i;
}

/* Members of an old config that nobody here knows. */
static void
put_unknown(struct cpprof__buffer *out, struct cpprof__configs_part old)
{
    struct cpprof__json json = {old.at, old.end, false};
    const char *from;
    size_t n = 0;
    char *key;

    while (old.at && cpprof__json_next(&json, '{', &n)) {
        key = cpprof__json_name(&json);
        cpprof__json_skip(&json, &from);
        if (key && index_of(key) == N_SAVED && strcmp(key, "name") != 0) {
            put(out, ",\n      ");
            put_text(out, key);
            put(out, ": ");
            cpprof__buffer_append(out, from, (size_t)(json.at - from));
        }
        free(key);
    }
}

struct new
{
    const char *name;
    const struct cpprof__web_query *query;
};

/* A config as its text. The granularity is the view's own unless it was chosen.
 */
static enum cpprof_status
print_config(void *ctx, struct cpprof__configs_part old,
             struct cpprof__buffer *out, struct cpprof_error *error)
{
    const struct new *new = ctx;
    const struct cpprof__settings *settings = &new->query->settings;
    bool has_granularity =
        new->query->has_granularity ||
        settings->report.options.granularity != PPROF_REPORT_FUNCTIONS;
    char text[CPPROF__SETTING_TEXT];
    size_t i;

    put(out, "{\n      \"name\": ");
    put_text(out, new->name);
    for (i = 0; i < N_SAVED; i++) {
        const struct cpprof__flag *setting = cpprof__setting_find(saved[i]);
        const char *value = cpprof__setting_get(settings, setting, text);

        if ((has_granularity || strcmp(saved[i], "granularity") != 0) &&
            !put_setting(out, setting, value))
            return cpprof__fail(error, CPPROF_INVALID, 0,
                                "%s cannot be saved: %s", saved[i], value);
    }
    put_unknown(out, old);
    put(out, "\n    }");
    return CPPROF_OK;
}

/* ------------------------------------------------------------- answers ---- */

enum cpprof_status
cpprof__web_edit_config(struct cpprof__web_call *call, bool removes)
{
    struct cpprof_error error = {.text = ""};
    char reason[CPPROF__SETTING_TEXT];
    struct cpprof__web_query q;
    enum cpprof_status status;

    if (!cpprof__web_query(call, &q, reason))
        status = cpprof__web_say(call, 400, reason);
    else if (!q.config || !*q.config)
        status = cpprof__web_say(call, 400, "invalid config name");
    else if (cpprof__configs_edit(q.config, removes ? NULL : print_config,
                                  &(struct new){q.config, &q},
                                  &error) != CPPROF_OK)
        status = cpprof__web_say(call, 400, error.text);
    else
        status = cpprof__web_send(call, 200, "text/plain; charset=utf-8", NULL,
                                  "", 0);
    cpprof__web_query_free(&q);
    return status;
}

/* The values in a config as texts, in the order of `saved`; NULL: none. */
static void
read_values(struct cpprof__configs_part config, char *values[N_SAVED])
{
    struct cpprof__json json = {config.at, config.end, false};
    const struct cpprof__flag *setting;
    const char *from;
    size_t n = 0, i;
    char *key;

    while (cpprof__json_next(&json, '{', &n)) {
        key = cpprof__json_name(&json);
        i = key ? index_of(key) : N_SAVED;
        free(key);
        setting = i < N_SAVED ? cpprof__setting_find(saved[i]) : NULL;
        if (!setting || (cpprof__json_peek(&json) == '"') != is_text(setting)) {
            cpprof__json_skip(&json, &from);
            continue;
        }
        free(values[i]);
        if (is_text(setting)) {
            values[i] = cpprof__json_string(&json);
        } else {
            cpprof__json_skip(&json, &from);
            values[i] = strndup(from, (size_t)(json.at - from));
        }
    }
}

/* The value as that of a parameter: nothing for the default, and a letter for a
 * bool. */
static const char *
as_parameter(const struct cpprof__flag *setting, const char *value)
{
    const struct pprof_report_options defaults = PPROF_REPORT_DEFAULTS;
    struct cpprof__settings plain = {.report.options = defaults};
    char text[CPPROF__SETTING_TEXT];
    const char *standard = cpprof__setting_get(&plain, setting, text);

    if (is_number(setting))
        return strtod(value, NULL) == strtod(standard, NULL) ? "" : value;
    if (is_text(setting))
        return strcmp(value, standard) == 0 &&
                       strcmp(setting->name, "granularity") != 0
                   ? ""
                   : value;
    return strcmp(value, standard) == 0 ? "" : *value == 't' ? "t" : "f";
}

static void
put_entry(struct cpprof__buffer *out, const struct cpprof__config *config)
{
    const char *comma = "", *parameter;
    char *values[N_SAVED] = {NULL};
    size_t i;

    read_values(config->part, values);
    put(out, "{\"name\":");
    put_text(out, config->name);
    put(out, ",\"parameters\":{");
    for (i = 0; i < N_SAVED; i++) {
        const struct cpprof__flag *setting = cpprof__setting_find(saved[i]);

        parameter = as_parameter(setting, values[i]            ? values[i]
                                          : is_text(setting)   ? ""
                                          : is_number(setting) ? "0"
                                                               : "false");
        if (*parameter) {
            cpprof__buffer_printf(out, "%s\"%s\":", comma,
                                  cpprof__web_parameter(saved[i]));
            put_text(out, parameter);
            comma = ",";
        }
        free(values[i]);
    }
    put(out, "}}");
}

enum cpprof_status
cpprof__web_send_configs(struct cpprof__web_call *call)
{
    struct cpprof_error error = {.text = ""};
    struct cpprof__buffer out = {0};
    struct cpprof__configs configs;
    enum cpprof_status status = cpprof__configs_read(&configs, &error);
    size_t i;

    put(&out, "{\"v\":1,\"saved\":[");
    for (i = 0; i < N_SAVED; i++)
        cpprof__buffer_printf(&out, "%s\"%s\"", i ? "," : "",
                              cpprof__web_parameter(saved[i]));
    put(&out, "],\"configs\":[");
    for (i = 0; status == CPPROF_OK && i < configs.configs.n; i++) {
        put(&out, i ? "," : "");
        put_entry(&out, &configs.configs.at[i]);
    }
    put(&out, "],\"error\":");
    put_text(&out, error.text);
    put(&out, "}\n");
    status = out.failed ? cpprof__web_say(call, 500, "out of memory")
                        : cpprof__web_send(call, 200, "application/json", NULL,
                                           out.data, out.n);
    cpprof__configs_free(&configs);
    cpprof__buffer_free(&out);
    return status;
}
