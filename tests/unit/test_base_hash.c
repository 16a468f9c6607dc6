/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

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
same_for_all(uint64_t key)
{
    (void)key;
    return 42;
}

static void
index_finds_what_was_added_and_nothing_else(void **state)
{
    (void)state;
    check_all_found(cpprof__hash_u64, N_KEYS);
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

static void
hashes_of_neighbours_spread_over_a_table(void **state)
{
    enum { n_places = 1024, n_each = 64 };
    unsigned count[n_places] = {0};
    unsigned i, most = 0;

    (void)state;
    for (i = 0; i < n_places * n_each; i++)
        count[cpprof__hash_u64(0x400000 + 16ull * i) % n_places]++;
    for (i = 0; i < n_places; i++)
        most = count[i] > most ? count[i] : most;
    /* 64 expected, standard deviation 8. */
    assert_in_range(most, n_each, 2 * n_each);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_finds_what_was_added_and_nothing_else),
        cmocka_unit_test(index_survives_hashes_that_are_all_the_same),
        cmocka_unit_test(empty_index_finds_nothing),
        cmocka_unit_test(hash_depends_on_every_byte_and_on_the_length),
        cmocka_unit_test(hashes_of_neighbours_spread_over_a_table),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
