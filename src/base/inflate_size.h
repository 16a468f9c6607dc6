/* SPDX-License-Identifier: MIT */
/*
 * What a gzip member unpacks to, counted without unpacking it: a few
 * kilobytes of compressed zeros may stand for as many megabytes, and libdeflate
 * finds out only by writing them.
 */
#ifndef BASE_INFLATE_SIZE_H
#define BASE_INFLATE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Count the bytes of the member that data begins with, up to the first count
 * above `enough`, which takes no longer than reading as much of data. False
 * when it is damaged or cut short before that; whatever libdeflate unpacks is
 * not.
 */
bool
cpprof__inflate_size(const uint8_t *data, size_t n, size_t enough,
                     size_t *size);

#endif
