/* SPDX-License-Identifier: MIT */
/* The library's first and last steps in a process. */
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
#include <string.h>

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

static bool is_used CPPROF__AT_START;

static void
first_use(void)
{
    store_release(&is_used, true);
    cpprof__fork_begin();
    at_quick_exit(cpprof__at_quick_exit);
    cpprof__switch_group(CPPROF__PROCESS, true);
    cpprof__switch_group(CPPROF__UNLOAD, true);
}

/* Only preloaded, with nothing asked for; or loaded late, for who attaches
 * (cpprof/attach.h): then no variable is meant for it. */
static bool
is_idle(void)
{
    const char *preload = getenv("LD_PRELOAD"), *asked = getenv("CPPROF");

    if (cpprof__own_is_late())
        return true;
    return preload && strstr(preload, "cpprof") && !(asked && *asked) &&
           !cpprof__own_is_linked();
}

__attribute__((constructor)) static void
first(void)
{
    bool idle = is_idle();
    CPPROF__EXEMPT;

    cpprof__take_over();
    store_release(&cpprof__first_use, first_use);
    if (idle)
        cpprof__heap_set_rate(0);
    else
        cpprof__use();
    cpprof__blocked_thread_note_main();
    if (!idle)
        cpprof__environment_read();
    cpprof__heap_start();
    cpprof__waits_start();
    if (idle)
        return;
    cpprof__environment_start();
    cpprof__vm_begin();
    cpprof__http_start();
    cpprof__context_begin();
    cpprof__push_begin();
}

__attribute__((destructor)) static void
last(void)
{
    if (load_acquire(&is_used))
        cpprof__at_exit();
}
