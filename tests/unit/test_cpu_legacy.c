/* SPDX-License-Identifier: MIT */
/* CPU profiles in the binary form, to the word, and as a reader sees them. */
#include "collect/cpu/cpu_legacy.h"
#include "write_fixture.h"

#include "collect/encode/builder.h"
#include "views.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_NS 10000000
#define EXE       0x400000
#define LIBRARY   0x7f0000000000

struct made {
    struct cpprof__store store;
    void *block;
};

static uint32_t
add_text(struct made *m, const char *text)
{
    return cpprof__store_add_text(&m->store, text, strlen(text));
}

static void
add_mapping(struct made *m, uint64_t start, uint64_t offset, const char *path)
{
    const struct cpprof__store_mapping mapping = {
        .start = start,
        .limit = start + 0x100000,
        .offset = offset,
        .inode = 7,
        .path = add_text(m, path),
    };

    cpprof__store_add_mapping(&m->store, &mapping);
}

static void
make(struct made *m)
{
    memset(m, 0, sizeof *m);
    m->block = calloc(1, cpprof__store_bytes());
    assert_non_null(m->block);
    assert_true(cpprof__store_make(&m->store, m->block));
    add_mapping(m, EXE, 0, "/bin/demo");
    add_mapping(m, LIBRARY, 0x1000, "/lib/l.so");
}

/* Leaf first, each an address inside its instruction. */
static void
add(struct made *m, uint64_t count, const uint64_t *pcs, size_t n)
{
    uint32_t mappings[64];
    size_t i;

    assert_true(n <= 64);
    for (i = 0; i < n; i++)
        mappings[i] = pcs[i] >= LIBRARY;
    assert_true(cpprof__store_add(&m->store, pcs, mappings, n, 0, count));
}

#define ADD(m, count, ...)                                                     \
    add(m, count, (uint64_t[]){__VA_ARGS__},                                   \
        sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t))

static void
write_store(const struct made *m, bool no_decoys, uint64_t lost,
            struct written *w)
{
    struct cpprof__cpu_legacy legacy;

    memset(w, 0, sizeof *w);
    cpprof__cpu_legacy_begin(&legacy, PERIOD_NS, no_decoys, written_writer(w));
    cpprof__cpu_legacy_add(&legacy, &m->store);
    assert_int_equal(cpprof__cpu_legacy_end(&legacy, lost, NULL), CPPROF_OK);
    assert_int_equal(w->n_closed, 1);
    assert_int_equal(w->failed, 0);
}

static struct pprof_profile *
read_made(struct made *m, bool no_decoys, uint64_t lost)
{
    struct pprof_profile *p;
    struct written w;

    write_store(m, no_decoys, lost, &w);
    p = must_read_bytes(w.bytes.data, w.bytes.n);
    written_free(&w);
    free(m->block);
    return p;
}

/* The sample's values and stack, of a profile that names nothing. */
static void
assert_sample(const struct pprof_profile *p, size_t i, int64_t count,
              const uint64_t *pcs, size_t n)
{
    struct pprof_sample sample = sample_of(p, i);
    size_t at;

    assert_int_equal(sample.values[0], count);
    assert_int_equal(sample.values[1], count * PERIOD_NS);
    assert_int_equal(sample.n_locations, n);
    for (at = 0; at < n; at++)
        assert_int_equal(pprof_locations(p)[sample.locations[at]].address,
                         pcs[at]);
}

#define ASSERT_SAMPLE(p, i, count, ...)                                        \
    assert_sample(p, i, count, (uint64_t[]){__VA_ARGS__},                      \
                  sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t))

/* ------------------------------------------------------------ the form --- */

static void
assert_words(const struct written *w, const uint64_t *words, size_t n)
{
    size_t i;

    assert_true(w->bytes.n >= n * sizeof *words);
    for (i = 0; i < n; i++) {
        uint64_t word;

        memcpy(&word, w->bytes.data + i * sizeof word, sizeof word);
        assert_int_equal(word, words[i]);
    }
}

