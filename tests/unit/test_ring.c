/* SPDX-License-Identifier: MIT */
/* The properties of Go's TestProfBuf, as far as this ring has them. */
#include "collect/signal/sample/ring.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WORDS 64u

static struct cpprof__ring_record record;

static struct cpprof__ring *
make_ring(uint64_t n_words)
{
    struct cpprof__ring *ring = calloc(1, cpprof__ring_bytes(n_words));

    assert_non_null(ring);
    cpprof__ring_init(ring, n_words);
    return ring;
}

/* n pcs k, k + 1, ...; the label is k as well. */
static bool
push(struct cpprof__ring *ring, uintptr_t k, size_t n)
{
    const struct cpprof__ring_head head = {(uint32_t)k, 3, (int32_t)k + 7, k};
    uintptr_t pcs[WORDS];
    size_t i;

    for (i = 0; i < n; i++)
        pcs[i] = k + i;
    return cpprof__ring_push(ring, &head, pcs, n);
}

static void
expect(struct cpprof__ring *ring, uintptr_t k, size_t n)
{
    size_t i;

    assert_true(cpprof__ring_pop(ring, &record));
    assert_int_equal(record.head.weight, k);
    assert_int_equal(record.head.labels, k);
    assert_int_equal(record.head.flags, 3);
    assert_int_equal(record.head.tid, k + 7);
    assert_int_equal(record.n_pcs, n);
    for (i = 0; i < n; i++)
        assert_int_equal(record.pcs[i], k + i);
}

static void
empty_ring_gives_nothing(void **state)
{
    struct cpprof__ring *ring = make_ring(WORDS);

    (void)state;
    assert_false(cpprof__ring_pop(ring, &record));
    free(ring);
}

static void
records_come_out_in_order(void **state)
{
    struct cpprof__ring *ring = make_ring(WORDS);

    (void)state;
    assert_true(push(ring, 1, 5));
    assert_true(push(ring, 2, 0));
    assert_true(push(ring, 3, 9));
    expect(ring, 1, 5);
    expect(ring, 2, 0);
    expect(ring, 3, 9);
    assert_false(cpprof__ring_pop(ring, &record));
    free(ring);
}

static void
records_wrap_around_the_end(void **state)
{
    struct cpprof__ring *ring = make_ring(WORDS);
    uintptr_t k;

    (void)state;
    for (k = 1; k < 1000; k++) {
        assert_true(push(ring, k, k % 23));
        assert_true(push(ring, k + 5000, 7));
        expect(ring, k, k % 23);
        expect(ring, k + 5000, 7);
    }
    free(ring);
}

static void
full_ring_counts_what_is_lost_and_goes_on(void **state)
{
    struct cpprof__ring *ring = make_ring(WORDS);

    (void)state;
    assert_true(push(ring, 1, 29));
    assert_true(push(ring, 2, 29)); /* 64 words: full to the last */
    assert_false(push(ring, 7, 0));
    assert_false(push(ring, 9, 3));
    assert_int_equal(ring->lost, 16);
    expect(ring, 1, 29);
    assert_true(push(ring, 4, 29));
    expect(ring, 2, 29);
    expect(ring, 4, 29);
    assert_int_equal(ring->lost, 16);
    free(ring);
}

static void
record_larger_than_the_ring_is_lost(void **state)
{
    struct cpprof__ring *ring = make_ring(16);

    (void)state;
    assert_false(push(ring, 2, 14));
    assert_int_equal(ring->lost, 2);
    assert_true(push(ring, 3, 13));
    expect(ring, 3, 13);
    free(ring);
}

/* A process that is killed leaves a reserved record without a first word. */
static void
record_in_the_making_ends_the_reading(void **state)
{
    struct cpprof__ring *ring = make_ring(WORDS);

    (void)state;
    assert_true(push(ring, 1, 2));
    assert_true(push(ring, 2, 2));
    ring->words[CPPROF__RING_HEAD_WORDS + 2] =
        0; /* the second was never committed */
    expect(ring, 1, 2);
    assert_false(cpprof__ring_pop(ring, &record));
    free(ring);
}

static void
hostile_ring_neither_crashes_nor_goes_on_for_ever(void **state)
{
    struct cpprof__ring *ring = make_ring(WORDS);
    size_t n = 0;

    (void)state;
    memset(ring->words, 0xff, WORDS * sizeof *ring->words);
    ring->head = 12345;
    ring->tail = 77;
    while (cpprof__ring_pop(ring, &record))
        assert_true(++n <= WORDS);
    ring->words[ring->tail & ring->mask] = 1ull << 32;
    while (cpprof__ring_pop(ring, &record))
        assert_true(++n <= WORDS);
    free(ring);
}

#define PRODUCERS 4
#define EACH      20000

static void *
produce(void *arg)
{
    struct cpprof__ring *ring = arg;
    uintptr_t k;

    for (k = 1; k <= EACH; k++)
        push(ring, k, k % 13);
    return NULL;
}

/* Everything pushed is either read, whole, or counted as lost. */
static void
many_writers_and_one_reader_lose_nothing_uncounted(void **state)
{
    struct cpprof__ring *ring = make_ring(1024);
    uint64_t sum = 0, expected = 0;
    pthread_t threads[PRODUCERS];
    int running = PRODUCERS;
    uintptr_t k;
    int i;

    (void)state;
    for (i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, produce, ring), 0);
    while (running) {
        while (cpprof__ring_pop(ring, &record)) {
            size_t j;

            assert_int_equal(record.n_pcs, record.head.weight % 13);
            for (j = 0; j < record.n_pcs; j++)
                assert_int_equal(record.pcs[j], record.head.weight + j);
            sum += record.head.weight;
        }
        if (pthread_tryjoin_np(threads[running - 1], NULL) == 0)
            running--;
    }
    while (cpprof__ring_pop(ring, &record))
        sum += record.head.weight;
    for (k = 1; k <= EACH; k++)
        expected += k * PRODUCERS;
    assert_int_equal(sum + ring->lost, expected);
    free(ring);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_ring_gives_nothing),
        cmocka_unit_test(records_come_out_in_order),
        cmocka_unit_test(records_wrap_around_the_end),
        cmocka_unit_test(full_ring_counts_what_is_lost_and_goes_on),
        cmocka_unit_test(record_larger_than_the_ring_is_lost),
        cmocka_unit_test(record_in_the_making_ends_the_reading),
        cmocka_unit_test(hostile_ring_neither_crashes_nor_goes_on_for_ever),
        cmocka_unit_test(many_writers_and_one_reader_lose_nothing_uncounted),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
