/* SPDX-License-Identifier: MIT */
/*
 * The library's first and last steps in a process. Each start of a program pays
 * for the first ones: where the library was only preloaded, with nothing asked
 * for, names are found and nothing is begun.
 */
#include "arch/clock.h"
#include "arch/place.h"
#include "arch/regs.h"
#include "collect/dump/blocked_thread.h"
#include "collect/entries/libc_names.h"
#include "collect/process/environment.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/next.h"
#include "collect/runtime/own_threads.h"
#include "http/listen.h"
#include "interpose/heap.h"
#include "interpose/locks.h"
#include "interpose/parts.h"
#include "interpose/take_over.h"
#include "own/memory.h"
#include "own/say.h"
#include "push/context.h"
#include "push/process.h"
#include "vm/load/process.h"

#include <stdlib.h>
#include <sys/auxv.h>

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

#ifdef CPPROF__OWN_MEMORY
__attribute__((used)) static const char *const has_memory =
    &cpprof__memory_is_own;
#endif

/* libcpprof.so is linked without the compiler's first and last functions, which
 * define this: what is registered with libc says by it whose it is. */
__attribute__((weak, visibility("hidden"))) extern void *const __dso_handle;
void *const __dso_handle = (void *)&__dso_handle;

static bool is_used CPPROF__AT_START;

/* Not a function of that name in another module. */
CPPROF__FIRST_STEP static void
find_vdso_clock(void)
{
    struct cpprof__definition clock;

    cpprof__next_symbols(CPPROF__VDSO_CLOCK "\0", &clock, 1);
    if (clock.address && clock.module->l_addr == getauxval(AT_SYSINFO_EHDR))
        cpprof__vdso_clock = clock.address;
    cpprof__look_for_counter();
}

CPPROF__FIRST_STEP static void
first_use(void)
{
    store_release(&is_used, true);
#ifdef CPPROF__IS_LIBRARY /* libcpprof.so, and no part of a program */
    cpprof__libc_names_bind(cpprof__own_module());
#endif
    find_vdso_clock();
    cpprof__thread_pointer_learn(getauxval(AT_HWCAP2));
    cpprof__own_threads_learn();
    cpprof__fork_begin();
    at_quick_exit(cpprof__at_quick_exit);
    cpprof__switch_group(CPPROF__PROCESS, true);
}

/* Nothing is asked for; or a running program has loaded the library, for who
 * attaches (cpprof/attach.h), and no variable is meant for it. */
CPPROF__FIRST_STEP static void
begin_idle(void)
{
    cpprof__take_over();
    cpprof__heap_set_rate(0);
    cpprof__heap_start();
    cpprof__waits_follow();
}

CPPROF__FIRST_STEP static void
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

CPPROF__FIRST_STEP static bool
is_asked_for(void)
{
    const char *asked = getenv("CPPROF");

    return (asked && *asked) || cpprof__own_is_linked();
}

__attribute__((constructor)) static void
first(void)
{
    CPPROF__EXEMPT;

    store_release(&cpprof__first_use, first_use);
    cpprof__blocked_thread_note_main();
    cpprof__say_begin(cpprof__own_is_late());
    if (cpprof__own_is_late() || !is_asked_for())
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
