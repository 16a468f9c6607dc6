/* SPDX-License-Identifier: MIT */
/* profile.proto is read as the reference reads it, and refused in its words. */
#include "base/gzip.h"
#include "pprof_fixture.h"
#include "profile/proto/decode.h"
#include "views.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <unistd.h>

static struct pprof_profile *
must_read(struct fixture *f)
{
    struct cpprof_error error = {0};
    struct pprof_profile *p = fixture_must_read(f);

    assert_int_equal(pprof_check(p, &error), CPPROF_OK);
    return p;
}

/* Decoding must fail with exactly that text. (Reading goes on to ask the
 * readers of older formats then.) */
static void
decode_must_refuse(const char *bytes, size_t n, const char *text)
{
    struct pprof_profile *p = NULL;
    struct cpprof_error error = {0};

    assert_int_equal(cpprof__decode((uint8_t *)bytes, n, false, &p, &error),
                     CPPROF_BAD_DATA);
    assert_null(p);
    assert_string_equal(error.text, text);
    assert_int_equal(error.status, CPPROF_BAD_DATA);
}

static void
must_refuse(struct fixture *f, const char *text)
{
    fixture_strings(f);
    decode_must_refuse((char *)f->bytes.data, f->bytes.n, text);
    fixture_free(f);
}

static void
raw_must_refuse(const char *bytes, size_t n, const char *text)
{
    struct pprof_profile *p = NULL;
    struct cpprof_error error = {0};

    assert_int_equal(pprof_read_data(bytes, n, NULL, &p, &error),
                     CPPROF_BAD_DATA);
    assert_null(p);
    assert_string_equal(error.text, text);
}

static const char *
text_of(const struct pprof_profile *p, uint32_t string)
{
    return pprof_text(p, string, NULL);
}

/* A profile with one of everything; the sample says so. */
static void
add_all(struct fixture *f)
{
    const uint64_t stack[] = {3, 4};
    const int64_t values[] = {1, -2};

    fixture_mapping(f, 9, 0x1000, "/bin/a b", "beef");
    fixture_function(f, 5, "f()", "_Z1fv", "f.cc");
    fixture_location(f, 3, 9, 0x1234, 5);
    fixture_location(f, 4, 0, 0x99, 0);
    fixture_sample(f, stack, 2, values, "k=v n=12kb");
}

static void
check_tables(const struct pprof_profile *p)
{
    const struct pprof_mapping *m = pprof_mappings(p);
    const struct pprof_location *l = pprof_locations(p);
    const struct pprof_function *f = pprof_functions(p);

    assert_int_equal(m->id, 9);
    assert_int_equal(m->limit - m->start, 0x4000);
    assert_int_equal(m->flags, PPROF_HAS_FUNCTIONS);
    assert_string_equal(text_of(p, m->file), "/bin/a b");
    assert_string_equal(text_of(p, m->build_id), "beef");
    assert_int_equal(l[0].id, 3);
    assert_int_equal(l[0].mapping, 0);
    assert_int_equal(l[0].address, 0x1234);
    assert_int_equal(l[0].n_lines, 1);
    assert_int_equal(pprof_lines(p)[l[0].first_line].line, 7);
    assert_int_equal(l[1].mapping, PPROF_NONE);
    assert_int_equal(l[1].n_lines, 0);
    assert_string_equal(text_of(p, f->name), "f()");
    assert_string_equal(text_of(p, f->system_name), "_Z1fv");
}

static void
check_sample(const struct pprof_profile *p)
{
    struct pprof_sample s = sample_of(p, 0);

    assert_int_equal(s.n_locations, 2);
    assert_int_equal(s.locations[0], 0);
    assert_int_equal(s.locations[1], 1);
    assert_int_equal(s.values[0], 1);
    assert_int_equal(s.values[1], -2);
    assert_int_equal(s.n_labels, 2);
    assert_int_equal(s.labels[0].kind, PPROF_LABEL_TEXT);
    assert_string_equal(text_of(p, s.labels[0].text), "v");
    assert_int_equal(s.labels[1].num, 12);
    assert_string_equal(text_of(p, s.labels[1].unit), "kb");
}

