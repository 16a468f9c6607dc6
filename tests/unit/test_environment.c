/* SPDX-License-Identifier: MIT */
/*
 * The variable CPPROF: what each word sets, what is refused, and file names.
 */
#include "collect/process/environment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static enum cpprof_status
parse(const char *text, struct cpprof__environment *env,
      struct cpprof_error *error)
{
    memset(env, 0, sizeof *env);
    return cpprof__environment_parse(text, env, error);
}

static struct cpprof__environment env;
static struct cpprof_error error;

static void
all_words_are_understood(void **state)
{
    (void)state;
    assert_int_equal(parse("cpu=250,out=/tmp/%e.%p,engine=perf,"
                           "depth=1024,symbolize=functions,labels=off",
                           &env, &error),
                     CPPROF_OK);
    assert_int_equal(env.cpu.rate_hz, 250);
    assert_int_equal(env.cpu.max_depth, 1024);
    assert_int_equal(env.cpu.engine, CPPROF_ENGINE_PERF);
    assert_int_equal(env.cpu.symbolize, CPPROF_SYMBOLIZE_FUNCTIONS);
    assert_int_equal(env.cpu.flags, CPPROF_FLAG_NO_LABELS);
    assert_string_equal(env.out, "/tmp/%e.%p");
    assert_string_equal(env.directory, "");
}

static void
what_is_not_said_has_a_default(void **state)
{
    (void)state;
    assert_int_equal(parse("cpu", &env, &error), CPPROF_OK);
    assert_int_equal(env.cpu.rate_hz, 0);
    assert_int_equal(env.cpu.engine, CPPROF_ENGINE_AUTO);
    assert_int_equal(env.kinds, CPPROF__KIND_CPU);
    assert_string_equal(env.out, "%k.%p.pb.gz");
    assert_int_equal(parse("depth=9", &env, &error), CPPROF_OK);
    assert_int_equal(env.kinds, CPPROF__KIND_CPU);
    assert_int_equal(parse("record=/x,,cpu=1,", &env, &error), CPPROF_OK);
    assert_string_equal(env.directory, "/x");
}

static void
kinds_are_those_that_are_named(void **state)
{
    static const struct {
        const char *text;
        uint32_t kinds;
        int64_t rate;
    } cases[] = {
        {"heap", CPPROF__KIND_HEAP, 524288},
        {"heap=512k", CPPROF__KIND_HEAP, 524288},
        {"heap=3M,out=x", CPPROF__KIND_HEAP, 3 << 20},
        {"heap=1g", CPPROF__KIND_HEAP, 1 << 30},
        {"heap=1", CPPROF__KIND_HEAP, 1},
        {"heap=0", 0, 0},
        {"heap,cpu", CPPROF__KIND_HEAP | CPPROF__KIND_CPU, 524288},
        {"cpu=99,heap=64k", CPPROF__KIND_HEAP | CPPROF__KIND_CPU, 65536},
        {"cpu,heap=0", CPPROF__KIND_CPU, 0},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i].text, &env, &error), CPPROF_OK);
        assert_int_equal(env.kinds, cases[i].kinds);
        assert_int_equal(env.heap_rate, cases[i].rate);
    }
}

static void
heap_words_are_understood(void **state)
{
    (void)state;
    assert_int_equal(parse("heap,peak=on,labels=on,debug=1,"
                           "symbolize=none",
                           &env, &error),
                     CPPROF_OK);
    assert_int_equal(env.heap.flags, CPPROF_FLAG_PEAK | CPPROF_FLAG_LABELS);
    assert_int_equal(env.heap.debug, 1);
    assert_int_equal(env.heap.symbolize, CPPROF_SYMBOLIZE_NONE);
    assert_int_equal(parse("heap", &env, &error), CPPROF_OK);
    assert_int_equal(env.heap.flags, 0);
    assert_int_equal(env.cpu.flags, 0);
}

static void
waits_in_progress_come_when_asked_for(void **state)
{
    (void)state;
    assert_int_equal(parse("block,inprogress=on", &env, &error), CPPROF_OK);
    assert_int_equal(env.others.flags, CPPROF_FLAG_IN_PROGRESS);
    assert_int_equal(parse("block,inprogress=on,inprogress=off", &env, &error),
                     CPPROF_OK);
    assert_int_equal(env.others.flags, 0);
}

