/* SPDX-License-Identifier: MIT */
/*
 * Without memory a profile of interpreted code is refused or fails, and nothing
 * crashes or leaks.
 */
#include "oom.h"

#include <cpprof/vm.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct script {
    struct cpprof_vm_thread *t;
    unsigned line;
};

static size_t
stack(void *thread, struct cpprof_vm_frame *frames, size_t max)
{
    const struct script *script = thread;
    size_t i;

    for (i = 0; i < 20 && i < max; i++)
        frames[i] =
            (struct cpprof_vm_frame){.function = (const char *)script + i,
                                     .line = (int32_t)(script->line + i)};
    return i;
}

static bool
describe(void *thread, const void *function, struct cpprof_vm_function *what)
{
    what->name = "f";
    what->file = "f.toy";
    return function != (const char *)thread + 3;
}

static const struct cpprof_vm_ops ops = {
    .size = sizeof ops, .name = "oom", .stack = stack, .describe = describe};

static size_t n_bytes;
static int n_open;

static int
take(void *ctx, const void *data, size_t n)
{
    n_bytes += n;
    return 0;
}

static int
done(void *ctx, int failed)
{
    n_open--;
    return 0;
}

static struct cpprof_vm *vm;

/* More than a profile makes. */
#define N_ALLOCATIONS 300

/* One profile of a hundred samples; each is forced by a tick of our own. */
static enum cpprof_status
profile(struct script *script, uint32_t flags)
{
    const struct cpprof_vm_options options = {
        .size = sizeof options, .rate_hz = 1, .flags = flags};
    struct cpprof_error error = {0};
    enum cpprof_status status;
    unsigned i;

    n_open++;
    status = cpprof_vm_start(
        &(struct cpprof_writer){sizeof(struct cpprof_writer), take, done, NULL},
        &options, &error);
    if (status != CPPROF_OK)
        return status;
    for (i = 0; i < 100; i++) {
        script->line = i;
        cpprof_vm_thread_safepoint(script->t);
    }
    return cpprof_vm_stop(&error);
}

static void
survives(uint32_t flags)
{
    struct script script = {0};
    enum cpprof_status status = CPPROF_NOMEM;
    long n, before, n_refused = 0;

    assert_int_equal(cpprof_vm_thread_new(vm, &script, &script.t, NULL), 0);
    cpprof_vm_thread_enter(script.t);
    profile(&script, flags); /* what is made once */
    oom_watch();
    before = oom.n_live;
    for (n = 0; n < N_ALLOCATIONS; n++) {
        oom.countdown = n;
        status = profile(&script, flags);
        oom.countdown = -1;
        assert_true(status == CPPROF_OK || status == CPPROF_NOMEM ||
                    status == CPPROF_SYSTEM);
        assert_int_equal(n_open, 0);
        n_refused += status != CPPROF_OK;
    }
    assert_in_range(n_refused, 10, N_ALLOCATIONS);
    assert_int_equal(status, CPPROF_OK);
    /* Two threads count, without a lock; a leak would be one each time. */
    assert_in_range(oom.n_live - before + 100, 0, 200);
    cpprof_vm_thread_enter(NULL);
    cpprof_vm_thread_free(script.t);
}

static void
stream_survives_without_memory(void **state)
{
    survives(0);
}

static void
merged_profile_survives_without_memory(void **state)
{
    survives(CPPROF_FLAG_MERGE);
}

static void
registration_survives_without_memory(void **state)
{
    struct cpprof_vm_thread *t = NULL;
    struct cpprof_vm *another = NULL;
    struct cpprof_error error;

    oom_watch();
    oom.countdown = 0;
    assert_int_equal(cpprof_vm_new(&ops, &another, &error), CPPROF_NOMEM);
    assert_null(another);
    assert_int_equal(cpprof_vm_thread_new(vm, NULL, &t, &error), CPPROF_NOMEM);
    assert_null(t);
    oom.countdown = -1;
    cpprof_vm_thread_free(NULL);
}

static void
incomplete_interpreter_is_refused(void **state)
{
    struct cpprof_vm_ops none = ops;
    struct cpprof_vm *another = NULL;
    struct cpprof_error error;

    none.describe = NULL;
    assert_int_equal(cpprof_vm_new(&none, &another, &error), CPPROF_INVALID);
    none = ops;
    none.size = offsetof(struct cpprof_vm_ops, line);
    assert_int_equal(cpprof_vm_new(&none, &another, &error), CPPROF_OK);
}

static void
run_loops_are_sixteen(void **state)
{
    unsigned i;

    for (i = 0; i < 16; i++)
        assert_true(cpprof_vm_add_run_loop(vm, &ops, 1));
    assert_false(cpprof_vm_add_run_loop(vm, &ops, 1));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(incomplete_interpreter_is_refused),
        cmocka_unit_test(registration_survives_without_memory),
        cmocka_unit_test(run_loops_are_sixteen),
        cmocka_unit_test(stream_survives_without_memory),
        cmocka_unit_test(merged_profile_survives_without_memory),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (cpprof_vm_new(&ops, &vm, NULL) != CPPROF_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
