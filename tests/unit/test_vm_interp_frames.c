/* SPDX-License-Identifier: MIT */
/*
 * Stacks of a made-up interpreter, mixed. Its run loop and plumbing are
 * addresses that no code has, and its frames are those of a list.
 */
#include "collect/signal/tables/interp_frames.h"
#include "collect/signal/tables/scripts.h"
#include "vm/stacks/interp_frames.h"
#include "vm/state/vm.h"

#include <cpprof/vm.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* pcs, as they read in the tests: L in the run loop, p plumbing, others are
 * native code. */
#define LOOP     0x10000u
#define PLUMBING 0x20000u
#define NATIVE   0x30000u

#define MAX 1024

/* A frame of the script for each letter; upper case: an entry; '?': without a
 * name. */
static const char *script;

static size_t
no_stack(void *thread, struct cpprof_vm_frame *frames, size_t max)
{
    return 0;
}

static bool
describe(void *thread, const void *function, struct cpprof_vm_function *what)
{
    return false;
}

static void
peek(void *thread, cpprof_vm_visit *visit, void *ctx)
{
    const char *at;

    for (at = script; *at; at++) {
        const char name[2] = {*at | 0x20, 0};
        const struct cpprof_vm_peek frame = {
            .key = 100u + (unsigned char)name[0],
            .function = {.name = *at == '?' ? "later" : name, .file = "f.toy"},
            .line = 7,
            .flags = (*at < 'a' && *at != '?' ? CPPROF_VM_ENTRY : 0) |
                     (*at == '?' ? CPPROF_VM_UNNAMED : 0),
        };

        if (!visit(ctx, &frame))
            return;
    }
}

static unsigned n_interrupts;

static void
interrupt(void *thread)
{
    n_interrupts++;
}

static const struct cpprof_vm_ops ops = {
    .size = sizeof ops,
    .name = "mix",
    .stack = no_stack,
    .describe = describe,
    .interrupt = interrupt,
    .peek = peek,
};

static struct cpprof_vm *vm;
static struct cpprof_vm_thread *t;

static int
set_up(void **state)
{
    assert_int_equal(cpprof_vm_new(&ops, &vm, NULL), CPPROF_OK);
    assert_true(cpprof_vm_add_run_loop(vm, (void *)LOOP, 256));
    assert_true(cpprof_vm_add_plumbing(vm, (void *)PLUMBING, 256));
    assert_int_equal(cpprof_vm_thread_new(vm, NULL, &t, NULL), CPPROF_OK);
    cpprof_vm_thread_enter(t);
    return 0;
}

static size_t
native_stack(const char *text, uintptr_t *pcs)
{
    size_t n = 0;

    for (; text[n]; n++)
        pcs[n] = (text[n] == 'L'   ? LOOP
                  : text[n] == 'p' ? PLUMBING
                                   : NATIVE) +
                 (unsigned char)text[n];
    return n;
}

/* Native code as it was, "(NAME)" for the script's. */
static const char *
told(const uintptr_t *pcs, size_t n)
{
    static char text[8 * MAX];
    struct cpprof__script_location location;
    size_t i, used = 0;

    *text = 0;
    for (i = 0; i < n; i++) {
        if (!cpprof__is_script(pcs[i])) {
            used += (size_t)sprintf(text + used, "%c", (int)(pcs[i] & 0xff));
            continue;
        }
        assert_true(cpprof__scripts_read(&cpprof__scripts, pcs[i], &location));
        assert_string_equal(location.mapping, "[mix]");
        assert_string_equal(location.file, "f.toy");
        assert_int_equal(location.line, 7);
        used += (size_t)sprintf(text + used, "(%s)", location.name);
    }
    return text;
}

static const char *
mixed_stack(const char *native, const char *frames)
{
    enum cpprof__unwind_end end = CPPROF__UNWIND_ROOT;
    uintptr_t pcs[MAX];
    size_t n = native_stack(native, pcs);

    script = frames;
    assert_int_equal(cpprof__interp_ops->merge(pcs, &n, MAX, &end, false),
                     CPPROF__INTERP_MERGED);
    assert_int_equal(end, CPPROF__UNWIND_ROOT);
    return told(pcs, n);
}

/* ---- in place --------------------------------------------------------- */

static void
the_frames_of_a_script_take_the_location_of_its_run_loop(void **state)
{
    assert_string_equal(mixed_stack("abLcd", "xyZ"), "ab(x)(y)(z)cd");
    assert_string_equal(mixed_stack("L", "X"), "(x)");
}

static void
each_run_loop_has_its_own_frames_and_native_code_between_stays(void **state)
{
    assert_string_equal(mixed_stack("aLbcLdLe", "uVwxYZ"),
                        "a(u)(v)bc(w)(x)(y)d(z)e");
}

