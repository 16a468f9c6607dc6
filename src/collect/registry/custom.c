/* SPDX-License-Identifier: MIT */
/*
 * Custom profiles: hash tables of values, sharded so that threads rarely meet.
 *
 * Pointers and byte strings have separate shards. A shard has one lock and one
 * table with open addressing that is at most 3/4 full. The table's memory is
 * mmap's, so that the program's heap profile does not contain it.
 *
 * Protocol: an operation holds one shard's lock; writing a profile takes all of
 * them in order. Each change is made whole by one store: that of an entry's
 * stack, or of a shard's table. So a child made by fork in the midst of a
 * change has the table as it was before or after it, and only counts again.
 */
#include "collect/registry/custom.h"
#include "collect/signal/tables/reserve.h"

#include "base/hash.h"
#include "base/status.h"
#include "collect/encode/records_profile.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/own_lock.h"
#include "collect/store/tables.h"
#include "own/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Tunable: tables of each kind of value. More let more threads add at a time,
 * and take a page each once they are used. */
#define SHARDS 16

/* Entries of a new table: a page of them, and its head. A power of two. */
#define ENTRIES_MIN 128u

/* The stack of an entry, in place of a node; 0 is a free entry. A removed one
 * stays in the way of those that were put after it until the next resize(). */
#define STACK_UNKNOWN UINT32_MAX
#define STACK_REMOVED (UINT32_MAX - 1)

/* All weights of a profile, without their signs, have a sum of at most this. So
 * no sum of some of them is beyond an int64_t, nor is the difference of two. */
#define WEIGHTS_MAX ((uint64_t)1 << 62)

struct entry {
    uintptr_t key; /* the pointer, or that of a struct bytes */
    int64_t weight;
    uint32_t hash;
    uint32_t labels;
    uint32_t stack;
} __attribute__((aligned(32)));

struct bytes {
    size_t n;
    char at[];
};

struct table {
    uint32_t capacity;
    struct entry entries[];
};

struct shard {
    struct cpprof__own_lock lock;
    struct table *table; /* NULL: no value yet */
    uint32_t n;          /* values */
    uint32_t n_removed;  /* entries of STACK_REMOVED */
    uint32_t capacity;   /* the table's, for who has not the lock */
} __attribute__((aligned(64)));

struct cpprof__custom {
    struct shard shards[2 * SHARDS]; /* pointers, then bytes */
    void *block;                     /* that this is in, aligned */
    size_t n;
    /* The sum of them without their signs: a weight is in it before its value
     * is in a table and until it is in none. So a child made by fork in between
     * has too much here, not too little. */
    uint64_t weights;
    struct cpprof__value_type types[2];
    size_t n_types;
};

/* A value, its hash and its shard. */
struct lookup {
    struct cpprof__custom_value value;
    uint64_t hash;
    struct shard *shard;
};

static size_t
bytes_of(uint32_t capacity)
{
    return sizeof(struct table) + capacity * sizeof(struct entry);
}

static void
unmap(struct table *table)
{
    if (table)
        munmap(table, bytes_of(table->capacity));
}

struct cpprof__custom *
cpprof__custom_make(const struct cpprof__value_type *types, size_t n_types)
{
    size_t alignment = _Alignof(struct cpprof__custom);
    struct cpprof__custom *custom;
    char *block = cpprof__calloc(1, sizeof *custom + alignment);

    if (!block)
        return NULL;
    custom = (void *)(block + (-(uintptr_t)block & (alignment - 1)));
    custom->block = block;
    memcpy(custom->types, types, n_types * sizeof *types);
    custom->n_types = n_types;
    return custom;
}

