/* SPDX-License-Identifier: MIT */
/*
 * Captures on one store: who has which samples when stores become full, when
 * too many of them are put aside, and when captures begin and end in between.
 * No session runs: samples are put into its ring by hand.
 */
#include "collect/cpu/cpu_capture.h"
#include "collect/cpu/session_internal.h"
#include <cpprof/labels.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define DEPTH_MAX 8

/* The session that the test has by hand. */
struct by_hand {
    struct cpprof__session s;
    uintptr_t next_pc;
    uint64_t n_pushed;
};

static struct by_hand *
make(void)
{
    struct by_hand *h = calloc(1, sizeof *h);

    assert_non_null(h);
    assert_int_equal(cpprof__spool_make(&h->s.spool, NULL, 1 << 14, NULL),
                     CPPROF_OK);
    cpprof__session_drain_begin(&h->s);
    h->next_pc = 0x1000;
    return h;
}

static void
unmake(struct by_hand *h)
{
    cpprof__shared_store_release(h->s.shared);
    cpprof__session_drain_free(&h->s);
    cpprof__spool_free(&h->s.spool, false);
    free(h);
}

static void
drain(struct by_hand *h)
{
    h->s.drain.mappings.live = false; /* addresses are made up */
    cpprof__session_drain_locked(&h->s);
}

/* n samples with stacks that were never there, or with one that always is. */
static void
push_new(struct by_hand *h, uint64_t n, size_t depth)
{
    const struct cpprof__ring_head head = {.weight = 1};
    uintptr_t pcs[DEPTH_MAX];

    while (n--) {
        size_t i;

        for (i = 0; i < depth; i++)
            pcs[i] = h->next_pc++;
        assert_true(cpprof__ring_push(h->s.spool.ring, &head, pcs, depth));
        if (++h->n_pushed % 256 == 0)
            drain(h);
    }
    drain(h);
}

static void
push_same(struct by_hand *h, uint32_t weight, const struct cpprof_labels *set)
{
    const struct cpprof__ring_head head = {.weight = weight,
                                           .labels = (uintptr_t)set};
    const uintptr_t pcs[] = {0x10, 0x20};

    assert_true(cpprof__ring_push(h->s.spool.ring, &head, pcs, 2));
    drain(h);
}

static struct cpprof__cpu_capture *
join(struct by_hand *h)
{
    struct cpprof__cpu_capture *c = calloc(1, sizeof *c);

    assert_non_null(c);
    c->options.symbolize = CPPROF_SYMBOLIZE_NONE;
    assert_true(cpprof__cpu_capture_begin(&h->s, c, false));
    return c;
}

/* Samples that a capture which was cut will write. */
static uint64_t
total(const struct cpprof__cpu_capture *c)
{
    uint64_t sum = c->last.head ? c->last.head->total : 0;
    uint32_t i;

    for (i = 0; i + 1 < c->n_segments; i++) {
        struct cpprof__store view;

        assert_true(cpprof__store_view_make(
            &view, &c->segments[i].shared->store, &c->segments[i].base));
        sum += view.head->total;
        cpprof__store_view_free(&view);
    }
    return sum;
}

static uint64_t
cut(struct by_hand *h, struct cpprof__cpu_capture *c)
{
    cpprof__cpu_capture_end(&h->s, c);
    assert_false(c->failed);
    return total(c);
}

static void
done(struct cpprof__cpu_capture *c)
{
    cpprof__cpu_capture_let_go(c);
    free(c);
}

static void
each_has_what_came_between_its_beginning_and_its_end(void **state)
{
    struct by_hand *h = make();
    struct cpprof__cpu_capture *a, *b;

    (void)state;
    push_same(h, 1000, NULL);
    a = join(h);
    push_same(h, 5, NULL);
    b = join(h);
    push_new(h, 20, 3);
    push_same(h, 7, NULL);
    assert_int_equal(cut(h, a), 32);
    push_same(h, 100, NULL);
    assert_int_equal(cut(h, b), 127);
    assert_int_equal(total(a), 32);
    assert_int_equal(a->last.head->n_samples, 21);
    assert_int_equal(a->head.n_records, 22);
    done(a);
    done(b);
    unmake(h);
}

static void
what_nobody_added_is_no_sample(void **state)
{
    struct by_hand *h = make();
    struct cpprof__cpu_capture *c;

    (void)state;
    push_new(h, 100, 3);
    c = join(h);
    assert_int_equal(cut(h, c), 0);
    assert_int_equal(c->last.head->n_samples, 0);
    done(c);
    unmake(h);
}

static void
a_store_that_is_full_stays_for_who_counted_with_it(void **state)
{
    enum { MANY = CPPROF__STORE_SAMPLES + 5000 };
    struct by_hand *h = make();
    struct cpprof__cpu_capture *a, *b, *c;

    (void)state;
    push_new(h, 10, 2);
    a = join(h);
    push_new(h, 10, 2);
    b = join(h);
    push_new(h, MANY, 2);
    c = join(h);
    push_new(h, MANY, 2);
    assert_int_equal(cut(h, b), 2 * MANY);
    push_new(h, 1, 2);
    assert_int_equal(cut(h, a), 2 * MANY + 11);
    assert_int_equal(cut(h, c), MANY + 1);
    assert_int_equal(a->n_segments, 3);
    assert_int_equal(c->n_segments, 2);
    assert_int_equal(a->lost + b->lost + c->lost, 0);
    assert_int_equal(h->s.drain.n_lost, 0);
    done(b);
    assert_int_equal(total(a), 2 * MANY + 11);
    done(a);
    done(c);
    unmake(h);
}

