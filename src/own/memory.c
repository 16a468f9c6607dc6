/* SPDX-License-Identifier: MIT */
/*
 * Memory from mappings of our own, for code inside a program that is not ours.
 *
 * A small block has one of N_SIZES sizes, two for each power of two. It is cut
 * from the newest slab, a mapping that stays, and is of that size for ever.
 * Free ones of a size are in a list. A large block is a mapping by itself. The
 * kernel is asked directly: mmap() may be the program's, and is counted in its
 * heap profile "mmap".
 *
 * There is no lock, and no state in which a thread could leave anything in
 * pieces: each change of a list is one compare-and-swap, of a word that says
 * which block is the first and how often the list was changed. So a child that
 * was forked at any moment, and a handler that interrupted anything, find all
 * lists whole. What a thread of the parent had taken and not given back is lost
 * to the child.
 *
 * A block is known by its number: the slab, and where it is in it in units of
 * 16 bytes. The first unit of a slab is no block, so no block has number 0.
 *
 * Source: R. K. Treiber, "Systems Programming: Coping with Parallelism" (1986),
 * for the lists.
 */
#include "own/memory.h"

#include "arch/apart.h"
#include "arch/atomic.h"
#include "arch/place.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef CPPROF__DEFLATE_IS_OURS
#include <libdeflate.h>
#endif

const char cpprof__memory_is_own = 1;

#define PAGE 4096u
#define UNIT 16u

/* Tunable: what is mapped at once for small blocks. */
#define SLAB_BYTES ((size_t)256 << 10)
#define SLAB_UNITS (SLAB_BYTES / UNIT)
/* As many as a number can name together with a unit: 64 GiB. There is room in
 * the table for 1 GiB; blocks after that are mappings by themselves. */
#define MAX_SLABS 4096u

/* The sizes are 2, 3, 4, 6, 8, 12 ... 2048 units, with what is in front. */
#define N_SIZES     21u
#define SMALL_UNITS 2048u

/* In front of each block. Of a free one only the list changes anything. */
struct head {
    uint32_t number; /* of a small block */
    uint32_t next;   /* of a free one: the number of the next, 0: none */
    uint64_t n;      /* below N_SIZES: the size; else the bytes of a mapping */
};

_Static_assert(sizeof(struct head) == UNIT, "blocks are aligned to 16 bytes");

/* Lists of free blocks: the number of the first in the lower half; the upper
 * half counts changes, so that a list which has the same first block again is
 * not taken for the one that was read. */
static uint64_t lists[N_SIZES];
#define ONE_CHANGE (UINT64_C(1) << 32)

/* The newest slab in the upper half, and in the lower one the first unit of it
 * that was not cut. It never has the same value again. 0: there is no slab. */
static uint64_t uncut;

/* By number; NULL: not taken. */
static char *slabs[MAX_SLABS] CPPROF__LARGE;

static size_t n_mapped;
static uintptr_t next_place;

/* ---- mappings --------------------------------------------------------- */

/* The counter orders a thread that maps behind one that unmapped the same
 * addresses. Only the kernel knew that before. */
static void *
map(size_t n)
{
    long at =
        syscall(SYS_mmap, cpprof__apart(&next_place, CPPROF__APART_BLOCKS, n),
                n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == -1)
        return NULL;
    __atomic_add_fetch(&n_mapped, n, __ATOMIC_ACQ_REL);
    return (void *)at;
}

static void
unmap(void *at, size_t n)
{
    __atomic_sub_fetch(&n_mapped, n, __ATOMIC_ACQ_REL);
    syscall(SYS_munmap, at, n);
}

size_t
cpprof__memory_bytes(void)
{
    return load_relaxed(&n_mapped);
}

