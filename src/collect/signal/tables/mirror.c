/* SPDX-License-Identifier: MIT */
/*
 * Copies of changed words into the recorder's file; mirror.h tells why.
 *
 * A thread that has changed a table copies the changed words and compares them
 * with the table again, until both agree. Several threads may copy the same
 * words: the last of them sees the last state. After ROUNDS_MAX rounds the
 * rest is left to those who go on changing them.
 *
 * The file is made by the first change that is worth one. `making` decides by
 * compare-and-swap who makes it; the others go on without, and the maker
 * copies all tables after `base` is visible, so nothing that was changed
 * meanwhile is missed. Steps of the file are filled with memory before they
 * are touched.
 *
 * Invariants: no lock, no libc call that could allocate; a forked child sees
 * zeros in `known` (MADV_WIPEONFORK) and makes its own file.
 */
#include "collect/signal/tables/mirror.h"

#include "arch/clock.h"
#include "arch/place.h"
#include "arch/regs.h"
#include "collect/signal/tables/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <time.h>

/* The file is filled this much at a time. More: fewer system calls at the
 * rate 1; less: less memory for the many processes that sample little. */
#define STEP 16384u

/* The whole layout in steps, rounded up; recording/recorded.c plans it. */
#define STEPS_MAX (768u * 1024 * 1024 / STEP)

#define IMAGES_MAX 1000u

/* The most rounds of copying a piece that others change meanwhile. */
#define ROUNDS_MAX 256u

enum making { NOT_MADE, MAKING, MADE, FAILED };

/* All zero in a child. */
struct known {
    char *base; /* of the file's mapping; NULL: not yet */
    long place; /* of an earlier file, for the next one; 0: none */
    struct cpprof__piece holes[CPPROF__MIRROR_HOLES]; /* of either */
    uint32_t making;
    char path[PATH_MAX + 32]; /* no room for it on a program's stack */
    uint8_t filled[STEPS_MAX];
};

struct cpprof__mirror cpprof__mirror_plan CPPROF__LARGE;
static struct known *known;

static long
call3(long number, long a, long b, long c)
{
    return cpprof__syscall(number, a, b, c, 0, 0, 0);
}

static bool
is_errno(long result)
{
    return result < 0 && result > -4096;
}

static char *
append_text(char *to, const char *text)
{
    while (*text)
        *to++ = *text++;
    return to;
}

static char *
append_number(char *to, uint32_t n)
{
    char digits[12];
    size_t i = 0;

    do
        digits[i++] = (char)('0' + n % 10);
    while ((n /= 10));
    while (i)
        *to++ = digits[--i];
    return to;
}

void
cpprof__mirror_path(char *path, const char *directory, int32_t pid,
                    uint32_t image)
{
    char *to = append_text(path, directory);

    *to++ = '/';
    to = append_number(to, (uint32_t)pid);
    *to++ = '.';
    to = append_number(to, image);
    *append_text(to, ".tables") = 0;
}

/* ---- the file --------------------------------------------------------- */

static long
create(int32_t pid, uint32_t *image)
{
    long fd = -EEXIST;
    uint32_t i;

    for (i = 0; i < IMAGES_MAX && fd == -EEXIST; i++) {
        cpprof__mirror_path(known->path, cpprof__mirror_plan.directory, pid, i);
        fd = cpprof__syscall(SYS_openat, AT_FDCWD, (long)known->path,
                             O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, 0, 0);
        *image = i;
    }
    return fd;
}

static long
map(long at, size_t start, size_t end, int flags, long fd)
{
    return cpprof__map((uintptr_t)at, end - start, PROT_READ | PROT_WRITE,
                       flags | MAP_NORESERVE, fd, fd < 0 ? 0 : start);
}

/* All but the holes, there. Returns base, or a negative errno. */
static long
map_again(long base, int flags, long fd)
{
    const struct cpprof__piece *holes = known->holes;
    size_t start = 0;
    unsigned i;

    for (i = 0; i <= CPPROF__MIRROR_HOLES; i++) {
        bool is_last = i == CPPROF__MIRROR_HOLES;
        long p = map(base + (long)start, start,
                     is_last ? cpprof__mirror_plan.n_bytes : holes[i].start,
                     flags | MAP_FIXED, fd);

        if (is_errno(p))
            return p;
        start = is_last ? 0 : holes[i].end;
    }
    return base;
}

static long
map_first(long fd)
{
    const struct cpprof__mirror *plan = &cpprof__mirror_plan;
    size_t n = plan->n_bytes;
    long base = map((long)cpprof__table_place(n), 0, n, MAP_SHARED, fd);
    unsigned i;

    for (i = 0; i < CPPROF__MIRROR_HOLES && !is_errno(base); i++) {
        known->holes[i] = plan->holes[i];
        call3(SYS_munmap, base + (long)plan->holes[i].start,
              (long)(plan->holes[i].end - plan->holes[i].start), 0);
    }
    return base;
}

