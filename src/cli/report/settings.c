/* SPDX-License-Identifier: MIT */
/*
 * Options of the shell by name: set from text, printed, and checked.
 *
 * An option is a row of the table of flags; its value lies at an offset in
 * struct cpprof__report_flags, so the command line and the shell set the same
 * fields.
 *
 * Source: internal/driver/config.go.
 */
#include "cli/report/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* -------------------------------------------------------------- find ---- */

const struct cpprof__flag *
cpprof__setting(size_t i)
{
    const struct cpprof__flag *flag;
    size_t at;

    for (at = 0; (flag = cpprof__report_flag_by_name(at)) != NULL; at++)
        if (flag->in_shell && i-- == 0)
            return flag;
    return NULL;
}

const struct cpprof__flag *
cpprof__setting_find(const char *name)
{
    const struct cpprof__flag *flag = cpprof__report_flag(name);

    if (flag && flag->group)
        flag = cpprof__report_flag(flag->group);
    return flag && flag->in_shell &&
                   (flag->kind == CPPROF__FLAG_CHOICE ||
                    strcmp(flag->name, name) == 0)
               ? flag
               : NULL;
}

static bool
is_sort(const struct cpprof__flag *s)
{
    return strcmp(s->name, "sort") == 0;
}

bool
cpprof__setting_is_bool(const struct cpprof__flag *s, const char *name)
{
    return cpprof__flag_is_bool(s) || strcmp(name, s->name) != 0;
}

/* --------------------------------------------------------------- set ---- */

static bool
refuse(char reason[CPPROF__SETTING_TEXT], const char *format, const char *a,
       const char *b)
{
    char quoted[2][80];

    snprintf(reason, CPPROF__SETTING_TEXT, format,
             cpprof__quoted(a, quoted[0], sizeof quoted[0]),
             b ? cpprof__quoted(b, quoted[1], sizeof quoted[1]) : "");
    return false;
}

const char *
cpprof__quoted(const char *text, char *out, size_t n_bytes)
{
    size_t n = 0;

    out[n++] = '"';
    for (; *text && n + 6 < n_bytes; text++) {
        if (*text == '"' || *text == '\\')
            out[n++] = '\\';
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            n += (size_t)snprintf(out + n, 5, "\\x%02x", (unsigned)*text);
        else
            out[n++] = *text;
    }
    out[n++] = '"';
    out[n] = '\0';
    return out;
}

/* "" is true: a bare word switches on. */
static bool
parse_bool(const char *text, bool *value)
{
    static const char *const words[] = {"true",  "t", "yes", "y", "1", "",
                                        "false", "f", "no",  "n", "0"};

    return cpprof__parse_bool(text, words, sizeof words / sizeof *words,
                              strcasecmp, value);
}

static bool
set_string(struct cpprof__settings *settings, const struct cpprof__flag *s,
           const char **at, const char *text, char reason[CPPROF__SETTING_TEXT])
{
    char **owned = &settings->owned[s - cpprof__report_flag_table];
    char *copy = strdup(text);

    if (!copy) {
        snprintf(reason, CPPROF__SETTING_TEXT, "out of memory");
        return false;
    }
    free(*owned);
    *owned = copy;
    *at = copy;
    return true;
}

static bool
set_choice(struct cpprof__settings *settings, const struct cpprof__flag *s,
           const char *text, char reason[CPPROF__SETTING_TEXT])
{
    struct pprof_report_options *o = &settings->report.options;
    const struct cpprof__flag *word;
    size_t i;

    for (i = 0; (word = cpprof__report_choice(s->name, i)) &&
                strcmp(word->name, text) != 0;)
        i++;
    if (!word)
        return refuse(reason, "invalid %s value %s", s->name, text);
    if (!is_sort(s))
        o->granularity = (enum pprof_report_granularity)i;
    else if (i == CPPROF__CUM)
        o->flags |= PPROF_REPORT_CUM;
    else
        o->flags &= ~PPROF_REPORT_CUM;
    return true;
}

