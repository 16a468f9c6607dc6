/* SPDX-License-Identifier: MIT */
/*
 * Learns where the stacks of threads are.
 *
 * A new thread's stack follows from its thread pointer and the size that
 * pthread_create was asked for. For other threads the scan looks up the
 * mapping in which the last sample's stack pointer was, and takes it if it is
 * the thread's own stack. What is not known is read through the kernel
 * instead, so being wrong must never happen but not knowing may.
 */
#include "collect/threads/stacks.h"

#include "arch/atomic.h"
#include "arch/place.h"
#include "arch/regs.h"
#include "base/buffer.h"
#include "collect/runtime/proc.h"
#include "collect/signal/heap/hook_stack.h"
#include <cpprof/object.h>

#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* No more of the main thread's stack is assumed to be readable: where the
 * kernel chooses an address, it stays out of the 128 MiB below the stack's end.
 */
#define MAIN_STACK_MAX ((uintptr_t)64 << 20)

/* What the C library uses of a thread's stack, and the guard page. */
#define MARGIN ((size_t)16 * 4096)

/* The thread pointer stands near the top of a thread's stack, so all between
 * the two is its own. Leaves them alone where that is not known. */
static void
find_own(size_t stack_bytes, uintptr_t *lo, uintptr_t *hi)
{
    uintptr_t tp = cpprof__thread_self();
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    if (stack_bytes <= 2 * MARGIN || here >= tp || tp - here > stack_bytes)
        return;
    *lo = tp - stack_bytes + MARGIN;
    *hi = tp;
}

void
cpprof__stack_of_new_thread(struct cpprof__thread *t, size_t stack_bytes)
{
    t->stack_lo = t->stack_hi = 0;
    find_own(stack_bytes, &t->stack_lo, &t->stack_hi);
}

void
cpprof__stack_of_hooks(size_t stack_bytes)
{
    find_own(stack_bytes, &cpprof__hook_self.stack_lo,
             &cpprof__hook_self.stack_hi);
}

/* The main thread's stack can grow down to here; 0: that is not known. */
CPPROF__FIRST_STEP static uintptr_t
growth_limit(uintptr_t hi)
{
    struct rlimit limit;
    uintptr_t room = MAIN_STACK_MAX;

    if (!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < room)
        room = limit.rlim_cur;
    return hi > room ? hi - room : 0;
}

/* The kernel puts its random bytes above everything that is ever pushed, and
 * what lies between the stack pointer and them is one mapping. */
CPPROF__FIRST_STEP void
cpprof__stack_of_main(void)
{
    uintptr_t hi = getauxval(AT_RANDOM) & ~(uintptr_t)7;

    cpprof__main_stack_lo = growth_limit(hi);
    cpprof__main_stack_hi = cpprof__main_stack_lo ? hi : 0;
}

/*
 * The stack of a thread that was not announced: the mapping where its last
 * sample's stack pointer was, if that is the thread's own and not a
 * coroutine's, which may go away: the main thread's [stack], or the one that
 * holds the thread's control block.
 */
static void
learn_stack(struct cpprof__thread *t, const struct cpprof_map *line)
{
    uintptr_t sp = load_relaxed(&t->seen_sp);
    uintptr_t tp = load_relaxed(&t->seen_tp);
    bool is_main = line->n_path == 7 && !memcmp(line->path, "[stack]", 7);

    if (sp < line->start || sp >= line->limit || line->perms[0] != 'r')
        return;
    if (!is_main && (tp < line->start || tp >= line->limit))
        return;
    store_relaxed(&t->stack_hi, line->limit);
    store_relaxed(&t->stack_lo, line->start);
    if (is_main)
        store_relaxed(&t->stack_end, growth_limit(line->limit));
}

static bool
needs_stack(const struct cpprof__thread *t)
{
    uintptr_t sp = load_relaxed(&t->seen_sp);

    return t->tid > 0 && sp &&
           (sp < load_relaxed(&t->stack_lo) ||
            sp >= load_relaxed(&t->stack_hi));
}

void
cpprof__stacks_find(struct cpprof__stacks_wanted *wanted)
{
    struct cpprof__thread *t;
    uint32_t i;

    wanted->n = 0;
    for (i = 0;
         wanted->n < CPPROF__STACKS_AT_ONCE && (t = cpprof__thread_at(i)); i++)
        if (needs_stack(t)) {
            wanted->threads[wanted->n] = t;
            wanted->tids[wanted->n++] = t->tid;
        }
}

bool
cpprof__stacks_read(const struct cpprof__stacks_wanted *wanted,
                    struct cpprof__buffer *maps)
{
    return wanted->n && cpprof__proc_maps(maps);
}

void
cpprof__stacks_learn(const struct cpprof__stacks_wanted *wanted,
                     const struct cpprof__buffer *maps)
{
    struct cpprof_map line = {.size = sizeof line};
    const char *p = (const char *)maps->data;
    size_t i;

    while (cpprof_maps_next(&p, (char *)maps->data + maps->n, &line))
        for (i = 0; i < wanted->n; i++)
            if (wanted->threads[i]->tid == wanted->tids[i])
                learn_stack(wanted->threads[i], &line);
}

void
cpprof__stack_note_own(void)
{
    struct cpprof__thread *t =
        cpprof__thread_of_tid((int32_t)syscall(SYS_gettid));

    if (!t)
        return;
    store_relaxed(&t->seen_tp, cpprof__thread_self());
    store_relaxed(&t->seen_sp, (uintptr_t)__builtin_frame_address(0));
}
