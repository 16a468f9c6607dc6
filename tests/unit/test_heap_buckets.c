/* SPDX-License-Identifier: MIT */
/* Buckets: what tells them apart, the peak, and reading bytes of any kind. */
#include "collect/signal/heap/heap_buckets.h"
#include "collect/signal/tables/label_numbers.h"
#include "collect/signal/tables/thread.h"
#include "collect/signal/unwind/unwind.h"

#include "heap_core_fixture.h"

static void
size_classes_are_eighths_of_powers_of_two(void **state)
{
    uint16_t before = 0;
    uint64_t n;

    (void)state;
    for (n = 1; n < 5000; n++) {
        uint16_t c = cpprof__heap_size_class(n);

        assert_in_range(c, before, before + 1);
        before = c;
    }
    assert_int_not_equal(cpprof__heap_size_class(0),
                         cpprof__heap_size_class(1));
    assert_int_equal(cpprof__heap_size_class(64), cpprof__heap_size_class(71));
    assert_int_equal(cpprof__heap_size_class(72),
                     cpprof__heap_size_class(71) + 1);
    assert_true(cpprof__heap_size_class(UINT64_MAX) >
                cpprof__heap_size_class(UINT64_MAX / 2));
}

__attribute__((noinline)) static void
allocate_here(uintptr_t address, size_t n)
{
    allocated(address, n);
    __asm__ volatile("");
}

__attribute__((noinline)) static void
allocate_there(uintptr_t address, size_t n)
{
    allocated(address, n);
    __asm__ volatile("");
}

static uint32_t
n_buckets(void)
{
    return cpprof__heap_n_buckets(&cpprof__heap) - 1;
}

static void
buckets_differ_by_stack_and_size(void **state)
{
    struct cpprof__heap_bucket b;
    int i;

    (void)state;
    fresh_heap(1);
    for (i = 0; i < 10; i++) {
        /* One loop, not ten rounds: a call is to have one address. */
        __asm__ volatile("" : "+r"(i));
        allocate_here(0x100000 + (uintptr_t)i * 64, 64);
        allocate_here(0x200000 + (uintptr_t)i * 64, 300);
        allocate_there(0x300000 + (uintptr_t)i * 64, 64);
    }
    assert_int_equal(n_buckets(), 3);
    for (i = 1; i <= 3; i++) {
        assert_true(cpprof__heap_read_bucket(&cpprof__heap, (uint32_t)i, &b));
        assert_int_equal(b.n_sampled, 10);
        assert_int_equal(b.heap, 0);
        assert_int_equal(b.labels, 0);
    }
    assert_false(cpprof__heap_read_bucket(&cpprof__heap, 0, &b));
    assert_false(cpprof__heap_read_bucket(&cpprof__heap, 4, &b));
}

/* The walk begins in the fixture's function: nothing of the core is in it. */
static void
stack_begins_where_the_program_allocates(void **state)
{
    struct cpprof__tree_node nodes[4];
    struct cpprof__heap_bucket b;

    (void)state;
    fresh_heap(1);
    allocate_here(0x100000, 64);
    assert_true(cpprof__heap_read_bucket(&cpprof__heap, 1, &b));
    assert_int_equal(cpprof__tree_stack(&heap_tree, b.stack, nodes, 4), 4);
    assert_in_range(nodes[0].pc, (uintptr_t)allocated,
                    (uintptr_t)allocated + 256);
    assert_in_range(nodes[1].pc, (uintptr_t)allocate_here,
                    (uintptr_t)allocate_here + 256);
}

static void
labels_tell_buckets_apart_when_asked_for(void **state)
{
    static struct cpprof__label_set sets[2] = {{1, 3, 1, "one"},
                                               {1, 3, 2, "two"}};
    struct cpprof__heap_bucket b;
    int i;

    (void)state;
    fresh_heap(1);
    for (i = 0; i < 4; i++) {
        /* One loop, not two made of it: the call is to have one address. */
        __asm__ volatile("" : "+r"(i));
        cpprof__wants_labels = i >= 2;
        cpprof__self.labels = &sets[i % 2];
        allocate_here(0x100000 + (uintptr_t)i * 64, 64);
    }
    assert_int_equal(n_buckets(), 3);
    assert_true(cpprof__heap_read_bucket(&cpprof__heap, 1, &b));
    assert_int_equal(b.n_sampled, 2);
    assert_int_equal(b.labels, 0);
    for (i = 0; i < 2; i++) {
        assert_true(
            cpprof__heap_read_bucket(&cpprof__heap, (uint32_t)i + 2, &b));
        assert_int_equal(b.labels,
                         cpprof__label_set_number(&heap_tree, &sets[i]));
    }
    cpprof__wants_labels = 0;
    cpprof__self.labels = NULL;
}

