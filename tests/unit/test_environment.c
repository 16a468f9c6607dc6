/* SPDX-License-Identifier: MIT */
#include "collect/environment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct cpprof__environment env;
static struct cpprof_error error;

static void
all_words_are_understood(void **state)
{
    (void)state;
    assert_int_equal(
        cpprof__environment_parse("cpu=250,out=/tmp/%e.%p,engine=perf,"
                                  "depth=1024,symbolize=functions,labels=off",
                                  &env, &error),
        CPPROF_OK);
    assert_int_equal(env.plan.options.rate_hz, 250);
    assert_int_equal(env.plan.options.max_depth, 1024);
    assert_int_equal(env.plan.options.engine, CPPROF_ENGINE_PERF);
    assert_int_equal(env.plan.options.symbolize, CPPROF_SYMBOLIZE_FUNCTIONS);
    assert_int_equal(env.plan.options.flags, CPPROF_CPU_NO_LABELS);
    assert_string_equal(env.out, "/tmp/%e.%p");
    assert_string_equal(env.directory, "");
}

static void
what_is_not_said_has_a_default(void **state)
{
    (void)state;
    assert_int_equal(cpprof__environment_parse("cpu", &env, &error), CPPROF_OK);
    assert_int_equal(env.plan.options.rate_hz, 0);
    assert_int_equal(env.plan.options.engine, CPPROF_ENGINE_AUTO);
    assert_string_equal(env.out, "cpu.%p.pb.gz");
    assert_int_equal(
        cpprof__environment_parse("record=/x,,cpu=1,", &env, &error),
        CPPROF_OK);
    assert_string_equal(env.directory, "/x");
}

static void
wrong_word_is_named_in_the_error(void **state)
{
    static const char *const wrong[][2] = {
        {"cpu=0", "cpu=0"},
        {"cpu=10001", "cpu=10001"},
        {"cpu=-5", "cpu=-5"},
        {"cpu=1e3", "cpu=1e3"},
        {"cpu=99999999999999999999", "cpu=99999999999999999999"},
        {"depth=1025", "depth=1025"},
        {"depth=", "depth="},
        {"engine=best", "engine=best"},
        {"symbolize=yes", "symbolize=yes"},
        {"labels=1", "labels=1"},
        {"out=", "out="},
        {"record=", "record="},
        {"heat=5", "'heat'"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memset(&error, 0, sizeof error);
        assert_int_equal(cpprof__environment_parse(wrong[i][0], &env, &error),
                         CPPROF_INVALID);
        assert_non_null(strstr(error.text, wrong[i][1]));
        assert_null(strchr(error.text, '\n'));
    }
}

static void
endless_text_is_refused(void **state)
{
    static char text[3 * PATH_MAX];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    assert_int_equal(cpprof__environment_parse(text, &env, &error),
                     CPPROF_INVALID);
}

static void
path_is_expanded(void **state)
{
    char path[PATH_MAX], expected[PATH_MAX];

    (void)state;
    assert_true(cpprof__environment_path("a%%b.%p.%e.%x%", path, sizeof path));
    snprintf(expected, sizeof expected, "a%%b.%d.test_environment.%%x%%",
             (int)getpid());
    assert_string_equal(path, expected);
    assert_true(cpprof__environment_path("%t", path, sizeof path));
    assert_true(strlen(path) >= 10);
    assert_false(cpprof__environment_path("too long", path, 4));
    assert_string_equal(path, "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_words_are_understood),
        cmocka_unit_test(what_is_not_said_has_a_default),
        cmocka_unit_test(wrong_word_is_named_in_the_error),
        cmocka_unit_test(endless_text_is_refused),
        cmocka_unit_test(path_is_expanded),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
