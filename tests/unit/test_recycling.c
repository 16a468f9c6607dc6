/* SPDX-License-Identifier: MIT */
/*
 * A program that runs for months: stacks and label sets are ever new, and the
 * tables, which have a bound, go on taking them; what is needed stays, and sums
 * stay exact.
 */
#include "collect/signal/tables/label_numbers.h"
#include "collect/signal/tables/thread.h"
#include "collect/signal/waits/wait_buckets.h"
#include "heap_core_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

/* What hooks do after they have added something. */
static uint32_t
added(const uintptr_t *pcs, size_t n)
{
    uint32_t number = cpprof__tree_add(&heap_tree, pcs, n);

    cpprof__recycle();
    return number;
}

/* The i-th of a program whose leaves are ever new. */
static void
stack_of(uint32_t i, uintptr_t pcs[3])
{
    pcs[0] = 0x100000 + 16 * (uintptr_t)i;
    pcs[1] = 0x80000 + 16 * (uintptr_t)(i / 1000);
    pcs[2] = 0x1000;
}

static void
assert_stack(uint32_t number, uint32_t i)
{
    struct cpprof__tree_node nodes[4];
    uintptr_t pcs[3];
    unsigned k;

    stack_of(i, pcs);
    assert_int_equal(cpprof__tree_stack(&heap_tree, number, nodes, 4), 3);
    for (k = 0; k < 3; k++)
        assert_int_equal(nodes[k].pc, pcs[k]);
}

static void
a_tree_takes_five_times_as_many_stacks_as_it_has_room_for(void **state)
{
    enum { STACKS = 5 * CPPROF__TREE_NODES, EACH = 50000 };
    static uint32_t held[STACKS / EACH + 1];
    uint32_t i, number, before = 0;
    uintptr_t pcs[3];

    (void)state;
    fresh_heap(1);
    for (i = 0; i < STACKS; i++) {
        stack_of(i, pcs);
        number = added(pcs, 3);
        assert_int_not_equal(number, 0);
        if (i % EACH == 0) {
            cpprof__tree_hold(number);
            held[i / EACH] = number;
        }
        if (i % 1000 == 999)
            assert_stack(before, i - 1);
        before = number;
    }
    for (i = 0; i < STACKS; i += EACH)
        assert_stack(held[i / EACH], i);
    assert_int_equal(heap_tree.head->n_refused, 0);
}

static void
a_tree_full_of_what_is_held_takes_more_when_it_is_given_back(void **state)
{
    uint32_t i, n = CPPROF__TREE_NODES / 2, number;
    static uint32_t held[CPPROF__TREE_NODES];
    uintptr_t pcs[3];

    (void)state;
    fresh_heap(1);
    for (i = 0; i < CPPROF__TREE_NODES; i++) {
        stack_of(i, pcs);
        held[i] = added(pcs, 3);
        cpprof__tree_hold(held[i]);
        if (!held[i])
            break;
    }
    assert_in_range(i, n, CPPROF__TREE_NODES);
    assert_stack(held[0], 0);
    assert_stack(held[i - 1], i - 1);
    while (i-- > 0)
        cpprof__tree_drop(held[i]);
    stack_of(5 * CPPROF__TREE_NODES, pcs);
    for (i = 0; i < 100 && !(number = added(pcs, 3)); i++)
        usleep(200000);
    assert_stack(number, 5 * CPPROF__TREE_NODES);
}

/* ---- label sets ------------------------------------------------------- */

static struct cpprof__label_set
set_of(uint32_t i, char bytes[64])
{
    int n = snprintf(bytes, 64, "srequest%c%u%c", 0, i, 0);

    return (struct cpprof__label_set){1, (uint32_t)n, i, bytes};
}

static void
assert_set(uint32_t number, uint32_t i)
{
    char bytes[64], read[64];
    struct cpprof__label_set set = set_of(i, bytes);

    assert_int_equal(
        cpprof__label_set_bytes(&heap_tree, number, read, sizeof read),
        set.n_encoded);
    assert_memory_equal(read, bytes, set.n_encoded);
}

/* 600 000 requests, more than there are buckets, each with an id of its own;
 * every thousandth block stays. */
enum { REQUESTS = CPPROF__HEAP_BUCKETS + 100000, STAY = 1000 };

static void
requests(uint32_t first, uint32_t end)
{
    char bytes[64];
    uint32_t i;

    cpprof__wants_labels = 1;
    for (i = first; i < end; i++) {
        struct cpprof__label_set set = set_of(i, bytes);

        cpprof__self.labels = &set;
        allocated(0x10000000 + 64 * (uintptr_t)i, 48);
        if (i % STAY)
            assert_true(freed(0x10000000 + 64 * (uintptr_t)i));
    }
    cpprof__self.labels = NULL;
    cpprof__wants_labels = 0;
}

