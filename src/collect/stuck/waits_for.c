/* SPDX-License-Identifier: MIT */
/*
 * Reads locks of libc, whose memory may go at any moment: all of it is copied
 * by the kernel. One thread at a time, as the callers see to (`view`).
 */
#include "collect/stuck/waits_for.h"

#include "arch/find_object.h"
#include "arch/place.h"
#include "arch/regs.h"
#include "collect/runtime/next.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/real.h"
#include "collect/signal/tables/thread.h"
#include "collect/signal/unwind/module.h"
#include "collect/signal/waits/waits.h"
#include "collect/store/tables.h"

#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A mutex that somebody waits for (lowlevellock.h). */
#define LOCKED_WITH_WAITERS 2u
/* Words that a rwlock's waiters see while a writer has it: 1 with
 * PTHREAD_RWLOCK_FUTEX_USED (pthread_rwlock_common.c). */
#define WRITER_IN_PHASE 3u
/* And what a writer sees while readers have it. */
#define READERS_IN_PHASE 2u
/* FUTEX_LOCK_PI2, of Linux 5.14. */
#define LOCK_PI2 13
/* Of __kind (pthreadP.h). */
#define KIND_ROBUST 16
#define KIND_PI     32
#define KIND_SHARED 128
/* Tunable: frames of libc between a call and its system call, at most. */
#define LIBC_FRAMES 8

static struct cpprof__stack_view view CPPROF__LARGE;

static bool
fetch(uintptr_t from, void *to, size_t n)
{
    view.copies_only = true;
    if (!cpprof__stack_fetch(&view, from, n))
        return false;
    memcpy(to, view.window, n);
    return true;
}

/* ---- locks ------------------------------------------------------------ */

static int32_t
owner_in_word(uint32_t word)
{
    return (int32_t)(word & FUTEX_TID_MASK);
}

/* word: what is in it, or was when the wait began. A robust one has the owner
 * in it: the owner beside it is an old one while it changes hands. */
static struct cpprof__waits_for
see_mutex(uintptr_t at, uint32_t word)
{
    struct cpprof__waits_for wait = {.kind = CPPROF__FOR_NOTHING};
    pthread_mutex_t mutex;
    bool is_robust;
    int kind;

    if (!fetch(at, &mutex, sizeof mutex))
        return wait;
    kind = mutex.__data.__kind;
    is_robust = kind & KIND_ROBUST;
    if (kind & ~0xfff || kind & KIND_PI || (kind & 15) > 3 ||
        is_robust != ((word & FUTEX_WAITERS) != 0))
        return wait;
    wait.kind = CPPROF__FOR_MUTEX;
    wait.lock = at;
    wait.is_between = kind & KIND_SHARED; /* as all robust ones */
    wait.may_be_robust = is_robust;
    wait.holder = is_robust ? owner_in_word(word) : mutex.__data.__owner;
    return wait;
}

/* glibc has nothing to return where the kernel refuses a PI mutex, because it
 * would close a circle or its owner has ended: it waits for ever for a word on
 * its own stack. */
#define NEAR_SP 512
static struct cpprof__waits_for
see_refused(const struct cpprof__task_call *call)
{
    struct cpprof__waits_for wait = {.kind = CPPROF__FOR_NOTHING};

    if (call->args[2] || call->args[0] - call->sp >= NEAR_SP)
        return wait;
    wait.kind = CPPROF__FOR_MUTEX;
    wait.is_pi = wait.is_refused = true;
    return wait;
}

/* The kernel's rule, whoever made the lock: its word is the owner's tid. */
static struct cpprof__waits_for
see_pi(const struct cpprof__task_call *call)
{
    struct cpprof__waits_for wait = {.kind = CPPROF__FOR_NOTHING};
    uint32_t word;

    if (!fetch(call->args[0], &word, sizeof word))
        return wait;
    wait.kind = CPPROF__FOR_MUTEX;
    wait.is_pi = true;
    wait.lock = call->args[0];
    wait.is_between = wait.may_be_robust =
        !(call->args[1] & FUTEX_PRIVATE_FLAG);
    wait.holder = owner_in_word(word);
    return wait;
}

