/* SPDX-License-Identifier: MIT */
/* Which sources are URLs, and what is asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cli/fetch/url.h"

#include "oom.h"

static const struct cpprof__fetch_options plain;

/* expected NULL: it is a file. */
static void
expect_of(const struct cpprof__fetch_options *options, const char *source,
          const char *expected)
{
    struct cpprof__url url;
    enum cpprof__source_kind kind = cpprof__source_url(source, options, &url);

    assert_int_equal(kind, expected ? CPPROF__SOURCE_URL : CPPROF__SOURCE_FILE);
    if (expected)
        assert_string_equal(url.text, expected);
    cpprof__url_free(&url);
}

static void
expect(const char *source, const char *expected)
{
    expect_of(&plain, source, expected);
}

static void
host_alone_stands_for_its_cpu_profile(void **state)
{
    (void)state;
    expect("host:6060", "http://host:6060/debug/pprof/profile");
    expect("http://host", "http://host/debug/pprof/profile");
    expect("https://host/", "https://host/debug/pprof/profile");
}

static void
scheme_may_be_missing(void **state)
{
    (void)state;
    expect("host:6060/debug/pprof/heap", "http://host:6060/debug/pprof/heap");
    expect("127.0.0.1:80/x", "http://127.0.0.1:80/x");
    expect("[::1]:80/x", "http://[::1]:80/x");
    expect("HTTP://Host/x", "http://Host/x");
}

static void
files_are_no_urls(void **state)
{
    (void)state;
    expect("-", NULL);
    expect("/dev/null", NULL);
    expect("./nosuch", NULL);
    expect("/nosuch:8/x", NULL);
    expect("file:///nosuch", NULL);
    expect("host:port/x", NULL);
    expect("a\nb:80/x", NULL);
}

static void
query_is_sorted_and_encoded(void **state)
{
    struct cpprof__fetch_options five = {.seconds = 5};

    (void)state;
    expect("h:1/x?b=2&a=1&b=1", "http://h:1/x?a=1&b=2&b=1");
    expect("h:1/x?q=a+b%2f&bad=%zz&c;d", "http://h:1/x?q=a+b%2F");
    expect("h:1/x?k#fragment", "http://h:1/x?k=");
    expect_of(&five, "h:1/x?seconds=1&a=2&seconds=3",
              "http://h:1/x?a=2&seconds=5");
}

static void
many_pairs_are_bounded(void **state)
{
    struct cpprof__fetch_options five = {.seconds = 5};
    char source[2048] = "h:1/x?";
    struct cpprof__url url;
    int i;

    (void)state;
    for (i = 0; i < 200; i++)
        strcat(source, "a=1&");
    assert_int_equal(cpprof__source_url(source, &five, &url),
                     CPPROF__SOURCE_URL);
    assert_non_null(strstr(url.text, "&seconds=5"));
    cpprof__url_free(&url);
}

static void
password_is_not_shown(void **state)
{
    struct cpprof__url url;

    (void)state;
    assert_int_equal(cpprof__source_url("http://me:secret@h:1/x", &plain, &url),
                     CPPROF__SOURCE_URL);
    assert_string_equal(url.text, "http://me:secret@h:1/x");
    assert_string_equal(url.shown, "http://me:xxxxx@h:1/x");
    cpprof__url_free(&url);
    assert_int_equal(
        cpprof__source_url("http://me:se@cret@h:1/@x", &plain, &url),
        CPPROF__SOURCE_URL);
    assert_string_equal(url.text, "http://me:se%40cret@h:1/@x");
    assert_string_equal(url.shown, "http://me:xxxxx@h:1/@x");
    cpprof__url_free(&url);
}

static void
timeout_follows_the_seconds(void **state)
{
    struct cpprof__fetch_options of[] = {
        {0}, {.seconds = 20}, {.seconds = 20, .timeout = 7}};
    static const int expected[] = {65, 35, 12};
    struct cpprof__url url;
    size_t i;

    (void)state;
    for (i = 0; i < 3; i++) {
        assert_int_equal(cpprof__source_url("h:1/x", &of[i], &url),
                         CPPROF__SOURCE_URL);
        assert_int_equal(url.timeout_s, expected[i]);
        cpprof__url_free(&url);
    }
}

static void
file_url_is_its_path(void **state)
{
    char *path = cpprof__file_url_path("file:///a%20b/c");

    (void)state;
    assert_string_equal(path, "/a b/c");
    free(path);
    path = cpprof__file_url_path("file://localhost/x");
    assert_string_equal(path, "/x");
    free(path);
    assert_null(cpprof__file_url_path("file://other/x"));
    assert_null(cpprof__file_url_path("file:///%2"));
    assert_null(cpprof__file_url_path("/a"));
}

static void
expect_symbols(const char *url, const char *expected)
{
    char *text = cpprof__symbol_url(url);

    assert_string_equal(text, expected);
    free(text);
}

static void
symbols_are_beside_the_profile(void **state)
{
    (void)state;
    expect_symbols("http://h/debug/pprof/heap?a=1",
                   "http://h/debug/pprof/symbol");
    expect_symbols("http://h/x/pprof/heap", "http://h/x/pprof/symbol");
    expect_symbols("http://h/other", "http://h/symbolz");
}

/* Neither a part of the URL is lost, nor memory. */
static void
missing_memory_is_said_and_leaks_nothing(void **state)
{
    static const char source[] = "http://me:pw@h:1/a b?x=1&y=%41&z=3";
    struct cpprof__fetch_options five = {.seconds = 5};
    enum cpprof__source_kind kind = CPPROF__SOURCE_NOMEM;
    struct cpprof__url url;
    long n;

    (void)state;
    for (n = 0; kind == CPPROF__SOURCE_NOMEM; n++) {
        assert_true(n < 1000);
        oom_watch();
        oom.countdown = n;
        kind = cpprof__source_url(source, &five, &url);
        oom.countdown = -1;
        if (kind == CPPROF__SOURCE_URL)
            assert_string_equal(url.text,
                                "http://me:pw@h:1/a%20b?seconds=5&x=1&y=A&z=3");
        cpprof__url_free(&url);
        assert_int_equal(oom.n_live, 0);
    }
    assert_int_equal(kind, CPPROF__SOURCE_URL);
    assert_true(n > 10);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_alone_stands_for_its_cpu_profile),
        cmocka_unit_test(scheme_may_be_missing),
        cmocka_unit_test(files_are_no_urls),
        cmocka_unit_test(query_is_sorted_and_encoded),
        cmocka_unit_test(many_pairs_are_bounded),
        cmocka_unit_test(password_is_not_shown),
        cmocka_unit_test(timeout_follows_the_seconds),
        cmocka_unit_test(file_url_is_its_path),
        cmocka_unit_test(symbols_are_beside_the_profile),
        cmocka_unit_test(missing_memory_is_said_and_leaks_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
