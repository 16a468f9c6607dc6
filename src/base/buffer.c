/* SPDX-License-Identifier: MIT */
/*
 * A run of bytes that doubles as it grows: appended, printed or read into.
 *
 * Invariant: after a failure it is empty and stays so.
 */
#include "base/buffer.h"

#include "own/memory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The least that is asked of a descriptor at once. */
#define READ_BYTES 4096

void
cpprof__buffer_free(struct cpprof__buffer *b)
{
    cpprof__free(b->data);
    memset(b, 0, sizeof *b);
}

bool
cpprof__buffer_reserve(struct cpprof__buffer *b, size_t n)
{
    size_t capacity = b->capacity ? b->capacity : 256;
    uint8_t *data;

    if (b->failed)
        return false;
    if (n <= b->capacity - b->n)
        return true;
    if (n > SIZE_MAX / 4 || b->n > SIZE_MAX / 4)
        goto fail;
    while (capacity < b->n + n)
        capacity *= 2;
    data = cpprof__realloc(b->data, capacity);
    if (!data)
        goto fail;
    b->data = data;
    b->capacity = capacity;
    return true;

fail:
    cpprof__buffer_free(b);
    b->failed = true;
    return false;
}

void
cpprof__buffer_append(struct cpprof__buffer *b, const void *data, size_t n)
{
    if (n && cpprof__buffer_reserve(b, n)) {
        memcpy(b->data + b->n, data, n);
        b->n += n;
    }
}

void
cpprof__buffer_printf(struct cpprof__buffer *b, const char *format, ...)
{
    size_t room = b->capacity - b->n;
    va_list args;
    int n;

    /* Usually there is room, and one attempt is enough. */
    va_start(args, format);
    n = vsnprintf(room ? (char *)b->data + b->n : NULL, room, format, args);
    va_end(args);
    if (n < 0)
        return;
    if ((size_t)n >= room) {
        if (!cpprof__buffer_reserve(b, (size_t)n + 1))
            return;
        va_start(args, format);
        vsnprintf((char *)b->data + b->n, (size_t)n + 1, format, args);
        va_end(args);
    }
    b->n += (size_t)n;
}

int
cpprof__buffer_read(struct cpprof__buffer *b, int fd, size_t most)
{
    ssize_t n = 1;

    while (n && b->n <= most) {
        if (b->capacity == b->n && !cpprof__buffer_reserve(b, READ_BYTES))
            return ENOMEM;
        n = read(fd, b->data + b->n, b->capacity - b->n);
        if (n < 0 && errno != EINTR)
            return errno;
        b->n += n > 0 ? (size_t)n : 0;
    }
    return b->n > most ? EFBIG : 0;
}

void
cpprof__buffer_number(struct cpprof__buffer *b, const char *prefix, uint64_t v,
                      unsigned base, size_t width)
{
    char digits[20];
    size_t at = sizeof digits, n_prefix = strlen(prefix), n;

    do
        digits[--at] = "0123456789abcdef"[v % base];
    while (v /= base);
    for (n = n_prefix + sizeof digits - at; n < width; n++)
        cpprof__buffer_append(b, " ", 1);
    cpprof__buffer_append(b, prefix, n_prefix);
    cpprof__buffer_append(b, digits + at, sizeof digits - at);
}
