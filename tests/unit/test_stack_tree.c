/* SPDX-License-Identifier: MIT */
/* The tree of stacks: the same stack has one number, whoever adds it, and
 * reading trusts nothing. */
#include "collect/signal/tables/stack_tree.h"

#include "heap_core_fixture.h"

#include <pthread.h>

static void
make(struct cpprof__tree *tree)
{
    cpprof__tree_make(tree, fresh_pages(cpprof__tree_bytes()),
                      fresh_pages(cpprof__tree_index_bytes()));
}

static void
unmake(struct cpprof__tree *tree)
{
    munmap(tree->head, cpprof__tree_bytes());
    munmap(tree->index, cpprof__tree_index_bytes());
}

static void
same_stack_has_the_same_number_and_reads_back(void **state)
{
    const uintptr_t pcs[] = {0x10, 0x20, 0x30};
    struct cpprof__tree_node nodes[8];
    struct cpprof__tree tree;
    uint32_t number;
    size_t i;

    (void)state;
    make(&tree);
    number = cpprof__tree_add(&tree, pcs, 3);
    assert_int_not_equal(number, 0);
    assert_int_equal(cpprof__tree_add(&tree, pcs, 3), number);
    assert_int_equal(cpprof__tree_n_nodes(&tree), 4);
    assert_int_equal(cpprof__tree_stack(&tree, number, nodes, 8), 3);
    for (i = 0; i < 3; i++)
        assert_int_equal(nodes[i].pc, pcs[i]);
    assert_int_equal(cpprof__tree_stack(&tree, number, nodes, 2), 2);
    unmake(&tree);
}

static void
stacks_with_the_same_callers_share_their_nodes(void **state)
{
    const uintptr_t a[] = {0x10, 0x20, 0x30}, b[] = {0x11, 0x20, 0x30};
    struct cpprof__tree tree;

    (void)state;
    make(&tree);
    assert_int_not_equal(cpprof__tree_add(&tree, a, 3),
                         cpprof__tree_add(&tree, b, 3));
    assert_int_equal(cpprof__tree_n_nodes(&tree), 5);
    /* The caller's own stack is there already. */
    cpprof__tree_add(&tree, a + 1, 2);
    assert_int_equal(cpprof__tree_n_nodes(&tree), 5);
    unmake(&tree);
}

static void
frame_without_address_is_left_out(void **state)
{
    const uintptr_t a[] = {0, 0x20, 0, 0x30}, b[] = {0x20, 0x30};
    struct cpprof__tree tree;

    (void)state;
    make(&tree);
    assert_int_equal(cpprof__tree_add(&tree, a, 4),
                     cpprof__tree_add(&tree, b, 2));
    assert_int_equal(cpprof__tree_add(&tree, a, 1), 0);
    unmake(&tree);
}

static void
node_of_unloaded_code_is_kept_and_not_found_again(void **state)
{
    const uintptr_t pcs[] = {0x10, 0x20};
    struct cpprof__tree tree;
    struct cpprof__tree_node node;
    uint32_t before, after;

    (void)state;
    make(&tree);
    before = cpprof__tree_add(&tree, pcs, 2);
    tree.nodes[before].mapping = 7 | CPPROF__TREE_GONE;
    after = cpprof__tree_add(&tree, pcs, 2);
    assert_int_not_equal(after, before);
    assert_true(cpprof__tree_node(&tree, before, &node));
    assert_int_equal(node.pc, 0x10);
    assert_int_equal(cpprof__tree_add(&tree, pcs, 2), after);
    unmake(&tree);
}

static void
full_tree_refuses_and_counts_and_still_finds(void **state)
{
    struct cpprof__tree_node node;
    struct cpprof__tree tree;
    uint32_t first = 0, n = 0;
    uintptr_t pc;

    (void)state;
    make(&tree);
    for (pc = 1; pc < CPPROF__TREE_NODES + 100; pc++) {
        uintptr_t pcs[1] = {pc * 16};
        uint32_t number = cpprof__tree_add(&tree, pcs, 1);

        n += number != 0;
        if (pc == 1)
            first = number;
    }
    assert_int_equal(n, CPPROF__TREE_NODES - 1);
    assert_int_equal(tree.head->n_refused, 100);
    assert_int_equal(cpprof__tree_n_nodes(&tree), CPPROF__TREE_NODES);
    pc = 16;
    assert_int_equal(cpprof__tree_add(&tree, &pc, 1), first);
    assert_true(cpprof__tree_node(&tree, CPPROF__TREE_NODES - 1, &node));
    unmake(&tree);
}

#define THREADS 8
#define STACKS  20000
#define DEPTH   6

struct adder {
    struct cpprof__tree *tree;
    unsigned seed;
    uint32_t numbers[STACKS];
};

static void
stack_of(unsigned i, uintptr_t pcs[DEPTH])
{
    unsigned d;

    /* Few near the root, many at the leaves. */
    for (d = 0; d < DEPTH; d++)
        pcs[d] = 0x1000 * (d + 1) + (i >> 2 * d) + 1;
}

