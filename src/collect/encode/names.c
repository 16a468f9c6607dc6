/* SPDX-License-Identifier: MIT */
/*
 * Remembers names. Invariants: only the holder of `lock` uses `cache`, from
 * make() to free(). The cache only grows meanwhile, so its strings live as long
 * as the symbolizer does. No thread waits here for long: one that does not get
 * the lock within WAIT_NS goes on with a symbolizer of its own. That also ends
 * the deadlock of a writer that waits for the loader's lock and a constructor
 * that holds this lock and waits to write. A symbolizer of its own reads all
 * files again, so there are few of them at a time.
 */
#include "collect/encode/names.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/place.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/hash.h"
#include "collect/entries/libc_names.h"
#include "collect/store/tables.h"
#include "own/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAIT_NS    200000000
#define UNKNOWN_NS 60000000000u

/* The most symbolizers beside the cache. Each takes some megabytes, and more if
 * there is much debug information. If there are as many already, the caller
 * goes on waiting, at most so many times. */
#define ALONE_MAX 1u
#define WAITS_MAX 300

/* The most frames of one address that are remembered. */
#define FRAMES_MAX 256

/* The key of a mapping; without padding, so that keys are compared as bytes. */
struct image_key {
    uint64_t start, limit, offset;
    const char *path, *build_id; /* in the arena, each text once */
    uint32_t n_unloads;          /* 0 when there is a build id */
    uint32_t functions_only;
};

struct image {
    struct image_key key;
    bool knows_inlines;
};

struct address {
    uint64_t pc; /* with image its key */
    uint32_t image;
    uint32_t first;    /* in frames */
    uint64_t asked_ns; /* of an address without frames */
    uint32_t n;
    uint32_t used_by; /* .n_profiles when it was asked for last */
};

#define ADDRESS_KEY offsetof(struct address, first)

static struct cache {
    struct cpprof__arena arena;
    struct cpprof__table texts;     /* const char * */
    struct cpprof__table images;    /* struct image */
    struct cpprof__table addresses; /* struct address */
    struct cpprof__buffer frames;
    uint32_t n_profiles;
    uint32_t n_used; /* addresses that this profile asked for */
    bool is_full;
    bool is_broken; /* memory ran out and a table lost its entries: nothing is
                       looked up until all tables are emptied */
} cache;

static pthread_mutex_t lock CPPROF__AT_START = PTHREAD_MUTEX_INITIALIZER;
static uint32_t n_alone CPPROF__AT_START;
static const struct cpprof__symbolizer_ops *inner_ops;

/* The inner symbolizer between two profiles; `lock` is for it, too. */
static struct {
    struct cpprof__symbolizer *symbolizer; /* NULL: none */
    const struct cpprof__symbolizer_ops *ops;
    size_t n_bytes;
    int32_t pid; /* a forked child does not go on with it */
    uint32_t n_unloads;
    bool functions_only;
} kept;

#define NO_IMAGE UINT32_MAX

struct known_mapping {
    struct cpprof__symbolizer_mapping as_given; /* strings in arena */
    size_t in_inner;                            /* SIZE_MAX: not told yet */
    uint32_t image;                             /* or NO_IMAGE */
};

/* What callers get as a struct cpprof__symbolizer. */
struct session {
    struct cpprof__symbolizer_options options;
    const struct cpprof__symbolizer_ops *ops;
    struct cpprof__symbolizer *inner; /* NULL: not needed yet */
    uint32_t n_unloads;               /* when inner was made */
    bool has_cache;
    uint64_t now_ns;
    uint64_t n_code_bytes; /* turn_to_code() */
    struct cpprof__arena arena;
    struct cpprof__buffer mappings; /* struct known_mapping */
};

static struct session *
session_of(struct cpprof__symbolizer *s)
{
    return (struct session *)s;
}

/* ---- the cache -------------------------------------------------------- */

