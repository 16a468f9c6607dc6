/* SPDX-License-Identifier: MIT */
/*
 * A file that was made to put all of its ids, or functions, into one slot of
 * a hash table: the tables stay sparse. And nothing that is written tells the
 * key of the hashes.
 */
#include "hash_fixture.h"
#include "pprof_fixture.h"
#include "profile/model/id_map.h"
#include "profile/model/make.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define N_IDS 20000

static const uint64_t keys[][2] = {
    {0x9e3779b97f4a7c15, 0xfedcba9876543211},
    {1, 1},
    {~0ull, 0x123456789abcdef},
};
#define N_KEYS (sizeof keys / sizeof *keys)

/* Without a key its two halves, folded, would be 4711, whatever i is. */
static uint64_t
chosen_id(uint64_t i)
{
    return unmix((i + 1) << 32 | ((i + 1) ^ 4711));
}

static void
ids_chosen_to_fall_together_do_not(void **state)
{
    uint64_t *ids = malloc(N_IDS * sizeof *ids);
    struct cpprof__id_map map;
    size_t i;

    assert_non_null(ids);
    for (i = 0; i < N_IDS; i++)
        ids[i] = chosen_id(i);
    cpprof__hash_key_make();
    assert_true(cpprof__id_map_make(&map, ids, N_IDS, sizeof *ids));
    assert_in_range(map.sparse.index.n, N_IDS - 10, N_IDS);
    assert_true(probes(&map.sparse.index) < 3);
    for (i = 0; i < N_IDS; i += 97)
        assert_int_equal(cpprof__id_map_get(&map, ids[i]), i);
    cpprof__id_map_free(&map);
    free(ids);
}

/* As the addresses and lines of locations whose sum is always the same. */
static void
locations_chosen_to_fall_together_do_not(void **state)
{
    struct pprof_profile *p = cpprof__pprof_make();
    struct cpprof__maker m = {.p = p};
    uint32_t function;
    int i;

    assert_non_null(p);
    function = cpprof__make_function(&m, cpprof__make_text(&m, "f"), 0, 0);
    for (i = 0; i < N_IDS; i++)
        cpprof__make_location(&m, PPROF_NONE, (uint64_t)(N_IDS - i), function,
                              i);
    assert_false(m.failed);
    assert_int_equal(p->locations.n, N_IDS);
    assert_true(probes(&m.locations) < 3);
    cpprof__maker_free(&m);
    pprof_free(p);
}

static int
take(void *ctx, const void *data, size_t n)
{
    cpprof__buffer_append(ctx, data, n);
    return 0;
}

/* Functions and locations with chosen ids, read, merged and written. */
static void
merge_and_write(enum pprof_format format, struct cpprof__buffer *out)
{
    struct cpprof_writer writer = {sizeof writer, take, NULL, out};
    struct pprof_profile *p[2] = {NULL, NULL}, *merged = NULL;
    const int64_t values[2] = {1, 10};
    struct fixture f = {0};
    uint64_t i;

    fixture_cpu(&f);
    for (i = 0; i < 500; i++) {
        uint64_t id = chosen_id(i), stack[2] = {id, chosen_id(i / 2)};

        fixture_function(&f, id, i % 3 ? "f" : "g", i % 5 ? "" : "h", "");
        fixture_location(&f, id, 0, i, id);
        fixture_sample(&f, stack, 2, values, i % 7 ? "key=a" : "bytes=3kb");
    }
    fixture_strings(&f);
    for (i = 0; i < 2; i++)
        assert_int_equal(
            pprof_read_data(f.bytes.data, f.bytes.n, NULL, &p[i], NULL),
            CPPROF_OK);
    assert_int_equal(pprof_merge(p, 2, &merged, NULL), CPPROF_OK);
    assert_int_equal(pprof_write(merged, &writer, format, NULL, NULL),
                     CPPROF_OK);
    pprof_free(p[0]);
    pprof_free(p[1]);
    pprof_free(merged);
    fixture_free(&f);
}

static void
what_is_written_does_not_depend_on_the_key(void **state)
{
    int format;
    size_t i;

    for (format = PPROF_FORMAT_GZIP; format <= PPROF_FORMAT_PERF_SCRIPT;
         format++) {
        struct cpprof__buffer first = {0};

        cpprof__hash_key_make();
        merge_and_write((enum pprof_format)format, &first);
        assert_true(first.n > 10);
        for (i = 0; i < N_KEYS; i++) {
            struct cpprof__buffer again = {0};

            set_key(keys[i]);
            merge_and_write((enum pprof_format)format, &again);
            assert_int_equal(again.n, first.n);
            assert_memory_equal(again.data, first.data, first.n);
            cpprof__buffer_free(&again);
        }
        cpprof__buffer_free(&first);
    }
    cpprof__hash_key_make();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_chosen_to_fall_together_do_not),
        cmocka_unit_test(locations_chosen_to_fall_together_do_not),
        cmocka_unit_test(what_is_written_does_not_depend_on_the_key),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
