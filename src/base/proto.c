/* SPDX-License-Identifier: MIT */
/*
 * The wire format of protocol buffers: one field after another out of a
 * bounded reader, and fields into a buffer.
 *
 * A submessage is written in place: its body goes into the buffer first, and
 * cpprof__put_end() moves it up to make room for tag and length. So nobody
 * computes lengths beforehand.
 *
 * Invariants: reading never goes beyond the reader's end, and the first error
 * is sticky (r->bad); writing into a buffer that failed does nothing.
 *
 * Source: protobuf.dev, "Encoding".
 */
#include "base/proto.h"

#include <string.h>

/* A tag or a length is at most ten bytes. */
#define VARINT_MAX 10

bool
cpprof__proto_next(struct cpprof__reader *r, struct cpprof__field *field,
                   const char **error)
{
    uint64_t tag;

    *error = r->bad ? "not enough data" : NULL;
    if (r->bad || r->next == r->end)
        return false;
    memset(field, 0, sizeof *field);
    tag = cpprof__read_varint(r);
    if (r->bad) {
        *error = "bad varint";
        return false;
    }
    /* A number too large for 32 bits must not become that of a known field. */
    field->number = tag >> 3 < UINT32_MAX ? (uint32_t)(tag >> 3) : UINT32_MAX;
    field->wire = (enum cpprof__wire)(tag & 7);
    switch (tag & 7) {
    case CPPROF__WIRE_VARINT:
        field->value = cpprof__read_varint(r);
        *error = r->bad ? "bad varint" : NULL;
        break;
    case CPPROF__WIRE_FIXED64:
        field->value = cpprof__read_u64(r);
        *error = r->bad ? "not enough data" : NULL;
        break;
    case CPPROF__WIRE_BYTES:
        field->n = cpprof__read_varint(r);
        if (r->bad) {
            *error = "bad varint";
            break;
        }
        field->data = cpprof__read_bytes(r, field->n);
        *error = r->bad ? "too much data" : NULL;
        break;
    case CPPROF__WIRE_FIXED32:
        field->value = cpprof__read_u32(r);
        *error = r->bad ? "not enough data" : NULL;
        break;
    default:
        r->bad = true;
        *error = "unknown wire type";
    }
    return !r->bad;
}

size_t
cpprof__varint(uint8_t *p, uint64_t v)
{
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        p[n++] = (uint8_t)(v | 0x80);
    p[n++] = (uint8_t)v;
    return n;
}

void
cpprof__put_varint(struct cpprof__buffer *b, uint64_t v)
{
    if (cpprof__buffer_reserve(b, VARINT_MAX))
        b->n += cpprof__varint(b->data + b->n, v);
}

static void
put_tag(struct cpprof__buffer *b, uint32_t field, enum cpprof__wire wire)
{
    cpprof__put_varint(b, (uint64_t)field << 3 | wire);
}

void
cpprof__put_uint(struct cpprof__buffer *b, uint32_t field, uint64_t v)
{
    put_tag(b, field, CPPROF__WIRE_VARINT);
    cpprof__put_varint(b, v);
}

void
cpprof__put_uint_opt(struct cpprof__buffer *b, uint32_t field, uint64_t v)
{
    if (v)
        cpprof__put_uint(b, field, v);
}

void
cpprof__put_fixed64(struct cpprof__buffer *b, uint32_t field, uint64_t v)
{
    put_tag(b, field, CPPROF__WIRE_FIXED64);
    cpprof__buffer_append(b, &v, sizeof v);
}

void
cpprof__put_bytes(struct cpprof__buffer *b, uint32_t field, const void *data,
                  size_t n)
{
    put_tag(b, field, CPPROF__WIRE_BYTES);
    cpprof__put_varint(b, n);
    cpprof__buffer_append(b, data, n);
}

void
cpprof__put_uints(struct cpprof__buffer *b, uint32_t field, const uint64_t *v,
                  size_t n)
{
    size_t i, mark;

    if (n <= 2) {
        for (i = 0; i < n; i++)
            cpprof__put_uint(b, field, v[i]);
        return;
    }
    mark = cpprof__put_begin(b);
    for (i = 0; i < n; i++)
        cpprof__put_varint(b, v[i]);
    cpprof__put_end(b, field, mark);
}

size_t
cpprof__put_begin(struct cpprof__buffer *b)
{
    return b->n;
}

void
cpprof__put_end(struct cpprof__buffer *b, uint32_t field, size_t mark)
{
    uint8_t head[2 * VARINT_MAX];
    size_t n_head, n_body;

    if (b->failed)
        return;
    n_body = b->n - mark;
    n_head = cpprof__varint(head, (uint64_t)field << 3 | CPPROF__WIRE_BYTES);
    n_head += cpprof__varint(head + n_head, n_body);
    if (!cpprof__buffer_reserve(b, n_head))
        return;
    memmove(b->data + mark + n_head, b->data + mark, n_body);
    memcpy(b->data + mark, head, n_head);
    b->n += n_head;
}