/* The bytes of the mapping for a block of n; 0: more than there can be. */
static size_t
mapping_bytes(size_t n)
{
    return n > SIZE_MAX / 2
               ? 0
               : (n + sizeof(struct head) + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static void *
refuse(void)
{
    errno = ENOMEM;
    return NULL;
}

static void *
map_block(size_t n)
{
    size_t n_bytes = mapping_bytes(n);
    struct head *head = n_bytes ? map(n_bytes) : NULL;

    if (!head)
        return refuse();
    head->n = n_bytes;
    return head + 1;
}

/* ---- sizes ------------------------------------------------------------ */

/* That of so many units: the smallest in which they fit. */
static unsigned
size_of(size_t units)
{
    unsigned power; /* 2^power < units <= 2^(power + 1) */

    if (units <= 2)
        return 0;
    power = 63 - (unsigned)__builtin_clzll(units - 1);
    return 2 * power - (units <= (size_t)3 << (power - 1));
}

static size_t
units_of(unsigned size)
{
    return (size_t)(size & 1 ? 3 : 2) << size / 2;
}

/* ---- slabs ------------------------------------------------------------ */

static struct head *
block_of(uint32_t number)
{
    return (struct head *)(void *)(load_relaxed(&slabs[number / SLAB_UNITS]) +
                                   number % SLAB_UNITS * UNIT);
}

/* A slab in the stead of the one that `old` names. Whoever comes second gives
 * his back. False: no memory. */
static bool
add_slab(uint64_t old)
{
    char *at = map(SLAB_BYTES), *none;
    uint64_t i;

    for (i = old >> 32; at && i < MAX_SLABS; i++) {
        none = NULL;
        if (!load_relaxed(&slabs[i]) && cas_acq_rel(&slabs[i], &none, at))
            break;
    }
    if (!at || i == MAX_SLABS) {
        if (at)
            unmap(at, SLAB_BYTES);
        return false;
    }
    if (!cas_acq_rel(&uncut, &old, i << 32 | 1)) {
        store_release(&slabs[i], NULL);
        unmap(at, SLAB_BYTES);
    }
    return true;
}

/* A new block, whose bytes are 0. */
static struct head *
cut(unsigned size)
{
    uint64_t at = load_acquire(&uncut), n = units_of(size);
    struct head *head;

    for (;;) {
        if (!at || (uint32_t)at + n > SLAB_UNITS) {
            if (!add_slab(at))
                return NULL;
            at = load_acquire(&uncut);
        } else if (cas_acq_rel(&uncut, &at, at + n)) {
            break;
        }
    }
    at = (at >> 32) * SLAB_UNITS + (uint32_t)at;
    head = block_of((uint32_t)at);
    head->number = (uint32_t)at;
    head->n = size;
    return head;
}

/* ---- lists ------------------------------------------------------------ */

/* Another thread may have taken the first block meanwhile, and use it: of that
 * it is only read what comes next, which then changes nothing. */
static struct head *
take(unsigned size)
{
    uint64_t first = load_acquire(&lists[size]), rest;
    struct head *head;

    do {
        if (!(uint32_t)first)
            return NULL;
        head = block_of((uint32_t)first);
        rest = (first & ~(ONE_CHANGE - 1)) + ONE_CHANGE;
        rest |= load_relaxed(&head->next);
    } while (!cas_acq_rel(&lists[size], &first, rest));
    return head;
}

static void
give_back(struct head *head)
{
    uint64_t *list = &lists[head->n], first = load_relaxed(list), mine;

    do {
        store_relaxed(&head->next, (uint32_t)first);
        mine = (first & ~(ONE_CHANGE - 1)) + ONE_CHANGE;
        mine |= head->number;
    } while (!cas_acq_rel(list, &first, mine));
}

/* ---- blocks ----------------------------------------------------------- */

/* *zero: its bytes are 0. */
static void *
allocate(size_t n, bool *zero)
{
    size_t units = n < SLAB_BYTES ? (n + sizeof(struct head) + UNIT - 1) / UNIT
                                  : SLAB_UNITS;
    struct head *head;

    *zero = true;
    if (units > SMALL_UNITS)
        return map_block(n);
    head = take(size_of(units));
    *zero = !head;
    if (!head)
        head = cut(size_of(units));
    return head ? head + 1 : map_block(n);
}

void *
cpprof__malloc(size_t n)
{
    bool zero;

    return allocate(n, &zero);
}

void *
cpprof__calloc(size_t n, size_t each)
{
    size_t n_bytes;
    void *block;
    bool zero;

    if (__builtin_mul_overflow(n, each, &n_bytes))
        return refuse();
    block = allocate(n_bytes, &zero);
    if (block && !zero)
        memset(block, 0, n_bytes);
    return block;
}

void
cpprof__free(void *block)
{
    struct head *head = block;

    if (!head)
        return;
    head--;
    if (head->n < N_SIZES)
        give_back(head);
    else
        unmap(head, head->n);
}

/* A mapping is moved by its pages. */
static void *
remap(struct head *head, size_t n_bytes)
{
    size_t before = head->n;
    long at = syscall(SYS_mremap, head, before, n_bytes, MREMAP_MAYMOVE);

    if (at == -1)
        return NULL;
    __atomic_add_fetch(&n_mapped, n_bytes - before, __ATOMIC_ACQ_REL);
    head = (struct head *)at;
    head->n = n_bytes;
    return head + 1;
}

void *
cpprof__realloc(void *old, size_t n)
{
    struct head *head = old;
    size_t room, n_bytes = mapping_bytes(n);
    bool is_small;
    void *block;

    if (!old)
        return cpprof__malloc(n);
    head--;
    is_small = head->n < N_SIZES;
    room = (is_small ? units_of((unsigned)head->n) * UNIT : head->n) -
           sizeof *head;
    if (n <= room && (is_small || n_bytes == head->n))
        return old;
    if (!is_small && n_bytes > SMALL_UNITS * UNIT)
        return remap(head, n_bytes);
    block = cpprof__malloc(n);
    if (block) {
        memcpy(block, old, n < room ? n : room);
        cpprof__free(old);
    }
    return block;
}

static char *
copy(const char *text, size_t n)
{
    char *made = cpprof__malloc(n + 1);

    if (made) {
        memcpy(made, text, n);
        made[n] = 0;
    }
    return made;
}

char *
cpprof__strdup(const char *text)
{
    return copy(text, strlen(text));
}

char *
cpprof__strndup(const char *text, size_t n)
{
    return copy(text, strnlen(text, n));
}

void
cpprof__memory_for_deflate(void)
{
#ifdef CPPROF__DEFLATE_IS_OURS
    libdeflate_set_memory_allocator(cpprof__malloc, cpprof__free);
#endif
}
