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
#include "profile/change/mend_names.h"
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
    bool (*use)(void *ctx, const struct cpprof__push_piece *part);
    void *ctx;
    const struct cpprof__push_piece *halve; /* it comes next; NULL: nothing */
    bool was_used; /* false: the last part could not be made, or not used */
};

/* Compress what is to be sent, and hand it over. */
static void
use_packed(struct user *u, const struct cpprof__buffer *plain, uint64_t room_ns)
{
    struct cpprof__buffer packed = {0};

    u->was_used =
        plain->n <= MOST_BYTES &&
        cpprof__gzip(&packed, plain->data, plain->n, LEVEL, NULL) ==
            CPPROF_OK &&
        u->use(u->ctx,
               &(struct cpprof__push_piece){packed.data, packed.n, room_ns});
    cpprof__buffer_free(&packed);
}

static enum cpprof__split_next
use_part(void *ctx, const struct cpprof__split_part *part)
{
    struct user *u = ctx;
    const struct cpprof__push_piece *whole = u->halve;

    u->halve = NULL;
    if (whole && pprof_sample_count(part->profile) > 1)
        return CPPROF__SPLIT_HALVE;
    if (whole)
        u->was_used = u->use(u->ctx, whole);
    else
        use_packed(u, part->plain, part->room_ns);
    return u->was_used ? CPPROF__SPLIT_ON : CPPROF__SPLIT_END;
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

/* The strings of the profile are copied: the bytes go. */
static struct pprof_profile *
decode(struct cpprof__buffer *plain)
{
    struct pprof_profile *p = NULL;

    cpprof__decode(plain->data, plain->n, true, &p, NULL);
    cpprof__buffer_free(plain);
    return p;
}

bool
cpprof__push_parts(const struct cpprof__push_piece *profile, unsigned flags,
                   bool (*use)(void *ctx,
                               const struct cpprof__push_piece *part),
                   void *ctx)
{
    const struct cpprof__split_limits limits = flags & CPPROF__PUSH_FOR_OTLP
                                                   ? CPPROF__SPLIT_OTLP
                                                   : CPPROF__SPLIT_PYROSCOPE;
    struct user u = {use, ctx, flags & CPPROF__PUSH_HALVE ? profile : NULL,
                     false};
    uint64_t room_ns =
        profile->room_ns ? profile->room_ns : CPPROF__SPLIT_ROOM_NS;
    struct cpprof__buffer plain = {0};
    struct pprof_profile *p;
    bool made = cpprof__gunzip(&plain, profile->data, profile->n, MOST_BYTES,
                               NULL) == CPPROF_OK,
         fits = made && !u.halve && !(flags & CPPROF__PUSH_MEND) &&
                plain.n <= limits.n_bytes &&
                n_samples_of(&plain) <= limits.n_samples;

    if (fits)
        u.was_used = use(ctx, profile);
    p = made && !fits ? decode(&plain) : NULL;
    if (p && flags & CPPROF__PUSH_MEND)
        made = cpprof__mend_names(p, NULL, NULL, NULL) == CPPROF_OK;
    if (p && made &&
        cpprof__split(p, limits, room_ns, use_part, &u, NULL) != CPPROF_OK)
        u.was_used = false;
    pprof_free(p);
    cpprof__buffer_free(&plain);
    return u.was_used;
}

bool
cpprof__push_otlp(const struct cpprof__push_piece *part, const char *resource,
                  bool (*use)(void *ctx,
                              const struct cpprof__push_piece *request),
                  void *ctx)
{
    const struct cpprof__otlp_options options = {resource, known_hash};
    struct user u = {.use = use, .ctx = ctx};
    struct cpprof__buffer plain = {0}, otlp = {0};
    struct pprof_profile *p = NULL;

    if (cpprof__gunzip(&plain, part->data, part->n, MOST_BYTES, NULL) ==
        CPPROF_OK)
        p = decode(&plain);
    if (p && cpprof__otlp_encode(p, &options, &otlp, NULL) == CPPROF_OK)
        use_packed(&u, &otlp, part->room_ns);
    pprof_free(p);
    cpprof__buffer_free(&plain);
    cpprof__buffer_free(&otlp);
    return u.was_used;
}

/* ---- answers ---------------------------------------------------------- */

void
cpprof__push_reply_text(const char *text, size_t n,
                        struct cpprof__push_reply *reply)
{
    static const char gap[] = " ... ";
    const size_t room = sizeof reply->text - 1, begin = room / 3,
                 end = room - begin - (sizeof gap - 1);
    size_t i, n_kept;

    while (n && (text[n - 1] <= ' ' || text[n - 1] > '~'))
        n--;
    n_kept = n > room ? room : n;
    if (n > room) {
        memcpy(reply->text, text, begin);
        memcpy(reply->text + begin, gap, sizeof gap - 1);
        memcpy(reply->text + room - end, text + n - end, end);
    } else {
        memcpy(reply->text, text, n);
    }
    for (i = 0; i < n_kept; i++)
        if (reply->text[i] < ' ' || reply->text[i] > '~')
            reply->text[i] = ' ';
    reply->text[n_kept] = 0;
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
            cpprof__push_reply_text((const char *)field.data, field.n, reply);
        if (!is_success || field.number != 1)
            continue;
        inner = cpprof__reader(field.data, field.n);
        while (cpprof__proto_next(&inner, &part, &error))
            if (part.number == 1 && part.wire == CPPROF__WIRE_VARINT)
                reply->n_rejected = part.value;
            else if (part.number == 2 && part.wire == CPPROF__WIRE_BYTES)
                cpprof__push_reply_text((const char *)part.data, part.n, reply);
    }
}
