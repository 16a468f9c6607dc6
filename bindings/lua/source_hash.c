/* SPDX-License-Identifier: MIT */
/*
 * What a chunk is told apart by: of one from a file the name, of one from a
 * string the text, all of it, as generated code may differ in a word only.
 *
 * A text is hashed once in a walk, however many of its functions are on the
 * stack, and is known by its address: what is on the stack is not freed, and
 * no longer than for one walk is an address believed.
 */
#include "state.h"

/* Tunable, in bytes: of a longer text the halves of it at both ends count. Some
 * 50 us for a walk at most. */
#define HASHED_MAX (1u << 20)

/* Shorter ones, such as names of files, are hashed in less time than found. */
#define NOTED_MIN 128

#define N_LANES 4

static uint64_t
mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* Four at a time, as a multiplication takes some cycles. */
static uint64_t
hash_text(uint64_t hash, const char *text, size_t n)
{
    uint64_t lanes[N_LANES] = {hash, 1, 2, 3}, words[N_LANES];
    size_t i;

    for (; n >= sizeof words; n -= sizeof words, text += sizeof words) {
        memcpy(words, text, sizeof words);
        for (i = 0; i < N_LANES; i++)
            lanes[i] = mix(lanes[i], words[i]);
    }
    memset(words, 0, sizeof words);
    memcpy(words, text, n);
    for (i = 0; i < N_LANES; i++)
        hash = mix(mix(hash, lanes[i]), words[i]);
    return hash;
}

static uint64_t
hash_source(const char *source, size_t n)
{
    if (n <= HASHED_MAX)
        return hash_text(n, source, n);
    return hash_text(hash_text(n, source, HASHED_MAX / 2),
                     source + n - HASHED_MAX / 2, HASHED_MAX / 2);
}

uint64_t
source_hash(struct sources *sources, const lua_Debug *ar)
{
    size_t n = source_length(ar), i;

    if (n < NOTED_MIN)
        return hash_source(ar->source, n);
    for (i = 0; i < SOURCES_NOTED; i++)
        if (sources->noted[i].source == ar->source)
            return sources->noted[i].hash;
    i = sources->next++ % SOURCES_NOTED;
    sources->noted[i].source = ar->source;
    sources->noted[i].hash = hash_source(ar->source, n);
    return sources->noted[i].hash;
}
