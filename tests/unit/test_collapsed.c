/* SPDX-License-Identifier: MIT */
/* Collapsed stacks: read, written, and both. */
#include "pprof_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "text_fixture.h"

/* A profile made by the fixture, read again. */
static struct pprof_profile *
made(struct fixture *f)
{
    struct pprof_profile *p = NULL;

    fixture_strings(f);
    assert_int_equal(pprof_read_data(f->bytes.data, f->bytes.n, NULL, &p, NULL),
                     CPPROF_OK);
    fixture_free(f);
    return p;
}

/* Read, then write the last sample type. */
static void
assert_becomes(const char *text, const char *wanted)
{
    struct pprof_profile *p = text_must_read(cpprof__read_collapsed, text);
    char *written =
        text_write(cpprof__write_collapsed, p, p->sample_types.n - 1);

    assert_string_equal(written, wanted);
    free(written);
    pprof_free(p);
}

static void
assert_unrecognized(const char *text)
{
    struct cpprof_error error = {0};
    enum cpprof_status status;

    assert_null(
        text_read(cpprof__read_collapsed, text, strlen(text), &status, &error));
    assert_int_equal(status, CPPROF_OK);
}

/* ----------------------------------------------------------- reading ---- */

static void
stacks_are_read_leaf_first(void **state)
{
    struct pprof_profile *p = text_must_read(
        cpprof__read_collapsed, "main;read file;[libc.so.6]_[k] 12\nmain 3\n");
    const struct cpprof__sample *s = p->samples.at;
    const char *names[] = {"[libc.so.6]_[k]", "read file", "main"};
    size_t i;

    assert_int_equal(p->samples.n, 2);
    assert_int_equal(p->sample_types.n, 1);
    assert_string_equal(text_of(p, p->sample_types.at[0].type), "samples");
    assert_string_equal(text_of(p, p->sample_types.at[0].unit), "count");
    assert_int_equal(p->values.at[0], 12);
    assert_int_equal(p->values.at[1], 3);
    assert_int_equal(s[0].n_frames, 3);
    for (i = 0; i < 3; i++) {
        uint32_t frame = p->frames.at[s[0].first_frame + i];
        const struct pprof_location *l = &p->locations.at[frame];

        assert_string_equal(
            text_of(p,
                    p->functions.at[p->lines.at[l->first_line].function].name),
            names[i]);
    }
    /* Both stacks have the same main. */
    assert_int_equal(p->functions.n, 3);
    assert_int_equal(p->locations.n, 3);
    pprof_free(p);
}

static void
lines_of_many_kinds_are_read(void **state)
{
    assert_becomes("a;b 1", "a;b 1\n");
    assert_becomes("# made by hand\r\n\r\na;b 1\r\n\n", "a;b 1\n");
    assert_becomes("a;b\t7\n", "a;b 7\n");
    assert_becomes("a;;b 1\n;c 2\n", "a;b 1\nc 2\n");
    assert_becomes("a;b 2.5\na;c 2.49\na;d 3.\n", "a;b 3\na;c 2\na;d 3\n");
    assert_becomes("a;b -4\n", "a;b -4\n");
    assert_becomes("a;b 9223372036854775807.9\na;c -9223372036854775808\n",
                   "a;b 9223372036854775807\na;c -9223372036854775808\n");
    assert_becomes("a;b 9223372036854775807 1\na;c 9223372036854775808 2\n",
                   "a;b_9223372036854775807 1\na;c_9223372036854775808 2\n");
    assert_becomes("std::map<int, int>::at(int const&) const;x 1\n",
                   "std::map<int, int>::at(int const&) const;x 1\n");
    assert_becomes("\xd0\xb3\xd0\xbb;b 1\n", "\xd0\xb3\xd0\xbb;b 1\n");
    assert_becomes("only 5\n", "only 5\n");
}

static void
two_counts_in_every_line_are_two_types(void **state)
{
    struct pprof_profile *p =
        text_must_read(cpprof__read_collapsed, "a;b 10 20\na;c 0 5\n");

    assert_int_equal(p->sample_types.n, 2);
    assert_string_equal(text_of(p, p->sample_types.at[0].type), "base");
    assert_int_equal(p->values.at[0], 10);
    assert_int_equal(p->values.at[1], 20);
    assert_int_equal(p->values.at[2], 0);
    assert_int_equal(p->values.at[3], 5);
    pprof_free(p);
    /* In some lines they belong to the name; which is not written so again. */
    assert_becomes("a;thread 10 20\na;c 5\n", "a;thread_10 20\na;c 5\n");
}

static void
other_text_is_not_recognized(void **state)
{
    assert_unrecognized("");
    assert_unrecognized("\n\n# nothing\n");
    assert_unrecognized("hello");
    assert_unrecognized("12\n");
    assert_unrecognized("int main(void)\n{\n    return 0;\n}\n");
    assert_unrecognized("chapter 1\nIt was a dark night.\na;b 3\n");
    assert_unrecognized("404 page not found\n");
    assert_unrecognized("a;b 99999999999999999999\n");
    assert_unrecognized("a;b 0x12\n");
    assert_unrecognized("a;b\x01 5\n");
    assert_unrecognized("a;b 1e5\n");
    assert_unrecognized("a;b 1.5x\n");
    assert_unrecognized("a;b -9223372036854775809\n");
}

