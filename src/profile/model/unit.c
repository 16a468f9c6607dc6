/* SPDX-License-Identifier: MIT */
/*
 * Units of measurement: one table for each kind (bytes, time, GCUs) with the
 * factor of each unit to the smallest one.
 *
 * A value is scaled by way of the smallest unit. "auto" and "minimum" choose
 * the largest unit in which the value is at least 1. A value whose unit is in
 * no table is printed as it is.
 */
#include "profile/model/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct unit {
    const char *name;
    const char *aliases[3]; /* lower case, without a plural s */
    double factor;          /* in the smallest of its kind */
};

struct unit_kind {
    struct unit units[10]; /* ends with {0} */
    const char *otherwise; /* the unit when the wanted one is of another kind */
    double otherwise_factor;
};

static const struct unit_kind kinds[] = {
    {{{"B", {"b", "byte"}, 1},
      {"kB", {"kb", "kbyte", "kilobyte"}, 0x1p10},
      {"MB", {"mb", "mbyte", "megabyte"}, 0x1p20},
      {"GB", {"gb", "gbyte", "gigabyte"}, 0x1p30},
      {"TB", {"tb", "tbyte", "terabyte"}, 0x1p40},
      {"PB", {"pb", "pbyte", "petabyte"}, 0x1p50},
      {0}},
     "B",
     1},
    {{{"ns", {"ns", "nanosecond"}, 1},
      {"us", {"us", "microsecond"}, 1e3},
      {"ms", {"ms", "millisecond"}, 1e6},
      {"s", {"s", "sec", "second"}, 1e9},
      {"hrs", {"hour", "hr"}, 3600e9},
      {0}},
     "s",
     1e9},
    {{{"n*GCU", {"nanogcu"}, 1e-9},
      {"u*GCU", {"microgcu"}, 1e-6},
      {"m*GCU", {"milligcu"}, 1e-3},
      {"GCU", {"gcu"}, 1},
      {"k*GCU", {"kilogcu"}, 1e3},
      {"M*GCU", {"megagcu"}, 1e6},
      {"G*GCU", {"gigagcu"}, 1e9},
      {"T*GCU", {"teragcu"}, 1e12},
      {"P*GCU", {"petagcu"}, 1e15},
      {0}},
     "GCU",
     1},
};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

/* Longer than any alias. */
#define UNIT_TEXT 16

/* Lower case and singular; false when it is too long to be a unit. */
static bool
normalise(const char *text, char out[UNIT_TEXT])
{
    size_t n = strlen(text), i;

    if (n >= UNIT_TEXT)
        return false;
    for (i = 0; i <= n; i++)
        out[i] = text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i];
    if (n > 2 && out[n - 1] == 's')
        out[n - 1] = 0;
    return true;
}

static const struct unit *
find(const struct unit_kind *kind, const char *text)
{
    const struct unit *u;
    char name[UNIT_TEXT];
    size_t i;

    if (!normalise(text, name))
        return NULL;
    for (u = kind->units; u->name; u++)
        for (i = 0; i < 3 && u->aliases[i]; i++)
            if (strcmp(name, u->aliases[i]) == 0)
                return u;
    return NULL;
}

bool
cpprof__units_match(const char *a, const char *b)
{
    size_t i;

    if (strcmp(a, b) == 0)
        return true;
    for (i = 0; i < N_KINDS; i++)
        if (find(&kinds[i], a) && find(&kinds[i], b))
            return true;
    return false;
}

/* The largest unit in which v is at least 1, or NULL. */
static const struct unit *
largest(const struct unit_kind *kind, double v)
{
    const struct unit *u, *best = NULL;

    for (u = kind->units; u->name; u++)
        if ((!best || u->factor >= best->factor) && v / u->factor >= 1.0)
            best = u;
    return best;
}

static bool
is_automatic(const char *to)
{
    return strcmp(to, "minimum") == 0 || strcmp(to, "auto") == 0;
}

static const char *
scale_kind(const struct unit_kind *kind, int64_t value, const struct unit *from,
           const char *to, double *scaled)
{
    double v = (double)value * from->factor;
    const struct unit *u = is_automatic(to) ? largest(kind, v) : find(kind, to);

    if (!u) {
        *scaled = v / kind->otherwise_factor;
        return kind->otherwise;
    }
    *scaled = v / u->factor;
    return u->name;
}

const char *
cpprof__scale(int64_t value, const char *from, const char *to, double *scaled)
{
    static const char *const silent[] = {"count", "sample", "unit", "minimum",
                                         "auto"};
    size_t i;

    if (value < 0 && value != INT64_MIN) {
        const char *unit = cpprof__scale(-value, from, to, scaled);

        *scaled = -*scaled;
        return unit;
    }
    for (i = 0; i < N_KINDS; i++) {
        const struct unit *u = find(&kinds[i], from);

        if (u)
            return scale_kind(&kinds[i], value, u, to, scaled);
    }
    *scaled = (double)value;
    for (i = 0; i < sizeof silent / sizeof silent[0]; i++)
        if (strcmp(to, silent[i]) == 0)
            return "";
    return to;
}

void
cpprof__scaled_label(char text[CPPROF__LABEL_TEXT], int64_t value,
                     const char *from, const char *to)
{
    double scaled;
    const char *unit = cpprof__scale(value, from, to, &scaled);
    int n = snprintf(text, CPPROF__LABEL_TEXT, "%.2f", scaled);

    if (n > 3 && strcmp(text + n - 3, ".00") == 0)
        n -= 3;
    text[n] = 0;
    if (strcmp(text, "0") == 0 || strcmp(text, "-0") == 0)
        strcpy(text, "0");
    else
        snprintf(text + n, (size_t)(CPPROF__LABEL_TEXT - n), "%s", unit);
}

void
cpprof__percentage(char text[CPPROF__PERCENT_TEXT], int64_t value,
                   int64_t total)
{
    double ratio = 0;

    if (total)
        ratio = fabs((double)value / (double)total) * 100;
    if (ratio >= 99.95 && ratio <= 100.05)
        strcpy(text, "  100%");
    else
        snprintf(text, CPPROF__PERCENT_TEXT,
                 ratio >= 1.0 ? "%5.2f%%" : "%5.2g%%", ratio);
}

int64_t
cpprof__round(double v)
{
    double size = v < 0 ? -v : v;
    int64_t whole = cpprof__to_int64(size);

    /* Larger ones have no fraction. */
    if (size < 0x1p52 && size - (double)whole >= 0.5)
        whole++;
    return v < 0 ? (int64_t) - (uint64_t)whole : whole;
}

int64_t
cpprof__to_int64(double v)
{
    return v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
}
