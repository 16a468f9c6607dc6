/* SPDX-License-Identifier: MIT */
/* Profiles are written as the reference writes them, byte for byte. */
#include "profile/gunzip.h"
#include "profile/model/make.h"
#include "views.h"
#include "write_fixture.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>

/* Derived by hand from proto/profile.proto and the rules of its writer. */
static void
bytes_are_those_of_the_reference(void **state)
{
    static const uint8_t expected[] =
        "\x0a\x04\x08\x01\x10\x02"                     /* sample_type: a, b */
        "\x12\x1c"                                     /* sample */
        "\x0a\x03\x01\x02\x03"                         /* three ids: packed */
        "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" /* -1 */
        "\x1a\x04\x08\x03\x10\x04"                     /* k = v */
        "\x1a\x04\x08\x05\x20\x06"                     /* n = 0 u */
        "\x12\x06\x08\x02\x08\x01\x10\x00"             /* two ids: not packed */
        "\x22\x02\x08\x01"                             /* locations */
        "\x22\x02\x08\x02\x22\x02\x08\x03"             /* */
        "\x32\x00\x32\x01"                             /* strings */
        "a\x32\x01"
        "b\x32\x01"
        "k\x32\x01"
        "v\x32\x01"
        "n\x32\x01"
        "u"
        "\x70\x00"; /* no default_sample_type, said aloud */
    struct cpprof__maker m = {.p = cpprof__pprof_make()};
    const int64_t values[] = {-1, 0};
    const uint32_t stacks[][3] = {{0, 1, 2}, {1, 0}};
    struct written w;
    int i;

    cpprof__make_sample_type(&m, "a", "b");
    for (i = 0; i < 3; i++)
        cpprof__make_location(&m, PPROF_NONE, (uint64_t)i, PPROF_NONE, 0);
    for (i = 0; i < 3; i++)
        m.p->locations.at[i].address = 0;
    cpprof__make_number(&m, cpprof__make_text(&m, "n"), 0,
                        cpprof__make_text(&m, "u"));
    cpprof__make_label(&m, cpprof__make_text(&m, "k"),
                       cpprof__make_text(&m, "v"));
    cpprof__make_sample(&m, stacks[0], 3, &values[0]);
    cpprof__make_sample(&m, stacks[1], 2, &values[1]);
    assert_false(m.failed);
    w = must_write(m.p, PPROF_FORMAT_PLAIN);
    assert_written(&w, expected, sizeof expected - 1);
    written_free(&w);
    pprof_free(m.p);
    cpprof__maker_free(&m);
}

static void
everything_comes_back(void **state)
{
    struct pprof_profile *p = make_odd(), *again;
    struct written w = must_write(p, PPROF_FORMAT_PLAIN);
    struct pprof_info a = info_of(p), b;
    struct pprof_sample sample;

    again = read_back(&w);
    assert_same(p, again, PPROF_FORMAT_TEXT);
    b = info_of(again);
    assert_int_equal(b.time_ns, a.time_ns);
    assert_int_equal(pprof_line_count(again), pprof_line_count(p));
    assert_int_equal(pprof_string_count(again),
                     pprof_string_count(p) - 1); /* one is never used */
    assert_string_equal(pprof_text(again, b.doc_url, NULL),
                        "https://example.com");
    assert_string_equal(pprof_text(again, b.drop_frames, NULL), "drop");
    assert_string_equal(pprof_text(again, b.keep_frames, NULL), "keep");
    sample = sample_of(again, 1);
    assert_int_equal(sample.values[0], INT64_MIN);
    assert_int_equal(sample.values[1], INT64_MAX);
    sample = sample_of(again, 0);
    assert_int_equal(sample.n_labels, 6);
    assert_int_equal(sample.labels[4].num, 0);
    assert_string_equal(pprof_text(again, sample.labels[4].unit, NULL), "kb");
    pprof_free(p);
    pprof_free(again);
    written_free(&w);
}