static void
malformed_line_is_told_by_its_number(void **state)
{
    static const char *const texts[] = {
        "# first\na;b 1\n\na;c\n",
        "a;b 1\r\nc 1\r\nd 1\r\nrest",
        "a;b 1\na;c 2\na;d 3\na;e 99999999999999999999\n",
        "a;b 1\na;c 2\na;d 3\na;e\x02 9\n",
    };
    size_t i;

    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct cpprof_error error = {0};
        enum cpprof_status status;

        assert_null(text_read(cpprof__read_collapsed, texts[i],
                              strlen(texts[i]), &status, &error));
        assert_int_equal(status, CPPROF_BAD_DATA);
        assert_string_equal(error.text,
                            "collapsed stacks: line 4 is no stack with a count "
                            "behind it");
    }
}

static void
text_cut_anywhere_is_read_or_refused(void **state)
{
    static const char text[] = "# x\r\nmain;a b;c_[k] 12\nmain;d 3.25\n"
                               "main;;[x] -7 8\r\n";
    size_t n;

    for (n = 0; n < sizeof text; n++) {
        struct cpprof_error error = {0};
        enum cpprof_status status;
        struct pprof_profile *p =
            text_read(cpprof__read_collapsed, text, n, &status, &error);

        if (p)
            assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
        assert_true((status == CPPROF_BAD_DATA) == (error.text[0] != 0));
        pprof_free(p);
    }
}

/* ----------------------------------------------------------- writing ---- */

static void
equal_stacks_are_one_line_at_the_first(void **state)
{
    assert_becomes("a;b 1\na;c 2\na;b 3\na 9\n", "a;b 4\na;c 2\na 9\n");
    assert_becomes("a;b 1\na;c 2\na;b -1\n", "a;c 2\n");
}

static void
inlined_functions_are_frames(void **state)
{
    struct fixture f = {0};
    struct pprof_profile *p;
    char *text;

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/bin/prog", "1234");
    fixture_stack(&f, "inner<middle<outer main", 30, "thread=a");
    fixture_stack(&f, "other main", 5, "thread=a");
    fixture_stack(&f, "inner<middle<outer main", 12, "thread=b");
    p = made(&f);
    text = text_write(cpprof__write_collapsed, p, 1);
    assert_string_equal(text, "main;outer;middle;inner 42\nmain;other 5\n");
    free(text);
    text = text_write(cpprof__write_collapsed, p, 0);
    assert_string_equal(text, "main;outer;middle;inner 2\nmain;other 1\n");
    free(text);
    pprof_free(p);
}

static void
frames_without_names_are_addresses(void **state)
{
    static const uint64_t stack[] = {2, 1}, nothing[] = {0};
    static const int64_t values[] = {1, 8};
    struct fixture f = {0};
    struct pprof_profile *p;
    char *text;

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/usr/lib/a;b.so", "");
    fixture_location(&f, 1, 1, 0x1abc, 0);
    fixture_location(&f, 2, 0, 0xffff0, 0);
    fixture_sample(&f, stack, 2, values, NULL);
    fixture_sample(&f, nothing, 0, values, NULL);
    p = made(&f);
    text = text_write(cpprof__write_collapsed, p, 1);
    assert_string_equal(text, "[a:b.so <0x1abc>];[unknown <0xffff0>] 8\n"
                              "[unknown] 8\n");
    free(text);
    pprof_free(p);
}

/* One sample of 3 with that stack, written as a line. */
static void
assert_stack_becomes(const char *stack, const char *line)
{
    struct fixture f = {0};
    struct pprof_profile *p;
    char *text;

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/bin/prog", "1234");
    fixture_stack(&f, stack, 3, NULL);
    p = made(&f);
    text = text_write(cpprof__write_collapsed, p, 1);
    assert_string_equal(text, line);
    free(text);
    pprof_free(p);
}

static void
names_that_would_break_a_line_are_bent(void **state)
{
    assert_stack_becomes("a;b c\nd #1", "_1;c d;a:b 3\n");
    assert_becomes("_1;c d;a:b 3\n", "_1;c d;a:b 3\n");
}

static void
line_that_would_be_an_indented_comment_is_bent(void **state)
{
    assert_stack_becomes("leaf \n#root", " _root;leaf 3\n");
}

static void
many_stacks_survive_the_round_trip(void **state)
{
    struct cpprof__buffer text = {0};
    int i;

    /* More than one piece of the sink, and tables that grow. */
    for (i = 0; i < 20000; i++)
        cpprof__buffer_printf(&text, "main;f%d;g%d;leaf <%d> %d\n", i % 7,
                              i % 1000, i, i + 1);
    cpprof__buffer_append(&text, "", 1);
    assert_becomes((char *)text.data, (char *)text.data);
    cpprof__buffer_free(&text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_are_read_leaf_first),
        cmocka_unit_test(lines_of_many_kinds_are_read),
        cmocka_unit_test(two_counts_in_every_line_are_two_types),
        cmocka_unit_test(other_text_is_not_recognized),
        cmocka_unit_test(malformed_line_is_told_by_its_number),
        cmocka_unit_test(text_cut_anywhere_is_read_or_refused),
        cmocka_unit_test(equal_stacks_are_one_line_at_the_first),
        cmocka_unit_test(inlined_functions_are_frames),
        cmocka_unit_test(frames_without_names_are_addresses),
        cmocka_unit_test(names_that_would_break_a_line_are_bent),
        cmocka_unit_test(line_that_would_be_an_indented_comment_is_bent),
        cmocka_unit_test(many_stacks_survive_the_round_trip),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
