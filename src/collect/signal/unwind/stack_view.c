/* SPDX-License-Identifier: MIT */
/*
 * The window: bytes copied from anywhere in this process through the kernel.
 *
 * process_vm_readv on the own process needs no privilege, and one system call
 * reads 512 bytes, several frames of a stack. Container profiles refuse it with
 * EPERM, small kernels with ENOSYS. Then rt_sigprocmask serves as a probe:
 * asked for an unknown kind of change, it first copies the 8 bytes of the new
 * mask and returns EFAULT or EINVAL, and changes nothing. The memory may
 * disappear between that answer and the load, if another thread unmaps it. So
 * this serves for a thread's own stack only. For others /proc/thread-self/mem
 * does, which takes a descriptor.
 */
#include "collect/signal/unwind/stack_view.h"
#include "arch/atomic.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* Memory protection has no finer grain on any Linux. */
#define PAGE_SIZE ((uintptr_t)4096)

#define WINDOW_BYTES sizeof((struct cpprof__stack_view *)0)->window

/* Bytes below the first word wanted that are fetched with it. */
#define BELOW 128u

/* Set once process_vm_readv was refused; never cleared in production. */
static uint32_t copy_refused;

/* Set before a filter of system calls comes, which may kill for it; never
 * cleared. */
static uint32_t own_is_probed;

void
cpprof__stack_view_probe_own(void)
{
    store_relaxed(&own_is_probed, 1);
}

void
cpprof__stack_view_refuse_copy(bool refuse)
{
    store_relaxed(&copy_refused, refuse);
}

bool
cpprof__stack_view_copies(void)
{
    return !load_relaxed(&copy_refused);
}

static long
copy(void *to, uintptr_t from, size_t n)
{
    struct iovec local = {to, n};
    struct iovec remote = {(void *)from, n};
    /* The tid and not the pid: the first thread may have ended and then has no
     * memory. */
    long tid = cpprof__syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);

    return cpprof__syscall(SYS_process_vm_readv, tid, (long)&local, 1,
                           (long)&remote, 1, 0);
}

static bool
is_refused(long result)
{
    return result == -EPERM || result == -ENOSYS;
}

/* Can the 8 bytes at `at`, within one page, be read? */
static bool
is_readable(uintptr_t at)
{
    const long no_such_change = -1;

    return cpprof__syscall(SYS_rt_sigprocmask, no_such_change, (long)at, 0, 8,
                           0, 0) == -EINVAL;
}

CPPROF__NO_SANITIZE static void
load_bytes(uint8_t *to, uintptr_t from, size_t n)
{
    const volatile uint8_t *bytes = (const volatile uint8_t *)from;
    size_t i;

    for (i = 0; i < n; i++)
        to[i] = bytes[i];
}

/* The same as copy() where that is refused: probe each page, then load. */
static bool
probe_and_load(void *to, uintptr_t from, size_t n)
{
    uintptr_t last = from + n - 1;
    uintptr_t page;

    for (page = from & -PAGE_SIZE; page <= last; page += PAGE_SIZE) {
        if (!is_readable(page) || page > UINTPTR_MAX - PAGE_SIZE)
            return false;
    }
    load_bytes(to, from, n);
    return true;
}

bool
cpprof__stack_fetch(struct cpprof__stack_view *view, uintptr_t at, size_t n)
{
    long got = -ENOSYS;

    view->window_at = 0;
    view->window_n = 0;
    if (at > UINTPTR_MAX - n || n == 0 || n > WINDOW_BYTES)
        return false;
    if (!load_relaxed(&copy_refused) &&
        (view->copies_only || !load_relaxed(&own_is_probed))) {
        got = copy(view->window, at, n);
        if (is_refused(got))
            store_relaxed(&copy_refused, 1);
    }
    if (is_refused(got) && view->memory)
        got = cpprof__syscall(SYS_pread64, view->memory - 1, (long)view->window,
                              (long)n, (long)at, 0, 0);
    if (got == (long)n || (!view->copies_only && is_refused(got) &&
                           probe_and_load(view->window, at, n))) {
        view->window_at = at;
        view->window_n = n;
        return true;
    }
    return false;
}

static bool
window_holds(const struct cpprof__stack_view *view, uintptr_t at)
{
    return view->window_n >= 8 && at - view->window_at <= view->window_n - 8;
}

/*
 * Fetch what the walk is going to need from `at` on: the rest of the page, for
 * the next page may be missing, and a little below, because the words of a
 * frame are not read in the order of their addresses.
 */
static bool
fetch_around(struct cpprof__stack_view *view, uintptr_t at)
{
    uintptr_t page = at & -PAGE_SIZE;
    uintptr_t from = at - page > BELOW ? at - BELOW : page;

    if (at - page > PAGE_SIZE - 8)
        return cpprof__stack_fetch(view, at, 8);
    return cpprof__stack_fetch(view, from & ~(uintptr_t)7,
                               page + PAGE_SIZE - (from & ~(uintptr_t)7));
}

bool
cpprof__stack_read_far(struct cpprof__stack_view *view, uintptr_t at,
                       uintptr_t *value)
{
    if (!window_holds(view, at) && !fetch_around(view, at))
        return false;
    __builtin_memcpy(value, (const char *)view->window + (at - view->window_at),
                     sizeof *value);
    return true;
}