static void
label_sets_without_room_have_the_number_of_lost_ones(void **state)
{
    static const struct cpprof__label_set set = {1, 3, 7, "one"};
    uint32_t number;

    (void)state;
    fresh_heap(1);
    number = cpprof__label_set_number(&heap_tree, &set);
    assert_int_not_equal(number, CPPROF__LABELS_LOST);
    fresh_heap(1);
    heap_tree.head->n_nodes = CPPROF__TREE_NODES;
    assert_int_equal(cpprof__label_set_number(&heap_tree, &set),
                     CPPROF__LABELS_LOST);
    assert_int_equal(cpprof__label_set_number(&heap_tree, NULL), 0);
}

static void
equal_label_sets_have_one_number(void **state)
{
    static struct cpprof__label_set a = {1, 3, 7, "one"};
    static struct cpprof__label_set b = {1, 3, 7, "one"};
    static struct cpprof__label_set c = {1, 3, 7, "two"}; /* same hash */
    uint32_t number;

    (void)state;
    fresh_heap(1);
    number = cpprof__label_set_number(&heap_tree, &a);
    assert_int_not_equal(number, 0);
    assert_int_equal(cpprof__label_set_number(&heap_tree, &b), number);
    assert_int_equal(b.refs, 1);
    assert_int_not_equal(cpprof__label_set_number(&heap_tree, &c), number);
}

static void
sets_of_any_length_are_read_as_they_were_written(void **state)
{
    char bytes[100], read[100];
    uint32_t n, number;

    (void)state;
    fresh_heap(1);
    for (n = 0; n < sizeof bytes; n++)
        bytes[n] = (char)(n * 37 % 5);
    for (n = 1; n <= sizeof bytes; n++) {
        const struct cpprof__label_set set = {1, n, 7, bytes};

        number = cpprof__label_set_number(&heap_tree, &set);
        assert_int_equal(cpprof__label_set_bytes(&heap_tree, number, NULL, 0),
                         n);
        assert_int_equal(
            cpprof__label_set_bytes(&heap_tree, number, read, sizeof read), n);
        assert_memory_equal(read, bytes, n);
    }
    /* A stack is none. */
    number = cpprof__tree_add(&heap_tree, (uintptr_t[]){0x1000}, 1);
    assert_int_equal(cpprof__label_set_bytes(&heap_tree, number, NULL, 0), 0);
    assert_int_equal(
        cpprof__label_set_bytes(&heap_tree, UINT32_MAX - 1, NULL, 0), 0);
}

static void
buckets_that_are_all_taken_lose_samples_and_count_them(void **state)
{
    struct cpprof__heap_key key = {1, 0, 1, 0};
    uint32_t i, n = 0;

    (void)state;
    fresh_heap(1);
    for (i = 0; i < CPPROF__HEAP_BUCKETS + 10; i++) {
        key.stack = i + 1;
        n += cpprof__heap_bucket_of(&cpprof__heap, &key) != 0;
    }
    assert_int_equal(n, CPPROF__HEAP_BUCKETS - 1);
    key.stack = 1;
    assert_int_equal(cpprof__heap_bucket_of(&cpprof__heap, &key), 1);
    allocate_here(0x100000, 100);
    assert_int_equal(cpprof__heap.head->n_lost, 1);
    assert_int_equal(cpprof__heap.head->lost_bytes, 100 * FRACTION);
    assert_int_equal(cpprof__heap.head->lost_objects, FRACTION);
    assert_false(freed(0x100000));
}

static uint64_t
peak_of(uint32_t bucket)
{
    uint64_t epoch = cpprof__heap.head->peaks[0].epoch;
    struct cpprof__heap_bucket b;
    struct cpprof__heap_sum sum;

    assert_true(cpprof__heap_read_bucket(&cpprof__heap, bucket, &b));
    cpprof__heap_at_peak(&b, epoch, &sum);
    return sum.bytes / FRACTION;
}

