/* SPDX-License-Identifier: MIT */
/*
 * What may be done with a page now, as the kernel tells it: a futex call reads
 * a word, or adds 0 to it, and fails where the program would get a SIGSEGV.
 * Another thread may change the answer at any time.
 */
#ifndef COLLECT_ENTRIES_PAGES_H
#define COLLECT_ENTRIES_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pages that could be read. */
struct cpprof__pages {
    uintptr_t bits; /* of an address in its page */
    uintptr_t known[64];
};

void
cpprof__pages_begin(struct cpprof__pages *pages);

/* All of it? */
bool
cpprof__pages_read(struct cpprof__pages *pages, const void *from, size_t n);

/* A text and its end. */
bool
cpprof__pages_read_text(struct cpprof__pages *pages, const char *text);

/* The page that it is in? */
bool
cpprof__page_is_writable(uintptr_t at);

#endif
