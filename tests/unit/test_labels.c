/* SPDX-License-Identifier: MIT */
/*
 * Label sets: made, merged, printed, put into bytes and out of them (Go:
 * TestContextLabels, TestLabelMapStringer).
 */
#include "oom.h"

#include "collect/labels/labels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* {"path": "/index", "plain": 7, "size": -5 bytes} */
static struct cpprof_labels *
make_set(void)
{
    const struct cpprof_label labels[] = {
        {.key = "size", .num = -5, .unit = "bytes"},
        {.key = "plain", .num = 7},
        {.key = "path", .str = "/index"},
    };
    struct cpprof_labels *set = NULL;

    assert_int_equal(cpprof_labels_merge(NULL, labels, 3, &set, NULL),
                     CPPROF_OK);
    return set;
}

static struct cpprof__label_list
decoded(const struct cpprof_labels *set)
{
    struct cpprof__label_list list = {0};

    cpprof__labels_decode(set->set.encoded, set->set.n_encoded, &list);
    assert_false(list.failed);
    return list;
}

/* As text, of static memory. */
static const char *
text_of(const struct cpprof_labels *set)
{
    static char text[4096];
    struct cpprof__label_list list = decoded(set);
    struct cpprof__buffer out = {0};

    cpprof__labels_print(&out, list.at, list.n);
    cpprof__label_list_free(&list);
    assert_false(out.failed);
    assert_true(out.n < sizeof text);
    memcpy(text, out.data, out.n);
    text[out.n] = 0;
    cpprof__buffer_free(&out);
    return text;
}

static void
assert_text(struct cpprof_labels *set, const char *want)
{
    assert_non_null(set);
    assert_string_equal(text_of(set), want);
    cpprof_labels_free(set);
}

static void
labels_are_sorted_and_found_by_key(void **state)
{
    struct cpprof_labels *set = make_set();

    (void)state;
    assert_int_equal(cpprof_labels_count(set), 3);
    assert_string_equal(cpprof_labels_at(set, 0)->key, "path");
    assert_string_equal(cpprof_labels_at(set, 0)->str, "/index");
    assert_string_equal(cpprof_labels_at(set, 1)->key, "plain");
    assert_null(cpprof_labels_at(set, 1)->unit);
    assert_null(cpprof_labels_at(set, 3));
    assert_int_equal(cpprof_labels_find(set, "size")->num, -5);
    assert_string_equal(cpprof_labels_find(set, "size")->unit, "bytes");
    assert_int_equal(cpprof_labels_find(set, "plain")->num, 7);
    assert_null(cpprof_labels_find(set, "p"));
    assert_null(cpprof_labels_find(NULL, "path"));
    assert_int_equal(cpprof_labels_count(NULL), 0);
    cpprof_labels_free(set);
}

static void
the_last_of_equal_keys_counts(void **state)
{
    struct cpprof_labels *set =
        cpprof_labels_new("k", "1", "a", "x", "k", "2", "k", "3", NULL);

    (void)state;
    assert_text(set, "{\"a\":\"x\", \"k\":\"3\"}");
}

static void
a_key_without_value_is_no_set(void **state)
{
    struct cpprof_label nameless = {.str = "x"};
    struct cpprof_labels *set = NULL;
    struct cpprof_error error;

    (void)state;
    assert_null(cpprof_labels_new("a", "1", "b", NULL));
    assert_int_equal(cpprof_labels_merge(NULL, &nameless, 1, &set, &error),
                     CPPROF_INVALID);
    assert_string_equal(error.text, "label 0 has no key");
    assert_null(set);
}

static void
labels_of_a_child_win_over_its_parents(void **state)
{
    struct cpprof_labels *parent = cpprof_labels_new("a", "1", "b", "2", NULL);
    const struct cpprof_label more[] = {{.key = "b", .num = 9},
                                        {.key = "c", .str = ""}};
    struct cpprof_labels *child = NULL;

    (void)state;
    assert_int_equal(cpprof_labels_merge(parent, more, 2, &child, NULL),
                     CPPROF_OK);
    assert_string_equal(text_of(parent), "{\"a\":\"1\", \"b\":\"2\"}");
    cpprof_labels_free(parent);
    assert_text(child, "{\"a\":\"1\", \"b\":9, \"c\":\"\"}");
}

