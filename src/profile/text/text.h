/* SPDX-License-Identifier: MIT */
/*
 * Stacks as lines of text: collapsed ("folded") stacks and what `perf script`
 * prints. Readers are like those of the legacy formats (legacy/legacy.h).
 */
#ifndef PROFILE_TEXT_TEXT_H
#define PROFILE_TEXT_TEXT_H

#include "base/buffer.h"
#include "profile/legacy/legacy.h"
#include "profile/proto/sink.h"

cpprof__legacy_reader cpprof__read_collapsed;   /* collapsed.c */
cpprof__legacy_reader cpprof__read_perf_script; /* perf_script.c */

/* Write the values of one sample type. */
void
cpprof__write_collapsed(const struct pprof_profile *p, size_t type,
                        struct cpprof__sink *out);
void
cpprof__write_perf_script(const struct pprof_profile *p, size_t type,
                          struct cpprof__sink *out);

/* ------------------------------------------------- names of frames ---- */

/* The name of a function, or its linker name; 0 when it has none. */
static inline uint32_t
cpprof__function_text(const struct pprof_profile *p, uint32_t function)
{
    const struct pprof_function *f = &p->functions.at[function];

    return f->name ? f->name : f->system_name;
}

/* Append a string of the profile; control characters, which would end or blur
 * a line, become spaces, and semicolons `semicolon`. */
void
cpprof__append_clean(struct cpprof__buffer *out, const struct pprof_profile *p,
                     uint32_t string, char semicolon);

/* Change what a reader of collapsed stacks would misunderstand. The stack
 * begins at the given offset and ends with the buffer. */
void
cpprof__escape_collapsed(struct cpprof__buffer *b, size_t start);

/* The last element of a file name, also cleaned. */
void
cpprof__append_base(struct cpprof__buffer *out, const struct pprof_profile *p,
                    uint32_t file, char semicolon);

#endif