/* Its members tell which of them the futex is: they are aligned to 8 bytes in
 * turn. */
static struct cpprof__waits_for
see_rwlock(uintptr_t at)
{
    const bool writes = at % 8 != 0;
    struct cpprof__waits_for wait = {.kind = CPPROF__FOR_NOTHING};
    pthread_rwlock_t rwlock;

    at -= writes ? offsetof(pthread_rwlock_t, __data.__writers_futex)
                 : offsetof(pthread_rwlock_t, __data.__wrphase_futex);
    if (!fetch(at, &rwlock, sizeof rwlock))
        return wait;
    wait.kind = writes ? CPPROF__FOR_WRITE_LOCK : CPPROF__FOR_READ_LOCK;
    wait.lock = at;
    wait.is_between = rwlock.__data.__shared != 0;
    wait.holder = rwlock.__data.__cur_writer;
    return wait;
}

static uintptr_t
robust_list(int32_t tid)
{
    void *head = NULL;
    size_t n;

    return syscall(SYS_get_robust_list, tid, &head, &n) ? 0 : (uintptr_t)head;
}

/* Where two words of a thread's descriptor are, from its robust list on: its
 * tid, and the word that the kernel clears at its end. */
struct words {
    ptrdiff_t tid, cleared;
};

/* As in a thread of ours: a forked child's first thread clears its tid,
 * whatever the others clear. `tid` stays 0 where this libc has them elsewhere.
 */
static void
find_words(void *arg)
{
    struct words *w = arg;
    const int32_t own = (int32_t)syscall(SYS_gettid);
    const uintptr_t list = robust_list(0);
    uintptr_t cleared = 0;
    int32_t words[8];
    ptrdiff_t i;

    if (!list || !fetch(list - sizeof words, words, sizeof words))
        return;
    for (i = -8; i < 0 && words[8 + i] != own; i++)
        continue;
    w->tid = i * (ptrdiff_t)sizeof *words;
    /* Before glibc 2.43 they are one. */
    w->cleared = prctl(PR_GET_TID_ADDRESS, &cleared, 0, 0, 0)
                     ? w->tid
                     : (ptrdiff_t)(cleared - list);
}

/* The futex of a join is the word that is cleared at the end of a thread. */
static struct cpprof__waits_for
see_join(uintptr_t at)
{
    static struct words words; /* asked for once: what they always are */
    static bool is_asked;
    struct cpprof__waits_for wait = {.kind = CPPROF__FOR_NOTHING};
    int32_t tid;

    if (!is_asked)
        cpprof__own_thread_run(find_words, &words);
    is_asked = true;
    if (!words.tid ||
        !fetch(at - (uintptr_t)words.cleared + (uintptr_t)words.tid, &tid,
               sizeof tid) ||
        tid <= 0 || at - (uintptr_t)words.cleared != robust_list(tid))
        return wait;
    wait.kind = CPPROF__FOR_JOIN;
    wait.holder = tid;
    return wait;
}

/* ---- locks between processes ------------------------------------------ */

/* Of an entry of /proc/self/pagemap. Source: Linux
 * Documentation/admin-guide/mm/pagemap.rst. */
#define PAGE_PRESENT   (UINT64_C(1) << 63)
#define PAGE_SHARED    (UINT64_C(1) << 61) /* or a file's: not private memory */
#define PAGE_EXCLUSIVE (UINT64_C(1) << 56)

/* Has no other process this memory? Then a lock in it that is made to be shared
 * between processes is one of ours like any other. */
static bool
is_ours_alone(uintptr_t at)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    uint64_t entry = 0;
    const bool is_read =
        pread(fd, &entry, sizeof entry, (off_t)(at / page * sizeof entry)) ==
        sizeof entry;

    close(fd);
    return is_read && entry & PAGE_PRESENT &&
           (!(entry & PAGE_SHARED) || entry & PAGE_EXCLUSIVE);
}

