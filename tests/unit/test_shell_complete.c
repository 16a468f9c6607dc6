/* SPDX-License-Identifier: MIT */
/* What Tab makes of a line. A bar in a line here is the cursor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cli/shell/shell.h"

#include "oom.h"

static const char stacks[] = "main;parse_line;ns::read(char const*) 3\n"
                             "main;parse_file;operator new[](unsigned) 2\n"
                             "main;parse_file;[vdso] 1\n";

static struct pprof_profile *
make(void)
{
    struct cpprof_error error = {0};
    struct pprof_profile *p = NULL;

    if (pprof_read_data(stacks, sizeof stacks - 1, NULL, &p, &error) !=
        CPPROF_OK)
        fail_msg("%s", error.text);
    return p;
}

/* The line after Tab, its cursor at its end; what is listed behind "?". */
static void
completed(const struct pprof_profile *p, const char *line, char out[256])
{
    size_t cursor = strcspn(line, "|"), i;
    struct cpprof__completion c;

    assert_true(cpprof__complete(p, line, cursor, &c));
    assert_true(c.n_replaced <= cursor);
    assert_true(c.n_listed <= c.n_matches);
    if (c.text) {
        snprintf(out, 256, "%.*s%s", (int)(cursor - c.n_replaced), line,
                 c.text);
    } else {
        snprintf(out, 256, "?");
        for (i = 0; i < c.n_listed; i++)
            snprintf(out + strlen(out), 256 - strlen(out), " %s", c.listed[i]);
    }
    cpprof__completion_free(&c);
}

static void
expect(const char *line, const char *expected)
{
    struct pprof_profile *p = make();
    char out[256];

    completed(p, line, out);
    assert_string_equal(out, expected);
    pprof_free(p);
}

static void
command_is_completed_with_a_blank(void **state)
{
    (void)state;
    expect("callg", "callgrind ");
    expect("  callg", "  callgrind ");
    expect("hel", "help ");
}

static void
option_is_completed_with_what_has_to_follow(void **state)
{
    (void)state;
    expect("prune", "prune_from=");
    expect("noin", "noinlines ");
    expect("filef", "filefunctions ");
}

static void
several_are_completed_as_far_as_they_agree(void **state)
{
    (void)state;
    expect("nod", "node");
    expect("node", "? nodecount nodefraction");
    expect("parse", "?");
    expect("peek pa", "peek parse_");
}

static void
values_of_options_are_known(void **state)
{
    (void)state;
    expect("granularity=fil", "granularity=file");
    expect("sort=c", "sort=cum");
    expect("sort = c", "sort = cum");
    expect("trim=f", "trim=false");
    expect("sample_index=sa", "sample_index=samples");
    expect("unit=m", "?");
}

static void
function_is_written_as_an_expression(void **state)
{
    (void)state;
    expect("peek ns", "peek ns::read\\(char\\sconst\\*\\) ");
    expect("focus=ope", "focus=operator\\snew\\[\\]\\(unsigned\\)");
    expect("focus=operator\\sn", "focus=operator\\snew\\[\\]\\(unsigned\\)");
    expect("top -[v", "top -\\[vdso\\] ");
    expect("top -\\[v", "top -\\[vdso\\] ");
}

static void
part_of_a_name_is_enough(void **state)
{
    (void)state;
    expect("list unsi", "list operator\\snew\\[\\]\\(unsigned\\) ");
    expect("list e_l", "list parse_line ");
    expect("list arse", "? parse_line parse_file");
}

static void
words_behind_the_cursor_do_not_matter(void **state)
{
    (void)state;
    expect("callg| top", "callgrind ");
    expect("peek main| x", "peek main ");
}

static void
empty_line_lists_the_first_of_all(void **state)
{
    struct pprof_profile *p = make();
    struct cpprof__completion c;

    (void)state;
    assert_true(cpprof__complete(p, "", 0, &c));
    assert_null(c.text);
    assert_int_equal(c.n_listed, CPPROF__MAX_LISTED);
    assert_true(c.n_matches > c.n_listed);
    cpprof__completion_free(&c);
    pprof_free(p);
}

static void
help_knows_commands_and_options(void **state)
{
    (void)state;
    expect("help tagf", "help tagfocus ");
    expect("help pars", "?");
}

static void
nothing_fits(void **state)
{
    (void)state;
    expect("zzz", "?");
    expect("tags pars", "?");
    expect("o pars", "?");
    expect("focus=zzz", "?");
    expect("peek \\", "?");
}

static void
every_cursor_in_every_line_is_fine(void **state)
{
    static const char *const lines[] = {"peek ns::read\\(char\\sconst\\*\\)",
                                        " focus = a\\",
                                        "top -",
                                        "= = =",
                                        "\\s\\\\s\t-",
                                        "help help -x"};
    struct pprof_profile *p = make();
    struct cpprof__completion c;
    size_t i, cursor;

    (void)state;
    for (i = 0; i < sizeof lines / sizeof *lines; i++)
        for (cursor = 0; cursor <= strlen(lines[i]); cursor++) {
            assert_true(cpprof__complete(p, lines[i], cursor, &c));
            assert_true(c.n_replaced <= cursor);
            cpprof__completion_free(&c);
        }
    pprof_free(p);
}

static void
missing_memory_is_said_and_leaks_nothing(void **state)
{
    static const char line[] = "peek ns";
    struct pprof_profile *p = make();
    struct cpprof__completion c;
    long n;
    bool ok = false;

    (void)state;
    for (n = 0; !ok; n++) {
        assert_true(n < 100);
        oom_watch();
        oom.countdown = n;
        ok = cpprof__complete(p, line, strlen(line), &c);
        oom.countdown = -1;
        if (!ok)
            assert_null(c.text);
        cpprof__completion_free(&c);
        assert_int_equal(oom.n_live, 0);
    }
    assert_true(n > 2);
    pprof_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_is_completed_with_a_blank),
        cmocka_unit_test(option_is_completed_with_what_has_to_follow),
        cmocka_unit_test(several_are_completed_as_far_as_they_agree),
        cmocka_unit_test(values_of_options_are_known),
        cmocka_unit_test(function_is_written_as_an_expression),
        cmocka_unit_test(part_of_a_name_is_enough),
        cmocka_unit_test(words_behind_the_cursor_do_not_matter),
        cmocka_unit_test(empty_line_lists_the_first_of_all),
        cmocka_unit_test(help_knows_commands_and_options),
        cmocka_unit_test(nothing_fits),
        cmocka_unit_test(every_cursor_in_every_line_is_fine),
        cmocka_unit_test(missing_memory_is_said_and_leaks_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
