/* SPDX-License-Identifier: MIT */
/* What the handler of the sampling signal makes of ticks at odd moments. */
#include "collect/signal/sample/handler.h"
#include "collect/signal/sample/sampler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <ucontext.h>

#define N_WORDS    1024
#define GENERATION 7

/* at_thread_exit() in threads/threads.c takes the slot away and then the
 * generation; a perf event may come between the two. */
static void
perf_tick_of_a_thread_that_has_lost_its_slot_is_left_out(void **state)
{
    siginfo_t info = {.si_code = POLL_IN, .si_fd = 5};
    struct cpprof__ring *ring = calloc(1, cpprof__ring_bytes(N_WORDS));
    ucontext_t context;

    (void)state;
    assert_non_null(ring);
    cpprof__ring_init(ring, N_WORDS);
    assert_int_equal(getcontext(&context), 0);
    cpprof__sampler.generation = GENERATION;
    cpprof__sampler.uses_perf = true;
    cpprof__sampler.ring = ring;
    cpprof__self.generation = GENERATION;
    cpprof__self.thread = NULL;
    errno = 99;
    cpprof__on_signal(CPPROF__SIGNAL, &info, &context);
    assert_int_equal(errno, 99);
    assert_int_equal(ring->head, 0);
    assert_int_equal(ring->lost, 0);
    assert_null(cpprof__self.thread);
    assert_int_equal(cpprof__self.generation, 0);
    cpprof__sampler.ring = NULL;
    free(ring);
}

#if defined __x86_64__
static uintptr_t frame;

__attribute__((noinline)) static void
note_frame(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    (void)info;
    (void)context;
    frame = (uintptr_t)__builtin_frame_address(0);
}

/* An emulator began handlers so: instructions that move 16 bytes end the
 * process then. */
static void
signal_on_a_stack_that_is_not_aligned_is_handled(void **state)
{
    siginfo_t info = {.si_code = SI_TKILL};
    register uintptr_t sp __asm__("rbx");

    (void)state;
    cpprof__libc_handler = note_frame;
    __asm__ volatile("mov %%rsp, %[sp]\n\t"
                     "sub $256, %%rsp\n\t"
                     "and $-16, %%rsp\n\t"
                     "sub $8, %%rsp\n\t"
                     "call *%[handler]\n\t"
                     "mov %[sp], %%rsp"
                     : [sp] "=&r"(sp)
                     : [handler] "r"(cpprof__on_signal), "D"(CPPROF__SIGNAL),
                       "S"(&info), "d"(NULL)
                     : "rax", "rcx", "r8", "r9", "r10", "r11", "cc", "memory");
    assert_int_not_equal(frame, 0);
    assert_int_equal(frame % 16, 0);
    cpprof__libc_handler = NULL;
}
#endif

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            perf_tick_of_a_thread_that_has_lost_its_slot_is_left_out),
#if defined __x86_64__
        cmocka_unit_test(signal_on_a_stack_that_is_not_aligned_is_handled),
#endif
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