static void
plumbing_is_left_out(void **state)
{
    assert_string_equal(mixed_stack("pappLpbpLpcp", "XY"), "a(x)b(y)c");
}

static void
native_functions_that_the_script_knows_stand_under_their_code(void **state)
{
    /* h is called by x: native a and b are its code. */
    assert_string_equal(mixed_stack("abLc", "hX"), "ab(h)(x)c");
    /* And one that the host called, under all. */
    assert_string_equal(mixed_stack("aLbc", "Xh"), "a(x)(h)bc");
}

static void
where_entries_and_run_loops_differ_all_frames_are_together(void **state)
{
    assert_string_equal(mixed_stack("aLbLc", "xyZ"), "a(x)(y)(z)c");
    assert_string_equal(mixed_stack("aLc", "XYZ"), "a(x)(y)(z)c");
    assert_string_equal(mixed_stack("aLbLpLcd", "xy"), "a(x)(y)cd");
}

static void
native_stacks_and_idle_scripts_stay_as_they_are(void **state)
{
    enum cpprof__unwind_end end = CPPROF__UNWIND_ROOT;
    uintptr_t pcs[MAX];
    size_t n = native_stack("abpc", pcs);

    script = "X";
    assert_int_equal(cpprof__interp_ops->merge(pcs, &n, MAX, &end, false),
                     CPPROF__INTERP_NONE);
    assert_string_equal(told(pcs, n), "abpc");
    n = native_stack("aLc", pcs);
    script = "";
    assert_int_equal(cpprof__interp_ops->merge(pcs, &n, MAX, &end, false),
                     CPPROF__INTERP_NONE);
    assert_string_equal(told(pcs, n), "aLc");
    script = "X";
    cpprof_vm_thread_enter(NULL);
    assert_int_equal(cpprof__interp_ops->merge(pcs, &n, MAX, &end, false),
                     CPPROF__INTERP_NONE);
    cpprof_vm_thread_enter(t);
}

static void
what_is_cut_off_is_told(void **state)
{
    enum cpprof__unwind_end end = CPPROF__UNWIND_ROOT;
    uintptr_t pcs[MAX];
    size_t n = native_stack("aLbcd", pcs);

    script = "xyZ";
    assert_int_equal(cpprof__interp_ops->merge(pcs, &n, 5, &end, false),
                     CPPROF__INTERP_MERGED);
    assert_int_equal(end, CPPROF__UNWIND_DEPTH);
    assert_string_equal(told(pcs, n), "a(x)(y)(z)b");
}

static void
a_script_deeper_than_there_is_room_for_is_cut(void **state)
{
    enum cpprof__unwind_end end = CPPROF__UNWIND_ROOT;
    static char deep[3 * MAX];
    uintptr_t pcs[MAX];
    size_t n = native_stack("aLb", pcs);

    memset(deep, 'x', sizeof deep - 1);
    script = deep;
    assert_int_equal(cpprof__interp_ops->merge(pcs, &n, MAX, &end, false),
                     CPPROF__INTERP_MERGED);
    assert_int_equal(n, MAX);
    assert_int_equal(end, CPPROF__UNWIND_DEPTH);
    assert_true(cpprof__is_script(pcs[1]));
}

static void
a_name_that_comes_later_counts_for_what_was_seen_before(void **state)
{
    uintptr_t pcs[MAX];
    enum cpprof__unwind_end end = CPPROF__UNWIND_ROOT;
    size_t n = native_stack("L", pcs);
    /* Of the same key, which the test makes of the letter. */
    const struct cpprof__script_location named = {.mapping = "[mix]",
                                                  .name = "known",
                                                  .system_name = "",
                                                  .file = "f.toy",
                                                  .line = 7,
                                                  .key = 100u + ('?' | 0x20),
                                                  .has_name = true};

    t->due = 0;
    script = "?";
    assert_int_equal(cpprof__interp_ops->merge(pcs, &n, MAX, &end, false),
                     CPPROF__INTERP_MERGED);
    assert_string_equal(told(pcs, n), "(later)");
    assert_int_equal(t->due, 1); /* a safepoint is to tell it */
    cpprof__scripts_add(&cpprof__scripts, &named);
    assert_string_equal(told(pcs, n), "(known)");
    cpprof_vm_thread_poll(t);
    assert_int_equal(t->due, 0);
    assert_string_equal(told(pcs, n), "(known)");
}

/* ---- put off ---------------------------------------------------------- */

static struct {
    unsigned n;
    uint64_t cookie, value;
    bool is_own;
    enum cpprof__unwind_end end;
    char text[256];
} taken;

