/* SPDX-License-Identifier: MIT */
/*
 * OTLP Profiles: the message ProfilesData, in which the OpenTelemetry collector
 * and what understands it take profiles. A file is one such message, without
 * compression or with gzip.
 *
 * A profile of several sample types is as many messages Profile with the same
 * samples, the default one first; pprof.scope.sample_type_order has the order
 * that they had. Entry i of a table is entry i - 1 of the model, as entry 0 is
 * the empty one. What pprof knows and OTLP does not are attributes of the names
 * that the semantic conventions have for it.
 *
 * Source: opentelemetry-proto, opentelemetry/proto/profiles/v1development;
 * semantic-conventions, docs/registry/attributes/{pprof,process,profile}.md.
 */
#ifndef PROFILE_OTLP_H
#define PROFILE_OTLP_H

#include "base/buffer.h"
#include "profile/model/model.h"

/* The version of the protocol whose numbers these are. Nothing in a message
 * tells it: readers of another one misunderstand it. */
#define CPPROF__OTLP_VERSION "1.10"

/* The keys of our labels, and those of the conventions. */
#define CPPROF__OTLP_THREAD_NAME "thread.name"
#define CPPROF__OTLP_THREAD_ID   "thread.id"

/* Attributes of pprof. */
#define CPPROF__OTLP_ORDER        "pprof.scope.sample_type_order"
#define CPPROF__OTLP_DEFAULT_TYPE "pprof.scope.default_sample_type"
#define CPPROF__OTLP_COMMENT      "pprof.profile.comment"
#define CPPROF__OTLP_DROP_FRAMES  "pprof.profile.drop_frames"
#define CPPROF__OTLP_KEEP_FRAMES  "pprof.profile.keep_frames"
#define CPPROF__OTLP_DOC_URL      "pprof.profile.doc_url"
#define CPPROF__OTLP_IS_FOLDED    "pprof.location.is_folded"
#define CPPROF__OTLP_BUILD_ID     "process.executable.build_id.gnu"
#define CPPROF__OTLP_BUILD_ID_GO  "process.executable.build_id.go"
#define CPPROF__OTLP_HTLHASH      "process.executable.build_id.htlhash"
#define CPPROF__OTLP_FRAME_TYPE   "profile.frame.type"
#define CPPROF__OTLP_SERVICE      "service.name"

/* By bit of a mapping's flags. ORDER: PPROF_HAS_* */
#define CPPROF__OTLP_HAS                                                       \
    {                                                                          \
        "pprof.mapping.has_functions", "pprof.mapping.has_filenames",          \
            "pprof.mapping.has_line_numbers",                                  \
            "pprof.mapping.has_inline_frames"                                  \
    }

/* The hash by which OpenTelemetry knows a file, in hex. */
#define CPPROF__HTLHASH_CHARS 32

/* The hash of the file at path, if it has that build id: false: it has not, or
 * cannot be read. */
bool
cpprof__htlhash(const char *path, const char *build_id,
                char text[CPPROF__HTLHASH_CHARS + 1]);

struct cpprof__otlp_options {
    /* Of the resource: "key=value,key=value", percent-encoded, as
     * OTEL_RESOURCE_ATTRIBUTES has them. The last of a key counts. Without
     * service.name that is "unknown_service:" and the program. NULL: none. */
    const char *resource;

    /* As cpprof__htlhash(); NULL: no hashes. */
    bool (*htlhash)(const char *path, const char *build_id,
                    char text[CPPROF__HTLHASH_CHARS + 1]);
};

/*
 * Append a profile that pprof_check() finds whole. Bytes that are not UTF-8
 * become U+FFFD: a reader would refuse the message.
 *
 * Errors:  CPPROF_NOMEM.
 */
enum cpprof_status
cpprof__otlp_encode(const struct pprof_profile *p,
                    const struct cpprof__otlp_options *options,
                    struct cpprof__buffer *out, struct cpprof_error *error);

/* Append the attributes of a resource as fields of the message Resource. */
void
cpprof__otlp_resource(struct cpprof__buffer *out, const char *resource,
                      const char *program);

/* Is this a ProfilesData, and no profile.proto? */
bool
cpprof__is_otlp(const uint8_t *data, size_t n);

/*
 * Read a ProfilesData. Several Profiles become sample types of one profile:
 * of the same samples where these are the same, and else each with samples of
 * its own, whose other values are 0. Where there are several resources, samples
 * have the label service.name.
 *
 * max_bytes  of the stacks and values, which a message may repeat at no cost.
 *
 * Errors:  CPPROF_BAD_DATA, CPPROF_LIMIT, CPPROF_NOMEM.
 */
enum cpprof_status
cpprof__otlp_decode(const uint8_t *data, size_t n, uint64_t max_bytes,
                    struct pprof_profile **profile, struct cpprof_error *error);

#endif