static void
empty_cache(void)
{
    uint32_t n_profiles = cache.n_profiles;

    cpprof__table_free(&cache.texts);
    cpprof__table_free(&cache.images);
    cpprof__table_free(&cache.addresses);
    cpprof__buffer_free(&cache.frames);
    cpprof__arena_free(&cache.arena);
    memset(&cache, 0, sizeof cache);
    cache.n_profiles = n_profiles;
}

static size_t
table_bytes(const struct cpprof__table *t)
{
    return t->entries.capacity + t->index.capacity * sizeof *t->index.slots;
}

static size_t
cache_bytes(void)
{
    return cache.arena.n_bytes + table_bytes(&cache.texts) +
           table_bytes(&cache.images) + table_bytes(&cache.addresses) +
           cache.frames.capacity;
}

static bool
is_full(void)
{
    cache.is_full |= cache_bytes() >= CPPROF__NAMES_BYTES;
    return cache.is_full;
}

/* A new entry's number, or that of one that was there. */
static uint32_t
checked(uint32_t number)
{
    cache.is_broken |= number == CPPROF__INDEX_NONE;
    return number;
}

static bool
equal_text(void *text, uint32_t number)
{
    return !strcmp(((const char **)cache.texts.entries.data)[number], text);
}

/* The one copy of a text; NULL for NULL, or if there is no memory. */
static const char *
keep_text(const char *text)
{
    size_t n = text ? strlen(text) : 0;
    uint64_t hash = cpprof__hash_bytes(text ? text : "", n, 0);
    uint32_t found;
    const char *copy;

    if (!text || cache.is_broken)
        return NULL;
    found = cpprof__index_find(&cache.texts.index, hash, equal_text,
                               (void *)(uintptr_t)text);
    if (found != CPPROF__INDEX_NONE)
        return ((const char **)cache.texts.entries.data)[found];
    copy = cpprof__arena_copy(&cache.arena, text, n);
    if (!copy ||
        checked(cpprof__table_append(&cache.texts, hash, &copy, sizeof copy)) ==
            CPPROF__INDEX_NONE)
        return NULL;
    return copy;
}

/* Can an address of this mapping mean something else later on? */
static bool
is_lasting(const struct cpprof__symbolizer_mapping *m)
{
    if (!*m->build_id && !strncmp(m->path, "/memfd:", 7))
        return false;
    return *m->path == '/' || !strcmp(m->path, "[vdso]");
}

static uint32_t
image_of(const struct session *s, const struct cpprof__symbolizer_mapping *m)
{
    struct image image = {
        .key = {m->start, m->limit, m->offset, keep_text(m->path),
                keep_text(m->build_id),
                *m->build_id ? 0 : cpprof__tables_n_unloads(),
                s->options.functions_only},
    };
    bool added;

    if (!is_lasting(m) || !image.key.path || !image.key.build_id)
        return NO_IMAGE;
    return checked(cpprof__table_add(&cache.images, &image, sizeof image.key,
                                     sizeof image, &added));
}

static struct address *
find_address(uint32_t image, uint64_t pc)
{
    struct address key = {.pc = pc, .image = image};
    uint32_t found =
        cpprof__table_find(&cache.addresses, &key, ADDRESS_KEY, sizeof key);

    return found != CPPROF__INDEX_NONE
               ? (struct address *)cache.addresses.entries.data + found
               : NULL;
}

/* Append to cache.frames; false without memory. */
static bool
keep_frames(const struct cpprof__frame *frames, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        struct cpprof__frame copy = frames[i];

        copy.name = keep_text(frames[i].name);
        copy.system_name = keep_text(frames[i].system_name);
        copy.file = keep_text(frames[i].file);
        if (!copy.name || !copy.system_name || !copy.file != !frames[i].file)
            return false;
        cpprof__buffer_append(&cache.frames, &copy, sizeof copy);
    }
    cache.is_broken |= cache.frames.failed;
    return !cache.is_broken;
}

