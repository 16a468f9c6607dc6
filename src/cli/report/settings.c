/* SPDX-License-Identifier: MIT */
/* Options by name. Source: internal/driver/config.go. */
#include "cli/report/settings.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const granularities[] = {
    /* ORDER: enum cpprof_report_granularity */
    "functions", "filefunctions", "files", "lines", "addresses", NULL};
static const char *const sorts[] = {"cum", "flat", NULL};

#define AT(member) offsetof(struct cpprof__report_flags, member)
#define STRING(name)                                                           \
    {                                                                          \
#name, CPPROF__SETTING_STRING, AT(options.name), 0, NULL               \
    }
#define DOUBLE(name)                                                           \
    {                                                                          \
#name, CPPROF__SETTING_DOUBLE, AT(options.name), 0, NULL               \
    }
#define FLAG(name, mask)                                                       \
    {                                                                          \
#name, CPPROF__SETTING_FLAG, AT(options.flags), mask, NULL             \
    }

const struct cpprof__setting cpprof__settings_table[CPPROF__N_SETTINGS] = {
    FLAG(call_tree, CPPROF_REPORT_CALL_TREE),
    FLAG(compact_labels, CPPROF_REPORT_COMPACT_LABELS),
    DOUBLE(divide_by),
    FLAG(drop_negative, CPPROF_REPORT_DROP_NEGATIVE),
    DOUBLE(edgefraction),
    STRING(focus),
    {"granularity", CPPROF__SETTING_CHOICE, AT(options.granularity), 0,
     granularities},
    STRING(hide),
    STRING(ignore),
    FLAG(intel_syntax, CPPROF_REPORT_INTEL_SYNTAX),
    FLAG(mean, CPPROF_REPORT_MEAN),
    {"nodecount", CPPROF__SETTING_INT, AT(options.nodecount), 0, NULL},
    DOUBLE(nodefraction),
    FLAG(noinlines, CPPROF_REPORT_NO_INLINES),
    {"normalize", CPPROF__SETTING_BOOL, AT(normalize), 0, NULL},
    {"output", CPPROF__SETTING_STRING, AT(output), 0, NULL},
    STRING(prune_from),
    FLAG(relative_percentages, CPPROF_REPORT_RELATIVE),
    STRING(sample_index),
    STRING(show),
    STRING(show_from),
    FLAG(showcolumns, CPPROF_REPORT_COLUMNS),
    {"sort", CPPROF__SETTING_SORT, AT(options.flags), CPPROF_REPORT_CUM, sorts},
    STRING(source_path),
    STRING(tagfocus),
    STRING(taghide),
    STRING(tagignore),
    STRING(tagleaf),
    STRING(tagroot),
    STRING(tagshow),
    {"trim", CPPROF__SETTING_UNFLAG, AT(options.flags), CPPROF_REPORT_NO_TRIM,
     NULL},
    STRING(trim_path),
    STRING(unit),
};

/* -------------------------------------------------------------- find ---- */

static bool
is_choice(const struct cpprof__setting *s, const char *name)
{
    const char *const *choice;

    for (choice = s->choices; choice && *choice; choice++)
        if (strcmp(*choice, name) == 0)
            return true;
    return false;
}

const struct cpprof__setting *
cpprof__setting_find(const char *name)
{
    const struct cpprof__setting *s = cpprof__settings_table;
    size_t i;

    for (i = 0; i < CPPROF__N_SETTINGS; i++)
        if (strcmp(s[i].name, name) == 0 || is_choice(&s[i], name))
            return &s[i];
    return NULL;
}

bool
cpprof__setting_is_bool(const struct cpprof__setting *s, const char *name)
{
    return s->kind == CPPROF__SETTING_BOOL || s->kind == CPPROF__SETTING_FLAG ||
           s->kind == CPPROF__SETTING_UNFLAG || strcmp(name, s->name) != 0;
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
    size_t i;

    for (i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(text, words[i]) == 0) {
            *value = i < 6;
            return true;
        }
    return false;
}

