/* SPDX-License-Identifier: MIT */
/* The first line of the heap profile as text: its sums. */
#ifndef LIVE_HEAP_HEADING_H
#define LIVE_HEAP_HEADING_H

struct heap_heading {
    long long inuse_objects;
    long long inuse_bytes;
    long long alloc_objects;
    long long alloc_bytes;
};

/* As of now. Allocates nothing by itself. */
struct heap_heading
heap_heading(void);

#endif