/* old: the entry of the address, if it was known to have no frames. */
static void
keep_address(const struct session *s, uint32_t image, uint64_t pc,
             struct address *old, const struct cpprof__frame *frames, size_t n)
{
    struct address address = {
        .pc = pc,
        .image = image,
        .first = (uint32_t)(cache.frames.n / sizeof *frames),
        .n = (uint32_t)n,
        .asked_ns = s->now_ns,
        .used_by = cache.n_profiles,
    };
    bool added;

    if (n > FRAMES_MAX || is_full() || !keep_frames(frames, n))
        return;
    cache.n_used++;
    if (old)
        *old = address;
    else
        checked(cpprof__table_add(&cache.addresses, &address, ADDRESS_KEY,
                                  sizeof address, &added));
}

/* ---- the symbolizer --------------------------------------------------- */

static bool
lock_cache(void)
{
    uint64_t until_ns = cpprof__now_ns(CLOCK_REALTIME) + WAIT_NS;
    const struct timespec until = cpprof__timespec_of(until_ns);

    return pthread_mutex_timedlock(&lock, &until) == 0;
}

static bool
go_alone(uint32_t max)
{
    uint32_t old = load_relaxed(&n_alone);

    do
        if (old >= max)
            return false;
    while (!cas_acq_rel(&n_alone, &old, old + 1));
    return true;
}

static void
come_back(void)
{
    uint32_t old = load_relaxed(&n_alone);

    while (old && !cas_acq_rel(&n_alone, &old, old - 1))
        ;
}

/* Get the cache. False: the caller goes on without it. */
static bool
take_cache(void)
{
    int n;

    for (n = 1; !lock_cache(); n++)
        if (go_alone(n < WAITS_MAX ? ALONE_MAX : UINT32_MAX))
            return false;
    cache.n_profiles++;
    cache.n_used = 0;
    return true;
}

static void
give_cache(void)
{
    size_t n = cache.addresses.entries.n / sizeof(struct address);

    if (cache.is_broken || (is_full() && cache.n_used < n / 2))
        empty_cache();
    cache.is_full = false;
    pthread_mutex_unlock(&lock);
}

static struct cpprof__symbolizer *
make(const struct cpprof__symbolizer_options *options)
{
    struct session *s = cpprof__calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->options = *options;
    s->ops = __atomic_load_n(&inner_ops, __ATOMIC_ACQUIRE);
    s->now_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    s->n_code_bytes = UINT64_MAX;
    s->has_cache = take_cache();
    return (struct cpprof__symbolizer *)s;
}

static size_t
add_mapping(struct cpprof__symbolizer *symbolizer,
            const struct cpprof__symbolizer_mapping *mapping)
{
    struct session *s = session_of(symbolizer);
    struct known_mapping known = {*mapping, SIZE_MAX, NO_IMAGE};

    known.as_given.path =
        cpprof__arena_copy(&s->arena, mapping->path, strlen(mapping->path));
    known.as_given.build_id = cpprof__arena_copy(&s->arena, mapping->build_id,
                                                 strlen(mapping->build_id));
    if (!known.as_given.path || !known.as_given.build_id ||
        !cpprof__buffer_reserve(&s->mappings, sizeof known))
        return SIZE_MAX;
    if (s->has_cache)
        known.image = image_of(s, mapping);
    cpprof__buffer_append(&s->mappings, &known, sizeof known);
    return s->mappings.n / sizeof known - 1;
}

static struct known_mapping *
mapping_at(const struct session *s, size_t mapping)
{
    return mapping < s->mappings.n / sizeof(struct known_mapping)
               ? (struct known_mapping *)s->mappings.data + mapping
               : NULL;
}

static bool
is_kept(const struct known_mapping *known)
{
    return known && known->image != NO_IMAGE && !cache.is_broken;
}

static void
drop_kept(void)
{
    if (kept.symbolizer)
        kept.ops->free(kept.symbolizer);
    memset(&kept, 0, sizeof kept);
}

