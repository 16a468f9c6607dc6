/* SPDX-License-Identifier: MIT */
/*
 * operator new and delete of C++, as C functions: no C++ runtime is needed.
 * What they throw passes through here: this folder is compiled with unwind
 * tables.
 *
 * Invariant: before anything leads to one of ours, what it jumps to is there,
 * and stays for as long as the process.
 *
 * Source: Itanium C++ ABI 5.1.5 (names); ISO C++20 17.6.3.
 */
#include "collect/entries/entries.h"

#include "arch/clock.h"
#include "arch/place.h"
#include "collect/heap/heap_owner.h"
#include "collect/runtime/next.h"
#include "interpose/allocator.h"
#include "interpose/heap.h"

#include <elf.h>
#include <stdlib.h>
#include <unistd.h>

#if CPPROF__HAS_ALLOCATOR

/* size_t is unsigned long in these names. */
_Static_assert(__SIZEOF_LONG__ == sizeof(size_t), "size_t is mangled as m");

#define NEWS(X)                                                                \
    X(_Znwm, (size_t n), (n))                                                  \
    X(_Znam, (size_t n), (n))                                                  \
    X(_ZnwmRKSt9nothrow_t, (size_t n, const void *nothrow), (n, nothrow))      \
    X(_ZnamRKSt9nothrow_t, (size_t n, const void *nothrow), (n, nothrow))      \
    X(_ZnwmSt11align_val_t, (size_t n, size_t alignment), (n, alignment))      \
    X(_ZnamSt11align_val_t, (size_t n, size_t alignment), (n, alignment))      \
    X(_ZnwmSt11align_val_tRKSt9nothrow_t,                                      \
      (size_t n, size_t alignment, const void *nothrow),                       \
      (n, alignment, nothrow))                                                 \
    X(_ZnamSt11align_val_tRKSt9nothrow_t,                                      \
      (size_t n, size_t alignment, const void *nothrow),                       \
      (n, alignment, nothrow))

#define DELETES(X)                                                             \
    X(_ZdlPv, (void *address), (address))                                      \
    X(_ZdaPv, (void *address), (address))                                      \
    X(_ZdlPvm, (void *address, size_t n), (address, n))                        \
    X(_ZdaPvm, (void *address, size_t n), (address, n))                        \
    X(_ZdlPvRKSt9nothrow_t, (void *address, const void *nothrow),              \
      (address, nothrow))                                                      \
    X(_ZdaPvRKSt9nothrow_t, (void *address, const void *nothrow),              \
      (address, nothrow))                                                      \
    X(_ZdlPvSt11align_val_t, (void *address, size_t alignment),                \
      (address, alignment))                                                    \
    X(_ZdaPvSt11align_val_t, (void *address, size_t alignment),                \
      (address, alignment))                                                    \
    X(_ZdlPvmSt11align_val_t, (void *address, size_t n, size_t alignment),     \
      (address, n, alignment))                                                 \
    X(_ZdaPvmSt11align_val_t, (void *address, size_t n, size_t alignment),     \
      (address, n, alignment))                                                 \
    X(_ZdlPvSt11align_val_tRKSt9nothrow_t,                                     \
      (void *address, size_t alignment, const void *nothrow),                  \
      (address, alignment, nothrow))                                           \
    X(_ZdaPvSt11align_val_tRKSt9nothrow_t,                                     \
      (void *address, size_t alignment, const void *nothrow),                  \
      (address, alignment, nothrow))

#define NUMBER(name, parameters, arguments) NUMBER_##name,
#define TEXT(name, parameters, arguments)   #name "\0"

enum { NEWS(NUMBER) N_NEWS, FIRST_DELETE = N_NEWS - 1, DELETES(NUMBER) N_ALL };
static const char names[] = NEWS(TEXT) DELETES(TEXT);

static void *theirs[N_ALL];
static void *leads_to[N_ALL]; /* theirs, or what counts */

#define LED(of, name) ((__typeof__(name) *)load_relaxed(&(of)[NUMBER_##name]))

/* By their own names, which no header declares. */
#define NEW(name, parameters, arguments)                                       \
    void *name parameters;                                                     \
    ALLOCATOR_ON(name, parameters, arguments, n, LED(theirs, name))            \
                                                                               \
    static void *name##_led parameters                                         \
    {                                                                          \
        return LED(leads_to, name) arguments;                                  \
    }