static bool
has_same_holes(void)
{
    const struct cpprof__piece *a = known->holes,
                               *b = cpprof__mirror_plan.holes;
    unsigned i;

    for (i = 0; i < CPPROF__MIRROR_HOLES; i++)
        if (a[i].start != b[i].start || a[i].end != b[i].end)
            return false;
    return true;
}

/* The mapping of an empty file; a negative errno. */
static long
map_file(long fd)
{
    size_t n = cpprof__mirror_plan.n_bytes;
    long base = call3(SYS_ftruncate, fd, (long)n, 0);

    if (!base)
        base = known->place && has_same_holes()
                   ? map_again(known->place, MAP_SHARED, fd)
                   : map_first(fd);
    if (!is_errno(base))
        call3(SYS_madvise, base, (long)n, MADV_DONTFORK);
    return base;
}

/* Whoever is copying at this moment writes to memory that nobody reads; the
 * next file is mapped there, if it is mapped as this one. */
static void
give_place(long base)
{
    map_again(base, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    known->place = base;
}

/* Back the steps that hold these bytes with memory. */
static bool
fill(char *base, uint64_t at, size_t n)
{
    size_t step, left;

    for (step = at / STEP; step * STEP < at + n; step++) {
        if (load_acquire(&known->filled[step]))
            continue;
        left = cpprof__mirror_plan.n_bytes - step * STEP;
        if (cpprof__fill_hole(base, step * STEP, left < STEP ? left : STEP,
                              known->path))
            return false;
        store_release(&known->filled[step], 1);
    }
    return true;
}

static void
copy_name(char *to, const char *from, size_t n)
{
    size_t i;

    for (i = 0; i + 1 < n && from[i]; i++)
        to[i] = from[i];
}

static void
fill_head(char *base, int32_t pid, uint32_t image)
{
    struct cpprof__mirror_head *head = (void *)base;
    const struct cpprof__mirror *plan = &cpprof__mirror_plan;
    static const char magic[] = CPPROF__MIRROR_MAGIC;
    size_t i;

    head->pid = pid;
    head->image = image;
    head->is_forked = pid != plan->first_pid;
    head->n_bytes = plan->n_bytes;
    head->scripts = plan->scripts;
    head->pid_namespace = plan->pid_namespace;
    head->start_ns = cpprof__clock_ns(CLOCK_REALTIME);
    copy_name(head->name, plan->name, sizeof head->name);
    copy_name(head->owner, plan->owner, sizeof head->owner);
    head->state = CPPROF__MIRROR_RUNNING;
    for (i = 0; i < sizeof head->magic; i++)
        head->magic[i] = magic[i];
}

/* ---- copying ---------------------------------------------------------- */

/*
 * Copy until the copy agrees with the table after it was written. Other threads
 * that keep changing the same words copy them, too; after so many rounds the
 * rest is left to the last of them.
 */
static void
copy_words(uint64_t *to, const uint64_t *from, size_t n)
{
    unsigned rounds = 0;
    bool same;
    size_t i;

    do {
        for (i = 0; i < n; i++)
            if (load_relaxed(&to[i]) != load_relaxed(&from[i]))
                store_relaxed(&to[i], load_relaxed(&from[i]));
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        for (i = 0, same = true; i < n && same; i++)
            same = load_relaxed(&to[i]) == load_relaxed(&from[i]);
    } while (!same && ++rounds < ROUNDS_MAX);
}

static void
copy_in(char *base, const struct cpprof__mirror_area *area, size_t at, size_t n)
{
    struct cpprof__mirror_head *head = (void *)base;

    if (n > area->n_bytes - at)
        n = area->n_bytes - at;
    if (!n)
        return;
    if (fill(base, area->offset + at, n))
        copy_words((void *)(base + area->offset + at),
                   (const void *)(area->from + at), n / 8);
    else
        add_relaxed(&head->n_refused, 1u);
}

/* All that is in use, in pieces that are soon seen to be the same. */
static void
copy_area(char *base, const struct cpprof__mirror_area *area)
{
    size_t n = area->n_bytes, at;

    if (area->n_used)
        n = ((size_t)load_acquire(area->n_used) * area->each + 7) / 8 * 8;
    if (n > area->n_bytes)
        n = area->n_bytes;
    for (at = 0; at < n; at += 4096)
        copy_in(base, area, at, n - at < 4096 ? n - at : 4096);
}

static void
copy_parts(char *base, enum cpprof__mirror_part end)
{
    const struct cpprof__mirror *plan = &cpprof__mirror_plan;
    uint32_t i;

    for (i = 0; i < plan->n_areas; i++)
        if (plan->areas[i].part < end)
            copy_area(base, &plan->areas[i]);
}

/* The file, mapped and with its head; a negative errno. */
static long
open_file(int32_t pid)
{
    uint32_t image = 0;
    long fd, base;

    if (cpprof__is_too_long(cpprof__mirror_plan.n_bytes))
        return -EFBIG;
    fd = create(pid, &image);
    if (fd < 0)
        return fd;
    base = map_file(fd);
    if (!is_errno(base) && !fill((char *)base, 0, STEP)) {
        give_place(base);
        base = -ENOSPC;
    }
    call3(SYS_close, fd, 0, 0);
    if (is_errno(base))
        cpprof__syscall(SYS_unlinkat, AT_FDCWD, (long)known->path, 0, 0, 0, 0);
    else
        fill_head((char *)base, pid, image);
    return base;
}

static int
make_file(void)
{
    int32_t pid = (int32_t)call3(SYS_getpid, 0, 0, 0);
    long base = open_file(pid);

    if (is_errno(base))
        return (int)-base;
    /* Whoever changes something from here on copies it. Changes by threads that
     * saw no base before are copied below. */
    __atomic_store_n(&known->base, (char *)base, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    copy_parts((char *)base, CPPROF__MIRROR_END);
    return 0;
}

int
cpprof__mirror_make(void)
{
    uint32_t expected = NOT_MADE;
    int failed;

    if (!known || !cas_acq_rel(&known->making, &expected, (uint32_t)MAKING))
        return 0;
    failed = make_file();
    store_release(&known->making, (uint32_t)(failed ? FAILED : MADE));
    return failed;
}

static bool
is_stopped(void)
{
    return cpprof__control_is_stopped(cpprof__mirror_plan.control);
}

static const struct cpprof__mirror_area *
area_of(const char *p)
{
    const struct cpprof__mirror *plan = &cpprof__mirror_plan;
    uint32_t i;

    for (i = 0; i < plan->n_areas; i++)
        if (p >= plan->areas[i].from &&
            p < plan->areas[i].from + plan->areas[i].n_bytes)
            return &plan->areas[i];
    return NULL;
}

/* Is this change a reason to make a file? A block that was just sampled is: its
 * first word is its address. A wait is: not the head of its table, but a
 * record. What a child releases of its parent's is not. */
static bool
is_reason(const struct cpprof__mirror_area *area, const void *p)
{
    return (area->part == CPPROF__MIRROR_BLOCKS &&
            load_relaxed((const uint64_t *)p) != 0) ||
           (area->part >= CPPROF__MIRROR_WAITS && area->n_used);
}

void
cpprof__mirror_copy(const void *p, size_t n)
{
    const struct cpprof__mirror_area *area = area_of(p);
    char *base;

    if (!area || is_stopped())
        return;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    base = load_acquire(&known->base);
    if (base)
        copy_in(base, area, (size_t)((const char *)p - area->from), n);
    else if (is_reason(area, p))
        cpprof__mirror_make(); /* copies everything */
}

/* The mapping of the file, if there is one that is to be kept up to date. */
static char *
wanted_base(void)
{
    return load_relaxed(&cpprof__mirror_plan.wanted) && !is_stopped()
               ? load_acquire(&known->base)
               : NULL;
}

void
cpprof__mirror_tables(void)
{
    char *base = wanted_base();

    if (base)
        copy_parts(base, CPPROF__MIRROR_HEAP);
}

void
cpprof__mirror_all(void)
{
    char *base = wanted_base();

    if (base)
        copy_parts(base, CPPROF__MIRROR_END);
}

void
cpprof__mirror_wall(void)
{
    const struct cpprof__mirror *plan = &cpprof__mirror_plan;
    char *base = known ? load_acquire(&known->base) : NULL;
    uint32_t i;

    for (i = 0; base && i < plan->n_areas; i++)
        if (plan->areas[i].part < CPPROF__MIRROR_HEAP ||
            plan->areas[i].part == CPPROF__MIRROR_WALL)
            copy_area(base, &plan->areas[i]);
}

struct cpprof__mirror_head *
cpprof__mirror_head(void)
{
    return known ? (void *)load_acquire(&known->base) : NULL;
}

const char *
cpprof__mirror_file(void)
{
    return known->path;
}

void
cpprof__mirror_stop(void)
{
    char *base = cpprof__mirror_head() ? known->base : NULL;

    store_relaxed(&cpprof__mirror_plan.wanted, false);
    cpprof__mirror_plan.n_areas = 0;
    if (!base)
        return;
    store_release(&known->base, NULL);
    give_place((long)base);
}

/* There is an earlier file, which has ended. */
static bool
start_again(void)
{
    __builtin_memset(known->filled, 0, sizeof known->filled);
    store_release(&known->making, (uint32_t)NOT_MADE);
    return true;
}

bool
cpprof__mirror_start(void)
{
    long p;

    if (known)
        return start_again();
    p = cpprof__map(cpprof__table_place(sizeof *known), sizeof *known,
                    PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (is_errno(p))
        return false;
    if (call3(SYS_madvise, p, sizeof *known, MADV_WIPEONFORK)) {
        call3(SYS_munmap, p, sizeof *known, 0);
        return false;
    }
    known = (void *)p;
    return true;
}