static void
kinds_of_waits_have_rates(void **state)
{
    static const struct {
        const char *text;
        uint32_t kinds;
        int64_t block;
        uint32_t mutex, wall;
    } cases[] = {
        {"block", CPPROF__KIND_BLOCK, 10000, 0, 0},
        {"block=1", CPPROF__KIND_BLOCK, 1, 0, 0},
        {"cpu,block=0", CPPROF__KIND_CPU, 0, 0, 0},
        {"mutex", CPPROF__KIND_MUTEX, 0, 1, 0},
        {"mutex=100", CPPROF__KIND_MUTEX, 0, 100, 0},
        {"mutex=0", 0, 0, 0, 0},
        {"wall", CPPROF__KIND_WALL, 0, 0, 0},
        {"offcpu=20", CPPROF__KIND_OFF_CPU, 0, 0, 20},
        {"goroutine", CPPROF__KIND_THREADS, 0, 0, 0},
        {"threads", CPPROF__KIND_THREADS, 0, 0, 0},
        {"threadcreate", CPPROF__KIND_THREADCREATE, 0, 0, 0},
        {"heapleak", CPPROF__KIND_HEAPLEAK, 0, 0, 0},
        {"threadleak", CPPROF__KIND_THREADLEAK, 0, 0, 0},
        {"block,wall=5,mutex=2",
         CPPROF__KIND_BLOCK | CPPROF__KIND_MUTEX | CPPROF__KIND_WALL, 10000, 2,
         5},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i].text, &env, &error), CPPROF_OK);
        assert_int_equal(env.kinds, cases[i].kinds);
        assert_int_equal(env.block_rate, cases[i].block);
        assert_int_equal(env.mutex_fraction, cases[i].mutex);
        assert_int_equal(env.wall.rate_hz, cases[i].wall);
    }
}

/* Alone it is no profile; beside others it changes nothing of them. */
static void
deadlocks_are_looked_for_beside_profiles(void **state)
{
    static const struct {
        const char *text;
        uint32_t kinds;
        bool looks, aborts;
    } cases[] = {
        {"deadlock", 0, true, false},
        {"deadlock=report", 0, true, false},
        {"deadlock=abort", 0, true, true},
        {"deadlock=0", CPPROF__KIND_CPU, false, false},
        {"deadlock=report,cpu", CPPROF__KIND_CPU, true, false},
        {"probes,context", 0, false, false},
        {"probes,cpu", CPPROF__KIND_CPU, false, false},
        {"http=:1,deadlock=abort", CPPROF__KIND_HEAP, true, true},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i].text, &env, &error), CPPROF_OK);
        assert_int_equal(env.kinds, cases[i].kinds);
        assert_int_equal(env.looks_for_deadlocks, cases[i].looks);
        assert_int_equal(env.aborts_at_deadlocks, cases[i].aborts);
    }
    assert_int_equal(parse("deadlock=maybe", &env, &error), CPPROF_INVALID);
    assert_string_equal(error.text, "CPPROF: deadlock=maybe is not report or "
                                    "abort; not profiling");
}

