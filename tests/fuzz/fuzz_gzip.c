/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a gzip file, and any bytes packed and unpacked again.
 *
 * The first byte chooses the limit and the level; the rest is the file. By
 * hand: tests/fuzz/run gzip SECONDS.
 */
#include "base/gzip.h"
#include "profile/gunzip.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
expect(bool holds)
{
    if (!holds)
        abort();
}

/* What is counted of the first member is what libdeflate unpacks, or more than
 * it has room for. zlib refuses some codes that libdeflate lets pass, and the
 * sum at the end is libdeflate's to look at. */
static void
count(const uint8_t *data, size_t n, size_t limit)
{
    static struct libdeflate_decompressor *d;
    static uint8_t out[1 << 16];
    size_t used, made = 0, size = 0;
    bool counted = cpprof__gzip_size(data, n, limit, &size) == CPPROF_OK;
    enum libdeflate_result result;

    if (!d)
        d = libdeflate_alloc_decompressor();
    result =
        libdeflate_gzip_decompress_ex(d, data, n, out, limit, &used, &made);
    if (counted && size <= limit)
        expect(result != LIBDEFLATE_INSUFFICIENT_SPACE &&
               (result != LIBDEFLATE_SUCCESS || size == made));
    else if (counted)
        expect(result != LIBDEFLATE_SUCCESS);
}

/* Whatever comes of it, it stays within the limit. */
static void
unpack(const uint8_t *data, size_t n, size_t limit)
{
    struct cpprof__buffer out = {0};
    struct cpprof_error error = {0};
    enum cpprof_status status = cpprof__gunzip(&out, data, n, limit, &error);

    expect(out.n <= limit);
    /* Twice the limit, and the least that a buffer takes. */
    expect(out.capacity <= 2 * limit + 256);
    expect(status == CPPROF_OK || status == CPPROF_BAD_DATA ||
           status == CPPROF_LIMIT);
    expect((status == CPPROF_OK) == !error.text[0]);
    expect(status != CPPROF_OK || cpprof__is_gzip(data, n));
    expect(error.offset <= n);
    count(data, n, limit);
    cpprof__buffer_free(&out);
}

/* In two members, so that the seam lies anywhere. */
static void
round_trip(const uint8_t *data, size_t n, int level)
{
    struct cpprof__buffer packed = {0}, out = {0};
    size_t half = n ? data[0] % n : 0;

    expect(cpprof__gzip(&packed, data, half, level, NULL) == CPPROF_OK);
    expect(cpprof__gzip(&packed, data + half, n - half, 13 - level, NULL) ==
           CPPROF_OK);
    expect(cpprof__gunzip(&out, packed.data, packed.n, n, NULL) == CPPROF_OK);
    expect(out.n == n && (!n || memcmp(out.data, data, n) == 0));
    if (n)
        expect(cpprof__gunzip(&out, packed.data, packed.n, 2 * n - 1, NULL) ==
               CPPROF_LIMIT);
    cpprof__buffer_free(&packed);
    cpprof__buffer_free(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n)
        return 0;
    unpack(data + 1, n - 1, (size_t)1 << data[0] % 17);
    round_trip(data + 1, n - 1, 1 + data[0] % 12);
    return 0;
}
