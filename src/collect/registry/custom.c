/* SPDX-License-Identifier: MIT */
/*
 * Custom profiles: hash tables of values, sharded so that threads rarely meet.
 *
 * Pointers and byte strings have separate shards. A shard has one lock, an
 * array with open addressing that is at most 3/4 full, and deletes by moving
 * later entries up. Its memory is mmap's, so that the program's heap profile
 * does not contain it.
 *
 * Protocol: an operation holds one shard's lock; writing a profile and a fork
 * take all of them in order. The locks are own_lock.h's, which a fork in a
 * handler can take back.
 */
#include "collect/registry/custom.h"

#include "base/hash.h"
#include "base/status.h"
#include "collect/encode/records_profile.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/own_lock.h"
#include "collect/store/tables.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Tunable: tables of each kind of value. More let more threads add at a time,
 * and take a page each once they are used. */
#define SHARDS 16

/* Entries of a new table: a page of them. A power of two. */
#define ENTRIES_MIN 256u

/* The stack of an entry, in place of a node; 0 is a free entry. */
#define STACK_UNKNOWN UINT32_MAX

struct entry {
    uintptr_t key; /* the pointer, or that of a struct bytes */
    uint32_t hash;
    uint32_t stack;
};

struct bytes {
    size_t n;
    char at[];
};

/* Open addressing; at most 3/4 of the entries are in use. The memory is not
 * malloc's, because the program may be counting that. */
struct shard {
    struct cpprof__own_lock lock;
    struct entry *entries;
    uint32_t capacity;
    uint32_t n;
} __attribute__((aligned(64)));

struct cpprof__custom {
    struct shard shards[2 * SHARDS]; /* pointers, then bytes */
    size_t n;
};

/* A value, its hash and its shard. */
struct lookup {
    struct cpprof__custom_value value;
    uint64_t hash;
    struct shard *shard;
};

struct cpprof__custom *
cpprof__custom_make(void)
{
    struct cpprof__custom *custom =
        aligned_alloc(_Alignof(struct cpprof__custom), sizeof *custom);

    if (custom)
        memset(custom, 0, sizeof *custom);
    return custom;
}

void
cpprof__custom_free(struct cpprof__custom *custom)
{
    size_t i;

    for (i = 0; custom && i < 2 * SHARDS; i++)
        if (custom->shards[i].entries)
            munmap(custom->shards[i].entries,
                   custom->shards[i].capacity * sizeof(struct entry));
    free(custom);
}

size_t
cpprof__custom_count(const struct cpprof__custom *custom)
{
    return load_relaxed(&custom->n);
}

/* ---- tables ----------------------------------------------------------- */

static struct lookup
lookup_of(struct cpprof__custom *custom,
          const struct cpprof__custom_value *value)
{
    struct lookup lookup = {*value, 0, custom->shards};

    if (value->is_bytes) {
        lookup.hash = cpprof__hash_bytes(value->value, value->n_bytes, 0);
        lookup.shard += SHARDS;
    } else {
        lookup.hash = cpprof__hash_u64((uintptr_t)value->value);
    }
    lookup.shard += lookup.hash >> 32 & (SHARDS - 1);
    return lookup;
}

static bool
is_at(const struct lookup *lookup, const struct entry *entry)
{
    const struct bytes *bytes = (void *)entry->key;

    if (entry->hash != (uint32_t)lookup->hash)
        return false;
    if (!lookup->value.is_bytes)
        return entry->key == (uintptr_t)lookup->value.value;
    return bytes->n == lookup->value.n_bytes &&
           (!bytes->n || memcmp(bytes->at, lookup->value.value, bytes->n) == 0);
}

/* The entry is hardly ever in the cache, and it is fetched while the stack is
 * walked. What is read here may be out of date. */
void
cpprof__custom_prefetch(struct cpprof__custom *custom,
                        const struct cpprof__custom_value *value)
{
    struct lookup lookup = lookup_of(custom, value);
    uint32_t capacity = load_relaxed(&lookup.shard->capacity);
    uintptr_t entries = (uintptr_t)load_relaxed(&lookup.shard->entries);
    uint32_t at = (uint32_t)lookup.hash & (capacity - 1);

    __builtin_prefetch((void *)(entries + at * sizeof(struct entry)), 1);
}