static void
written_and_read_gives_the_same_bytes(void **state)
{
    struct pprof_profile *p = make_odd(), *again;
    struct written w = must_write(p, PPROF_FORMAT_PLAIN), w2;

    again = read_back(&w);
    w2 = must_write(again, PPROF_FORMAT_PLAIN);
    assert_written(&w2, w.bytes.data, w.bytes.n);
    pprof_free(p);
    pprof_free(again);
    written_free(&w);
    written_free(&w2);
}

/* The string table in front of everything, samples behind: the order of the
 * input, and of its strings, does not show. */
static void
order_of_the_file_does_not_show(void **state)
{
    struct fixture f = {0};
    struct cpprof__buffer turned = {0};
    struct pprof_profile *a, *b;
    struct written x, y;
    size_t before;

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/bin/prog", "1234");
    fixture_stack(&f, "a<b main", 5, "k=v");
    before = f.bytes.n;
    fixture_string(&f, "never used");
    fixture_strings(&f);
    cpprof__buffer_append(&turned, f.bytes.data + before, f.bytes.n - before);
    cpprof__buffer_append(&turned, f.bytes.data, before);
    a = must_read_bytes(f.bytes.data, f.bytes.n);
    b = must_read_bytes(turned.data, turned.n);
    x = must_write(a, PPROF_FORMAT_PLAIN);
    y = must_write(b, PPROF_FORMAT_PLAIN);
    assert_written(&x, y.bytes.data, y.bytes.n);
    written_free(&x);
    written_free(&y);
    pprof_free(a);
    pprof_free(b);
    cpprof__buffer_free(&turned);
    fixture_free(&f);
}

static void
empty_profile_can_be_written(void **state)
{
    struct pprof_profile *p = cpprof__pprof_make(), *again;
    struct written w = must_write(p, PPROF_FORMAT_GZIP);

    again = read_back(&w);
    assert_int_equal(pprof_sample_count(again), 0);
    written_free(&w);
    w = must_write(again, PPROF_FORMAT_PLAIN);
    assert_written(&w, "\x32\x00\x70\x00", 4);
    written_free(&w);
    pprof_free(p);
    pprof_free(again);
}

/* ------------------------------------------------------------- gzip ---- */

static size_t
count_members(const uint8_t *data, size_t n)
{
    size_t i, members = 0;

    /* The head that libdeflate writes: no flags, no time. */
    for (i = 0; i + 8 <= n; i++)
        members += memcmp(data + i, "\x1f\x8b\x08\0\0\0\0\0", 8) == 0;
    return members;
}

static void
every_level_unpacks_to_the_plain_bytes(void **state)
{
    struct pprof_profile *p = make_odd();
    struct written plain = must_write(p, PPROF_FORMAT_PLAIN);
    struct pprof_write_options o = {.size = sizeof o, .sample_index = SIZE_MAX};

    for (; o.level <= 12; o.level++) {
        struct cpprof__buffer unpacked = {0};
        struct written w = {0};

        assert_int_equal(
            pprof_write(p, (struct cpprof_writer[]){written_writer(&w)},
                        PPROF_FORMAT_GZIP, &o, NULL),
            CPPROF_OK);
        assert_int_equal(count_members(w.bytes.data, w.bytes.n), 1);
        assert_int_equal(
            cpprof__gunzip(&unpacked, w.bytes.data, w.bytes.n, SIZE_MAX, NULL),
            CPPROF_OK);
        assert_int_equal(unpacked.n, plain.bytes.n);
        assert_memory_equal(unpacked.data, plain.bytes.data, unpacked.n);
        cpprof__buffer_free(&unpacked);
        written_free(&w);
    }
    written_free(&plain);
    pprof_free(p);
}

