/* SPDX-License-Identifier: MIT */
/*
 * The memory that our code asks for, in place of malloc() and its family, which
 * in a profiled program belong to the program: they may be its own, hold a lock
 * when a thread of it forks, and count their calls.
 *
 * In libcpprof it comes from mappings of our own (memory.c), and in its
 * symbolizer from libcpprof (lent.c). All else of ours has no such reason, and
 * gets malloc's (libc.c), which tools know to watch. That is decided when a
 * program is linked, once for all that is in it: libc.c gives way wherever one
 * of the two is.
 *
 * As in the C standard, but that no bytes are one byte. What comes from here is
 * given back here.
 *
 * Safety: MT. AS in libcpprof.
 */
#ifndef OWN_MEMORY_H
#define OWN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

void *
cpprof__malloc(size_t n) __attribute__((malloc, alloc_size(1)));
void *
cpprof__calloc(size_t n, size_t each) __attribute__((malloc, alloc_size(1, 2)));
void *
cpprof__realloc(void *old, size_t n) __attribute__((alloc_size(2)));
void
cpprof__free(void *block);

char *
cpprof__strdup(const char *text) __attribute__((malloc));
/* Of at most n bytes. */
char *
cpprof__strndup(const char *text, size_t n) __attribute__((malloc));

/* libdeflate shall ask here, too, if it is our copy of it. Before each use. */
void
cpprof__memory_for_deflate(void);

/*
 * A plug-in that the library loads has that library's memory, so that there is
 * one in a process (lent.c). The first lender counts, before anything was
 * asked for; all else of ours has malloc's.
 */
struct cpprof__memory {
    void *(*malloc)(size_t n);
    void *(*calloc)(size_t n, size_t each);
    void *(*realloc)(void *old, size_t n);
    void (*free)(void *block);
};
void
cpprof__memory_borrow(const struct cpprof__memory *lender);

/* How many bytes are mapped for it; 0: it is malloc's. */
size_t
cpprof__memory_bytes(void);

/* Of memory.c alone: who refers to it has memory of our own, in whichever order
 * archives are linked. */
extern const char cpprof__memory_is_own;

#endif
