/* SPDX-License-Identifier: MIT */
/* The tables of custom profiles: what is in them, and that nothing else is. */
#include "oom.h"

#include "collect/registry/custom.h"
#include "collect/runtime/own_lock.h"
#include "collect/store/tables.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct cpprof__stack_record record = {.values = {1}, .stack = 1};

static struct cpprof__custom *
make(void)
{
    const struct cpprof__value_type type = {"x", "count"};

    return cpprof__custom_make(&type, 1);
}

static enum cpprof_status
add(struct cpprof__custom *custom, uintptr_t value)
{
    const struct cpprof__custom_value v = {(void *)value, 0, false};

    return cpprof__custom_add(custom, &v, &record, NULL);
}

static void
drop(struct cpprof__custom *custom, uintptr_t value)
{
    const struct cpprof__custom_value v = {(void *)value, 0, false};

    cpprof__custom_remove(custom, &v);
}

static void
a_value_is_in_once(void **state)
{
    struct cpprof__custom *custom = make();
    const struct cpprof__custom_value one = {(void *)1, 0, false};
    struct cpprof_error error = {0};

    (void)state;
    assert_int_equal(add(custom, 1), CPPROF_OK);
    assert_int_equal(cpprof__custom_add(custom, &one, &record, &error),
                     CPPROF_INVALID);
    assert_string_equal(error.text, "pprof: Profile.Add of duplicate value");
    assert_int_equal(add(custom, 0), CPPROF_OK); /* NULL is a value, too */
    assert_int_equal(cpprof__custom_count(custom), 2);
    drop(custom, 1);
    drop(custom, 1);
    drop(custom, 2);
    assert_int_equal(cpprof__custom_count(custom), 1);
    assert_int_equal(add(custom, 1), CPPROF_OK);
    drop(custom, 1);
    drop(custom, 0);
    assert_int_equal(cpprof__custom_count(custom), 0);
    cpprof__custom_free(custom);
}

static void
bytes_are_told_apart_by_what_they_are(void **state)
{
    struct cpprof__custom *custom = make();
    char key[] = "one";
    const struct cpprof__custom_value bytes = {key, 3, true};
    const struct cpprof__custom_value shorter = {key, 2, true};
    const struct cpprof__custom_value empty = {NULL, 0, true};
    const struct cpprof__custom_value pointer = {key, 0, false};

    (void)state;
    assert_int_equal(cpprof__custom_add(custom, &bytes, &record, NULL),
                     CPPROF_OK);
    assert_int_equal(cpprof__custom_add(custom, &shorter, &record, NULL),
                     CPPROF_OK);
    assert_int_equal(cpprof__custom_add(custom, &empty, &record, NULL),
                     CPPROF_OK);
    assert_int_equal(cpprof__custom_add(custom, &pointer, &record, NULL),
                     CPPROF_OK);
    assert_int_equal(cpprof__custom_add(custom, &bytes, &record, NULL),
                     CPPROF_INVALID);
    key[0] = 'O'; /* it was copied */
    assert_int_equal(cpprof__custom_add(custom, &bytes, &record, NULL),
                     CPPROF_OK);
    assert_int_equal(cpprof__custom_count(custom), 5);
    cpprof__custom_remove(custom, &bytes);
    key[0] = 'o';
    cpprof__custom_remove(custom, &bytes);
    cpprof__custom_remove(custom, &shorter);
    cpprof__custom_remove(custom, &empty);
    cpprof__custom_remove(custom, &pointer);
    assert_int_equal(cpprof__custom_count(custom), 0);
    cpprof__custom_free(custom);
}

/* Against an array that says what is in. */
static void
any_order_of_adds_and_removes_keeps_the_set(void **state)
{
    enum { VALUES = 20000, STEPS = 400000 };
    struct cpprof__custom *custom = make();
    bool *in = calloc(VALUES, sizeof *in);
    uint64_t random = 1;
    size_t i, n = 0;

    (void)state;
    for (i = 0; i < STEPS; i++) {
        size_t value;

        random = random * 6364136223846793005u + 1442695040888963407u;
        value = (random >> 33) % (i < STEPS / 2 ? VALUES : VALUES / 50);
        if (random >> 63) {
            assert_int_equal(add(custom, value * 8),
                             in[value] ? CPPROF_INVALID : CPPROF_OK);
            n += !in[value];
            in[value] = true;
        } else {
            drop(custom, value * 8);
            n -= in[value];
            in[value] = false;
        }
        assert_int_equal(cpprof__custom_count(custom), n);
    }
    for (i = 0; i < VALUES; i++)
        assert_int_equal(add(custom, i * 8),
                         in[i] ? CPPROF_INVALID : CPPROF_OK);
    for (i = 0; i < VALUES; i++)
        drop(custom, i * 8);
    assert_int_equal(cpprof__custom_count(custom), 0);
    free(in);
    cpprof__custom_free(custom);
}

