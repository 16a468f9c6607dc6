/* SPDX-License-Identifier: MIT */
/*
 * What is known of musl. Its functions have no call-frame information, and most
 * of them no name. So a frame is measured by what its function does first, and
 * counts only if the call that its return address follows leads to just that
 * function. Of its callers a program has information.
 *
 * A thread in musl may hold a lock, or what would be locked if there were two
 * threads; so all of musl is unsafe, but for functions that wait for others by
 * a system call. Between that call and the function that the program calls are
 * those by which a thread can be cancelled, which hold nothing.
 *
 * Source: musl, syscall_cp.s of x86_64, pthread_cancel.c, __timedwait.c,
 * pthread_create.c, __libc_start_main.c.
 */
#include "cli/attach/attach.h"

#include "arch/regs.h"

#include <string.h>

#if defined __x86_64__ && defined __LP64__

/* Functions that wait or are short, and hold nothing of libc's meanwhile; and
 * those that call the program back. Waits of locks are for the program's: who
 * waits for one of libc's is called by a function that is not here. */
static const char *const wait_names[] = {
    "accept",
    "accept4",
    "bsearch",
    "clock_nanosleep",
    "cnd_timedwait",
    "cnd_wait",
    "connect",
    "epoll_pwait",
    "epoll_wait",
    "msgrcv",
    "msgsnd",
    "mtx_lock",
    "mtx_timedlock",
    "nanosleep",
    "pause",
    "poll",
    "ppoll",
    "pselect",
    "pthread_cond_timedwait",
    "pthread_cond_wait",
    "pthread_join",
    "pthread_mutex_lock",
    "pthread_mutex_timedlock",
    "pthread_once",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_timedrdlock",
    "pthread_rwlock_timedwrlock",
    "pthread_rwlock_wrlock",
    "pthread_timedjoin_np",
    "qsort",
    "qsort_r",
    "read",
    "readv",
    "recv",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "sched_yield",
    "select",
    "semop",
    "semtimedop",
    "sem_timedwait",
    "sem_wait",
    "send",
    "sendmsg",
    "sendto",
    "sigsuspend",
    "sigtimedwait",
    "sigwait",
    "sigwaitinfo",
    "sleep",
    "syscall",
    "thrd_join",
    "thrd_sleep",
    "usleep",
    "wait",
    "wait3",
    "wait4",
    "waitid",
    "waitpid",
    "write",
    "writev",
};

/* Bytes of code that are searched for where a function without a name begins.
 */
#define FUNCTION_MAX 8192

/* Words of arguments, with what aligns them, below a frame. */
#define ARGUMENTS_MAX 4u

/* So soon after the program has returned its caller ends the thread; and so
 * soon a function that only changes arguments jumps to another. */
#define END_BYTES  24
#define JUMP_BYTES 32

struct look {
    const struct cpprof__images *images;
    bool (*read)(void *ctx, uint64_t at, uint64_t *value);
    void *ctx;
};

static const uint8_t *
code_at(const struct look *l, uint64_t pc, size_t n)
{
    return cpprof__image_code(cpprof__image_find(l->images, pc), pc, n);
}

static bool
is_in_libc(const struct cpprof__images *images, uint64_t pc)
{
    return pc - images->libc->lo < images->libc->hi - images->libc->lo;
}

/* The function with a name that has pc; NULL: it has none. */
static const struct cpprof__range *
named_at(const struct cpprof__images *images, uint64_t pc)
{
    size_t i;

    for (i = 0; i < images->n_named; i++)
        if (pc - images->named[i].lo <
            images->named[i].hi - images->named[i].lo)
            return &images->named[i];
    return NULL;
}

/* What the direct call in front of ra calls; 0: there is none. */
static uint64_t
called_before(const struct look *l, uint64_t ra)
{
    const uint8_t *code = code_at(l, ra - 5, 5);

    return code ? cpprof__call_target(code, ra) : 0;
}

/* Is what begins at `from` this function, or does it only jump there? */
static bool
leads_to(const struct look *l, uint64_t from, uint64_t function)
{
    const uint8_t *code;
    unsigned i, n;

    if (from == function)
        return true;
    code = code_at(l, from, JUMP_BYTES);
    for (i = 0; code && i < JUMP_BYTES - 12; i += n) {
        if (code[i] == 0xe9)
            return cpprof__jump_target(code + i, from + i) == function;
        n = cpprof__plain_bytes(code + i);
        if (!n)
            break;
    }
    return false;
}

/* May ra be where this function returns to? The program calls what has a name,
 * and by tables. */
static bool
is_caller(const struct look *l, uint64_t ra, uint64_t function, bool is_named)
{
    const uint8_t *code;
    uint64_t target;

    if (is_in_libc(l->images, ra)) {
        target = called_before(l, ra);
        return target && leads_to(l, target, function);
    }
    code = is_named ? code_at(l, ra - 8, 8) : NULL;
    return code && cpprof__ends_in_call(code);
}

