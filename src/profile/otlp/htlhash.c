/* SPDX-License-Identifier: MIT */
/*
 * The hash by which OpenTelemetry knows a file: the first 16 bytes of SHA-256
 * over its first 4096 bytes, its last 4096 bytes and its length.
 *
 * Source: semantic-conventions, docs/registry/attributes/process.md
 * ("htlhash"); FIPS 180-4, 6.2.
 */
#include "profile/otlp/otlp.h"

#include "object/build_id.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_BYTES ((size_t)4096)

static uint32_t
rotated(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

/* FIPS 180-4, 4.2.2. */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static void
add_block(uint32_t h[8], const uint8_t block[64])
{
    uint32_t w[64], v[8], one, two;
    unsigned i;

    for (i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (i = 16; i < 64; i++)
        w[i] =
            w[i - 16] + w[i - 7] +
            (rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3) +
            (rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(v, h, sizeof v);
    for (i = 0; i < 64; i++) {
        one = v[7] + constants[i] + w[i] + ((v[4] & v[5]) ^ (~v[4] & v[6])) +
              (rotated(v[4], 6) ^ rotated(v[4], 11) ^ rotated(v[4], 25));
        two = ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2])) +
              (rotated(v[0], 2) ^ rotated(v[0], 13) ^ rotated(v[0], 22));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one;
        v[0] = one + two;
    }
    for (i = 0; i < 8; i++)
        h[i] += v[i];
}

/* Of n bytes, behind which there is room for 72 more. */
static void
sha256(uint8_t *data, size_t n, uint32_t h[8])
{
    static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                        0xa54ff53a, 0x510e527f, 0x9b05688c,
                                        0x1f83d9ab, 0x5be0cd19};
    size_t padded = (n + 9 + 63) / 64 * 64, i;

    memset(data + n, 0, padded - n);
    data[n] = 0x80;
    for (i = 0; i < 8; i++)
        data[padded - 1 - i] = (uint8_t)((uint64_t)n * 8 >> 8 * i);
    memcpy(h, initial, sizeof initial);
    for (i = 0; i < padded; i += 64)
        add_block(h, data + i);
}

static size_t
read_file(void *ctx, uint64_t offset, void *data, size_t n)
{
    ssize_t got = pread(*(int *)ctx, data, n, (off_t)offset);

    return got < 0 ? 0 : (size_t)got;
}

static bool
has_build_id(int fd, const char *build_id)
{
    const struct cpprof__elf_source source = {read_file, &fd, 0};
    char text[CPPROF_BUILD_ID_MAX];

    return cpprof__build_id_read(&source, text, NULL) == CPPROF_OK &&
           strcmp(text, build_id) == 0;
}

static bool
hash(int fd, uint64_t n_file, char text[CPPROF__HTLHASH_CHARS + 1])
{
    uint8_t data[2 * PART_BYTES + 8 + 72];
    size_t part = n_file < PART_BYTES ? n_file : PART_BYTES, i;
    uint32_t h[8];

    if (read_file(&fd, 0, data, part) != part ||
        read_file(&fd, n_file - part, data + part, part) != part)
        return false;
    for (i = 0; i < 8; i++)
        data[2 * part + i] = (uint8_t)(n_file >> (56 - 8 * i));
    sha256(data, 2 * part + 8, h);
    snprintf(text, CPPROF__HTLHASH_CHARS + 1, "%08x%08x%08x%08x", h[0], h[1],
             h[2], h[3]);
    return true;
}

bool
cpprof__htlhash(const char *path, const char *build_id,
                char text[CPPROF__HTLHASH_CHARS + 1])
{
    struct stat st;
    bool found;
    int fd;

    if (*path != '/')
        return false;
    /* A fifo would be waited for. */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    found = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
            has_build_id(fd, build_id) && hash(fd, (uint64_t)st.st_size, text);
    close(fd);
    return found;
}
