/* SPDX-License-Identifier: MIT */
/*
 * gzip in whole buffers, on libdeflate. A stream is a series of members, which
 * every reader of gzip accepts (RFC 1952, 2.2).
 */
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include "base/buffer.h"
#include <cpprof/status.h>

/* Append data as one gzip member to out; level 1 (fastest) to 12. */
enum cpprof_status
cpprof__gzip(struct cpprof__buffer *out, const void *data, size_t n, int level,
             struct cpprof_error *error);

/*
 * Append the rest of a member of which the beginning is known: its header, and
 * `n_before` bytes with the CRC-32 `crc` as deflate blocks that end with a byte
 * and of which none is the last.
 */
enum cpprof_status
cpprof__gzip_rest(struct cpprof__buffer *out, uint32_t crc, size_t n_before,
                  const void *data, size_t n, int level,
                  struct cpprof_error *error);

/* Does data begin like gzip? */
bool
cpprof__is_gzip(const void *data, size_t n);

#endif
