/* SPDX-License-Identifier: MIT */
/*
 * The index and the keyed hash: what collides, and what must not.
 */
#include "hash_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_KEYS 100000

struct keys {
    const uint64_t *all;
    uint64_t wanted;
};

static bool
equal(void *ctx, uint32_t value)
{
    const struct keys *keys = ctx;

    return keys->all[value] == keys->wanted;
}

/* Add keys 0, 1, ... under hash(key), then look all of them up. */
static void
check_all_found(uint64_t (*hash)(uint64_t key), uint32_t n)
{
    struct cpprof__index index = {0};
    uint64_t *all = calloc(n, sizeof *all);
    struct keys keys = {all, 0};
    uint32_t i;

    assert_non_null(all);
    for (i = 0; i < n; i++) {
        all[i] = 7ull * i;
        keys.wanted = all[i];
        assert_int_equal(cpprof__index_find(&index, hash(all[i]), equal, &keys),
                         CPPROF__INDEX_NONE);
        assert_true(cpprof__index_add(&index, hash(all[i]), i));
    }
    assert_int_equal(index.n, n);
    assert_true(index.n <= index.capacity / 4 * 3);
    for (i = 0; i < n; i++) {
        keys.wanted = all[i];
        assert_int_equal(cpprof__index_find(&index, hash(all[i]), equal, &keys),
                         i);
    }
    cpprof__index_free(&index);
    free(all);
}

static uint64_t
keyed(uint64_t x)
{
    return cpprof__hash_u64(x);
}

static uint64_t
same_for_all(uint64_t key)
{
    (void)key;
    return 42;
}

static void
index_finds_what_was_added_and_nothing_else(void **state)
{
    (void)state;
    check_all_found(keyed, N_KEYS);
}

static void
index_survives_hashes_that_are_all_the_same(void **state)
{
    (void)state;
    check_all_found(same_for_all, 500);
}

static void
empty_index_finds_nothing(void **state)
{
    struct cpprof__index index = {0};
    uint64_t key = 0;
    struct keys keys = {&key, 0};

    (void)state;
    assert_int_equal(cpprof__index_find(&index, 0, equal, &keys),
                     CPPROF__INDEX_NONE);
    cpprof__index_free(&index);
}

static void
hash_depends_on_every_byte_and_on_the_length(void **state)
{
    unsigned char data[64] = {0};
    size_t n, i;

    (void)state;
    for (n = 1; n <= sizeof data; n++) {
        uint64_t h = cpprof__hash_bytes(data, n, 1);

        assert_true(h == cpprof__hash_bytes(data, n, 1));
        assert_true(h != cpprof__hash_bytes(data, n - 1, 1));
        assert_true(h != cpprof__hash_bytes(data, n, 2));
        for (i = 0; i < n; i++) {
            data[i] = 1;
            assert_true(h != cpprof__hash_bytes(data, n, 1));
            data[i] = 0;
        }
    }
    assert_true(cpprof__hash_bytes(NULL, 0, 1) == cpprof__hash_bytes("", 0, 1));
}

/* Keys that are neither random nor known to be good. */
static const uint64_t some_keys[][2] = {
    {1, 1},
    {~0ull, ~0ull},
    {0x123456789abcdef, 0xfedcba9876543211},
    {1ull << 32, 1ull << 63 | 1},
};

static void
key_is_made_once_and_is_the_same_for_every_caller(void **state)
{
    uint64_t zero[2] = {0, 0}, key[2];

    (void)state;
    set_key(zero);
    assert_true(cpprof__hash_u64(1) != cpprof__hash_u64(2));
    memcpy(key, cpprof__hash_key, sizeof key);
    assert_true(key[0] % 2 == 1 && key[1] % 2 == 1);
    set_key(zero);
    cpprof__hash_key_make();
    assert_memory_equal(key, cpprof__hash_key, sizeof key);
}

static void
hashes_depend_on_the_key(void **state)
{
    uint64_t before[3], after[3];
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        uint64_t *out = i ? after : before;

        set_key(some_keys[2 + i]);
        out[0] = cpprof__hash_u64(7);
        out[1] = cpprof__hash_add(7, 8);
        out[2] = cpprof__hash_bytes("seven", 5, 0);
    }
    for (i = 0; i < 3; i++)
        assert_true(before[i] != after[i]);
    cpprof__hash_key_make();
}

/* The largest of n_places counts, of n_each expected. */
static unsigned
crowd(unsigned n_slots, unsigned n_each, uint64_t step)
{
    unsigned *count = calloc(n_slots, sizeof *count);
    unsigned i, most = 0;

    assert_non_null(count);
    for (i = 0; i < n_slots * n_each; i++)
        count[cpprof__hash_u64(0x400000 + step * i) % n_slots]++;
    for (i = 0; i < n_slots; i++)
        most = count[i] > most ? count[i] : most;
    free(count);
    return most;
}

