/* SPDX-License-Identifier: MIT */
/* Passwords of URLs do not get into messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cli/messages.h"

static void
expect_message(const char *text, const char *expected)
{
    char out[256];

    cpprof__hide_passwords(text, out, sizeof out);
    assert_string_equal(out, expected);
}

static void
expect_source(const char *source, const char *expected)
{
    char out[256];

    cpprof__hide_password(source, out, sizeof out);
    assert_string_equal(out, expected);
}

static void
messages_hide_every_password(void **state)
{
    (void)state;
    expect_message("http://u:pw@h:1/x: failed", "http://u:xxxxx@h:1/x: failed");
    expect_message("a http://u:p@q@h/ b https://v:w@i",
                   "a http://u:xxxxx@h/ b https://v:xxxxx@i");
    expect_message("http://:pw@h/", "http://:xxxxx@h/");
    expect_message("http://u:p/w@h/x", "http://u:xxxxx@h/x");
}

static void
expect_text(const char *expected, const char *format, ...)
{
    char out[64];
    va_list args;

    va_start(args, format);
    cpprof__message_text(out, sizeof out, format, args);
    va_end(args);
    assert_string_equal(out, expected);
}

/* Terminals obey these as they do an escape. */
static void
messages_have_no_control_characters(void **state)
{
    (void)state;
    expect_text("a?b?c?d", "%s", "a\nb\033c\177d");
    expect_text("a?[31mb??]0;c", "%s", "a\x9b[31mb\xc2\x9d]0;c");
    expect_text("gr\xc3\xbc\xc3\x9f \xe2\x82\xac", "%s",
                "gr\xc3\xbc\xc3\x9f \xe2\x82\xac");
    expect_text("x?", "%s", "x\xe2");
}

static void
messages_without_passwords_stay(void **state)
{
    static const char *const texts[] = {
        "",
        "no such file",
        "http://h:80/x@y",
        "http://[::1]:80/x@y",
        "http://user@h/x",
        "http://h: wrong: see a@b",
        "://",
        "mail a:b@c",
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_message(texts[i], texts[i]);
}

static void
sources_hide_it_whatever_they_are(void **state)
{
    (void)state;
    expect_source("u:pw@host:80/x", "u:xxxxx@host:80/x");
    expect_source("http://u:p w@h/x", "http://u:xxxxx@h/x");
    expect_source("http://u:p#w@h/x", "http://u:xxxxx@h/x");
    expect_source("ftp://u:pw@h/x", "ftp://u:xxxxx@h/x");
    expect_source("host:6060/a@b", "host:6060/a@b");
    expect_source("/no/such/file", "/no/such/file");
}

static void
what_does_not_fit_is_cut(void **state)
{
    char out[12];

    (void)state;
    cpprof__hide_passwords("http://u:secret@host/", out, sizeof out);
    assert_string_equal(out, "http://u:xx");
    cpprof__hide_password("http://u:secret@host/", out, sizeof out);
    assert_string_equal(out, "http://u:xx");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_hide_every_password),
        cmocka_unit_test(messages_have_no_control_characters),
        cmocka_unit_test(messages_without_passwords_stay),
        cmocka_unit_test(sources_hide_it_whatever_they_are),
        cmocka_unit_test(what_does_not_fit_is_cut),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