#define DELETE(name, parameters, arguments)                                    \
    void name parameters;                                                      \
    RELEASER_ON(name, parameters, arguments, LED(theirs, name))                \
                                                                               \
    static void name##_led parameters                                          \
    {                                                                          \
        LED(leads_to, name) arguments;                                         \
    }

/* NOLINTBEGIN(bugprone-reserved-identifier) */
NEWS(NEW)
DELETES(DELETE)
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- led, and put back ------------------------------------------------ */

/* Tunables: so often it is tried while a module is being loaded or the program
 * forks, and so long after. */
#define TRIES  20
#define TRY_NS 1000000

static struct cpprof__change changes[N_ALL];

enum state { NOT_LED, BUSY, IS_LED, NONE_THERE };
static uint32_t state CPPROF__AT_START;

static bool
change_all(bool *is_kept)
{
    struct cpprof__changes all = {.of = changes, .n = N_ALL};
    bool done = cpprof__entries_change(&all);
    unsigned i;

    for (i = 1; !done && i < TRIES; i++) {
        cpprof__sleep_ns(TRY_NS);
        done = cpprof__entries_change(&all);
    }
    *is_kept = all.is_kept;
    return done;
}

/* A symbol that stands for a function which chooses one stays as it is. */
static bool
may_follow(const struct cpprof__definition *d)
{
    return d->symbol && ELF64_ST_TYPE(d->symbol->st_info) != STT_GNU_IFUNC;
}

/* What an allocator's own lead to. */
static void
find_ours(void)
{
#define LEAD(name, parameters, arguments)                                      \
    changes[NUMBER_##name].to = (void *)name##_led;
    NEWS(LEAD);
    DELETES(LEAD);
}

/* Those of the allocator; false: it has none. */
static bool
find_theirs(bool *is_whole)
{
    struct cpprof__definition found[N_ALL];
    bool has_any = false;
    unsigned i;

    cpprof__names_beside_malloc(names, found, N_ALL);
    for (i = 0; i < N_ALL; i++) {
        changes[i].name = found[i].name;
        changes[i].from = found[i].address;
        changes[i].symbol = may_follow(&found[i]) ? found[i].symbol : NULL;
        store_release(&theirs[i], found[i].address);
        has_any |= found[i].address != NULL;
        *is_whole &= !found[i].address || changes[i].symbol;
    }
    return has_any;
}

/* Where ours lead when they count. */
static void
find_counting(void *to[N_ALL])
{
#define ON(name, parameters, arguments) to[NUMBER_##name] = (void *)name##_on;
    NEWS(ON);
    DELETES(ON);
}

static void
set_all(bool counts_new, bool counts_delete)
{
    void *on[N_ALL];
    unsigned i;

    find_counting(on);
    for (i = 0; i < N_ALL; i++) {
        bool counts = i < N_NEWS ? counts_new : counts_delete;

        __atomic_store_n(&leads_to[i], counts ? on[i] : theirs[i],
                         __ATOMIC_SEQ_CST);
    }
}

static enum state
lead(bool is_late)
{
    bool is_whole = !is_late, is_kept;

    if (cpprof__program_has_tsan() || !find_theirs(&is_whole))
        return NONE_THERE;
    find_ours();
    set_all(false, true);
    if (!change_all(&is_kept) || is_kept || !is_whole)
        store_release(&cpprof__heap_misses_operators, true);
    return IS_LED;
}

CPPROF__FIRST_STEP void
cpprof__operators_follow(bool counts, bool is_late)
{
    uint32_t before = NOT_LED;

    if (counts && cas_acq_rel(&state, &before, BUSY))
        store_release(&state, lead(is_late));
    if (load_acquire(&state) == IS_LED)
        set_all(counts, true);
}

bool
cpprof__operators_put_back(void)
{
    bool is_kept;
    unsigned i;

    if (load_acquire(&state) != IS_LED)
        return true;
    set_all(false, false);
    for (i = 0; i < N_ALL; i++)
        if (changes[i].to != theirs[i]) { /* not the last time that it failed */
            changes[i].from = changes[i].to;
            changes[i].to = theirs[i];
        }
    if (!change_all(&is_kept))
        return false;
    store_release(&state, NOT_LED);
    return true;
}

#else

void
cpprof__operators_follow(bool counts, bool is_late)
{
}

bool
cpprof__operators_put_back(void)
{
    return true;
}

#endif
