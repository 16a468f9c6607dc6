/* SPDX-License-Identifier: MIT */
/*
 * The answers of cpprof_http_handle(): those that Go 1.19 gives, byte for byte,
 * and those that only cpprof has.
 */
#include "http_expect.h"

#include <cpprof/profiles.h>

#include <pthread.h>
#include <unistd.h>

/* ---- Go's ------------------------------------------------------------- */

static void
profiles_come_with_their_names(void **state)
{
    (void)state;
    expect_profile("/debug/pprof/block?debug=0", FILE_NAME("block") BYTES SAFE);
    expect_profile("/debug/pprof/mutex?debug=x", FILE_NAME("mutex") BYTES SAFE);
    expect_profile("/debug/pprof/goroutine", FILE_NAME("goroutine") BYTES SAFE);
    expect_profile("/debug/pprof/threadcreate?seconds=",
                   FILE_NAME("threadcreate") BYTES SAFE);
}

static void
expect_text(const char *address, const char *begin)
{
    assert_int_equal(get(address), CPPROF_OK);
    expect_head(200, PLAIN SAFE);
    assert_memory_equal(reply.body, begin, strlen(begin));
}

static void
debug_gives_text(void **state)
{
    (void)state;
    expect_text("/debug/pprof/mutex?debug=2", "--- mutex:\n");
    expect_text("/debug/pprof/block?debug=1", "--- contention:\n");
    expect_text("/debug/pprof/goroutine?debug=1", "goroutine profile: total ");
    expect_text("/debug/pprof/goroutine?debug=2", "goroutine ");
    /* as Go: text by its type, and none by its content */
    expect_text("/debug/pprof/goroutine?debug=-1", "\x1f\x8b");
}