static void
everything_is_read(void **state)
{
    struct fixture f = {0};
    struct pprof_profile *p;

    fixture_cpu(&f);
    add_all(&f);
    cpprof__put_uint(&f.bytes, 9, 1234);
    cpprof__put_uint(&f.bytes, 10, 5678);
    cpprof__put_uint(&f.bytes, 13, fixture_string(&f, "a comment"));
    cpprof__put_uint(&f.bytes, 14, fixture_string(&f, "samples"));
    p = must_read(&f);
    check_tables(p);
    check_sample(p);
    assert_int_equal(info_of(p).time_ns, 1234);
    assert_int_equal(info_of(p).duration_ns, 5678);
    assert_int_equal(info_of(p).period, 10000000);
    assert_string_equal(text_of(p, pprof_comments(p)[0]), "a comment");
    assert_string_equal(text_of(p, info_of(p).default_sample_type), "samples");
    assert_int_equal(pprof_sample_type_count(p), 2);
    pprof_free(p);
}

/* Samples first, what they refer to behind them, types last. */
static void
fields_in_reverse_order_are_read_alike(void **state)
{
    struct fixture f = {0};
    const uint64_t stack[] = {3, 4};
    const int64_t values[] = {1, -2};
    struct pprof_profile *p;

    fixture_sample(&f, stack, 2, values, "n=12kb k=v");
    fixture_location(&f, 3, 9, 0x1234, 5);
    fixture_location(&f, 4, 0, 0x99, 0);
    fixture_function(&f, 5, "f()", "_Z1fv", "f.cc");
    fixture_mapping(&f, 9, 0x1000, "/bin/a b", "beef");
    fixture_cpu(&f);
    p = must_read(&f);
    check_tables(p);
    check_sample(p);
    pprof_free(p);
}

static void
packed_and_unpacked_and_mixed_numbers_are_read_alike(void **state)
{
    static const uint64_t packed[] = {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1};
    struct fixture f = {0};
    struct pprof_sample s;
    struct pprof_profile *p;
    size_t mark, i;

    fixture_cpu(&f);
    fixture_location(&f, 1, 0, 1, 0);
    fixture_location(&f, 2, 0, 2, 0);
    mark = cpprof__put_begin(&f.bytes);
    cpprof__put_uint(&f.bytes, 2, 7);
    cpprof__put_uint(&f.bytes, 1, 2);
    cpprof__put_uints(&f.bytes, 1, packed, 11);
    cpprof__put_uint(&f.bytes, 1, 2);
    cpprof__put_uint(&f.bytes, 2, 8);
    cpprof__put_end(&f.bytes, 2, mark);
    p = must_read(&f);
    s = sample_of(p, 0);
    assert_int_equal(s.n_locations, 13);
    for (i = 0; i < 13; i++)
        assert_int_equal(s.locations[i], (i + 1) % 2);
    assert_int_equal(s.values[0], 7);
    assert_int_equal(s.values[1], 8);
    pprof_free(p);
}

/* Ids are names: large ones, far apart, need no table of their size. */
static void
ids_far_apart_are_found(void **state)
{
    static const uint64_t ids[] = {UINT64_MAX, 1, (uint64_t)1 << 40, 77,
                                   300000000};
    const int64_t values[] = {1, 1};
    struct fixture f = {0};
    struct pprof_profile *p;
    size_t i;

    fixture_cpu(&f);
    for (i = 0; i < 5; i++)
        fixture_location(&f, ids[i], 0, i, 0);
    fixture_sample(&f, ids, 5, values, NULL);
    p = must_read(&f);
    for (i = 0; i < 5; i++)
        assert_int_equal(sample_of(p, 0).locations[i], i);
    pprof_free(p);
}

