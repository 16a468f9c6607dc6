/* SPDX-License-Identifier: MIT */
/* What may be asked for, and what of it is shown. */
#include "push/files.h"
#include "push/plan.h"
#include "push/request.h"
#include "push/resource.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct cpprof__push_plan plan;
static struct cpprof_error error;

static enum cpprof_status
make(const char *url, const struct cpprof_push_options *options)
{
    return cpprof__push_plan_make(url, options, &plan, &error);
}

static void
a_url_loses_its_last_slashes_and_shows_no_credentials(void **state)
{
    (void)state;
    assert_int_equal(make("http://host:4040", NULL), CPPROF_OK);
    assert_string_equal(plan.url, "http://host:4040");
    assert_string_equal(plan.pattern, "");
    assert_int_equal(make("HTTPS://u:p@s@host/a@b//", NULL), CPPROF_OK);
    assert_string_equal(plan.url, "HTTPS://u:p@s@host/a@b");
    assert_string_equal(plan.shown, "HTTPS://host/a@b");
    /* A password that looks like a path is not to be shown. */
    assert_int_equal(make("http://u:hunter/2@host:1", NULL), CPPROF_INVALID);
    assert_int_equal(make("http://host/a@b", NULL), CPPROF_INVALID);
}

static void
a_url_has_a_host_and_maybe_a_port(void **state)
{
    static const char *const good[] = {
        "http://localhost:65535", "http://[::1]:4318",    "http://[fe80::1]/a",
        "http://[::1]",           "http://u:p@[::1]:1/x", "http://a:/b:c"};
    static const char *const wrong[] = {"http://localhost:99999",
                                        "http://localhost:0",
                                        "http://a:4318x/",
                                        "http://[::1:4318",
                                        "http://[::1]4318",
                                        "http://::1:4318",
                                        "http://:4318",
                                        "http://u:p@:4318/",
                                        "http://a:-1",
                                        "http://u:p@",
                                        "http://a:000000000001"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof good / sizeof *good; i++)
        if (make(good[i], NULL) != CPPROF_OK)
            fail_msg("refused: %s", good[i]);
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (make(wrong[i], NULL) != CPPROF_INVALID)
            fail_msg("taken: %s", wrong[i]);
}

static void
after_an_hour_pyroscope_takes_nothing(void **state)
{
    const int64_t hour_ns = 3600000000000ll, end_ns = 1700000000000000000ll;

    (void)state;
    assert_int_equal(make("http://host:4040", NULL), CPPROF_OK);
    assert_false(cpprof__push_is_too_old(&plan, end_ns, end_ns + hour_ns));
    assert_true(cpprof__push_is_too_old(&plan, end_ns, end_ns + hour_ns + 1));
    /* A clock that was set back. */
    assert_false(cpprof__push_is_too_old(&plan, end_ns, end_ns - hour_ns));
    assert_int_equal(make("otlp+http://host:4318", NULL), CPPROF_OK);
    assert_false(cpprof__push_is_too_old(&plan, end_ns, end_ns + 2 * hour_ns));
}

