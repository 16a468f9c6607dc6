/* SPDX-License-Identifier: MIT */
/*
 * Memory for the waits of each thread, which a thread takes when it waits for
 * the first time: most never do, and thread-local memory would be a part of
 * every thread, and of the little that a library may have that is loaded late.
 *
 * Places lie in chunks that are never given back. A place belongs to the thread
 * whose id is in it, until that ends; the last one that was given back is taken
 * first. Who finds none that is free looks for one whose thread is gone: it
 * ended without a word, or stayed behind in a fork.
 */
#include "collect/signal/waits/waits.h"

#include "arch/place.h"
#include "arch/regs.h"
#include "collect/signal/tables/reserve.h"

#include <errno.h>
#include <sys/syscall.h>

/* Places in a chunk, and chunks: threads beyond 2^16 that wait are not seen. */
#define PER_CHUNK  256u
#define CHUNKS_MAX 256u

/* A place is looked for among so many, so that who begins to wait does not ask
 * for thousands of threads. There is a chunk more if none is found, so few are
 * in use that could be had. */
#define TRIES 64u

__thread struct cpprof__wait_self *cpprof__wait_own;

static struct cpprof__wait_self *chunks[CHUNKS_MAX] CPPROF__LARGE;
static uint32_t n_places;
static uint32_t next;      /* where a free one may be */
static uint32_t next_left; /* and one whose thread is gone */

/* Whose threads take places. A child made by vfork() or a bare clone() has the
 * memory of one of them, thread-local variables too, and ids of its own. */
static int32_t process CPPROF__AT_START;

static int32_t
call0(long number)
{
    return (int32_t)cpprof__syscall(number, 0, 0, 0, 0, 0, 0);
}

static struct cpprof__wait_self *
place_at(uint32_t i)
{
    return &load_acquire(&chunks[i / PER_CHUNK])[i % PER_CHUNK];
}

static bool
is_gone(int32_t tid)
{
    return cpprof__syscall(SYS_tgkill, load_relaxed(&process), tid, 0, 0, 0,
                           0) == -ESRCH;
}

/* One that is free, or whose thread is gone if the kernel is asked. */
static struct cpprof__wait_self *
take_near(uint32_t *from, bool asks, int32_t tid, uint32_t n)
{
    uint32_t first = load_relaxed(from), k;

    for (k = 0; k < n && k < TRIES; k++) {
        uint32_t i = (first + k) % n;
        struct cpprof__wait_self *place = place_at(i);
        int32_t owner = load_acquire(&place->tid);

        if ((!owner || (asks && is_gone(owner))) &&
            cas_acq_rel(&place->tid, &owner, tid)) {
            place->number = i;
            store_relaxed(from, i + 1);
            return place;
        }
    }
    store_relaxed(from, first + k);
    return NULL;
}

/* False: there is no more. Who comes at the same time makes one chunk. */
static bool
grow(uint32_t n)
{
    const size_t bytes = PER_CHUNK * sizeof(struct cpprof__wait_self);
    struct cpprof__wait_self *chunk, *none = NULL;

    if (n / PER_CHUNK >= CHUNKS_MAX)
        return false;
    if (!load_acquire(&chunks[n / PER_CHUNK])) {
        chunk = cpprof__reserve(bytes);
        if (!chunk)
            return false;
        if (!cas_acq_rel(&chunks[n / PER_CHUNK], &none, chunk))
            cpprof__unreserve(chunk, bytes);
    }
    if (cas_acq_rel(&n_places, &n, n + PER_CHUNK))
        store_relaxed(&next, n);
    return true;
}

static struct cpprof__wait_self *
take(int32_t tid)
{
    struct cpprof__wait_self *place;
    uint32_t n;

    do {
        n = load_acquire(&n_places);
        place = take_near(&next, false, tid, n);
        if (!place)
            place = take_near(&next_left, true, tid, n);
    } while (!place && grow(n));
    if (place)
        place->n = 0;
    return place;
}

/* A child would take one for the thread whose memory it has, which may take one
 * itself at the same moment, and keep it when its owner is gone. */
bool
cpprof__wait_self_is_mine(void)
{
    struct cpprof__wait_self *place = cpprof__wait_own;

    return place ? load_relaxed(&place->tid) == call0(SYS_gettid)
                 : load_relaxed(&process) == call0(SYS_getpid);
}

bool
cpprof__wait_self_take(void)
{
    struct cpprof__wait_self *place, *none = NULL;

    if (!cpprof__wait_self_is_mine())
        return false;
    if (cpprof__wait_own)
        return true;
    place = take(call0(SYS_gettid));
    /* A handler may have taken one in between. */
    if (place && !cas_acq_rel(&cpprof__wait_own, &none, place))
        store_release(&place->tid, 0);
    return cpprof__wait_own != NULL;
}

void
cpprof__wait_self_give(void)
{
    struct cpprof__wait_self *place = cpprof__wait_own;

    cpprof__wait_own = NULL;
    if (place) {
        store_relaxed(&next, place->number);
        store_release(&place->tid, 0);
    }
}

CPPROF__FIRST_STEP void
cpprof__wait_self_begin(void)
{
    store_relaxed(&process, call0(SYS_getpid));
    if (cpprof__wait_own)
        cpprof__wait_own->tid = call0(SYS_gettid);
}
