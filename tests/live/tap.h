/* SPDX-License-Identifier: MIT */
/*
 * Checks that print one TAP line each and both values when they fail.
 *
 * A name says condition and result. Not for use from several threads at once.
 */
#ifndef LIVE_TAP_H
#define LIVE_TAP_H

#include <stdbool.h>
#include <stdint.h>

bool
check(bool ok, const char *name);

/* got == want, >= least, <= most, and |got - want| <= tolerance. */
bool
check_equal(int64_t got, int64_t want, const char *name);
bool
check_at_least(double got, double least, const char *name);
bool
check_at_most(double got, double most, const char *name);
bool
check_near(double got, double want, double tolerance, const char *name);

/* The same text; part occurs in text. NULL text fails. */
bool
check_text(const char *got, const char *want, const char *name);
bool
check_has(const char *text, const char *part, const char *name);

/* For what is sampled: runs checks again until all hold in one run, for a
 * length of 1, then 2, 4 and so on. The last run counts, others are comments.
 */
void
check_tries(unsigned tries, void (*run)(unsigned length));

/* One line for a check that cannot be made here. */
void
check_skip(const char *name, const char *why);

/* The same, where ASan's own functions are in the way: whether they are. */
bool
check_skip_asan(const char *name, const char *why);

/* A diagnostic line. */
void
note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Something outside the test is broken: say so and end the program. */
void
bail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The plan, at the end; what main() returns. */
int
check_done(void);

/* Instead of any check: nothing of this program can be tested here. */
int
check_skip_all(const char *why);

#endif
