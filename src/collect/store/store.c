/* SPDX-License-Identifier: MIT */
/*
 * A store: a fixed block of tables without pointers, and two private hash
 * indexes for adding.
 *
 * Nodes and samples are found by hash and added at the end of their tables. An
 * entry is filled before the count that covers it is raised, with release
 * order, so another process may read a shared store at any moment. The indexes
 * begin small and double, in address space that was reserved for their largest
 * size.
 *
 * Invariants: numbers of entries never change; an opened store is mended once,
 * so that no reference in it points outside its tables.
 */
#include "collect/store/store.h"

#include "arch/atomic.h"
#include "base/hash.h"
#include "collect/signal/tables/reserve.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAGIC "cpprofS1"

/* Holes in a file are filled, and memory is taken, in pieces of this size. */
#define STEP (32u * 1024)

/* The first size of an index; it doubles when half full. */
#define FIRST_INDEX 1024u

/* The parts of the block, in order. ORDER: part_bytes. The indexes come last
 * and are not for other processes. */
enum part {
    HEAD,
    MAPPINGS,
    LABEL_SETS,
    TEXT,
    SAMPLES,
    NODES,
    SAMPLE_INDEX,
    NODE_INDEX,
    N_PARTS
};

static const size_t part_bytes[N_PARTS] = {
    4096,
    CPPROF__STORE_MAPPINGS * sizeof(struct cpprof__store_mapping),
    CPPROF__STORE_LABEL_SETS * sizeof(struct cpprof__store_labels),
    CPPROF__STORE_TEXT,
    CPPROF__STORE_SAMPLES * sizeof(struct cpprof__store_sample),
    CPPROF__STORE_NODES * sizeof(struct cpprof__store_node),
    CPPROF__STORE_SAMPLES * 2 * sizeof(uint32_t),
    CPPROF__STORE_NODES * 2 * sizeof(uint32_t),
};

static size_t
part_offset(enum part part)
{
    size_t offset = 0;
    int i;

    for (i = 0; i < (int)part; i++)
        offset += part_bytes[i];
    return offset;
}

size_t
cpprof__store_bytes(void)
{
    return part_offset(N_PARTS);
}

size_t
cpprof__store_shared_bytes(void)
{
    return part_offset(SAMPLE_INDEX);
}

static void
set_parts(struct cpprof__store *store, void *block)
{
    char *p = block;

    memset(store, 0, sizeof *store);
    store->head = block;
    store->mappings = (void *)(p + part_offset(MAPPINGS));
    store->label_sets = (void *)(p + part_offset(LABEL_SETS));
    store->text = p + part_offset(TEXT);
    store->samples = (void *)(p + part_offset(SAMPLES));
    store->nodes = (void *)(p + part_offset(NODES));
    store->sample_index = (void *)(p + part_offset(SAMPLE_INDEX));
    store->node_index = (void *)(p + part_offset(NODE_INDEX));
    store->sample_mask = FIRST_INDEX - 1;
    store->node_mask = FIRST_INDEX - 1;
}

/* Make [at, at + n) of reserved address space writable. */
static bool
take_memory(char *at, size_t n)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = (uintptr_t)at & ~(page - 1);
    uintptr_t to = ((uintptr_t)at + n + page - 1) & ~(page - 1);

    return !mprotect((void *)from, to - from, PROT_READ | PROT_WRITE);
}

/* Make sure that the first n bytes of a part may be touched. */
static bool
ensure(struct cpprof__store *store, enum part part, size_t n)
{
    size_t from = store->ready[part];
    size_t at, to;

    if (n > part_bytes[part])
        return false;
    if (n <= from || !store->is_reserved)
        return true;
    to = (n + STEP - 1) / STEP * STEP;
    if (to > part_bytes[part])
        to = part_bytes[part];
    at = part_offset(part) + from;
    if (!store->path || part >= SAMPLE_INDEX) {
        if (!take_memory((char *)store->head + at, to - from))
            return false;
    } else {
        errno =
            cpprof__fill_hole((char *)store->head, at, to - from, store->path);
        if (errno)
            return false;
    }
    store->ready[part] = to;
    return true;
}

static bool
make(struct cpprof__store *store)
{
    if (!ensure(store, HEAD, sizeof *store->head) || !ensure(store, TEXT, 1) ||
        !ensure(store, NODES, sizeof *store->nodes) ||
        !ensure(store, SAMPLE_INDEX, FIRST_INDEX * sizeof(uint32_t)) ||
        !ensure(store, NODE_INDEX, FIRST_INDEX * sizeof(uint32_t)))
        return false;
    store->nodes[0].mapping = CPPROF__NO_MAPPING;
    store->head->n_nodes = 1;
    store->head->n_text = 1; /* offset 0 is "" */
    memcpy(store->head->magic, MAGIC, sizeof store->head->magic);
    return true;
}

bool
cpprof__store_make(struct cpprof__store *store, void *block)
{
    set_parts(store, block);
    return make(store);
}