/* Has what returns to ra called the program, and does it end the thread? */
static bool
is_root(const struct look *l, uint64_t ra)
{
    uint64_t end = cpprof__image_symbol(l->images->libc, "exit");
    uint64_t thread_end = cpprof__image_symbol(l->images->libc, "pthread_exit");
    const uint8_t *code = code_at(l, ra - 8, 8 + END_BYTES);
    uint64_t target;
    unsigned i;

    if (!code || called_before(l, ra) || !cpprof__ends_in_call(code))
        return false;
    for (i = 5; i <= END_BYTES; i++) {
        target = cpprof__call_target(code + 8 + i - 5, ra + i);
        if (target && (target == end || target == thread_end))
            return true;
    }
    return false;
}

/* The frame of a function that begins there; false: it is none. */
static bool
measure(const struct look *l, struct cpprof__musl_frame *f, uint64_t start,
        uint64_t pc, uint64_t sp)
{
    bool is_bare = start == l->images->cancelled.lo;
    const uint8_t *code = code_at(l, start, CPPROF__PROLOGUE_MAX);
    struct cpprof__prologue p = {0};
    uint64_t slot, ra, fp = f->fp;
    unsigned i;

    if (!code)
        return false;
    if (!is_bare)
        p = cpprof__read_prologue(code, pc - start);
    for (i = 0; i <= ARGUMENTS_MAX; i++) {
        slot = sp + p.bytes + 8 * i;
        if (!l->read(l->ctx, slot, &ra))
            return false;
        if (!is_caller(l, ra, start, f->is_named) ||
            (p.fp_below && !l->read(l->ctx, slot - p.fp_below, &fp)))
            continue;
        f->function = start;
        f->return_at = slot;
        f->return_to = ra;
        f->fp = fp;
        return true;
    }
    return false;
}

struct cpprof__musl_frame
cpprof__musl_frame(const struct cpprof__images *images, uint64_t pc,
                   uint64_t sp, uint64_t fp, bool is_leaf,
                   bool (*read)(void *ctx, uint64_t at, uint64_t *value),
                   void *ctx)
{
    struct cpprof__musl_frame f = {.fp = fp};
    struct look l = {images, read, ctx};
    const struct cpprof__range *named;
    const uint8_t *code;
    uint64_t start;

    if (!images->is_musl || !is_in_libc(images, pc))
        return f;
    if (!is_leaf && is_root(&l, pc + 1)) {
        f.is_root = true;
        return f;
    }
    if (is_leaf && cpprof__is_cancelled_at(images, pc)) {
        measure(&l, &f, images->cancelled.lo, pc, sp);
        return f;
    }
    named = named_at(images, pc);
    f.is_named = named;
    if (named) {
        measure(&l, &f, named->lo, pc, sp);
        return f;
    }
    for (start = pc & -16ull; pc - start < FUNCTION_MAX; start -= 16) {
        code = code_at(&l, start - CPPROF__END_BYTES, CPPROF__END_BYTES);
        if (!code || named_at(images, start) ||
            (cpprof__ends_function(code + CPPROF__END_BYTES) &&
             measure(&l, &f, start, pc, sp)))
            break;
    }
    return f;
}

/* Words that differ by where the function is: the test of whether the thread is
 * cancelled, with its jump. Then arguments move. */
static struct cpprof__range
find_cancelled(const struct cpprof__images *images)
{
    static const uint8_t moves[] = {0x49, 0x89, 0xfb, 0x48, 0x89, 0xf0,
                                    0x48, 0x89, 0xd7, 0x48, 0x89, 0xce};
    static const uint8_t test[] = {0x8b, 0x07, 0x85, 0xc0};
    uint64_t at = cpprof__image_find_code(images->libc, moves, sizeof moves);
    const uint8_t *code = cpprof__image_code(images->libc, at - 10, 64);
    struct cpprof__range none = {0, 0};
    unsigned i, before;

    if (!at || !code)
        return none;
    before = code[4] == 0x8b ? 6 : 10;
    if (memcmp(code + 10 - before, test, sizeof test) != 0)
        return none;
    for (i = 10; i < 62; i++)
        if (cpprof__is_syscall(code + i))
            return (struct cpprof__range){at - before, at - 10 + i + 2};
    return none;
}

bool
cpprof__musl_find(struct cpprof__images *images)
{
    if (!images->is_musl)
        return true;
    images->cancelled = find_cancelled(images);
    return cpprof__range_add(
               &images->unsafe, &images->n_unsafe,
               (struct cpprof__range){images->libc->lo, images->libc->hi}) &&
           cpprof__image_add_named(images->libc, wait_names,
                                   sizeof wait_names / sizeof *wait_names,
                                   &images->waits, &images->n_waits);
}

#else

struct cpprof__musl_frame
cpprof__musl_frame(const struct cpprof__images *images, uint64_t pc,
                   uint64_t sp, uint64_t fp, bool is_leaf,
                   bool (*read)(void *ctx, uint64_t at, uint64_t *value),
                   void *ctx)
{
    return (struct cpprof__musl_frame){0};
}

bool
cpprof__musl_find(struct cpprof__images *images)
{
    return true;
}

#endif
