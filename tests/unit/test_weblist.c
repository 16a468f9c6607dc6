/* SPDX-License-Identifier: MIT */
/* -weblist: which lines and instructions are on the page, under which values.
 */
#include "code_fixture.h"
#include "pprof_fixture.h"
#include "report_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* leaf at line 10, main at 11, cold in main at 12; as main begins at 0x10 of
 * the binary, the call is what main is at, and cold is in the middle of mov. */
static struct pprof_profile *
make(const char *binary)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, binary, "");
    fixture_stack(&f, "leaf main", 300000000, NULL);
    fixture_stack(&f, "cold<main", 100000000, NULL);
    fixture_stack(&f, "b>&", 50000000, NULL);
    return fixture_must_read(&f);
}

static struct pprof_report_options
options_of(const char *symbol)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;

    options.symbol = symbol;
    options.tools = code_folder;
    options.trim_path = "/src";
    options.source_path = code_folder;
    return options;
}

/* The page behind its head. */
static const char *
body(const struct report_text *t)
{
    const char *body = strstr((char *)t->bytes.data, "<body>");

    assert_non_null(body);
    return body;
}

static void
expect_in(const struct report_text *t, const char *text)
{
    if (!strstr(body(t), text))
        fail_msg("not there: %s", text);
}

static void
expect_not_in(const struct report_text *t, const char *text)
{
    if (strstr(body(t), text))
        fail_msg("there: %s", text);
}

static void
page(const char *binary, const char *symbol, struct report_text *t)
{
    struct pprof_profile *p = make(binary);

    *t = must_report(p, PPROF_REPORT_WEBLIST, options_of(symbol));
    pprof_free(p);
}

static void
instructions_are_under_their_lines(void **state)
{
    struct report_text t = {0};

    (void)state;
    page(code_path("prog"), "^leaf$", &t);
    expect_in(&t, "<h2>leaf</h2><p class=\"filename\">/src/file.c</p>\n"
                  "<pre onClick=\"pprof_toggle_asm(event)\">\n"
                  "  Total:       300ms      300ms (flat, cum) 66.67%\n"
                  "<span class=line>      5</span> <span class=nop>  "
                  "         .          .           5 </span>\n");
    expect_in(&t, "<span class=line>     10</span> <span class=livesrc>  "
                  "     300ms      300ms           10 </span>"
                  "<span class=asm>"
                  "               300ms      300ms        0:     push "
                  "&lt;&amp;&gt;   ");
    expect_in(&t, "                   .          .        8:     ret  ");
    expect_in(&t, "<span class=line>     15</span>");
    expect_not_in(&t, "<span class=line>     16</span>");
    expect_not_in(&t, "call");
    report_text_free(&t);
}

static void
inlined_code_is_under_its_caller(void **state)
{
    struct report_text t = {0};

    (void)state;
    page(code_path("prog"), "^main$", &t);
    expect_in(&t, "  Total:       100ms      400ms (flat, cum) 88.89%\n");
    /* Tabs are eight columns; what is inside is four more. */
    expect_in(&t, "           \t &lt;11&gt; </span><span class=asm>"
                  "                   .      300ms       10:              call"
                  "       leaf ");
    expect_in(&t, "<span class=inlinesrc>             3          ");
    expect_in(&t, "</span> <span class=unimportant>file.c:3</span>\n");
    report_text_free(&t);
}

static void
sample_inside_an_instruction_is_its_own(void **state)
{
    struct report_text t = {0};

    (void)state;
    page(code_path("prog"), "^cold$", &t);
    expect_in(&t, "<h2>cold</h2>");
    expect_in(&t, "<span class=line>      3</span> <span class=livesrc>");
    expect_not_in(&t, "<h2>main</h2>");
    report_text_free(&t);
}

static void
instruction_without_a_line_has_the_one_before(void **state)
{
    struct report_text t = {0};

    (void)state;
    page(code_path("prog"), "^main$", &t);
    expect_in(&t, "       18:              nop ");
    expect_in(&t, "<span class=unimportant>file.c:0</span>");
    report_text_free(&t);
}

