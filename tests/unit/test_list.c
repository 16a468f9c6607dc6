/* SPDX-License-Identifier: MIT */
/* -list: which lines are printed, and what happens to hostile file names. */
#include "pprof_fixture.h"
#include "report_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/cpprof-list-XXXXXX";
static char source[64];

/* Lines "1", "2", ... up to 30, some with a carriage return; the last one has
 * no end. */
static int
make_folder(void **state)
{
    FILE *file;
    int i;

    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(source, sizeof source, "%s/file.c", folder);
    file = fopen(source, "w");
    for (i = 1; file && i <= 30; i++)
        fprintf(file, "%d%s", i, i == 30 ? "" : i % 2 ? "\r\n" : "\n");
    return file ? fclose(file) : -1;
}

static int
remove_folder(void **state)
{
    (void)state;
    unlink(source);
    return rmdir(folder);
}

/* leaf is at lines 10 and 14, main at 11 and inlined at 14; all in
 * /src/./file.c. */
static struct pprof_profile *
make(void)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/usr/bin/prog", "");
    fixture_stack(&f, "leaf main", 300000000, NULL);
    fixture_stack(&f, "other cold leaf<main", 100000000, NULL);
    return fixture_must_read(&f);
}

static struct pprof_report_options
options_of(const char *symbol)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;

    options.symbol = symbol;
    options.trim_path = "/src";
    options.source_path = folder;
    return options;
}

static enum cpprof_status
list(struct pprof_report_options options, struct report_text *t,
     struct cpprof_error *error)
{
    struct pprof_profile *p = make();
    enum cpprof_status status =
        report_text_of(p, PPROF_REPORT_LIST, options, t, error);

    assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    pprof_free(p);
    return status;
}

static void
expect(struct pprof_report_options options, const char *text)
{
    struct pprof_profile *p = make();
    struct report_text t = must_report(p, PPROF_REPORT_LIST, options);

    assert_string_equal((char *)t.bytes.data, text);
    report_text_free(&t);
    pprof_free(p);
}

static void
lines_around_values_are_printed(void **state)
{
    (void)state;
    expect(options_of("^leaf$"),
           "Total: 400ms\n"
           "ROUTINE ======================== leaf in file.c\n"
           "     300ms      400ms (flat, cum)   100% of Total\n"
           "         .          .      5:5\n"
           "         .          .      6:6\n"
           "         .          .      7:7\n"
           "         .          .      8:8\n"
           "         .          .      9:9\n"
           "     300ms      300ms     10:10\n"
           "         .          .     11:11\n"
           "         .          .     12:12\n"
           "         .          .     13:13\n"
           "         .      100ms     14:14\n"
           "         .          .     15:15\n"
           "         .          .     16:16\n"
           "         .          .     17:17\n"
           "         .          .     18:18\n"
           "         .          .     19:19\n");
}

static void
functions_are_in_order_of_their_names(void **state)
{
    struct pprof_report_options options = options_of("cold|other");
    struct cpprof_error error = {0};
    struct report_text t = {0};
    const char *cold, *other;

    (void)state;
    assert_int_equal(list(options, &t, &error), CPPROF_OK);
    cold = strstr((char *)t.bytes.data, "=== cold in");
    other = strstr((char *)t.bytes.data, "=== other in");
    assert_non_null(cold);
    assert_non_null(other);
    assert_true(cold < other);
    report_text_free(&t);
}

/* What is printed of "^other$" where its source is found. */
#define OTHER                                                                  \
    "Total: 400ms\n"                                                           \
    "ROUTINE ======================== other in file.c\n"                       \
    "     100ms      100ms (flat, cum) 25.00% of Total\n"                      \
    "         .          .      7:7\n"                                         \
    "         .          .      8:8\n"                                         \
    "         .          .      9:9\n"                                         \
    "         .          .     10:10\n"                                        \
    "         .          .     11:11\n"                                        \
    "     100ms      100ms     12:12\n"                                        \
    "         .          .     13:13\n"                                        \
    "         .          .     14:14\n"                                        \
    "         .          .     15:15\n"                                        \
    "         .          .     16:16\n"                                        \
    "         .          .     17:17\n"