static void
the_form_is_header_records_trailer_and_mappings(void **state)
{
    static const uint64_t words[] = {
        0,        3, 0, 10000,    0,        5, 3, 0x401010, 0x402000,
        0x403000, 3, 2, 0x401020, 0x402100, 0, 1, 0,
    };
    static const char maps[] =
        "\nMAPPED_LIBRARIES:\n"
        "00400000-00500000 r-xp 00000000 00:00 7 /bin/demo\n"
        "7f0000000000-7f0000100000 r-xp 00001000 00:00 7 /lib/l.so\n";
    struct written w;
    struct made m;

    (void)state;
    make(&m);
    ADD(&m, 5, 0x401010, 0x401fff, 0x402fff);
    ADD(&m, 3, 0x401020, 0x4020ff);
    write_store(&m, true, 0, &w);
    assert_words(&w, words, sizeof words / sizeof *words);
    assert_int_equal(w.bytes.n, sizeof words + sizeof maps - 1);
    assert_memory_equal(w.bytes.data + sizeof words, maps, sizeof maps - 1);
    written_free(&w);
    free(m.block);
}

static void
frames_of_scripts_are_left_out(void **state)
{
    static const uint64_t words[] = {
        0, 3, 0, 10000, 0, 5, 2, 0x401010, 0x403000, 3, 1, 0x402000, 2, 1, 3,
    };
    const uint64_t script = CPPROF__SCRIPT_PC | 0x1000;
    struct written w;
    struct made m;

    (void)state;
    make(&m);
    ADD(&m, 5, 0x401010, script, 0x402fff);
    ADD(&m, 3, script, script + 8, 0x402000);
    ADD(&m, 2, script);
    write_store(&m, true, 0, &w);
    assert_words(&w, words, sizeof words / sizeof *words);
    written_free(&w);
    free(m.block);
}

static void
mappings_of_several_stores_are_written_once(void **state)
{
    struct cpprof__cpu_legacy legacy;
    struct written w = {0};
    struct made m, more;
    const char *text;

    (void)state;
    make(&m);
    make(&more);
    add_mapping(&more, LIBRARY + 0x100000, 0, "/lib/a\nb");
    cpprof__cpu_legacy_begin(&legacy, PERIOD_NS, false, written_writer(&w));
    cpprof__cpu_legacy_add(&legacy, &m.store);
    cpprof__cpu_legacy_add(&legacy, &more.store);
    cpprof__cpu_legacy_end(&legacy, 0, NULL);
    cpprof__buffer_append(&w.bytes, "", 1);
    text = memmem(w.bytes.data, w.bytes.n, "MAPPED", 6);
    assert_non_null(text);
    assert_string_equal(
        text, "MAPPED_LIBRARIES:\n"
              "00400000-00500000 r-xp 00000000 00:00 7 /bin/demo\n"
              "7f0000000000-7f0000100000 r-xp 00001000 00:00 7 /lib/l.so\n"
              "7f0000100000-7f0000200000 r-xp 00000000 00:00 7 /lib/a\\012b\n");
    written_free(&w);
    free(m.block);
    free(more.block);
}

/* -------------------------------------------------------- as it is read -- */

static void
one_stack_keeps_its_callers(void **state)
{
    struct pprof_profile *p;
    struct made m;

    (void)state;
    make(&m);
    ADD(&m, 5, 0x401010, 0x402000, 0x403000);
    p = read_made(&m, false, 0);
    ASSERT_SAMPLE(p, 0, 5, 0x401010, 0x402000, 0x403000);
    pprof_free(p);
}

static void
without_decoys_readers_strip_the_caller_of_all(void **state)
{
    struct pprof_profile *p;
    struct made m;

    (void)state;
    make(&m);
    ADD(&m, 5, 0x401010, 0x402000, 0x403000);
    p = read_made(&m, true, 0);
    assert_int_equal(pprof_sample_count(p), 1);
    ASSERT_SAMPLE(p, 0, 5, 0x401010);
    pprof_free(p);
}

/* Around each size at which the number of decoys changes. */
static void
a_caller_of_all_stacks_stays_whatever_their_number(void **state)
{
    size_t n, i;

    (void)state;
    for (n = 1; n < 400; n += n < 130 ? 1 : 37) {
        struct pprof_profile *p;
        struct made m;

        make(&m);
        for (i = 0; i < n; i++)
            ADD(&m, i + 1, 0x401000 + 16 * i, 0x408000, LIBRARY + 5);
        p = read_made(&m, false, 0);
        for (i = 0; i < n; i++)
            ASSERT_SAMPLE(p, i, (int64_t)i + 1, 0x401000 + 16 * i, 0x408000,
                          LIBRARY + 5);
        pprof_free(p);
    }
}

