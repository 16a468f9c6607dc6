/* SPDX-License-Identifier: MIT */
/*
 * The parts of a stack that is to be written: mappings, frames, labels. Tables
 * give them to the builder.
 */
#ifndef COLLECT_FRAME_H
#define COLLECT_FRAME_H

#include "collect/signal/tables/own_frames.h"

#include <stdint.h>

/* One executable mapping. */
struct cpprof__builder_mapping {
    uint64_t start;
    uint64_t limit;
    uint64_t offset;
    const char *path;     /* " (deleted)" already stripped */
    const char *build_id; /* hex or "" */
};

#define CPPROF__NO_MAPPING UINT32_MAX

/*
 * A frame of a stack: an address inside its instruction and the mapping it was
 * in. A pc below CPPROF__FRAME_END is not an address but one of the frames of
 * our own making; those of scripts are told by cpprof__is_script().
 */
struct cpprof__builder_frame {
    uint64_t pc;
    uint32_t mapping; /* index from add_mapping, or CPPROF__NO_MAPPING */
};

/* One label: text has str, a number has num and maybe a unit. */
struct cpprof__builder_label {
    const char *key;
    const char *str; /* NULL: a number */
    int64_t num;
    const char *num_unit; /* or NULL */
};

#endif