/* Go on with the one that was kept, or make one. */
static void
open_inner(struct session *s)
{
    uint32_t n_unloads = cpprof__tables_n_unloads();
    bool is_good = s->has_cache && kept.symbolizer && kept.ops == s->ops &&
                   kept.pid == s->options.pid &&
                   kept.functions_only == s->options.functions_only &&
                   kept.n_unloads == n_unloads;

    s->n_unloads = n_unloads;
    if (is_good) {
        s->ops->trim(kept.symbolizer, SIZE_MAX);
        s->inner = kept.symbolizer;
        kept.symbolizer = NULL;
        return;
    }
    if (s->has_cache)
        drop_kept();
    s->inner = s->ops->make(&s->options);
}

/* Code without a mapping is named by a file that is mapped. */
static void
tell_jit_dumps(struct session *s)
{
    size_t i, n = s->mappings.n / sizeof(struct known_mapping);

    for (i = 0; s->inner && i < n; i++) {
        struct known_mapping *known = mapping_at(s, i);

        if (cpprof__jit_dump_pid(known->as_given.path))
            known->in_inner = s->ops->add_mapping(s->inner, &known->as_given);
    }
}

static void
close_inner(struct session *s)
{
    size_t n_bytes = s->has_cache
                         ? s->ops->trim(s->inner, CPPROF__NAMES_INNER_BYTES)
                         : SIZE_MAX;

    if (n_bytes > CPPROF__NAMES_INNER_BYTES) {
        s->ops->free(s->inner);
        return;
    }
    kept.symbolizer = s->inner;
    kept.ops = s->ops;
    kept.n_bytes = n_bytes;
    kept.pid = s->options.pid;
    kept.n_unloads = s->n_unloads;
    kept.functions_only = s->options.functions_only;
}

/* Does the inner symbolizer know the mapping? NULL: memory that none lists. */
static bool
is_in_inner(struct session *s, struct known_mapping *known)
{
    if (!s->inner) {
        open_inner(s);
        tell_jit_dumps(s);
    }
    if (s->inner && known && known->in_inner == SIZE_MAX)
        known->in_inner = s->ops->add_mapping(s->inner, &known->as_given);
    return s->inner && (!known || known->in_inner != SIZE_MAX);
}

/* Ask the inner symbolizer. */
static size_t
ask(struct session *s, struct known_mapping *known, uint64_t pc,
    struct cpprof__frame *frames, size_t max)
{
    if (!is_in_inner(s, known))
        return 0;
    s->ops->turn_to_code(s->inner, s->n_code_bytes);
    return s->ops->resolve(s->inner, known ? known->in_inner : SIZE_MAX, pc,
                           frames, max);
}

static bool
ask_inlines(struct session *s, struct known_mapping *known)
{
    return s->inner && known->in_inner != SIZE_MAX &&
           s->ops->knows_inlines(s->inner, known->in_inner);
}

static size_t
recall(struct address *address, struct cpprof__frame *frames, size_t max)
{
    size_t n = address->n < max ? address->n : max;

    if (address->used_by != cache.n_profiles)
        cache.n_used++;
    address->used_by = cache.n_profiles;
    if (n)
        memcpy(frames,
               (struct cpprof__frame *)cache.frames.data + address->first,
               n * sizeof *frames);
    return n;
}

/* What is remembered is not asked for. */
static void
expect(struct cpprof__symbolizer *symbolizer, size_t mapping, uint64_t pc)
{
    struct session *s = session_of(symbolizer);
    struct known_mapping *known = mapping_at(s, mapping);

    if (!known || (is_kept(known) && find_address(known->image, pc)) ||
        !is_in_inner(s, known))
        return;
    s->ops->expect(s->inner, known->in_inner, pc);
}

static size_t
resolve(struct cpprof__symbolizer *symbolizer, size_t mapping, uint64_t pc,
        struct cpprof__frame *frames, size_t max)
{
    struct session *s = session_of(symbolizer);
    struct known_mapping *known = mapping_at(s, mapping);
    struct address *address;
    size_t n;