bool
cpprof__setting_set(struct cpprof__settings *settings, const char *name,
                    const char *value, char reason[CPPROF__SETTING_TEXT])
{
    const struct cpprof__flag *s = cpprof__setting_find(name);
    bool on;
    void *at;

    if (s && strcmp(s->name, name) != 0) {
        /* A choice: `cum=1`; neither `cum=0` nor, there, `cum` mean any. */
        if (*value && parse_bool(value, &on) && on)
            return set_choice(settings, s, name, reason);
        return refuse(reason, "unknown config field %s", name, NULL);
    }
    if (!s)
        return refuse(reason, "unknown config field %s", name, NULL);
    at = (char *)&settings->report + s->offset;
    switch (s->kind) {
    case CPPROF__FLAG_STRING:
        return set_string(settings, s, at, value, reason);
    case CPPROF__FLAG_INT:
        if (cpprof__parse_int(value, 10, at))
            return true;
        return refuse(reason,
                      errno == ERANGE
                          ? "strconv.Atoi: parsing %s: value out of range"
                          : "strconv.Atoi: parsing %s: invalid syntax",
                      value, NULL);
    case CPPROF__FLAG_DOUBLE:
        return cpprof__parse_double(value, at) ||
               refuse(reason, "strconv.ParseFloat: parsing %s: invalid syntax",
                      value, NULL);
    case CPPROF__FLAG_CHOICE:
        return set_choice(settings, s, value, reason);
    default:
        if (parse_bool(value, &on)) {
            cpprof__set_bool_flag(s, &settings->report, on);
            return true;
        }
        snprintf(reason, CPPROF__SETTING_TEXT,
                 "illegal value \"%.80s\" for bool variable", value);
        return false;
    }
}

/* --------------------------------------------------------------- get ---- */

/* As Go prints a float64: the fewest digits that read back as the same. */
static void
print_double(double d, char text[CPPROF__SETTING_TEXT])
{
    int digits, exponent = 0;
    const char *e;

    for (digits = 0; digits < 17; digits++) {
        snprintf(text, CPPROF__SETTING_TEXT, "%.*e", digits, d);
        if (strtod(text, NULL) == d)
            break;
    }
    e = strchr(text, 'e');
    if (e)
        exponent = atoi(e + 1);
    if (e && exponent >= -4 && exponent < 6) /* else it is as it has to be */
        snprintf(text, CPPROF__SETTING_TEXT, "%.*f",
                 digits > exponent ? digits - exponent : 0, d);
}

const char *
cpprof__setting_get(const struct cpprof__settings *settings,
                    const struct cpprof__flag *s,
                    char text[CPPROF__SETTING_TEXT])
{
    const struct pprof_report_options *o = &settings->report.options;
    const void *at = (const char *)&settings->report + s->offset;
    const char *string;

    switch (s->kind) {
    case CPPROF__FLAG_STRING:
        string = *(const char *const *)at;
        return string ? string : "";
    case CPPROF__FLAG_INT:
        snprintf(text, CPPROF__SETTING_TEXT, "%d", *(const int32_t *)at);
        return text;
    case CPPROF__FLAG_DOUBLE:
        print_double(*(const double *)at, text);
        return text;
    case CPPROF__FLAG_CHOICE:
        return cpprof__report_choice(
                   s->name, is_sort(s) ? (o->flags & PPROF_REPORT_CUM) != 0
                                       : o->granularity)
            ->name;
    case CPPROF__FLAG_BOOL:
        return *(const bool *)at ? "true" : "false";
    default:
        return !(o->flags & s->mask) == (s->kind == CPPROF__FLAG_UNBITS)
                   ? "true"
                   : "false";
    }
}

void
cpprof__settings_free(struct cpprof__settings *settings)
{
    size_t i;

    for (i = 0; i < CPPROF__MAX_REPORT_FLAGS; i++)
        free(settings->owned[i]);
}