void
cpprof__custom_free(struct cpprof__custom *custom)
{
    size_t i;

    if (!custom)
        return;
    for (i = 0; i < 2 * SHARDS; i++)
        unmap(custom->shards[i].table);
    cpprof__free(custom->block);
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

static bool
is_value(const struct entry *entry)
{
    return entry->stack && entry->stack != STACK_REMOVED;
}

/* The entry is hardly ever in the cache, and it is fetched while the stack is
 * walked. The address is a guess: another thread may be at a resize(). */
void
cpprof__custom_prefetch(struct cpprof__custom *custom,
                        const struct cpprof__custom_value *value)
{
    struct lookup lookup = lookup_of(custom, value);
    uintptr_t table = (uintptr_t)load_relaxed(&lookup.shard->table);
    uint32_t mask = load_relaxed(&lookup.shard->capacity) - 1;

    __builtin_prefetch((void *)(table + bytes_of((uint32_t)lookup.hash & mask)),
                       1);
}

/* The value's entry, or the one where it can be put: the first on its way that
 * is free or was removed. */
static struct entry *
find(const struct lookup *lookup)
{
    struct table *table = lookup->shard->table;
    uint32_t mask = table->capacity - 1, at = (uint32_t)lookup->hash & mask;
    struct entry *entry = &table->entries[at], *room = NULL;

    for (; entry->stack; entry = &table->entries[at = (at + 1) & mask]) {
        if (is_value(entry) && is_at(lookup, entry))
            return entry;
        if (!room && entry->stack == STACK_REMOVED)
            room = entry;
    }
    return room ? room : entry;
}

static void
put_all(const struct table *from, struct table *to)
{
    uint32_t i, at, mask = to->capacity - 1;

    for (i = 0; i < from->capacity; i++) {
        if (!is_value(&from->entries[i]))
            continue;
        at = from->entries[i].hash & mask;
        while (to->entries[at].stack)
            at = (at + 1) & mask;
        to->entries[at] = from->entries[i];
    }
}

/* A new table with the values, and without what was removed. */
static bool
resize(struct shard *shard, uint32_t capacity)
{
    struct table *old = shard->table, *table;
    CPPROF__EXEMPT;

    if (!capacity || capacity > UINT32_MAX / 2)
        return false;
    table = mmap((void *)cpprof__table_place(bytes_of(capacity)),
                 bytes_of(capacity), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED)
        return false;
    table->capacity = capacity;
    if (old)
        put_all(old, table);
    store_release(&shard->table, table);
    store_relaxed(&shard->capacity, capacity);
    shard->n_removed = 0;
    unmap(old);
    return true;
}

static bool
has_room(struct shard *shard)
{
    uint32_t capacity = shard->table ? shard->table->capacity : 0;

    if (!capacity)
        return resize(shard, ENTRIES_MIN);
    if (shard->n + shard->n_removed < capacity / 4 * 3)
        return true;
    return resize(shard, shard->n < capacity / 8 * 3 ? capacity : capacity * 2);
}

/* A table that fails to shrink stays as it is. */
static void
take_out(struct shard *shard, struct entry *entry)
{
    uint32_t capacity = shard->table->capacity;

    store_release(&entry->stack, STACK_REMOVED);
    shard->n_removed++;
    shard->n--;
    if (capacity > ENTRIES_MIN && shard->n < capacity / 8)
        resize(shard, capacity / 2);
}

/* ---- values ----------------------------------------------------------- */

static struct bytes *
copy(const struct cpprof__custom_value *value)
{
    struct bytes *bytes = NULL;

    if (value->n_bytes <= SIZE_MAX - sizeof *bytes)
        bytes = cpprof__malloc(sizeof *bytes + value->n_bytes);
    if (bytes) {
        bytes->n = value->n_bytes;
        if (value->n_bytes)
            memcpy(bytes->at, value->value, value->n_bytes);
    }
    return bytes;
}

/* 0 in a profile that is not weighted, where nobody looks at it. */
static int64_t
weight_of(const struct cpprof__custom *custom,
          const struct cpprof__stack_record *record)
{
    return custom->n_types > 1 ? record->values[1] : 0;
}

static uint64_t
without_sign(int64_t weight)
{
    return weight < 0 ? -(uint64_t)weight : (uint64_t)weight;
}

/* False: the profile would weigh too much. */
static bool
take_weight(struct cpprof__custom *custom, int64_t weight)
{
    uint64_t more = without_sign(weight), sum = load_relaxed(&custom->weights);

    do
        if (more > WEIGHTS_MAX - sum)
            return false;
    while (more && !cas_acq_rel(&custom->weights, &sum, sum + more));
    return true;
}

static void
give_weight(struct cpprof__custom *custom, int64_t weight)
{
    if (weight)
        add_relaxed(&custom->weights, -without_sign(weight));
}

static enum cpprof_status
add(const struct lookup *lookup, uintptr_t key, int64_t weight,
    const struct cpprof__stack_record *record)
{
    struct shard *shard = lookup->shard;
    enum cpprof_status status = CPPROF_NOMEM;
    struct entry *entry;

    cpprof__own_lock_take(&shard->lock);
    if (has_room(shard)) {
        entry = find(lookup);
        status = is_value(entry) ? CPPROF_INVALID : CPPROF_OK;
        if (status == CPPROF_OK) {
            shard->n_removed -= entry->stack == STACK_REMOVED;
            entry->key = key;
            entry->weight = weight;
            entry->hash = (uint32_t)lookup->hash;
            entry->labels = record->labels;
            store_release(&entry->stack,
                          record->stack ? record->stack : STACK_UNKNOWN);
            shard->n++;
        }
    }
    cpprof__own_lock_give(&shard->lock);
    return status;
}

enum cpprof_status
cpprof__custom_add(struct cpprof__custom *custom,
                   const struct cpprof__custom_value *value,
                   const struct cpprof__stack_record *record,
                   struct cpprof_error *error)
{
    struct lookup lookup = lookup_of(custom, value);
    struct bytes *bytes = value->is_bytes ? copy(value) : NULL;
    uintptr_t key =
        value->is_bytes ? (uintptr_t)bytes : (uintptr_t)value->value;
    int64_t weight = weight_of(custom, record);
    enum cpprof_status status = CPPROF_NOMEM;

    if (!take_weight(custom, weight)) {
        cpprof__free(bytes);
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "pprof: the weights of all values would be "
                            "more than 2^62");
    }
    /* A child that is forked in between may hold a stack too many, not one too
     * few. */
    cpprof__tree_hold(record->stack);
    cpprof__tree_hold(record->labels);
    if (bytes || !value->is_bytes)
        status = add(&lookup, key, weight, record);
    if (status == CPPROF_OK) {
        add_relaxed(&custom->n, (size_t)1);
        return CPPROF_OK;
    }
    cpprof__tree_drop(record->stack);
    cpprof__tree_drop(record->labels);
    give_weight(custom, weight);
    cpprof__free(bytes);
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
    if (shard->table && is_value(entry = find(&lookup))) {
        found = *entry;
        take_out(shard, entry);
    }
    cpprof__own_lock_give(&shard->lock);
    if (!found.stack)
        return;
    cpprof__tree_drop(found.stack);
    cpprof__tree_drop(found.labels);
    add_relaxed(&custom->n, (size_t)-1);
    give_weight(custom, found.weight);
    if (value->is_bytes)
        cpprof__free((void *)found.key);
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

static size_t
count_locked(const struct cpprof__custom *custom)
{
    size_t i, n = 0;

    for (i = 0; i < 2 * SHARDS; i++)
        n += custom->shards[i].n;
    return n;
}

static void
copy_locked(const struct cpprof__custom *custom,
            struct cpprof__stack_record *to)
{
    size_t i, at;

    for (i = 0; i < 2 * SHARDS; i++) {
        const struct table *table = custom->shards[i].table;

        for (at = 0; table && at < table->capacity; at++) {
            const struct entry *entry = &table->entries[at];

            if (is_value(entry))
                *to++ = (struct cpprof__stack_record){
                    .values = {1, entry->weight},
                    .stack = entry->stack != STACK_UNKNOWN ? entry->stack : 0,
                    .labels = entry->labels};
        }
    }
}

/* Nothing is allocated under the locks: an allocator may add what it gives. */
enum cpprof_status
cpprof__custom_records(struct cpprof__custom *custom,
                       struct cpprof__stack_record **records, size_t *n,
                       struct cpprof_error *error)
{
    size_t room = 0;

    *records = NULL;
    for (;;) {
        lock_all(custom);
        *n = count_locked(custom);
        if (*records && *n <= room)
            copy_locked(custom, *records);
        unlock_all(custom);
        if (*records && *n <= room)
            return CPPROF_OK;
        cpprof__free(*records);
        room = *n + *n / 8 + 16; /* some may be added meanwhile */
        *records = cpprof__calloc(room, sizeof **records);
        if (!*records)
            return cpprof__fail_nomem(error);
    }
}

struct cpprof__records_form
cpprof__custom_form(const struct cpprof__custom *custom)
{
    return (struct cpprof__records_form){
        .name = custom->types[0].type,
        .types = custom->types,
        .n_types = custom->n_types,
        .period_type = custom->types[custom->n_types - 1],
        .period = 1,
    };
}

enum cpprof_status
cpprof__custom_write(struct cpprof__custom *custom,
                     const struct cpprof_profile_options *options,
                     struct cpprof_writer writer, struct cpprof_error *error)
{
    const struct cpprof__records_form form = cpprof__custom_form(custom);
    struct cpprof__stack_record *records = NULL;
    size_t n = 0;
    enum cpprof_status status =
        cpprof__custom_records(custom, &records, &n, error);

    if (status == CPPROF_OK)
        status =
            cpprof__records_write(&form, records, n, options, writer, error);
    else if (writer.close)
        writer.close(writer.ctx, 1);
    cpprof__free(records);
    return status;
}

/* ---- fork ------------------------------------------------------------- */

static void
count_again(struct shard *shard)
{
    const struct table *table = shard->table;
    uint32_t i;

    shard->n = shard->n_removed = 0;
    for (i = 0; table && i < table->capacity; i++) {
        shard->n += is_value(&table->entries[i]);
        shard->n_removed += table->entries[i].stack == STACK_REMOVED;
    }
}

/* No other thread is there any more, which TSan does not know. */
__attribute__((no_sanitize("thread"))) void
cpprof__custom_in_child(struct cpprof__custom *custom)
{
    size_t i, n = 0;

    for (i = 0; i < 2 * SHARDS; i++) {
        if (cpprof__own_lock_in_child(&custom->shards[i].lock))
            count_again(&custom->shards[i]);
        n += custom->shards[i].n;
    }
    custom->n = n;
}