static bool
set_int(int32_t *at, const char *text, char reason[CPPROF__SETTING_TEXT])
{
    const char *digits = text + (*text == '-' || *text == '+');
    long n;

    if (!*digits || digits[strspn(digits, "0123456789")])
        return refuse(reason, "strconv.Atoi: parsing %s: invalid syntax", text,
                      NULL);
    errno = 0;
    n = strtol(text, NULL, 10);
    if (errno || n < INT32_MIN || n > INT32_MAX)
        return refuse(reason, "strconv.Atoi: parsing %s: value out of range",
                      text, NULL);
    *at = (int32_t)n;
    return true;
}

static bool
set_double(double *at, const char *text, char reason[CPPROF__SETTING_TEXT])
{
    char *end;
    double d = strtod(text, &end);

    if (!*text || *end)
        return refuse(reason, "strconv.ParseFloat: parsing %s: invalid syntax",
                      text, NULL);
    *at = d;
    return true;
}

static bool
set_string(struct cpprof__settings *settings, const struct cpprof__setting *s,
           const char **at, const char *text, char reason[CPPROF__SETTING_TEXT])
{
    char **owned = &settings->owned[s - cpprof__settings_table];
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

/* The bits of a flag; or bool. */
static bool
set_bool(struct cpprof__settings *settings, const struct cpprof__setting *s,
         void *at, const char *text, char reason[CPPROF__SETTING_TEXT])
{
    uint32_t *flags = &settings->report.options.flags;
    bool value;

    if (!parse_bool(text, &value)) {
        snprintf(reason, CPPROF__SETTING_TEXT,
                 "illegal value \"%.80s\" for bool variable", text);
        return false;
    }
    if (s->kind == CPPROF__SETTING_BOOL)
        *(bool *)at = value;
    else if (value == (s->kind == CPPROF__SETTING_FLAG))
        *flags |= s->mask;
    else
        *flags &= ~s->mask;
    return true;
}

static bool
set_choice(struct cpprof__settings *settings, const struct cpprof__setting *s,
           const char *text, char reason[CPPROF__SETTING_TEXT])
{
    struct cpprof_report_options *o = &settings->report.options;
    unsigned i;

    if (!is_choice(s, text))
        return refuse(reason, "invalid %s value %s", s->name, text);
    for (i = 0; strcmp(s->choices[i], text) != 0;)
        i++;
    if (s->kind == CPPROF__SETTING_CHOICE)
        o->granularity = (enum cpprof_report_granularity)i;
    else if (i == 0)
        o->flags |= s->mask;
    else
        o->flags &= ~s->mask;
    return true;
}

bool
cpprof__setting_set(struct cpprof__settings *settings, const char *name,
                    const char *value, char reason[CPPROF__SETTING_TEXT])
{
    const struct cpprof__setting *s = cpprof__setting_find(name);
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
    case CPPROF__SETTING_STRING:
        return set_string(settings, s, at, value, reason);
    case CPPROF__SETTING_INT:
        return set_int(at, value, reason);
    case CPPROF__SETTING_DOUBLE:
        return set_double(at, value, reason);
    case CPPROF__SETTING_CHOICE:
    case CPPROF__SETTING_SORT:
        return set_choice(settings, s, value, reason);
    default:
        return set_bool(settings, s, at, value, reason);
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
                    const struct cpprof__setting *s,
                    char text[CPPROF__SETTING_TEXT])
{
    const struct cpprof_report_options *o = &settings->report.options;
    const void *at = (const char *)&settings->report + s->offset;
    const char *string;

    switch (s->kind) {
    case CPPROF__SETTING_STRING:
        string = *(const char *const *)at;
        return string ? string : "";
    case CPPROF__SETTING_INT:
        snprintf(text, CPPROF__SETTING_TEXT, "%d", *(const int32_t *)at);
        return text;
    case CPPROF__SETTING_DOUBLE:
        print_double(*(const double *)at, text);
        return text;
    case CPPROF__SETTING_CHOICE:
        return s->choices[o->granularity];
    case CPPROF__SETTING_SORT:
        return s->choices[o->flags & s->mask ? 0 : 1];
    case CPPROF__SETTING_BOOL:
        return *(const bool *)at ? "true" : "false";
    default:
        return !(o->flags & s->mask) == (s->kind == CPPROF__SETTING_UNFLAG)
                   ? "true"
                   : "false";
    }
}

void
cpprof__settings_free(struct cpprof__settings *settings)
{
    size_t i;

    for (i = 0; i < CPPROF__N_SETTINGS; i++)
        free(settings->owned[i]);
}
