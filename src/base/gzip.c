/* SPDX-License-Identifier: MIT */
#include "base/gzip.h"

#include "base/status.h"
#include "own/memory.h"

#include <libdeflate.h>
#include <string.h>

enum cpprof_status
cpprof__gzip(struct cpprof__buffer *out, const void *data, size_t n, int level,
             struct cpprof_error *error)
{
    struct libdeflate_compressor *c;
    size_t bound, made;

    cpprof__memory_for_deflate();
    c = libdeflate_alloc_compressor(level);
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

/* RFC 1952, 2.3.1: little-endian. */
static void
append_u32(struct cpprof__buffer *out, uint32_t v)
{
    const uint8_t bytes[] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
                             (uint8_t)(v >> 24)};

    cpprof__buffer_append(out, bytes, sizeof bytes);
}

enum cpprof_status
cpprof__gzip_rest(struct cpprof__buffer *out, uint32_t crc, size_t n_before,
                  const void *data, size_t n, int level,
                  struct cpprof_error *error)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
    size_t bound = c ? libdeflate_deflate_compress_bound(c, n) : 0;
    size_t made = 0;

    if (c && cpprof__buffer_reserve(out, bound))
        made =
            libdeflate_deflate_compress(c, data, n, out->data + out->n, bound);
    libdeflate_free_compressor(c);
    out->n += made;
    append_u32(out, libdeflate_crc32(crc, data, n));
    append_u32(out, (uint32_t)(n_before + n));
    return made && !out->failed ? CPPROF_OK : cpprof__fail_nomem(error);
}

bool
cpprof__is_gzip(const void *data, size_t n)
{
    return n >= 2 && memcmp(data, "\x1f\x8b", 2) == 0;
}