/* Tunable: locks that one thread has, at most. */
#define ROBUST_LOCKS 1024

bool
cpprof__waits_for_one_of_ours(const struct cpprof__waits_for *wait)
{
    const uintptr_t list = wait->may_be_robust ? robust_list(wait->holder) : 0;
    struct robust_list_head head;
    uintptr_t entry;
    unsigned i;

    if (!list || !fetch(list, &head, sizeof head))
        return !wait->is_between || is_ours_alone(wait->lock);
    entry = (uintptr_t)head.list.next;
    for (i = 0; entry != list && i < ROBUST_LOCKS; i++) {
        entry &= ~(uintptr_t)1; /* which a PI mutex has */
        if (entry + (uintptr_t)head.futex_offset == wait->lock)
            return true;
        if (!fetch(entry, &entry, sizeof entry))
            break;
    }
    return wait->is_pi && is_ours_alone(wait->lock);
}

/* ---- the call --------------------------------------------------------- */

static bool
is_wait(int operation)
{
    return operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET;
}

struct cpprof__waits_for
cpprof__waits_for_guess(const struct cpprof__task_call *call)
{
    struct cpprof__waits_for wait = {.kind = CPPROF__FOR_NOTHING};
    const int operation = (int)call->args[1] & FUTEX_CMD_MASK;
    const uint32_t word = (uint32_t)call->args[2];

    if (call->number != SYS_futex || call->args[3])
        return wait;
    if (operation == FUTEX_LOCK_PI || operation == LOCK_PI2)
        return see_pi(call);
    if (operation == FUTEX_WAIT &&
        (word == LOCKED_WITH_WAITERS || word & FUTEX_WAITERS))
        return see_mutex(call->args[0], word);
    if (!is_wait(operation))
        return wait;
    if (word == WRITER_IN_PHASE)
        wait = see_rwlock(call->args[0]);
    if (!wait.kind && !(call->args[1] & FUTEX_PRIVATE_FLAG))
        wait = see_join(call->args[0]);
    if (!wait.kind)
        wait = see_refused(call);
    return wait;
}

int32_t
cpprof__waits_for_holder(const struct cpprof__waits_for *wait)
{
    struct cpprof__waits_for now;
    uint32_t word;

    if (wait->is_refused)
        return 0;
    switch (wait->kind) {
    case CPPROF__FOR_JOIN:
        return wait->holder;
    case CPPROF__FOR_MUTEX:
        if (!fetch(wait->lock, &word, sizeof word))
            return 0;
        if (wait->is_pi)
            return owner_in_word(word);
        now = see_mutex(wait->lock, word);
        return word && now.kind == CPPROF__FOR_MUTEX ? now.holder : 0;
    case CPPROF__FOR_READ_LOCK:
    case CPPROF__FOR_WRITE_LOCK:
        now = see_rwlock(wait->lock +
                         offsetof(pthread_rwlock_t, __data.__wrphase_futex));
        return now.kind ? now.holder : 0;
    default:
        return 0;
    }
}

/* ---- in which function ------------------------------------------------ */

static const struct function {
    enum cpprof__name name;
    const char *text;
    enum cpprof__waits_for_kind kind;
} functions[] = {
    {CPPROF__NAME_pthread_mutex_lock, "pthread_mutex_lock", CPPROF__FOR_MUTEX},
    /* They take the mutex again, whatever limit they have. */
    {CPPROF__NAME_pthread_cond_wait, "pthread_cond_wait",
     CPPROF__FOR_CONDITION},
    {CPPROF__NAME_pthread_cond_timedwait, "pthread_cond_timedwait",
     CPPROF__FOR_CONDITION},
    {CPPROF__NAME_pthread_cond_clockwait, "pthread_cond_clockwait",
     CPPROF__FOR_CONDITION},
    {CPPROF__NAME_pthread_rwlock_rdlock, "pthread_rwlock_rdlock",
     CPPROF__FOR_READ_LOCK},
    {CPPROF__NAME_pthread_rwlock_wrlock, "pthread_rwlock_wrlock",
     CPPROF__FOR_WRITE_LOCK},
    {CPPROF__NAME_sem_wait, "sem_wait", CPPROF__FOR_SEMAPHORE},
};
#define N_FUNCTIONS (sizeof functions / sizeof *functions)

