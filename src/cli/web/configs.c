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
#include "report/flame/stacks.h"

#include <math.h>
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

/* ---------------------------------------------------------------- make ---- */

/* A value of JSON, as pprof writes it. NULL: it cannot be one. */
static json_t *
value_of(const struct cpprof__flag *setting, const char *value)
{
    double number;
    char *end;

    if (is_text(setting))
        return json_string(value);
    if (!is_number(setting))
        return json_boolean(strcmp(value, "true") == 0);
    number = strtod(value, &end);
    if (*end || !isfinite(number))
        return NULL;
    return number == rint(number) && fabs(number) < 1e15
               ? json_integer((json_int_t)number)
               : json_real(number);
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

/* Go leaves these out. */
static bool
is_empty(const json_t *value)
{
    return json_is_false(value) ||
           (json_is_number(value) && json_number_value(value) == 0) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

/* Members of an old config that nobody here knows. */
static bool
keep_unknown(json_t *config, json_t *old)
{
    const char *key;
    json_t *value;

    json_object_foreach(
        old, key, value) if (index_of(key) == N_SAVED &&
                             strcmp(key, "name") != 0 &&
                             json_object_set(config, key, value)) return false;
    return true;
}

struct new
{
    const char *name;
    const struct cpprof__web_query *query;
};

/* The granularity is the view's own unless it was chosen. */
static json_t *
make_config(void *ctx, json_t *old, struct cpprof_error *error)
{
    const struct new *new = ctx;
    const struct cpprof__settings *settings = &new->query->settings;
    bool has_granularity =
        new->query->has_granularity ||
        settings->report.options.granularity != PPROF_REPORT_FUNCTIONS;
    json_t *config = json_object();
    bool ok = json_object_set_new(config, "name", json_string(new->name)) == 0;
    char text[CPPROF__SETTING_TEXT];
    size_t i;

    if (!ok)
        cpprof__fail(error, CPPROF_INVALID, 0, "invalid config name");
    for (i = 0; ok && i < N_SAVED; i++) {
        const struct cpprof__flag *setting = cpprof__setting_find(saved[i]);
        const char *value = cpprof__setting_get(settings, setting, text);
        json_t *made = value_of(setting, value);

        ok = made != NULL;
        if (!ok || is_empty(made) ||
            (!has_granularity && strcmp(saved[i], "granularity") == 0))
            json_decref(made);
        else
            ok = json_object_set_new(config, saved[i], made) == 0;
        if (!ok)
            cpprof__fail(error, CPPROF_INVALID, 0, "%s cannot be saved: %s",
                         saved[i], value);
    }
    if (ok && !keep_unknown(config, old)) {
        ok = false;
        cpprof__fail_nomem(error);
    }
    if (!ok)
        json_decref(config);
    return ok ? config : NULL;
}

/* ------------------------------------------------------------- answers ---- */

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
    else if (cpprof__configs_edit(q.config, removes ? NULL : make_config,
                                  &(struct new){q.config, &q},
                                  &error) != CPPROF_OK)
        status = cpprof__web_say(call, 400, error.text);
    else
        status = cpprof__web_send(call, 200, "text/plain; charset=utf-8", NULL,
                                  "", 0);
    cpprof__web_query_free(&q);
    return status;
}

/* A value of a config as the text of an option; what is missing, or of another
 * kind, is false, 0 or empty. */
static const char *
text_of(const struct cpprof__flag *setting, const json_t *value,
        char text[CPPROF__SETTING_TEXT])
{
    if (is_text(setting))
        return json_is_string(value) ? json_string_value(value) : "";
    if (!is_number(setting))
        return json_is_true(value) ? "true" : "false";
    snprintf(text, CPPROF__SETTING_TEXT, "%.15g", json_number_value(value));
    return text;
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
put_entry(struct cpprof__buffer *out, const json_t *config)
{
    const char *comma = "", *parameter;
    char text[CPPROF__SETTING_TEXT];
    size_t i;

    put(out, "{\"name\":");
    put_text(out, cpprof__config_name(config));
    put(out, ",\"parameters\":{");
    for (i = 0; i < N_SAVED; i++) {
        const struct cpprof__flag *setting = cpprof__setting_find(saved[i]);

        parameter = as_parameter(
            setting, text_of(setting, json_object_get(config, saved[i]), text));
        if (*parameter) {
            cpprof__buffer_printf(out, "%s\"%s\":", comma,
                                  cpprof__web_parameter(saved[i]));
            put_text(out, parameter);
            comma = ",";
        }
    }
    put(out, "}}");
}

enum cpprof_status
cpprof__web_send_configs(struct cpprof__web_call *call)
{
    struct cpprof_error error = {.text = ""};
    struct cpprof__buffer out = {0};
    json_t *settings = cpprof__configs_read(&error), *config;
    enum cpprof_status status;
    size_t i;

    put(&out, "{\"v\":1,\"saved\":[");
    for (i = 0; i < N_SAVED; i++)
        cpprof__buffer_printf(&out, "%s\"%s\"", i ? "," : "",
                              cpprof__web_parameter(saved[i]));
    put(&out, "],\"configs\":[");
    json_array_foreach(json_object_get(settings, "configs"), i, config)
    {
        put(&out, i ? "," : "");
        put_entry(&out, config);
    }
    put(&out, "],\"error\":");
    put_text(&out, error.text);
    put(&out, "}\n");
    status = out.failed ? cpprof__web_say(call, 500, "out of memory")
                        : cpprof__web_send(call, 200, "application/json", NULL,
                                           out.data, out.n);
    json_decref(settings);
    cpprof__buffer_free(&out);
    return status;
}