static void
unknown_fields_of_every_wire_type_are_skipped(void **state)
{
    struct fixture f = {0};
    struct pprof_profile *p;

    fixture_cpu(&f);
    add_all(&f);
    cpprof__put_uint(&f.bytes, 99, 5);
    cpprof__put_bytes(&f.bytes, 1000, "abc", 3);
    cpprof__buffer_append(&f.bytes, "\xa1\x06\1\2\3\4\5\6\7\10", 10);
    cpprof__buffer_append(&f.bytes, "\xa5\x06\1\2\3\4", 6);
    p = must_read(&f);
    check_sample(p);
    pprof_free(p);
}

static void
equal_strings_get_one_number(void **state)
{
    struct fixture f = {0};
    struct pprof_profile *p;

    fixture_cpu(&f);
    fixture_strings(&f);
    cpprof__put_bytes(&f.bytes, 6, "cpu", 3);
    cpprof__put_bytes(&f.bytes, 6, "", 0);
    cpprof__put_uint(&f.bytes, 14, f.n_strings);
    cpprof__put_uint(&f.bytes, 15, f.n_strings + 1);
    assert_int_equal(pprof_read_data(f.bytes.data, f.bytes.n, NULL, &p, NULL),
                     CPPROF_OK);
    assert_int_equal(info_of(p).default_sample_type,
                     pprof_sample_types(p)[1].type);
    assert_int_equal(info_of(p).doc_url, 0);
    pprof_free(p);
    fixture_free(&f);
}

/* A number 0 is a label when it has a unit; nothing at all is none. */
static void
label_of_zero_with_unit_stays(void **state)
{
    const int64_t values[] = {1, 1};
    struct fixture f = {0};
    struct pprof_sample s;
    struct pprof_profile *p;

    fixture_cpu(&f);
    fixture_sample(&f, NULL, 0, values, "a=0kb b=0 c=1");
    p = must_read(&f);
    s = sample_of(p, 0);
    assert_int_equal(s.n_labels, 2);
    assert_string_equal(text_of(p, s.labels[0].key), "a");
    assert_string_equal(text_of(p, s.labels[1].key), "c");
    pprof_free(p);
}

static void
samples_with_equal_labels_in_any_order_share_them(void **state)
{
    const int64_t values[] = {1, 1};
    struct fixture f = {0};
    struct pprof_profile *p;

    fixture_cpu(&f);
    fixture_sample(&f, NULL, 0, values, "b=x a=y n=1 b=z");
    fixture_sample(&f, NULL, 0, values, "n=1 a=y b=x b=z");
    fixture_sample(&f, NULL, 0, values, "n=1 a=y b=z b=x");
    p = must_read(&f);
    assert_ptr_equal(sample_of(p, 0).labels, sample_of(p, 1).labels);
    assert_ptr_not_equal(sample_of(p, 0).labels, sample_of(p, 2).labels);
    assert_string_equal(text_of(p, sample_of(p, 0).labels[0].text), "y");
    pprof_free(p);
}

/* -------------------------------------------------------------- gzip ---- */

static void
gzip_of_several_members_is_one_profile(void **state)
{
    struct cpprof__buffer packed = {0};
    struct fixture f = {0};
    struct pprof_profile *p;
    size_t half;

    fixture_cpu(&f);
    add_all(&f);
    fixture_strings(&f);
    half = f.bytes.n / 2;
    cpprof__gzip(&packed, f.bytes.data, half, 1, NULL);
    cpprof__gzip(&packed, f.bytes.data + half, f.bytes.n - half, 6, NULL);
    assert_int_equal(pprof_read_data(packed.data, packed.n, NULL, &p, NULL),
                     CPPROF_OK);
    check_sample(p);
    pprof_free(p);
    cpprof__buffer_free(&packed);
    fixture_free(&f);
}

static void
gzip_cut_short_says_so(void **state)
{
    struct cpprof__buffer packed = {0};
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_strings(&f);
    cpprof__gzip(&packed, f.bytes.data, f.bytes.n, 6, NULL);
    raw_must_refuse((char *)packed.data, packed.n - 1,
                    "decompressing profile: gzip: damaged or cut short");
    cpprof__buffer_free(&packed);
    fixture_free(&f);
}

