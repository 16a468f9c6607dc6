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

/* 0: it is none. One that is too large is the largest there is. */
uint64_t
cpprof__number(const char *text, size_t n);

#endif
