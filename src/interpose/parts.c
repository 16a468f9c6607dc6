/* SPDX-License-Identifier: MIT */
/*
 * What each part of the library does when the process forks, unloads code or
 * ends: one table, and the order of its rows is the order of things. After an
 * unload it runs from the last row to the first.
 *
 * Fork. Nothing is done before a fork but to keep the loader's lock free of our
 * threads (session_changes.c), and no lock of ours is
 * held while handlers of pthread_atfork run: they may wait for threads that
 * need one. The child has the memory of one moment of its parent, and one
 * thread. in_child() runs there as early as our own handler does, and makes
 * every lock free again. Where a lock was free, what it guards is whole; where
 * another thread had it, that may be in the midst of a change, and in_child()
 * rebuilds it or drops it. It neither allocates nor frees, since the
 * allocator's own handler may not have run, and it waits for nobody.
 * begin_child() runs when all handlers of the program have.
 *
 * Exit. exit.c tells it.
 */
#include "interpose/parts.h"

#include "collect/cpu/session.h"
#include "collect/dump/blocked_thread.h"
#include "collect/dump/dump.h"
#include "collect/encode/names.h"
#include "collect/heap/heap_maps.h"
#include "collect/heap/heap_profile.h"
#include "collect/labels/labels.h"
#include "collect/leak/leak.h"
#include "collect/process/environment.h"
#include "collect/process/late.h"
#include "collect/registry/registry.h"
#include "collect/runtime/own_threads.h"
#include "collect/signal/heap/heap.h"
#include "collect/signal/waits/waits.h"
#include "collect/store/tables.h"
#include "collect/stuck/stuck.h"
#include "collect/stuck/watch.h"
#include "collect/threads/thread_creation.h"
#include "collect/wall/wall.h"
#include "http/listen.h"
#include "push/context.h"
#include "push/process.h"
#include "vm/load/process.h"
#include "vm/profile/session.h"

const struct cpprof__part cpprof__parts[] = {
    /* Who forked is known until others know who goes on. */
    {.in_child = cpprof__stuck_in_child},
    {.in_child = cpprof__watch_in_child},
    /* Who we are comes first: others ask for it. */
    {.in_child = cpprof__own_threads_in_child},
    {.in_child = cpprof__late_in_child, .end = cpprof__late_end},
    {.in_child = cpprof__thread_creation_in_child},
    {.in_child = cpprof__labels_in_child},
    {.in_child = cpprof__registry_in_child},
    {.in_child = cpprof__names_in_child,
     .after_unload = cpprof__names_after_unload},
    {.in_child = cpprof__heaps_in_child},
    {.in_child = cpprof__leaks_in_child},
    {.in_child = cpprof__maps_in_child},
    {.in_child = cpprof__heap_forked},
    {.in_child = cpprof__waits_forked},
    /* The drainer takes the tables' lock under its own. */
    {.in_child = cpprof__session_in_child,
     .before_unload = cpprof__session_before_unload,
     .after_unload = cpprof__session_after_unload},
    {.in_child = cpprof__tables_in_child,
     .before_unload = cpprof__tables_resolve,
     .after_unload = cpprof__tables_after_unload},
    {.in_child = cpprof__blocked_thread_in_child},
    {.in_child = cpprof__dump_in_child},
    {.in_child = cpprof__wall_in_child},
    {.in_child = cpprof__vm_in_child,
     .has_to_write = cpprof__vm_has_to_write,
     .write = cpprof__vm_write},
    {.begin_child = cpprof__environment_start_child,
     .has_to_write = cpprof__environment_has_to_write,
     .write = cpprof__environment_write},
    {.in_child = cpprof__http_in_child,
     .begin_child = cpprof__http_begin_child,
     .end = cpprof__http_end},
    {.begin_child = cpprof__context_begin},
    {.in_child = cpprof__push_in_child,
     .begin_child = cpprof__push_begin_child,
     .end = cpprof__push_end},
};

_Static_assert(sizeof cpprof__parts / sizeof *cpprof__parts == CPPROF__N_PARTS,
               "as parts.h says");