/* It is the session's memory, until that ends. */
static void
a_capture_that_was_cut_outlives_the_session(void **state)
{
    struct by_hand *h = make();
    struct cpprof__cpu_capture *c = join(h);

    (void)state;
    push_new(h, CPPROF__STORE_SAMPLES + 100, 2);
    assert_int_equal(cut(h, c), CPPROF__STORE_SAMPLES + 100);
    cpprof__shared_store_detach(h->s.shared,
                                cpprof__spool_give_store(&h->s.spool));
    unmake(h);
    assert_int_equal(total(c), CPPROF__STORE_SAMPLES + 100);
    assert_int_equal(c->last.nodes[0].pc, 0);
    done(c);
}

static void
stores_without_end_are_bounded_in_number(void **state)
{
    const uint64_t n = (CPPROF__CAPTURE_SEGMENTS + 3ul) * CPPROF__STORE_SAMPLES;
    struct by_hand *h = make();
    struct cpprof__cpu_capture *a = join(h), *b;
    uint64_t kept;

    (void)state;
    push_new(h, n / 2, 1);
    b = join(h);
    push_new(h, n - n / 2, 1);
    kept = cut(h, a);
    assert_int_equal(kept + a->lost, n);
    assert_true(a->lost > 0);
    assert_true(a->n_segments <= CPPROF__CAPTURE_SEGMENTS);
    assert_int_equal(cut(h, b), n - n / 2);
    assert_int_equal(b->lost, 0);
    done(a);
    done(b);
    unmake(h);
}

static void
stores_without_end_are_bounded_in_bytes(void **state)
{
    const uint64_t n = 20ul * CPPROF__STORE_NODES / DEPTH_MAX;
    struct by_hand *h = make();
    struct cpprof__cpu_capture *c = join(h);
    size_t i, n_bytes = 0;

    (void)state;
    push_new(h, n, DEPTH_MAX);
    for (i = 0; i + 1 < c->n_segments; i++)
        n_bytes += cpprof__shared_store_bytes(c->segments[i].shared);
    assert_true(n_bytes <= CPPROF__CAPTURE_BYTES);
    assert_true(n_bytes > CPPROF__CAPTURE_BYTES / 2);
    assert_int_equal(cut(h, c) + c->lost, n);
    assert_true(c->lost > 0);
    done(c);
    unmake(h);
}

/* The kernel empties no memory that is locked. */
static void
a_store_that_the_program_locked_is_emptied(void **state)
{
    struct by_hand *h = make();
    struct cpprof__cpu_capture *c;

    (void)state;
    push_new(h, 100, 2);
    assert_int_equal(mlock(h->s.spool.store.head, 4096), 0);
    push_new(h, CPPROF__STORE_SAMPLES, 2);
    assert_in_range(h->s.spool.store.head->n_samples, 1, 1000);
    c = join(h);
    push_same(h, 7, NULL);
    assert_int_equal(cut(h, c), 7);
    assert_int_equal(c->lost, 0);
    done(c);
    unmake(h);
}

static void
without_labels_samples_of_one_stack_are_one(void **state)
{
    struct cpprof_labels *a = cpprof_labels_new("k", "1", NULL);
    struct cpprof_labels *b = cpprof_labels_new("k", "2", NULL);
    struct by_hand *h = make();
    struct cpprof__cpu_capture *c = join(h);

    (void)state;
    push_same(h, 1, a);
    push_same(h, 2, b);
    push_new(h, 1, 3);
    push_same(h, 4, NULL);
    assert_int_equal(cut(h, c), 8);
    assert_int_equal(c->last.head->n_samples, 4);
    cpprof__store_view_drop_labels(&c->last);
    assert_int_equal(c->last.head->n_samples, 2);
    assert_int_equal(c->last.samples[0].count + c->last.samples[1].count, 8);
    assert_int_equal(c->last.samples[0].labels, 0);
    done(c);
    unmake(h);
    cpprof_labels_free(a);
    cpprof_labels_free(b);
}

static void
samples_that_the_ring_lost_are_of_who_was_there(void **state)
{
    struct by_hand *h = make();
    struct cpprof__cpu_capture *before = join(h), *after;

    (void)state;
    h->s.drain.n_lost += 3;
    after = join(h);
    h->s.drain.n_lost += 4;
    cut(h, before);
    h->s.drain.n_lost += 5;
    cut(h, after);
    assert_int_equal(before->lost, 7);
    assert_int_equal(after->lost, 9);
    done(before);
    done(after);
    unmake(h);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_what_came_between_its_beginning_and_its_end),
        cmocka_unit_test(what_nobody_added_is_no_sample),
        cmocka_unit_test(a_store_that_is_full_stays_for_who_counted_with_it),
        cmocka_unit_test(a_capture_that_was_cut_outlives_the_session),
        cmocka_unit_test(stores_without_end_are_bounded_in_number),
        cmocka_unit_test(stores_without_end_are_bounded_in_bytes),
        cmocka_unit_test(a_store_that_the_program_locked_is_emptied),
        cmocka_unit_test(without_labels_samples_of_one_stack_are_one),
        cmocka_unit_test(samples_that_the_ring_lost_are_of_who_was_there),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
