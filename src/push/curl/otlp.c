/* SPDX-License-Identifier: MIT */
/*
 * Makes of the profile that the library wrote what a server takes: parts that
 * are not too large, and OTLP. This is where a program that pushes contains the
 * reader of profile.proto: it is linked into the plug-in, reads nothing but our
 * own bytes, and runs on the thread that sends.
 *
 * Source: opentelemetry-proto docs/specification.md ("OTLP/HTTP Response");
 * google/rpc/status.proto.
 */
#include "push/curl/otlp.h"

#include "base/gzip.h"
#include "base/proto.h"
#include "profile/change/split.h"
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

/* ---- parts ------------------------------------------------------------ */

struct user {
    const char *resource;
    bool (*use)(void *ctx, const void *data, size_t n);
    void *ctx;
    bool was_used; /* false: the last part could not be made, or not used */
};

/* Compress what is to be sent, and hand it over; frees it. */
static bool
use_packed(struct user *u, struct cpprof__buffer *plain)
{
    struct cpprof__buffer packed = {0};

    u->was_used =
        plain->n <= MOST_BYTES &&
        cpprof__gzip(&packed, plain->data, plain->n, LEVEL, NULL) == CPPROF_OK;
    cpprof__buffer_free(plain);
    u->was_used = u->was_used && u->use(u->ctx, packed.data, packed.n);
    cpprof__buffer_free(&packed);
    return u->was_used;
}

static bool
use_plain(void *ctx, const struct pprof_profile *part,
          struct cpprof__buffer *plain)
{
    (void)part;
    return use_packed(ctx, plain);
}

static bool
use_otlp(void *ctx, const struct pprof_profile *part,
         struct cpprof__buffer *plain)
{
    struct user *u = ctx;
    const struct cpprof__otlp_options options = {u->resource, known_hash};
    struct cpprof__buffer otlp = {0};

    if (plain)
        cpprof__buffer_free(plain);
    u->was_used = cpprof__otlp_encode(part, &options, &otlp, NULL) == CPPROF_OK;
    if (u->was_used)
        return use_packed(u, &otlp);
    cpprof__buffer_free(&otlp);
    return false;
}

static size_t
n_samples_of(const struct cpprof__buffer *plain)
{
    struct cpprof__reader r = cpprof__reader(plain->data, plain->n);
    struct cpprof__field field;
    const char *error;
    size_t n = 0;

    while (cpprof__proto_next(&r, &field, &error))
        n += field.number == 2;
    return n;
}

/* The strings of the profile are copied: the bytes may go. */
static bool
decode_and_use(struct cpprof__buffer *plain, bool fits, struct user *u)
{
    struct pprof_profile *p = NULL;

    if (cpprof__decode(plain->data, plain->n, true, &p, NULL) != CPPROF_OK)
        return false;
    cpprof__buffer_free(plain);
    if (u->resource && fits)
        use_otlp(u, p, NULL);
    else if (cpprof__split(
                 p, u->resource ? CPPROF__SPLIT_OTLP : CPPROF__SPLIT_PYROSCOPE,
                 u->resource ? use_otlp : use_plain, u, NULL) != CPPROF_OK)
        u->was_used = false;
    pprof_free(p);
    return u->was_used;
}

bool
cpprof__push_parts(const void *profile, size_t n, const char *resource,
                   bool (*use)(void *ctx, const void *data, size_t n),
                   void *ctx)
{
    const struct cpprof__split_limits limits =
        resource ? CPPROF__SPLIT_OTLP : CPPROF__SPLIT_PYROSCOPE;
    struct user u = {.resource = resource, .use = use, .ctx = ctx};
    struct cpprof__buffer plain = {0};
    bool made =
             cpprof__gunzip(&plain, profile, n, MOST_BYTES, NULL) == CPPROF_OK,
         fits = made && plain.n <= limits.n_bytes &&
                n_samples_of(&plain) <= limits.n_samples;

    if (made && fits && !resource)
        made = use(ctx, profile, n);
    else if (made)
        made = decode_and_use(&plain, fits, &u);
    cpprof__buffer_free(&plain);
    return made;
}

/* ---- answers ---------------------------------------------------------- */

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
    bool is_success = reply->status < 300;
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