bool
cpprof__store_make_reserved(struct cpprof__store *store, void *block,
                            const char *path)
{
    set_parts(store, block);
    store->path = path;
    store->is_reserved = true;
    return make(store);
}

static uint32_t
at_most(uint32_t *count, uint32_t most)
{
    if (*count > most)
        *count = most;
    return *count;
}

/* References that point outside are mended here, once, so that nobody else
 * needs to check. */
static void
mend(struct cpprof__store *store)
{
    struct cpprof__store_head *head = store->head;
    uint32_t n_mappings = at_most(&head->n_mappings, CPPROF__STORE_MAPPINGS);
    uint32_t n_sets = at_most(&head->n_label_sets, CPPROF__STORE_LABEL_SETS);
    uint32_t n_text = at_most(&head->n_text, CPPROF__STORE_TEXT);
    uint32_t n_nodes = at_most(&head->n_nodes, CPPROF__STORE_NODES);
    uint32_t i;

    for (i = 1; i < n_nodes; i++) {
        if (store->nodes[i].parent >= i)
            store->nodes[i].parent = 0;
        if (store->nodes[i].mapping >= n_mappings &&
            !cpprof__is_made_code(store->nodes[i].mapping))
            store->nodes[i].mapping = CPPROF__NO_MAPPING;
    }
    at_most(&head->n_samples, CPPROF__STORE_SAMPLES);
    for (i = 0; i < head->n_samples; i++) {
        if (store->samples[i].node >= n_nodes)
            store->samples[i].node = 0;
        if (store->samples[i].labels > n_sets)
            store->samples[i].labels = 0;
    }
    for (i = 0; i < n_sets; i++)
        if ((uint64_t)store->label_sets[i].text + store->label_sets[i].n_bytes >
            n_text)
            store->label_sets[i].n_bytes = 0;
}

bool
cpprof__store_open(struct cpprof__store *store, void *block)
{
    set_parts(store, block);
    if (memcmp(store->head->magic, MAGIC, sizeof store->head->magic))
        return false;
    mend(store);
    store->text[CPPROF__STORE_TEXT - 1] = 0;
    return store->head->n_nodes > 0;
}

static uint64_t
node_hash(uint32_t parent, uint64_t pc, uint32_t mapping)
{
    return cpprof__mix_u64(pc ^ (uint64_t)parent << 40 ^
                           (uint64_t)mapping << 32);
}

static uint64_t
sample_hash(uint32_t node, uint32_t labels)
{
    return cpprof__mix_u64((uint64_t)labels << 32 | node);
}

static void
put(uint32_t *index, uint32_t mask, uint64_t hash, uint32_t number)
{
    uint32_t i = (uint32_t)hash & mask;

    while (index[i])
        i = (i + 1) & mask;
    index[i] = number + 1;
}

/* The mask of a table that n entries fill at most half. */
static uint32_t
mask_for(uint32_t n)
{
    uint32_t mask = FIRST_INDEX - 1;

    while (n * 2 > mask)
        mask = mask * 2 + 1;
    return mask;
}

static bool
index_nodes(struct cpprof__store *store, uint32_t mask)
{
    uint32_t i;

    if (!ensure(store, NODE_INDEX, (mask + 1ul) * sizeof(uint32_t)))
        return false;
    memset(store->node_index, 0, (mask + 1ul) * sizeof(uint32_t));
    for (i = 1; i < store->head->n_nodes; i++) {
        const struct cpprof__store_node *node = &store->nodes[i];

        put(store->node_index, mask,
            node_hash(node->parent, node->pc, node->mapping), i);
    }
    store->node_mask = mask;
    return true;
}

static bool
index_samples(struct cpprof__store *store, uint32_t mask)
{
    uint32_t i;

    if (!ensure(store, SAMPLE_INDEX, (mask + 1ul) * sizeof(uint32_t)))
        return false;
    memset(store->sample_index, 0, (mask + 1ul) * sizeof(uint32_t));
    for (i = 0; i < store->head->n_samples; i++)
        put(store->sample_index, mask,
            sample_hash(store->samples[i].node, store->samples[i].labels), i);
    store->sample_mask = mask;
    return true;
}

bool
cpprof__store_index(struct cpprof__store *store)
{
    return index_nodes(store, mask_for(store->head->n_nodes)) &&
           index_samples(store, mask_for(store->head->n_samples));
}

