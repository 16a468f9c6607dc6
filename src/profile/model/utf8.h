/* SPDX-License-Identifier: MIT */
#ifndef PROFILE_UTF8_H
#define PROFILE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The length of the character that n bytes, at least one, begin with, or 0
 * when they do not begin with one in UTF-8. */
size_t
cpprof__utf8_next(const char *text, size_t n, uint32_t *rune);

#endif
