/* SPDX-License-Identifier: MIT */
/*
 * A frame as dumps of threads print it, in the shape of Go's:
 *
 *     function(...)
 *     <tab>file:line +0xoffset
 *
 * Whoever has no names prints the address in the place of the function:
 *
 *     ??(0xADDRESS)
 *     <tab>??:0 +0x0
 */
#ifndef OBJECT_FRAME_TEXT_H
#define OBJECT_FRAME_TEXT_H

#include "base/buffer.h"
#include "object/symbolizer.h"

/* Dumps have this before the address of a frame without a name. */
#define CPPROF__NAMELESS                                                       \
    "?"                                                                        \
    "?(0x"
#define CPPROF__CREATED_BY "created by "

/* The two lines of a frame, or those of an address without a name. */
void
cpprof__frame_print(struct cpprof__buffer *out,
                    const struct cpprof__frame *frame, uint64_t pc);
void
cpprof__frame_print_nameless(struct cpprof__buffer *out, uint64_t pc);

/* Who made the thread: likewise. frame NULL: it has no name. */
void
cpprof__frame_print_creator(struct cpprof__buffer *out,
                            const struct cpprof__frame *frame, uint64_t pc);

#endif
