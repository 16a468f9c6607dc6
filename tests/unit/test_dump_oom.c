/* SPDX-License-Identifier: MIT */
/*
 * The n-th allocation and all after it, or it alone, fail while threads are
 * dumped, or looked at for the profile by wall time: that is told, the writer
 * is closed once, nothing is left behind, and the next one is whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "collect/dump/dump.h"
#include "collect/store/tables.h"
#include "collect/threads/thread_creation.h"
#include "collect/wall/wall_sampler.h"
#include "oom.h"
#include <cpprof/profiles.h>

#include <cmocka.h>
#include <pthread.h>
#include <unistd.h>

#define THREADS 5
#define N_MAX   10000
#define TICK_NS 10000000

static pthread_t sleepers[THREADS];
static int gate[2];

static void *
sleeper(void *arg)
{
    char c;

    cpprof__thread_creation_started(arg);
    if (read(gate[0], &c, 1) < 0)
        return arg;
    cpprof__thread_creation_ended();
    return NULL;
}

/* With what is made once made. */
static int
set_up(void **state)
{
    int i;

    (void)state;
    if (pipe(gate) || cpprof__dump_start(NULL))
        return 1;
    for (i = 0; i < THREADS; i++)
        if (pthread_create(
                &sleepers[i], NULL, sleeper,
                cpprof__thread_creation_announce((uintptr_t)sleeper)))
            return 1;
    return 0;
}

static int
tear_down(void **state)
{
    int i;

    (void)state;
    close(gate[1]);
    for (i = 0; i < THREADS; i++)
        pthread_join(sleepers[i], NULL);
    close(gate[0]);
    return 0;
}

/* ---- dumps ------------------------------------------------------------ */

struct sink {
    int n_closes;
    size_t n_bytes;
    char text[65536];
};

static int
sink_write(void *ctx, const void *data, size_t n)
{
    struct sink *s = ctx;

    if (n < sizeof s->text - s->n_bytes)
        memcpy(s->text + s->n_bytes, data, n);
    s->n_bytes += n;
    return 0;
}

static int
sink_close(void *ctx, int failed)
{
    (void)failed;
    ((struct sink *)ctx)->n_closes++;
    return 0;
}

static enum cpprof_status
write_once(const char *profile, int32_t debug, struct sink *s,
           struct cpprof_error *error)
{
    const struct cpprof_profile_options options = {.size = sizeof options,
                                                   .debug = debug,
                                                   .symbolize =
                                                       CPPROF_SYMBOLIZE_NONE};
    const struct cpprof_writer writer = {sizeof writer, sink_write, sink_close,
                                         s};

    memset(s, 0, sizeof *s);
    return cpprof_profile_write(cpprof_profile_lookup(profile), &writer,
                                &options, error);
}

static void
every_allocation_fails(const char *profile, int32_t debug)
{
    static struct sink s;
    struct cpprof_error error;
    enum cpprof_status status = CPPROF_NOMEM;
    long n;

    assert_int_equal(write_once(profile, debug, &s, &error), CPPROF_OK);
    for (n = 0; n < N_MAX && status == CPPROF_NOMEM; n++) {
        oom_watch();
        oom.countdown = n;
        status = write_once(profile, debug, &s, &error);
        oom.countdown = -1;
        if (status != CPPROF_OK)
            assert_string_equal(error.text, "out of memory");
        assert_int_equal(s.n_closes, 1);
        assert_int_equal(oom.n_live, 0);
    }
    assert_int_equal(status, CPPROF_OK);
    assert_true(n > 5);
}

static void
a_dump_fails_cleanly(void **state)
{
    (void)state;
    every_allocation_fails("goroutine", 0);
    every_allocation_fails("goroutine", 1);
    every_allocation_fails("goroutine", 2);
}

static void
who_is_stuck_fails_cleanly(void **state)
{
    (void)state;
    every_allocation_fails("threadleak", 1);
    every_allocation_fails("threadleak", 2);
}

static void
creators_fail_cleanly(void **state)
{
    (void)state;
    every_allocation_fails("threadcreate", 0);
    every_allocation_fails("threadcreate", 1);
}

/* With one allocation less, it is whole or none. */
static void
creators_are_told_without_one_allocation(void **state)
{
    static struct sink whole, s;
    struct cpprof_error error;
    long n, n_failed = 0;

    (void)state;
    assert_int_equal(write_once("threadcreate", 1, &whole, NULL), CPPROF_OK);
    assert_null(strstr(whole.text, "unknown creator"));
    oom.once = true;
    for (n = 0, oom.countdown = 0; oom.countdown <= 0 && n < N_MAX; n++) {
        oom_watch();
        oom.countdown = n;
        if (write_once("threadcreate", 1, &s, &error) == CPPROF_OK) {
            assert_string_equal(s.text, whole.text);
        } else {
            assert_string_equal(error.text, "out of memory");
            n_failed++;
        }
        assert_int_equal(oom.n_live, 0);
    }
    oom.once = false;
    oom.countdown = -1;
    assert_true(n_failed > 5);
}

