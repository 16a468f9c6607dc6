/* SPDX-License-Identifier: MIT */
/*
 * What the child does. It begins by being nobody: it dies with its parent, is
 * the first that a lack of memory ends, keeps no descriptor of the program and
 * no priority, and leaves no core file. Whatever goes wrong after that ends it
 * alone.
 */
#include "collect/leak/child.h"

#include "arch/clock.h"
#include "arch/kernel.h"
#include "collect/leak/glibc.h"
#include "collect/leak/roots.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Tunable: less than most, so that the program is not slowed where processors
 * are few; not so much that the search never ends. */
#define NICE 5

/* Blocks of allocators without boundaries that are known. */
#define GRANULE_BITS 3

_Noreturn static void
end(struct cpprof__leak_shared *shared, uint32_t how)
{
    shared->cpu_ns = cpprof__clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    __atomic_store_n(&shared->end, how, __ATOMIC_RELEASE);
    syscall(SYS_futex, &shared->end, FUTEX_WAKE, 1, NULL, NULL, 0);
    for (;;)
        syscall(SYS_exit_group, 0);
}

static void
write_to(const char *path, const char *text, size_t n)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);

    if (fd >= 0 && write(fd, text, n) < 0) {
        /* It is as it was. */
    }
    if (fd >= 0)
        syscall(SYS_close, fd);
}

static void
be_nobody(const struct cpprof__leak_shared *shared)
{
    const struct sched_param no_priority = {0};

    syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != shared->pid)
        syscall(SYS_exit_group, 1);
    syscall(SYS_close_range, 0, ~0u, 0);
    syscall(SYS_prctl, PR_SET_NAME, "cpprof-leak", 0, 0, 0);
    write_to("/proc/self/oom_score_adj", "1000", 4);
    syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, &no_priority);
    syscall(SYS_setpriority, PRIO_PROCESS, 0, NICE);
}

/* Tunable: so many pages that cannot be read may be met. */
#define UNREADABLE_MAX 65536

/* A page that cannot be read (a guard of MADV_GUARD_INSTALL, what a device or a
 * shorter file has behind its end) leads to nothing: here it is empty from now
 * on. The memory is this process's own. */
static void
make_empty(int signo, siginfo_t *info, void *context)
{
    static unsigned n;
    const long page = (long)info->si_addr & -4096L;

    if (++n > UNREADABLE_MAX ||
        syscall(SYS_mmap, page, 4096L, PROT_READ,
                MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1L,
                0L) != page)
        for (;;)
            syscall(SYS_exit_group, 1);
}

