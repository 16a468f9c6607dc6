/* SPDX-License-Identifier: MIT */
/*
 * Unpacking gzip (RFC 1952) with libdeflate, which is quick but needs to know
 * beforehand how large the output is.
 *
 * The size of what a member unpacks to is guessed from its last four bytes and
 * doubled while it turns out too small. These bytes are not trusted: where they
 * ask for far more than profiles ever unpack to, zlib counts the size first,
 * through a small window, so that a small hostile file never takes much memory.
 *
 * Invariants: out grows by whole members only; nothing is unpacked beyond
 * max_bytes.
 */
#include "profile/gunzip.h"

#include "base/gzip.h"
#include "base/status.h"

#include <libdeflate.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

/* The smallest gzip member: 10 bytes of head, 2 of deflate, 8 of tail. */
#define MEMBER_MIN 20

/* For inflateInit2(): the largest window, and a head of gzip. */
#define ZLIB_GZIP (MAX_WBITS + 16)

enum cpprof_status
cpprof__gzip_size(const uint8_t *data, size_t n, size_t enough, size_t *size)
{
    unsigned char window[32768];
    z_stream z = {.next_in = (unsigned char *)data};
    int status;

    if (inflateInit2(&z, ZLIB_GZIP) != Z_OK)
        return CPPROF_NOMEM;
    inflateValidate(&z, 0); /* libdeflate looks at the sum again */
    *size = 0;
    do {
        if (!z.avail_in) {
            z.avail_in = n < UINT_MAX ? (unsigned)n : UINT_MAX;
            n -= z.avail_in;
        }
        z.next_out = window;
        z.avail_out = sizeof window;
        status = inflate(&z, Z_NO_FLUSH);
        *size += sizeof window - z.avail_out;
    } while (status == Z_OK && *size <= enough);
    inflateEnd(&z);
    return status == Z_STREAM_END || *size > enough ? CPPROF_OK
                                                    : CPPROF_BAD_DATA;
}

/* Only the end of a member says how large its content is, and in a file of
 * several members the last four bytes are those of the last member. So guess,
 * and double while the guess is too small. */
static size_t
guess(const uint8_t *data, size_t n)
{
    uint32_t size;

    memcpy(&size, data + n - sizeof size, sizeof size);
    return size < n || size / 1032 > n ? n * 4 : size;
}

/*
 * Profiles compress to a third or a tenth of their size. Content that claims a
 * higher ratio than BOMB_RATIO and more than BOMB_BYTES may be a bomb, so its
 * size is counted before memory is reserved, which costs another pass over the
 * input. A higher ratio lets a bomb take more memory before it is recognized; a
 * lower one counts honest files, too.
 */
#define BOMB_RATIO 20
#define BOMB_BYTES ((size_t)16 << 20)

static bool
may_be_bomb(size_t n, size_t room)
{
    return room > BOMB_BYTES && room / BOMB_RATIO > n;
}

static enum cpprof_status
fail_damaged(struct cpprof_error *error)
{
    return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                        "gzip: damaged or cut short");
}

static enum cpprof_status
fail_limit(size_t max_bytes, struct cpprof_error *error)
{
    return cpprof__fail(error, CPPROF_LIMIT, 0,
                        "gzip: unpacks to more than %zu bytes", max_bytes);
}

static enum cpprof_status
member(struct libdeflate_decompressor *d, struct cpprof__buffer *out,
       const uint8_t *data, size_t n, size_t max_bytes, size_t *used,
       struct cpprof_error *error)
{
    size_t left = max_bytes > out->n ? max_bytes - out->n : 0;
    size_t room = guess(data, n);
    bool counted = false;

    for (;; room = 2 * room + 1) {
        enum libdeflate_result result;
        size_t made;

        if (!counted && may_be_bomb(n, room)) {
            enum cpprof_status status = cpprof__gzip_size(data, n, left, &room);

            if (status == CPPROF_NOMEM)
                return cpprof__fail_nomem(error);
            if (status != CPPROF_OK)
                return fail_damaged(error);
            if (room > left)
                return fail_limit(max_bytes, error);
            counted = true;
        }
        if (room > left)
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
            return fail_damaged(error);
        if (room == left)
            return fail_limit(max_bytes, error);
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
