/* SPDX-License-Identifier: MIT */
/*
 * The cache of rows: what is stored is found, forgotten rows are not, and
 * threads that write the same slots at once never see half of a row. Under
 * ThreadSanitizer this is also the proof that nothing in it is a data race.
 */
#include "collect/signal/unwind/row_cache.h"
#include "collect/signal/unwind/unwind.h"

#if defined __x86_64__
#include "trap_flag.h"
#endif

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* The row that these tests store for ra: every field tells which it is. */
static struct cpprof__unwind_row
row_of(uint64_t ra, uint32_t salt)
{
    uint32_t mixed = (uint32_t)(ra * 2654435761u) ^ salt;

    return (struct cpprof__unwind_row){mixed, (int32_t)(mixed + 1),
                                       (int32_t)(mixed ^ 0x55555555u),
                                       (int32_t)(mixed * 7)};
}

static bool
same(const struct cpprof__unwind_row *a, const struct cpprof__unwind_row *b)
{
    return a->how == b->how && a->cfa_off == b->cfa_off &&
           a->ra_off == b->ra_off && a->fp_off == b->fp_off;
}

static bool
finds(uint64_t ra, struct cpprof__unwind_row *row)
{
    struct cpprof__packed_row words;

    if (!cpprof__row_find(ra, load_acquire(&cpprof__row_generation), &words))
        return false;
    *row = cpprof__row_unpack(words);
    return true;
}

static void
store(uint64_t ra, uint32_t salt)
{
    struct cpprof__unwind_row row = row_of(ra, salt);

    cpprof__row_store(ra, load_acquire(&cpprof__row_generation), &row);
}

static void
packed_row_unpacks_to_itself(void **state)
{
    static const struct cpprof__unwind_row rows[] = {
        {0, 0, 0, 0},
        {UINT32_MAX, -1, -1, -1},
        {3, INT32_MIN, INT32_MAX, INT32_MIN},
        {1, 8, -8, 16}};
    size_t i;

    (void)state;
    for (i = 0; i < 4; i++) {
        struct cpprof__unwind_row row =
            cpprof__row_unpack(cpprof__row_pack(&rows[i]));

        assert_true(same(&row, &rows[i]));
    }
}

static void
stored_row_is_found_until_forgotten(void **state)
{
    struct cpprof__unwind_row row;
    struct cpprof__unwind_row want = row_of(0x7f0012345678, 1);

    (void)state;
    assert_false(finds(0x7f0012345678, &row));
    store(0x7f0012345678, 1);
    assert_true(finds(0x7f0012345678, &row));
    assert_true(same(&row, &want));
    assert_false(finds(0x7f0012345679, &row));
    cpprof__unwind_forget();
    assert_false(finds(0x7f0012345678, &row));
}

/* A walk under way stores by the generation that it began with. */
static void
row_of_an_older_generation_is_not_found(void **state)
{
    uint32_t before = load_acquire(&cpprof__row_generation);
    struct cpprof__unwind_row row = row_of(1000, 0);

    (void)state;
    cpprof__unwind_forget();
    cpprof__row_store(1000, before, &row);
    assert_false(finds(1000, &row));
}

static void
pair_holds_two_rows_and_replaces_in_turn(void **state)
{
    const uint64_t step = (uint64_t)CPPROF__ROW_PAIRS << 8; /* the same pair */
    struct cpprof__unwind_row row;
    uint64_t i;

    (void)state;
    cpprof__unwind_forget();
    assert_ptr_equal(cpprof__row_pair(64), cpprof__row_pair(64 + step));
    for (i = 0; i < 10; i++) {
        store(64 + i * step, 0);
        assert_true(finds(64 + i * step, &row));
        if (i > 0)
            assert_true(finds(64 + (i - 1) * step, &row));
        if (i > 1)
            assert_false(finds(64 + (i - 2) * step, &row));
    }
    store(64 + 9 * step, 5); /* again: takes its own place */
    assert_true(finds(64 + 9 * step, &row));
    assert_true(finds(64 + 8 * step, &row));
}

/* Return addresses of a large program spread over the table. */
static void
aligned_code_spreads_over_the_table(void **state)
{
    static uint8_t used[CPPROF__ROW_PAIRS];
    size_t n_used = 0;
    size_t i;

    (void)state;
    for (i = 0; i < CPPROF__ROW_PAIRS; i++) {
        size_t at = (size_t)(cpprof__row_pair(0x400005 + 16 * i) -
                             &cpprof__rows[0][0]) /
                    2;

        n_used += used[at] == 0;
        used[at] = 1;
    }
    assert_int_equal(n_used, CPPROF__ROW_PAIRS);
}

