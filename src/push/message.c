/* SPDX-License-Identifier: MIT */
/*
 * Makes the requests by which profiles are pushed: a protobuf message for
 * /push.v1, a form for /ingest, whose query has name, labels and times, JSON
 * for Parca, or the profile itself.
 *
 * Source: grafana/pyroscope api/push/v1/push.proto (RawProfileSeries),
 * pkg/ingester/pyroscope/ingest_handler.go, pkg/og/convert/pprof (parts of the
 * form), pkg/og/storage/tree/pprof.go (SampleTypeConfig); connectrpc.com,
 * "Unary-Request"; parca proto/parca/profilestore, pkg/normalizer;
 * opentelemetry-collector-contrib receiver/pprofreceiver/internal.
 */
#include "push/message.h"

#include "base/proto.h"
#include "base/text.h"
#include "own/memory.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* Sample types that Pyroscope would misunderstand, or take for counters since
 * the start of the program and subtract from each other. */
#define HEAP_TYPES                                                             \
    "{\"alloc_objects\":{\"units\":\"objects\",\"cumulative\":false},"         \
    "\"alloc_space\":{\"units\":\"bytes\",\"cumulative\":false},"              \
    "\"inuse_objects\":{\"units\":\"objects\",\"aggregation\":\"average\","    \
    "\"cumulative\":false},"                                                   \
    "\"inuse_space\":{\"units\":\"bytes\",\"aggregation\":\"average\","        \
    "\"cumulative\":false}}"
#define WAIT_TYPES(name)                                                       \
    "{\"contentions\":{\"display-name\":\"" name "_count\","                   \
    "\"units\":\"lock_samples\",\"cumulative\":false},"                        \
    "\"delay\":{\"display-name\":\"" name "_duration\","                       \
    "\"units\":\"lock_nanoseconds\",\"cumulative\":false}}"
#define GOROUTINE_TYPES                                                        \
    "{\"goroutine\":{\"display-name\":\"goroutines\","                         \
    "\"units\":\"goroutines\",\"aggregation\":\"average\"}}"

/* ORDER: CPPROF_PUSH_* */
static const struct {
    const char *name;   /* in files */
    const char *series; /* __name__ */
    const char *types;  /* sample_type_config; NULL: the server's own */
} kinds[CPPROF__PUSH_KINDS] = {
    {"cpu", "process_cpu", NULL},
    {"heap", "memory", HEAP_TYPES},
    {"block", "block", WAIT_TYPES("block")},
    {"mutex", "mutex", WAIT_TYPES("mutex")},
    {"wall", "wall", NULL},
    {"goroutine", "goroutine", GOROUTINE_TYPES},
    {"custom", "custom", NULL},
};

static unsigned
number_of(uint32_t kind)
{
    return (unsigned)__builtin_ctz(kind);
}

/* What queries and files can say. */
static void
copy_name(const char *from, char name[CPPROF__PUSH_SERIES_BYTES])
{
    snprintf(name, CPPROF__PUSH_SERIES_BYTES, "%s", from);
    for (; *name; name++)
        if ((unsigned char)*name > 127 || !isalnum((unsigned char)*name))
            *name = '_';
}

static void
series_of(const struct cpprof__push_profile *profile,
          char name[CPPROF__PUSH_SERIES_BYTES])
{
    copy_name(profile->series ? profile->series
                              : kinds[number_of(profile->kind)].series,
              name);
}

const char *
cpprof__push_kind_name(const struct cpprof__push_plan *plan, uint32_t kind)
{
    if (kind == CPPROF_PUSH_WALL && plan->wall.flags & CPPROF_FLAG_OFF_CPU)
        return "offcpu";
    return kinds[number_of(kind)].name;
}

void
cpprof__push_file_kind(const struct cpprof__push_plan *plan,
                       const struct cpprof__push_profile *profile,
                       char name[CPPROF__PUSH_SERIES_BYTES])
{
    copy_name(profile->series ? profile->series
                              : cpprof__push_kind_name(plan, profile->kind),
              name);
}

/* ---- random ----------------------------------------------------------- */

/* Early after boot the kernel may have no random bytes; do not wait for them.
 */
static void
random_bytes(uint8_t bytes[16])
{
    static uint32_t n;
    struct timespec now;

    if (getrandom(bytes, 16, GRND_NONBLOCK) == 16)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    memset(bytes, 0, 16);
    memcpy(bytes, &now.tv_nsec, 4);
    memcpy(bytes + 4, &now.tv_sec, 4);
    n++;
    memcpy(bytes + 8, &n, 4);
    n += (uint32_t)getpid() << 16;
    memcpy(bytes + 12, &n, 4);
}

