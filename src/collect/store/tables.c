/* SPDX-License-Identifier: MIT */
/*
 * The tables behind heap, block, mutex, wall and thread profiles: made on first
 * use, and resolved, which means that every node gets its mapping.
 *
 * Hooks add nodes without the lock and know no mappings. Whoever holds the lock
 * walks over the new nodes and looks their addresses up in the maps of now.
 * Before code is unloaded all nodes are resolved; after that the maps are stale
 * and are read again.
 *
 * Invariant: a node's mapping is set once, until the node is recycled.
 */
#include "collect/store/tables.h"
#include "collect/runtime/loader.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/real.h"
#include "collect/signal/tables/scripts.h"

#include "arch/atomic.h"
#include "arch/place.h"
#include "base/status.h"
#include "base/writer.h"
#include "collect/signal/heap/heap.h"
#include "collect/signal/heap/hook_stack.h"
#include "collect/signal/tables/mirror.h"
#include "collect/signal/tables/reserve.h"
#include "collect/store/mappings.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

struct cpprof__tables cpprof__tables;

/* Held for as long as it takes to read /proc/self/maps, and never while the
 * loader or the program is called; signals are blocked meanwhile, so that a
 * handler of the program does not wait for its own thread. */
static pthread_mutex_t lock CPPROF__AT_START = PTHREAD_MUTEX_INITIALIZER;

/* Guarded by lock; is_made is set last, and read without it. */
static bool is_made;
static struct cpprof__mappings mappings CPPROF__LARGE;
static uint32_t first_unresolved = 1; /* nodes before it have a mapping */
static uint64_t last_unloads;         /* as the loader counts them */
static uint32_t n_unloads;

static void
take_lock(sigset_t *old)
{
    cpprof__block_signals(old);
    pthread_mutex_lock(&lock);
    cpprof__hook_self.exempt++;
}

static void
give_lock(const sigset_t *old)
{
    cpprof__hook_self.exempt--;
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, old, NULL);
}

/* ---- making ----------------------------------------------------------- */

static void
own_memory(int by)
{
    cpprof__hook_self.exempt += (uintptr_t)(intptr_t)by;
}

static bool
make(void)
{
    void *store;

    if (load_relaxed(&is_made))
        return true;
    if (!cpprof__hook_walk_reserve(&cpprof__tables.tree))
        return false;
    store = cpprof__reserve(cpprof__store_bytes());
    if (!store)
        return false;
    cpprof__store_make(&cpprof__tables.store, store);
    cpprof__mappings_init(&mappings, &cpprof__tables.store, false);
    cpprof__tables.scripts = &cpprof__scripts;
    __atomic_store_n(&cpprof__own_memory, own_memory, __ATOMIC_RELAXED);
    store_release(&is_made, true);
    return true;
}

/* Hooks may have made the tree. */
static bool
make_if_used(void)
{
    return load_acquire(&cpprof__tables.tree.head) && make();
}

enum cpprof_status
cpprof__tables_make(struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    sigset_t old;

    cpprof__use();
    if (load_acquire(&is_made)) /* each new thread asks */
        return CPPROF_OK;
    take_lock(&old);
    if (!make())
        status = cpprof__tables_fail(error);
    give_lock(&old);
    return status;
}

enum cpprof_status
cpprof__tables_fail(struct cpprof_error *error)
{
    const char *limit = cpprof__reserve_limit();

    return limit ? cpprof__fail(error, CPPROF_NOMEM, 0, "%s", limit)
                 : cpprof__fail_nomem(error);
}

/* ---- mappings of nodes ------------------------------------------------ */

static uint32_t
n_nodes(void)
{
    return cpprof__tree_n_nodes(&cpprof__tables.tree);
}

/*
 * Give nodes their mapping; final says whether one that lies in none is left
 * for later. A node that is being made has no address yet, and is the first of
 * the next round.
 */
static void
resolve_nodes(bool final)
{
    uint32_t i, n = n_nodes(), first = n;

    for (i = first_unresolved; i < n; i++) {
        struct cpprof__tree_node *node = &cpprof__tables.tree.nodes[i];
        uint64_t pc = load_acquire(&node->pc);
        uint32_t mapping;

        if (load_relaxed(&node->mapping) != CPPROF__TREE_UNRESOLVED)
            continue;
        cpprof__mappings_find(&mappings, &pc, 1, &mapping);
        if (mapping != CPPROF__NO_MAPPING)
            store_release(&node->mapping, mapping + 1);
        else if (pc && final)
            store_release(&node->mapping, CPPROF__TREE_NO_MAPPING);
        else if (i < first)
            first = i;
    }
    first_unresolved = first;
}