static void
many_labels_are_as_few(void **state)
{
    struct cpprof_label *labels = calloc(20000, sizeof *labels);
    char(*keys)[8] = calloc(20000, sizeof *keys);
    struct cpprof_labels *set = NULL;
    size_t i;

    (void)state;
    for (i = 0; i < 20000; i++) {
        snprintf(keys[i], sizeof keys[i], "k%05zu", (i * 7919) % 10000);
        labels[i] = (struct cpprof_label){.key = keys[i], .num = (int64_t)i};
    }
    assert_int_equal(cpprof_labels_merge(NULL, labels, 20000, &set, NULL),
                     CPPROF_OK);
    assert_int_equal(cpprof_labels_count(set), 10000);
    for (i = 1; i < 10000; i++)
        assert_true(strcmp(cpprof_labels_at(set, i - 1)->key,
                           cpprof_labels_at(set, i)->key) < 0);
    assert_int_equal(cpprof_labels_find(set, keys[3])->num, 10003);
    cpprof_labels_free(set);
    free(labels);
    free(keys);
}

static void
labels_print_as_in_go(void **state)
{
    struct cpprof_labels *none = NULL;

    (void)state;
    assert_int_equal(cpprof_labels_merge(NULL, NULL, 0, &none, NULL),
                     CPPROF_OK);
    assert_text(none, "{}");
    assert_text(cpprof_labels_new("Hello", "World", NULL),
                "{\"Hello\":\"World\"}");
    assert_text(
        cpprof_labels_new("qu'ote", "ab\\\"c\a\b\f\n\r\t\v\x01\x7f", NULL),
        "{\"qu'ote\":"
        "\"ab\\\\\\\"c\\a\\b\\f\\n\\r\\t\\v\\x01\\x7f\"}");
    /* Characters, one that is no character, halves of one, and hidden ones. */
    assert_text(cpprof_labels_new("u", "\xc3\xa9\xf0\x9f\x98\x80", NULL),
                "{\"u\":\"\xc3\xa9\xf0\x9f\x98\x80\"}");
    assert_text(cpprof_labels_new("u", "\xff\xc3(\xe2\x82\xed\xa0\x80", NULL),
                "{\"u\":\"\\xff\\xc3(\\xe2\\x82\\xed\\xa0\\x80\"}");
    assert_text(
        cpprof_labels_new("u", "\xc2\xa0\xe2\x80\x8b\xf3\xb0\x80\x80", NULL),
        "{\"u\":\"\\u00a0\\u200b\\U000f0000\"}");
    assert_text(make_set(), "{\"path\":\"/index\", \"plain\":7, "
                            "\"size\":\"-5 bytes\"}");
}

static void
equal_sets_have_equal_bytes(void **state)
{
    struct cpprof_labels *a = cpprof_labels_new("x", "1", "y", "2", NULL);
    struct cpprof_labels *b = cpprof_labels_new("y", "2", "x", "1", NULL);
    struct cpprof_labels *c = cpprof_labels_new("y", "1", "x", "2", NULL);

    (void)state;
    assert_int_equal(a->set.hash, b->set.hash);
    assert_int_equal(a->set.n_encoded, b->set.n_encoded);
    assert_memory_equal(a->set.encoded, b->set.encoded, a->set.n_encoded);
    assert_int_equal(a->set.n_encoded, c->set.n_encoded);
    assert_memory_not_equal(a->set.encoded, c->set.encoded, a->set.n_encoded);
    cpprof_labels_free(a);
    cpprof_labels_free(b);
    cpprof_labels_free(c);
}