/* Version 4, RFC 4122. */
void
cpprof__push_uuid(char text[37])
{
    uint8_t b[16];

    random_bytes(b);
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    snprintf(text, 37,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
             "%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10],
             b[11], b[12], b[13], b[14], b[15]);
}

/* ---- /push.v1.PusherService/Push -------------------------------------- */

static void
put_label(struct cpprof__buffer *out, const char *name, size_t n_name,
          const char *value, size_t n_value)
{
    size_t mark = cpprof__put_begin(out);

    cpprof__put_bytes(out, 1, name, n_name);
    cpprof__put_bytes(out, 2, value, n_value);
    cpprof__put_end(out, 1, mark);
}

static void
put_pair(struct cpprof__buffer *out, const char *name, const char *value)
{
    put_label(out, name, strlen(name), value, strlen(value));
}

static void
put_series(struct cpprof__buffer *out, const struct cpprof__push_plan *plan,
           const struct cpprof__push_profile *profile)
{
    const char *rest = plan->labels;
    struct cpprof__push_label label;
    char series[CPPROF__PUSH_SERIES_BYTES], uuid[37];
    size_t mark;

    series_of(profile, series);
    put_pair(out, "__name__", series);
    put_pair(out, "__delta__", "false");
    put_pair(out, "service_name", plan->name);
    put_pair(out, "pyroscope_spy", "cpprof");
    while (cpprof__push_next_label(&rest, &label))
        put_label(out, label.name, label.n_name, label.value, label.n_value);
    mark = cpprof__put_begin(out);
    cpprof__put_bytes(out, 1, profile->data, profile->n);
    cpprof__push_uuid(uuid);
    cpprof__put_bytes(out, 2, uuid, strlen(uuid));
    cpprof__put_end(out, 2, mark);
}

static void
make_push(const struct cpprof__push_plan *plan,
          const struct cpprof__push_profile *profile,
          struct cpprof__push_message *m, struct cpprof__buffer *url)
{
    size_t mark = cpprof__put_begin(&m->body);

    put_series(&m->body, plan, profile);
    cpprof__put_end(&m->body, 1, mark);
    cpprof__buffer_printf(url, "%s/push.v1.PusherService/Push", plan->url);
    strcpy(m->type, "application/proto");
}

/* ---- /ingest ---------------------------------------------------------- */

static void
put_query(struct cpprof__buffer *url, const struct cpprof__push_plan *plan,
          const struct cpprof__push_profile *profile)
{
    uint32_t rate_hz = profile->kind == CPPROF_PUSH_WALL ? plan->wall.rate_hz
                                                         : plan->cpu.rate_hz;

    cpprof__buffer_printf(url, "%s/ingest?name=", plan->url);
    cpprof__put_escaped(url, plan->name, strlen(plan->name), "");
    cpprof__buffer_printf(url, "%%7B");
    cpprof__put_escaped(url, plan->labels, strlen(plan->labels), "");
    cpprof__buffer_printf(
        url, "%%7D&from=%lld&until=%lld&spyName=cpprof&sampleRate=%u",
        (long long)profile->from_ns, (long long)profile->until_ns,
        rate_hz ? rate_hz : 100);
}

static void
put_part(struct cpprof__buffer *out, const char *boundary, const char *name,
         const char *file, const void *data, size_t n)
{
    cpprof__buffer_printf(out,
                          "--%s\r\nContent-Disposition: form-data; "
                          "name=\"%s\"; filename=\"%s\"\r\n"
                          "Content-Type: application/octet-stream\r\n\r\n",
                          boundary, name, file);
    cpprof__buffer_append(out, data, n);
    cpprof__buffer_append(out, "\r\n", 2);
}

static void
make_ingest(const struct cpprof__push_plan *plan,
            const struct cpprof__push_profile *profile,
            struct cpprof__push_message *m, struct cpprof__buffer *url)
{
    const char *types = kinds[number_of(profile->kind)].types;
    char boundary[37];

    cpprof__push_uuid(boundary);
    put_part(&m->body, boundary, "profile", "profile.pprof", profile->data,
             profile->n);
    if (types)
        put_part(&m->body, boundary, "sample_type_config",
                 "sample_type_config.json", types, strlen(types));
    cpprof__buffer_printf(&m->body, "--%s--\r\n", boundary);
    put_query(url, plan, profile);
    snprintf(m->type, sizeof m->type, "multipart/form-data; boundary=%s",
             boundary);
}