static void
bytes_without_memory_are_not_in(void **state)
{
    struct cpprof__custom *custom = make();
    const struct cpprof__custom_value bytes = {"abc", 3, true};
    struct cpprof_error error = {0};

    (void)state;
    oom_watch();
    oom.countdown = 0;
    assert_int_equal(cpprof__custom_add(custom, &bytes, &record, &error),
                     CPPROF_NOMEM);
    oom.countdown = -1;
    assert_int_equal(cpprof__custom_count(custom), 0);
    assert_int_equal(cpprof__custom_add(custom, &bytes, &record, NULL),
                     CPPROF_OK);
    assert_int_equal(cpprof__custom_add(custom, &bytes, &record, NULL),
                     CPPROF_INVALID);
    assert_int_equal(oom.n_live, 1);
    cpprof__custom_remove(custom, &bytes);
    assert_int_equal(oom.n_live, 0);
    cpprof__custom_free(custom);
}

/* ---- public calls without memory -------------------------------------- */

static struct cpprof_profile *buffers;
static struct cpprof_labels *labels;
static char path[64];

static enum cpprof_status
make_weighted(struct cpprof_error *error)
{
    return cpprof_profile_new_weighted("buffers", "space", "bytes", &buffers,
                                       error);
}

static enum cpprof_status
make_labels(struct cpprof_error *error)
{
    const struct cpprof_label label = {.key = "key", .str = "value"};

    return cpprof_labels_merge(NULL, &label, 1, &labels, error);
}

static enum cpprof_status
add_entry(struct cpprof_error *error)
{
    const struct cpprof_profile_entry entry = {.size = sizeof entry,
                                               .value = "bytes",
                                               .n_bytes = 5,
                                               .weight = 7,
                                               .labels = labels};
    enum cpprof_status status =
        cpprof_profile_add_entry(buffers, &entry, error);

    assert_int_equal(cpprof_profile_count(buffers), status == CPPROF_OK);
    return status;
}

static enum cpprof_status
write_to_path(struct cpprof_error *error)
{
    const struct cpprof_profile_options options = {
        .size = sizeof options, .symbolize = CPPROF_SYMBOLIZE_NONE};
    enum cpprof_status status =
        cpprof_profile_write_to_path(buffers, path, &options, error);

    assert_int_equal(unlink(path) == 0, status == CPPROF_OK);
    return status;
}

/* Allocation 1, 2, ... fails, until the call needs no more of them. */
static void
survives(enum cpprof_status (*call)(struct cpprof_error *error), long n_least)
{
    enum cpprof_status status;
    long n = -1;

    do {
        struct cpprof_error error = {0};

        oom_watch();
        oom.countdown = ++n;
        status = call(&error);
        oom.countdown = -1;
        if (status == CPPROF_OK)
            break;
        /* what a writer has no memory for is a write that failed */
        if (status != CPPROF_SYSTEM || error.sys != ENOMEM)
            assert_int_equal(status, CPPROF_NOMEM);
        assert_int_equal(oom.n_live, 0);
    } while (n < 1000);
    assert_in_range(n, n_least, 999);
}

static void
weighted_profile_survives_want_of_memory(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/cpprof-custom-%d", getpid());
    survives(make_weighted, 2);
    survives(make_labels, 1);
    survives(add_entry, 1);
    survives(write_to_path, 10);
    assert_int_equal(oom.n_live, 0);
    cpprof_labels_free(labels);
    cpprof_profile_remove_bytes(buffers, "bytes", 5);
}

/* ---- threads ---------------------------------------------------------- */

struct job {
    struct cpprof__custom *custom;
    uintptr_t first;
};

static int
drop_bytes(void *ctx, const void *data, size_t n)
{
    *(size_t *)ctx += n;
    return 0;
}

static void *
come_and_go(void *arg)
{
    const struct job *job = arg;
    uintptr_t i;

    for (i = 0; i < 20000; i++) {
        add(job->custom, job->first + i);
        if (i >= 100)
            drop(job->custom, job->first + i - 100);
    }
    return NULL;
}

