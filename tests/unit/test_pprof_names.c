/* SPDX-License-Identifier: MIT */
/* Names of functions, and what else of a profile can be set. Expected texts
 * are what `go tool pprof` prints for the same names. */
#include "pprof_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>

/* The name shown for a function with that name and system name. */
static void
expect_name(const char *name, const char *system_name, enum pprof_demangle mode,
            uint32_t flags, const char *shown)
{
    struct fixture f = {0};
    struct pprof_profile *p;

    fixture_function(&f, 1, name, system_name, "");
    p = fixture_must_read(&f);
    assert_int_equal(pprof_demangle(p, mode, flags, NULL), CPPROF_OK);
    assert_string_equal(pprof_text(p, pprof_functions(p)->name, NULL), shown);
    pprof_free(p);
}

static void
mangled_names_are_shortened(void **state)
{
    static const char *const cases[][2] = {
        {"main", "main"},
        {"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
         "core::fmt::Write::write_fmt"},
        {"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
        {"_Z3fooILi1EEvv.part.0", "foo"},
        {"_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo"},
        {"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()"},
        {"_ZlsRSoRK1A", "operator<<"},
        {"_ZN1AptEv", "A::operator->"},
        {"_ZN1AcvT_IiEEv", "A::operator int"},
        {"_Z1fIXgtLi5ELi3EEEvv", "f"},
        {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector::push_back"},
        {"_ZltI1AEbRKT_S3_", "operator<"},
        {"_Znotmangled", "_Znotmangled"},
        {"main.main", "main.main"},
        {"foo.(*Bar[...]).Method", "foo.(*Bar[...]).Method"},
        {"a.<init>", "a.<init>"},
        {"std::foo<int>::bar(int)", "std::foo::bar"},
        {"operator<(a, b)", "operator<"},
        {"[lost samples]", "[lost samples]"},
        {"::f)", "::f)"},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_name(cases[i][0], cases[i][0], PPROF_DEMANGLE_SHORT, 0,
                    cases[i][1]);
        expect_name("", cases[i][0], PPROF_DEMANGLE_SHORT, 0, cases[i][1]);
    }
}

static void
demangled_names_stay_unless_told(void **state)
{
    expect_name("f(int)", "_Z1fIiEvi", PPROF_DEMANGLE_SHORT, 0, "f(int)");
    expect_name("f(int)", "_Z1fIiEvi", PPROF_DEMANGLE_SHORT,
                PPROF_DEMANGLE_AGAIN, "f");
    expect_name("f(int)", "_Z1fIiEvi", PPROF_DEMANGLE_TEMPLATES,
                PPROF_DEMANGLE_AGAIN, "f<int>");
    expect_name("f(int)", "_Z1fIiEvi", PPROF_DEMANGLE_FULL,
                PPROF_DEMANGLE_AGAIN, "void f<int>(int)");
    expect_name("f(int)", "_Z1fIiEvi", PPROF_DEMANGLE_NONE,
                PPROF_DEMANGLE_AGAIN, "_Z1fIiEvi");
    expect_name("only", "", PPROF_DEMANGLE_FULL, PPROF_DEMANGLE_AGAIN, "only");
}

/* Each parameter is twice the one before: in full, gigabytes. */
static void
name_that_would_be_huge_stays_mangled(void **state)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char name[512];
    int n = sprintf(name, "_Z1f1AIiiE"), i;

    for (i = 0; i < 36; i++)
        n += sprintf(name + n, "S_IS%c_S%c_E", digits[i], digits[i]);
    expect_name("", name, PPROF_DEMANGLE_FULL, 0, name);
    name[10 + 2 * 10] = 0;
    expect_name("", name, PPROF_DEMANGLE_FULL, 0,
                "f(A<int, int>, A<A<int, int>, A<int, int> >, A<A<A<int, int>, "
                "A<int, int> >, A<A<int, int>, A<int, int> > >)");
    expect_name("", name, PPROF_DEMANGLE_SHORT, 0, "f");
}

static void
first_mapping_can_be_named_or_made(void **state)
{
    struct fixture f = {0};
    struct pprof_profile *p;

    fixture_location(&f, 1, 0, 5, 0);
    p = fixture_must_read(&f);
    assert_int_equal(pprof_set_binary(p, "/bin/x", NULL, NULL), CPPROF_OK);
    assert_int_equal(pprof_set_binary(p, NULL, "abc", NULL), CPPROF_OK);
    assert_int_equal(pprof_mapping_count(p), 1);
    assert_int_equal(pprof_locations(p)->mapping, 0);
    assert_string_equal(pprof_text(p, pprof_mappings(p)->file, NULL), "/bin/x");
    assert_string_equal(pprof_text(p, pprof_mappings(p)->build_id, NULL),
                        "abc");
    assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    pprof_free(p);
}

static void
comment_is_added_at_the_end(void **state)
{
    struct fixture f = {0};
    struct pprof_profile *p;

    cpprof__put_uint(&f.bytes, 13, fixture_string(&f, "first"));
    p = fixture_must_read(&f);
    assert_int_equal(pprof_add_comment(p, "second", NULL), CPPROF_OK);
    assert_int_equal(pprof_comment_count(p), 2);
    assert_string_equal(pprof_text(p, pprof_comments(p)[1], NULL), "second");
    pprof_free(p);
}

static void
mode_that_is_none_is_refused(void **state)
{
    struct fixture f = {0};
    struct pprof_profile *p;

    (void)state;
    fixture_function(&f, 1, "_Z1fv", "_Z1fv", "");
    p = fixture_must_read(&f);
    assert_int_equal(pprof_demangle(p, PPROF_DEMANGLE_NONE + 1, 0, NULL),
                     CPPROF_INVALID);
    assert_int_equal(pprof_demangle(p, PPROF_DEMANGLE_SHORT, 2, NULL),
                     CPPROF_INVALID);
    assert_string_equal(pprof_text(p, pprof_functions(p)->name, NULL), "_Z1fv");
    pprof_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mangled_names_are_shortened),
        cmocka_unit_test(demangled_names_stay_unless_told),
        cmocka_unit_test(mode_that_is_none_is_refused),
        cmocka_unit_test(name_that_would_be_huge_stays_mangled),
        cmocka_unit_test(first_mapping_can_be_named_or_made),
        cmocka_unit_test(comment_is_added_at_the_end),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
