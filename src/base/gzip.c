/* SPDX-License-Identifier: MIT */
#include "base/gzip.h"

#include "base/status.h"

#include <libdeflate.h>
#include <string.h>

enum cpprof_status
cpprof__gzip(struct cpprof__buffer *out, const void *data, size_t n, int level,
             struct cpprof_error *error)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
    size_t bound, made;

    if (!c)
        return cpprof__fail_nomem(error);
    bound = libdeflate_gzip_compress_bound(c, n);
    if (!cpprof__buffer_reserve(out, bound)) {
        libdeflate_free_compressor(c);
        return cpprof__fail_nomem(error);
    }
    made = libdeflate_gzip_compress(c, data, n, out->data + out->n, bound);
    libdeflate_free_compressor(c);
    if (!made)
        return cpprof__fail(error, CPPROF_LIMIT, 0, "gzip: output too small");
    out->n += made;
    return CPPROF_OK;
}

bool
cpprof__is_gzip(const void *data, size_t n)
{
    return n >= 2 && memcmp(data, "\x1f\x8b", 2) == 0;
}
