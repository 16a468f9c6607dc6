/* SPDX-License-Identifier: MIT */
/* The tags of nodes as boxes beside them. */
#ifndef REPORT_DOT_TAGS_H
#define REPORT_DOT_TAGS_H

#include "report/dot/visual.h"

/*
 * Append the boxes of a node's tags, which is drawn as N<id>; true if there
 * are any. Of a node with calls drawn out of it only its own tags are shown,
 * not those of what it calls. *failed when out of memory.
 */
bool
cpprof__dot_tags(const struct cpprof__visual *v, uint32_t node, size_t id,
                 bool has_calls, bool *failed);

#endif
