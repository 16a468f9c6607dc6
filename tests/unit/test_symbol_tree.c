/* SPDX-License-Identifier: MIT */
/* The trees that libdw has in place of libc's: what is found in them is what
 * libc finds, whatever order keys come in, and all of it is freed. */
#include "symbol/elf/tree.h"

#include <search.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define N 20000

static unsigned long n_compared;

static int
compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    n_compared++;
    return x < y ? -1 : x > y;
}

static unsigned n_freed;

static void
count_free(void *key)
{
    assert_non_null(key);
    n_freed++;
}

/* Keys in an order; some come twice, in other objects. */
static void
check(uint32_t (*key_of)(uint32_t i))
{
    static uint32_t keys[N], others[2 * N];
    void *ours = NULL, *theirs = NULL, *mine;
    unsigned n_distinct = 0;
    uint32_t i;

    for (i = 0; i < N; i++) {
        keys[i] = key_of(i);
        mine = cpprof__tree_search(&keys[i], &ours, compare);
        assert_non_null(mine);
        assert_ptr_equal(*(void **)mine,
                         *(void **)tsearch(&keys[i], &theirs, compare));
        n_distinct += *(uint32_t **)mine == &keys[i];
    }
    n_compared = 0;
    for (i = 0; i < 2 * N; i++) {
        void *found;

        others[i] = i;
        found = cpprof__tree_find(&others[i], &ours, compare);
        mine = tfind(&others[i], &theirs, compare);
        assert_int_equal(found != NULL, mine != NULL);
        if (found)
            assert_ptr_equal(*(void **)found, *(void **)mine);
    }
    assert_true(n_compared < 2ul * N * 80); /* both; a list takes 10 000 each */
    n_freed = 0;
    cpprof__tree_destroy(ours, count_free);
    assert_int_equal(n_freed, n_distinct);
    tdestroy(theirs, count_free);
}

static uint32_t
rising(uint32_t i)
{
    return i;
}

static uint32_t
falling(uint32_t i)
{
    return N - i;
}

static uint32_t
mixed(uint32_t i)
{
    return i * 2654435761u % (N / 2);
}

static void
rising_keys_are_found(void **state)
{
    check(rising);
}

static void
falling_keys_are_found(void **state)
{
    check(falling);
}

static void
keys_that_come_twice_are_found_once(void **state)
{
    check(mixed);
}

static void
nothing_is_found_in_no_tree(void **state)
{
    void *root = NULL;
    uint32_t key = 1;

    assert_null(cpprof__tree_find(&key, &root, compare));
    assert_null(cpprof__tree_find(&key, NULL, compare));
    assert_null(cpprof__tree_search(&key, NULL, compare));
    cpprof__tree_destroy(NULL, count_free);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(rising_keys_are_found),
        cmocka_unit_test(falling_keys_are_found),
        cmocka_unit_test(keys_that_come_twice_are_found_once),
        cmocka_unit_test(nothing_is_found_in_no_tree),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
