/* SPDX-License-Identifier: MIT */
#include "http/server/chunks.h"

#include <stdbool.h>
#include <string.h>

/* Bounds of what is thrown away: extensions of a size, and trailers. */
#define LINE_MAX    256
#define TRAILER_MAX 4096

enum { SIZE_FIRST, SIZE, EXTENSION, DATA, DATA_END, TRAILER };

static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void
end_size_line(struct cpprof__http_chunks *c)
{
    c->state = c->left ? DATA : TRAILER;
    c->n_line = c->n_trailer = 0;
}

/* "1a;name=value" and the end of the line. False: it is none. */
static bool
take_size(struct cpprof__http_chunks *c, char byte)
{
    int digit = hex_digit(byte);

    if (++c->n_line > LINE_MAX)
        return false;
    if (c->state == EXTENSION || (c->state == SIZE && digit < 0)) {
        if (byte == '\n')
            end_size_line(c);
        else if (c->state == EXTENSION || byte == ';' || byte == '\r' ||
                 byte == ' ' || byte == '\t')
            c->state = EXTENSION;
        else
            return false;
        return true;
    }
    if (digit < 0 || c->left >> 58)
        return false;
    c->state = SIZE;
    c->left = c->left << 4 | (uint64_t)digit;
    return true;
}

/* "\r\n" or "\n" */
static bool
take_data_end(struct cpprof__http_chunks *c, char byte)
{
    if (byte == '\n') {
        c->state = SIZE_FIRST;
        c->n_line = 0;
        return true;
    }
    return byte == '\r' && !c->n_line++;
}

/* Lines until an empty one. -1: too much. */
static int
take_trailer(struct cpprof__http_chunks *c, char byte)
{
    if (++c->n_line > TRAILER_MAX)
        return -1;
    if (byte == '\n') {
        if (!c->n_trailer)
            return CPPROF__CHUNKS_END;
        c->n_trailer = 0;
    } else if (byte != '\r') {
        c->n_trailer++;
    }
    return CPPROF__CHUNKS_MORE;
}

int
cpprof__http_chunks_take(struct cpprof__http_chunks *c, const char *data,
                         size_t n, size_t *used, size_t *n_data)
{
    size_t i;
    int end;

    for (i = 0; i < n; i++) {
        *used = i;
        if (c->state == DATA) {
            *n_data = c->left < n - i ? (size_t)c->left : n - i;
            c->left -= *n_data;
            if (!c->left)
                c->state = DATA_END;
            return CPPROF__CHUNKS_DATA;
        }
        *used = i + 1;
        if (c->state == TRAILER) {
            end = take_trailer(c, data[i]);
            if (end)
                return end < 0 ? 400 : end;
        } else if (!(c->state == DATA_END ? take_data_end(c, data[i])
                                          : take_size(c, data[i]))) {
            return 400;
        }
    }
    *used = n;
    return CPPROF__CHUNKS_MORE;
}