static void
hashes_of_neighbours_spread_over_a_table(void **state)
{
    static const uint64_t steps[] = {1, 4, 16, 4096, 1ull << 32};
    unsigned key, step;

    (void)state;
    for (key = 0; key < 50; key++) {
        uint64_t words[2] = {cpprof__mix_u64(2 * key + 1) | 1,
                             cpprof__mix_u64(2 * key + 2) | 1};

        set_key(words);
        /* 64 expected, standard deviation 8. */
        for (step = 0; step < sizeof steps / sizeof *steps; step++)
            assert_in_range(crowd(1024, 64, steps[step]), 64, 128);
    }
    cpprof__hash_key_make();
}

#define N_CHOSEN 10000

/* Number i of those that the unkeyed hash puts in one slot of an index. */
static uint64_t
chosen(uint64_t i)
{
    return unmix(i << 32 | (i ^ 4711));
}

static double
probes_of_chosen(uint64_t (*hash)(uint64_t x))
{
    struct cpprof__index index = {0};
    double found;
    uint32_t i;

    for (i = 0; i < N_CHOSEN; i++)
        assert_true(cpprof__index_add(&index, hash(chosen(i)), i));
    found = probes(&index);
    cpprof__index_free(&index);
    return found;
}

static uint64_t
mix(uint64_t x)
{
    return cpprof__mix_u64(x);
}

/* As a text of two words, and as two numbers of a record. */
static uint64_t
keyed_text(uint64_t x)
{
    uint64_t words[2] = {x, ~x};

    return cpprof__hash_bytes(words, sizeof words, 0);
}

static uint64_t
keyed_record(uint64_t x)
{
    /* Equal sums. */
    return cpprof__hash_u64(cpprof__hash_add(x, 4711 - x));
}

static void
numbers_chosen_to_fall_together_do_not(void **state)
{
    uint64_t (*const hashes[])(uint64_t) = {keyed, keyed_text, keyed_record};
    size_t key, i;

    (void)state;
    assert_true(unmix(cpprof__mix_u64(0x12345)) == 0x12345);
    /* Half of all: the attack is one. */
    assert_true(probes_of_chosen(mix) > N_CHOSEN / 4);
    for (key = 0; key < 3; key++) {
        cpprof__hash_key_make();
        if (key)
            set_key(some_keys[key + 1]);
        for (i = 0; i < sizeof hashes / sizeof *hashes; i++)
            /* 1.0 is expected at 3/4 full, half of that on average. */
            assert_true(probes_of_chosen(hashes[i]) < 3);
    }
    cpprof__hash_key_make();
}

static void
table_numbers_entries_by_their_keys(void **state)
{
    struct {
        uint32_t key[2];
        uint64_t value;
    } entry, *all;
    struct cpprof__table table = {0};
    uint32_t i;
    bool added;

    (void)state;
    for (i = 0; i < 2000; i++) {
        entry.key[0] = i % 1000;
        entry.key[1] = ~i % 1000;
        entry.value = i;
        assert_int_equal(cpprof__table_add(&table, &entry, sizeof entry.key,
                                           sizeof entry, &added),
                         i % 1000);
        assert_int_equal(added, i < 1000);
    }
    entry.key[0] = 1000;
    assert_int_equal(
        cpprof__table_find(&table, &entry, sizeof entry.key, sizeof entry),
        CPPROF__INDEX_NONE);
    entry.key[0] = 999;
    assert_int_equal(
        cpprof__table_find(&table, &entry, sizeof entry.key, sizeof entry),
        999);
    all = (void *)table.entries.data;
    assert_int_equal(all[999].value, 999);
    cpprof__table_free(&table);
    assert_int_equal(
        cpprof__table_find(&table, &entry, sizeof entry.key, sizeof entry),
        CPPROF__INDEX_NONE);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_finds_what_was_added_and_nothing_else),
        cmocka_unit_test(index_survives_hashes_that_are_all_the_same),
        cmocka_unit_test(empty_index_finds_nothing),
        cmocka_unit_test(table_numbers_entries_by_their_keys),
        cmocka_unit_test(hash_depends_on_every_byte_and_on_the_length),
        cmocka_unit_test(key_is_made_once_and_is_the_same_for_every_caller),
        cmocka_unit_test(hashes_depend_on_the_key),
        cmocka_unit_test(hashes_of_neighbours_spread_over_a_table),
        cmocka_unit_test(numbers_chosen_to_fall_together_do_not),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