/* Ours alone: handlers of the program are not this process's. */
static void
bear_unreadable(void)
{
    struct sigaction action = {.sa_sigaction = make_empty,
                               .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigset_t both;

    sigemptyset(&both);
    sigaddset(&both, SIGSEGV);
    sigaddset(&both, SIGBUS);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigprocmask(SIG_UNBLOCK, &both, NULL);
}

static int
open_of(int32_t pid, const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

/* ---- blocks of an allocator whose heap is not walked -------------------- */

static const struct cpprof__heap_block *
live_block(uint32_t i)
{
    const struct cpprof__heap_block *block = &cpprof__heap.blocks[i];

    return block->address && !(block->use & 0xff) ? block : NULL;
}

static uintptr_t
end_of(const struct cpprof__heap_block *block)
{
    return block->address + (block->bytes ? block->bytes : 1);
}

static void
add_area(struct cpprof__roots *r, uintptr_t start, uintptr_t end)
{
    if (cpprof__marks_add_area(r->marks, start, end, GRANULE_BITS))
        cpprof__roots_add_hole(r, start, end);
}

/* From the first to the last block of each mapping. */
static void
add_areas_of_table(struct cpprof__roots *r)
{
    struct cpprof__leak_range *ranges =
        cpprof__leak_memory(r->n_maps * sizeof *ranges);
    uint32_t i, n = cpprof__heap_n_blocks(&cpprof__heap);
    size_t k;

    for (i = 1; ranges && i < n; i++) {
        const struct cpprof__heap_block *block = live_block(i);
        const struct cpprof__leak_map *map =
            block ? cpprof__roots_map(r, block->address) : NULL;
        struct cpprof__leak_range *range = map ? &ranges[map - r->maps] : NULL;

        if (!range || end_of(block) > map->end)
            continue;
        if (!range->start || block->address < range->start)
            range->start = block->address & ~(uintptr_t)7;
        if (end_of(block) > range->end)
            range->end = end_of(block);
    }
    for (k = 0; ranges && k < r->n_maps; k++)
        if (ranges[k].end)
            add_area(r, ranges[k].start, ranges[k].end);
    r->failed |= !ranges;
}

/* What lies between two blocks may be one that is not in the table. It begins a
 * little behind the end of the first, because a pointer to that end is one to
 * the block, whatever is there. */
static void
add_end(struct cpprof__marks *m, const struct cpprof__heap_block *block)
{
    struct cpprof__area *area = cpprof__marks_area(m, block->address);
    uintptr_t end = ((end_of(block) + 7) & ~(uintptr_t)7), gap = end + 8;
    size_t next;

    if (!area)
        return;
    cpprof__marks_add_end(m, area, end_of(block));
    if (gap >= area->end)
        return;
    next = cpprof__area_next(area, (end - area->start) >> area->shift);
    if (next > (gap - area->start) >> area->shift)
        cpprof__marks_add_gap(area, gap);
}

static void
add_table(struct cpprof__roots *r)
{
    uint32_t i, n = cpprof__heap_n_blocks(&cpprof__heap);
    const struct cpprof__heap_block *block;
    struct cpprof__area *area;

    add_areas_of_table(r);
    for (i = 1; i < n; i++)
        if ((block = live_block(i)) &&
            (area = cpprof__marks_area(r->marks, block->address)))
            cpprof__marks_add_block(r->marks, area, block->address);
    for (i = 1; i < n; i++)
        if ((block = live_block(i)))
            add_end(r->marks, block);
}

/* What lies between blocks is a root. A block that is marked by now is one,
 * too: what it leads to is marked anyway. */
static void
mark_gaps(struct cpprof__roots *r)
{
    size_t i, at, next, n;

    for (i = 0; i < r->marks->n_areas; i++) {
        const struct cpprof__area *area = &r->marks->areas[i];

        n = cpprof__area_granules(area);
        for (at = cpprof__area_next(area, 0); at < n; at = next) {
            next = cpprof__area_next(area, at + 1);
            if (cpprof__bit(area->marked, at))
                cpprof__roots_mark(
                    r, area->start + (at << area->shift),
                    next < n ? area->start + (next << area->shift) : area->end,
                    false);
        }
    }
}

/* ---- what is lost ----------------------------------------------------- */

static void
set_bit(uint64_t *bits, uint32_t i)
{
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

static void
take_lost(struct cpprof__leak_shared *shared, const struct cpprof__marks *m)
{
    uint32_t i, n = cpprof__heap_n_blocks(&cpprof__heap);

    for (i = 1; i < n; i++) {
        const struct cpprof__heap_block *block = live_block(i);
        struct cpprof__block found;

        if (!block)
            continue;
        found = cpprof__marks_find(m, block->address);
        if (!found.area) {
            shared->n_unwalked++;
        } else if (!cpprof__marks_is_marked(found)) {
            set_bit(shared->lost, i);
            shared->uses[i] = block->use;
            shared->n_lost++;
        }
    }
}

static void
take_direct(struct cpprof__leak_shared *shared, const struct cpprof__marks *m)
{
    uint32_t i, n = cpprof__heap_n_blocks(&cpprof__heap);

    for (i = 1; i < n; i++) {
        const struct cpprof__heap_block *block = live_block(i);

        if (block && cpprof__bit(shared->lost, i) &&
            cpprof__marks_is_direct(cpprof__marks_find(m, block->address)))
            set_bit(shared->direct, i);
    }
}

/* Where all blocks are in the table, what is lost and not in it was freed, and
 * is kept by a thread or in a fastbin: it leads nowhere. */
static void
leave_out_freed(struct cpprof__leak_shared *shared, struct cpprof__marks *m)
{
    uint32_t i, n = cpprof__heap_n_blocks(&cpprof__heap);

    if (cpprof__heap.head->rate != 1)
        return;
    cpprof__marks_leave_out(m);
    for (i = 1; i < n; i++)
        if (cpprof__bit(shared->lost, i))
            cpprof__marks_take_in(
                cpprof__marks_find(m, cpprof__heap.blocks[i].address));
}

static void
look(struct cpprof__roots *r)
{
    struct cpprof__leak_shared *shared = r->shared;
    struct cpprof__marks *m = r->marks;
    size_t i;

    for (i = 0; i < sizeof shared->not_ours / sizeof *shared->not_ours; i++)
        cpprof__roots_add_hole(r, shared->not_ours[i].start,
                               shared->not_ours[i].end);
    if (shared->walks)
        cpprof__roots_walk_heap(r);
    else
        add_table(r);
    cpprof__roots_leave_out_stacks(r);
    cpprof__marks_ready(m);
    if (m->failed || r->failed)
        end(shared, CPPROF__LEAK_NO_MEMORY);
    if (shared->walks)
        cpprof__glibc_add_free(m, r->free_lists);
    else
        mark_gaps(r);
    cpprof__marks_from(m, shared->words, shared->n_words);
    cpprof__roots_mark_all(r);
    if (!cpprof__roots_mark_missing(r))
        end(shared, CPPROF__LEAK_NO_PAGES);
    take_lost(shared, m);
    if (shared->n_lost) {
        leave_out_freed(shared, m);
        cpprof__marks_part(m);
        take_direct(shared, m);
    }
    if (m->failed || r->failed)
        end(shared, CPPROF__LEAK_NO_MEMORY);
    for (i = 0; i < m->n_areas; i++)
        shared->block_bytes += m->areas[i].end - m->areas[i].start;
    shared->n_blocks = m->n_blocks;
    end(shared, CPPROF__LEAK_FOUND);
}

void
cpprof__leak_child(struct cpprof__leak_shared *shared)
{
    struct cpprof__roots roots = {.shared = shared};
    struct cpprof__marks marks;
    int maps;

    be_nobody(shared);
    bear_unreadable();
    maps = open_of((int32_t)getpid(), "maps");
    roots.pagemap = open_of((int32_t)getpid(), "pagemap");
    /* A main thread that has ended has no memory. */
    roots.parent_pagemap = open_of(shared->threads[0].tid, "pagemap");
    roots.parent_mem = open_of(shared->threads[0].tid, "mem");
    syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (maps < 0 || roots.pagemap < 0 || !cpprof__roots_read(&roots, maps))
        end(shared, CPPROF__LEAK_NO_MAPS);
    cpprof__marks_make(&marks,
                       roots.n_maps + cpprof__heap_n_blocks(&cpprof__heap));
    roots.marks = &marks;
    if (roots.failed || marks.failed)
        end(shared, CPPROF__LEAK_NO_MEMORY);
    look(&roots);
    end(shared, CPPROF__LEAK_DIED);
}
