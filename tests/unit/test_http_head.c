/* SPDX-License-Identifier: MIT */
/* The head and the body of a request, from whatever bytes. */
#include "http/server/chunks.h"
#include "http/server/head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char data[8192];
static struct cpprof__http_head head;
static const char *why;

/* In a block of its own size, so that ASan sees what is read past it. */
static int
parse(const char *text)
{
    size_t n = strlen(text), seen = 0;
    char *exact = malloc(n);
    int status;

    memcpy(exact, text, n);
    assert_int_equal(cpprof__http_head_length(exact, n, &seen), n);
    free(exact);
    memcpy(data, text, n);
    status = cpprof__http_head_parse(data, n, &head, &why);
    return status;
}

static int
parse_line(const char *line)
{
    char text[512];

    snprintf(text, sizeof text, "%s\r\nHost: a\r\n\r\n", line);
    return parse(text);
}

static int
parse_header(const char *header)
{
    char text[512];

    snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n",
             header);
    return parse(text);
}

static void
a_request_has_its_parts(void **state)
{
    (void)state;
    assert_int_equal(parse("POST /debug/pprof/symbol?0x1+0x2 HTTP/1.1\r\n"
                           "Host: localhost:6060\r\n"
                           "content-type:\tapplication/octet-stream  \r\n"
                           "Content-Length: 12\r\n"
                           "Authorization: Bearer x\r\n"
                           "Expect: 100-Continue\r\n\r\n"),
                     0);
    assert_string_equal(head.method, "POST");
    assert_string_equal(head.path, "/debug/pprof/symbol");
    assert_string_equal(head.query, "0x1+0x2");
    assert_string_equal(head.host, "localhost:6060");
    assert_string_equal(head.content_type, "application/octet-stream");
    assert_string_equal(head.authorization, "Bearer x");
    assert_int_equal(head.n_body, 12);
    assert_true(head.keeps_alive);
    assert_true(head.wants_continue);
    assert_false(head.is_chunked);
}

static void
lines_may_end_in_a_newline_alone_and_follow_empty_ones(void **state)
{
    (void)state;
    assert_int_equal(parse("\r\n\nGET / HTTP/1.1\nHost: a\n\n"), 0);
    assert_string_equal(head.path, "/");
    assert_null(head.query);
}

static void
a_head_ends_at_the_first_empty_line_wherever_it_was_cut(void **state)
{
    static const char text[] =
        "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\n\r\n";
    size_t whole = (size_t)(strstr(text + 2, "\r\n\r\n") + 4 - text), n;
    size_t seen = 0;

    (void)state;
    for (n = 1; n < whole; n++)
        assert_int_equal(cpprof__http_head_length(text, n, &seen), 0);
    assert_int_equal(cpprof__http_head_length(text, n, &seen), whole);
    seen = 0;
    assert_int_equal(cpprof__http_head_length(text, sizeof text - 1, &seen),
                     whole);
    seen = 0;
    assert_int_equal(cpprof__http_head_length("\r\n\r\n\r\n", 6, &seen), 0);
}

static void
a_path_is_decoded_and_a_query_is_not(void **state)
{
    (void)state;
    assert_int_equal(parse_line("GET /a%2fb%20c?d%20e?f HTTP/1.1"), 0);
    assert_string_equal(head.path, "/a/b c");
    assert_string_equal(head.query, "d%20e?f");
    assert_int_equal(parse_line("GET /%2 HTTP/1.1"), 400);
    assert_int_equal(parse_line("GET /%zz HTTP/1.1"), 400);
    assert_int_equal(parse_line("GET /%00 HTTP/1.1"), 400);
}

static void
an_absolute_target_names_the_host(void **state)
{
    (void)state;
    assert_int_equal(parse_line("GET http://evil:80/x?y HTTP/1.1"), 0);
    assert_string_equal(head.host, "evil:80");
    assert_string_equal(head.path, "/x");
    assert_string_equal(head.query, "y");
    assert_int_equal(parse_line("GET http://evil HTTP/1.1"), 0);
    assert_string_equal(head.path, "/");
    assert_int_equal(parse_line("GET http://evil?y HTTP/1.1"), 0);
    assert_string_equal(head.query, "y");
    assert_int_equal(parse_line("GET http:///x HTTP/1.1"), 0);
    assert_string_equal(head.host, "");
}

