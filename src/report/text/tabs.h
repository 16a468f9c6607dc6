/* SPDX-License-Identifier: MIT */
/* Tables from text with tabs. */
#ifndef REPORT_TABS_H
#define REPORT_TABS_H

#include "base/buffer.h"

/*
 * Append text with its cells, each ended by a tab, set to the right in
 * columns one blank apart. A column reaches over neighbouring lines that have
 * it; what stands behind the last tab of a line belongs to none. False when
 * out of memory.
 */
bool
cpprof__tabs_align(const uint8_t *text, size_t n, struct cpprof__buffer *out);

#endif
