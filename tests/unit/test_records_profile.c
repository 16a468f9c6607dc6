/* SPDX-License-Identifier: MIT */
/*
 * Records as a count profile: their order, what is merged, and the text, which
 * is Go's to the byte (runtime/pprof printCountProfile).
 */
#include "collect/contention/block_profile.h"
#include "collect/encode/records_profile.h"
#include "collect/labels/labels.h"
#include "collect/signal/tables/label_numbers.h"
#include "collect/store/tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct cpprof__value_type type = {"things", "count"};
static const struct cpprof__records_form form = {
    .name = "things",
    .types = &type,
    .n_types = 1,
    .period_type = {"things", "count"},
    .period = 1,
};

/* Of stacks whose text is these return addresses. */
static uint32_t
stack(size_t n, ...)
{
    uintptr_t pcs[8];
    va_list args;
    size_t i;

    va_start(args, n);
    for (i = 0; i < n; i++)
        pcs[i] = va_arg(args, uintptr_t) - 1;
    va_end(args);
    return cpprof__tree_add(&cpprof__tables.tree, pcs, n);
}

#define PC(x) ((uintptr_t)(x))

static uint32_t
labels(const char *key, const char *value)
{
    struct cpprof_labels *set = cpprof_labels_new(key, value, NULL);
    uint32_t number = cpprof__label_set_number(&cpprof__tables.tree, set);

    assert_int_not_equal(number, 0);
    cpprof_labels_free(set);
    return number;
}

static int
keep(void *ctx, const void *data, size_t n)
{
    cpprof__buffer_append(ctx, data, n);
    return 0;
}

/* The text of records without names, in static memory. */
static const char *
form_text(const struct cpprof__records_form *of,
          struct cpprof__stack_record *records, size_t n, int debug)
{
    const struct cpprof_profile_options options = {.debug = debug,
                                                   .symbolize =
                                                       CPPROF_SYMBOLIZE_NONE,
                                                   .flags = CPPROF_FLAG_LEGACY};
    static struct cpprof__buffer out;

    out.n = 0;
    assert_int_equal(
        cpprof__records_write(
            of, records, n, &options,
            (struct cpprof_writer){.size = sizeof(struct cpprof_writer),
                                   .write = keep,
                                   .ctx = &out},
            NULL),
        CPPROF_OK);
    cpprof__buffer_append(&out, "", 1);
    return (char *)out.data;
}

static const char *
text_of(struct cpprof__stack_record *records, size_t n, int debug)
{
    return form_text(&form, records, n, debug);
}

static void
records_are_merged_and_sorted_by_count_then_text(void **state)
{
    struct cpprof__stack_record records[] = {
        {{1}, stack(2, PC(0x20000), PC(0x10010)), 0},
        {{1}, stack(2, PC(0x200000), PC(0x10010)), 0},
        {{1}, stack(1, PC(0x20000)), 0},
        {{1}, stack(2, PC(0x1f0000), PC(0x10010)), 0},
        {{1}, stack(2, PC(0x20000), PC(0x9000)), 0},
        {{1}, stack(1, PC(0xfffff)), 0},
        {{1}, stack(1, PC(0xfffff)), 0},
    };

    (void)state;
    assert_string_equal(text_of(records, 7, 0), "things profile: total 7\n"
                                                "2 @ 0xfffff\n"
                                                "1 @ 0x1f0000 0x10010\n"
                                                "1 @ 0x20000\n"
                                                "1 @ 0x20000 0x10010\n"
                                                "1 @ 0x20000 0x9000\n"
                                                "1 @ 0x200000 0x10010\n");
}

static void
labels_tell_records_apart_and_sort_by_their_text(void **state)
{
    struct cpprof__stack_record records[] = {
        {{2}, stack(1, PC(0x5000)), labels("k", "b")},
        {{2}, stack(1, PC(0x5000)), 0},
        {{1}, stack(1, PC(0x5000)), labels("k", "a\"")},
        {{1}, stack(1, PC(0x5000)), labels("k", "a\"")},
    };

    (void)state;
    assert_string_equal(text_of(records, 4, 0),
                        "things profile: total 6\n"
                        "2 @ 0x5000\n"
                        "2 @ 0x5000\n# labels: {\"k\":\"a\\\"\"}\n"
                        "2 @ 0x5000\n# labels: {\"k\":\"b\"}\n");
}

static void
waits_say_what_labels_tell_their_records_apart(void **state)
{
    struct cpprof__stack_record records[] = {
        {{1, 500}, stack(1, PC(0x5000)), labels("k", "a")},
        {{1, 700}, stack(1, PC(0x5000)), labels("k", "b")},
        {{1, 600}, stack(1, PC(0x5000)), 0},
    };

    (void)state;
    assert_string_equal(form_text(&cpprof__block_form, records, 3, 1),
                        "--- contention:\ncycles/second=1000000000\n"
                        "700 1 @ 0x5000\n# labels: {\"k\":\"b\"}\n"
                        "#\t0x4fff\n\n"
                        "600 1 @ 0x5000\n"
                        "#\t0x4fff\n\n"
                        "500 1 @ 0x5000\n# labels: {\"k\":\"a\"}\n"
                        "#\t0x4fff\n\n");
}