static void
objdump_knows_functions_without_the_library(void **state)
{
    struct report_text t = {0};

    (void)state;
    code_no_library = true;
    page(code_path("prog"), "^main$", &t);
    code_no_library = false;
    expect_in(&t, "<h2>main</h2>");
    expect_in(&t, "       10:              call");
    expect_not_in(&t, "class=inlinesrc>  ");
    report_text_free(&t);
}

static void
lines_are_shown_without_a_binary(void **state)
{
    struct report_text t = {0};

    (void)state;
    page("/nowhere/prog", "leaf|main", &t);
    expect_in(&t, "<span class=line>     10</span> <span class=deadsrc>  "
                  "     300ms      300ms           10 </span>\n");
    /* What is inlined can be unfolded. */
    expect_in(&t, "<span class=line>     12</span> <span class=livesrc>  "
                  "     100ms      100ms           12 </span>"
                  "<span class=asm>  ");
    report_text_free(&t);
}

/* leaf and middle in root, and leaf in root; none has a line. */
static struct pprof_profile *
make_without_lines(const char *file)
{
    static const char *const names[] = {"leaf", "middle", "root"};
    struct fixture f = {0};
    uint64_t i;

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/nowhere/prog", "");
    for (i = 1; i <= 3; i++) {
        size_t mark;

        fixture_function(&f, i, names[i - 1], names[i - 1], file);
        mark = cpprof__put_begin(&f.bytes);
        cpprof__put_uint(&f.bytes, 1, i);
        cpprof__put_uint(&f.bytes, 2, 1);
        cpprof__put_uint(&f.bytes, 3, 0x1000 + i);
        fixture_line(&f, i, 0);
        cpprof__put_end(&f.bytes, 4, mark);
    }
    fixture_sample(&f, (const uint64_t[]){1, 2, 3}, 3,
                   (const int64_t[]){1, 300000000}, NULL);
    fixture_sample(&f, (const uint64_t[]){1, 3}, 2,
                   (const int64_t[]){1, 100000000}, NULL);
    return fixture_must_read(&f);
}

static void
functions_without_lines_are_pieces_of_their_own(void **state)
{
    static const char *const files[] = {"", "/src/file.c"};
    int i;

    (void)state;
    for (i = 0; i < 2; i++) {
        struct pprof_profile *p = make_without_lines(files[i]);
        struct report_text t =
            must_report(p, PPROF_REPORT_WEBLIST, options_of("."));

        expect_in(&t, "<h2>leaf</h2>");
        expect_in(&t, "  Total:       400ms      400ms (flat, cum)   100%\n");
        expect_in(&t, "<h2>middle</h2>");
        expect_in(&t, "  Total:           0      300ms (flat, cum) 75.00%\n");
        expect_in(&t, "<h2>root</h2>");
        expect_in(&t, "  Total:           0      400ms (flat, cum)   100%\n");
        report_text_free(&t);
        pprof_free(p);
    }
}

static void
names_are_escaped(void **state)
{
    struct report_text t = {0};

    (void)state;
    page("/nowhere/prog", "^b>", &t);
    expect_in(&t, "<h2>b&gt;&amp;</h2>");
    expect_not_in(&t, "b>&");
    report_text_free(&t);
}

static void
address_stands_for_its_function(void **state)
{
    struct report_text t = {0};

    (void)state;
    page(code_path("prog"), "0x1000", &t);
    expect_in(&t, "<h2>leaf</h2>");
    expect_not_in(&t, "<h2>main</h2>");
    report_text_free(&t);
}

static void
failure_of_objdump_is_told(void **state)
{
    struct report_text t = {0};

    (void)state;
    assert_true(code_script("objdump", "#!/bin/sh\n"
                                       "[ $1 = --version ] && "
                                       "echo GNU objdump && exit\nexit 3\n"));
    page(code_path("prog"), "^leaf$", &t);
    assert_true(code_script("objdump", CODE_OBJDUMP));
    assert_non_null(strstr((char *)t.warnings.data, "exit status 3"));
    expect_not_in(&t, "<h2>");
    report_text_free(&t);
}

