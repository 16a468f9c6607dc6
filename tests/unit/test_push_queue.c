/* SPDX-License-Identifier: MIT */
/* Profiles that wait: in order, and never more than the bound. */
#include "push/message.h"
#include "push/queue.h"

#include "oom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct cpprof__push_queue queue;

/* Its body is n bytes; it is known by a letter. */
static struct cpprof__push_item *
make_item(char letter, size_t n)
{
    struct cpprof__push_item *item = calloc(1, sizeof *item);
    char *body = calloc(1, n);

    assert_non_null(item);
    assert_non_null(body);
    item->kind = (uint32_t)letter;
    item->parts = cpprof__push_part_make(body, n, 0);
    assert_non_null(item->parts);
    free(body);
    return item;
}

static void
expect(char letter)
{
    struct cpprof__push_item *item = cpprof__push_queue_take(&queue);

    assert_non_null(item);
    assert_int_equal(item->kind, letter);
    cpprof__push_queue_done(&queue, item, true);
}

static int
set_up(void **state)
{
    (void)state;
    memset(&queue, 0, sizeof queue);
    queue.max_bytes = 10000;
    return 0;
}

static void
first_in_is_first_out(void **state)
{
    (void)state;
    cpprof__push_queue_put(&queue, make_item('a', 10));
    cpprof__push_queue_put(&queue, make_item('b', 10));
    expect('a');
    cpprof__push_queue_put(&queue, make_item('c', 10));
    expect('b');
    expect('c');
    assert_null(cpprof__push_queue_take(&queue));
    assert_int_equal(queue.n_bytes, 0);
    assert_int_equal(cpprof__push_queue_dropped(&queue, true), 0);
}

static void
the_oldest_goes_for_the_newest(void **state)
{
    char name;

    (void)state;
    for (name = 'a'; name <= 'j'; name++) {
        cpprof__push_queue_put(&queue, make_item(name, 3000));
        assert_true(queue.n_bytes <= queue.max_bytes);
    }
    assert_int_equal(cpprof__push_queue_dropped(&queue, false), 7);
    assert_int_equal(cpprof__push_queue_dropped(&queue, true), 7);
    assert_int_equal(cpprof__push_queue_dropped(&queue, true), 0);
    expect('h');
    expect('i');
    expect('j');
}

static void
what_is_being_sent_counts_and_stays(void **state)
{
    struct cpprof__push_item *taken;

    (void)state;
    cpprof__push_queue_put(&queue, make_item('a', 6000));
    taken = cpprof__push_queue_take(&queue);
    cpprof__push_queue_put(&queue, make_item('b', 1000));
    cpprof__push_queue_put(&queue, make_item('c', 5000));
    assert_int_equal(cpprof__push_queue_dropped(&queue, true), 1);
    cpprof__push_queue_put(&queue, make_item('d', 3000));
    assert_true(queue.n_bytes <= queue.max_bytes);
    assert_int_equal(cpprof__push_queue_dropped(&queue, true), 1);
    cpprof__push_queue_done(&queue, taken, false);
    assert_int_equal(cpprof__push_queue_dropped(&queue, true), 1);
    expect('d');
    assert_int_equal(queue.n_bytes, 0);
}

static void
what_is_larger_than_all_of_it_is_dropped(void **state)
{
    (void)state;
    cpprof__push_queue_put(&queue, make_item('a', 10));
    cpprof__push_queue_put(&queue, make_item('b', 20000));
    assert_int_equal(cpprof__push_queue_dropped(&queue, true), 1);
    expect('a');
}

static void
what_is_left_is_freed_and_counted(void **state)
{
    (void)state;
    cpprof__push_queue_put(&queue, make_item('a', 10));
    cpprof__push_queue_put(&queue, make_item('b', 10));
    cpprof__push_queue_clear(&queue);
    assert_null(cpprof__push_queue_take(&queue));
    assert_int_equal(queue.n_bytes, 0);
    assert_int_equal(cpprof__push_queue_dropped(&queue, true), 2);
}

static void
a_message_survives_every_failing_allocation(void **state)
{
    const struct cpprof__push_profile profile = {
        .kind = CPPROF_PUSH_BLOCK,
        .data = "abc",
        .n = 3,
        .from_ns = 1,
        .until_ns = 2,
    };
    struct cpprof__push_plan plan = {
        .url = "http://a", .name = "n", .labels = "a=b,c=d"};
    /* ORDER: enum cpprof_push_protocol; the path of the last ones is the
     * plan's. */
    static const char *const urls[] = {"/push.v1.",
                                       "/ingest?name=n%7Ba%3Db%2Cc%3Dd",
                                       "http://a", "http://a", "http://a"};
    unsigned i, n;

    (void)state;
    for (i = 0; i <= CPPROF_PUSH_PARCA; i++) {
        struct cpprof__push_message *m = NULL;

        plan.protocol = (enum cpprof_push_protocol)i;
        for (n = 1; !m; n++) {
            oom_watch();
            oom.countdown = (long)n - 1;
            m = cpprof__push_message(&plan, &profile);
            oom.countdown = -1;
            if (!m)
                assert_int_equal(oom.n_live, 0);
            assert_true(n < 100);
        }
        assert_true(n > 3);
        assert_non_null(strstr(m->url, urls[i]));
        cpprof__push_message_free(m);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(first_in_is_first_out, set_up),
        cmocka_unit_test_setup(the_oldest_goes_for_the_newest, set_up),
        cmocka_unit_test_setup(what_is_being_sent_counts_and_stays, set_up),
        cmocka_unit_test_setup(what_is_larger_than_all_of_it_is_dropped,
                               set_up),
        cmocka_unit_test_setup(what_is_left_is_freed_and_counted, set_up),
        cmocka_unit_test(a_message_survives_every_failing_allocation),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
