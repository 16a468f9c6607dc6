/* SPDX-License-Identifier: MIT */
/* Which characters Go prints as they are and which it escapes in a quoted
 * string. Source: Go strconv.IsPrint. */
#ifndef COLLECT_PRINTABLE_H
#define COLLECT_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool
cpprof__is_printable(uint32_t rune);

#endif