/* 30 functions, each in a mapping of its own of the same binary. */
static struct pprof_profile *
make_scattered(void)
{
    struct fixture f = {0};
    uint64_t i;

    fixture_cpu(&f);
    for (i = 1; i <= 30; i++) {
        char name[16];

        snprintf(name, sizeof name, "f%d", (int)i);
        fixture_mapping(&f, i, i << 16, code_path("prog"), "");
        fixture_function(&f, i, name, name, "/src/file.c");
        fixture_location(&f, i, i, i << 16, i);
        fixture_sample(&f, &i, 1, (const int64_t[]){1, (int64_t)i}, NULL);
    }
    return fixture_must_read(&f);
}

static void
pieces_that_are_left_out_are_told_of(void **state)
{
    struct pprof_profile *p = make_scattered();
    struct report_text t =
        must_report(p, PPROF_REPORT_WEBLIST, options_of("f"));

    (void)state;
    assert_string_equal((char *)t.warnings.data,
                        "only 25 of 30 pieces of code are shown, those with "
                        "the most samples\n");
    report_text_free(&t);
    pprof_free(p);
}

/* A location with a function that is inlined into itself n - 1 times. */
static struct pprof_profile *
make_chain(uint64_t n)
{
    static const int64_t values[2] = {1, 1000};
    static const uint64_t location = 1;
    struct fixture f = {0};
    uint64_t i;
    size_t mark;

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/nonexistent", "");
    fixture_function(&f, 1, "f", "f", "/src/./file.c");
    mark = cpprof__put_begin(&f.bytes);
    cpprof__put_uint(&f.bytes, 1, location);
    cpprof__put_uint(&f.bytes, 2, 1);
    cpprof__put_uint(&f.bytes, 3, 0x1000);
    for (i = 0; i < n; i++)
        fixture_line(&f, 1, 10 + i);
    cpprof__put_end(&f.bytes, 4, mark);
    fixture_sample(&f, &location, 1, values, NULL);
    return fixture_must_read(&f);
}

static void
long_chains_of_inlined_calls_are_bounded(void **state)
{
    static const uint64_t lengths[] = {50, 600};
    bool warned;
    int i;

    (void)state;
    for (i = 0; i < 2; i++) {
        struct pprof_profile *p = make_chain(lengths[i]);
        struct report_text t =
            must_report(p, PPROF_REPORT_WEBLIST, options_of("^f"));

        assert_true(t.bytes.n < 40u * 1000 * 1000);
        expect_in(&t, "<span class=line>     59</span>");
        warned = t.warnings.n && strstr((char *)t.warnings.data,
                                        "some chains of inlined calls");
        assert_int_equal(warned, i == 1);
        if (i == 1)
            expect_in(&t, "<span class=line>    609</span>");
        report_text_free(&t);
        pprof_free(p);
    }
}

static void
no_match_is_an_error(void **state)
{
    struct pprof_profile *p = make(code_path("prog"));
    struct cpprof_error error = {0};
    struct report_text t = {0};

    (void)state;
    assert_int_equal(report_text_of(p, PPROF_REPORT_WEBLIST,
                                    options_of("nosuch"), &t, &error),
                     CPPROF_BAD_DATA);
    assert_string_equal(error.text, "no matches found for regexp: nosuch");
    report_text_free(&t);
    pprof_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_are_under_their_lines),
        cmocka_unit_test(inlined_code_is_under_its_caller),
        cmocka_unit_test(sample_inside_an_instruction_is_its_own),
        cmocka_unit_test(instruction_without_a_line_has_the_one_before),
        cmocka_unit_test(objdump_knows_functions_without_the_library),
        cmocka_unit_test(lines_are_shown_without_a_binary),
        cmocka_unit_test(functions_without_lines_are_pieces_of_their_own),
        cmocka_unit_test(names_are_escaped),
        cmocka_unit_test(address_stands_for_its_function),
        cmocka_unit_test(failure_of_objdump_is_told),
        cmocka_unit_test(pieces_that_are_left_out_are_told_of),
        cmocka_unit_test(long_chains_of_inlined_calls_are_bounded),
        cmocka_unit_test(no_match_is_an_error),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, code_make, code_remove);
}