static void *
add_all(void *arg)
{
    struct adder *a = arg;
    unsigned i;

    for (i = 0; i < STACKS; i++) {
        unsigned which = (i * 7919 + a->seed % 2 * 13) % STACKS;
        uintptr_t pcs[DEPTH];

        stack_of(which, pcs);
        a->numbers[which] = cpprof__tree_add(a->tree, pcs, DEPTH);
    }
    return NULL;
}

static void
threads_that_add_the_same_stacks_get_the_same_numbers(void **state)
{
    static struct adder adders[THREADS];
    struct cpprof__tree_node nodes[DEPTH];
    pthread_t threads[THREADS];
    struct cpprof__tree tree;
    unsigned i, t, d;

    (void)state;
    make(&tree);
    for (t = 0; t < THREADS; t++) {
        adders[t] = (struct adder){.tree = &tree, .seed = t};
        assert_int_equal(pthread_create(&threads[t], NULL, add_all, &adders[t]),
                         0);
    }
    for (t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (i = 0; i < STACKS; i++) {
        uintptr_t pcs[DEPTH];

        for (t = 1; t < THREADS; t++)
            assert_int_equal(adders[t].numbers[i], adders[0].numbers[i]);
        stack_of(i, pcs);
        assert_int_equal(
            cpprof__tree_stack(&tree, adders[0].numbers[i], nodes, DEPTH),
            DEPTH);
        for (d = 0; d < DEPTH; d++)
            assert_int_equal(nodes[d].pc, pcs[d]);
    }
    unmake(&tree);
}

static void
reading_bytes_of_any_kind_ends(void **state)
{
    struct cpprof__tree_node nodes[16];
    struct cpprof__tree made, tree;
    uint32_t i;

    (void)state;
    make(&made);
    tree = (struct cpprof__tree){.head = made.head, .nodes = made.nodes};
    made.head->n_nodes = UINT32_MAX;
    assert_int_equal(cpprof__tree_n_nodes(&tree), CPPROF__TREE_NODES);
    for (i = 0; i < 1000; i++)
        made.nodes[i] = (struct cpprof__tree_node){i, i * 3, i};
    made.nodes[20].parent = 20;
    assert_int_equal(cpprof__tree_stack(&tree, 20, nodes, 16), 0);
    assert_int_equal(cpprof__tree_stack(&tree, 0, nodes, 16), 0);
    assert_int_equal(cpprof__tree_stack(&tree, UINT32_MAX, nodes, 16), 0);
    for (i = 0; i < 1000; i++)
        assert_in_range(cpprof__tree_stack(&tree, i, nodes, 16), 0, 16);
    unmake(&made);
}

static void
a_stack_that_may_be_one_is_found_or_added(void **state)
{
    const uintptr_t a[] = {0x10, 0x20, 0x30}, b[] = {0x10, 0x20, 0x31};
    const uintptr_t holes[] = {0x10, 0, 0x20, 0x30};
    struct cpprof__tree tree;
    uint32_t number, other;

    (void)state;
    make(&tree);
    number = cpprof__tree_add_again(&tree, 0, a, 3);
    assert_int_equal(cpprof__tree_n_nodes(&tree), 4);
    assert_int_equal(cpprof__tree_add_again(&tree, number, a, 3), number);
    other = cpprof__tree_add_again(&tree, number, b, 3);
    assert_int_not_equal(other, number);
    assert_int_equal(cpprof__tree_add_again(&tree, other, a, 3), number);
    /* One that is longer, or shorter, or nowhere. */
    assert_int_equal(cpprof__tree_add_again(&tree, number, a, 2),
                     cpprof__tree_add(&tree, a, 2));
    assert_int_equal(
        cpprof__tree_add_again(&tree, cpprof__tree_add(&tree, a + 1, 2), a, 3),
        number);
    assert_int_equal(
        cpprof__tree_add_again(&tree, CPPROF__TREE_NODES - 1, a, 3), number);
    assert_int_equal(cpprof__tree_add_again(&tree, UINT32_MAX, a, 3), number);
    assert_int_equal(cpprof__tree_add_again(&tree, number, holes, 4), number);
    tree.nodes[number].mapping = 7 | CPPROF__TREE_GONE;
    assert_int_not_equal(cpprof__tree_add_again(&tree, number, a, 3), number);
    unmake(&tree);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_stack_has_the_same_number_and_reads_back),
        cmocka_unit_test(stacks_with_the_same_callers_share_their_nodes),
        cmocka_unit_test(frame_without_address_is_left_out),
        cmocka_unit_test(node_of_unloaded_code_is_kept_and_not_found_again),
        cmocka_unit_test(a_stack_that_may_be_one_is_found_or_added),
        cmocka_unit_test(full_tree_refuses_and_counts_and_still_finds),
        cmocka_unit_test(threads_that_add_the_same_stacks_get_the_same_numbers),
        cmocka_unit_test(reading_bytes_of_any_kind_ends),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
#ifdef __SANITIZE_THREAD__
    /* Of one thread there is nothing to tell, and it takes most of the time. */
    cmocka_set_skip_filter("full_tree_refuses_and_counts_and_still_finds");
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