    if (!is_kept(known))
        return ask(s, known, pc, frames, max);
    address = find_address(known->image, pc);
    if (address && (address->n || s->now_ns - address->asked_ns < UNKNOWN_NS))
        return recall(address, frames, max);
    n = ask(s, known, pc, frames, max);
    if (max >= FRAMES_MAX)
        keep_address(s, known->image, pc, address, frames, n);
    if (n && is_kept(known))
        ((struct image *)cache.images.entries.data)[known->image]
            .knows_inlines = ask_inlines(s, known);
    return n;
}

static void
turn_to_code(struct cpprof__symbolizer *symbolizer, uint64_t n_bytes)
{
    session_of(symbolizer)->n_code_bytes = n_bytes;
}

static bool
knows_inlines(struct cpprof__symbolizer *symbolizer, size_t mapping)
{
    struct session *s = session_of(symbolizer);
    struct known_mapping *known = mapping_at(s, mapping);

    if (!known)
        return false;
    if (!is_kept(known))
        return ask_inlines(s, known);
    return ((struct image *)cache.images.entries.data)[known->image]
        .knows_inlines;
}

static void
free_session(struct cpprof__symbolizer *symbolizer)
{
    struct session *s = session_of(symbolizer);

    if (!s)
        return;
    if (s->inner)
        close_inner(s);
    if (s->has_cache)
        give_cache();
    else
        come_back();
    cpprof__buffer_free(&s->mappings);
    cpprof__arena_free(&s->arena);
    cpprof__free(s);
}

static const struct cpprof__symbolizer_ops ops = {
    .abi = CPPROF__SYMBOLIZER_ABI,
    .make = make,
    .add_mapping = add_mapping,
    .expect = expect,
    .resolve = resolve,
    .turn_to_code = turn_to_code,
    .knows_inlines = knows_inlines,
    .free = free_session,
};

const struct cpprof__symbolizer_ops *
cpprof__names_over(const struct cpprof__symbolizer_ops *inner)
{
    __atomic_store_n(&inner_ops, inner, __ATOMIC_RELEASE);
    return inner ? &ops : NULL;
}

/* Looked up once, because a look-up takes the loader's lock, which in a child
 * of fork may be held for ever. */
const struct cpprof__symbolizer_ops *
cpprof__names_load(void)
{
    static const struct cpprof__symbolizer_ops *loaded;
    const struct cpprof__symbolizer_ops *found =
        __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);

    if (!found) {
        found = cpprof__symbolizer_load();
        cpprof__libc_names_bind_plug_in(found);
        __atomic_store_n(&loaded, found, __ATOMIC_RELEASE);
    }
    return cpprof__names_over(found);
}

/* ---- forgetting, and fork --------------------------------------------- */

void
cpprof__names_forget(void)
{
    pthread_mutex_lock(&lock);
    empty_cache();
    drop_kept();
    pthread_mutex_unlock(&lock);
}

size_t
cpprof__names_held(void)
{
    size_t n;

    pthread_mutex_lock(&lock);
    n = cache_bytes() + (kept.symbolizer ? kept.n_bytes : 0);
    pthread_mutex_unlock(&lock);
    return n;
}

/* If a thread that the child does not have was using the cache, it may be half
 * changed. Then its memory is given up, and an empty cache takes its place. */
void
cpprof__names_after_unload(void)
{
    if (pthread_mutex_trylock(&lock))
        return;
    if (kept.n_unloads != cpprof__tables_n_unloads())
        drop_kept();
    pthread_mutex_unlock(&lock);
}

CPPROF__FIRST_STEP void
cpprof__names_in_child(void)
{
    store_release(&n_alone, 0);
    if (!pthread_mutex_trylock(&lock)) {
        pthread_mutex_unlock(&lock);
        return;
    }
    memset(&cache, 0, sizeof cache);
    memset(&kept, 0, sizeof kept);
    pthread_mutex_init(&lock, NULL);
}