/* A slot that a writer is in, or died in. */
static void
slot_that_is_being_written_is_not_used(void **state)
{
    struct cpprof__row_slot *pair = cpprof__row_pair(64);
    struct cpprof__unwind_row row;

    (void)state;
    cpprof__unwind_forget();
    store(64, 0);
    assert_true(finds(64, &row));
    pair[0].version |= 1;
    assert_false(finds(64, &row));
    store(64, 0); /* does not wait, and does not write there */
    assert_true(pair[0].version & 1);
    pair[0].version &= ~(uint64_t)1;
    assert_true(finds(64, &row));
}

#if defined __x86_64__ && !defined __SANITIZE_THREAD__
/*
 * A reader that is interrupted, once at each of its instructions, by a writer
 * that replaces the row: it finds the old row, the new one or none.
 */
static volatile unsigned n_steps;
static volatile unsigned write_at;

static void
on_step(int signal)
{
    (void)signal;
    if (++n_steps == write_at)
        store(64, 1);
}

static __attribute__((noinline)) bool
find_interrupted(unsigned at, struct cpprof__unwind_row *row)
{
    bool found;

    n_steps = 0;
    write_at = at;
    trap_flag_on();
    found = finds(64, row);
    trap_flag_off();
    return found;
}

static void
interrupted_reader_never_finds_half_a_row(void **state)
{
    struct sigaction action = {.sa_handler = on_step};
    const struct cpprof__unwind_row old = row_of(64, 0);
    const struct cpprof__unwind_row new = row_of(64, 1);
    unsigned n_none = 0;
    unsigned i;

    (void)state;
    assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
    for (i = 1; i == 1 || i <= n_steps; i++) {
        struct cpprof__unwind_row row;

        cpprof__unwind_forget();
        store(64, 0);
        if (!find_interrupted(i, &row))
            n_none++;
        else
            assert_true(same(&row, &old) || same(&row, &new));
    }
    printf("# %u instructions, not found after %u of them\n", i, n_none);
    assert_true(i > 20);
    assert_true(n_none >= 2);
}
#else
static void
interrupted_reader_never_finds_half_a_row(void **state)
{
    (void)state;
    printf("# skipped: needs the trap flag of x86-64\n");
    return;
}
#endif

/* Threads fight over few slots. A row may be either of two that were stored
 * for its address, and nothing else. */

#define N_THREADS 4
#define N_TURNS   30000

static size_t n_found;
static size_t n_torn;

static void
check(uint64_t ra)
{
    struct cpprof__unwind_row row;
    struct cpprof__unwind_row a = row_of(ra, 0);
    struct cpprof__unwind_row b = row_of(ra, 1);

    if (!finds(ra, &row))
        return;
    add_relaxed(&n_found, 1);
    if (!same(&row, &a) && !same(&row, &b))
        add_relaxed(&n_torn, 1);
}

static void *
fight(void *arg)
{
    const uint64_t step = (uint64_t)CPPROF__ROW_PAIRS << 8;
    uint64_t seed = (uint64_t)(uintptr_t)arg + 1;
    size_t i;

    for (i = 0; i < N_TURNS; i++) {
        uint64_t ra;

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        ra = 64 + (seed >> 60) % 5 * step;
        if (seed >> 40 & 1)
            store(ra, seed >> 41 & 1);
        check(ra);
        if ((seed >> 20 & 0xfff) == 0)
            cpprof__unwind_forget();
    }
    return NULL;
}

static void
threads_never_find_half_a_row(void **state)
{
    pthread_t threads[N_THREADS];
    uintptr_t i;

    (void)state;
    for (i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fight, (void *)i),
                         0);
    for (i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    printf("# %zu found, %zu torn\n", n_found, n_torn);
    assert_true(n_found > N_TURNS / 10);
    assert_int_equal(n_torn, 0);
}

/* After the last writer is done, every slot can be written again. */
static void
no_slot_is_left_locked(void **state)
{
    struct cpprof__unwind_row row;
    size_t i;

    (void)state;
    cpprof__unwind_forget();
    for (i = 0; i < CPPROF__ROW_PAIRS; i++) {
        store(0x400000 + 16 * i, 0);
        assert_true(finds(0x400000 + 16 * i, &row));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_row_unpacks_to_itself),
        cmocka_unit_test(stored_row_is_found_until_forgotten),
        cmocka_unit_test(row_of_an_older_generation_is_not_found),
        cmocka_unit_test(pair_holds_two_rows_and_replaces_in_turn),
        cmocka_unit_test(aligned_code_spreads_over_the_table),
        cmocka_unit_test(slot_that_is_being_written_is_not_used),
        cmocka_unit_test(interrupted_reader_never_finds_half_a_row),
        cmocka_unit_test(threads_never_find_half_a_row),
        cmocka_unit_test(no_slot_is_left_locked),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