/* A sanitizer has a malloc of its own. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define HAS_HEAP false
#else
#define HAS_HEAP true
#endif

static void
the_heap_is_served_where_it_is_ours(void **state)
{
    (void)state;
    if (!HAS_HEAP) {
        get("/debug/pprof/heap");
        assert_int_equal(reply.status, 500);
        assert_string_equal(reply.headers, PLAIN SAFE PPROF);
        return;
    }
    expect_profile("/debug/pprof/heap", FILE_NAME("heap") BYTES SAFE);
    expect_profile("/debug/pprof/allocs?gc=1", FILE_NAME("allocs") BYTES SAFE);
    expect_profile("/pprof/heap?labels=1", FILE_NAME("heap") BYTES SAFE);
    expect_profile("/debug/pprof/delta_heap",
                   FILE_NAME("heap.pprof.gz") BYTES SAFE);
    expect_profile("/debug/pprof/delta_heap",
                   FILE_NAME("heap.pprof.gz") BYTES SAFE);
    expect_text("/debug/pprof/heap?debug=1", "heap profile: ");
    expect_text("/debug/pprof/heap?debug=-1", "heap profile: ");
    expect_text("/debug/pprof/heap?debug=99999999999999999999",
                "heap profile: ");
}

static void
what_is_not_there_is_said(void **state)
{
    (void)state;
    expect_error("/debug/pprof/nope", 404, "Unknown profile\n");
    expect_error("/debug/pprof/nope?seconds=x", 404, "Unknown profile\n");
    expect_error("/debug/pprof/heap/", 404, "Unknown profile\n");
    expect("/", 404, PLAIN SAFE, "404 page not found\n");
    expect("/debug", 404, PLAIN SAFE, "404 page not found\n");
    expect("/debug/fgprof/", 404, PLAIN SAFE, "404 page not found\n");
    expect("/pprof/", 404, PLAIN SAFE, "404 page not found\n");
}

static void
seconds_are_checked_in_the_order_of_go(void **state)
{
    static const char bad[] =
        "invalid value for \"seconds\" - must be a positive integer\n";

    (void)state;
    expect_error("/debug/pprof/heap?seconds=0", 400, bad);
    expect_error("/debug/pprof/heap?seconds=-1&debug=1", 400, bad);
    expect_error("/debug/pprof/heap?seconds=1.5", 400, bad);
    expect_error("/debug/pprof/heap?seconds=+1", 400, bad);
    expect_error("/debug/pprof/heap?seconds=9223372036854775808", 400, bad);
    expect_error("/debug/pprof/heap?seconds=1&debug=1", 400,
                 "seconds and debug params are incompatible\n");
    assert_int_equal(reply.n_waits, 0);
}

static void
too_many_seconds_are_refused(void **state)
{
    struct cpprof_http_request request = {.method = "GET", .max_seconds = 5};
    static const char *const paths[] = {"/debug/pprof/profile",
                                        "/debug/pprof/heap", "/debug/fgprof",
                                        "/pprof/profile"};
    size_t i;

    (void)state;
    request.query = "seconds=6&debug=1";
    for (i = 0; i < sizeof paths / sizeof *paths; i++) {
        clear_reply();
        request.path = paths[i];
        assert_int_equal(send_request(request, NULL), CPPROF_OK);
        expect_head(400, PLAIN SAFE PPROF);
        assert_string_equal(reply.body,
                            "profile duration exceeds server's WriteTimeout\n");
    }
    clear_reply();
    request.path = "/debug/pprof/mutex";
    request.query = "seconds=5";
    assert_int_equal(send_request(request, NULL), CPPROF_OK);
    expect_head(200, FILE_NAME("mutex-delta") BYTES SAFE);
    assert_int_equal(reply.waited_ns, 5000000000);
}

static void
the_mux_sends_to_clean_paths(void **state)
{
    (void)state;
    expect("/debug/pprof", 301, HTML "Location: /debug/pprof/\n",
           "<a href=\"/debug/pprof/\">Moved Permanently</a>.\n\n");
    expect("/debug/pprof?a=b%20<", 301,
           HTML "Location: /debug/pprof/?a=b%20<\n",
           "<a href=\"/debug/pprof/?a=b%20&lt;\">Moved Permanently</a>.\n\n");
    expect("//debug/./pprof/x/../heap", 301,
           HTML "Location: /debug/pprof/heap\n",
           "<a href=\"/debug/pprof/heap\">Moved Permanently</a>.\n\n");
    assert_int_equal(ask("POST", "/debug/pprof"), CPPROF_OK);
    expect_head(301, "Location: /debug/pprof/\n");
    assert_int_equal(reply.n_body, 0);
    assert_int_equal(ask("CONNECT", "/debug//pprof/"), CPPROF_OK);
    expect_head(404, PLAIN SAFE);
    assert_int_equal(ask("CONNECT", "host:80"), CPPROF_OK);
    expect_head(404, PLAIN SAFE);
}

static void
a_header_stays_one_line(void **state)
{
    (void)state;
    assert_int_equal(get("/debug/pprof?\r\nX: y\xff"), CPPROF_OK);
    expect_head(301, HTML "Location: /debug/pprof/?%0d%0aX: y%ff\n");
}

static void
the_command_line_has_nul_between_its_words(void **state)
{
    size_t n;

    (void)state;
    assert_int_equal(get("/debug/pprof/cmdline?debug=1"), CPPROF_OK);
    expect_head(200, PLAIN SAFE);
    n = reply.n_body;
    assert_true(n > 0);
    assert_true(reply.body[n - 1] != 0); /* none at the end */
    assert_int_equal(get("/pprof/cmdline"), CPPROF_OK);
    expect_head(200, PLAIN SAFE);
    assert_int_equal(reply.n_body, n + 1);
    assert_int_equal(reply.body[n], '\n');
}

static void
form_fields_are_parameters(void **state)
{
    (void)state;
    post_form("/debug/pprof/block", "debug=0", FORM, "debug=%31");
    expect_head(200, PLAIN SAFE);
    post_form("/debug/pprof/block", "debug=0", "text/plain", "debug=1");
    expect_head(200, FILE_NAME("block") BYTES SAFE);
}

/* ---- symbol ----------------------------------------------------------- */

static void
words_without_names_are_skipped(void **state)
{
    (void)state;
    expect("/debug/pprof/symbol", 200, PLAIN SAFE, "num_symbols: 1\n");
    expect("/debug/pprof/symbol?0x1+x+%30+99999999999999999999", 200,
           PLAIN SAFE, "num_symbols: 1\n");
    post_form("/debug/pprof/symbol", "0x1", NULL, "0+1+2");
    expect_head(200, PLAIN SAFE);
    assert_string_equal(reply.body, "num_symbols: 1\n");
}