/* New nodes of scripts get no mapping. Are there other new nodes? */
static bool
resolve_scripts(void)
{
    uint32_t i, n = n_nodes();
    bool others = false;

    for (i = first_unresolved; i < n; i++) {
        struct cpprof__tree_node *node = &cpprof__tables.tree.nodes[i];

        if (cpprof__is_script(load_acquire(&node->pc)))
            store_release(&node->mapping, CPPROF__TREE_NO_MAPPING);
        others |= load_relaxed(&node->mapping) == CPPROF__TREE_UNRESOLVED;
    }
    if (!others)
        first_unresolved = n;
    return others;
}

static void
resolve(void)
{
    if (!make_if_used())
        return;
    if (n_nodes() == CPPROF__TREE_NODES)
        first_unresolved = 1; /* some may have been recycled */
    if (first_unresolved >= n_nodes())
        return;
    if (resolve_scripts()) {
        cpprof__mappings_refresh(&mappings);
        resolve_nodes(true);
    }
    cpprof__mirror_tables();
}

void
cpprof__tables_resolve(void)
{
    sigset_t old;

    cpprof__loader_list();
    take_lock(&old);
    resolve();
    give_lock(&old);
}

void
cpprof__tables_read_maps(void)
{
    sigset_t old;

    take_lock(&old);
    if (make_if_used())
        cpprof__mappings_refresh(&mappings);
    give_lock(&old);
}

/* ---- unloading -------------------------------------------------------- */

static int
on_first_module(struct dl_phdr_info *info, size_t n_bytes, void *n)
{
    const size_t need =
        offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs;

    if (n_bytes >= need)
        *(uint64_t *)n = info->dlpi_subs;
    return 1;
}

/* Modules that were ever unloaded; 0 where libc does not say. */
static uint64_t
count_unloads(void)
{
    uint64_t n = 0;

    dl_iterate_phdr(on_first_module, &n);
    return n;
}

/* JIT code comes and goes all the time, and its mapping grows: its nodes stay
 * in use. */
static bool
is_unloaded(uint32_t mapping)
{
    const struct cpprof__store *store = &cpprof__tables.store;

    return mapping && mapping - 1 < store->head->n_mappings &&
           store->mappings[mapping - 1].is_gone &&
           *cpprof__store_text(store, store->mappings[mapping - 1].path) == '/';
}

static void
mark_gone(void)
{
    uint32_t i, n = n_nodes();

    for (i = 1; i < n; i++) {
        uint32_t *mapping = &cpprof__tables.tree.nodes[i].mapping;
        uint32_t was = load_relaxed(mapping);

        if (!(was & CPPROF__TREE_GONE) && is_unloaded(was))
            store_release(mapping, was | CPPROF__TREE_GONE);
    }
}

void
cpprof__tables_after_unload(void)
{
    uint64_t unloads = count_unloads();
    sigset_t old;

    take_lock(&old);
    if (make_if_used() && (unloads != last_unloads || !unloads)) {
        last_unloads = unloads;
        n_unloads++;
        if (n_nodes() > 1) {
            resolve_nodes(false); /* as it was: added during the unload */
            cpprof__mappings_refresh(&mappings);
            mark_gone();
            cpprof__mirror_tables();
        }
    }
    give_lock(&old);
}

uint32_t
cpprof__tables_n_unloads(void)
{
    return load_relaxed(&n_unloads);
}

/* ---- fork ------------------------------------------------------------- */

/* A thread blocks signals while it holds the lock, so the one that forked did
 * not hold it. If another thread did, it may have been reading the maps: the
 * child reads them again and resolves all nodes again. Nodes that have a
 * mapping keep it. */
CPPROF__FIRST_STEP void
cpprof__tables_in_child(void)
{
    cpprof__maps_are_locked(false); /* the parent's are */
    if (pthread_mutex_trylock(&lock)) {
        pthread_mutex_init(&lock, NULL);
        mappings.n_now = 0;
        first_unresolved = 1;
    } else {
        pthread_mutex_unlock(&lock);
    }
}

/* ---- reading ---------------------------------------------------------- */

static uint32_t
number_of(uint32_t mapping, const uint32_t *numbers, size_t n_numbers)
{
    mapping &= ~CPPROF__TREE_GONE;
    return mapping && mapping - 1 < n_numbers ? numbers[mapping - 1]
                                              : CPPROF__NO_MAPPING;
}

size_t
cpprof__tables_stack(const struct cpprof__tables *tables, uint32_t stack,
                     const uint32_t *numbers, size_t n_numbers,
                     struct cpprof__builder_frame *frames, size_t max)
{
    const struct cpprof__tree *tree = &tables->tree;
    size_t n = 0;

    if (stack >= CPPROF__TREE_NODES ||
        stack >= load_acquire(&tree->head->n_nodes))
        return 0;
    while (stack && n < max) {
        const struct cpprof__tree_node *at = &tree->nodes[stack];
        uint32_t parent = load_relaxed(&at->parent);

        frames[n].pc = load_relaxed(&at->pc);
        frames[n].mapping =
            number_of(load_acquire(&at->mapping), numbers, n_numbers);
        n++;
        if (parent >= CPPROF__TREE_NODES)
            break;
        stack = parent;
    }
    return n;
}
