/* SPDX-License-Identifier: MIT */
/*
 * The tree of stacks: finds or makes a node for each frame, from the root to
 * the leaf, without a lock.
 *
 * A node's number comes from a counter, its content is filled in, and only
 * then is it published in the index by compare-and-swap. If another thread has
 * published the same frame first, its node is used and ours stays unused. Code
 * that was unloaded marks its nodes, so that the same address later makes new
 * ones.
 *
 * Invariants: a node is complete before anybody can find its number; nodes
 * never move; one that is held, or below which one is held, stays what it is.
 */
#include "collect/signal/tables/stack_tree.h"

#include "arch/atomic.h"
#include "collect/signal/tables/mirror.h"
#include "collect/signal/tables/reserve.h"
#include "collect/signal/tables/window_index.h"

#define NUMBER_BITS 20
#define LEVELS      6

#define INDEX_BYTES (WINDOW_INDEX_SLOTS(LEVELS) * sizeof(uint32_t))

/* The nodes begin on a page of their own. */
#define HEAD_BYTES 4096

_Static_assert(CPPROF__TREE_NODES == 1u << NUMBER_BITS, "numbers fit a slot");
_Static_assert(sizeof(struct cpprof__tree_node) == 16, "no padding");

size_t
cpprof__tree_bytes(void)
{
    return HEAD_BYTES + CPPROF__TREE_NODES * sizeof(struct cpprof__tree_node);
}

size_t
cpprof__tree_index_bytes(void)
{
    return INDEX_BYTES + cpprof__entries_bytes(CPPROF__TREE_NODES) +
           CPPROF__TREE_NODES * (sizeof(uint32_t) + 1);
}

/* Threads that make the tree at the same time all store the same, also when
 * another uses it already: TSan does not know that. */
__attribute__((no_sanitize("thread"))) void
cpprof__tree_make(struct cpprof__tree *tree, void *block, void *index)
{
    struct cpprof__tree_head *head = block;
    uint32_t none = 0;

    cas_acq_rel(&head->n_nodes, &none, 1);
    store_relaxed(&tree->nodes, (void *)((char *)block + HEAD_BYTES));
    store_relaxed(&tree->index, index);
    tree->holds = (void *)((char *)index + INDEX_BYTES);
    tree->marks = (uint8_t *)(tree->holds + CPPROF__TREE_NODES);
    cpprof__entries_make(&tree->entries, CPPROF__TREE_NODES, &head->n_nodes,
                         tree->marks + CPPROF__TREE_NODES);
    store_release(&tree->head, head);
}

bool
cpprof__tree_reserve(struct cpprof__tree *tree)
{
    size_t n = cpprof__tree_bytes();
    char *p;

    if (load_acquire(&tree->head))
        return true;
    p = cpprof__reserve_once(&tree->reserved, n + cpprof__tree_index_bytes());
    if (p)
        cpprof__tree_make(tree, p, p + n);
    return p != NULL;
}

uint32_t
cpprof__tree_n_nodes(const struct cpprof__tree *tree)
{
    uint32_t n = load_acquire(&tree->head->n_nodes);

    return n < CPPROF__TREE_NODES ? n : CPPROF__TREE_NODES;
}

bool
cpprof__tree_node(const struct cpprof__tree *tree, uint32_t number,
                  struct cpprof__tree_node *node)
{
    const struct cpprof__tree_node *from;

    if (number == 0 || number >= CPPROF__TREE_NODES)
        return false;
    from = &tree->nodes[number];
    node->pc = load_acquire(&from->pc);
    node->parent = load_relaxed(&from->parent);
    node->mapping = load_relaxed(&from->mapping);
    return node->pc != 0 && node->parent != number &&
           node->parent < CPPROF__TREE_NODES;
}

size_t
cpprof__tree_stack(const struct cpprof__tree *tree, uint32_t number,
                   struct cpprof__tree_node *nodes, size_t max)
{
    size_t n = 0;

    while (n < max && cpprof__tree_node(tree, number, &nodes[n]))
        number = nodes[n++].parent;
    return n;
}

/* A frame under its caller. */
struct frame {
    uint64_t pc;
    uint32_t parent;
    uint32_t mapping; /* of a new node */
};

/* Is this node that frame, and its code still there? */
static bool
is_frame(const void *table, uint32_t number, const void *key)
{
    const struct cpprof__tree_node *node =
        &((const struct cpprof__tree *)table)->nodes[number];
    const struct frame *frame = key;

    return load_relaxed(&node->pc) == frame->pc &&
           load_relaxed(&node->parent) == frame->parent &&
           !(load_relaxed(&node->mapping) & CPPROF__TREE_GONE);
}

static uint32_t
make_node(void *table, const void *key)
{
    struct cpprof__tree *tree = table;
    const struct frame *frame = key;
    struct cpprof__tree_node *node;
    uint32_t number;

    number = cpprof__entries_take(&tree->entries);
    if (!number)
        return 0;
    node = &tree->nodes[number];
    store_relaxed(&node->parent, frame->parent);
    store_relaxed(&node->mapping, frame->mapping);
    store_release(&node->pc, frame->pc);
    cpprof__mirror(node, sizeof *node);
    cpprof__mirror(tree->head, sizeof *tree->head);
    return number;
}

static uint64_t
hash_of(uint32_t parent, uint64_t pc)
{
    return cpprof__mix_u64(pc ^ (uint64_t)parent << 40 ^
                           parent * CPPROF__GOLDEN);
}

static const struct window_kind kind = {LEVELS, NUMBER_BITS, is_frame,
                                        make_node};