/* bufio's buffer, and that the end of a body is known with its last byte. */
static void
a_word_that_is_too_long_ends_the_answer(void **state)
{
    static const char full[] =
        "num_symbols: 1\nreading request: bufio: buffer full\n";
    static char word[4098];
    struct cpprof_http_request request = {
        .method = "GET", .path = "/debug/pprof/symbol", .query = word};

    (void)state;
    memset(word, '1', 4095);
    clear_reply();
    send_request(request, NULL);
    assert_string_equal(reply.body, "num_symbols: 1\n");
    word[4095] = '1';
    clear_reply();
    send_request(request, NULL);
    assert_string_equal(reply.body, full);
    post_form(request.path, NULL, NULL, word);
    assert_string_equal(reply.body, "num_symbols: 1\n");
    word[4096] = '1';
    post_form(request.path, NULL, NULL, word);
    assert_string_equal(reply.body, full);
    word[4095] = '+';
    post_form(request.path, NULL, NULL, word);
    assert_string_equal(reply.body, "num_symbols: 1\n");
}

/* ---- index ------------------------------------------------------------ */

static void
the_index_lists_what_there_is(void **state)
{
    static const char *const rows[] = {
        "<tr><td>0</td><td><a href='cmdline?debug=1'>cmdline</a></td></tr>\n",
        "<tr><td>1</td><td><a href='./x:y/z%3Fq?debug=1'>x:y/z?q</a></td>"
        "</tr>\n",
        "<tr><td>0</td><td><a href='a%27b%3Cc%3E&%22d?debug=1'>"
        "a&#39;b&lt;c&gt;&amp;&#34;d</a></td></tr>\n",
        "<li><div class=profile-name>a&#39;b&lt;c&gt;&amp;&#34;d: </div> "
        "</li>\n",
        "<li><div class=profile-name>mutex: </div> Stack traces of holders of "
        "contended mutexes</li>\n"};
    struct cpprof_profile *profile;
    const char *last = reply.body, *at;
    size_t i;

    (void)state;
    assert_int_equal(cpprof_profile_new("a'b<c>&\"d", &profile, NULL),
                     CPPROF_OK);
    assert_int_equal(cpprof_profile_new("x:y/z?q", &profile, NULL), CPPROF_OK);
    assert_int_equal(cpprof_profile_add(profile, "x", 0, NULL), CPPROF_OK);
    assert_int_equal(get("/debug/pprof/"), CPPROF_OK);
    expect_head(200, HTML SAFE);
    assert_memory_equal(reply.body, "<html>\n<head>\n<title>", 21);
    for (i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strstr(reply.body, rows[i]))
            fail_msg("%s is not in %s", rows[i], reply.body);
    /* sorted by name, each with a row and a description */
    for (i = 0; (at = strstr(last, "<tr><td>")); i++)
        last = at + 1;
    assert_int_equal(i, 15);
    assert_memory_equal(reply.body + reply.n_body - 7, "</html>", 7);
}

/* ---- HEAD ------------------------------------------------------------- */

static void
head_has_the_headers_alone(void **state)
{
    static const char *const addresses[] = {"/debug/pprof/",
                                            "/debug/pprof/cmdline",
                                            "/debug/pprof/symbol",
                                            "/debug/pprof/nope",
                                            "/debug/pprof/mutex",
                                            "/debug/pprof/mutex?debug=1",
                                            "/debug/pprof/profile",
                                            "/debug/pprof/mutex?seconds=3",
                                            "/debug/pprof/mutex?seconds=x",
                                            "/debug/pprof/delta_block",
                                            "/debug/pprof",
                                            "/nope"};
    static struct reply whole;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        get(addresses[i]);
        whole = reply;
        assert_int_equal(ask("HEAD", addresses[i]), CPPROF_OK);
        assert_int_equal(reply.status, whole.status);
        assert_string_equal(reply.headers, whole.headers);
        assert_int_equal(reply.n_body, 0);
        assert_int_equal(reply.n_waits, 0);
        assert_int_equal(reply.n_begins, 1);
    }
}

