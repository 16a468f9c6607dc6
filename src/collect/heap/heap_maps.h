/* SPDX-License-Identifier: MIT */
/*
 * The heap "mmap": sampled mappings by their ranges, because a mapping may be
 * unmapped in parts, mapped over, and moved. A block of the heap has one or
 * more pieces; its address in the table of live blocks is that of one of them.
 *
 * One lock guards all of it, with signals blocked. A call that unmaps addresses
 * is made with the lock held, so that whoever is given them next waits until
 * they are forgotten.
 */
#ifndef COLLECT_HEAP_MAPS_H
#define COLLECT_HEAP_MAPS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most pieces at a time. A mapping that finds no room is counted and not
 * followed. By default a process cannot have more mappings than this. */
#define CPPROF__MAPS_MAX 65536u

#pragma GCC visibility push(hidden)
/* Number of the heap; 0: mappings are not followed. */
extern uint32_t cpprof__maps_heap;
/* Pieces there are. */
extern uint32_t cpprof__maps_n;
/* Called when mappings begin to be followed, unless NULL. */
extern void (*cpprof__maps_changed)(void);
#pragma GCC visibility pop

void
cpprof__maps_lock(sigset_t *old);
void
cpprof__maps_unlock(const sigset_t *old);

/* A mapping that cpprof__heap_sample() was told of: follow it, if it was
 * sampled. Takes the lock. */
void
cpprof__maps_add(uintptr_t at, size_t n);

/* With the lock: what is mapped there now is another mapping, or none. */
void
cpprof__maps_remove(uintptr_t at, size_t n);

/* With the lock: a whole mapping has another address or size. */
void
cpprof__maps_move(uintptr_t from, size_t n, uintptr_t to, size_t n_now);

void
cpprof__maps_in_child(void);

#endif