static void
a_malformed_line_is_refused(void **state)
{
    static const char *const lines[] = {"GET",
                                        "GET /",
                                        "GET / HTTP/1.1 ",
                                        " GET / HTTP/1.1",
                                        "GET  HTTP/1.1",
                                        "GET / x HTTP/1.1",
                                        "GET x HTTP/1.1",
                                        "G@T / HTTP/1.1",
                                        "GET /\x01 HTTP/1.1",
                                        "GET / HTTP/1.11",
                                        "GET / http/1.1",
                                        "GET / HTTP/1.",
                                        "GET /\t HTTP/1.1",
                                        "\x16\x03\x01\x02"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof lines / sizeof *lines; i++)
        if (parse_line(lines[i]) != 400)
            fail_msg("taken: %s", lines[i]);
    assert_int_equal(parse_line("PRI * HTTP/2.0"), 505);
    assert_string_equal(why, "unsupported protocol version");
    assert_int_equal(parse_line("OPTIONS * HTTP/1.1"), 0);
    assert_int_equal(parse_line("BREW / HTTP/1.1"), 0);
}

static void
a_malformed_header_is_refused(void **state)
{
    static const char *const headers[] = {
        "x",
        ": y",
        "x : y",
        " x: y",
        "x: y\r\n z",
        "x: \x01",
        "x: \x7f",
        "Host: b",
        "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: -1",
        "Content-Length: +1",
        "Content-Length: 1,1",
        "Content-Length: 0x1",
        "Content-Length:",
        "Content-Length: 1\r\nTransfer-Encoding: chunked",
        "Authorization: Bearer a\r\nAuthorization: Bearer b"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof headers / sizeof *headers; i++)
        if (parse_header(headers[i]) != 400)
            fail_msg("taken: %s", headers[i]);
    assert_int_equal(parse_header("Content-Length: 99999999999999999999"), 413);
    assert_int_equal(parse_header("Transfer-Encoding: gzip"), 501);
    assert_int_equal(parse_header("Expect: a-miracle"), 417);
    assert_int_equal(parse_header("Transfer-Encoding: Chunked"), 0);
    assert_true(head.is_chunked);
    memcpy(data, "GET / HTTP/1.1\r\nHost: a\r\nx: \0\r\n\r\n", 34);
    assert_int_equal(cpprof__http_head_parse(data, 34, &head, &why), 400);
}

static void
who_keeps_the_connection_depends_on_version_and_header(void **state)
{
    (void)state;
    assert_int_equal(parse_header("Connection: x, Close"), 0);
    assert_false(head.keeps_alive);
    assert_int_equal(parse_header("Connection: closed"), 0);
    assert_true(head.keeps_alive);
    assert_int_equal(parse("GET / HTTP/1.0\r\n\r\n"), 0);
    assert_false(head.keeps_alive);
    assert_int_equal(parse("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"),
                     0);
    assert_true(head.keeps_alive);
    assert_int_equal(parse("GET / HTTP/1.1\r\n\r\n"), 400);
    assert_string_equal(why, "missing required Host header");
}

/* The body of chunks that come n bytes at a time; -1: not whole, or 400. */
static int
join(const char *text, size_t n_text, size_t step, char *body)
{
    struct cpprof__http_chunks chunks = {0};
    size_t at = 0, n_body = 0;

    while (at < n_text) {
        size_t n = step < n_text - at ? step : n_text - at, used, n_data;
        char *piece = malloc(n);
        int what;

        memcpy(piece, text + at, n);
        what = cpprof__http_chunks_take(&chunks, piece, n, &used, &n_data);
        at += used;
        if (what == CPPROF__CHUNKS_DATA) {
            memcpy(body + n_body, piece + used, n_data);
            n_body += n_data;
            at += n_data;
        }
        free(piece);
        if (what == 400)
            return 400;
        if (what == CPPROF__CHUNKS_END) {
            assert_int_equal(at, n_text);
            return (int)n_body;
        }
    }
    return -1;
}

