/* SPDX-License-Identifier: MIT */
/*
 * Protocol-buffer wire format: writing into a buffer, and walking the fields
 * of a message. Source: protobuf.dev/programming-guides/encoding.
 */
#ifndef BASE_PROTO_H
#define BASE_PROTO_H

#include "base/buffer.h"
#include "base/reader.h"

enum cpprof__wire {
    CPPROF__WIRE_VARINT = 0,
    CPPROF__WIRE_FIXED64 = 1,
    CPPROF__WIRE_BYTES = 2,
    CPPROF__WIRE_FIXED32 = 5,
};

/* One field of a message. For WIRE_BYTES `data`, `n` is its content; for the
 * others `value` is the number. */
struct cpprof__field {
    uint32_t number;
    enum cpprof__wire wire;
    uint64_t value;
    const uint8_t *data;
    size_t n;
};

/*
 * The next field of the message in r, or false at its end or on bad bytes; the
 * two differ by *error, which is then NULL or one of "bad varint",
 * "not enough data", "too much data", "unknown wire type".
 */
bool
cpprof__proto_next(struct cpprof__reader *r, struct cpprof__field *field,
                   const char **error);

/* Write v to p, which has room for ten bytes; returns how many it took. */
size_t
cpprof__varint(uint8_t *p, uint64_t v);

void
cpprof__put_varint(struct cpprof__buffer *b, uint64_t v);
/* A varint field, also when v is 0. */
void
cpprof__put_uint(struct cpprof__buffer *b, uint32_t field, uint64_t v);
/* A varint field that is left out when v is 0. */
void
cpprof__put_uint_opt(struct cpprof__buffer *b, uint32_t field, uint64_t v);
/* A number of eight bytes. */
void
cpprof__put_fixed64(struct cpprof__buffer *b, uint32_t field, uint64_t v);
void
cpprof__put_bytes(struct cpprof__buffer *b, uint32_t field, const void *data,
                  size_t n);
/* A repeated number: packed when more than two, as Go's writer does. */
void
cpprof__put_uints(struct cpprof__buffer *b, uint32_t field, const uint64_t *v,
                  size_t n);

/*
 * A message inside a message: begin returns a mark, end puts the length in
 * front of what was appended since.
 */
size_t
cpprof__put_begin(struct cpprof__buffer *b);
void
cpprof__put_end(struct cpprof__buffer *b, uint32_t field, size_t mark);

#endif