/* The node of a frame under parent; 0: there is no room. */
static uint32_t
node_of(struct cpprof__tree *tree, uint32_t parent, uint64_t pc,
        uint32_t mapping)
{
    const struct frame frame = {pc, parent, mapping};

    return window_find_or_make(&kind, tree->index, hash_of(parent, pc), tree,
                               &frame);
}

uint32_t
cpprof__tree_add(struct cpprof__tree *tree, const uintptr_t *pcs, size_t n)
{
    uint32_t node = 0;

    while (n-- > 0) {
        if (!pcs[n])
            continue;
        node = node_of(tree, node, pcs[n], CPPROF__TREE_UNRESOLVED);
        if (!node) {
            add_relaxed(&tree->head->n_refused, 1);
            cpprof__mirror(tree->head, sizeof *tree->head);
            return 0;
        }
    }
    if (node)
        cpprof__entries_use(&tree->entries, node);
    return node;
}

static bool
is_stack(const struct cpprof__tree *tree, uint32_t number, const uintptr_t *pcs,
         size_t n)
{
    size_t i;

    for (i = 0; i < n && number && number < CPPROF__TREE_NODES; i++) {
        const struct cpprof__tree_node *node = &tree->nodes[number];

        if (load_acquire(&node->pc) != pcs[i] ||
            load_relaxed(&node->mapping) & CPPROF__TREE_GONE)
            return false;
        number = load_relaxed(&node->parent);
    }
    return i == n && !number;
}

uint32_t
cpprof__tree_add_again(struct cpprof__tree *tree, uint32_t maybe,
                       const uintptr_t *pcs, size_t n)
{
    if (maybe && maybe < CPPROF__TREE_NODES && is_stack(tree, maybe, pcs, n)) {
        cpprof__entries_use(&tree->entries, maybe);
        return maybe;
    }
    return cpprof__tree_add(tree, pcs, n);
}

/* Add one node. If it finds no room that is counted. */
static uint32_t
add_one(struct cpprof__tree *tree, uint32_t parent, uint64_t pc,
        uint32_t mapping)
{
    uint32_t node = node_of(tree, parent, pc, mapping);

    if (node) {
        cpprof__entries_use(&tree->entries, node);
    } else {
        add_relaxed(&tree->head->n_refused, 1);
        cpprof__mirror(tree->head, sizeof *tree->head);
    }
    return node;
}

uint32_t
cpprof__tree_add_leaf(struct cpprof__tree *tree, uint32_t stack, uintptr_t pc)
{
    return add_one(tree, stack, pc, CPPROF__TREE_UNRESOLVED);
}

uint32_t
cpprof__tree_add_piece(struct cpprof__tree *tree, uint32_t before,
                       uint64_t piece)
{
    return add_one(tree, before, piece, CPPROF__TREE_NO_MAPPING);
}

/* ---- recycling -------------------------------------------------------- */

static struct cpprof__tree *own;

void
cpprof__tree_hold(uint32_t number)
{
    struct cpprof__tree *tree = load_acquire(&own);

    if (tree && number && number < CPPROF__TREE_NODES)
        add_relaxed(&tree->holds[number], 1);
}

void
cpprof__tree_drop(uint32_t number)
{
    struct cpprof__tree *tree = load_acquire(&own);

    if (tree && number && number < CPPROF__TREE_NODES)
        __atomic_fetch_sub(&tree->holds[number], 1, __ATOMIC_RELEASE);
}

void
cpprof__tree_use(uint32_t number)
{
    struct cpprof__tree *tree = load_acquire(&own);

    if (tree && number && number < CPPROF__TREE_NODES)
        cpprof__entries_use(&tree->entries, number);
}

uint32_t
cpprof__tree_left(void)
{
    return cpprof__entries_left(&own->entries);
}

/* A stack that ends at this node is needed, and so are all nodes that it goes
 * through. */
static void
mark_up(struct cpprof__tree *tree, uint32_t number)
{
    while (number && number < CPPROF__TREE_NODES && !tree->marks[number]) {
        tree->marks[number] = 1;
        number = load_relaxed(&tree->nodes[number].parent);
    }
}

static void
mark(struct cpprof__tree *tree)
{
    uint32_t i, n = cpprof__tree_n_nodes(tree);

    __builtin_memset(tree->marks, 0, n);
    for (i = 1; i < n; i++)
        if (load_acquire(&tree->nodes[i].pc) &&
            (load_acquire(&tree->holds[i]) ||
             !cpprof__entries_is_cold(&tree->entries, i)))
            mark_up(tree, i);
}

static bool
is_there(void *table, uint32_t number)
{
    return load_acquire(&((struct cpprof__tree *)table)->nodes[number].pc) != 0;
}

static bool
is_marked(void *table, uint32_t number)
{
    return ((struct cpprof__tree *)table)->marks[number] != 0;
}

static void
remove_node(void *table, uint32_t number)
{
    struct cpprof__tree *tree = table;
    const struct cpprof__tree_node *node = &tree->nodes[number];

    window_remove(&kind, tree->index, hash_of(node->parent, node->pc), number);
}

static void
clear_node(void *table, uint32_t number)
{
    struct cpprof__tree_node *node =
        &((struct cpprof__tree *)table)->nodes[number];

    store_release(&node->pc, 0u);
    store_relaxed(&node->parent, 0u);
    store_relaxed(&node->mapping, CPPROF__TREE_UNRESOLVED);
    cpprof__mirror(node, sizeof *node);
}

static void
recycle(void)
{
    static const struct cpprof__entries_kind nodes = {is_there, is_marked,
                                                      remove_node, clear_node};

    mark(own);
    cpprof__entries_sweep(&own->entries, &nodes, own);
}

void
cpprof__tree_own(struct cpprof__tree *tree)
{
    store_release(&own, tree);
    cpprof__recycle_add(recycle);
}
