/* SPDX-License-Identifier: MIT */
/*
 * From the ring into stores: whose labels a sample has, when sets are equal,
 * when the store has no room for another one, and when it has no room for any.
 */
#include "collect/cpu/drain.h"
#include "collect/labels/labels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define WORDS (1u << 12)

/* A session's parts, and what its stores held when they were full. */
struct parts {
    struct cpprof__drain drain;
    struct cpprof__store store;
    void *block;
    unsigned n_stores;
    uint64_t counted; /* in stores that are gone */
    uint64_t labelled;
};

static void
count(struct parts *p)
{
    uint32_t i;

    for (i = 0; i < p->store.head->n_samples; i++) {
        const struct cpprof__store_sample *sample = &p->store.samples[i];

        p->counted += sample->count;
        p->labelled += sample->labels ? sample->count : 0;
        assert_true(sample->labels <= p->store.head->n_label_sets);
    }
}

static void
new_store(struct parts *p)
{
    size_t n = cpprof__store_bytes();

    if (p->block)
        munmap(p->block, n);
    p->block = mmap(NULL, n, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(p->block, MAP_FAILED);
    assert_true(cpprof__store_make(&p->store, p->block));
    cpprof__mappings_init(&p->drain.mappings, &p->store, false);
    p->n_stores++;
}

static bool
next_store(struct cpprof__drain *drain)
{
    count(drain->ctx);
    new_store(drain->ctx);
    return true;
}

static struct parts *
make(void)
{
    struct parts *p = calloc(1, sizeof *p);

    assert_non_null(p);
    p->drain.ring = calloc(1, cpprof__ring_bytes(WORDS));
    assert_non_null(p->drain.ring);
    cpprof__ring_init(p->drain.ring, WORDS);
    p->drain.store = &p->store;
    p->drain.live = true;
    p->drain.next_store = next_store;
    p->drain.ctx = p;
    new_store(p);
    return p;
}

static void
unmake(struct parts *p)
{
    munmap(p->block, cpprof__store_bytes());
    cpprof__drain_free(&p->drain);
    free(p->drain.ring);
    free(p);
}

static void
sample(struct parts *p, const struct cpprof_labels *set)
{
    const uintptr_t pcs[] = {0x1000, 0x2000};

    assert_true(cpprof__ring_push(p->drain.ring, 1, 0, (uintptr_t)set, pcs, 2));
    cpprof__drain_all(&p->drain);
}

static void
equal_sets_are_one_sample(void **state)
{
    struct cpprof_labels *a = cpprof_labels_new("k", "1", NULL);
    struct cpprof_labels *b = cpprof_labels_new("k", "1", NULL);
    struct cpprof_labels *c = cpprof_labels_new("k", "2", NULL);
    struct parts *p = make();

    (void)state;
    sample(p, a);
    sample(p, b);
    sample(p, a);
    sample(p, c);
    sample(p, NULL);
    assert_int_equal(p->store.head->n_label_sets, 2);
    assert_int_equal(p->store.head->n_samples, 3);
    assert_int_equal(p->store.samples[0].count, 3);
    unmake(p);
    cpprof_labels_free(a);
    cpprof_labels_free(b);
    cpprof_labels_free(c);
}

/* The address of a set that is gone may be that of another one. */
static void
a_set_is_what_it_says_and_not_where_it_is(void **state)
{
    struct cpprof_labels *set = cpprof_labels_new("k", "1", NULL);
    struct cpprof_labels *other = cpprof_labels_new("k", "2", NULL);
    struct parts *p = make();
    char *bytes = (char *)set + ((const char *)set->set.encoded - (char *)set);

    (void)state;
    sample(p, set);
    memcpy(bytes, other->set.encoded, set->set.n_encoded);
    set->set.hash = other->set.hash;
    sample(p, set);
    assert_int_equal(p->store.head->n_label_sets, 2);
    assert_int_equal(p->store.head->n_samples, 2);
    unmake(p);
    cpprof_labels_free(set);
    cpprof_labels_free(other);
}

static void
more_sets_than_a_store_takes_go_into_the_next(void **state)
{
    enum { SETS = CPPROF__STORE_LABEL_SETS * 2 + 100 };
    struct parts *p = make();
    char text[16];
    int i;

    (void)state;
    for (i = 0; i < SETS; i++) {
        struct cpprof_labels *set;

        snprintf(text, sizeof text, "%d", i);
        set = cpprof_labels_new("k", text, NULL);
        sample(p, set);
        cpprof_labels_free(set);
    }
    count(p);
    assert_int_equal(p->n_stores, 3);
    assert_int_equal(p->counted, SETS);
    assert_int_equal(p->labelled, SETS);
    assert_int_equal(p->drain.n_lost, 0);
    unmake(p);
}

static void
a_set_too_large_for_any_store_is_one_label(void **state)
{
    char *text = calloc(1, CPPROF__STORE_TEXT);
    struct parts *p = make();
    struct cpprof_labels *set;

    (void)state;
    memset(text, 'x', CPPROF__STORE_TEXT - 1);
    set = cpprof_labels_new("k", text, NULL);
    sample(p, set);
    count(p);
    assert_int_equal(p->n_stores, 1);
    assert_int_equal(p->counted, 1);
    assert_int_equal(p->labelled, 1);
    cpprof_labels_free(set);
    unmake(p);
    free(text);
}

static void
without_a_next_store_samples_go_without_labels(void **state)
{
    struct parts *p = make();
    char text[16];
    int i;

    (void)state;
    p->drain.next_store = NULL;
    for (i = 0; i < (int)CPPROF__STORE_LABEL_SETS + 10; i++) {
        struct cpprof_labels *set;

        snprintf(text, sizeof text, "%d", i);
        set = cpprof_labels_new("k", text, NULL);
        sample(p, set);
        cpprof_labels_free(set);
    }
    count(p);
    assert_int_equal(p->counted, CPPROF__STORE_LABEL_SETS + 10);
    assert_int_equal(p->labelled, CPPROF__STORE_LABEL_SETS);
    unmake(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_sets_are_one_sample),
        cmocka_unit_test(a_set_is_what_it_says_and_not_where_it_is),
        cmocka_unit_test(more_sets_than_a_store_takes_go_into_the_next),
        cmocka_unit_test(a_set_too_large_for_any_store_is_one_label),
        cmocka_unit_test(without_a_next_store_samples_go_without_labels),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