static void
take(uint64_t cookie, uint64_t value, uintptr_t *pcs, size_t n,
     enum cpprof__unwind_end end, bool is_own)
{
    taken.n++;
    taken.cookie = cookie;
    taken.value = value;
    taken.is_own = is_own;
    taken.end = end;
    snprintf(taken.text, sizeof taken.text, "%s", told(pcs, n));
}

static const struct cpprof__deferred_sink sink = {take};

static bool
defer(const char *native, uint64_t cookie, uint64_t value)
{
    enum cpprof__unwind_end end = CPPROF__UNWIND_BROKEN;
    uintptr_t pcs[MAX];
    size_t n = native_stack(native, pcs);
    struct cpprof__deferred_stack stack = {&sink, cookie, value, pcs, n, end};

    assert_int_equal(cpprof__interp_ops->merge(pcs, &n, MAX, &end, true),
                     CPPROF__INTERP_LATER);
    return cpprof__interp_ops->defer(&stack);
}

static void
begin(void)
{
    memset(&taken, 0, sizeof taken);
    t->due = 0;
    n_interrupts = 0;
    script = "xY";
}

static void
in_a_handler_a_stack_waits_for_the_safepoint(void **state)
{
    begin();
    assert_true(defer("abLc", 11, 2));
    assert_int_equal(n_interrupts, 1);
    assert_int_equal(taken.n, 0);
    cpprof_vm_thread_poll(t);
    assert_int_equal(taken.n, 1);
    assert_int_equal(taken.cookie, 11);
    assert_int_equal(taken.value, 2);
    assert_int_equal(taken.end, CPPROF__UNWIND_BROKEN);
    assert_true(taken.is_own);
    assert_string_equal(taken.text, "ab(x)(y)c");
    cpprof_vm_thread_safepoint(t);
    assert_int_equal(taken.n, 1);
}

static void
values_of_a_stack_that_comes_again_add_up(void **state)
{
    begin();
    assert_true(defer("aL", 1, 2));
    assert_true(defer("aL", 1, 3));
    cpprof_vm_thread_poll(t);
    assert_int_equal(taken.n, 1);
    assert_int_equal(taken.value, 5);
    assert_true(defer("aL", 1, 2));
    assert_true(defer("aL", 2, 3)); /* another cookie: by itself */
    assert_true(defer("bL", 2, 3));
    cpprof_vm_thread_poll(t);
    assert_int_equal(taken.n, 4);
    assert_string_equal(taken.text, "b(x)(y)");
}

static void
all_come_until_there_is_no_room(void **state)
{
    unsigned n = 0, i;

    begin();
    while (n < 100000 && defer("abcdLefghijk", n, 1))
        n++;
    assert_in_range(n, 1000, 99999);
    cpprof_vm_thread_poll(t);
    assert_int_equal(taken.n, n);
    assert_int_equal(taken.cookie, n - 1);
    for (i = 0; i < 3; i++) { /* both buffers are empty again */
        assert_true(defer("aL", 1, 1));
        cpprof_vm_thread_poll(t);
    }
    assert_int_equal(taken.n, n + 3);
}

static void *
flush_from_outside(void *arg)
{
    cpprof__interp_flush();
    return arg;
}

static void
another_thread_gives_it_as_it_is(void **state)
{
    pthread_t thread;

    begin();
    assert_true(defer("abLc", 1, 2));
    assert_int_equal(pthread_create(&thread, NULL, flush_from_outside, NULL),
                     0);
    pthread_join(thread, NULL);
    assert_int_equal(taken.n, 1);
    assert_false(taken.is_own);
    assert_string_equal(taken.text, "abLc");
    /* Its own, mixed. */
    assert_true(defer("abLc", 1, 2));
    cpprof__interp_flush();
    assert_int_equal(taken.n, 2);
    assert_string_equal(taken.text, "ab(x)(y)c");
}

static void
a_thread_that_ends_leaves_nothing(void **state)
{
    begin();
    assert_true(defer("aLc", 1, 2));
    cpprof_vm_thread_free(t);
    assert_int_equal(taken.n, 1);
    assert_int_equal(cpprof_vm_thread_new(vm, NULL, &t, NULL), CPPROF_OK);
    cpprof_vm_thread_enter(t);
    cpprof_vm_thread_safepoint(t);
    assert_int_equal(taken.n, 1);
}

