/* SPDX-License-Identifier: MIT */
/*
 * Differences between two moments: of records that are kept, of a heap's tables
 * made by hand, and by the public calls over profiles of the program's own;
 * and that each allocation may fail.
 */
#include "heap_fixture.h"

#include "collect/capture/kept_records.h"
#include "collect/encode/names.h"
#include "collect/store/tables.h"
#include "oom.h"
#include "views.h"

#include <cpprof/captures.h>

#define KEEP_IN_USE false
#define DIFFERENCE  true

/* ---- records ---------------------------------------------------------- */

static void
assert_record(const struct cpprof__stack_record *record, uint32_t stack,
              uint32_t labels, int64_t a, int64_t b)
{
    assert_int_equal(record->stack, stack);
    assert_int_equal(record->labels, labels);
    assert_int_equal(record->values[0], a);
    assert_int_equal(record->values[1], b);
}

static void
records_of_one_key_are_joined_and_empty_ones_left_out(void **state)
{
    const struct cpprof__stack_record records[] = {
        {{1, 10}, 7, 2}, {{0, 0}, 3, 0}, {{2, 20}, 7, 2}, {{5, 0}, 7, 1}};
    const struct cpprof__kept nothing = {0};
    struct cpprof__stack_record *found;
    struct cpprof__kept kept;
    size_t n;

    assert_true(cpprof__kept_records(&kept, records, 4, 2));
    assert_int_equal(kept.n, 2);
    found = cpprof__kept_difference(&kept, &nothing, &n);
    assert_int_equal(n, 2);
    assert_record(&found[0], 7, 1, 5, 0);
    assert_record(&found[1], 7, 2, 3, 30);
    free(found);
    cpprof__kept_free(&kept);
}

static void
what_is_gone_is_negative_and_what_did_not_change_is_left_out(void **state)
{
    const struct cpprof__stack_record before[] = {
        {{4}, 1, 0}, {{1}, 2, 0}, {{3}, 5, 0}, {{2}, 9, 4097}};
    const struct cpprof__stack_record after[] = {
        {{2}, 9, 4097}, {{6}, 3, 0}, {{1}, 2, 0}, {{5}, 5, 0}};
    struct cpprof__kept base, now;
    struct cpprof__stack_record *records;
    size_t n;

    assert_true(cpprof__kept_records(&base, before, 4, 1));
    assert_true(cpprof__kept_records(&now, after, 4, 1));
    records = cpprof__kept_difference(&now, &base, &n);
    assert_int_equal(n, 3);
    assert_record(&records[0], 1, 0, -4, 0);
    assert_record(&records[1], 3, 0, 6, 0);
    assert_record(&records[2], 5, 0, 2, 0);
    free(records);
    cpprof__kept_free(&base);
    cpprof__kept_free(&now);
}

/* ---- a heap ----------------------------------------------------------- */

static void
take(const struct made *m, uint32_t flags, struct cpprof__heap_records *records)
{
    assert_int_equal(
        cpprof__heap_records_take(&m->heap, 0, flags, records, NULL),
        CPPROF_OK);
}

static void
keep(const struct made *m, struct cpprof__kept *kept)
{
    struct cpprof__heap_records records;

    take(m, 0, &records);
    assert_true(cpprof__kept_heap(kept, &records));
    free(records.records);
}

static struct pprof_profile *
difference(const struct made *m, const struct cpprof__kept *base, bool in_use,
           uint32_t flags)
{
    const struct cpprof_heap_options options = {.flags = flags};
    struct cpprof__heap_records records;
    struct sink s = {0};

    take(m, flags, &records);
    cpprof__kept_subtract_heap(&records, base, in_use);
    assert_int_equal(cpprof__heap_write_proto(&m->source, &options, &records,
                                              sink_writer(&s), NULL),
                     CPPROF_OK);
    free(records.records);
    return read_back(&s);
}

static void
assert_sample(const struct pprof_profile *p, size_t i, int64_t a, int64_t b,
              int64_t c, int64_t d)
{
    const int64_t *values = sample_of(p, i).values;

    assert_int_equal(values[0], a);
    assert_int_equal(values[1], b);
    assert_int_equal(values[2], c);
    assert_int_equal(values[3], d);
}

/* The first block of that bucket is freed. */
static void
release(struct made *m, uint32_t bucket)
{
    uint32_t i;

    for (i = 1; i < m->heap.head->n_blocks; i++) {
        if (m->heap.blocks[i].bucket != bucket || !m->heap.blocks[i].address)
            continue;
        m->heap.blocks[i].address = 0;
        return;
    }
    fail();
}