static void
chunks_are_joined_wherever_they_were_cut(void **state)
{
    static const char text[] = "4;x=\"y\"\r\nWiki\r\n5 \r\npedia\r\n"
                               "00A\nabcdefghij\n0\r\nTrailer: x\r\n\r\n";
    char body[64];
    size_t step;

    (void)state;
    for (step = 1; step < sizeof text; step++) {
        assert_int_equal(join(text, sizeof text - 1, step, body), 19);
        assert_memory_equal(body, "Wikipediaabcdefghij", 19);
    }
}

static void
malformed_chunks_are_refused(void **state)
{
    static const char *const texts[] = {"\r\n",
                                        "x\r\n",
                                        "-1\r\n",
                                        "1\r\nab",
                                        "1\r\na\r\r\n",
                                        ";\r\n",
                                        "fffffffffffffffff\r\n",
                                        "1x\r\n"};
    char body[64], line[600];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof texts / sizeof *texts; i++)
        if (join(texts[i], strlen(texts[i]), 1, body) != 400)
            fail_msg("taken: %s", texts[i]);
    memset(line, '0', sizeof line);
    assert_int_equal(join(line, sizeof line, 100, body), 400);
}

static void
trailers_have_an_end(void **state)
{
    char text[6000], body[8];

    (void)state;
    memset(text, 'a', sizeof text);
    memcpy(text, "0\r\n", 3);
    assert_int_equal(join(text, sizeof text, 512, body), 400);
}

/* Whatever the bytes are: no read outside, and a known answer. */
static void
random_bytes_are_read_or_refused(void **state)
{
    static const char *const words[] = {"GET ",
                                        "/",
                                        " HTTP/1.1",
                                        "\r\n",
                                        "\n",
                                        "Host: a",
                                        ":",
                                        " ",
                                        "%41",
                                        "Transfer-Encoding: chunked",
                                        "Content-Length: 3",
                                        "http://",
                                        "?",
                                        "\x80",
                                        "\x01",
                                        "a",
                                        "Expect: 100-continue"};
    unsigned seed = 1, round;

    (void)state;
    for (round = 0; round < 200000; round++) {
        size_t n = 0, seen = 0, length;
        int status;
        char *exact;

        while (n < 200 && rand_r(&seed) % 24) {
            const char *word =
                words[(unsigned)rand_r(&seed) % (sizeof words / sizeof *words)];

            memcpy(data + n, word, strlen(word));
            n += strlen(word);
        }
        exact = malloc(n + !n);
        memcpy(exact, data, n);
        length = cpprof__http_head_length(exact, n, &seen);
        assert_true(length <= n);
        if (length) {
            status = cpprof__http_head_parse(exact, length, &head, &why);
            assert_true(!status || (status >= 400 && status < 600));
        }
        free(exact);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_has_its_parts),
        cmocka_unit_test(
            lines_may_end_in_a_newline_alone_and_follow_empty_ones),
        cmocka_unit_test(
            a_head_ends_at_the_first_empty_line_wherever_it_was_cut),
        cmocka_unit_test(a_path_is_decoded_and_a_query_is_not),
        cmocka_unit_test(an_absolute_target_names_the_host),
        cmocka_unit_test(a_malformed_line_is_refused),
        cmocka_unit_test(a_malformed_header_is_refused),
        cmocka_unit_test(
            who_keeps_the_connection_depends_on_version_and_header),
        cmocka_unit_test(chunks_are_joined_wherever_they_were_cut),
        cmocka_unit_test(malformed_chunks_are_refused),
        cmocka_unit_test(trailers_have_an_end),
        cmocka_unit_test(random_bytes_are_read_or_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