static void
a_forked_child_has_nothing_of_its_parent(void **state)
{
    int status = 0;
    pid_t child;

    begin();
    assert_true(defer("aLc", 1, 2));
    child = fork();
    if (!child) {
        cpprof__vm_mix_fork_child();
        cpprof_vm_thread_safepoint(t);
        if (taken.n)
            _exit(1);
        if (!defer("aLc", 1, 2))
            _exit(2);
        cpprof_vm_thread_safepoint(t);
        _exit(taken.n == 1 ? 0 : 3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    cpprof_vm_thread_safepoint(t);
    assert_int_equal(taken.n, 1);
}

/* ---- left by a jump ---------------------------------------------------- */

static jmp_buf way_out;

static void
jump(void *thread, cpprof_vm_visit *visit, void *ctx)
{
    longjmp(way_out, 1);
}

static void
jumps_out_of_it_use_nothing_up(void **state)
{
    static const struct cpprof_vm_ops jumps = {.size = sizeof jumps,
                                               .name = "jumps",
                                               .stack = no_stack,
                                               .describe = describe,
                                               .peek = jump,
                                               .flags = CPPROF_VM_SIGNAL_SAFE};
    enum cpprof__unwind_end end = CPPROF__UNWIND_ROOT;
    static struct cpprof_vm *other;
    static uintptr_t pcs[1];
    static unsigned i;
    size_t n = 1;

    assert_int_equal(cpprof_vm_new(&jumps, &other, NULL), CPPROF_OK);
    assert_true(cpprof_vm_add_run_loop(other, (void *)0x50000, 1));
    for (i = 0; i < 100; i++) {
        pcs[0] = 0x50000;
        if (!setjmp(way_out))
            cpprof__interp_ops->merge(pcs, &n, 1, &end, false);
        cpprof__interp_abandoned();
    }
    assert_string_equal(mixed_stack("aLb", "X"), "a(x)b");
}

/* ---- by example ------------------------------------------------------- */

static struct cpprof_vm *learner;
static bool has_learnt;

static __attribute__((noinline)) void
probe(const void *outer)
{
    has_learnt = cpprof_vm_learn_run_loop(learner, (const void *)probe, outer);
    __asm__ volatile("");
}

static __attribute__((noinline)) void
lead_in(void (*f)(const void *), const void *outer)
{
    f(outer);
    __asm__ volatile("");
}

/* Larger than the others. */
static __attribute__((noinline)) void
largest(const void *outer)
{
    __asm__ volatile(".skip 4000, 0x90");
    lead_in(probe, outer);
    __asm__ volatile("");
}

static __attribute__((noinline)) void
start_interpreter(const void *outer)
{
    largest(outer);
    __asm__ volatile("");
}

static void
what_stands_between_a_probe_and_its_host_is_learnt(void **state)
{
    static const struct cpprof_vm_ops plain = {.size = sizeof plain,
                                               .name = "learner",
                                               .stack = no_stack,
                                               .describe = describe};
    const uintptr_t loop = (uintptr_t)largest;

    assert_int_equal(cpprof_vm_new(&plain, &learner, NULL), CPPROF_OK);
    start_interpreter(
        (const void *)what_stands_between_a_probe_and_its_host_is_learnt);
    assert_true(has_learnt);
    assert_true(cpprof__vm_is_run_loop(learner, loop + 2000));
    assert_false(cpprof__vm_is_run_loop(learner, (uintptr_t)lead_in));
    assert_true(cpprof__vm_is_plumbing(learner, (uintptr_t)lead_in));
    assert_true(cpprof__vm_is_plumbing(learner, (uintptr_t)start_interpreter));
    assert_false(cpprof__vm_is_plumbing(learner, (uintptr_t)probe));
    /* Where the host is not on the stack nothing is. */
    start_interpreter((const void *)native_stack);
    assert_false(has_learnt);
    /* What is known is not learnt again. */
    assert_int_equal(learner->n_run_loops, 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            the_frames_of_a_script_take_the_location_of_its_run_loop),
        cmocka_unit_test(
            each_run_loop_has_its_own_frames_and_native_code_between_stays),
        cmocka_unit_test(plumbing_is_left_out),
        cmocka_unit_test(
            native_functions_that_the_script_knows_stand_under_their_code),
        cmocka_unit_test(
            where_entries_and_run_loops_differ_all_frames_are_together),
        cmocka_unit_test(native_stacks_and_idle_scripts_stay_as_they_are),
        cmocka_unit_test(what_is_cut_off_is_told),
        cmocka_unit_test(a_script_deeper_than_there_is_room_for_is_cut),
        cmocka_unit_test(
            a_name_that_comes_later_counts_for_what_was_seen_before),
        cmocka_unit_test(in_a_handler_a_stack_waits_for_the_safepoint),
        cmocka_unit_test(values_of_a_stack_that_comes_again_add_up),
        cmocka_unit_test(all_come_until_there_is_no_room),
        cmocka_unit_test(another_thread_gives_it_as_it_is),
        cmocka_unit_test(a_thread_that_ends_leaves_nothing),
        cmocka_unit_test(a_forked_child_has_nothing_of_its_parent),
        cmocka_unit_test(jumps_out_of_it_use_nothing_up),
        cmocka_unit_test(what_stands_between_a_probe_and_its_host_is_learnt),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, NULL);
}