static void
words_of_all_kinds_reach_all_of_them(void **state)
{
    (void)state;
    assert_int_equal(parse("block,offcpu,labels=on,legacy=on,debug=2,"
                           "depth=7,symbolize=functions",
                           &env, &error),
                     CPPROF_OK);
    assert_int_equal(env.others.flags, CPPROF_FLAG_LABELS | CPPROF_FLAG_LEGACY);
    assert_int_equal(env.others.debug, 2);
    assert_int_equal(env.others.symbolize, CPPROF_SYMBOLIZE_FUNCTIONS);
    assert_int_equal(env.heap.flags, CPPROF_FLAG_LABELS | CPPROF_FLAG_LEGACY);
    assert_int_equal(env.cpu.flags, CPPROF_FLAG_LEGACY);
    assert_int_equal(env.wall.flags, CPPROF_FLAG_OFF_CPU);
    assert_int_equal(env.wall.max_depth, 7);
    assert_int_equal(env.wall.symbolize, CPPROF_SYMBOLIZE_FUNCTIONS);
    assert_int_equal(parse("wall,labels=off,legacy=off", &env, &error),
                     CPPROF_OK);
    assert_int_equal(env.wall.flags, CPPROF_FLAG_NO_LABELS);
    assert_int_equal(env.cpu.flags, CPPROF_FLAG_NO_LABELS);
    assert_int_equal(env.others.flags, 0);
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
        {"heap=x", "heap=x"},
        {"heap=-1", "heap=-1"},
        {"heap=5kk", "heap=5kk"},
        {"heap=1025g", "heap=1025g"},
        {"heap=99999999999999999999", "heap=99999999999999999999"},
        {"peak=1", "peak=1"},
        {"debug=3", "debug=3"},
        {"debug=", "debug="},
        {"block=x", "block=x"},
        {"block=-1", "block=-1"},
        {"mutex=1.5", "mutex=1.5"},
        {"wall=0", "wall=0"},
        {"offcpu=1001", "offcpu=1001"},
        {"wall,offcpu", "offcpu beside"},
        {"goroutine=1", "goroutine=1"},
        {"legacy", "legacy="},
        {"goroutine,record=/x", "record= takes"},
        {"inprogress=1", "inprogress=1"},
        {"block,inprogress=on,record=/x", "inprogress=on beside record="},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memset(&error, 0, sizeof error);
        assert_int_equal(parse(wrong[i][0], &env, &error), CPPROF_INVALID);
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
    assert_int_equal(parse(text, &env, &error), CPPROF_INVALID);
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

static void
expect_pattern(const char *text, const char *kind, const char *expected)
{
    char pattern[PATH_MAX];

    assert_int_equal(parse(text, &env, &error), CPPROF_OK);
    assert_int_equal(
        cpprof__environment_pattern(&env, kind, pattern, sizeof pattern, NULL),
        CPPROF_OK);
    assert_string_equal(pattern, expected);
}

static void
kinds_get_files_of_their_own(void **state)
{
    char pattern[8];

    (void)state;
    expect_pattern("cpu", "cpu", "cpu.%p.pb.gz");
    expect_pattern("heap", "heap", "heap.%p.pb.gz");
    expect_pattern("heap,out=x.pb.gz", "heap", "x.pb.gz");
    expect_pattern("cpu,heap,out=x.pb.gz", "heap", "x.heap.pb.gz");
    expect_pattern("cpu,heap,out=x.y", "cpu", "x.y.cpu");
    expect_pattern("cpu,heap,out=a/.pb.gz", "cpu", "a/.pb.cpu.gz");
    expect_pattern("cpu,heap,out=%e.%p.%k.pb.gz", "heap", "%e.%p.heap.pb.gz");
    expect_pattern("cpu,out=%k%%k%k", "cpu", "cpu%%kcpu");
    expect_pattern("cpu,heap,out=/dev/null", "heap", "/dev/null");
    assert_int_equal(cpprof__environment_pattern(&env, "heap", pattern,
                                                 sizeof pattern, NULL),
                     CPPROF_INVALID);
    assert_string_equal(pattern, "");
}

static void
what_serves_only_writes_nothing(void **state)
{
    static const struct {
        const char *text;
        uint32_t kinds;
        bool serves_only;
    } cases[] = {
        {"http=127.0.0.1:6060", CPPROF__KIND_HEAP, true},
        {"http=:1,insecure", CPPROF__KIND_HEAP, true},
        {"http=:1,mmap=on", CPPROF__KIND_HEAP | CPPROF__KIND_MMAP, true},
        {"http=:1,cpu,mmap=on", CPPROF__KIND_CPU, true},
        {"http=:1,cpu,heap=0", CPPROF__KIND_CPU, true},
        {"block,http=:1,http-token=x", CPPROF__KIND_BLOCK, true},
        {"http=:1,out=/x", CPPROF__KIND_CPU, false},
        {"http=:1,heap,record=/x", CPPROF__KIND_HEAP, false},
        {"heap", CPPROF__KIND_HEAP, false},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i].text, &env, &error), CPPROF_OK);
        assert_int_equal(env.kinds, cases[i].kinds);
        assert_int_equal(env.serves_only, cases[i].serves_only);
    }
}

static void
words_of_the_server_are_understood(void **state)
{
    (void)state;
    assert_int_equal(parse("http=unix:/tmp/%p,http-token=s3cret", &env, &error),
                     CPPROF_OK);
    assert_string_equal(env.http, "unix:/tmp/%p");
    assert_string_equal(env.http_token, "s3cret");
    assert_false(env.http_insecure);
    assert_int_equal(parse("http=:1,http-token-file=/t,insecure", &env, &error),
                     CPPROF_OK);
    assert_string_equal(env.http_token_file, "/t");
    assert_true(env.http_insecure);
}

static void
wrong_words_of_the_server_are_named(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"http", "http= is not"},
        {"http=:1,http-token=", "http-token=... is not a token"},
        {"http=:1,insecure=1", "insecure=1 is not"},
        {"cpu,http-token=x", "http-token without http="},
        {"cpu,http-token-file=x", "http-token without http="},
        {"cpu,insecure", "insecure without http="},
        {"http=:1,http-token=x,http-token-file=y", "beside http-token-file"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i].text, &env, &error), CPPROF_INVALID);
        assert_non_null(strstr(error.text, cases[i].part));
    }
}

