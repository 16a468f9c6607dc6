/* SPDX-License-Identifier: MIT */
/*
 * Units of measurement: bytes, seconds and GCUs in all their sizes, and how a
 * value is printed. Source: internal/measurement.
 */
#ifndef PROFILE_UNIT_H
#define PROFILE_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A value of unit `from` in unit `to`, which may be "minimum" or "auto" for
 * the largest one that leaves at least 1. *scaled is the number; returns the
 * unit to print behind it: a static text, `to`, or "" where there is nothing
 * to say.
 */
const char *
cpprof__scale(int64_t value, const char *from, const char *to, double *scaled);

/* Are values of one unit convertible to the other? */
bool
cpprof__units_match(const char *a, const char *b);

/* Room for a number of two decimals and a short unit; longer is cut. */
#define CPPROF__LABEL_TEXT 400

/* "1.50s": scaled, at most two decimals; "0" without a unit. */
void
cpprof__scaled_label(char text[CPPROF__LABEL_TEXT], int64_t value,
                     const char *from, const char *to);

/* "12.34%", at least two digits, " 100%"-wide; of 0: "0%". */
#define CPPROF__PERCENT_TEXT 32
void
cpprof__percentage(char text[CPPROF__PERCENT_TEXT], int64_t value,
                   int64_t total);

/* A double as a 64-bit number as Go converts it: out of range is the least
 * number. */
int64_t
cpprof__to_int64(double v);

/* The nearest number, of two the one further from 0. */
int64_t
cpprof__round(double v);

#endif