/* A profile of n samples of 1000 frames, ten bytes each. */
static struct pprof_profile *
make_large(size_t n)
{
    struct cpprof__maker m = {.p = cpprof__pprof_make()};
    static uint32_t stack[1000];
    int64_t value;
    uint64_t i;

    cpprof__make_sample_type(&m, "a", "b");
    for (i = 0; i < 100; i++)
        cpprof__make_location(&m, PPROF_NONE, i, PPROF_NONE, 0);
    for (i = 0; i < 100; i++)
        m.p->locations.at[i].id = UINT64_MAX - i;
    for (i = 0; i < 1000; i++)
        stack[i] = (uint32_t)(i * 37 % 100);
    for (value = 0; (size_t)value < n; value++)
        cpprof__make_sample(&m, stack, 1000, &value);
    assert_false(m.failed);
    cpprof__maker_free(&m);
    return m.p;
}

static void
large_profile_becomes_members_that_read_as_one(void **state)
{
    struct pprof_profile *p = make_large(4000), *again;
    struct written plain = must_write(p, PPROF_FORMAT_PLAIN);
    struct written w = must_write(p, PPROF_FORMAT_GZIP);
    struct written second;

    assert_in_range(plain.bytes.n, 40u << 20 >> 1, 60u << 20);
    assert_int_equal(count_members(w.bytes.data, w.bytes.n), 2);
    again = read_back(&w);
    second = must_write(again, PPROF_FORMAT_PLAIN);
    assert_int_equal(second.bytes.n, plain.bytes.n);
    assert_true(memcmp(second.bytes.data, plain.bytes.data, plain.bytes.n) ==
                0);
    written_free(&plain);
    written_free(&second);
    written_free(&w);
    pprof_free(p);
    pprof_free(again);
}

/* ---------------------------------------------------------- failures ---- */

static void
must_not_write(const struct pprof_profile *p, enum pprof_format format,
               const struct pprof_write_options *o, enum cpprof_status expected,
               const char *text)
{
    struct cpprof_error error = {0};
    struct written w = {0};

    assert_int_equal(pprof_write(p,
                                 (struct cpprof_writer[]){written_writer(&w)},
                                 format, o, &error),
                     expected);
    assert_string_equal(error.text, text);
    assert_int_equal(error.status, expected);
    assert_int_equal(w.n_closed, 1);
    assert_int_equal(w.failed, 1);
    assert_int_equal(w.bytes.n, 0);
    written_free(&w);
}

static void
options_outside_their_range_are_refused(void **state)
{
    struct pprof_profile *p = make_odd();
    struct pprof_write_options o = {.size = 1, .sample_index = SIZE_MAX};
    char text[80];

    snprintf(text, sizeof text, "write options of 1 bytes, not %zu", sizeof o);
    must_not_write(p, PPROF_FORMAT_GZIP, &o, CPPROF_INVALID, text);
    o.size = sizeof o;
    o.level = 13;
    must_not_write(p, PPROF_FORMAT_GZIP, &o, CPPROF_INVALID,
                   "compression level 13 is outside the range [0..12]");
    o.level = -1;
    must_not_write(p, PPROF_FORMAT_GZIP, &o, CPPROF_INVALID,
                   "compression level -1 is outside the range [0..12]");
    o.level = 0;
    o.sample_index = 2;
    must_not_write(p, PPROF_FORMAT_COLLAPSED, &o, CPPROF_INVALID,
                   "sample_index 2 is outside the range [0..1]");
    must_not_write(p, (enum pprof_format)77, NULL, CPPROF_INVALID,
                   "no such format: 77");
    pprof_free(p);
}

static void
broken_profile_is_not_written(void **state)
{
    struct pprof_profile *p = make_odd();
    int format;

    p->locations.at[1].id = 0;
    for (format = 0; format <= PPROF_FORMAT_PERF_SCRIPT; format++)
        must_not_write(p, (enum pprof_format)format, NULL, CPPROF_BAD_DATA,
                       "malformed profile: found location with reserved id=0");
    pprof_free(p);
}

