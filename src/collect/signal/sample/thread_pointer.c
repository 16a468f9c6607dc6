/* SPDX-License-Identifier: MIT */
/*
 * Tells threads of libc's from those that a program has made by a bare clone()
 * with another thread pointer, or none.
 *
 * Wherever libc makes thread-local storage it copies our variable `mark` into
 * it, with its first value, at one distance from the thread pointer
 * (-ftls-model=initial-exec). So storage is libc's where that value is found.
 * musl has a table of storage for each thread, which the thread pointer leads
 * to, as the library may come late (arch/libc.h).
 * Where a thread pointer that was not found to be libc's before leads nowhere,
 * the kernel says so: it reads the memory for us, with a request that changes
 * nothing.
 *
 * Invariants: `libcs` has thread pointers where the mark was found, so a thread
 * of libc's needs a system call at its first tick only, and its storage stays
 * as long as it runs. Others need one each time: a program may unmap what lies
 * before its own storage while a thread runs. That the mark is there is looked
 * at each time. Nothing here touches thread-local storage, and so nothing calls
 * libc, which may set errno.
 */
#include "collect/signal/sample/thread_pointer.h"

#include "arch/atomic.h"
#include "arch/libc.h"
#include "arch/mix.h"
#include "arch/place.h"
#include "arch/regs.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>

#define MARK 0x6370662d6d61726bull /* "cpf-mark" */

/* Thread pointers that are remembered, 2 KiB: two that share a slot ask the
 * kernel each time. */
#define REMEMBERED_BITS 8

static __thread volatile uint64_t mark = MARK;
/* Where it is for a thread pointer. */
static struct cpprof__libc_place mark_at CPPROF__AT_START;
static bool is_learnt CPPROF__AT_START;
static bool is_quick CPPROF__AT_START; /* an instruction reads it */
static uintptr_t libcs[1 << REMEMBERED_BITS] CPPROF__LARGE;

void
cpprof__thread_pointer_learn(unsigned long hwcap2)
{
    is_quick = cpprof__has_thread_pointer_insn(hwcap2);
    mark_at =
        cpprof__libc_place((uintptr_t)&mark, cpprof__thread_pointer(is_quick));
    is_learnt = true;
}

/* There is no way to change a mask that is called ~0, but the kernel looks at
 * what it is to be changed by first. */
static bool
can_read(uintptr_t address)
{
    return cpprof__syscall(SYS_rt_sigprocmask, ~0, (long)address, 0,
                           sizeof(uint64_t), 0, 0) == -EINVAL;
}

bool
cpprof__thread_pointer_is_libcs(void)
{
    uintptr_t pointer = cpprof__thread_pointer(is_quick);
    uintptr_t *known = &libcs[cpprof__spread_u64(pointer, REMEMBERED_BITS)];
    bool (*may_read)(uintptr_t) =
        load_relaxed(known) == pointer ? NULL : can_read;
    uintptr_t at;

    if (!is_learnt)
        return true;
    at = pointer ? cpprof__libc_place_at(&mark_at, pointer, may_read) : 0;
    if (!at || (may_read && !can_read(at)) || *(volatile uint64_t *)at != MARK)
        return false;
    store_relaxed(known, pointer);
    return true;
}