static void
file_above_the_folder_is_found(void **state)
{
    struct pprof_report_options options = options_of("^other$");
    char below[64];

    (void)state;
    snprintf(below, sizeof below, "%s/no/such", folder);
    options.source_path = below;
    expect(options, OTHER);
}

static void
missing_file_is_named(void **state)
{
    struct pprof_report_options options = options_of("^other$");

    (void)state;
    options.trim_path = "/nowhere";
    options.source_path = "/nowhere";
    expect(options, "Total: 400ms\n"
                    "ROUTINE ======================== other in /src/file.c\n"
                    "     100ms      100ms (flat, cum) 25.00% of Total\n"
                    " Error: open /src/file.c: no such file or directory; nor "
                    "found in /nowhere\n");
    options.source_path = NULL;
    expect(options, "Total: 400ms\n"
                    "ROUTINE ======================== other in /src/file.c\n"
                    "     100ms      100ms (flat, cum) 25.00% of Total\n"
                    " Error: open /src/file.c: no such file or directory\n");
    options.trim_path = "/src";
    options.source_path = "/nowhere";
    expect(options, "Total: 400ms\n"
                    "ROUTINE ======================== other in file.c\n"
                    "     100ms      100ms (flat, cum) 25.00% of Total\n"
                    " Error: could not find file file.c on path /nowhere\n");
}

/* The folder of the build is not here, and nobody says what to cut. */
static void
absolute_name_is_found_by_its_end(void **state)
{
    struct pprof_report_options options = options_of("^other$");
    struct pprof_profile *p = make();
    struct report_text found, t;

    (void)state;
    found = must_report(p, PPROF_REPORT_LIST, options);
    options.trim_path = "/nowhere";
    t = must_report(p, PPROF_REPORT_LIST, options);
    assert_non_null(strstr((char *)t.bytes.data, "/src/file.c\n"));
    assert_non_null(strstr((char *)found.bytes.data, "     12:"));
    assert_string_equal(strstr((char *)t.bytes.data, "Total\n"),
                        strstr((char *)found.bytes.data, "Total\n"));
    report_text_free(&found);
    report_text_free(&t);
    pprof_free(p);
}

static void
pipe_is_not_waited_for(void **state)
{
    struct pprof_report_options options = options_of("^other$");
    char below[64], pipe[80];

    (void)state;
    snprintf(below, sizeof below, "%s/pipe", folder);
    snprintf(pipe, sizeof pipe, "%s/file.c", below);
    assert_int_equal(mkdir(below, 0700), 0);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    options.source_path = below; /* and the file above it is found */
    expect(options, OTHER);
    unlink(pipe);
    rmdir(below);
}

static void
no_match_is_an_error(void **state)
{
    struct cpprof_error error = {0};
    struct report_text t = {0};

    (void)state;
    assert_int_equal(list(options_of("nosuch"), &t, &error), CPPROF_BAD_DATA);
    assert_string_equal(error.text, "no matches found for regexp: nosuch");
    assert_int_equal(t.bytes.n, 1);
    report_text_free(&t);
}

static void
bad_expression_is_an_error(void **state)
{
    struct cpprof_error error = {0};
    struct report_text t = {0};

    (void)state;
    assert_int_equal(list(options_of("("), &t, &error), CPPROF_BAD_DATA);
    assert_non_null(strstr(error.text, "parsing argument regexp"));
    report_text_free(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_around_values_are_printed),
        cmocka_unit_test(functions_are_in_order_of_their_names),
        cmocka_unit_test(file_above_the_folder_is_found),
        cmocka_unit_test(missing_file_is_named),
        cmocka_unit_test(absolute_name_is_found_by_its_end),
        cmocka_unit_test(pipe_is_not_waited_for),
        cmocka_unit_test(no_match_is_an_error),
        cmocka_unit_test(bad_expression_is_an_error),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