static void
a_heap_has_what_came_and_what_went(void **state)
{
    struct cpprof__kept base;
    struct pprof_profile *p;
    uint32_t bucket;
    struct made m;

    make(&m);
    bucket = add_samples(&m, PCS(0x10310, 0x10010), 4, 3, 64, 2);
    add_samples(&m, PCS(0x10320, 0x10010), 2, 2, 128, 1);
    keep(&m, &base);
    release(&m, bucket);
    add_samples(&m, PCS(0x10330, 0x10010), 5, 1, 64, 2);
    p = difference(&m, &base, DIFFERENCE, 0);
    assert_int_equal(pprof_sample_count(p), 2);
    assert_sample(p, 0, 10, 640, 2, 128);
    assert_sample(p, 1, 0, 0, -2, -128);
    assert_int_equal(sample_of(p, 1).labels[0].num, 64);
    pprof_free(p);
    p = difference(&m, &base, KEEP_IN_USE, 0);
    assert_int_equal(pprof_sample_count(p), 3);
    assert_sample(p, 0, 10, 640, 2, 128);
    assert_sample(p, 1, 0, 0, 2, 256);
    assert_sample(p, 2, 0, 0, 4, 256);
    pprof_free(p);
    cpprof__kept_free(&base);
    unmake(&m);
}

static void
nothing_is_a_whole_profile_without_samples(void **state)
{
    struct pprof_info info;
    struct cpprof__kept base;
    struct pprof_profile *p;
    struct made m;

    make(&m);
    m.source.duration_ns = 1500000000;
    add_samples(&m, PCS(0x10310, 0x10010), 4, 3, 64, 2);
    keep(&m, &base);
    p = difference(&m, &base, DIFFERENCE, CPPROF_FLAG_ALLOCS);
    info = info_of(p);
    assert_int_equal(pprof_sample_count(p), 0);
    assert_int_equal(pprof_sample_type_count(p), 4);
    assert_int_equal(pprof_mapping_count(p), 2);
    assert_int_equal(info.period, 524288);
    assert_string_equal(text_of(p, info.period_type.type), "space");
    assert_string_equal(text_of(p, info.default_sample_type), "alloc_space");
    assert_int_equal(pprof_comment_count(p), 1);
    assert_int_equal(info.duration_ns, 1500000000);
    assert_int_equal(info.time_ns, TIME_NS);
    pprof_free(p);
    cpprof__kept_free(&base);
    unmake(&m);
}

static void
of_lost_samples_only_new_ones_are_in_it(void **state)
{
    struct cpprof__kept base;
    struct pprof_profile *p;
    struct made m;

    make(&m);
    m.heap.head->n_lost = 3;
    m.heap.head->lost_objects = FRACTION(3);
    m.heap.head->lost_bytes = FRACTION(300);
    keep(&m, &base);
    p = difference(&m, &base, DIFFERENCE, 0);
    assert_int_equal(pprof_sample_count(p), 0);
    pprof_free(p);
    m.heap.head->n_lost = 4;
    m.heap.head->lost_objects = FRACTION(5);
    m.heap.head->lost_bytes = FRACTION(700);
    p = difference(&m, &base, DIFFERENCE, 0);
    assert_int_equal(pprof_sample_count(p), 1);
    assert_sample(p, 0, 2, 400, 0, 0);
    pprof_free(p);
    cpprof__kept_free(&base);
    unmake(&m);
}

/* A record takes what the header of the public call says. */
static void
a_record_of_a_heap_takes_40_bytes(void **state)
{
    struct cpprof__kept kept;
    struct made m;
    size_t i;

    make(&m);
    for (i = 0; i < 1000; i++)
        add_samples(&m, PCS(0x10310 + i, 0x10010), 1, 1, 64, 1);
    oom_watch();
    keep(&m, &kept);
    assert_int_equal(kept.n, 1000);
    assert_in_range(oom.in_bytes, 40 * 1000, 40 * 1000 + 64);
    cpprof__kept_free(&kept);
    assert_int_equal(oom.in_bytes, 0);
    unmake(&m);
}

/* ---- the public calls -------------------------------------------------- */

static struct cpprof_profile *things;

static int
set_up(void **state)
{
    return cpprof_profile_new("things", &things, NULL) != CPPROF_OK;
}

static const struct cpprof_profile_options no_names = {
    .size = sizeof no_names, .symbolize = CPPROF_SYMBOLIZE_NONE};

static struct cpprof_snapshot *
snapshot_of(struct cpprof_profile *profile, uint32_t flags)
{
    const struct cpprof_profile_options options = {.size = sizeof options,
                                                   .flags = flags};
    struct cpprof_snapshot *snapshot;
    struct cpprof_error error;

    if (cpprof_snapshot_new(profile, &options, &snapshot, &error))
        fail_msg("%s", error.text);
    return snapshot;
}