static size_t
count_blocks(const char *text)
{
    size_t n = 0;

    while ((text = strstr(text, "goroutine ")) && text[10]) {
        n += text[10] >= '0' && text[10] <= '9';
        text += 10;
    }
    return n;
}

static void
the_next_dump_has_all_threads(void **state)
{
    static struct sink s;

    (void)state;
    oom_watch();
    oom.countdown = 3;
    assert_int_equal(write_once("goroutine", 2, &s, NULL), CPPROF_NOMEM);
    oom.countdown = -1;
    assert_int_equal(write_once("goroutine", 2, &s, NULL), CPPROF_OK);
    assert_int_equal(count_blocks(s.text), THREADS + 1);
}

/* ---- the profile by wall time ----------------------------------------- */

static int64_t
total_ns(const struct cpprof__wall_counts *counts)
{
    int64_t sum = counts->lost_ns;
    uint32_t i;

    for (i = 0; i < counts->n_slots; i++)
        sum += counts->slots[i].n ? counts->slots[i].ns : 0;
    return sum;
}

static uint64_t
monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct cpprof__wall_sampler
new_sampler(uint32_t max_looks)
{
    return (struct cpprof__wall_sampler){.period_ns = TICK_NS,
                                         .max_looks = max_looks,
                                         .start_ns = monotonic_ns()};
}

static void
tick(struct cpprof__wall_sampler *w)
{
    cpprof__wall_sampler_tick(w);
    usleep(2000);
    cpprof__wall_sampler_answers(w);
}

/* Ticks without memory lose threads or time, which later ones do not. */
static void
ticks_do_without_memory(void **state)
{
    long n;

    (void)state;
    for (n = 0; n < 12; n++) {
        struct cpprof__wall_sampler w = new_sampler(32);
        int i;

        oom_watch();
        oom.countdown = n;
        for (i = 0; i < 3; i++)
            tick(&w);
        oom.countdown = -1;
        for (i = 0; i < 3; i++)
            tick(&w);
        assert_int_equal(w.n, THREADS + 1);
        cpprof__wall_sampler_end(&w, monotonic_ns());
        assert_true(total_ns(&w.counts) > 0);
        cpprof__wall_sampler_free(&w);
        assert_int_equal(oom.n_live, 0);
    }
}

/* From the start to the end, however few were looked at, and for a capture that
 * ends earlier as well. */
static void
threads_without_a_turn_are_charged_for_all_their_time(void **state)
{
    struct cpprof__wall_sampler w = new_sampler(1);
    uint64_t half, end;

    (void)state;
    oom_watch();
    tick(&w);
    half = monotonic_ns();
    cpprof__wall_sampler_charge(&w, half);
    cpprof__wall_sampler_answers(&w);
    assert_int_equal(w.n_looks, THREADS + 1);
    tick(&w);
    end = monotonic_ns();
    cpprof__wall_sampler_end(&w, end);
    assert_int_equal(total_ns(&w.counts),
                     (THREADS + 1) * (int64_t)(end - w.start_ns));
    cpprof__wall_sampler_free(&w);
    assert_int_equal(oom.n_live, 0);
}

static void
a_wall_profile_is_told_to_have_failed(void **state)
{
    const struct cpprof__wall_summary summary = {
        .options = {.rate_hz = 100, .symbolize = CPPROF_SYMBOLIZE_NONE},
        .time_ns = 1};
    struct cpprof__wall_sampler w = new_sampler(32);
    enum cpprof_status status = CPPROF_NOMEM;
    static struct sink s;
    long n, before;

    (void)state;
    oom_watch();
    tick(&w);
    tick(&w);
    cpprof__wall_sampler_end(&w, monotonic_ns());
    before = oom.n_live;
    for (n = 0; n < N_MAX && status == CPPROF_NOMEM; n++) {
        const struct cpprof_writer writer = {sizeof writer, sink_write,
                                             sink_close, &s};

        memset(&s, 0, sizeof s);
        oom.countdown = n;
        status = cpprof__wall_write(&w.counts, &summary, writer, NULL);
        oom.countdown = -1;
        assert_int_equal(s.n_closes, 1);
        assert_int_equal(oom.n_live, before);
    }
    assert_int_equal(status, CPPROF_OK);
    assert_true(n > 5);
    cpprof__wall_sampler_free(&w);
    assert_int_equal(oom.n_live, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dump_fails_cleanly),
        cmocka_unit_test(who_is_stuck_fails_cleanly),
        cmocka_unit_test(creators_fail_cleanly),
        cmocka_unit_test(creators_are_told_without_one_allocation),
        cmocka_unit_test(the_next_dump_has_all_threads),
        cmocka_unit_test(ticks_do_without_memory),
        cmocka_unit_test(threads_without_a_turn_are_charged_for_all_their_time),
        cmocka_unit_test(a_wall_profile_is_told_to_have_failed),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
