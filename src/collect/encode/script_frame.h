/* SPDX-License-Identifier: MIT */
/* The frame that a profile shows for a location in a script. */
#ifndef COLLECT_SCRIPT_FRAME_H
#define COLLECT_SCRIPT_FRAME_H

#include "collect/signal/tables/scripts.h"
#include "object/symbolizer.h"

/*
 * The frame that pc, of a script, stands for, and the text of its mapping. If
 * it has no name it gets the name of its file. If it is not in the table, or
 * scripts is NULL, it is "[unknown]", in no mapping (""). The texts live as
 * long as the table's block.
 */
void
cpprof__script_frame(const struct cpprof__scripts *scripts, uint64_t pc,
                     struct cpprof__frame *frame, const char **mapping);

#endif
