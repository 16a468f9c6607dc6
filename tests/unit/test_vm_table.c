/* SPDX-License-Identifier: MIT */
/* Numbers of functions and locations (vm/profile/table.h), and the records'
 * queue. */
#include "vm/profile/queue.h"
#include "vm/profile/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const int vms[2], functions[3];

static struct cpprof__vm_function_key
function(int vm, int i)
{
    return (struct cpprof__vm_function_key){&vms[vm], &functions[i]};
}

static bool
add(struct cpprof__table *table, const void *key, size_t n_key)
{
    bool added;

    return cpprof__table_add(table, key, n_key, n_key, &added) !=
               CPPROF__VM_NONE &&
           added;
}

static uint32_t
add_function(struct cpprof__vm_table *table, int vm, int i)
{
    const struct cpprof__vm_function_key key = function(vm, i);

    assert_true(add(&table->functions, &key, sizeof key));
    return cpprof__table_find(&table->functions, &key, sizeof key, sizeof key);
}

static void
numbers_are_dense_and_in_order(void **state)
{
    struct cpprof__vm_table table = {0};
    const struct cpprof__vm_function_key unknown = function(1, 2);

    assert_int_equal(add_function(&table, 0, 0), 0);
    assert_int_equal(add_function(&table, 0, 1), 1);
    assert_int_equal(add_function(&table, 1, 0), 2);
    assert_int_equal(cpprof__table_find(&table.functions, &unknown,
                                        sizeof unknown, sizeof unknown),
                     CPPROF__VM_NONE);
    cpprof__vm_table_clear(&table);
}

static void
function_that_is_gone_gets_another_number(void **state)
{
    struct cpprof__vm_table table = {0};
    const struct cpprof__vm_function_key key = function(0, 0);

    add_function(&table, 0, 0);
    cpprof__vm_table_gone(&table, &key);
    assert_int_equal(
        cpprof__table_find(&table.functions, &key, sizeof key, sizeof key),
        CPPROF__VM_NONE);
    assert_int_equal(add_function(&table, 0, 0), 1);
    cpprof__vm_table_gone(&table, &key);
    cpprof__vm_table_gone(&table, &key);
    cpprof__vm_table_clear(&table);
}

/* Where arithmetic on addresses would fall together. */
static void
locations_differ_by_function_pc_and_line(void **state)
{
    static const struct cpprof__vm_location_key keys[] = {
        {0, 0, 1},       {0, 1, 1},      {1, 0, 1}, {0, 0, -1},
        {0, 0, 0},       {1, 65536, 1},  {2, 0, 1}, {0, 0x80000000u, 1},
        {0x10000, 0, 1}, {0, 0x10000, 1}};
    struct cpprof__vm_table table = {0};
    uint32_t i;

    for (i = 0; i < sizeof keys / sizeof *keys; i++) {
        assert_int_equal(cpprof__table_find(&table.locations, &keys[i],
                                            sizeof keys[i], sizeof keys[i]),
                         CPPROF__VM_NONE);
        assert_true(add(&table.locations, &keys[i], sizeof keys[i]));
    }
    for (i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_int_equal(cpprof__table_find(&table.locations, &keys[i],
                                            sizeof keys[i], sizeof keys[i]),
                         i);
    cpprof__vm_table_clear(&table);
}

static void
table_is_full_at_its_bound(void **state)
{
    struct cpprof__vm_table table = {0};
    struct cpprof__vm_location_key key = {0};

    for (key.pc = 0; key.pc < CPPROF__VM_LOCATIONS_MAX; key.pc++) {
        assert_false(cpprof__vm_table_is_full(&table));
        assert_true(add(&table.locations, &key, sizeof key));
    }
    assert_true(cpprof__vm_table_is_full(&table));
    cpprof__vm_table_clear(&table);
    assert_false(cpprof__vm_table_is_full(&table));
    assert_int_equal(table.generation, 1);
}

static void
full_queue_takes_no_more_until_it_is_taken(void **state)
{
    struct cpprof__vm_queue queue;
    size_t n = 0, taken;

    assert_true(cpprof__vm_queue_make(&queue));
    while (cpprof__vm_queue_add(&queue, CPPROF__VM_RECORD_SAMPLE, 1001))
        n++;
    assert_int_equal(n, CPPROF__VM_QUEUE_BYTES / 1008);
    assert_non_null(cpprof__vm_queue_take(&queue, &taken));
    assert_int_equal(taken, n * 1008);
    assert_non_null(
        cpprof__vm_queue_add(&queue, CPPROF__VM_RECORD_SAMPLE, 1001));
    cpprof__vm_queue_free(&queue);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_dense_and_in_order),
        cmocka_unit_test(function_that_is_gone_gets_another_number),
        cmocka_unit_test(locations_differ_by_function_pc_and_line),
        cmocka_unit_test(table_is_full_at_its_bound),
        cmocka_unit_test(full_queue_takes_no_more_until_it_is_taken),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
