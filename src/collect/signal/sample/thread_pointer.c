/* SPDX-License-Identifier: MIT */
/*
 * Tells threads of libc's from those that a program has made by a bare clone()
 * with another thread pointer, or none.
 *
 * Wherever libc makes thread-local storage it copies our variable `mark` into
 * it, with its first value, at one distance from the thread pointer
 * (-ftls-model=initial-exec). So storage is libc's where that value is found.
 * Where a thread pointer that was not met before leads nowhere, the kernel says
 * so: it reads the memory for us, with a request that changes nothing.
 *
 * Invariants: `readable` has thread pointers whose mark was readable once, so a
 * thread needs a system call at its first tick only; that the mark is there is
 * looked at each time. Nothing here touches thread-local storage, and so
 * nothing calls libc, which may set errno.
 */
#include "collect/signal/sample/thread_pointer.h"

#include "arch/atomic.h"
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
static intptr_t mark_at; /* from the thread pointer; 0: not learnt */
static bool is_quick;    /* an instruction reads it */
static uintptr_t readable[1 << REMEMBERED_BITS] CPPROF__LARGE;

void
cpprof__thread_pointer_learn(unsigned long hwcap2)
{
    is_quick = cpprof__has_thread_pointer_insn(hwcap2);
    mark_at = (intptr_t)((uintptr_t)&mark - cpprof__thread_pointer(is_quick));
}

/* There is no way to change a mask that is called ~0, but the kernel looks at
 * what it is to be changed by first. */
static bool
can_read(uintptr_t address)
{
    return cpprof__syscall(SYS_rt_sigprocmask, ~0, (long)address, 0,
                           sizeof(uint64_t), 0, 0) == -EINVAL;
}

static bool
is_readable(uintptr_t pointer)
{
    uintptr_t *known = &readable[cpprof__spread_u64(pointer, REMEMBERED_BITS)];

    if (!pointer)
        return false;
    if (load_relaxed(known) != pointer) {
        if (!can_read(pointer + (uintptr_t)mark_at))
            return false;
        store_relaxed(known, pointer);
    }
    return true;
}

bool
cpprof__thread_pointer_is_libcs(void)
{
    uintptr_t pointer = cpprof__thread_pointer(is_quick);

    return !mark_at ||
           (is_readable(pointer) &&
            *(volatile uint64_t *)(pointer + (uintptr_t)mark_at) == MARK);
}