static void
labels_survive_encoding(void **state)
{
    struct cpprof_labels *set = make_set();
    struct cpprof__label_list list = decoded(set);
    const struct cpprof__builder_label *labels = list.at;

    (void)state;
    assert_int_equal(list.n, 3);
    assert_string_equal(labels[0].key, "path");
    assert_string_equal(labels[0].str, "/index");
    assert_null(labels[1].str);
    assert_int_equal(labels[1].num, 7);
    assert_null(labels[1].num_unit);
    assert_int_equal(labels[2].num, -5);
    assert_string_equal(labels[2].num_unit, "bytes");
    cpprof__label_list_free(&list);
    cpprof_labels_free(set);
}

static void
labels_cut_anywhere_are_read_up_to_there(void **state)
{
    struct cpprof_labels *set = make_set();
    struct cpprof__label_list list = {0};
    size_t n;

    (void)state;
    for (n = 0; n < set->set.n_encoded; n++) {
        char *cut = malloc(n + 1); /* a sanitizer sees a byte too far */

        assert_non_null(cut);
        memcpy(cut, set->set.encoded, n);
        list.n = 0;
        cpprof__labels_decode(cut, n, &list);
        assert_true(list.n < 3);
        free(cut);
    }
    cpprof__label_list_free(&list);
    cpprof_labels_free(set);
}

/* n labels "key 0": "value", ... */
static struct cpprof_labels *
make_many(size_t n, size_t n_value)
{
    struct cpprof_label *labels = calloc(n, sizeof *labels);
    char(*keys)[32] = calloc(n, sizeof *keys);
    char *value = malloc(n_value + 1);
    struct cpprof_labels *set = NULL;
    size_t i;

    assert_true(labels && keys && value);
    memset(value, 'x', n_value);
    value[n_value] = 0;
    for (i = 0; i < n; i++) {
        snprintf(keys[i], sizeof *keys, "key %05zu", i);
        labels[i] = (struct cpprof_label){.key = keys[i], .str = value};
    }
    assert_int_equal(cpprof_labels_merge(NULL, labels, n, &set, NULL),
                     CPPROF_OK);
    free(labels);
    free(keys);
    free(value);
    return set;
}

static void
all_labels_of_a_set_come_out(void **state)
{
    struct cpprof_labels *set = make_many(4096, 4);
    struct cpprof__label_list list = decoded(set);
    size_t i;

    (void)state;
    assert_int_equal(list.n, 4096);
    for (i = 0; i < list.n; i++)
        assert_string_equal(list.at[i].key, cpprof_labels_at(set, i)->key);
    cpprof__label_list_free(&list);
    cpprof_labels_free(set);
}

static void
a_list_without_memory_says_so(void **state)
{
    struct cpprof_labels *set = make_many(40, 4);
    struct cpprof__label_list list = {0};

    (void)state;
    oom_watch();
    oom.countdown = 1;
    cpprof__labels_decode(set->set.encoded, set->set.n_encoded, &list);
    assert_true(list.failed);
    assert_true(list.n < 40);
    oom.countdown = -1;
    cpprof__label_list_free(&list);
    cpprof_labels_free(set);
}

/* Kind, key, two terminators. */
#define AROUND                                                                 \
    (sizeof "s"                                                                \
            "key 00000" +                                                      \
     1)

static void
a_set_that_is_too_large_says_so_where_it_is_sampled(void **state)
{
    const size_t most = CPPROF__LABELS_BYTES_MAX - AROUND;
    struct cpprof_labels *whole = make_many(1, most);
    struct cpprof_labels *large = make_many(1, most + 1), *child = NULL;
    const struct cpprof_label more = {.key = "a", .str = "b"};

    (void)state;
    assert_int_equal(whole->set.n_encoded, CPPROF__LABELS_BYTES_MAX);
    assert_string_equal(text_of(large),
                        "{\"labels\":\"[65537 bytes, too large]\"}");
    assert_int_equal(cpprof_labels_count(large), 1);
    assert_int_equal(strlen(cpprof_labels_find(large, "key 00000")->str),
                     most + 1);
    assert_int_equal(cpprof_labels_merge(large, &more, 1, &child, NULL),
                     CPPROF_OK);
    assert_string_equal(text_of(child),
                        "{\"labels\":\"[65542 bytes, too large]\"}");
    assert_int_equal(cpprof_labels_count(child), 2);
    assert_string_equal(cpprof_labels_find(child, "a")->str, "b");
    cpprof_labels_free(child);
    cpprof_labels_free(large);
    cpprof_labels_free(whole);
}

