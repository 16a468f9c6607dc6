/* SPDX-License-Identifier: MIT */
/*
 * The n-th allocation fails while a capture begins, reaches over a full store,
 * is cut and written: that is told, the writer is closed once, and nothing is
 * left behind.
 */
#include "collect/cpu/cpu_capture.h"
#include "collect/cpu/session_internal.h"
#include "collect/wall/wall.h"
#include "oom.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct sink {
    int n_closes;
    int failed;
};

static int
sink_write(void *ctx, const void *data, size_t n)
{
    return 0;
}

static int
sink_close(void *ctx, int failed)
{
    struct sink *s = ctx;

    s->n_closes++;
    s->failed = failed;
    return 0;
}

static void
push(struct cpprof__session *s, uintptr_t *next_pc, uint32_t n)
{
    uint32_t i;

    for (i = 0; i < n; i++) {
        const struct cpprof__ring_head head = {.weight = 1};
        const uintptr_t pcs[] = {(*next_pc)++, 0x10};

        assert_true(cpprof__ring_push(s->spool.ring, &head, pcs, 2));
        if (i % 256 == 0)
            cpprof__session_drain_locked(s);
    }
    cpprof__session_drain_locked(s);
}

/* Two captures, one of which is there when the store becomes full. */
static enum cpprof_status
capture(struct cpprof__session *s, struct sink *sink, uint32_t flags)
{
    struct cpprof__cpu_capture c = {
        .base.writer = {sizeof(struct cpprof_writer), sink_write, sink_close,
                        sink},
        .options = {.symbolize = CPPROF_SYMBOLIZE_NONE, .flags = flags}};
    uintptr_t next_pc = 0x1000;

    push(s, &next_pc, 10);
    if (!cpprof__cpu_capture_begin(s, &c, false)) {
        sink_close(sink, 1);
        return CPPROF_NOMEM;
    }
    push(s, &next_pc, CPPROF__STORE_SAMPLES);
    cpprof__cpu_capture_end(s, &c);
    return cpprof__cpu_capture_write(&c, NULL);
}

static void
fails_once(uint32_t flags, long n, bool *enough)
{
    struct cpprof__session *s = calloc(1, sizeof *s);
    struct sink sink = {0};
    enum cpprof_status status;

    assert_non_null(s);
    assert_int_equal(cpprof__spool_make(&s->spool, NULL, 1 << 14, NULL),
                     CPPROF_OK);
    cpprof__session_drain_begin(s);
    s->drain.mappings.live = false;
    oom_watch();
    oom.countdown = n;
    status = capture(s, &sink, flags);
    *enough = oom.countdown > 0;
    oom.countdown = -1;
    cpprof__shared_store_release(s->shared);
    assert_int_equal(oom.n_live, 0);
    assert_int_equal(sink.n_closes, 1);
    assert_int_equal(sink.failed, status != CPPROF_OK);
    if (status != CPPROF_OK && status != CPPROF_NOMEM)
        fail_msg("allocation %ld: status %d", n, status);
    if (*enough)
        assert_int_equal(status, CPPROF_OK);
    cpprof__session_drain_free(s);
    cpprof__spool_free(&s->spool, false);
    free(s);
}

static void
a_cpu_capture_fails_cleanly(void **state)
{
    static const uint32_t flags[] = {0, CPPROF_FLAG_NO_LABELS,
                                     CPPROF_FLAG_LEGACY};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof flags / sizeof *flags; i++) {
        bool enough = false;
        long n;

        for (n = 0; n < 1000 && !enough; n++)
            fails_once(flags[i], n, &enough);
        assert_true(enough);
        assert_true(n > 5);
    }
}

/* What a wall capture does with the counts that it has a part in. */
static bool
take_part(struct cpprof__wall_counts *counts)
{
    struct cpprof__wall_count key = {.stack = 1,
                                     .state = CPPROF__WALL_SLEEPING};
    struct cpprof__wall_counts since = {0};
    struct cpprof__wall_base base;
    bool done = cpprof__wall_base_take(&base, counts);

    for (key.stack = 1; done && key.stack < 3000; key.stack++)
        cpprof__wall_add(counts, &key, 1);
    done = done && cpprof__wall_counts_since(counts, &base, 0, &since);
    cpprof__wall_base_free(&base);
    cpprof__wall_counts_free(&since);
    return done;
}

static void
a_part_of_wall_counts_fails_cleanly(void **state)
{
    const struct cpprof__wall_count key = {.stack = 1};
    bool enough = false;
    long n;

    (void)state;
    for (n = 0; n < 1000 && !enough; n++) {
        struct cpprof__wall_counts counts = {0};
        bool done;

        oom_watch();
        cpprof__wall_add(&counts, &key, 1);
        oom.countdown = n;
        done = take_part(&counts);
        enough = oom.countdown > 0;
        oom.countdown = -1;
        cpprof__wall_counts_free(&counts);
        assert_int_equal(oom.n_live, 0);
        assert_true(done || !enough);
    }
    assert_true(enough);
    assert_true(n > 3);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cpu_capture_fails_cleanly),
        cmocka_unit_test(a_part_of_wall_counts_fails_cleanly),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