/* From one call: buckets differ by size only. */
static const struct step {
    uintptr_t address;
    size_t n;        /* 0: freed */
    uint64_t peak_1; /* of the buckets, after it */
    uint64_t peak_2;
    bool lasts;
} steps[] = {
    {0x1000, 1000, 1000, 0, true},
    {0x2000, 5000, 1000, 5000, true}, /* 6000 */
    {0x2000, 0, 1000, 5000, false},
    {0x3000, 1000, 1000, 5000, false},
    {0x4000, 5000, 2000, 5000, true}, /* 7000 */
    {0x1000, 0, 2000, 5000, false},
    {0x3000, 0, 2000, 5000, false},
    {0x5000, 5000, 0, 10000, true}, /* 10000 */
    {0x5000, 0, 0, 10000, false},
    {0x4000, 0, 0, 10000, false},
};

static void
peak_is_that_of_all_buckets_at_one_moment(void **state)
{
    const struct cpprof__heap_peak *p;
    unsigned i;

    (void)state;
    fresh_heap(1);
    p = &cpprof__heap.head->peaks[0];
    for (i = 0; i < sizeof steps / sizeof *steps; i++) {
        const struct step *step = &steps[i];

        if (step->n)
            allocate_here(step->address, step->n);
        else
            assert_true(freed(step->address));
        assert_int_equal(peak_of(1), step->peak_1);
        if (i > 0)
            assert_int_equal(peak_of(2), step->peak_2);
        assert_int_equal(p->time_ns == 0, step->lasts);
    }
    assert_int_equal(p->peak_bytes, 10000 * FRACTION);
    assert_int_equal(p->now_bytes, 0);
}

static void
heaps_have_peaks_of_their_own(void **state)
{
    (void)state;
    fresh_heap(1);
    allocated(0x1000, 1000);
    assert_true(cpprof__heap_due(77));
    cpprof__heap_sample((void *)0x1000, 77, 5);
    assert_int_equal(cpprof__heap.head->peaks[0].peak_bytes, 1000 * FRACTION);
    assert_int_equal(cpprof__heap.head->peaks[5].peak_bytes, 77 * FRACTION);
}

/* A copy as another process may have written it. */
static void
reading_bytes_of_any_kind_ends_within_bounds(void **state)
{
    size_t n = cpprof__heap_bytes();
    struct cpprof__heap heap = {0};
    struct cpprof__heap_sum sum;
    uint64_t random = 1;
    uint8_t *bytes;
    size_t i;

    (void)state;
    fresh_heap(1);
    bytes = fresh_pages(n);
    memcpy(bytes, cpprof__heap.head, 4096);
    cpprof__heap_lay_out(&heap, bytes);
    for (i = 8; i < 4 << 20; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (uint8_t)(random >> 56);
    }
    for (i = 0; i < 1 << 20; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        ((uint8_t *)heap.buckets)[i] = (uint8_t)(random >> 56);
    }
    heap.head->n_blocks = heap.head->n_buckets = UINT32_MAX;
    assert_int_equal(cpprof__heap_n_blocks(&heap), CPPROF__HEAP_LIVE);
    assert_int_equal(cpprof__heap_n_buckets(&heap), CPPROF__HEAP_BUCKETS);
    sum = in_use(&heap);
    assert_in_range(sum.n_sampled, 1, CPPROF__HEAP_LIVE);
    ever_allocated(&heap);
    munmap(bytes, n);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_classes_are_eighths_of_powers_of_two),
        cmocka_unit_test(buckets_differ_by_stack_and_size),
        cmocka_unit_test(stack_begins_where_the_program_allocates),
        cmocka_unit_test(labels_tell_buckets_apart_when_asked_for),
        cmocka_unit_test(equal_label_sets_have_one_number),
        cmocka_unit_test(sets_of_any_length_are_read_as_they_were_written),
        cmocka_unit_test(label_sets_without_room_have_the_number_of_lost_ones),
        cmocka_unit_test(
            buckets_that_are_all_taken_lose_samples_and_count_them),
        cmocka_unit_test(peak_is_that_of_all_buckets_at_one_moment),
        cmocka_unit_test(heaps_have_peaks_of_their_own),
        cmocka_unit_test(reading_bytes_of_any_kind_ends_within_bounds),
    };

    cpprof__unwind_refresh_modules(); /* where libc cannot tell them */
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