static void
failure_of_the_writer_is_reported_and_closes_it(void **state)
{
    struct pprof_profile *p = make_odd(), *large = make_large(300);
    int format;

    for (format = 0; format <= 2 * PPROF_FORMAT_TEXT + 1; format++) {
        const struct pprof_profile *of = format & 1 ? large : p;
        struct written w = {.write_failure = ENOSPC};
        struct cpprof_error error = {0};

        assert_int_equal(
            pprof_write(of, (struct cpprof_writer[]){written_writer(&w)},
                        (enum pprof_format)(format / 2), NULL, &error),
            CPPROF_SYSTEM);
        assert_int_equal(error.sys, ENOSPC);
        assert_string_equal(error.text, "writing: No space left on device");
        assert_int_equal(w.n_closed, 1);
        assert_int_equal(w.failed, 1);
        written_free(&w);
    }
    pprof_free(p);
    pprof_free(large);
}

static void
failure_to_close_is_reported(void **state)
{
    struct pprof_profile *p = make_odd();
    struct written w = {.close_failure = EIO};
    struct cpprof_error error = {0};

    assert_int_equal(pprof_write(p,
                                 (struct cpprof_writer[]){written_writer(&w)},
                                 PPROF_FORMAT_GZIP, NULL, &error),
                     CPPROF_SYSTEM);
    assert_int_equal(error.sys, EIO);
    assert_int_equal(w.n_closed, 1);
    assert_int_equal(w.failed, 0);
    written_free(&w);
    pprof_free(p);
}

/* ----------------------------------------------------------- threads ---- */

struct thread {
    pthread_t thread;
    const struct pprof_profile *p;
    struct written written[PPROF_FORMAT_PERF_SCRIPT + 1];
    enum cpprof_status status;
};

static void *
write_all(void *ctx)
{
    struct thread *t = ctx;
    int format;

    for (format = 0; format <= PPROF_FORMAT_PERF_SCRIPT; format++)
        t->status |= pprof_write(
            t->p, (struct cpprof_writer[]){written_writer(&t->written[format])},
            (enum pprof_format)format, NULL, NULL);
    return NULL;
}

static void
threads_write_one_profile_at_a_time(void **state)
{
    struct pprof_profile *p = make_odd();
    struct thread threads[4] = {0};
    int i, format;

    for (i = 0; i < 4; i++) {
        threads[i].p = p;
        assert_int_equal(
            pthread_create(&threads[i].thread, NULL, write_all, &threads[i]),
            0);
    }
    for (i = 0; i < 4; i++)
        pthread_join(threads[i].thread, NULL);
    for (i = 0; i < 4; i++) {
        assert_int_equal(threads[i].status, CPPROF_OK);
        for (format = 0; format <= PPROF_FORMAT_PERF_SCRIPT; format++)
            assert_written(&threads[i].written[format],
                           threads[0].written[format].bytes.data,
                           threads[0].written[format].bytes.n);
    }
    for (i = 0; i < 4; i++)
        for (format = 0; format <= PPROF_FORMAT_PERF_SCRIPT; format++)
            written_free(&threads[i].written[format]);
    pprof_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_those_of_the_reference),
        cmocka_unit_test(everything_comes_back),
        cmocka_unit_test(written_and_read_gives_the_same_bytes),
        cmocka_unit_test(order_of_the_file_does_not_show),
        cmocka_unit_test(empty_profile_can_be_written),
        cmocka_unit_test(every_level_unpacks_to_the_plain_bytes),
        cmocka_unit_test(large_profile_becomes_members_that_read_as_one),
        cmocka_unit_test(options_outside_their_range_are_refused),
        cmocka_unit_test(broken_profile_is_not_written),
        cmocka_unit_test(failure_of_the_writer_is_reported_and_closes_it),
        cmocka_unit_test(failure_to_close_is_reported),
        cmocka_unit_test(threads_write_one_profile_at_a_time),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
#ifdef __SANITIZE_THREAD__
    /* Of one thread there is nothing to tell, and it takes most of the time. */
    cmocka_set_skip_filter("large_profile_becomes_members_that_read_as_one");
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
