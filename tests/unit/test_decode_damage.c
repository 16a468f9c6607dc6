/* SPDX-License-Identifier: MIT */
/*
 * No bytes whatever make the reader or a report fail otherwise than with an
 * error: a profile cut short at every byte, and with every byte changed.
 */
#include "base/gzip.h"
#include "pprof_fixture.h"
#include <cpprof/pprof/report.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void
make(struct fixture *f)
{
    fixture_cpu(f);
    fixture_mapping(f, 1, 0x1000, "/bin/prog", "1234");
    fixture_stack(f, "leaf<inlined main start", 1000000, "thread=one bytes=64");
    fixture_stack(f, "other main start", 3000000, "thread=two");
    fixture_stack(f, "main start", -5, NULL);
    cpprof__put_uint(&f->bytes, 7, fixture_string(f, "le.*"));
    cpprof__put_uint(&f->bytes, 8, fixture_string(f, "leg.*"));
    cpprof__put_uint(&f->bytes, 9, 1700000000000000000);
    cpprof__put_uint(&f->bytes, 10, 1000000000);
    cpprof__put_uint(&f->bytes, 13, fixture_string(f, "# comment"));
    fixture_strings(f);
}

static int
forget(void *ctx, const void *data, size_t n)
{
    *(size_t *)ctx += n;
    return 0;
}

/* Read, check, and print in the ways that look at most of it. */
static void
use(const uint8_t *data, size_t n, size_t *n_read)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct cpprof_error error = {0};
    struct pprof_profile *p = NULL;
    size_t n_written = 0;
    /* A copy of exactly that size, for the sanitizer to guard. */
    uint8_t *copy = malloc(n ? n : 1);

    memcpy(copy, data, n);
    if (pprof_read_data(copy, n, NULL, &p, &error) == CPPROF_OK) {
        struct cpprof_writer writer = {sizeof writer, forget, NULL, &n_written};

        ++*n_read;
        assert_int_equal(pprof_check(p, &error), CPPROF_OK);
        pprof_drop_frames(p, &error);
        pprof_demangle(p, PPROF_DEMANGLE_SHORT, 0, &error);
        options.granularity = PPROF_REPORT_ADDRESSES;
        options.tagroot = "thread,bytes";
        options.focus = "main";
        pprof_report_write(p, &writer, PPROF_REPORT_TOP, &options, &error);
        assert_int_equal(pprof_check(p, &error), CPPROF_OK);
    } else {
        assert_null(p);
        assert_true(*error.text);
    }
    pprof_free(p);
    free(copy);
}

static void
profile_cut_short_anywhere_is_refused_or_whole(void **state)
{
    struct fixture f = {0};
    size_t n_read = 0, i;

    make(&f);
    for (i = 0; i <= f.bytes.n; i++)
        use(f.bytes.data, i, &n_read);
    /* The whole one, and maybe what ends with a string nothing refers to. */
    assert_in_range(n_read, 1, 3);
    fixture_free(&f);
}

static void
packed_profile_cut_short_anywhere_is_refused(void **state)
{
    struct cpprof__buffer packed = {0};
    struct fixture f = {0};
    size_t n_read = 0, i;

    make(&f);
    cpprof__gzip(&packed, f.bytes.data, f.bytes.n, 6, NULL);
    for (i = 0; i < packed.n; i++)
        use(packed.data, i, &n_read);
    assert_int_equal(n_read, 0);
    use(packed.data, packed.n, &n_read);
    assert_int_equal(n_read, 1);
    cpprof__buffer_free(&packed);
    fixture_free(&f);
}

static void
profile_with_any_byte_changed_is_refused_or_read(void **state)
{
    static const uint8_t changes[] = {0x01, 0x02, 0x08, 0x10, 0x80, 0xff, 0x7f};
    struct fixture f = {0};
    size_t n_read = 0, i, j;

    make(&f);
    for (i = 0; i < f.bytes.n; i++)
        for (j = 0; j < sizeof changes; j++) {
            f.bytes.data[i] ^= changes[j];
            use(f.bytes.data, f.bytes.n, &n_read);
            f.bytes.data[i] ^= changes[j];
        }
    /* Most bytes are part of a string or a number, of which any will do. */
    assert_in_range(n_read, f.bytes.n, f.bytes.n * sizeof changes - 1);
    fixture_free(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profile_cut_short_anywhere_is_refused_or_whole),
        cmocka_unit_test(packed_profile_cut_short_anywhere_is_refused),
        cmocka_unit_test(profile_with_any_byte_changed_is_refused_or_read),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