/* ---- beyond Go -------------------------------------------------------- */

static void
a_programs_own_profile_can_be_a_difference(void **state)
{
    struct cpprof_profile *own;

    (void)state;
    assert_int_equal(cpprof_profile_new("own", &own, NULL), CPPROF_OK);
    expect_profile("/debug/pprof/own?seconds=2",
                   FILE_NAME("own-delta") BYTES SAFE);
}

static void
what_changed_since_comes_under_its_file_name(void **state)
{
    (void)state;
    expect_profile("/debug/pprof/delta_mutex",
                   FILE_NAME("mutex.pprof.gz") BYTES SAFE);
    expect_profile("/debug/pprof/delta_mutex",
                   FILE_NAME("mutex.pprof.gz") BYTES SAFE);
    expect_profile("/debug/pprof/delta_block",
                   FILE_NAME("block.pprof.gz") BYTES SAFE);
    expect_profile("/debug/pprof/delta_mutex",
                   FILE_NAME("mutex.pprof.gz") BYTES SAFE);
}

static void
what_is_not_made_is_said(void **state)
{
    (void)state;
    expect_error("/debug/pprof/trace?seconds=1", 501,
                 "There is no execution trace of a native program; wall and "
                 "offcpu show where its threads wait\n");
    expect_error("/pprof/pmuprofile", 501,
                 "Hardware counters are not served; profile has CPU time\n");
    expect_error("/pprof/growth", 404,
                 "Mappings are not followed: CPPROF=mmap=on or "
                 "cpprof_heap_follow_mmap() has them followed\n");
    expect_error("/debug/fgprof?seconds=x", 400,
                 "invalid value for \"seconds\" - must be a positive "
                 "integer\n");
    expect_error("/debug/fgprof?format=svg", 400,
                 "invalid value for \"format\" - must be pprof or folded\n");
}

static void
gperftools_has_its_paths(void **state)
{
    (void)state;
    expect_profile("/pprof/contention", FILE_NAME("mutex") BYTES SAFE);
    expect("/pprof/symbol", 200, PLAIN SAFE, "num_symbols: 1\n");
}

static unsigned rest_ms;

static void
rest(void)
{
    usleep(rest_ms * 1000);
}

static void
wall_time_comes_in_several_forms(void **state)
{
    const char *newline;

    (void)state;
    rest_ms = 100; /* ten ticks of this thread, which waits */
    reply.meanwhile = rest;
    expect_profile("/debug/pprof/wall?seconds=1&rate=200&labels=0",
                   FILE_NAME("wall") BYTES SAFE);
    expect_profile("/debug/pprof/offcpu?seconds=2",
                   FILE_NAME("offcpu") BYTES SAFE);
    assert_int_equal(reply.waited_ns, 2000000000);
    expect_profile("/pprof/wall", FILE_NAME("wall") BYTES SAFE);
    assert_int_equal(reply.waited_ns, 30000000000);
    expect_profile("/debug/fgprof?format=pprof",
                   FILE_NAME("fgprof") BYTES SAFE);
    assert_int_equal(reply.waited_ns, 30000000000);
    /* a busy machine has no tick in 100 ms: again, for longer */
    for (newline = NULL; !newline && rest_ms < 10000; rest_ms *= 4) {
        assert_int_equal(get("/debug/fgprof?seconds=1&format=folded"),
                         CPPROF_OK);
        expect_head(200, PLAIN SAFE);
        newline = strchr(reply.body, '\n');
    }
    reply.meanwhile = NULL;
    /* a line: frames, a space, how often */
    assert_non_null(newline);
    assert_true(newline[-1] >= '0' && newline[-1] <= '9');
    assert_non_null(memchr(reply.body, ';', (size_t)(newline - reply.body)));
}

#define N_THREADS 4
#define N_ROUNDS  3