static void
labels_that_found_no_room_are_lost_and_said_so(void **state)
{
    struct cpprof__stack_record records[] = {
        {{1}, stack(1, PC(0x5000)), CPPROF__LABELS_LOST}};

    (void)state;
    assert_string_equal(text_of(records, 1, 0),
                        "things profile: total 1\n"
                        "1 @ 0x5000\n# labels: {\"labels\":\"[lost]\"}\n");
}

/* There was a bound of 64. */
static void
all_of_300_labels_are_written(void **state)
{
    struct cpprof_label many[300];
    struct cpprof_labels *set;
    struct cpprof__stack_record record = {{1}, stack(1, PC(0x5000)), 0};
    char keys[300][8];
    const char *text;
    size_t i;

    (void)state;
    for (i = 0; i < 300; i++) {
        snprintf(keys[i], sizeof keys[i], "k%03zu", i);
        many[i] = (struct cpprof_label){.key = keys[i], .str = "v"};
    }
    assert_int_equal(cpprof_labels_merge(NULL, many, 300, &set, NULL),
                     CPPROF_OK);
    record.labels = cpprof__label_set_number(&cpprof__tables.tree, set);
    text = text_of(&record, 1, 0);
    for (i = 0; i < 300; i++)
        assert_non_null(strstr(text, keys[i]));
    cpprof_labels_free(set);
}

/* There was a bound of 4096. */
static void
all_of_10000_label_sets_are_told_apart(void **state)
{
    struct cpprof__stack_record record = {{1}, stack(1, PC(0x5000)), 0};
    char text[16], wanted[40];
    unsigned i;

    (void)state;
    for (i = 0; i < 10000; i++) {
        snprintf(text, sizeof text, "%u", i);
        record.labels = labels("number", text);
        assert_int_not_equal(record.labels, CPPROF__LABELS_LOST);
        if (i % 1000)
            continue;
        snprintf(wanted, sizeof wanted, "{\"number\":\"%u\"}", i);
        assert_non_null(strstr(text_of(&record, 1, 0), wanted));
    }
    assert_int_equal(cpprof__label_set_number(&cpprof__tables.tree, NULL), 0);
}

static void
debug_1_has_a_line_for_each_frame_and_an_empty_one(void **state)
{
    struct cpprof__stack_record records[] = {
        {{3}, stack(2, PC(0x5000), PC(0x60000)), labels("k", "v")}};

    (void)state;
    assert_string_equal(text_of(records, 1, 1), "things profile: total 3\n"
                                                "3 @ 0x5000 0x60000\n"
                                                "# labels: {\"k\":\"v\"}\n"
                                                "#\t0x4fff\n"
                                                "#\t0x5ffff\n"
                                                "\n");
}

/* A record without an address is one that no reader takes. */
static void
a_record_is_never_without_a_frame(void **state)
{
    struct cpprof__stack_record records[] = {{{1}, 0, 0}};

    (void)state;
    assert_string_equal(text_of(records, 1, 0), "things profile: total 1\n"
                                                "1 @ 0x4\n");
    assert_string_equal(text_of(records, 1, 1),
                        "things profile: total 1\n"
                        "1 @ 0x4\n"
                        "#\t0x3\t[unwind failed]+0x0\t?:0\n\n");
}

static void
no_records_are_a_profile_too(void **state)
{
    struct cpprof__stack_record none[1];

    (void)state;
    assert_string_equal(text_of(none, 0, 1), "things profile: total 0\n");
}

/* The order is that of strcmp() over the addresses as text. */
static void
stacks_sort_as_their_texts_do(void **state)
{
    enum { N = 400 };
    struct cpprof__stack_record records[N];
    const char *text, *line;
    char before[64] = "", now[64];
    uint64_t random = 7;
    size_t i;

    (void)state;
    for (i = 0; i < N; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        records[i] = (struct cpprof__stack_record){
            {1}, stack(1, PC((random >> 8) >> (random % 45)) + 4096), 0};
    }
    text = text_of(records, N, 0);
    for (line = strchr(text, '\n') + 1; strncmp(line, "1 @", 3) != 0;)
        line = strchr(line, '\n') + 1; /* those that came twice */
    for (; *line; line = strchr(line, '\n') + 1) {
        assert_int_equal(sscanf(line, "1 @ %63s", now), 1);
        assert_true(strcmp(before, now) < 0);
        memcpy(before, now, sizeof now);
    }
}

static int
make_tables(void **state)
{
    (void)state;
    return cpprof__tables_make(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_merged_and_sorted_by_count_then_text),
        cmocka_unit_test(labels_tell_records_apart_and_sort_by_their_text),
        cmocka_unit_test(debug_1_has_a_line_for_each_frame_and_an_empty_one),
        cmocka_unit_test(a_record_is_never_without_a_frame),
        cmocka_unit_test(no_records_are_a_profile_too),
        cmocka_unit_test(stacks_sort_as_their_texts_do),
        cmocka_unit_test(waits_say_what_labels_tell_their_records_apart),
        cmocka_unit_test(labels_that_found_no_room_are_lost_and_said_so),
        cmocka_unit_test(all_of_300_labels_are_written),
        cmocka_unit_test(all_of_10000_label_sets_are_told_apart),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_tables, NULL);
}