static struct pprof_profile *
delta_of(struct cpprof_snapshot *snapshot)
{
    struct cpprof_error error;
    struct sink s = {0};

    if (cpprof_snapshot_write_delta(snapshot,
                                    (struct cpprof_writer[]){sink_writer(&s)},
                                    &no_names, &error))
        fail_msg("%s", error.text);
    assert_int_equal(s.n_closes, 1);
    assert_int_equal(s.failed, 0);
    return read_back(&s);
}

/* Callers are told apart by line, so there may be several samples. */
static int64_t
sum_of(struct cpprof_snapshot *snapshot)
{
    struct pprof_profile *p = delta_of(snapshot);
    int64_t sum = 0;
    size_t i;

    assert_int_equal(pprof_sample_type_count(p), 1);
    for (i = 0; i < pprof_sample_count(p); i++)
        sum += sample_of(p, i).values[0];
    pprof_free(p);
    return sum;
}

static void
assert_no_difference(struct cpprof_snapshot *snapshot)
{
    struct pprof_profile *p = delta_of(snapshot);
    struct pprof_info info = info_of(p);

    assert_int_equal(pprof_sample_count(p), 0);
    assert_int_equal(pprof_sample_type_count(p), 1);
    assert_string_equal(text_of(p, info.period_type.type), "things");
    assert_int_equal(info.period, 1);
    assert_true(info.duration_ns > 0);
    assert_true(info.time_ns > 0);
    pprof_free(p);
}

static void
add_and_remove(size_t add, size_t remove)
{
    static char at[64];
    static size_t n;

    while (remove--)
        cpprof_profile_remove(things, &at[--n]);
    while (add--)
        assert_int_equal(cpprof_profile_add(things, &at[n++], 0, NULL),
                         CPPROF_OK);
}

static void
each_difference_is_to_the_one_before(void **state)
{
    struct cpprof_snapshot *snapshot;

    add_and_remove(2, 0);
    snapshot = snapshot_of(things, 0);
    assert_no_difference(snapshot);
    add_and_remove(3, 0);
    assert_int_equal(sum_of(snapshot), 3);
    assert_no_difference(snapshot);
    add_and_remove(0, 4);
    assert_int_equal(sum_of(snapshot), -4);
    add_and_remove(0, 1);
    assert_int_equal(sum_of(snapshot), -1);
    assert_no_difference(snapshot);
    cpprof_snapshot_free(snapshot);
    cpprof_snapshot_free(NULL);
}

static void
an_empty_snapshot_begins_with_the_whole(void **state)
{
    struct cpprof_snapshot *snapshot;
    struct pprof_profile *p;

    add_and_remove(2, 0);
    snapshot = snapshot_of(things, CPPROF_FLAG_SINCE_START);
    p = delta_of(snapshot);
    assert_int_equal(pprof_sample_count(p), 1);
    assert_int_equal(sample_of(p, 0).values[0], 2);
    assert_int_equal(info_of(p).duration_ns, 0);
    pprof_free(p);
    assert_no_difference(snapshot);
    add_and_remove(0, 2);
    cpprof_snapshot_free(snapshot);
}

static void
misuse_is_told_and_the_writer_closed(void **state)
{
    struct cpprof_profile_options options = {.size = sizeof options};
    struct cpprof_snapshot *snapshot = NULL;
    struct cpprof_error error;
    struct sink s = {0};

    assert_int_equal(cpprof_snapshot_new(NULL, NULL, &snapshot, &error),
                     CPPROF_INVALID);
    assert_string_equal(error.text, "pprof: use of zero Profile");
    options.flags = CPPROF_FLAG_LEGACY;
    assert_int_equal(cpprof_snapshot_new(things, &options, &snapshot, &error),
                     CPPROF_INVALID);
    options.flags = 0;
    options.debug = 1;
    assert_int_equal(cpprof_snapshot_new(things, &options, &snapshot, &error),
                     CPPROF_INVALID);
    assert_null(snapshot);
    snapshot = snapshot_of(things, CPPROF_FLAG_SINCE_START);
    assert_int_equal(cpprof_snapshot_write_delta(
                         snapshot, (struct cpprof_writer[]){sink_writer(&s)},
                         &options, &error),
                     CPPROF_INVALID);
    assert_int_equal(s.n_closes, 1);
    options.debug = 0;
    options.flags = CPPROF_FLAG_LABELS;
    assert_int_equal(cpprof_snapshot_write_delta(
                         snapshot, (struct cpprof_writer[]){sink_writer(&s)},
                         &options, &error),
                     CPPROF_INVALID);
    assert_string_equal(error.text, "flags are not those of the snapshot");
    assert_int_equal(s.n_closes, 2);
    assert_int_equal(s.failed, 1);
    cpprof_snapshot_free(snapshot);
}

