/* SPDX-License-Identifier: MIT */
/* Legacy profiles while memory runs out: whichever allocation fails, reading
 * says so and keeps nothing. */
#include <cpprof/pprof/profile.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "oom.h"

/* Reading `text` must fail for every allocation that does, and then work. */
static void
assert_every_failure_is_told(const char *data, size_t n)
{
    enum cpprof_status status = CPPROF_NOMEM;
    int failing;

    for (failing = 0; status != CPPROF_OK; failing++) {
        struct cpprof_error error = {0};
        struct pprof_profile *p = NULL;

        assert_true(failing < 1000);
        oom_watch();
        oom.countdown = failing;
        status = pprof_read_data(data, n, NULL, &p, &error);
        oom.countdown = -1;
        if (status != CPPROF_OK)
            assert_int_equal(status, CPPROF_NOMEM);
        assert_true((p != NULL) == (status == CPPROF_OK));
        pprof_free(p);
        assert_int_equal(oom.n_live, 0);
    }
    assert_true(failing > 10);
}

/* 32-bit words, little endian: the header, two samples, the end. */
#define CPU_PROFILE                                                            \
    "\0\0\0\0\3\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"                                 \
    "\1\0\0\0\2\0\0\0\x10\0\0\0\x21\0\0\0"                                     \
    "\2\0\0\0\2\0\0\0\x11\0\0\0\x41\0\0\0"                                     \
    "\0\0\0\0\1\0\0\0\0\0\0\0"                                                 \
    "\nMAPPED_LIBRARIES:\n"                                                    \
    "lib=/usr/lib\n"                                                           \
    "14-18: $lib/b.so (@4) abcd\n"                                             \
    "20-28: /bin/demo (deleted)\n"

static void
cpu_profile_and_its_maps(void **state)
{
    static const char data[] = CPU_PROFILE;

    (void)state;
    assert_every_failure_is_told(data, sizeof data - 1);
}

static void
names_in_front_of_a_profile(void **state)
{
    static const char data[] = "--- symbol\nbinary=/bin/demo\n"
                               "0x10 outer--inner\n0x20 other\n---\n"
                               "--- profile\n" CPU_PROFILE;

    (void)state;
    assert_every_failure_is_told(data, sizeof data - 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_profile_and_its_maps),
        cmocka_unit_test(names_in_front_of_a_profile),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