static void
without_memory_there_is_no_set_and_nothing_leaks(void **state)
{
    struct cpprof_label labels[40];
    struct cpprof_labels *set = NULL;
    enum cpprof_status status = CPPROF_NOMEM;
    long n, i;

    (void)state;
    for (i = 0; i < 40; i++)
        labels[i] = (struct cpprof_label){.key = i % 2 ? "a" : "b", .num = i};
    for (n = 0; status == CPPROF_NOMEM && n < 10; n++) {
        oom_watch();
        oom.countdown = n;
        status = cpprof_labels_merge(NULL, labels, 40, &set, NULL);
        if (status != CPPROF_OK)
            assert_int_equal(oom.n_live, 0);
        oom.countdown = -1;
    }
    assert_int_equal(status, CPPROF_OK);
    assert_true(n > 2);
    cpprof_labels_free(set);
}

/* As many, and with the same sum, as in Go 1.19 (strconv.IsPrint). */
static void
printable_characters_are_those_of_go(void **state)
{
    uint64_t n = 0, sum = 0;
    uint32_t rune;

    (void)state;
    for (rune = 0; rune < 0x110100; rune++) {
        if (!cpprof__is_printable(rune))
            continue;
        n++;
        sum += rune;
    }
    assert_int_equal(n, 143680);
    assert_int_equal(sum, 14795701354);
}

/* ---- readers ---------------------------------------------------------- */

static void
sets_are_freed_at_once_without_a_reader(void **state)
{
    (void)state;
    cpprof_labels_free(make_set());
    assert_int_equal(cpprof__labels_in_limbo(), 0);
}

static void
sets_wait_for_the_reader_that_may_have_them(void **state)
{
    struct cpprof_labels *first = make_set(), *second = make_set();
    struct cpprof__labels_reader reader;
    uint64_t clock;

    (void)state;
    cpprof__labels_reader_begin(&reader);
    cpprof_labels_free(cpprof_labels_ref(first)); /* not the last hold */
    assert_int_equal(cpprof__labels_in_limbo(), 0);
    cpprof_labels_free(first);
    clock = cpprof__labels_clock();
    cpprof_labels_free(second);
    assert_int_equal(cpprof__labels_in_limbo(), 2);
    assert_string_equal(first->labels[0].str, "/index");
    cpprof__labels_reader_passed(&reader, clock);
    assert_int_equal(cpprof__labels_in_limbo(), 1);
    assert_string_equal(second->labels[0].str, "/index");
    cpprof__labels_reader_end(&reader);
    assert_int_equal(cpprof__labels_in_limbo(), 0);
}

static void
sets_wait_for_the_slowest_reader(void **state)
{
    struct cpprof__labels_reader slow, quick;

    (void)state;
    cpprof__labels_reader_begin(&slow);
    cpprof_labels_free(make_set());
    cpprof__labels_reader_begin(&quick); /* cannot have it */
    cpprof__labels_reader_passed(&quick, cpprof__labels_clock());
    assert_int_equal(cpprof__labels_in_limbo(), 1);
    cpprof__labels_reader_end(&slow);
    assert_int_equal(cpprof__labels_in_limbo(), 0);
    cpprof_labels_free(make_set());
    assert_int_equal(cpprof__labels_in_limbo(), 1);
    cpprof__labels_reader_end(&quick);
    assert_int_equal(cpprof__labels_in_limbo(), 0);
}

