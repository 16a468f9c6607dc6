/* SPDX-License-Identifier: MIT */
/*
 * Tells src/collect/entries what stands for what; patch.h tells the rest.
 */
#include "attach/patch.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/find_object.h"
#include "arch/place.h"
#include "collect/entries/entries.h"
#include "collect/runtime/loader.h"
#include "collect/runtime/next.h"
#include "collect/runtime/real.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* ---- what stands for what --------------------------------------------- */

#define PART_ALLOCATE CPPROF__PATCH_HEAP
#define PART_RELEASE  CPPROF__PATCH_HEAP
#define PART_MAPS     0
#define PART_WAITS    CPPROF__PATCH_WAITS
#define PART_PROCESS  CPPROF__PATCH_PROCESS

#define PART(group, name) PART_##group,
#define TEXT(group, name) #name "\0"

static const uint8_t parts_of[] = {CPPROF__NAMES(PART)};
static const char names[] = CPPROF__NAMES(TEXT);

enum { N_TARGETS = CPPROF__N_NAMES };
_Static_assert(N_TARGETS <= CPPROF__CHANGES_MAX, "all names are one walk's");

/* Both have .address NULL where there is nothing to patch. */
static struct cpprof__definition ours[N_TARGETS] CPPROF__LARGE;
static struct cpprof__definition
    theirs[N_TARGETS] CPPROF__LARGE; /* module: the only one */
static struct cpprof__change changes[N_TARGETS] CPPROF__LARGE;

static bool
is_in(const struct link_map *module, const void *address)
{
    struct dl_find_object found;

    return cpprof__find_object(address, &found) &&
           found.dlfo_link_map == module;
}

static void
find_theirs(void)
{
    const struct link_map *own = cpprof__own_module();
    unsigned i;

    memcpy(theirs, ours, sizeof theirs);
    for (i = 0; i < N_TARGETS; i++) {
        theirs[i].address = load_acquire(&cpprof__next[i]);
        /* What nobody defines is ours or a stand-in of ours. */
        if (theirs[i].address && is_in(own, theirs[i].address))
            theirs[i].address = NULL;
    }
}

static bool
has_sanitizer(void)
{
    static const char *const starts[] = {"__asan_init", "__tsan_init",
                                         "__msan_init", "__hwasan_init"};
    const struct link_map *module = NULL;
    size_t i;

    for (i = 0; i < sizeof starts / sizeof *starts; i++)
        if (cpprof__first_symbol(starts[i], &module))
            return true;
    return false;
}

struct beginning {
    enum cpprof__patch_state state;
    bool sanitized;
};

/* The loader takes nothing out of its list while this is called. */
static int
find_all(struct dl_phdr_info *info, size_t size, void *arg)
{
    const struct link_map *module = NULL;
    struct beginning *beginning = arg;

    beginning->state = CPPROF__PATCH_NOT_NEEDED;
    cpprof__own_symbols(names, ours, N_TARGETS);
    if (cpprof__first_symbol("pthread_create", &module) ==
        ours[CPPROF__NAME_pthread_create].address)
        return 1;
    find_theirs();
    beginning->sanitized = has_sanitizer();
    beginning->state = CPPROF__PATCH_READY;
    return 1;
}

/* Tunables: so often it is tried while the program forks, and so long after. */
#define BEGIN_TRIES 1000
#define BEGIN_NS    1000000

enum cpprof__patch_state
cpprof__patch_begin(bool *sanitized)
{
    struct beginning beginning = {CPPROF__PATCH_CANNOT, false};
    unsigned i;

    for (i = 0; i < BEGIN_TRIES; i++) {
        if (cpprof__loader_visit(find_all, &beginning))
            break;
        cpprof__sleep_ns(BEGIN_NS);
    }
    *sanitized = beginning.sanitized;
    return beginning.state;
}

/* ---- all modules ------------------------------------------------------ */

static uint64_t last_adds; /* modules that were ever loaded, at the last pass */

/* Has libc an older function of the same name, which a stub may be for? All
 * others that it has in two versions are one function. */
static bool
has_old_version(unsigned number)
{
    return number == CPPROF__NAME_pthread_cond_wait ||
           number == CPPROF__NAME_pthread_cond_timedwait;
}

/* Which of their definitions is the only one of that name? */
static void
find_only_ones(struct cpprof__changes *all)
{
    const struct link_map *own = cpprof__own_module(), *m = own;
    unsigned i;

    store_relaxed(&last_adds, all->n_adds);
    for (i = 0; i < N_TARGETS; i++)
        theirs[i].module = own;
    while (m && m->l_prev)
        m = m->l_prev;
    for (; m; m = m->l_next)
        if (m != own)
            cpprof__note_other_definitions(m, theirs, N_TARGETS);
    for (i = 0; i < N_TARGETS; i++)
        changes[i].is_only = theirs[i].module && !has_old_version(i);
}

bool
cpprof__patch_all(unsigned parts)
{
    struct cpprof__changes all = {
        .of = changes, .n = N_TARGETS, .before = find_only_ones};
    unsigned i;

    for (i = 0; i < N_TARGETS; i++)
        changes[i] = (struct cpprof__change){
            .name = ours[i].name,
            .from = parts_of[i] & parts ? theirs[i].address : NULL,
            .to = ours[i].address};
    return cpprof__entries_change(&all);
}

bool
cpprof__patch_restore(void)
{
    struct cpprof__changes all = {.of = changes, .n = N_TARGETS};
    unsigned i;

    for (i = 0; i < N_TARGETS; i++)
        changes[i] = (struct cpprof__change){.name = ours[i].name,
                                             .from = ours[i].address,
                                             .to = theirs[i].address};
    return cpprof__entries_change(&all);
}

static int
read_adds(struct dl_phdr_info *info, size_t n, void *arg)
{
    *(uint64_t *)arg = info->dlpi_adds;
    return 1;
}

bool
cpprof__patch_has_news(void)
{
    uint64_t adds = load_relaxed(&last_adds);

    cpprof__loader_visit(read_adds, &adds);
    return adds != load_relaxed(&last_adds);
}