static void *
ask_for_everything(void *failures)
{
    static const char *const paths[] = {
        "/debug/pprof/",        "/debug/pprof/delta_mutex",
        "/debug/pprof/profile", "/debug/pprof/block",
        "/debug/pprof/symbol",  "/debug/pprof/delta_block"};
    struct reply *r = calloc(1, sizeof *r);
    size_t i, n = N_ROUNDS * sizeof paths / sizeof *paths;

    for (i = 0; r && i < n; i++) {
        const struct cpprof_http_request request = {
            .method = "GET",
            .path = paths[i % (n / N_ROUNDS)],
            .query = i % 2 ? "seconds=1" : "0x401000",
        };

        memset(r, 0, sizeof *r);
        if (send_to(r, request, NULL) != CPPROF_OK || r->status != 200)
            __atomic_fetch_add((int *)failures, 1, __ATOMIC_RELAXED);
    }
    free(r);
    return NULL;
}

static void
threads_ask_at_the_same_time(void **state)
{
    pthread_t threads[N_THREADS];
    int failures = 0;
    size_t i;

    (void)state;
    for (i = 0; i < N_THREADS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, ask_for_everything, &failures),
            0);
    for (i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(failures, 0);
}

/* Last: it stays. */
static void
a_profile_of_the_program_comes_before_an_addition(void **state)
{
    struct cpprof_profile *wall;

    (void)state;
    assert_int_equal(cpprof_profile_new("wall", &wall, NULL), CPPROF_OK);
    expect_profile("/debug/pprof/wall", FILE_NAME("wall") BYTES SAFE);
    assert_int_equal(reply.n_waits, 0);
    get("/debug/pprof/");
    assert_null(strstr(strstr(reply.body, "'wall?") + 1, "'wall?"));
}

/* ---- structs ---------------------------------------------------------- */

static void
structs_without_their_parts_are_refused(void **state)
{
    struct cpprof_http_request request = {.size = sizeof request,
                                          .method = "GET"};
    struct cpprof_http_response response = {sizeof response, reply_begin,
                                            reply_write, &reply};
    struct cpprof_error error;

    (void)state;
    clear_reply();
    assert_int_equal(cpprof_http_handle(&request, &response, &error),
                     CPPROF_INVALID);
    request.path = "/";
    response.write = NULL;
    assert_int_equal(cpprof_http_handle(&request, &response, &error),
                     CPPROF_INVALID);
    response.write = reply_write;
    request.flags = 8;
    assert_int_equal(cpprof_http_handle(&request, &response, &error),
                     CPPROF_INVALID);
    assert_string_equal(error.text, "unknown flags 0x8");
    request.flags = 0;
    request.size = 3;
    assert_int_equal(cpprof_http_handle(&request, &response, &error),
                     CPPROF_INVALID);
    assert_int_equal(reply.n_begins, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_come_with_their_names),
        cmocka_unit_test(debug_gives_text),
        cmocka_unit_test(the_heap_is_served_where_it_is_ours),
        cmocka_unit_test(what_is_not_there_is_said),
        cmocka_unit_test(seconds_are_checked_in_the_order_of_go),
        cmocka_unit_test(too_many_seconds_are_refused),
        cmocka_unit_test(the_mux_sends_to_clean_paths),
        cmocka_unit_test(a_header_stays_one_line),
        cmocka_unit_test(the_command_line_has_nul_between_its_words),
        cmocka_unit_test(form_fields_are_parameters),
        cmocka_unit_test(words_without_names_are_skipped),
        cmocka_unit_test(a_word_that_is_too_long_ends_the_answer),
        cmocka_unit_test(the_index_lists_what_there_is),
        cmocka_unit_test(head_has_the_headers_alone),
        cmocka_unit_test(a_programs_own_profile_can_be_a_difference),
        cmocka_unit_test(what_changed_since_comes_under_its_file_name),
        cmocka_unit_test(what_is_not_made_is_said),
        cmocka_unit_test(gperftools_has_its_paths),
        cmocka_unit_test(wall_time_comes_in_several_forms),
        cmocka_unit_test(threads_ask_at_the_same_time),
        cmocka_unit_test(a_profile_of_the_program_comes_before_an_addition),
        cmocka_unit_test(structs_without_their_parts_are_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