static void
gzip_beyond_the_limit_is_refused_as_such(void **state)
{
    struct pprof_read_options options = {sizeof options, 1000};
    struct cpprof__buffer packed = {0};
    struct cpprof_error error = {0};
    struct pprof_profile *p;
    char *zeros = calloc(1, 100000);

    cpprof__gzip(&packed, zeros, 100000, 6, NULL);
    assert_int_equal(
        pprof_read_data(packed.data, packed.n, &options, &p, &error),
        CPPROF_LIMIT);
    assert_string_equal(error.text, "decompressing profile: gzip: unpacks to "
                                    "more than 1000 bytes");
    free(zeros);
    cpprof__buffer_free(&packed);
}

/* ----------------------------------------------------- damaged bytes ---- */

static void
damaged_messages_are_refused_in_the_references_words(void **state)
{
    decode_must_refuse("", 0, "parsing profile: empty input file");
    decode_must_refuse("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11,
                       "parsing profile: bad varint");
    decode_must_refuse("\x08\x80", 2, "parsing profile: bad varint");
    decode_must_refuse("\x61\1\2\3", 4, "parsing profile: not enough data");
    decode_must_refuse("\x65\1\2", 3, "parsing profile: not enough data");
    decode_must_refuse("\x12\x05\1", 3, "parsing profile: too much data");
    decode_must_refuse("\x63", 1, "parsing profile: unknown wire type");
    decode_must_refuse("\x10\1", 2, "parsing profile: type mismatch");
    decode_must_refuse("\x62\1\1", 3, "parsing profile: type mismatch");
    decode_must_refuse("\x32\1a", 3,
                       "parsing profile: string_table[0] must be ''");
    decode_must_refuse("\x12\0", 2,
                       "parsing profile: malformed profile format: no such "
                       "string in a table of 0");
}

static void
two_profiles_in_a_row_are_refused(void **state)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    cpprof__put_uint(&f.bytes, 9, 1);
    cpprof__put_uint(&f.bytes, 9, 2);
    must_refuse(&f, "parsing profile: concatenated profiles detected");
}

static void
string_that_is_not_there_is_refused(void **state)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    cpprof__put_uint(&f.bytes, 14, 100);
    must_refuse(&f, "parsing profile: malformed profile format: no such "
                    "string in a table of 5");
}

static void
label_with_unknown_string_is_refused(void **state)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    cpprof__buffer_append(&f.bytes, "\x12\x0a\x10\1\x10\1\x1a\4\x08\x1\x10\x63",
                          12);
    must_refuse(&f, "parsing profile: malformed profile format");
}

/* --------------------------------------------------------- the model ---- */

static void
samples_without_types_are_refused(void **state)
{
    const int64_t values[] = {1, 1};
    struct fixture f = {0};

    fixture_sample(&f, NULL, 0, values, NULL);
    must_refuse(&f, "malformed profile: missing sample type information");
}

static void
sample_with_too_few_or_many_values_is_refused(void **state)
{
    const int64_t values[] = {1, 1};
    struct fixture f = {0};

    fixture_value_type(&f, 1, "cpu", "ns");
    fixture_sample(&f, NULL, 0, values, NULL);
    must_refuse(&f, "malformed profile: mismatch: sample has 2 values vs. 1 "
                    "types");
    fixture_cpu(&f);
    fixture_value_type(&f, 1, "third", "ns");
    fixture_sample(&f, NULL, 0, values, NULL);
    must_refuse(&f, "malformed profile: mismatch: sample has 2 values vs. 3 "
                    "types");
}

static void
sample_of_unknown_location_is_refused(void **state)
{
    static const uint64_t few[] = {1, 2}, many[] = {1, 1, 1, 2};
    static const uint64_t large[] = {1, 1, 1, (uint64_t)1 << 50};
    const int64_t values[] = {1, 1};
    struct fixture f = {0};
    size_t i;

    for (i = 0; i < 3; i++) {
        fixture_cpu(&f);
        fixture_location(&f, 1, 0, 1, 0);
        fixture_sample(&f,
                       i == 0   ? few
                       : i == 1 ? many
                                : large,
                       i ? 4 : 2, values, NULL);
        must_refuse(&f, "malformed profile: sample has nil location");
    }
}