/* ---- current ---------------------------------------------------------- */

static const struct cpprof_labels *seen;

static void
see(void *arg)
{
    (void)arg;
    seen = cpprof_labels_current();
}

static void
look(void *arg)
{
    see(NULL);
    snprintf(arg, 256, "%s", text_of(seen));
}

static void
do_runs_under_merged_labels_and_restores(void **state)
{
    struct cpprof_labels *outer = cpprof_labels_new("a", "1", "b", "1", NULL);
    struct cpprof_labels *inner = cpprof_labels_new("b", "2", NULL);
    char text[256];

    (void)state;
    cpprof_labels_do(inner, look, text);
    assert_string_equal(text, "{\"b\":\"2\"}");
    assert_null(cpprof_labels_current());
    assert_null(cpprof_labels_set_current(outer));
    cpprof_labels_do(inner, look, text);
    assert_string_equal(text, "{\"a\":\"1\", \"b\":\"2\"}");
    cpprof_labels_do(NULL, look, text);
    assert_string_equal(text, "{\"a\":\"1\", \"b\":\"1\"}");
    assert_ptr_equal(cpprof_labels_set_current(NULL), outer);
    cpprof_labels_free(outer);
    cpprof_labels_free(inner);
}

static void
do_without_memory_runs_under_its_set_alone(void **state)
{
    struct cpprof_labels *outer = cpprof_labels_new("a", "1", NULL);
    struct cpprof_labels *inner = cpprof_labels_new("b", "2", NULL);

    (void)state;
    cpprof_labels_set_current(outer);
    oom.countdown = 0;
    cpprof_labels_do(inner, see, NULL);
    oom.countdown = -1;
    assert_ptr_equal(seen, inner);
    assert_ptr_equal(cpprof_labels_set_current(NULL), outer);
    cpprof_labels_free(outer);
    cpprof_labels_free(inner);
}

static void
scopes_nest_and_end_with_their_block(void **state)
{
    (void)state;
    {
        CPPROF_LABELS_SCOPE("a", "1");
        assert_string_equal(text_of(cpprof_labels_current()), "{\"a\":\"1\"}");
        {
            CPPROF_LABELS_SCOPE("b", "2", "a", "3");
            assert_string_equal(text_of(cpprof_labels_current()),
                                "{\"a\":\"3\", \"b\":\"2\"}");
        }
        assert_string_equal(text_of(cpprof_labels_current()), "{\"a\":\"1\"}");
    }
    assert_null(cpprof_labels_current());
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_sorted_and_found_by_key),
        cmocka_unit_test(the_last_of_equal_keys_counts),
        cmocka_unit_test(a_key_without_value_is_no_set),
        cmocka_unit_test(labels_of_a_child_win_over_its_parents),
        cmocka_unit_test(many_labels_are_as_few),
        cmocka_unit_test(labels_print_as_in_go),
        cmocka_unit_test(printable_characters_are_those_of_go),
        cmocka_unit_test(equal_sets_have_equal_bytes),
        cmocka_unit_test(labels_survive_encoding),
        cmocka_unit_test(labels_cut_anywhere_are_read_up_to_there),
        cmocka_unit_test(all_labels_of_a_set_come_out),
        cmocka_unit_test(a_list_without_memory_says_so),
        cmocka_unit_test(a_set_that_is_too_large_says_so_where_it_is_sampled),
        cmocka_unit_test(without_memory_there_is_no_set_and_nothing_leaks),
        cmocka_unit_test(sets_are_freed_at_once_without_a_reader),
        cmocka_unit_test(sets_wait_for_the_reader_that_may_have_them),
        cmocka_unit_test(sets_wait_for_the_slowest_reader),
        cmocka_unit_test(do_runs_under_merged_labels_and_restores),
        cmocka_unit_test(do_without_memory_runs_under_its_set_alone),
        cmocka_unit_test(scopes_nest_and_end_with_their_block),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
