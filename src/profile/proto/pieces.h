/* SPDX-License-Identifier: MIT */
/*
 * What is written for a location in a stack: its id, as a varint or in digits.
 * There are far more frames than locations, so the bytes are made once for
 * each location, and a stack is written by copying eight bytes a frame.
 */
#ifndef PROFILE_PIECES_H
#define PROFILE_PIECES_H

#include "base/buffer.h"
#include "profile/model/model.h"

/* Write an id to out, which has room for CPPROF__PIECE_MAX bytes; returns how
 * many it took. */
#define CPPROF__PIECE_MAX 24
typedef size_t
cpprof__id_bytes(uint8_t *out, uint64_t id);

struct cpprof__pieces {
    struct cpprof__piece {
        uint8_t bytes[7];
        uint8_t n; /* 0: more than there is room for */
    } * at;        /* by location */
    const struct pprof_profile *p;
    cpprof__id_bytes *id_bytes;
};

/* Of all locations of p; false when out of memory. Free it in either case. */
bool
cpprof__pieces_make(struct cpprof__pieces *pieces,
                    const struct pprof_profile *p, cpprof__id_bytes *id_bytes);
void
cpprof__pieces_free(struct cpprof__pieces *pieces);

/* Append those of n frames. */
void
cpprof__pieces_put(const struct cpprof__pieces *pieces,
                   struct cpprof__buffer *out, const uint32_t *frames,
                   size_t n);

#endif
