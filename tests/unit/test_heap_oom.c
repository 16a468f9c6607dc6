/* SPDX-License-Identifier: MIT */
/*
 * The n-th allocation fails while a heap profile is written: that is told, the
 * writer is closed once, nothing is left behind, and the next one is whole.
 */
#include "heap_fixture.h"

#include "collect/encode/names.h"
#include "oom.h"

static void
fill(struct made *m)
{
    size_t i;

    make(m);
    for (i = 0; i < 100; i++)
        add_samples(m, PCS(0x10310 + i, 0x20010 + i, 0x10010), 2, 1, 64, 2);
    add_samples(m, PCS(INLINED_PC), 2, 1, 64, 2);
    m->heap.head->n_lost = 1;
    m->heap.head->lost_objects = 1024;
    m->heap.head->lost_bytes = 1024;
}

/* Without room for names a profile may also go without them. */
static void
check_result(enum cpprof_status status, const struct sink *s, long n)
{
    assert_int_equal(s->n_closes, 1);
    if (status != CPPROF_OK && status != CPPROF_NOMEM)
        fail_msg("allocation %ld: status %d", n, status);
    if (status == CPPROF_NOMEM)
        assert_int_equal(s->failed, 1);
}

static int
discard(void *ctx, const void *data, size_t n_bytes)
{
    return 0;
}

/* Until n allocations are enough for all of it. */
static void
every_allocation_fails_once(struct made *m, int32_t debug, uint32_t flags)
{
    const struct cpprof_heap_options options = {.debug = debug, .flags = flags};
    struct cpprof_error error;
    long n, n_failed = 0;

    for (n = 0; n < 100000; n++) {
        struct sink s = {0};
        struct cpprof_writer writer = {sizeof writer, discard, sink_close, &s};
        enum cpprof_status status;

        cpprof__names_forget();
        oom_watch();
        oom.countdown = n;
        status =
            cpprof__heap_profile_write(&m->source, &options, writer, &error);
        n_failed += status == CPPROF_NOMEM;
        check_result(status, &s, n);
        if (status == CPPROF_NOMEM)
            assert_string_equal(error.text, "out of memory");
        if (oom.countdown > 0 || status == CPPROF_OK) {
            bool enough = oom.countdown > 0;

            oom.countdown = -1;
            cpprof__names_forget();
            assert_int_equal(oom.n_live, 0);
            if (enough)
                break;
        }
        oom.countdown = -1;
        cpprof__names_forget();
        assert_int_equal(oom.n_live, 0);
    }
    assert_true(n_failed > 5);
    assert_true(n < 100000);
}

static void
pprof_file_fails_cleanly(void **state)
{
    struct made m;

    fill(&m);
    m.source.ops = cpprof__names_over(&fake_ops);
    every_allocation_fails_once(&m, 0, 0);
    every_allocation_fails_once(&m, 0, CPPROF_FLAG_PEAK | CPPROF_FLAG_LABELS);
    unmake(&m);
}

static void
text_fails_cleanly(void **state)
{
    struct made m;

    fill(&m);
    m.source.ops = cpprof__names_over(&fake_ops);
    m.source.is_self = true;
    every_allocation_fails_once(&m, 1, 0);
    unmake(&m);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pprof_file_fails_cleanly),
        cmocka_unit_test(text_fails_cleanly),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
