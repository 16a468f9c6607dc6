/* SPDX-License-Identifier: MIT */
/* Unpack gzip from anywhere; base/gzip.h packs. */
#ifndef PROFILE_GUNZIP_H
#define PROFILE_GUNZIP_H

#include "base/buffer.h"

#include <cpprof/status.h>

#include <stddef.h>
#include <stdint.h>

/*
 * Append the content of all members of data. If out would exceed max_bytes, the
 * result is CPPROF_LIMIT, and no more memory than that has been reserved.
 */
enum cpprof_status
cpprof__gunzip(struct cpprof__buffer *out, const void *data, size_t n,
               size_t max_bytes, struct cpprof_error *error);

/*
 * Count the bytes that the first member of data unpacks to, without keeping
 * them. Counting ends at the first count above `enough`. CPPROF_BAD_DATA if the
 * member is damaged or cut short before that, or CPPROF_NOMEM.
 */
enum cpprof_status
cpprof__gzip_size(const uint8_t *data, size_t n, size_t enough, size_t *size);

#endif
