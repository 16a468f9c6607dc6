/* SPDX-License-Identifier: MIT */
#include "base/gzip.h"

#include "base/status.h"

#include <libdeflate.h>
#include <string.h>

/* The smallest gzip member: 10 bytes of head, 2 of deflate, 8 of tail. */
#define MEMBER_MIN 20

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

/* What a member unpacks to is known only from its end, and for a file of
 * several members not even there; so guess, and double while it is short. */
static size_t
guess(const uint8_t *data, size_t n)
{
    uint32_t size;

    memcpy(&size, data + n - sizeof size, sizeof size);
    return size < n || size / 1032 > n ? n * 4 : size;
}

static enum cpprof_status
member(struct libdeflate_decompressor *d, struct cpprof__buffer *out,
       const uint8_t *data, size_t n, size_t max_bytes, size_t *used,
       struct cpprof_error *error)
{
    size_t room = guess(data, n);

    for (;; room *= 2) {
        enum libdeflate_result result;
        size_t made;
        size_t left = max_bytes > out->n ? max_bytes - out->n : 0;
        bool last = room >= left;

        if (last)
            room = left;
        if (!cpprof__buffer_reserve(out, room))
            return cpprof__fail_nomem(error);
        result = libdeflate_gzip_decompress_ex(d, data, n, out->data + out->n,
                                               room, used, &made);
        if (result == LIBDEFLATE_SUCCESS) {
            out->n += made;
            return CPPROF_OK;
        }
        if (result != LIBDEFLATE_INSUFFICIENT_SPACE)
            return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                                "gzip: damaged or cut short");
        if (last)
            return cpprof__fail(error, CPPROF_LIMIT, 0,
                                "gzip: unpacks to more than %zu bytes",
                                max_bytes);
    }
}

enum cpprof_status
cpprof__gunzip(struct cpprof__buffer *out, const void *data, size_t n,
               size_t max_bytes, struct cpprof_error *error)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    enum cpprof_status status = CPPROF_OK;
    const uint8_t *p = data;

    if (!d)
        return cpprof__fail_nomem(error);
    do {
        size_t used = 0;

        if (n < MEMBER_MIN || !cpprof__is_gzip(p, n))
            status = cpprof__fail_at(error, (uint64_t)(p - (uint8_t *)data),
                                     "gzip: damaged or cut short");
        else
            status = member(d, out, p, n, max_bytes, &used, error);
        p += used;
        n -= used;
    } while (status == CPPROF_OK && n);
    libdeflate_free_decompressor(d);
    return status;
}
