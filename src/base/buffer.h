/* SPDX-License-Identifier: MIT */
/*
 * A growable run of bytes with a sticky failure: append without checking, look
 * at `failed` once at the end. A failed buffer stays empty.
 */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpprof__buffer {
    uint8_t *data;
    size_t n;
    size_t capacity;
    bool failed; /* an allocation failed; nothing more is appended */
};

/* Zero bytes is a valid, empty buffer. */
void
cpprof__buffer_free(struct cpprof__buffer *b);

/* Make room for n more bytes; false when there is none. */
bool
cpprof__buffer_reserve(struct cpprof__buffer *b, size_t n);
void
cpprof__buffer_append(struct cpprof__buffer *b, const void *data, size_t n);
void
cpprof__buffer_printf(struct cpprof__buffer *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Append what a descriptor has, up to its end. 0; EFBIG when the buffer then
 * holds more than `most` bytes; ENOMEM; or why read() failed. */
int
cpprof__buffer_read(struct cpprof__buffer *b, int fd, size_t most);

/* Append prefix ("", "-", "0x") and the digits of v, base 10 or 16, with spaces
 * in front up to width: much quicker than printf. */
void
cpprof__buffer_number(struct cpprof__buffer *b, const char *prefix, uint64_t v,
                      unsigned base, size_t width);

#endif