/* ---- Parca ------------------------------------------------------------ */

/* RFC 4648, 4. */
static void
put_base64(struct cpprof__buffer *out, const uint8_t *data, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrs"
                                 "tuvwxyz0123456789+/";
    char four[4];
    size_t i;

    for (i = 0; i < n; i += 3) {
        uint32_t bits = (uint32_t)data[i] << 16 |
                        (i + 1 < n ? (uint32_t)data[i + 1] << 8 : 0) |
                        (i + 2 < n ? data[i + 2] : 0);

        four[0] = digits[bits >> 18];
        four[1] = digits[bits >> 12 & 63];
        four[2] = i + 1 < n ? digits[bits >> 6 & 63] : '=';
        four[3] = i + 2 < n ? digits[bits & 63] : '=';
        cpprof__buffer_append(out, four, 4);
    }
}

/* Names and values have no character that is none of JSON but these. */
static void
put_json_label(struct cpprof__buffer *out, const char *name, size_t n_name,
               const char *value, size_t n_value)
{
    size_t i;

    cpprof__buffer_printf(out, "{\"name\":\"%.*s\",\"value\":\"", (int)n_name,
                          name);
    for (i = 0; i < n_value; i++) {
        if (value[i] == '"' || value[i] == '\\')
            cpprof__buffer_append(out, "\\", 1);
        cpprof__buffer_append(out, &value[i], 1);
    }
    cpprof__buffer_printf(out, "\"}");
}

/* A WriteRawRequest, through the gateway that takes JSON. */
static void
make_parca(const struct cpprof__push_plan *plan,
           const struct cpprof__push_profile *profile,
           struct cpprof__push_message *m, struct cpprof__buffer *url)
{
    char series[CPPROF__PUSH_SERIES_BYTES];
    const char *rest = plan->labels;
    struct cpprof__push_label label;

    series_of(profile, series);
    cpprof__buffer_reserve(&m->body, profile->n / 3 * 4 + 4096);
    cpprof__buffer_printf(&m->body, "{\"series\":[{\"labels\":{\"labels\":[");
    put_json_label(&m->body, "__name__", 8, series, strlen(series));
    cpprof__buffer_printf(&m->body, ",");
    put_json_label(&m->body, "service_name", 12, plan->name,
                   strlen(plan->name));
    while (cpprof__push_next_label(&rest, &label)) {
        cpprof__buffer_printf(&m->body, ",");
        put_json_label(&m->body, label.name, label.n_name, label.value,
                       label.n_value);
    }
    cpprof__buffer_printf(&m->body, "]},\"samples\":[{\"rawProfile\":\"");
    put_base64(&m->body, profile->data, profile->n);
    cpprof__buffer_printf(&m->body, "\"}]}]}");
    cpprof__buffer_printf(url, "%s", plan->url);
    strcpy(m->type, "application/json");
}

/* ---- as it is --------------------------------------------------------- */

/* Of OTLP, the profile is a request: the plug-in has made it. */
static void
make_plain(const struct cpprof__push_plan *plan,
           const struct cpprof__push_profile *profile,
           struct cpprof__push_message *m, struct cpprof__buffer *url)
{
    cpprof__buffer_append(&m->body, profile->data, profile->n);
    cpprof__buffer_printf(url, "%s", plan->url);
    strcpy(m->type, plan->protocol == CPPROF_PUSH_OTLP
                        ? "application/x-protobuf"
                        : "application/octet-stream");
}

/* ----------------------------------------------------------------------- */

struct cpprof__push_message *
cpprof__push_message(const struct cpprof__push_plan *plan,
                     const struct cpprof__push_profile *profile)
{
    /* ORDER: enum cpprof_push_protocol */
    static void (*const make[])(
        const struct cpprof__push_plan *, const struct cpprof__push_profile *,
        struct cpprof__push_message *, struct cpprof__buffer *) = {
        make_push, make_ingest, make_plain, make_plain, make_parca};
    struct cpprof__push_message *m = cpprof__calloc(1, sizeof *m);
    struct cpprof__buffer url = {0};

    if (!m)
        return NULL;
    /* Reserved at once, so that the buffer does not grow to twice the size. */
    cpprof__buffer_reserve(&m->body, profile->n + 4096);
    make[plan->protocol](plan, profile, m, &url);
    cpprof__buffer_append(&url, "", 1);
    m->url = (char *)url.data;
    if (!m->body.failed && !url.failed)
        return m;
    cpprof__push_message_free(m);
    return NULL;
}
