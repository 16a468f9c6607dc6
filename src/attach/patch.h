/* SPDX-License-Identifier: MIT */
/*
 * The names that are taken over (collect/runtime/real.h), in a process whose
 * modules were bound before this library came: their entries
 * (collect/entries/entries.h) are pointed at our exported functions, and back.
 */
#ifndef ATTACH_PATCH_H
#define ATTACH_PATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Parts of the table, by group. */
#define CPPROF__PATCH_PROCESS 1u
#define CPPROF__PATCH_HEAP    2u
#define CPPROF__PATCH_WAITS   4u

enum cpprof__patch_state {
    CPPROF__PATCH_CANNOT,     /* the loader cannot be asked: in a child */
    CPPROF__PATCH_NOT_NEEDED, /* modules call our functions already */
    CPPROF__PATCH_READY,
};

/* Find out what stands for what, and whose malloc it is: sanitized says whether
 * it is a sanitizer's. */
enum cpprof__patch_state
cpprof__patch_begin(bool *sanitized);

/*
 * Look at all modules that are there: patch the names of these parts, or put
 * back all that are patched. One thread at a time, which is one of ours; it
 * waits for nobody but for who loads or unloads, at most so long as a list is
 * changed.
 *
 * False: a module was not ready, or a fork was under way; look again soon.
 */
bool
cpprof__patch_all(unsigned parts);
bool
cpprof__patch_restore(void);

/* Modules were loaded since the last time that all were looked at. */
bool
cpprof__patch_has_news(void);

#endif
