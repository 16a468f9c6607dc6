/* SPDX-License-Identifier: MIT */
/* Which characters Go prints as they are and which it escapes in a quoted
 * string. Source: Go strconv.IsPrint. */
#ifndef COLLECT_PRINTABLE_H
#define COLLECT_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character of two bytes or more that text, which is terminated, begins
 * with: its length, or 0 when it is not UTF-8. */
size_t
cpprof__read_rune(const char *text, uint32_t *rune);

bool
cpprof__is_printable(uint32_t rune);

#endif