/* And it is written again, whole, once there is room. */
static void
after_a_failed_write_the_snapshot_is_as_it_was(void **state)
{
    struct cpprof_snapshot *snapshot = snapshot_of(things, 0);
    struct sink s = {.sys = EIO};
    struct cpprof_error error;

    add_and_remove(3, 0);
    assert_int_equal(cpprof_snapshot_write_delta(
                         snapshot, (struct cpprof_writer[]){sink_writer(&s)},
                         &no_names, &error),
                     CPPROF_SYSTEM);
    assert_int_equal(s.n_closes, 1);
    assert_int_equal(sum_of(snapshot), 3);
    add_and_remove(0, 3);
    cpprof__buffer_free(&s.bytes);
    cpprof_snapshot_free(snapshot);
}

/* ---- no memory --------------------------------------------------------- */

static void
every_allocation_of_taking_fails_once(void **state)
{
    struct cpprof_snapshot *snapshot = NULL;
    struct cpprof_error error;
    enum cpprof_status status;
    long n;

    add_and_remove(2, 0);
    for (n = 0; n < 1000; n++) {
        oom_watch();
        oom.countdown = n;
        status = cpprof_snapshot_new(things, NULL, &snapshot, &error);
        oom.countdown = -1;
        if (status == CPPROF_OK)
            break;
        assert_int_equal(status, CPPROF_NOMEM);
        assert_null(snapshot);
        assert_int_equal(oom.n_live, 0);
    }
    assert_in_range(n, 3, 999);
    cpprof_snapshot_free(snapshot);
    assert_int_equal(oom.n_live, 0);
    add_and_remove(0, 2);
}

static void
records_that_find_no_memory_leave_none_behind(void **state)
{
    const struct cpprof__kept nothing = {0};
    struct cpprof__heap_records records;
    struct cpprof__kept kept;
    struct made m;
    size_t n;

    make(&m);
    add_samples(&m, PCS(0x10310, 0x10010), 1, 1, 64, 1);
    take(&m, 0, &records);
    oom_watch();
    oom.countdown = 0;
    assert_false(cpprof__kept_heap(&kept, &records));
    oom.countdown = 0;
    assert_null(cpprof__kept_difference(&nothing, &nothing, &n));
    oom.countdown = 1; /* it need not become shorter */
    assert_true(cpprof__kept_heap(&kept, &records));
    oom.countdown = -1;
    assert_int_equal(kept.n, 1);
    cpprof__kept_free(&kept);
    assert_int_equal(oom.n_live, 0);
    free(records.records);
    unmake(&m);
}

static int
discard(void *ctx, const void *data, size_t n_bytes)
{
    return 0;
}

static void
every_allocation_of_writing_fails_once(void **state)
{
    struct cpprof_snapshot *snapshot = snapshot_of(things, 0);
    struct cpprof_error error;
    enum cpprof_status status = CPPROF_NOMEM;
    long n;

    add_and_remove(2, 0);
    for (n = 0; status != CPPROF_OK && n < 10000; n++) {
        struct sink s = {0};
        struct cpprof_writer writer = {sizeof writer, discard, sink_close, &s};
        long n_live;

        oom_watch();
        oom.countdown = n;
        status =
            cpprof_snapshot_write_delta(snapshot, &writer, &no_names, &error);
        oom.countdown = -1;
        n_live = oom.n_live;
        assert_int_equal(s.n_closes, 1);
        assert_int_equal(s.failed, status != CPPROF_OK);
        if (status != CPPROF_OK) {
            assert_int_equal(status, CPPROF_NOMEM);
            assert_int_equal(n_live, 0);
        }
    }
    assert_in_range(n, 10, 9999);
    assert_no_difference(snapshot);
    add_and_remove(0, 2);
    cpprof_snapshot_free(snapshot);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_one_key_are_joined_and_empty_ones_left_out),
        cmocka_unit_test(
            what_is_gone_is_negative_and_what_did_not_change_is_left_out),
        cmocka_unit_test(a_heap_has_what_came_and_what_went),
        cmocka_unit_test(nothing_is_a_whole_profile_without_samples),
        cmocka_unit_test(of_lost_samples_only_new_ones_are_in_it),
        cmocka_unit_test(a_record_of_a_heap_takes_40_bytes),
        cmocka_unit_test(each_difference_is_to_the_one_before),
        cmocka_unit_test(an_empty_snapshot_begins_with_the_whole),
        cmocka_unit_test(misuse_is_told_and_the_writer_closed),
        cmocka_unit_test(after_a_failed_write_the_snapshot_is_as_it_was),
        cmocka_unit_test(records_that_find_no_memory_leave_none_behind),
        cmocka_unit_test(every_allocation_of_taking_fails_once),
        cmocka_unit_test(every_allocation_of_writing_fails_once),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, NULL);
}
