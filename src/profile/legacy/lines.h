/* SPDX-License-Identifier: MIT */
/* Lines of text, and the numbers in them, as the legacy formats have them. */
#ifndef PROFILE_LEGACY_LINES_H
#define PROFILE_LEGACY_LINES_H

#include "base/array.h"

#include <stdint.h>

/* A slice of the input, not terminated. */
struct cpprof__text {
    const char *at;
    size_t n;
};

struct cpprof__legacy_lines {
    const char *next, *end;
};

/* The next line without its end ("\n" or "\r\n"); false behind the last. */
bool
cpprof__next_line(struct cpprof__legacy_lines *lines,
                  struct cpprof__text *line);

/* Without ASCII white space at both ends. */
struct cpprof__text
cpprof__trim(struct cpprof__text text);

/* Nothing but white space, or '#' first. */
bool
cpprof__is_space_or_comment(struct cpprof__text line);

/* Does it contain, begin with, a terminated text? */
bool
cpprof__contains(struct cpprof__text line, const char *text);
bool
cpprof__begins(struct cpprof__text line, const char *text);

/* "--- Memory map: ---" or "MAPPED_LIBRARIES:" somewhere in it. */
bool
cpprof__is_maps_sentinel(struct cpprof__text line);

/*
 * All "0x..." numbers of a text, in lower-case digits, appended. False, with
 * *failed_at the word, when one does not fit 64 bits; true and out->nomem when
 * out of memory. The caller frees out->list.
 */
struct cpprof__legacy_addresses {
    CPPROF__ARRAY(uint64_t) list;
    bool nomem;
};

bool
cpprof__hex_addresses(struct cpprof__text text,
                      struct cpprof__legacy_addresses *out,
                      struct cpprof__text *failed_at);

#endif
