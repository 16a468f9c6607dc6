/* SPDX-License-Identifier: MIT */
/* Options by name, as the shell sets and prints them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cli/report/settings.h"

#include "oom.h"

static struct cpprof__settings
begin(void)
{
    struct pprof_report_options defaults = PPROF_REPORT_DEFAULTS;
    struct cpprof__settings settings = {.report = {.options = defaults}};

    return settings;
}

static void
set_to(struct cpprof__settings *s, const char *name, const char *value)
{
    char reason[CPPROF__SETTING_TEXT] = "";

    if (!cpprof__setting_set(s, name, value, reason))
        fail_msg("%s=%s: %s", name, value, reason);
}

static void
refuses(struct cpprof__settings *s, const char *name, const char *value,
        const char *expected)
{
    char reason[CPPROF__SETTING_TEXT] = "";

    assert_false(cpprof__setting_set(s, name, value, reason));
    assert_string_equal(reason, expected);
}

static void
has_value(const struct cpprof__settings *s, const char *name,
          const char *expected)
{
    char text[CPPROF__SETTING_TEXT];
    const struct cpprof__flag *setting = cpprof__setting_find(name);

    assert_non_null(setting);
    assert_string_equal(cpprof__setting_get(s, setting, text), expected);
}

static void
table_is_sorted_and_found_by_name(void **state)
{
    const struct cpprof__flag *s;
    size_t i;

    (void)state;
    for (i = 0; (s = cpprof__setting(i)) != NULL; i++) {
        assert_ptr_equal(cpprof__setting_find(s->name), s);
        if (i)
            assert_true(strcmp(cpprof__setting(i - 1)->name, s->name) < 0);
    }
    assert_int_equal(i, 35);
    assert_null(cpprof__setting_find("inuse_space"));
    assert_null(cpprof__setting_find("base"));
    assert_null(cpprof__setting_find("nosuch"));
    assert_null(cpprof__setting_find(""));
}

static void
choice_is_found_by_its_words(void **state)
{
    const struct cpprof__flag *s = cpprof__setting_find("lines");

    (void)state;
    assert_string_equal(s->name, "granularity");
    assert_true(cpprof__setting_is_bool(s, "lines"));
    assert_false(cpprof__setting_is_bool(s, "granularity"));
    assert_false(
        cpprof__setting_is_bool(cpprof__setting_find("focus"), "focus"));
    assert_true(cpprof__setting_is_bool(cpprof__setting_find("trim"), "trim"));
}

static void
defaults_are_printed(void **state)
{
    struct cpprof__settings s = begin();

    (void)state;
    has_value(&s, "focus", "");
    has_value(&s, "nodecount", "-1");
    has_value(&s, "nodefraction", "0.005");
    has_value(&s, "edgefraction", "0.001");
    has_value(&s, "divide_by", "1");
    has_value(&s, "trim", "true");
    has_value(&s, "mean", "false");
    has_value(&s, "sort", "flat");
    has_value(&s, "granularity", "functions");
    has_value(&s, "unit", "minimum");
}

static void
every_kind_keeps_what_is_set(void **state)
{
    struct cpprof__settings s = begin();

    (void)state;
    set_to(&s, "focus", "a|b");
    has_value(&s, "focus", "a|b");
    set_to(&s, "focus", "other");
    has_value(&s, "focus", "other");
    set_to(&s, "nodecount", "-20");
    has_value(&s, "nodecount", "-20");
    set_to(&s, "normalize", "1");
    has_value(&s, "normalize", "true");
    set_to(&s, "trim", "no");
    has_value(&s, "trim", "false");
    assert_true(s.report.options.flags & PPROF_REPORT_NO_TRIM);
    set_to(&s, "mean", "");
    has_value(&s, "mean", "true");
    set_to(&s, "mean", "F");
    has_value(&s, "mean", "false");
    set_to(&s, "sort", "cum");
    has_value(&s, "sort", "cum");
    set_to(&s, "flat", "true");
    has_value(&s, "sort", "flat");
    set_to(&s, "granularity", "files");
    set_to(&s, "addresses", "1");
    has_value(&s, "granularity", "addresses");
    cpprof__settings_free(&s);
}

static void
numbers_are_printed_as_short_as_they_read(void **state)
{
    static const char *const same[] = {"0.5",   "1e-05", "2e+06", "123456",
                                       "0.001", "-3.25", "0.1"};
    struct cpprof__settings s = begin();
    size_t i;

    (void)state;
    for (i = 0; i < sizeof same / sizeof *same; i++) {
        set_to(&s, "divide_by", same[i]);
        has_value(&s, "divide_by", same[i]);
    }
}

static void
wrong_values_are_refused_and_change_nothing(void **state)
{
    struct cpprof__settings s = begin();

    (void)state;
    refuses(&s, "nodecount", "ten",
            "strconv.Atoi: parsing \"ten\": invalid syntax");
    refuses(&s, "nodecount", "", "strconv.Atoi: parsing \"\": invalid syntax");
    refuses(&s, "nodecount", "99999999999",
            "strconv.Atoi: parsing \"99999999999\": value out of range");
    has_value(&s, "nodecount", "-1");
    refuses(&s, "nodefraction", "1x",
            "strconv.ParseFloat: parsing \"1x\": invalid syntax");
    refuses(&s, "trim", "maybe", "illegal value \"maybe\" for bool variable");
    refuses(&s, "sort", "up", "invalid \"sort\" value \"up\"");
    refuses(&s, "lines", "0", "unknown config field \"lines\"");
    refuses(&s, "a\"b\n", "0", "unknown config field \"a\\\"b\\x0a\"");
    has_value(&s, "granularity", "functions");
}

static void
long_names_are_cut_in_messages(void **state)
{
    char name[4096], reason[CPPROF__SETTING_TEXT];
    struct cpprof__settings s = begin();

    (void)state;
    memset(name, '\\', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_false(cpprof__setting_set(&s, name, "", reason));
    assert_true(strlen(reason) < sizeof reason);
    assert_false(cpprof__setting_set(&s, "nodecount", name, reason));
    assert_false(cpprof__setting_set(&s, "trim", name, reason));
    assert_true(strlen(reason) < sizeof reason);
}

static void
missing_memory_leaves_the_value(void **state)
{
    struct cpprof__settings s = begin();
    char reason[CPPROF__SETTING_TEXT] = "";

    (void)state;
    oom_watch();
    set_to(&s, "focus", "before");
    oom.countdown = 0;
    assert_false(cpprof__setting_set(&s, "focus", "after", reason));
    oom.countdown = -1;
    assert_string_equal(reason, "out of memory");
    has_value(&s, "focus", "before");
    cpprof__settings_free(&s);
    assert_int_equal(oom.n_live, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_sorted_and_found_by_name),
        cmocka_unit_test(choice_is_found_by_its_words),
        cmocka_unit_test(defaults_are_printed),
        cmocka_unit_test(every_kind_keeps_what_is_set),
        cmocka_unit_test(numbers_are_printed_as_short_as_they_read),
        cmocka_unit_test(wrong_values_are_refused_and_change_nothing),
        cmocka_unit_test(long_names_are_cut_in_messages),
        cmocka_unit_test(missing_memory_leaves_the_value),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
