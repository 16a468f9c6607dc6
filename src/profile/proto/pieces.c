/* SPDX-License-Identifier: MIT */
#include "profile/proto/pieces.h"

#include "own/memory.h"

#include <string.h>

/* Frames that room is made for at a time. More makes the buffer larger than
 * what is written; less makes the checks for room cost time. */
#define BLOCK_FRAMES ((size_t)512)

bool
cpprof__pieces_make(struct cpprof__pieces *pieces,
                    const struct pprof_profile *p, cpprof__id_bytes *id_bytes)
{
    size_t i, n = p->locations.n;

    pieces->p = p;
    pieces->id_bytes = id_bytes;
    pieces->at = cpprof__calloc(n + 1, sizeof *pieces->at);
    for (i = 0; pieces->at && i < n; i++) {
        uint8_t bytes[CPPROF__PIECE_MAX];
        size_t used = id_bytes(bytes, p->locations.at[i].id);
        struct cpprof__piece *piece = &pieces->at[i];

        if (used > sizeof piece->bytes)
            continue;
        memcpy(piece->bytes, bytes, used);
        piece->n = (uint8_t)used;
    }
    return pieces->at != NULL;
}

void
cpprof__pieces_free(struct cpprof__pieces *pieces)
{
    cpprof__free(pieces->at);
    pieces->at = NULL;
}

static uint8_t *
put_block(const struct cpprof__pieces *pieces, uint8_t *out,
          const uint32_t *frames, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        const struct cpprof__piece *piece = &pieces->at[frames[i]];

        /* Always stores eight bytes; the next piece overwrites what was too
         * much. */
        memcpy(out, piece, sizeof *piece);
        out +=
            piece->n
                ? piece->n
                : pieces->id_bytes(out, pieces->p->locations.at[frames[i]].id);
    }
    return out;
}

void
cpprof__pieces_put(const struct cpprof__pieces *pieces,
                   struct cpprof__buffer *out, const uint32_t *frames, size_t n)
{
    while (n) {
        size_t block = n < BLOCK_FRAMES ? n : BLOCK_FRAMES;
        uint8_t *end;

        if (!cpprof__buffer_reserve(out, block * CPPROF__PIECE_MAX))
            return;
        end = put_block(pieces, out->data + out->n, frames, block);
        out->n = (size_t)(end - out->data);
        frames += block;
        n -= block;
    }
}
