/* SPDX-License-Identifier: MIT */
/*
 * A number as Go's source has it: decimal, 0x, 0o, 0b, 0 for octal, single
 * underscores between digits.
 *
 * Source: Go strconv (ParseUint with base 0).
 */
#ifndef HTTP_NUMBER_H
#define HTTP_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* Returns 0 for what is no number, and the largest value for one that is too
 * large. */
uint64_t
cpprof__number(const char *text, size_t n);

#endif