/* The value's entry, or the free one where it belongs. */
static struct entry *
find(const struct lookup *lookup)
{
    const struct shard *shard = lookup->shard;
    uint32_t mask = shard->capacity - 1, at = (uint32_t)lookup->hash & mask;

    while (shard->entries[at].stack && !is_at(lookup, &shard->entries[at]))
        at = (at + 1) & mask;
    return &shard->entries[at];
}

static void
put_all(const struct shard *from, struct entry *to, uint32_t mask)
{
    uint32_t i, at;

    for (i = 0; i < from->capacity; i++) {
        if (!from->entries[i].stack)
            continue;
        at = from->entries[i].hash & mask;
        while (to[at].stack)
            at = (at + 1) & mask;
        to[at] = from->entries[i];
    }
}

static bool
resize(struct shard *shard, uint32_t capacity)
{
    struct entry *entries;
    CPPROF__EXEMPT;

    if (!capacity || capacity > UINT32_MAX / 2)
        return false;
    entries = mmap(NULL, capacity * sizeof *entries, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (entries == MAP_FAILED)
        return false;
    put_all(shard, entries, capacity - 1);
    if (shard->entries)
        munmap(shard->entries, shard->capacity * sizeof *entries);
    store_relaxed(&shard->entries, entries);
    store_relaxed(&shard->capacity, capacity);
    return true;
}

static bool
has_room(struct shard *shard)
{
    if (!shard->capacity)
        return resize(shard, ENTRIES_MIN);
    return shard->n < shard->capacity / 4 * 3 ||
           resize(shard, shard->capacity * 2);
}

/* Free an entry. Entries after it that belong further up move up. */
static void
take_out(struct shard *shard, struct entry *entry)
{
    uint32_t mask = shard->capacity - 1;
    uint32_t hole = (uint32_t)(entry - shard->entries), at = hole;

    for (;;) {
        at = (at + 1) & mask;
        entry = &shard->entries[at];
        if (!entry->stack)
            break;
        if (((at - entry->hash) & mask) >= ((at - hole) & mask)) {
            shard->entries[hole] = *entry;
            hole = at;
        }
    }
    shard->entries[hole].stack = 0;
    shard->n--;
    if (shard->capacity > ENTRIES_MIN && shard->n < shard->capacity / 8)
        resize(shard, shard->capacity / 2);
}

/* ---- values ----------------------------------------------------------- */

static struct bytes *
copy(const struct cpprof__custom_value *value)
{
    struct bytes *bytes = NULL;

    if (value->n_bytes <= SIZE_MAX - sizeof *bytes)
        bytes = malloc(sizeof *bytes + value->n_bytes);
    if (bytes) {
        bytes->n = value->n_bytes;
        if (value->n_bytes)
            memcpy(bytes->at, value->value, value->n_bytes);
    }
    return bytes;
}

static enum cpprof_status
add(const struct lookup *lookup, uintptr_t key, uint32_t stack)
{
    struct shard *shard = lookup->shard;
    enum cpprof_status status = CPPROF_NOMEM;
    struct entry *entry;

    cpprof__own_lock_take(&shard->lock);
    if (has_room(shard)) {
        entry = find(lookup);
        status = entry->stack ? CPPROF_INVALID : CPPROF_OK;
        if (status == CPPROF_OK) {
            *entry = (struct entry){key, (uint32_t)lookup->hash, stack};
            shard->n++;
        }
    }
    cpprof__own_lock_give(&shard->lock);
    return status;
}

enum cpprof_status
cpprof__custom_add(struct cpprof__custom *custom,
                   const struct cpprof__custom_value *value, uint32_t stack,
                   struct cpprof_error *error)
{
    struct lookup lookup = lookup_of(custom, value);
    struct bytes *bytes = value->is_bytes ? copy(value) : NULL;
    uintptr_t key =
        value->is_bytes ? (uintptr_t)bytes : (uintptr_t)value->value;
    enum cpprof_status status = CPPROF_NOMEM;

    if (bytes || !value->is_bytes)
        status = add(&lookup, key, stack ? stack : STACK_UNKNOWN);
    if (status == CPPROF_OK) {
        add_relaxed(&custom->n, (size_t)1);
        cpprof__tree_hold(stack);
        return CPPROF_OK;
    }
    free(bytes);
    if (status == CPPROF_NOMEM)
        return cpprof__fail_nomem(error);
    return cpprof__fail(error, status, 0,
                        "pprof: Profile.Add of duplicate value");
}

void
cpprof__custom_remove(struct cpprof__custom *custom,
                      const struct cpprof__custom_value *value)
{
    struct lookup lookup = lookup_of(custom, value);
    struct shard *shard = lookup.shard;
    struct entry *entry, found = {0};

    cpprof__own_lock_take(&shard->lock);
    if (shard->capacity) {
        entry = find(&lookup);
        found = *entry;
        if (found.stack)
            take_out(shard, entry);
    }
    cpprof__own_lock_give(&shard->lock);
    cpprof__tree_drop(found.stack);
    if (found.stack)
        add_relaxed(&custom->n, (size_t)-1);
    if (found.stack && value->is_bytes)
        free((void *)found.key);
}

/* ---- writing ---------------------------------------------------------- */

static void
lock_all(struct cpprof__custom *custom)
{
    size_t i;

    for (i = 0; i < 2 * SHARDS; i++)
        cpprof__own_lock_take(&custom->shards[i].lock);
}

static void
unlock_all(struct cpprof__custom *custom)
{
    size_t i;

    for (i = 0; i < 2 * SHARDS; i++)
        cpprof__own_lock_give(&custom->shards[i].lock);
}

/* Count the values by stack: counts[] is by node, and the last entry is for
 * values without a stack. */
static void
count_all(const struct cpprof__custom *custom, uint32_t *counts, uint32_t n)
{
    size_t i, at;

    for (i = 0; i < 2 * SHARDS; i++) {
        const struct shard *shard = &custom->shards[i];

        for (at = 0; at < shard->capacity; at++) {
            uint32_t stack = shard->entries[at].stack;

            if (stack)
                counts[stack < n ? stack : n]++;
        }
    }
}

static struct cpprof__stack_record *
records_of(const uint32_t *counts, uint32_t n_nodes, size_t *n)
{
    struct cpprof__stack_record *records;
    uint32_t i;

    *n = 0;
    for (i = 1; i <= n_nodes; i++)
        *n += counts[i] != 0;
    records = calloc(*n + 1, sizeof *records);
    *n = 0;
    for (i = 1; records && i <= n_nodes; i++)
        if (counts[i])
            records[(*n)++] = (struct cpprof__stack_record){
                .values = {counts[i]}, .stack = i < n_nodes ? i : 0};
    return records;
}

enum cpprof_status
cpprof__custom_records(struct cpprof__custom *custom,
                       struct cpprof__stack_record **records, size_t *n,
                       struct cpprof_error *error)
{
    const uint32_t n_nodes = CPPROF__TREE_NODES; /* also profiles that are made
                                                    while we wait for locks */
    uint32_t *counts = calloc(n_nodes + 1, sizeof *counts);

    if (!counts)
        return cpprof__fail_nomem(error);
    lock_all(custom);
    count_all(custom, counts, n_nodes);
    unlock_all(custom);
    *records = records_of(counts, n_nodes, n);
    free(counts);
    return *records ? CPPROF_OK : cpprof__fail_nomem(error);
}

struct cpprof__records_form
cpprof__custom_form(const struct cpprof__value_type *type)
{
    return (struct cpprof__records_form){
        .name = type->type,
        .types = type,
        .n_types = 1,
        .period_type = *type,
        .period = 1,
    };
}

enum cpprof_status
cpprof__custom_write(struct cpprof__custom *custom, const char *name,
                     const struct cpprof_profile_options *options,
                     struct cpprof_writer writer, struct cpprof_error *error)
{
    const struct cpprof__value_type type = {name, "count"};
    const struct cpprof__records_form form = cpprof__custom_form(&type);
    struct cpprof__stack_record *records = NULL;
    size_t n = 0;
    enum cpprof_status status =
        cpprof__custom_records(custom, &records, &n, error);

    if (status == CPPROF_OK)
        status =
            cpprof__records_write(&form, records, n, options, writer, error);
    else if (writer.close)
        writer.close(writer.ctx, 1);
    free(records);
    return status;
}

/* ---- fork ------------------------------------------------------------- */

/* A shard that another thread was changing is dropped: entries may be half
 * moved. No other thread is there any more, which TSan does not know. */
__attribute__((no_sanitize("thread"))) void
cpprof__custom_in_child(struct cpprof__custom *custom)
{
    size_t i, n = 0;

    for (i = 0; i < 2 * SHARDS; i++) {
        struct shard *shard = &custom->shards[i];

        if (cpprof__own_lock_in_child(&shard->lock))
            memset(shard, 0, sizeof *shard);
        n += shard->n;
    }
    custom->n = n;
}