/* The bucket of a request; 0: there is none. */
static uint32_t
bucket_of(uint32_t i)
{
    char bytes[64], read[64];
    struct cpprof__label_set set = set_of(i, bytes);
    struct cpprof__heap_bucket b;
    uint32_t k;

    for (k = 1; k < cpprof__heap_n_buckets(&cpprof__heap); k++)
        if (cpprof__heap_read_bucket(&cpprof__heap, k, &b) &&
            cpprof__label_set_bytes(&heap_tree, b.labels, read, sizeof read) ==
                set.n_encoded &&
            !memcmp(read, bytes, set.n_encoded))
            return k;
    return 0;
}

static void
assert_heap(uint32_t n)
{
    struct cpprof__heap_sum all = ever_allocated(&cpprof__heap);
    struct cpprof__heap_head *head = cpprof__heap.head;
    uint32_t i;

    assert_int_equal(all.n_sampled + head->n_lost, n);
    assert_int_equal(all.objects + head->lost_objects, n * FRACTION);
    assert_int_equal(all.bytes + head->lost_bytes, 48 * n * FRACTION);
    assert_int_equal(in_use(&cpprof__heap).n_sampled, (n + STAY - 1) / STAY);
    assert_int_not_equal(bucket_of(n - 1), 0);
    for (i = 0; i < n; i += 100 * STAY) {
        struct cpprof__heap_bucket b;
        uint32_t k = bucket_of(i);

        assert_true(cpprof__heap_read_bucket(&cpprof__heap, k, &b));
        assert_int_equal(b.now_objects, FRACTION);
        assert_set(b.labels, i);
    }
}

static void
a_heap_counts_exactly_that_labels_each_request(void **state)
{
    (void)state;
    fresh_heap(1);
    requests(0, REQUESTS);
    assert_heap(REQUESTS);
}

/* The heap is that of the case before: full, so that both go on by giving up
 * what the other may still have. */
static void
so_do_parent_and_child_after_a_fork_in_the_midst(void **state)
{
    int status;
    pid_t pid;

    (void)state;
    pid = fork();
    if (pid == 0) {
        cpprof__heap_forked();
        requests(REQUESTS, REQUESTS + 150000);
        assert_heap(REQUESTS + 150000);
        _exit(0);
    }
    requests(REQUESTS, REQUESTS + 100000);
    assert_heap(REQUESTS + 100000);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- waits ------------------------------------------------------------ */

static void
waits_count_exactly_that_label_each_request(void **state)
{
    enum { WAITS = 5 * CPPROF__WAIT_BUCKETS };
    const uintptr_t pcs[] = {0x2000, 0x1000};
    struct cpprof__wait_bucket b;
    uint64_t count = 0, ns = 0;
    bool has_last = false;
    char bytes[64];
    uint32_t i;

    (void)state;
    fresh_heap(1);
    assert_true(cpprof__waits_reserve());
    for (i = 0; i < WAITS; i++) {
        struct cpprof__label_set set = set_of(i, bytes);

        cpprof__self.labels = &set;
        cpprof__wait_count(CPPROF__WAIT_BLOCK,
                           cpprof__tree_add(&heap_tree, pcs, 2), 1, 10);
    }
    cpprof__self.labels = NULL;
    for (i = 1; i < cpprof__waits_n_buckets(&cpprof__waits); i++) {
        char read[64];

        if (!cpprof__waits_read(&cpprof__waits, i, &b))
            continue;
        count += b.count;
        ns += b.delay_ns;
        has_last |=
            cpprof__label_set_bytes(&heap_tree, b.labels, read, sizeof read) ==
                strlen("srequest") + 2 + 6 &&
            atoi(read + strlen("srequest") + 1) == WAITS - 1;
    }
    assert_true(has_last);
    assert_int_equal(count + cpprof__waits.head->lost_count[CPPROF__WAIT_BLOCK],
                     WAITS);
    assert_int_equal(ns + cpprof__waits.head->lost_ns[CPPROF__WAIT_BLOCK],
                     10 * WAITS);
    assert_int_equal(cpprof__waits.head->lost_count[CPPROF__WAIT_BLOCK], 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_tree_takes_five_times_as_many_stacks_as_it_has_room_for),
        cmocka_unit_test(
            a_tree_full_of_what_is_held_takes_more_when_it_is_given_back),
        cmocka_unit_test(a_heap_counts_exactly_that_labels_each_request),
        cmocka_unit_test(so_do_parent_and_child_after_a_fork_in_the_midst),
        cmocka_unit_test(waits_count_exactly_that_label_each_request),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
