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
#include <sys/prctl.h>
#include <unistd.h>

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
sample_thread(struct parts *p, const struct cpprof_labels *set, int32_t tid)
{
    const struct cpprof__ring_head head = {
        .weight = 1, .tid = tid, .labels = (uintptr_t)set};
    const uintptr_t pcs[] = {0x1000, 0x2000};

    assert_true(cpprof__ring_push(p->drain.ring, &head, pcs, 2));
    cpprof__drain_all(&p->drain);
}

static void
sample(struct parts *p, const struct cpprof_labels *set)
{
    sample_thread(p, set, 0);
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

/* ---- names of threads --------------------------------------------------- */

/* The last set of the store, as it is encoded. */
static void
expect_last(const struct parts *p, const void *encoded, size_t n)
{
    const struct cpprof__store_labels *last =
        &p->store.label_sets[p->store.head->n_label_sets - 1];

    assert_int_equal(last->n_bytes, n);
    assert_memory_equal(p->store.text + last->text, encoded, n);
}

static struct parts *
make_with_names(const char *name)
{
    struct parts *p = make();

    p->drain.names = calloc(1, sizeof *p->drain.names);
    assert_non_null(p->drain.names);
    prctl(PR_SET_NAME, name);
    return p;
}

static void
name_of_the_thread_is_one_more_label(void **state)
{
    static const char alone[] = "sthread\0worker",
                      both[] = "sk\0001\0sthread\0worker";
    struct cpprof_labels *set = cpprof_labels_new("k", "1", NULL);
    struct parts *p = make_with_names("worker");

    (void)state;
    p->store.path = "a file"; /* that a recorder reads later */
    sample_thread(p, NULL, getpid());
    expect_last(p, alone, sizeof alone);
    sample_thread(p, set, getpid());
    expect_last(p, both, sizeof both);
    sample_thread(p, NULL, getpid());
    assert_int_equal(p->store.head->n_samples, 2);
    /* What is left in the ring of a dead process is known by where the set was
     * and the thread. */
    p->drain.live = false;
    sample_thread(p, set, getpid());
    sample_thread(p, NULL, getpid());
    assert_int_equal(p->store.head->n_samples, 2);
    assert_int_equal(p->store.samples[0].count, 3);
    assert_int_equal(p->store.samples[1].count, 2);
    unmake(p);
    cpprof_labels_free(set);
}

static void
label_of_the_program_goes_before_the_name(void **state)
{
    struct cpprof_labels *set = cpprof_labels_new("thread", "mine", NULL);
    struct parts *p = make_with_names("worker");

    (void)state;
    sample_thread(p, set, getpid());
    expect_last(p, set->set.encoded, set->set.n_encoded);
    unmake(p);
    cpprof_labels_free(set);
}

/* The kernel cuts a name after 15 bytes, wherever that is. */
static void
name_ends_where_it_is_no_text(void **state)
{
    static const char cut[] = "sthread\0longer-than-\xc3\xa4";
    struct parts *p = make_with_names("longer-than-\xc3\xa4\xc3\xb6");

    (void)state;
    sample_thread(p, NULL, getpid());
    expect_last(p, cut, sizeof cut);
    unmake(p);
}

static void
thread_that_is_gone_has_no_name(void **state)
{
    struct parts *p = make_with_names("worker");

    (void)state;
    sample_thread(p, NULL, INT32_MAX);
    assert_int_equal(p->store.head->n_samples, 1);
    assert_int_equal(p->store.head->n_label_sets, 0);
    unmake(p);
}

static void
append(const char *path, const char *text)
{
    FILE *file = fopen(path, "a");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* The mapping of the leaf of the sample that was counted last. */
static uint32_t
last_mapping(const struct parts *p)
{
    const struct cpprof__store *store = &p->store;

    return store->nodes[store->samples[store->head->n_samples - 1].node]
        .mapping;
}

/* 0x1000 is in no mapping: code that a compiler made. */
static void
made_code_is_kept_with_the_length_of_its_map(void **state)
{
    struct parts *p = make();
    char path[64];

    (void)state;
    p->drain.mappings.live = true;
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    unlink(path);
    sample(p, NULL);
    assert_int_equal(last_mapping(p), CPPROF__NO_MAPPING);
    append(path, "1000 10 one\n");
    sample(p, NULL);
    assert_int_equal(last_mapping(p), cpprof__made_code(12));
    append(path, "1000 10 other\n");
    sample(p, NULL);
    assert_int_equal(last_mapping(p), cpprof__made_code(26));
    sample(p, NULL);
    assert_int_equal(p->store.head->n_samples, 3);
    assert_int_equal(p->store.samples[2].count, 2);
    unlink(path);
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
        cmocka_unit_test(name_of_the_thread_is_one_more_label),
        cmocka_unit_test(label_of_the_program_goes_before_the_name),
        cmocka_unit_test(name_ends_where_it_is_no_text),
        cmocka_unit_test(thread_that_is_gone_has_no_name),
        cmocka_unit_test(made_code_is_kept_with_the_length_of_its_map),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