/* The node for pc under parent, made if need be; 0 when full. */
static uint32_t
node_under(struct cpprof__store *store, uint32_t parent, uint64_t pc,
           uint32_t mapping)
{
    uint64_t hash = node_hash(parent, pc, mapping);
    uint32_t n = store->head->n_nodes;
    struct cpprof__store_node *node;
    uint32_t i, number;

    for (i = (uint32_t)hash & store->node_mask; (number = store->node_index[i]);
         i = (i + 1) & store->node_mask) {
        node = &store->nodes[number - 1];
        if (node->pc == pc && node->parent == parent &&
            node->mapping == mapping)
            return number - 1;
    }
    if (n >= CPPROF__STORE_NODES ||
        !ensure(store, NODES, (n + 1) * sizeof *node))
        return 0;
    if (n * 2 > store->node_mask &&
        !index_nodes(store, store->node_mask * 2 + 1))
        return 0;
    node = &store->nodes[n];
    node->pc = pc;
    node->parent = parent;
    node->mapping = mapping;
    put(store->node_index, store->node_mask, hash, n);
    store_release(&store->head->n_nodes, n + 1);
    return n;
}

static struct cpprof__store_sample *
sample_of(struct cpprof__store *store, uint32_t node, uint32_t labels)
{
    uint64_t hash = sample_hash(node, labels);
    uint32_t n = store->head->n_samples;
    struct cpprof__store_sample *sample;
    uint32_t i, number;

    for (i = (uint32_t)hash & store->sample_mask;
         (number = store->sample_index[i]); i = (i + 1) & store->sample_mask) {
        sample = &store->samples[number - 1];
        if (sample->node == node && sample->labels == labels)
            return sample;
    }
    if (n >= CPPROF__STORE_SAMPLES ||
        !ensure(store, SAMPLES, (n + 1) * sizeof *sample))
        return NULL;
    if (n * 2 > store->sample_mask &&
        !index_samples(store, store->sample_mask * 2 + 1))
        return NULL;
    sample = &store->samples[n];
    sample->node = node;
    sample->labels = labels;
    sample->count = 0;
    put(store->sample_index, store->sample_mask, hash, n);
    store_release(&store->head->n_samples, n + 1);
    return sample;
}

bool
cpprof__store_add(struct cpprof__store *store, const uint64_t *pcs,
                  const uint32_t *mappings, size_t n, uint32_t labels,
                  uint64_t count)
{
    struct cpprof__store_sample *sample;
    uint32_t node = 0;

    while (n--) {
        node = node_under(store, node, pcs[n], mappings[n]);
        if (!node)
            return false;
    }
    sample = sample_of(store, node, labels);
    if (!sample)
        return false;
    store_release(&sample->count, sample->count + count);
    store_release(&store->head->total, store->head->total + count);
    return true;
}

uint32_t
cpprof__store_add_text(struct cpprof__store *store, const char *text, size_t n)
{
    uint32_t at = store->head->n_text;

    if (!n)
        return 0;
    if (n >= CPPROF__STORE_TEXT - at || !ensure(store, TEXT, at + n + 1))
        return 0;
    memcpy(store->text + at, text, n);
    store->text[at + n] = 0;
    store_release(&store->head->n_text, (uint32_t)(at + n + 1));
    return at;
}

uint32_t
cpprof__store_add_mapping(struct cpprof__store *store,
                          const struct cpprof__store_mapping *mapping)
{
    uint32_t n = store->head->n_mappings;

    if (n >= CPPROF__STORE_MAPPINGS ||
        !ensure(store, MAPPINGS, (n + 1) * sizeof *mapping))
        return CPPROF__NO_MAPPING;
    store->mappings[n] = *mapping;
    store_release(&store->head->n_mappings, n + 1);
    return n;
}

struct cpprof__symbolizer_mapping
cpprof__store_mapping_at(const struct cpprof__store *store, size_t index)
{
    const struct cpprof__store_mapping *m = &store->mappings[index];

    return (struct cpprof__symbolizer_mapping){
        m->start,
        m->limit,
        m->offset,
        cpprof__store_text(store, m->path),
        cpprof__store_text(store, m->build_id),
        m->inode};
}

uint32_t
cpprof__store_find_mapping(const struct cpprof__store *store, uint64_t pc,
                           size_t n)
{
    uint32_t i;

    for (i = 0; i < n; i++)
        if (pc >= store->mappings[i].start && pc < store->mappings[i].limit &&
            !load_relaxed(&store->mappings[i].is_gone))
            return i;
    return CPPROF__NO_MAPPING;
}

uint32_t
cpprof__store_add_labels(struct cpprof__store *store, const void *encoded,
                         size_t n)
{
    struct cpprof__store_labels *set;
    uint32_t n_sets = store->head->n_label_sets;

    if (n_sets >= CPPROF__STORE_LABEL_SETS ||
        !ensure(store, LABEL_SETS, (n_sets + 1) * sizeof *set))
        return 0;
    set = &store->label_sets[n_sets];
    set->text = cpprof__store_add_text(store, encoded, n);
    if (!set->text)
        return 0;
    set->n_bytes = (uint32_t)n;
    set->identity = 0;
    store_release(&store->head->n_label_sets, n_sets + 1);
    return n_sets + 1;
}

const char *
cpprof__store_text(const struct cpprof__store *store, uint32_t offset)
{
    return offset < load_acquire(&store->head->n_text) ? store->text + offset
                                                       : "";
}