static void
decoys_count_nothing_and_need_no_mapping_of_their_own(void **state)
{
    struct pprof_profile *p;
    struct made m;
    size_t i;

    (void)state;
    make(&m);
    ADD(&m, 5, 0x401010, 0x402000);
    p = read_made(&m, false, 0);
    assert_int_equal(pprof_mapping_count(p), 2);
    assert_int_equal(pprof_sample_count(p), 3);
    for (i = 1; i < 3; i++)
        assert_int_equal(sample_of(p, i).values[0], 0);
    pprof_free(p);
}

/* Readers would take it for the leaf, found twice. */
static void
a_caller_that_returns_to_the_leaf_is_kept(void **state)
{
    struct pprof_profile *p;
    struct made m;

    (void)state;
    make(&m);
    ADD(&m, 2, 0x401010, 0x40100f, 0x402000);
    p = read_made(&m, false, 0);
    ASSERT_SAMPLE(p, 0, 2, 0x401010, 0x40100e, 0x402000);
    pprof_free(p);
}

static void
lost_samples_have_a_record(void **state)
{
    struct pprof_profile *p;
    struct made m;

    (void)state;
    make(&m);
    ADD(&m, 2, 0x401010, 0x402000);
    p = read_made(&m, false, 9);
    ASSERT_SAMPLE(p, 1, 9, CPPROF__FRAME_LOST);
    pprof_free(p);
}

static void
no_samples_are_an_empty_profile(void **state)
{
    struct pprof_profile *p;
    struct made m;

    (void)state;
    make(&m);
    p = read_made(&m, false, 0);
    assert_int_equal(pprof_sample_count(p), 0);
    assert_int_equal(info_of(p).period, PERIOD_NS);
    pprof_free(p);
}

/* ------------------------------------------------------------ failures --- */

static void
a_failed_write_is_told_and_closes_the_writer(void **state)
{
    struct cpprof__cpu_legacy legacy;
    struct written w = {.write_failure = ENOSPC};
    struct cpprof_error error = {0};
    struct made m;

    (void)state;
    make(&m);
    ADD(&m, 2, 0x401010, 0x402000);
    cpprof__cpu_legacy_begin(&legacy, PERIOD_NS, false, written_writer(&w));
    cpprof__cpu_legacy_add(&legacy, &m.store);
    assert_int_equal(cpprof__cpu_legacy_end(&legacy, 0, &error), CPPROF_SYSTEM);
    assert_string_equal(error.text, "write: No space left on device");
    assert_int_equal(w.n_closed, 1);
    assert_true(w.failed);
    written_free(&w);
    free(m.block);
}

static void
a_failed_close_is_told(void **state)
{
    struct cpprof__cpu_legacy legacy;
    struct written w = {.close_failure = EIO};
    struct cpprof_error error = {0};

    (void)state;
    cpprof__cpu_legacy_begin(&legacy, PERIOD_NS, false, written_writer(&w));
    assert_int_equal(cpprof__cpu_legacy_end(&legacy, 0, &error), CPPROF_SYSTEM);
    assert_string_equal(error.text, "close: Input/output error");
    written_free(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_form_is_header_records_trailer_and_mappings),
        cmocka_unit_test(frames_of_scripts_are_left_out),
        cmocka_unit_test(mappings_of_several_stores_are_written_once),
        cmocka_unit_test(one_stack_keeps_its_callers),
        cmocka_unit_test(without_decoys_readers_strip_the_caller_of_all),
        cmocka_unit_test(a_caller_of_all_stacks_stays_whatever_their_number),
        cmocka_unit_test(decoys_count_nothing_and_need_no_mapping_of_their_own),
        cmocka_unit_test(a_caller_that_returns_to_the_leaf_is_kept),
        cmocka_unit_test(lost_samples_have_a_record),
        cmocka_unit_test(no_samples_are_an_empty_profile),
        cmocka_unit_test(a_failed_write_is_told_and_closes_the_writer),
        cmocka_unit_test(a_failed_close_is_told),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
