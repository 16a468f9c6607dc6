/* SPDX-License-Identifier: MIT */
/*
 * The heap "mmap": pieces of sampled mappings, sorted by address.
 *
 * munmap, mmap over a mapping and mremap may cut a piece out of the middle, so
 * one block may have several pieces. The block keeps the address of one of
 * them in the table of live blocks, and gets that of another when its own goes
 * away.
 *
 * Invariants: pieces do not overlap; all changes happen under one lock with
 * signals blocked, and a call that gives addresses back is made with the lock
 * held, so that nobody can get such an address before it was forgotten.
 */
#include "collect/heap/heap_maps.h"
#include "collect/signal/tables/reserve.h"

#include "arch/place.h"
#include "base/status.h"
#include "collect/heap/heap_profile.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/real.h"
#include "collect/signal/heap/heap.h"
#include "collect/signal/heap/heap_live.h"
#include <cpprof/heap.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

struct piece {
    uintptr_t lo, hi;
    uintptr_t block; /* address in the table of live blocks */
};

uint32_t cpprof__maps_heap;
uint32_t cpprof__maps_n;
void (*cpprof__maps_changed)(void) CPPROF__AT_START;

static struct piece *pieces; /* by address */
static struct cpprof__own_lock lock CPPROF__AT_START;
static struct cpprof__own_lock start_lock CPPROF__AT_START;

void
cpprof__maps_lock(sigset_t *old)
{
    cpprof__block_signals(old);
    cpprof__own_lock_take(&lock);
}

void
cpprof__maps_unlock(const sigset_t *old)
{
    cpprof__own_lock_give(&lock);
    pthread_sigmask(SIG_SETMASK, old, NULL);
}

/* The first piece that ends above this address. */
static uint32_t
first_after(uintptr_t at)
{
    uint32_t lo = 0, hi = cpprof__maps_n;

    while (lo < hi) {
        uint32_t middle = lo + (hi - lo) / 2;

        if (pieces[middle].hi <= at)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

static bool
insert(uintptr_t lo, uintptr_t hi, uintptr_t block)
{
    uint32_t at = first_after(lo);

    if (cpprof__maps_n == CPPROF__MAPS_MAX)
        return false;
    memmove(&pieces[at + 1], &pieces[at],
            (cpprof__maps_n - at) * sizeof *pieces);
    pieces[at] = (struct piece){lo, hi, block};
    store_relaxed(&cpprof__maps_n, cpprof__maps_n + 1);
    return true;
}

static void
take_out(uint32_t at)
{
    store_relaxed(&cpprof__maps_n, cpprof__maps_n - 1);
    memmove(&pieces[at], &pieces[at + 1],
            (cpprof__maps_n - at) * sizeof *pieces);
}

/* Give a block the address of another piece: its old address may be mapped
 * again. */
static uintptr_t
rename_block(uintptr_t block)
{
    uintptr_t name = 0;
    uint32_t i;

    for (i = 0; i < cpprof__maps_n; i++) {
        if (pieces[i].block != block)
            continue;
        if (!name)
            name = pieces[i].lo;
        pieces[i].block = name;
    }
    return name;
}

static void
shrink(uintptr_t block, size_t n_gone)
{
    struct cpprof__heap_removed removed;

    if (!cpprof__heap_remove((void *)block, (uint16_t)cpprof__maps_heap,
                             &removed))
        return;
    if (removed.block.bytes <= n_gone)
        return;
    removed.block.bytes -= n_gone;
    removed.block.address = rename_block(block);
    cpprof__heap_restore(&removed);
}

static void
cut_piece(uint32_t i, uintptr_t lo, uintptr_t hi)
{
    struct piece p = pieces[i];
    size_t n_left = 0;

    take_out(i);
    if (p.lo < lo && insert(p.lo, lo, p.block))
        n_left += lo - p.lo;
    if (p.hi > hi && insert(hi, p.hi, p.block))
        n_left += p.hi - hi;
    shrink(p.block, p.hi - p.lo - n_left);
}

void
cpprof__maps_remove(uintptr_t at, size_t n)
{
    uint32_t i;

    if (n > UINTPTR_MAX - at)
        n = UINTPTR_MAX - at;
    for (;;) {
        i = first_after(at);
        if (i == cpprof__maps_n || pieces[i].lo >= at + n)
            return;
        cut_piece(i, at, at + n);
    }
}

void
cpprof__maps_add(uintptr_t at, size_t n)
{
    uint16_t heap = (uint16_t)cpprof__maps_heap;
    sigset_t old;

    if (!cpprof__live_has(&cpprof__heap, at, heap))
        return;
    cpprof__maps_lock(&old);
    if (!insert(at, at + n, at)) {
        cpprof__heap_remove((void *)at, heap, NULL);
        add_relaxed(&cpprof__heap.head->n_unfollowed, 1);
    }
    cpprof__maps_unlock(&old);
}

/* A part of a mapping that moves is forgotten, not followed. */
void
cpprof__maps_move(uintptr_t from, size_t n, uintptr_t to, size_t n_now)
{
    uint32_t i = first_after(from);
    bool is_whole = i < cpprof__maps_n && pieces[i].lo == from &&
                    pieces[i].hi == from + n && pieces[i].block == from;
    struct cpprof__heap_removed removed = {.block.address = 0};

    is_whole =
        is_whole && cpprof__heap_remove((void *)from,
                                        (uint16_t)cpprof__maps_heap, &removed);
    if (is_whole && removed.block.bytes == n) {
        take_out(i);
        cpprof__maps_remove(to, n_now);
        if (insert(to, to + n_now, to))
            cpprof__heap_resize(&removed, (void *)to, n_now);
        return;
    }
    cpprof__heap_restore(&removed);
    cpprof__maps_remove(from, n);
    cpprof__maps_remove(to, n_now);
}

/* ---- start and fork --------------------------------------------------- */

static enum cpprof_status
start(struct cpprof_heap **heap, struct cpprof_error *error)
{
    size_t n = CPPROF__MAPS_MAX * sizeof *pieces;
    enum cpprof_status status;
    void (*changed)(void);

    if (!pieces) {
        void *p =
            mmap((void *)cpprof__table_place(n), n, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (p == MAP_FAILED)
            return cpprof__fail(error, CPPROF_NOMEM, errno, "out of memory");
        pieces = p;
    }
    status = cpprof_heap_new("mmap", heap, error);
    if (status != CPPROF_OK)
        return status;
    store_release(&cpprof__maps_heap, cpprof__heap_number(*heap));
    changed = load_acquire(&cpprof__maps_changed);
    if (changed)
        changed();
    return CPPROF_OK;
}

enum cpprof_status
cpprof_heap_follow_mmap(struct cpprof_heap **heap, struct cpprof_error *error)
{
    CPPROF__NEED(error, heap);

    static struct cpprof_heap *made;
    enum cpprof_status status = CPPROF_OK;

    cpprof__own_lock_take(&start_lock);
    if (!made)
        status = start(&made, error);
    *heap = made;
    cpprof__own_lock_give(&start_lock);
    return status;
}

/* A thread blocks signals while it changes pieces, so the one that forked did
 * not hold the lock. If another thread did, the pieces may be half moved, and
 * the child follows them no more. */
CPPROF__FIRST_STEP void
cpprof__maps_in_child(void)
{
    cpprof__own_lock_in_child(&start_lock);
    if (cpprof__own_lock_in_child(&lock))
        cpprof__maps_n = 0;
}