static void
ids_that_are_zero_or_twice_there_are_refused(void **state)
{
    struct fixture f = {0};

    fixture_mapping(&f, 0, 0, "", "");
    must_refuse(&f, "malformed profile: found mapping with reserved ID=0");
    fixture_function(&f, 0, "", "", "");
    must_refuse(&f, "malformed profile: found function with reserved ID=0");
    fixture_location(&f, 0, 0, 0, 0);
    must_refuse(&f, "malformed profile: found location with reserved id=0");
    fixture_mapping(&f, 3, 0, "", "");
    fixture_mapping(&f, 3, 0, "", "");
    must_refuse(&f, "malformed profile: multiple mappings with same id: 3");
    fixture_function(&f, 1, "", "", "");
    fixture_function(&f, 1, "", "", "");
    must_refuse(&f, "malformed profile: multiple functions with same id: 1");
    fixture_location(&f, 1000000, 0, 0, 0);
    fixture_location(&f, 1000000, 0, 0, 0);
    must_refuse(&f,
                "malformed profile: multiple locations with same id: 1000000");
}

static void
line_of_unknown_function_is_refused(void **state)
{
    struct fixture f = {0};

    fixture_location(&f, 8, 0, 0, 5);
    must_refuse(&f, "malformed profile: location id: 8 has a line with nil "
                    "function");
}

/* ------------------------------------------------------------ sources ---- */

static void
pipe_is_read_to_its_end(void **state)
{
    struct fixture f = {0};
    struct pprof_profile *p;
    int ends[2];

    fixture_cpu(&f);
    add_all(&f);
    fixture_strings(&f);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], f.bytes.data, f.bytes.n), f.bytes.n);
    close(ends[1]);
    assert_int_equal(pprof_read_fd(ends[0], NULL, &p, NULL), CPPROF_OK);
    close(ends[0]);
    check_sample(p);
    pprof_free(p);
    fixture_free(&f);
}

static void
path_that_is_no_file_is_a_system_error(void **state)
{
    struct cpprof_error error = {0};
    struct pprof_profile *p;

    assert_int_equal(pprof_read_path("/", NULL, &p, &error), CPPROF_SYSTEM);
    assert_string_equal(error.text, "Is a directory");
    assert_int_equal(pprof_read_path("/nowhere/at/all", NULL, &p, &error),
                     CPPROF_SYSTEM);
    assert_string_equal(error.text, "No such file or directory");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_read),
        cmocka_unit_test(fields_in_reverse_order_are_read_alike),
        cmocka_unit_test(packed_and_unpacked_and_mixed_numbers_are_read_alike),
        cmocka_unit_test(ids_far_apart_are_found),
        cmocka_unit_test(unknown_fields_of_every_wire_type_are_skipped),
        cmocka_unit_test(equal_strings_get_one_number),
        cmocka_unit_test(label_of_zero_with_unit_stays),
        cmocka_unit_test(samples_with_equal_labels_in_any_order_share_them),
        cmocka_unit_test(gzip_of_several_members_is_one_profile),
        cmocka_unit_test(gzip_cut_short_says_so),
        cmocka_unit_test(gzip_beyond_the_limit_is_refused_as_such),
        cmocka_unit_test(damaged_messages_are_refused_in_the_references_words),
        cmocka_unit_test(two_profiles_in_a_row_are_refused),
        cmocka_unit_test(string_that_is_not_there_is_refused),
        cmocka_unit_test(label_with_unknown_string_is_refused),
        cmocka_unit_test(samples_without_types_are_refused),
        cmocka_unit_test(sample_with_too_few_or_many_values_is_refused),
        cmocka_unit_test(sample_of_unknown_location_is_refused),
        cmocka_unit_test(ids_that_are_zero_or_twice_there_are_refused),
        cmocka_unit_test(line_of_unknown_function_is_refused),
        cmocka_unit_test(pipe_is_read_to_its_end),
        cmocka_unit_test(path_that_is_no_file_is_a_system_error),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
