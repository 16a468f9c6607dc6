/* SPDX-License-Identifier: MIT */
/*
 * A profile may end while a thread is anywhere in vm/profile/count.c, as it is
 * when it has lost its processor there: after every instruction of it the time
 * that is not charged yet is no more than what passed, and no less.
 */
#include "trap_flag.h"
#include "vm/profile/count.h"
#include "vm/profile/sample.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MS 1000000

static struct cpprof_vm *vm;
static struct cpprof_vm_thread *thread, *other;
static const int function;

static size_t
stack(void *unused, struct cpprof_vm_frame *frames, size_t max)
{
    frames[0] = (struct cpprof_vm_frame){.function = &function, .line = 1};
    return 1;
}

static bool
describe(void *unused, const void *what, struct cpprof_vm_function *function_)
{
    function_->name = "f";
    return true;
}

static const struct cpprof_vm_ops ops = {
    .size = sizeof ops, .name = "step", .stack = stack, .describe = describe};

static int
drop(void *ctx, const void *data, size_t n)
{
    return 0;
}

/* A tick or quantum of a second: none becomes full. */
static void
start(enum cpprof_vm_mode mode)
{
    const struct cpprof_vm_options options = {
        .size = sizeof options, .mode = mode, .rate_hz = 1};

    assert_int_equal(
        cpprof_vm_start(&(struct cpprof_writer){sizeof(struct cpprof_writer),
                                                drop, NULL, NULL},
                        &options, NULL),
        CPPROF_OK);
}

/* After each case, also one that failed. */
static int
end_ticks(void **state)
{
    trap_flag_off();
    cpprof_vm_thread_enter(NULL);
    return cpprof_vm_stop(NULL) != CPPROF_OK;
}

static uint64_t
now(void)
{
    return cpprof__now_ns(CLOCK_MONOTONIC);
}

/* ---- after every instruction ------------------------------------------- */

static struct {
    uint64_t since_ns; /* it cannot have run longer */
    uint64_t least_ns; /* it has run at least */
    unsigned n_steps, n_more, n_less;
} seen;

static void
look(int signal)
{
    uint64_t rest;

    if (cpprof__vm_session.lock.owner) /* a profile would not end here */
        return;
    rest = cpprof__vm_rest(cpprof__vm_inside(thread),
                           load_relaxed(&cpprof__vm_active), now());
    seen.n_steps++;
    seen.n_more += rest > now() - seen.since_ns;
    seen.n_less += rest < seen.least_ns;
}

static void
step(void (*call)(struct cpprof_vm_thread *), struct cpprof_vm_thread *t)
{
    struct sigaction action = {.sa_handler = look}, before;

    seen.n_steps = seen.n_more = seen.n_less = 0;
    sigaction(SIGTRAP, &action, &before);
    trap_flag_on();
    call(t);
    trap_flag_off();
    sigaction(SIGTRAP, &before, NULL);
    assert_in_range(seen.n_steps, 20, 100000);
    assert_int_equal(seen.n_more, 0);
    assert_int_equal(seen.n_less, 0);
}

static void
enter(struct cpprof_vm_thread *t)
{
    cpprof_vm_thread_enter(t);
}

/* ---- cases ------------------------------------------------------------- */

/* The thread is in the midst of something, and was so in an earlier profile. */
static void
start_in_the_midst(enum cpprof_vm_mode before, enum cpprof_vm_mode mode)
{
    start(before);
    cpprof_vm_thread_enter(thread);
    if (before == CPPROF_VM_MODE_SPAN)
        cpprof_vm_span_begin(thread);
    else
        cpprof_vm_thread_safepoint(thread);
    usleep(20 * MS / 1000);
    cpprof_vm_stop(NULL);
    seen.since_ns = now();
    start(mode);
    seen.least_ns = 0;
}

static void
time_of_an_earlier_profile_is_in_no_step_of_a_safepoint(void **state)
{
    start_in_the_midst(CPPROF_VM_MODE_TICK, CPPROF_VM_MODE_TICK);
    step(cpprof_vm_thread_safepoint, thread);
}

static void
wall_time_of_an_earlier_profile_is_in_no_step_of_cpu_time(void **state)
{
    start_in_the_midst(CPPROF_VM_MODE_SPAN, CPPROF_VM_MODE_CPU);
    step(cpprof_vm_thread_safepoint, thread);
}

static void
time_of_an_earlier_profile_is_in_no_step_of_a_begin(void **state)
{
    start_in_the_midst(CPPROF_VM_MODE_SPAN, CPPROF_VM_MODE_SPAN);
    step(cpprof_vm_span_begin_counted, thread);
}

static void
time_of_an_earlier_profile_is_in_no_step_of_an_end(void **state)
{
    start_in_the_midst(CPPROF_VM_MODE_SPAN, CPPROF_VM_MODE_SPAN);
    step(cpprof_vm_span_end_counted, thread);
}

/* 20 ms of a span, of which nothing is charged. */
static void
run_for_a_while(enum cpprof_vm_mode mode)
{
    start(mode);
    seen.since_ns = now();
    cpprof_vm_thread_enter(thread);
    cpprof_vm_span_begin(thread);
    usleep(20 * MS / 1000);
    seen.least_ns = 20 * MS;
}

static void
no_step_between_two_spans_has_less_or_more_than_passed(void **state)
{
    run_for_a_while(CPPROF_VM_MODE_SPAN);
    step(cpprof_vm_span_next_counted, thread);
}

static void
no_step_of_an_end_has_less_or_more_than_passed(void **state)
{
    run_for_a_while(CPPROF_VM_MODE_SPAN);
    step(cpprof_vm_span_end_counted, thread);
}

static void
no_step_of_a_yield_has_less_or_more_than_passed(void **state)
{
    run_for_a_while(CPPROF_VM_MODE_TICK);
    step(enter, other);
}

static void
no_step_of_a_resume_has_less_or_more_than_passed(void **state)
{
    run_for_a_while(CPPROF_VM_MODE_TICK);
    cpprof_vm_thread_enter(other);
    step(enter, thread);
}

static int
make_threads(void **state)
{
    return cpprof_vm_new(&ops, &vm, NULL) ||
           cpprof_vm_thread_new(vm, &vm, &thread, NULL) ||
           cpprof_vm_thread_new(vm, &vm, &other, NULL);
}

static int
free_threads(void **state)
{
    cpprof_vm_thread_free(thread);
    cpprof_vm_thread_free(other);
    return 0;
}

#define CASE(f) cmocka_unit_test_teardown(f, end_ticks)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(time_of_an_earlier_profile_is_in_no_step_of_a_safepoint),
        CASE(wall_time_of_an_earlier_profile_is_in_no_step_of_cpu_time),
        CASE(time_of_an_earlier_profile_is_in_no_step_of_a_begin),
        CASE(time_of_an_earlier_profile_is_in_no_step_of_an_end),
        CASE(no_step_between_two_spans_has_less_or_more_than_passed),
        CASE(no_step_of_an_end_has_less_or_more_than_passed),
        CASE(no_step_of_a_yield_has_less_or_more_than_passed),
        CASE(no_step_of_a_resume_has_less_or_more_than_passed),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_threads, free_threads);
}
