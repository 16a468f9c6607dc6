/* SPDX-License-Identifier: MIT */
/*
 * Whose malloc the program calls. Ours is not always in front: an allocator
 * that is linked into the program, or that stands before us among its
 * libraries, is called without our seeing it, and a heap profile would be
 * empty without anyone knowing why.
 */
#ifndef COLLECT_HEAP_OWNER_H
#define COLLECT_HEAP_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where our malloc begins, 0 where there is none (src/interpose sets it); or
 * that which ours stands for in all modules (src/attach). */
extern uintptr_t cpprof__heap_our_malloc;

/* Operators of C++ were led to ours (src/interpose/operators.c) when others may
 * have known them by their address already, or not all were: frees may have
 * been missed. */
extern bool cpprof__heap_misses_operators;

/*
 * NULL when malloc is ours, else whose it is: a library's path, or "the
 * program" and its path. Points to name. Safety: MT. Not AS: reads the
 * program's file.
 */
const char *
cpprof__heap_owner(char *name, size_t size);

#endif
