/* SPDX-License-Identifier: MIT */
/* What the parts of the decoder share. */
#ifndef PROFILE_DECODE_INTERNAL_H
#define PROFILE_DECODE_INTERNAL_H

#include "base/proto.h"
#include "profile/model/id_map.h"
#include "profile/model/model.h"
#include "profile/proto/decode.h"

struct decoder {
    struct pprof_profile *p;
    struct cpprof_error *error;
    const uint8_t *data;
    size_t n;

    /* The first walk. */
    const uint8_t *before;                /* where the current field begins */
    CPPROF__ARRAY(uint32_t) strings;      /* string_table index -> string */
    CPPROF__ARRAY(uint64_t) mapping_ids;  /* of each location */
    CPPROF__ARRAY(uint64_t) function_ids; /* of each line */
    size_t n_samples;
    const uint8_t *samples_begin; /* the first one's tag; NULL: none */
    const uint8_t *samples_end;   /* behind the last one */

    /* The second. */
    struct cpprof__id_map locations;
    bool ids_count_from_1; /* the same map, but simpler */
    CPPROF__ARRAY(struct pprof_label) sample_labels; /* of one sample */
    uint8_t *released; /* bytes before this are given back; NULL: keep all */
};

/* "parsing profile: TEXT", found at the given byte. */
enum cpprof_status
cpprof__decode_bad(struct decoder *d, const uint8_t *at, const char *text);

/* A string number of the file in 32 bits; one that cannot be becomes
 * UINT32_MAX, which no string table reaches. */
static inline uint32_t
cpprof__string_ref(uint64_t value)
{
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* Turn a string number of the file into one of ours; false if there is no
 * such string. */
static inline bool
cpprof__link_string(const struct decoder *d, uint32_t *string)
{
    if (*string >= d->strings.n)
        return false;
    *string = d->strings.at[*string];
    return true;
}

/* The second walk. */
enum cpprof_status
cpprof__decode_samples(struct decoder *d);

#endif