/* Their code, and that of the functions that they jump to as the last they do,
 * which are in the stack in their place. */
static struct range {
    uintptr_t start;
    uintptr_t limit;
    enum cpprof__waits_for_kind kind;
} ranges[64];
#define N_RANGES (sizeof ranges / sizeof *ranges)
static size_t n_ranges;

static struct range *
range_at(uintptr_t pc)
{
    size_t i;

    for (i = 0; i < n_ranges; i++)
        if (pc >= ranges[i].start && pc < ranges[i].limit)
            return &ranges[i];
    return NULL;
}

/* The function that begins there, as libc's own table has it; a function that
 * two kinds share tells nothing. */
static void
add_range(uintptr_t start, enum cpprof__waits_for_kind kind)
{
    struct cpprof__cfi module = {.view = NULL};
    struct range *there = range_at(start);
    struct cpprof__fde fde;

    if (there && there->start == start && there->kind != kind)
        there->kind = CPPROF__FOR_NOTHING;
    if (!there && n_ranges < N_RANGES && cpprof__module_find(start, &module) &&
        module.hdr && cpprof__cfi_find(&module, start, &fde) &&
        fde.start == start)
        ranges[n_ranges++] = (struct range){fde.start, fde.limit, kind};
}

static void
add_jumps(const struct range *from)
{
    const size_t n = from->limit - from->start + CPPROF__JUMP_BYTES;
    const uint8_t *code = (const uint8_t *)view.window;
    uintptr_t target;
    size_t i;

    if (n > sizeof view.window || !cpprof__stack_fetch(&view, from->start, n))
        return;
    for (i = 0; i + CPPROF__JUMP_BYTES <= n; i += CPPROF__CODE_ALIGN) {
        target = cpprof__jump_target(code + i, from->start + i);
        if (target && (target < from->start || target >= from->limit))
            add_range(target, from->kind);
    }
}

/* Another library may have these names, too, and stand in front of libc, whose
 * functions wait all the same. */
static void
add_libcs(void)
{
    struct cpprof__definition found;
    struct dl_find_object libc;
    size_t i;

    /* In libpthread once, and nobody takes it over. */
    if (!cpprof__find_object((void *)pthread_setattr_default_np, &libc))
        return;
    for (i = 0; i < N_FUNCTIONS; i++) {
        cpprof__module_symbols(libc.dlfo_link_map, functions[i].text, &found,
                               1);
        if (found.address)
            add_range((uintptr_t)found.address, functions[i].kind);
    }
}

static void
find_ranges(void)
{
    size_t i, n;

    if (!load_relaxed(&cpprof__next[CPPROF__NAME_pthread_mutex_lock]))
        cpprof__names_find();
    for (i = 0; i < N_FUNCTIONS; i++)
        add_range((uintptr_t)load_relaxed(&cpprof__next[functions[i].name]),
                  functions[i].kind);
    add_libcs();
    for (i = 0, n = n_ranges; i < n; i++)
        add_jumps(&ranges[i]);
    add_range((uintptr_t)&dl_iterate_phdr, CPPROF__FOR_LOADER);
}

static enum cpprof__waits_for_kind
kind_of_function(uint32_t stack)
{
    struct cpprof__tree_node nodes[LIBC_FRAMES];
    const struct range *range;
    size_t n, i;

    if (!n_ranges)
        find_ranges();
    n = cpprof__tree_stack(&cpprof__tables.tree, stack, nodes, LIBC_FRAMES);
    for (i = 0; i < n; i++) {
        range = range_at(nodes[i].pc);
        if (range && range->kind)
            return range->kind;
    }
    return CPPROF__FOR_NOTHING;
}

