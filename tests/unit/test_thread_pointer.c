/* SPDX-License-Identifier: MIT */
/* Storage that libc has made is told from what a program made itself, by either
 * way to read the thread pointer, and nothing is touched on the way. */
#include "collect/signal/sample/thread_pointer.h"

#include "arch/regs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *
ask(void *answer)
{
    *(bool *)answer = cpprof__thread_pointer_is_libcs();
    return NULL;
}

#if defined __x86_64__
static char zeros[65536];

/* The answer with another thread pointer for a moment. */
static __attribute__((optimize("no-stack-protector"))) bool
answer_with(uintptr_t pointer)
{
    uintptr_t own = cpprof__thread_pointer(false);
    bool answer;

    cpprof__syscall(SYS_arch_prctl, ARCH_SET_FS, (long)pointer, 0, 0, 0, 0);
    answer = cpprof__thread_pointer_is_libcs();
    cpprof__syscall(SYS_arch_prctl, ARCH_SET_FS, (long)own, 0, 0, 0, 0);
    return answer;
}
#endif

static void
check(unsigned long hwcap2)
{
    pthread_t thread;
    bool is_libcs = false;

    cpprof__thread_pointer_learn(hwcap2);
    assert_true(cpprof__thread_pointer_is_libcs());
    pthread_create(&thread, NULL, ask, &is_libcs);
    pthread_join(thread, NULL);
    assert_true(is_libcs);
#if defined __x86_64__
    assert_false(answer_with(0));
    assert_false(answer_with(0x7000));
    assert_false(answer_with((uintptr_t)zeros + sizeof zeros / 2));
    assert_true(answer_with(cpprof__thread_pointer(false)));
#endif
}

static void
a_pointer_that_an_instruction_reads(void **state)
{
    (void)state;
    check(getauxval(AT_HWCAP2));
}

static void
a_pointer_that_the_kernel_tells(void **state)
{
    (void)state;
    check(0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pointer_that_an_instruction_reads),
        cmocka_unit_test(a_pointer_that_the_kernel_tells),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
