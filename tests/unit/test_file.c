/* SPDX-License-Identifier: MIT */
/* Files that are read whole: the file of a token, and fields of /proc. */
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "first_line.XXXXXX";

/* What is read of a file with that in it, into 8 bytes. */
static int
read_back(const char *content, char line[8])
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(content, file);
    fclose(file);
    return cpprof__first_line(path, line, 8);
}

static void
a_line_ends_at_its_end_or_the_files(void **state)
{
    char line[8];

    (void)state;
    assert_int_equal(read_back("token\n", line), 0);
    assert_string_equal(line, "token");
    assert_int_equal(read_back("a b\r\nc\n", line), 0);
    assert_string_equal(line, "a b");
    assert_int_equal(read_back("1234567", line), 0);
    assert_string_equal(line, "1234567");
}

static void
what_is_empty_too_long_or_no_text_is_refused(void **state)
{
    char line[8];

    (void)state;
    assert_int_equal(read_back("", line), EINVAL);
    assert_int_equal(read_back("\ntoken", line), EINVAL);
    assert_int_equal(read_back("12345678", line), EINVAL);
    assert_int_equal(read_back("a\tb\n", line), EINVAL);
    assert_int_equal(read_back("a\x7f\n", line), EINVAL);
}

static void
a_file_that_is_not_there_says_so(void **state)
{
    char line[8];

    (void)state;
    assert_int_equal(cpprof__first_line("/nonexistent/token", line, 8), ENOENT);
    assert_int_equal(cpprof__first_line("/", line, 8), EISDIR);
}

static void
a_file_is_read_up_to_a_limit_and_ends_in_zero(void **state)
{
    struct cpprof__buffer text = {0};
    char line[8];

    (void)state;
    read_back("Name:\tab\n", line);
    assert_int_equal(cpprof__file_read(&text, path, 9), 0);
    assert_int_equal(text.n, 9);
    assert_string_equal((char *)text.data, "Name:\tab\n");
    cpprof__buffer_free(&text);
    assert_int_equal(cpprof__file_read(&text, path, 8), EFBIG);
    cpprof__buffer_free(&text);
    assert_int_equal(cpprof__file_read(&text, "/nonexistent", 8), ENOENT);
    cpprof__buffer_free(&text);
}

static void
a_field_begins_a_line_and_ends_with_a_colon(void **state)
{
    static const char text[] = "XName: 1\nNames: 2\nName:\t 3\nLast:";

    (void)state;
    assert_string_equal(cpprof__field(text, "Name"), "3\nLast:");
    assert_string_equal(cpprof__field(text, "XName"),
                        "1\nNames: 2\nName:\t 3\nLast:");
    assert_string_equal(cpprof__field(text, "Last"), "");
    assert_null(cpprof__field(text, "ame"));
    assert_null(cpprof__field("", "Name"));
    assert_null(cpprof__field(NULL, "Name"));
}

static int
make_file(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    return fd < 0 ? -1 : close(fd);
}

static int
remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_ends_at_its_end_or_the_files),
        cmocka_unit_test(what_is_empty_too_long_or_no_text_is_refused),
        cmocka_unit_test(a_file_that_is_not_there_says_so),
        cmocka_unit_test(a_file_is_read_up_to_a_limit_and_ends_in_zero),
        cmocka_unit_test(a_field_begins_a_line_and_ends_with_a_colon),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