bool
cpprof__waits_for_in_loader(uint32_t stack)
{
    static struct cpprof__tree_node nodes[CPPROF__MAX_DEPTH] CPPROF__LARGE;
    struct cpprof__cfi loader = {.view = NULL};
    const struct range *range;
    size_t n, i;

    if (!cpprof__module_find(getauxval(AT_BASE), &loader))
        return true; /* nothing is known of it */
    n = cpprof__tree_stack(&cpprof__tables.tree, stack, nodes,
                           CPPROF__MAX_DEPTH);
    for (i = 0; i < n; i++) {
        range = range_at(nodes[i].pc);
        if ((range && range->kind == CPPROF__FOR_LOADER) ||
            (nodes[i].pc >= (uintptr_t)loader.lo &&
             nodes[i].pc < (uintptr_t)loader.hi))
            return true;
    }
    return false;
}

/* What a hook of ours noted, while a profile of waits is on: the function is
 * not in the stack then. */
static enum cpprof__waits_for_kind
kind_of_hook(uint32_t wait_kind)
{
    switch (wait_kind) {
    case CPPROF__WAITS_MUTEX_LOCK:
        return CPPROF__FOR_MUTEX;
    case CPPROF__WAITS_CONDITION:
        return CPPROF__FOR_CONDITION;
    case CPPROF__WAITS_READ_LOCK:
        return CPPROF__FOR_READ_LOCK;
    case CPPROF__WAITS_WRITE_LOCK:
        return CPPROF__FOR_WRITE_LOCK;
    case CPPROF__WAITS_SEMAPHORE:
        return CPPROF__FOR_SEMAPHORE;
    default:
        return CPPROF__FOR_NOTHING;
    }
}

/* A wait of which only the function tells: for a semaphore that nobody has
 * posted, or for readers of a rwlock. */
static void
see_unknown(struct cpprof__waits_for *wait,
            const struct cpprof__task_call *call,
            enum cpprof__waits_for_kind kind)
{
    const uint32_t word = (uint32_t)call->args[2];

    if (call->number != SYS_futex || call->args[3] ||
        !is_wait((int)call->args[1] & FUTEX_CMD_MASK))
        return;
    wait->lock = call->args[0];
    if (kind == CPPROF__FOR_SEMAPHORE && word == 0)
        wait->kind = kind;
    if (kind == CPPROF__FOR_WRITE_LOCK && word == READERS_IN_PHASE) {
        wait->kind = kind;
        wait->lock -= offsetof(pthread_rwlock_t, __data.__wrphase_futex);
    }
    if (kind == CPPROF__FOR_READ_LOCK)
        wait->kind = kind; /* its first member, of those who come first */
}

bool
cpprof__waits_for_is_true(struct cpprof__waits_for *guess,
                          const struct cpprof__task_call *call, uint32_t stack,
                          uint32_t wait_kind)
{
    enum cpprof__waits_for_kind kind;

    /* The kernel's word. */
    if (guess->kind == CPPROF__FOR_JOIN || (guess->is_pi && !guess->is_refused))
        return true;
    kind = kind_of_hook(wait_kind);
    if (!kind)
        kind = kind_of_function(stack);
    if (!guess->kind)
        see_unknown(guess, call, kind);
    /* A condition on the stack looks as what the kernel refuses. */
    if (kind == CPPROF__FOR_CONDITION && !guess->is_refused)
        kind = CPPROF__FOR_MUTEX;
    return kind && kind == guess->kind;
}

const char *
cpprof__waits_for_name(enum cpprof__waits_for_kind kind)
{
    /* ORDER: enum cpprof__waits_for_kind */
    static const char *const names[] = {
        "nothing known", "mutex",     "rwlock (to read)", "rwlock (to write)",
        "join",          "semaphore", "condition",        "loader",
    };

    return names[kind];
}
