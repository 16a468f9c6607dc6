/* SPDX-License-Identifier: MIT */
/*
 * What a borrowed thread does in a process (cli/attach/guest.h), in this one:
 * the code is copied to a place of its own, as it is there.
 */
#include "cli/attach/guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined __x86_64__ && defined __LP64__

extern bool
cpprof__guest_borrowed(struct cpprof__guest *g)
    __attribute__((visibility("hidden")));

static struct cpprof__guest *seat;

static int
refuses(char *message, size_t size)
{
    snprintf(message, size, "no");
    return EBUSY;
}

/* The borrowed thread gets its processor back when the other has done all. */
static int
create_and_lose_the_processor(unsigned long *thread, void *attr,
                              void *(*f)(void *), void *arg)
{
    int failed = pthread_create((pthread_t *)thread, attr, f, arg);

    while (!failed && __atomic_load_n(&seat->state, __ATOMIC_ACQUIRE) !=
                          CPPROF__GUEST_DONE)
        usleep(1000);
    return failed;
}

static int
create_nothing(unsigned long *thread, void *attr, void *(*f)(void *), void *arg)
{
    return EAGAIN;
}

static void
borrow(int (*create)(unsigned long *, void *, void *(*)(void *), void *))
{
    size_t n = (size_t)(__stop_cpprof_guest - __start_cpprof_guest);
    char *area = mmap(NULL, GUEST_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const char *code = (const char *)(uintptr_t)cpprof__guest_borrowed;
    bool (*borrowed)(struct cpprof__guest * g);
    sigset_t mask;

    assert_true(area != MAP_FAILED);
    assert_true(n <= GUEST_CODE_BYTES);
    memcpy(area, __start_cpprof_guest, n);
    seat = (void *)(uintptr_t)cpprof__guest_seat((uintptr_t)area, 0);
    seat->pthread_create = create;
    seat->attr_init = (int (*)(void *))(uintptr_t)pthread_attr_init;
    seat->attr_setstacksize =
        (int (*)(void *, size_t))(uintptr_t)pthread_attr_setstacksize;
    seat->pthread_detach = pthread_detach;
    seat->pthread_self = pthread_self;
    seat->errno_location = __errno_location;
    seat->known = (void *)(uintptr_t)refuses;
    seat->state = CPPROF__GUEST_PREPARED;
    borrowed = (void *)(uintptr_t)(area + (code - __start_cpprof_guest));
    sigprocmask(SIG_SETMASK, NULL, &mask);
    borrowed(seat);
    sigprocmask(SIG_SETMASK, &mask, NULL);
}

static void
end(void)
{
    munmap((char *)seat - GUEST_CODE_BYTES, GUEST_BYTES);
}

static void
a_thread_that_has_answered_first_is_not_overruled(void **state)
{
    (void)state;
    borrow(create_and_lose_the_processor);
    assert_int_equal(seat->state, CPPROF__GUEST_DONE);
    assert_int_equal(seat->result, EBUSY);
    assert_string_equal(seat->message, "no");
    end();
}

static void
a_thread_that_cannot_be_made_is_told(void **state)
{
    (void)state;
    borrow(create_nothing);
    assert_int_equal(seat->state, CPPROF__GUEST_NO_THREAD);
    assert_int_equal(seat->result, EAGAIN);
    end();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_has_answered_first_is_not_overruled),
        cmocka_unit_test(a_thread_that_cannot_be_made_is_told),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int
main(void)
{
    puts("1..0 # SKIP not known on this processor");
    return 0;
}

#endif