static void
otlp_has_a_path_of_its_own(void **state)
{
    struct cpprof_push_options options = {.size = sizeof options,
                                          .labels = "service.version=1.2"};

    (void)state;
    assert_int_equal(make("otlp+http://u:p@host:4318/", &options), CPPROF_OK);
    assert_int_equal(plan.protocol, CPPROF_PUSH_OTLP);
    assert_string_equal(plan.url, "http://u:p@host:4318"
                                  "/v1development/profiles");
    assert_string_equal(plan.shown, "http://host:4318/v1development/profiles");
    options.protocol = CPPROF_PUSH_OTLP;
    assert_int_equal(make("https://host/a", &options), CPPROF_OK);
    assert_string_equal(plan.url, "https://host/a/v1development/profiles");
    /* As it is called in the collector's documentation. */
    assert_int_equal(make("http://h:4318/v1development/profiles/", &options),
                     CPPROF_OK);
    assert_string_equal(plan.url, "http://h:4318/v1development/profiles");
    assert_int_equal(make("otlp+http://a", &options), CPPROF_OK);
    assert_int_equal(make("pprof+http://a", &options), CPPROF_INVALID);
    /* Pyroscope's names have no dots. */
    options.protocol = CPPROF_PUSH_V1;
    assert_int_equal(make("https://host/a", &options), CPPROF_INVALID);
    assert_int_equal(make("Parca+http://a:7070/", NULL), CPPROF_OK);
    assert_int_equal(plan.protocol, CPPROF_PUSH_PARCA);
    assert_string_equal(plan.url, "http://a:7070/api/profiles/writeraw");
    assert_int_equal(make("pprof+https://a", NULL), CPPROF_OK);
    assert_string_equal(plan.url, "https://a/v1/pprof");
    assert_int_equal(make("ingest+https://a", NULL), CPPROF_OK);
    assert_int_equal(plan.protocol, CPPROF_PUSH_INGEST);
    assert_string_equal(plan.url, "https://a");
    options.protocol = CPPROF_PUSH_PARCA + 1;
    assert_int_equal(make("https://host/a", &options), CPPROF_INVALID);
    assert_int_equal(make("otlp+ftp://a", NULL), CPPROF_INVALID);
    assert_int_equal(make("otlp+", NULL), CPPROF_INVALID);
}

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void
a_container_is_known_by_its_id(void **state)
{
    static const char *const texts[] = {
        "0::/system.slice/docker-" ID ".scope\n",
        "1:name=systemd:/docker/" ID "\n",
        "0::/kubepods.slice/kubepods-pod12.slice/cri-containerd-" ID ".scope\n",
        "600 500 0:1 /var/lib/docker/containers/" ID
        "/hostname /etc/hostname rw\n"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *id = cpprof__push_container(texts[i]);

        assert_non_null(id);
        assert_memory_equal(id, ID, 64);
    }
    assert_null(cpprof__push_container("0::/\n"));
    assert_null(cpprof__push_container("0::/" ID "0\n"));
    assert_null(cpprof__push_container(
        "600 500 0:1 /var/lib/docker/overlay2/" ID "/diff / rw\n"));
}

