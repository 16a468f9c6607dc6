/* SPDX-License-Identifier: MIT */
/*
 * Makes of the profile that the library wrote what a collector takes. This is
 * where a program that pushes contains the reader of profile.proto: it is
 * linked into the plug-in, reads nothing but our own bytes, and runs on the
 * thread that sends.
 *
 * Source: opentelemetry-proto docs/specification.md ("OTLP/HTTP Response");
 * google/rpc/status.proto.
 */
#include "push/curl/otlp.h"

#include "base/gzip.h"
#include "base/proto.h"
#include "profile/gunzip.h"
#include "profile/otlp/otlp.h"
#include "profile/proto/decode.h"

#include <stdlib.h>
#include <string.h>

/* What a receiver takes at most, before and after it is unpacked. */
#define MOST_BYTES ((size_t)64 << 20)

#define LEVEL 1

/* Hashes of files by build id: those that are mapped stay the same, and each
 * needs 8 KB of the file. Used by the thread that sends alone. */
#define N_HASHES 1024
static struct known {
    char build_id[CPPROF__HTLHASH_CHARS * 2 + 1];
    char hash[CPPROF__HTLHASH_CHARS + 1]; /* "": there is none */
} * known;
static size_t n_known;

static bool
known_hash(const char *path, const char *build_id,
           char text[CPPROF__HTLHASH_CHARS + 1])
{
    struct known *one;
    size_t i;

    if (!known)
        known = calloc(N_HASHES, sizeof *known);
    if (!known || strlen(build_id) >= sizeof known->build_id)
        return false;
    for (i = 0; i < n_known; i++)
        if (strcmp(known[i].build_id, build_id) == 0)
            break;
    if (i == N_HASHES)
        return false;
    one = &known[i];
    if (i == n_known) {
        n_known++;
        strcpy(one->build_id, build_id);
        if (!cpprof__htlhash(path, build_id, one->hash))
            *one->hash = 0;
    }
    memcpy(text, one->hash, sizeof one->hash);
    return *text;
}

static bool
encode(struct cpprof__buffer *plain, const char *resource,
       struct cpprof__buffer *out)
{
    const struct cpprof__otlp_options options = {resource, known_hash};
    struct pprof_profile *p = NULL;
    bool made;

    /* The strings of the profile are copied: the bytes may go. */
    made = cpprof__decode(plain->data, plain->n, true, &p, NULL) == CPPROF_OK &&
           cpprof__otlp_encode(p, &options, out, NULL) == CPPROF_OK;
    pprof_free(p);
    return made && out->n <= MOST_BYTES;
}

bool
cpprof__push_otlp(const void *profile, size_t n, const char *resource,
                  void **body, size_t *n_body)
{
    struct cpprof__buffer plain = {0}, otlp = {0}, packed = {0};
    bool made;

    made = cpprof__gunzip(&plain, profile, n, MOST_BYTES, NULL) == CPPROF_OK &&
           encode(&plain, resource, &otlp);
    cpprof__buffer_free(&plain);
    made = made &&
           cpprof__gzip(&packed, otlp.data, otlp.n, LEVEL, NULL) == CPPROF_OK;
    cpprof__buffer_free(&otlp);
    if (made) {
        *body = packed.data;
        *n_body = packed.n;
    } else {
        cpprof__buffer_free(&packed);
    }
    return made;
}

static void
take_text(const struct cpprof__field *field, struct cpprof__push_reply *reply)
{
    size_t n = field->n < sizeof reply->text - 1 ? field->n
                                                 : sizeof reply->text - 1,
           i;

    for (i = 0; i < n; i++)
        reply->text[i] = field->data[i] >= ' ' && field->data[i] <= '~'
                             ? (char)field->data[i]
                             : ' ';
    reply->text[n] = 0;
}

void
cpprof__push_otlp_reply(const uint8_t *data, size_t n,
                        struct cpprof__push_reply *reply)
{
    struct cpprof__reader r = cpprof__reader(data, n), inner;
    bool is_success = reply->status == 200;
    struct cpprof__field field, part;
    const char *error;

    *reply->text = 0;
    while (cpprof__proto_next(&r, &field, &error)) {
        if (field.wire != CPPROF__WIRE_BYTES)
            continue;
        if (!is_success && field.number == 2)
            take_text(&field, reply);
        if (!is_success || field.number != 1)
            continue;
        inner = cpprof__reader(field.data, field.n);
        while (cpprof__proto_next(&inner, &part, &error))
            if (part.number == 1 && part.wire == CPPROF__WIRE_VARINT)
                reply->n_rejected = part.value;
            else if (part.number == 2 && part.wire == CPPROF__WIRE_BYTES)
                take_text(&part, reply);
    }
}
