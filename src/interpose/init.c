/* SPDX-License-Identifier: MIT */
/*
 * The library's first and last steps in a process. Each start of a program pays
 * for the first ones. So where the library was only preloaded, with nothing
 * asked for, they are a few stores and the search for names that cannot be
 * found later; the first use does all the rest.
 *
 * Invariant: what is done before the first use lasts, and no function of ours
 * but the jumps of take_over.h runs until then.
 */
#include "arch/place.h"
#include "collect/dump/blocked_thread.h"
#include "collect/process/environment.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/next.h"
#include "http/listen.h"
#include "interpose/heap.h"
#include "interpose/locks.h"
#include "interpose/parts.h"
#include "interpose/take_over.h"
#include "push/context.h"
#include "push/process.h"
#include "vm/load/process.h"

#include <stdlib.h>

/* malloc.c refers to it: what is linked with the static library takes the
 * constructor with it. */
void
cpprof__init(void)
{
}

#ifdef CPPROF__IS_STATIC               /* libcpprof-static.a */
extern const char cpprof__links_names; /* linked.c */
__attribute__((used)) static const char *const linked = &cpprof__links_names;
#endif

/* libcpprof.so is linked without the compiler's first and last functions, which
 * define this: what is registered with libc says by it whose it is. */
__attribute__((weak, visibility("hidden"))) extern void *const __dso_handle;
void *const __dso_handle = (void *)&__dso_handle;

static bool is_used CPPROF__AT_START;
static bool waits_for_use CPPROF__AT_START; /* nothing was begun before */

static void
first_use(void)
{
    store_release(&is_used, true);
    if (load_acquire(&waits_for_use))
        cpprof__heap_learn();
    cpprof__fork_begin();
    at_quick_exit(cpprof__at_quick_exit);
    cpprof__switch_group(CPPROF__PROCESS, true);
    cpprof__switch_group(CPPROF__UNLOAD, true);
}

static void
begin_idle(void)
{
    store_release(&waits_for_use, true);
    /* Many a forked child calls no other name, and each would find it anew. */
    cpprof__first_call(CPPROF__NAME__exit);
    cpprof__heap_set_rate(0);
    cpprof__heap_follow();
    cpprof__waits_follow();
}

/* Loaded by a running program, for who attaches (cpprof/attach.h): no variable
 * is meant for it. */
static void
begin_late(void)
{
    cpprof__take_over();
    cpprof__heap_set_rate(0);
    cpprof__heap_start();
    cpprof__waits_follow();
}

static void
begin(void)
{
    cpprof__take_over();
    cpprof__use();
    cpprof__environment_read();
    cpprof__heap_start();
    cpprof__waits_follow();
    cpprof__environment_start();
    cpprof__vm_begin();
    cpprof__http_start();
    cpprof__context_begin();
    cpprof__push_begin();
}

static bool
is_asked_for(void)
{
    const char *asked = getenv("CPPROF");

    return (asked && *asked) || cpprof__own_is_linked();
}

__attribute__((constructor)) static void
first(void)
{
    bool is_late = cpprof__own_is_late();
    CPPROF__EXEMPT;

    store_release(&cpprof__first_use, first_use);
    cpprof__blocked_thread_note_main();
    if (is_late)
        begin_late();
    else if (!is_asked_for() && cpprof__names_begin())
        begin_idle();
    else
        begin();
}

__attribute__((destructor)) static void
last(void)
{
    if (load_acquire(&is_used))
        cpprof__at_exit();
}