static void
what_is_no_url_is_refused(void **state)
{
    static const char *const wrong[] = {
        "http://", "https:///x", "http://a?b", "http://a#b",    "http://a b",
        "ftp://a", "host:4040",  "rel/ative",  "http://a\nb: c"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (make(wrong[i], NULL) != CPPROF_INVALID)
            fail_msg("taken: %s", wrong[i]);
}

static void
a_folder_has_the_usual_names(void **state)
{
    (void)state;
    assert_int_equal(make("/a", NULL), CPPROF_OK);
    assert_string_equal(plan.pattern, "/a/%k.%p.%t.pb.gz");
    assert_int_equal(make("file:///a/%e/", NULL), CPPROF_OK);
    assert_string_equal(plan.pattern, "/a/%e/%k.%p.%t.pb.gz");
    assert_int_equal(make("/a/%k/%t", NULL), CPPROF_OK);
    assert_string_equal(plan.pattern, "/a/%k/%t");
    assert_int_equal(make("/a/%%k", NULL), CPPROF_OK);
    assert_string_equal(plan.pattern, "/a/%%k/%k.%p.%t.pb.gz");
}

static void
a_time_has_its_place_in_the_name(void **state)
{
    (void)state;
    assert_int_equal(make("/a/%t/%k", NULL), CPPROF_INVALID);
    assert_int_equal(make("/a/%t", NULL), CPPROF_INVALID);
}

static void
options_that_are_not_given_have_defaults(void **state)
{
    (void)state;
    assert_int_equal(make("http://a", NULL), CPPROF_OK);
    assert_int_equal(plan.interval_s, 10);
    assert_int_equal(plan.kinds, CPPROF_PUSH_CPU | CPPROF_PUSH_HEAP |
                                     CPPROF_PUSH_BLOCK | CPPROF_PUSH_MUTEX |
                                     CPPROF_PUSH_GOROUTINE |
                                     CPPROF_PUSH_CUSTOM);
    assert_int_equal(plan.queue_bytes, 16 << 20);
    assert_string_equal(plan.name, "test_push_plan");
    assert_int_equal(plan.cpu.size, sizeof plan.cpu);
}

static enum cpprof_status
make_labels(const char *labels)
{
    struct cpprof_push_options options = {.size = sizeof options,
                                          .labels = labels};

    return make("http://a", &options);
}

static void
labels_are_pairs_with_names_of_their_own(void **state)
{
    static const char *const wrong[] = {
        "a",    "=b",    "a=",         "a=b,a=c",
        "1a=b", "a.b=c", "__name__=x", "service_name=x",
        "a=b}", "a=b\n", "a=b,,"};
    size_t i;

    (void)state;
    assert_int_equal(make_labels("a=b=c,_d1=e f"), CPPROF_OK);
    assert_int_equal(make_labels("service_name_=x"), CPPROF_OK);
    assert_int_equal(make_labels(""), CPPROF_OK);
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (make_labels(wrong[i]) != CPPROF_INVALID)
            fail_msg("taken: %s", wrong[i]);
}

static void
pids_stand_in_names_and_labels(void **state)
{
    struct cpprof_push_options options = {
        .size = sizeof options, .name = "a-%p", .labels = "pid=%p"};
    char wanted[64];

    (void)state;
    assert_int_equal(make("http://a", &options), CPPROF_OK);
    snprintf(wanted, sizeof wanted, "a-%d", (int)getpid());
    assert_string_equal(plan.name, wanted);
    snprintf(wanted, sizeof wanted, "pid=%d", (int)getpid());
    assert_string_equal(plan.labels, wanted);
}

static void
a_header_is_one_line(void **state)
{
    struct cpprof_push_options options = {.size = sizeof options,
                                          .tenant = "a\r\nX: y"};

    (void)state;
    assert_int_equal(make("http://a", &options), CPPROF_INVALID);
    options.tenant = NULL;
    options.token = "secret\nb";
    assert_int_equal(make("http://a", &options), CPPROF_INVALID);
    assert_null(strstr(error.text, "secret"));
}

static void
only_protobuf_is_pushed(void **state)
{
    struct cpprof_wall_options wall = {.size = sizeof wall,
                                       .flags = CPPROF_FLAG_COLLAPSED};
    struct cpprof_push_options options = {.size = sizeof options,
                                          .wall = &wall};

    (void)state;
    assert_int_equal(make("http://a", &options), CPPROF_INVALID);
    wall.flags = CPPROF_FLAG_OFF_CPU;
    assert_int_equal(make("http://a", &options), CPPROF_OK);
    assert_int_equal(plan.wall.flags, CPPROF_FLAG_OFF_CPU);
}

static void
a_file_is_ours_by_its_name(void **state)
{
    const char *usual = "%k.%p.%t.pb.gz";

    (void)state;
    assert_int_equal(cpprof__push_file_time(usual, "cpu.1.23.pb.gz", "cpu"),
                     23);
    assert_int_equal(cpprof__push_file_time(usual, "cpu.1.23.pb.gz", "heap"),
                     -1);
    assert_int_equal(cpprof__push_file_time(usual, "cpu.1.23.pb.gz.x", "cpu"),
                     -1);
    assert_int_equal(cpprof__push_file_time(usual, "cpu.x.23.pb.gz", "cpu"),
                     -1);
    assert_int_equal(cpprof__push_file_time(usual, "cpu.1..pb.gz", "cpu"), -1);
    assert_int_equal(
        cpprof__push_file_time(usual, "cpu.1.9999999999999999999.pb.gz", "cpu"),
        -1);
    assert_int_equal(
        cpprof__push_file_time("%e%%%t-%k", "test_push_plan%7-cpu", "cpu"), 7);
    assert_int_equal(cpprof__push_file_time("%k.%t%", "cpu.7%", "cpu"), 7);
    assert_int_equal(cpprof__push_file_time("%k.%t", "", "cpu"), -1);
}

static void
a_server_is_left_alone_for_as_long_as_is_bearable(void **state)
{
    const uint64_t s = 1000000000;
    unsigned i;

    (void)state;
    for (i = 0; i < 99; i++) {
        uint64_t ns = cpprof__push_pause_ns(i, 0);

        assert_true(ns >= (i < 6 ? s << i : 60 * s) && ns <= 90 * s);
        assert_in_range(cpprof__push_pause_ns(i, UINT32_MAX), 60 * s, 90 * s);
        assert_in_range(cpprof__push_pause_ns(i, 50), 50 * s, 90 * s);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_loses_its_last_slashes_and_shows_no_credentials),
        cmocka_unit_test(a_url_has_a_host_and_maybe_a_port),
        cmocka_unit_test(after_an_hour_pyroscope_takes_nothing),
        cmocka_unit_test(otlp_has_a_path_of_its_own),
        cmocka_unit_test(a_container_is_known_by_its_id),
        cmocka_unit_test(what_is_no_url_is_refused),
        cmocka_unit_test(a_folder_has_the_usual_names),
        cmocka_unit_test(a_time_has_its_place_in_the_name),
        cmocka_unit_test(options_that_are_not_given_have_defaults),
        cmocka_unit_test(labels_are_pairs_with_names_of_their_own),
        cmocka_unit_test(pids_stand_in_names_and_labels),
        cmocka_unit_test(a_header_is_one_line),
        cmocka_unit_test(only_protobuf_is_pushed),
        cmocka_unit_test(a_file_is_ours_by_its_name),
        cmocka_unit_test(a_server_is_left_alone_for_as_long_as_is_bearable),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