static void
threads_add_and_remove_while_a_profile_is_written(void **state)
{
    const struct cpprof_profile_options options = {.symbolize =
                                                       CPPROF_SYMBOLIZE_NONE};
    struct cpprof__custom *custom = make();
    struct job jobs[4];
    pthread_t threads[4];
    size_t i, n_bytes = 0;

    (void)state;
    assert_int_equal(cpprof__tables_make(NULL), CPPROF_OK);
    for (i = 0; i < 4; i++) {
        jobs[i] = (struct job){custom, i << 32};
        assert_int_equal(
            pthread_create(&threads[i], NULL, come_and_go, &jobs[i]), 0);
    }
    for (i = 0; i < 20; i++)
        assert_int_equal(
            cpprof__custom_write(
                custom, &options,
                (struct cpprof_writer){.size = sizeof(struct cpprof_writer),
                                       .write = drop_bytes,
                                       .ctx = &n_bytes},
                NULL),
            CPPROF_OK);
    for (i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(cpprof__custom_count(custom), 400);
    assert_true(n_bytes > 0);
    cpprof__custom_free(custom);
}

static void
a_fork_in_the_lock_of_its_own_thread_goes_on(void **state)
{
    struct cpprof__own_lock lock = {0};

    (void)state;
    cpprof__own_lock_take(&lock);
    assert_false(cpprof__own_lock_in_child(&lock));
    assert_true(cpprof__own_lock_is_mine(&lock));
    cpprof__own_lock_give(&lock);
    assert_false(cpprof__own_lock_in_child(&lock));
}

static void *
take(void *lock)
{
    cpprof__own_lock_take(lock);
    return NULL;
}

static void
a_fork_in_the_lock_of_another_thread_frees_it(void **state)
{
    struct cpprof__own_lock lock = {0};
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, take, &lock), 0);
    pthread_join(thread, NULL);
    assert_false(cpprof__own_lock_take_until(&lock, 0));
    assert_true(cpprof__own_lock_in_child(&lock));
    assert_true(cpprof__own_lock_take_until(&lock, 0));
    cpprof__own_lock_give(&lock);
}

/* Whatever another thread was doing, the child can go on. */
static void
a_child_has_a_set_that_it_can_use(void **state)
{
    struct cpprof__custom *custom = make();
    struct job job = {custom, 0};
    pthread_t thread;
    int i;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, come_and_go, &job), 0);
    for (i = 0; i < 50; i++) {
        pid_t pid = fork();
        int status;

        if (!pid) {
            struct job own = {custom, (uintptr_t)1 << 40};
            size_t before;

            cpprof__custom_in_child(custom);
            before = cpprof__custom_count(custom);
            alarm(20);
            come_and_go(&own);
            /* Past what TSan does at an end: it knows of a thread here. */
            syscall(SYS_exit_group,
                    cpprof__custom_count(custom) != before + 100);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    pthread_join(thread, NULL);
    cpprof__custom_free(custom);
}

static enum cpprof_status
add_weight(struct cpprof__custom *custom, uintptr_t value, int64_t weight)
{
    const struct cpprof__custom_value v = {(void *)value, 0, false};
    const struct cpprof__stack_record r = {.values = {1, weight}, .stack = 1};

    return cpprof__custom_add(custom, &v, &r, NULL);
}

/* 2^62 of weights, whatever their signs are. */
static void
weights_that_do_not_add_up_are_refused(void **state)
{
    static const struct cpprof__value_type types[] = {{"x", "count"},
                                                      {"w", "bytes"}};
    struct cpprof__custom *custom = cpprof__custom_make(types, 2);
    const int64_t half = INT64_C(1) << 61;

    (void)state;
    assert_int_equal(add_weight(custom, 1, INT64_MIN), CPPROF_INVALID);
    assert_int_equal(add_weight(custom, 1, INT64_MAX), CPPROF_INVALID);
    assert_int_equal(add_weight(custom, 1, half), CPPROF_OK);
    assert_int_equal(add_weight(custom, 2, -half), CPPROF_OK);
    assert_int_equal(add_weight(custom, 3, 0), CPPROF_OK);
    assert_int_equal(add_weight(custom, 4, -1), CPPROF_INVALID);
    assert_int_equal(cpprof__custom_count(custom), 3);
    /* One that is not added because it is there weighs nothing. */
    drop(custom, 2);
    assert_int_equal(add_weight(custom, 1, half), CPPROF_INVALID);
    assert_int_equal(add_weight(custom, 2, half), CPPROF_OK);
    assert_int_equal(add_weight(custom, 4, 1), CPPROF_INVALID);
    cpprof__custom_free(custom);

    custom = make(); /* where weights are not looked at */
    assert_int_equal(add_weight(custom, 1, INT64_MAX), CPPROF_OK);
    assert_int_equal(add_weight(custom, 2, INT64_MIN), CPPROF_OK);
    cpprof__custom_free(custom);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_in_once),
        cmocka_unit_test(bytes_are_told_apart_by_what_they_are),
        cmocka_unit_test(any_order_of_adds_and_removes_keeps_the_set),
        cmocka_unit_test(bytes_without_memory_are_not_in),
        cmocka_unit_test(weighted_profile_survives_want_of_memory),
        cmocka_unit_test(threads_add_and_remove_while_a_profile_is_written),
        cmocka_unit_test(a_fork_in_the_lock_of_its_own_thread_goes_on),
        cmocka_unit_test(a_fork_in_the_lock_of_another_thread_frees_it),
        cmocka_unit_test(a_child_has_a_set_that_it_can_use),
        cmocka_unit_test(weights_that_do_not_add_up_are_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