static void
interpreters_are_profiled_when_named(void **state)
{
    (void)state;
    assert_int_equal(parse("vm=span,depth=9", &env, &error), CPPROF_OK);
    assert_true(env.has_vm);
    assert_int_equal(env.vm.mode, CPPROF_VM_MODE_SPAN);
    assert_int_equal(env.vm.max_depth, 9);
    assert_int_equal(env.kinds, 0);
    assert_int_equal(parse("cpu,vm=250", &env, &error), CPPROF_OK);
    assert_int_equal(env.vm.rate_hz, 250);
    assert_int_equal(env.kinds, CPPROF__KIND_CPU);
    assert_int_equal(parse("cpu,vm=0", &env, &error), CPPROF_OK);
    assert_false(env.has_vm);
    assert_int_equal(parse("vm=fast", &env, &error), CPPROF_INVALID);
    assert_non_null(strstr(error.text, "vm=fast is not tick, span, cpu"));
}

static void
push_words_are_understood(void **state)
{
    (void)state;
    assert_int_equal(
        parse("push=http://a:1,push-name=n,push-label=a=b,push-label=c=d=e,"
              "push-interval=5,push-every=60,push-user=u,push-token-file=/"
              "t,push-tenant=x,"
              "push-protocol=ingest,push-keep=3",
              &env, &error),
        CPPROF_OK);
    assert_string_equal(env.push.url, "http://a:1");
    assert_string_equal(env.push.name, "n");
    assert_string_equal(env.push.labels, "a=b,c=d=e");
    assert_string_equal(env.push.user, "u");
    assert_string_equal(env.push.token_file, "/t");
    assert_string_equal(env.push.tenant, "x");
    assert_int_equal(env.push.interval_s, 5);
    assert_int_equal(env.push.every_s, 60);
    assert_int_equal(env.push.keep, 3);
    assert_int_equal(env.push.protocol, CPPROF_PUSH_INGEST);
    assert_true(env.serves_only);
    assert_int_equal(env.kinds, CPPROF__KIND_CPU | CPPROF__KINDS_OF_TABLES |
                                    CPPROF__KIND_THREADS);
    assert_int_equal(env.block_rate, 10000);
    assert_int_equal(env.mutex_fraction, 1);
}

static void
push_beside_kinds_or_files_takes_those(void **state)
{
    (void)state;
    assert_int_equal(parse("push=/x,wall=5", &env, &error), CPPROF_OK);
    assert_int_equal(env.kinds, CPPROF__KIND_WALL);
    assert_int_equal(env.block_rate, 0);
    assert_int_equal(parse("push=/x,out=/y", &env, &error), CPPROF_OK);
    assert_int_equal(env.kinds, CPPROF__KIND_CPU);
    assert_false(env.serves_only);
}

static void
push_words_that_say_nothing_are_refused(void **state)
{
    static const char *const wrong[] = {
        "push=",
        "push-keep=1",
        "push-label=a=b",
        "push=/x,push-label=a",
        "push=/x,push-label=",
        "push=/x,push-interval=0",
        "push=/x,push-interval=3601",
        "push=/x,push-every=0",
        "push=/x,push-interval=1s",
        "push=/x,push-protocol=x",
        "push=/x,push-keep=0",
        "push=/x,record=/y",
        "push=/x,push-unknown=1",
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (parse(wrong[i], &env, &error) != CPPROF_INVALID)
            fail_msg("taken: %s", wrong[i]);
}

static void
push_labels_that_are_too_long_are_refused(void **state)
{
    static const char word[] = ",push-label=abcdefgh=0123456789";
    char text[64 * sizeof word] = "push=/x";
    unsigned i;

    (void)state;
    for (i = 0; i < 60; i++)
        strcat(text, word);
    assert_int_equal(parse(text, &env, &error), CPPROF_INVALID);
    assert_true(strlen(env.push.labels) < sizeof env.push.labels);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_words_are_understood),
        cmocka_unit_test(what_is_not_said_has_a_default),
        cmocka_unit_test(kinds_are_those_that_are_named),
        cmocka_unit_test(heap_words_are_understood),
        cmocka_unit_test(kinds_of_waits_have_rates),
        cmocka_unit_test(waits_in_progress_come_when_asked_for),
        cmocka_unit_test(words_of_all_kinds_reach_all_of_them),
        cmocka_unit_test(kinds_get_files_of_their_own),
        cmocka_unit_test(wrong_word_is_named_in_the_error),
        cmocka_unit_test(endless_text_is_refused),
        cmocka_unit_test(path_is_expanded),
        cmocka_unit_test(what_serves_only_writes_nothing),
        cmocka_unit_test(words_of_the_server_are_understood),
        cmocka_unit_test(wrong_words_of_the_server_are_named),
        cmocka_unit_test(interpreters_are_profiled_when_named),
        cmocka_unit_test(push_words_are_understood),
        cmocka_unit_test(push_beside_kinds_or_files_takes_those),
        cmocka_unit_test(push_words_that_say_nothing_are_refused),
        cmocka_unit_test(deadlocks_are_looked_for_beside_profiles),
        cmocka_unit_test(push_labels_that_are_too_long_are_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
