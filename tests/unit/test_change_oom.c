/* SPDX-License-Identifier: MIT */
/*
 * Whichever allocation fails, a change says so, leaves a profile that is whole
 * and nothing behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "change_fixture.h"
#include "oom.h"

static enum cpprof_status
names(struct pprof_profile *p, struct cpprof_error *error)
{
    struct pprof_name_filter filter = {sizeof filter, "foo|main", "nothing",
                                       "main.c", "f(o)*"};

    return pprof_filter_names(p, &filter, NULL, error);
}

static enum cpprof_status
show_from(struct pprof_profile *p, struct cpprof_error *error)
{
    return pprof_show_from(p, "foo", NULL, error);
}

static enum cpprof_status
tags(struct pprof_profile *p, struct cpprof_error *error)
{
    enum cpprof_status status =
        pprof_filter_labels(p, "tag[1-4],key", "key1=9kb:", NULL, error);

    return status == CPPROF_OK
               ? pprof_filter_labels(p, "key1=tag1,tag4", "x", NULL, error)
               : status;
}

static enum cpprof_status
tag_keys(struct pprof_profile *p, struct cpprof_error *error)
{
    return pprof_filter_label_keys(p, "key", "2$", NULL, error);
}

static enum cpprof_status
tag_frames(struct pprof_profile *p, struct cpprof_error *error)
{
    return pprof_add_label_frames(p, "key1,none", "key2", NULL, NULL, error);
}

static enum cpprof_status
prune(struct pprof_profile *p, struct cpprof_error *error)
{
    return pprof_prune(p, "foo.*", "foo_c.*", error);
}

static enum cpprof_status
prune_from(struct pprof_profile *p, struct cpprof_error *error)
{
    return pprof_prune_from(p, "main|foo", error);
}

static enum cpprof_status
compact(struct pprof_profile *p, struct cpprof_error *error)
{
    return pprof_compact(p, error);
}

static enum cpprof_status
set_label(struct pprof_profile *p, struct cpprof_error *error)
{
    return pprof_set_label(p, "a key", "a value", error);
}

static enum cpprof_status
set_number(struct pprof_profile *p, struct cpprof_error *error)
{
    return pprof_set_num_label(p, "a key", 7, "a unit", error);
}

static enum cpprof_status
remove_label(struct pprof_profile *p, struct cpprof_error *error)
{
    return pprof_remove_label(p, "key1", error);
}

static enum cpprof_status
remove_number(struct pprof_profile *p, struct cpprof_error *error)
{
    return pprof_remove_num_label(p, "key1", error);
}

static enum cpprof_status
merge(struct pprof_profile *p, struct cpprof_error *error)
{
    struct pprof_profile *twice[] = {p, p}, *merged = NULL;
    enum cpprof_status status = pprof_merge(twice, 2, &merged, error);

    assert_int_equal(merged != NULL, status == CPPROF_OK);
    pprof_free(merged);
    return status;
}

/* Wrong names are quoted, which allocates. */
static enum cpprof_status
sample_index(struct pprof_profile *p, struct cpprof_error *error)
{
    size_t index;
    enum cpprof_status status =
        pprof_find_sample_type(p, "none", &index, error);

    return status == CPPROF_INVALID ? CPPROF_OK : status;
}

/* As is an expression that does not compile. */
static enum cpprof_status
no_expression(struct pprof_profile *p, struct cpprof_error *error)
{
    enum cpprof_status status = pprof_prune(p, "((a|b)*", "", error);

    if (status == CPPROF_BAD_DATA)
        status = pprof_show_from(p, "\\p{Greek}((a|b)*", NULL, error);
    return status == CPPROF_BAD_DATA ? CPPROF_OK : status;
}

typedef enum cpprof_status (*change_fn)(struct pprof_profile *p,
                                        struct cpprof_error *error);

/* A profile of which some names and labels are not UTF-8. */
static struct pprof_profile *
make(void)
{
    static const char *const labels[] = {
        "key1=tag1 key1=9kb", "key2=\xff\xfetag4 key1=tag4", "key1=8 key2=7kb"};
    static const uint64_t stack[] = {2000, 1000};
    static const int64_t values[] = {5, 6};
    struct fixture f = {0};
    size_t i;

    reference_types(&f);
    reference_tables(&f, 1);
    for (i = 0; i < 3; i++)
        fixture_sample(&f, stack, 2, values, labels[i]);
    return fixture_must_read(&f);
}

/* Fail allocation n of the call; false when it needs no such one. */
static bool
fails(change_fn change, long n)
{
    struct cpprof_error error = {0};
    enum cpprof_status status;
    struct pprof_profile *p;

    oom_watch();
    p = make();
    oom.countdown = n;
    status = change(p, &error);
    oom.countdown = -1;
    assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    pprof_free(p);
    assert_int_equal(oom.n_live, 0);
    if (status == CPPROF_OK)
        return false;
    assert_int_equal(status, CPPROF_NOMEM);
    assert_string_equal(error.text, "out of memory");
    return true;
}

static void
changes_survive_want_of_memory(void **state)
{
    static const struct {
        change_fn change;
        long least; /* allocations that it has to make */
    } cases[] = {
        {names, 4},      {show_from, 3},    {tags, 5},
        {tag_keys, 3},   {tag_frames, 5},   {prune, 4},
        {prune_from, 3}, {compact, 10},     {set_label, 3},
        {set_number, 3}, {remove_label, 3}, {remove_number, 3},
        {merge, 10},     {sample_index, 1}, {no_expression, 4},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        long n = 0;

        while (fails(cases[i].change, n))
            n++;
        assert_in_range(n, cases[i].least, 1000);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_survive_want_of_memory),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
