/* SPDX-License-Identifier: MIT */
/* CPU profiles as machine words. */
#include "profile/legacy/legacy.h"
#include "shared_files.h"
#include "views.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define GOLDEN "pprof/profile/testdata/"

/* ------------------------------------------------------------- making ---- */

/* Words, in one of the four forms. */
struct words {
    struct cpprof__buffer bytes;
    unsigned width;
    bool is_big_endian;
};

static const struct words forms[] = {
    {.width = 4},
    {.width = 4, .is_big_endian = true},
    {.width = 8},
    {.width = 8, .is_big_endian = true},
};

static void
put(struct words *w, uint64_t word)
{
    unsigned i;

    for (i = 0; i < w->width; i++) {
        unsigned byte = w->is_big_endian ? w->width - 1 - i : i;
        uint8_t b = (uint8_t)(word >> 8 * byte);

        cpprof__buffer_append(&w->bytes, &b, 1);
    }
}

static void
put_all(struct words *w, const uint64_t *words, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        put(w, words[i]);
}

#define PUT(w, ...)                                                            \
    put_all(w, (uint64_t[]){__VA_ARGS__},                                      \
            sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t))
#define PUT_HEADER(w) PUT(w, 0, 3, 0, 10000, 0)
#define PUT_END(w)    PUT(w, 0, 1, 0)

/* Words of a form, so far the header. */
static struct words
begin(size_t form)
{
    struct words w = forms[form];

    PUT_HEADER(&w);
    return w;
}

static void
put_text(struct words *w, const char *text)
{
    cpprof__buffer_append(&w->bytes, text, strlen(text));
}

/* The profile of the words, which are freed; NULL when they are none. */
static struct pprof_profile *
read_words(struct words *w)
{
    struct pprof_profile *p = NULL;
    /* A copy of just that size, so that ASan sees what is read behind it. */
    char *data = malloc(w->bytes.n + 1);

    assert_non_null(data);
    memcpy(data + 1, w->bytes.data, w->bytes.n);
    assert_int_equal(
        cpprof__legacy_try(cpprof__read_cpu, data + 1, w->bytes.n, &p, NULL),
        CPPROF_OK);
    free(data);
    cpprof__buffer_free(&w->bytes);
    if (p)
        assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    return p;
}

/* ------------------------------------------------------------ looking ---- */

/* Samples as "value: address address;". */
static const char *
show(const struct pprof_profile *p)
{
    static char out[8192];
    size_t n = 0, i, j;

    out[0] = '\0';
    for (i = 0; i < p->samples.n && n < sizeof out; i++) {
        struct pprof_sample s = sample_of(p, i);

        n += (size_t)snprintf(out + n, sizeof out - n,
                              "%lld:", (long long)s.values[0]);
        for (j = 0; j < s.n_locations && n < sizeof out; j++)
            n += (size_t)snprintf(
                out + n, sizeof out - n, " %llx",
                (unsigned long long)p->locations.at[s.locations[j]].address);
        n +=
            n < sizeof out ? (size_t)snprintf(out + n, sizeof out - n, ";") : 0;
    }
    return out;
}

static void
assert_samples(struct words *w, const char *want)
{
    struct pprof_profile *p = read_words(w);

    assert_non_null(p);
    assert_string_equal(show(p), want);
    pprof_free(p);
}

/* -------------------------------------------------------------- words ---- */

/* Stacks that share no frame above the leaf, or that would go. */
static void
put_example(struct words *w)
{
    PUT_HEADER(w);
    PUT(w, 5, 3, 0x401010, 0x402000, 0x403000);
    PUT(w, 3, 2, 0x401020, 0x402100);
    PUT(w, 1, 1, 0xdeadbeef);
    PUT(w, 7, 0);
    PUT_END(w);
    put_text(w, "\nMAPPED_LIBRARIES:\n"
                "00400000-0040b000 r-xp 00000000 fc:01 787766 /bin/demo\n"
                "0040b000-0040c000 rw-p 0000b000 fc:01 787766 /bin/demo\n");
}

static void
words_of_either_size_and_order_are_read(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < 4; i++) {
        struct words w = forms[i];
        struct pprof_profile *p;

        put_example(&w);
        p = read_words(&w);
        assert_non_null(p);
        assert_string_equal(show(p), "5: 401010 401fff 402fff;"
                                     "3: 401020 4020ff;1: deadbeef;7:;");
        assert_int_equal(p->info.period, 10000000);
        assert_int_equal(p->values.at[1], 50000000);
        assert_int_equal(p->mappings.n, 2);
        assert_int_equal(p->locations.at[0].mapping, 0);
        assert_int_equal(p->locations.at[5].mapping, 1); /* made up */
        pprof_free(p);
    }
}

static void
words_of_either_size_and_order_give_equal_text(void **state)
{
    struct cpprof__buffer text[4] = {{0}};
    size_t i;

    (void)state;
    for (i = 0; i < 4; i++) {
        struct words w = forms[i];
        struct pprof_profile *p;

        put_example(&w);
        p = read_words(&w);
        assert_non_null(p);
        assert_int_equal(shared_text(p, &text[i]), CPPROF_OK);
        pprof_free(p);
        assert_int_equal(text[i].n, text[0].n);
        assert_memory_equal(text[i].data, text[0].data, text[0].n);
    }
    for (i = 0; i < 4; i++)
        cpprof__buffer_free(&text[i]);
}

static void
other_headers_are_not_recognized(void **state)
{
    static const uint64_t headers[][5] = {
        {1, 3, 0, 10000, 0}, {0, 2, 0, 10000, 0}, {0, 3, 2, 10000, 0},
        {0, 3, 0, 0, 0},     {0, 3, 0, 10000, 1},
    };
    size_t i, j;

    (void)state;
    for (i = 0; i < 4; i++)
        for (j = 0; j < sizeof headers / sizeof *headers; j++) {
            struct words w = forms[i];

            put_all(&w, headers[j], 5);
            PUT_END(&w);
            assert_null(read_words(&w));
        }
}

static void
header_alone_is_a_profile_without_samples(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < 4; i++) {
        struct words w = begin(i);

        assert_samples(&w, "");
    }
}

static void
missing_end_marker_is_no_failure(void **state)
{
    struct words w = begin(2);

    (void)state;
    PUT(&w, 5, 1, 0x10);
    assert_samples(&w, "5: 10;");
}

static void
addresses_cut_off_count_as_0(void **state)
{
    struct words w = begin(2);

    (void)state;
    PUT(&w, 1, 1, 0x99);
    PUT(&w, 5, 3, 0x10, 0x21); /* 16 bytes: enough for 3 words of 4 */
    assert_samples(&w, "1: 99;5: 10 20 ffffffffffffffff;");
    w = begin(2);
    PUT(&w, 5, 5, 0x10, 0x21);
    assert_null(read_words(&w));
}

static void
record_cut_off_is_not_recognized(void **state)
{
    struct words w = begin(0);

    (void)state;
    PUT(&w, 5, 1, 0x10, 7);
    assert_null(read_words(&w));
    w = begin(2);
    PUT(&w, 5, UINT64_MAX, 0x10);
    assert_null(read_words(&w));
}

static void
profile_cut_anywhere_is_read_or_refused(void **state)
{
    size_t i, n = SIZE_MAX, cut;

    (void)state;
    for (i = 0; i < 4; i++)
        for (cut = 0, n = SIZE_MAX; cut < n; cut++) {
            struct words w = forms[i];
            struct pprof_profile *p;

            put_example(&w);
            n = w.bytes.n;
            w.bytes.n = cut;
            p = read_words(&w);
            if (p)
                assert_true(cut >= 5 * w.width && p->samples.n <= 4);
            pprof_free(p);
        }
    assert_true(n > 100);
}

/* ------------------------------------------------------------ cleaning ---- */

/* Source: TestCpuParse. */
static void
handler_frame_and_second_leaf_go(void **state)
{
    struct words w = begin(0);

    (void)state;
    PUT(&w, 1, 3, 100, 999, 100);
    PUT(&w, 1, 5, 200, 999, 200, 501, 502);
    PUT(&w, 1, 12, 300, 999, 300, 601, 602, 603, 604, 605, 606, 607, 608, 609);
    PUT_END(&w);
    assert_samples(&w, "1: 64;1: c8 1f4 1f5;"
                       "1: 12c 258 259 25a 25b 25c 25d 25e 25f 260;");
}

static void
at_most_two_handler_frames_go(void **state)
{
    struct words w = begin(0);

    (void)state;
    PUT(&w, 1, 5, 10, 20, 30, 40, 50);
    PUT(&w, 1, 5, 11, 20, 30, 40, 50);
    PUT_END(&w);
    assert_samples(&w, "1: a 27 31;1: b 27 31;");
}

/* n samples of which `others` have another frame above the leaf. */
static void
put_similar(struct words *w, unsigned n, unsigned others)
{
    unsigned i;

    PUT_HEADER(w);
    for (i = 0; i < n; i++)
        PUT(w, 1, 3, 1000 + i, i < others ? 2000 + 10 * i : 500, 3000 + 10 * i);
    PUT_END(w);
}

static void
one_sample_in_32_may_lack_the_handler_frame(void **state)
{
    static const struct {
        unsigned n, others, frames_left;
    } cases[] = {
        {31, 0, 2},   {31, 1, 3},   {32, 1, 2},    {32, 2, 3},
        {320, 10, 2}, {320, 11, 3}, {1000, 31, 2}, {1000, 32, 3},
    };
    size_t i, j;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct words w = forms[3];
        struct pprof_profile *p;

        put_similar(&w, cases[i].n, cases[i].others);
        p = read_words(&w);
        assert_non_null(p);
        for (j = 0; j < cases[i].n; j++)
            assert_int_equal(p->samples.at[j].n_frames,
                             j < cases[i].others ? 3 : cases[i].frames_left);
        pprof_free(p);
    }
}

/* ------------------------------------------------------- real profiles ---- */

static void
assert_golden(const char *name, const char *string)
{
    struct cpprof__buffer data = {0}, want = {0}, got = {0};
    struct cpprof_error error = {0};
    struct pprof_profile *p = NULL;

    if (!shared_read(name, &data) || !shared_read(string, &want)) {
        cpprof__buffer_free(&data);
        return;
    }
    if (pprof_read_data(data.data, data.n, NULL, &p, &error))
        fail_msg("%s: %s", name, error.text);
    assert_int_equal(shared_text(p, &got), CPPROF_OK);
    cpprof__buffer_append(&got, "", 1);
    cpprof__buffer_append(&want, "", 1);
    assert_string_equal((char *)got.data, (char *)want.data);
    pprof_free(p);
    cpprof__buffer_free(&data);
    cpprof__buffer_free(&want);
    cpprof__buffer_free(&got);
}

#define GOLDEN_TEST(name, file)                                                \
    static void name##_profile_as_the_reference_prints_it(void **state)        \
    {                                                                          \
        (void)state;                                                           \
        assert_golden(GOLDEN file, GOLDEN file ".string");                     \
    }
GOLDEN_TEST(cpp, "cppbench.cpu")
GOLDEN_TEST(go, "gobench.cpu")
GOLDEN_TEST(old_go, "go.crc32.cpu")
GOLDEN_TEST(java, "java.cpu")

static void
real_profile_cut_anywhere_is_read_or_refused(void **state)
{
    struct cpprof__buffer data = {0};
    size_t cut, n_read = 0;

    (void)state;
    if (!shared_read(GOLDEN "go.crc32.cpu", &data))
        return;
    for (cut = 0; cut < data.n; cut += cut < 512 ? 1 : 7) {
        struct pprof_profile *p = NULL;
        enum cpprof_status status =
            pprof_read_data(data.data, cut, NULL, &p, NULL);

        assert_true(status == CPPROF_OK || status == CPPROF_BAD_DATA);
        n_read += p != NULL;
        pprof_free(p);
    }
    assert_true(n_read > 0);
    cpprof__buffer_free(&data);
}

/* -------------------------------------------------------- which format ---- */

static void
assert_refused(const void *data, size_t n, const char *text)
{
    struct cpprof_error error = {0};
    struct pprof_profile *p = NULL;

    assert_int_equal(pprof_read_data(data, n, NULL, &p, &error),
                     CPPROF_BAD_DATA);
    assert_null(p);
    assert_string_equal(error.text, text);
}

static void
bytes_of_no_format_are_refused_in_the_references_words(void **state)
{
    static const char unrecognized[] =
        "parsing profile: unrecognized profile format";

    (void)state;
    assert_refused("", 0, "parsing profile: empty input file");
    assert_refused("\xff\xff", 2, unrecognized);
    assert_refused("no profile\n", 11, unrecognized);
    assert_refused("\x32\1a", 3, unrecognized);
    assert_refused("\0\0\0\0\3\0\0\0", 8, unrecognized);
}

/* Read the words as bytes of unknown format. */
static struct pprof_profile *
must_read(struct words *w)
{
    struct cpprof_error error = {0};
    struct pprof_profile *p = NULL;

    if (pprof_read_data(w->bytes.data, w->bytes.n, NULL, &p, &error))
        fail_msg("%s", error.text);
    cpprof__buffer_free(&w->bytes);
    return p;
}

/* The name of a location's line, "" where there is none. */
static const char *
name_at(const struct pprof_profile *p, size_t location, size_t line)
{
    const struct pprof_location *l = &p->locations.at[location];
    uint32_t function;

    if (line >= l->n_lines)
        return "";
    function = p->lines.at[l->first_line + line].function;
    return pprof_text(p, p->functions.at[function].name, NULL);
}

static void
names_in_front_of_a_profile_go_to_its_locations(void **state)
{
    struct words w = forms[2];
    struct pprof_profile *p;

    (void)state;
    put_text(&w, "--- symbol\nbinary=/bin/demo\n"
                 "0x0000000000402fff main\n"
                 "0x0000000000401010 outer--middle--inner(int)\n"
                 "0x00000000004020fe not this one\n"
                 "no symbol\n0x\n0x12\n0x13 --\n"
                 "0x0000000000402000 old::version\n"
                 "---\n--- profile\n");
    put_example(&w);
    p = must_read(&w);
    assert_int_equal(p->samples.n, 4);
    assert_string_equal(name_at(p, 0, 0), "inner(int)");
    assert_string_equal(name_at(p, 0, 1), "middle");
    assert_string_equal(name_at(p, 0, 2), "outer");
    assert_string_equal(name_at(p, 0, 3), "");
    assert_string_equal(name_at(p, 1, 0), "old::version");
    assert_string_equal(name_at(p, 2, 0), "main");
    assert_string_equal(name_at(p, 4, 0), "");
    assert_int_equal(p->mappings.at[0].flags, PPROF_HAS_FUNCTIONS);
    assert_int_equal(p->mappings.at[1].flags, 0);
    pprof_free(p);
}

static void
names_without_a_memory_map_name_the_program(void **state)
{
    struct words w = forms[2];
    struct pprof_profile *p;

    (void)state;
    put_text(&w, "--- symbol\nbinary=/bin/demo\n0x10 f\n---\n"
                 "--- profile\n");
    PUT_HEADER(&w);
    PUT(&w, 5, 1, 0x10);
    p = must_read(&w);
    assert_int_equal(p->samples.n, 1);
    assert_string_equal(name_at(p, 0, 0), "f");
    assert_string_equal(pprof_text(p, p->mappings.at[0].file, NULL),
                        "/bin/demo");
    pprof_free(p);
}

static void
names_without_a_profile_are_refused(void **state)
{
    static const char *const texts[] = {
        "--- symbol\n",
        "--- symbol\n0x10 f\n",
        "--- symbol\n0x10 f\n---\n",
        "--- symbol\n0x10 f\n---\n--- profile\n",
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_refused(texts[i], strlen(texts[i]),
                       "parsing profile: unrecognized profile format");
}

static void
file_is_read_as_well_as_memory(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < 4; i++) {
        struct words w = forms[i];
        FILE *file = tmpfile();
        struct pprof_profile *p = NULL;

        assert_non_null(file);
        put_example(&w);
        assert_int_equal(fwrite(w.bytes.data, 1, w.bytes.n, file), w.bytes.n);
        rewind(file);
        cpprof__buffer_free(&w.bytes);
        assert_int_equal(pprof_read_fd(fileno(file), NULL, &p, NULL),
                         CPPROF_OK);
        assert_int_equal(p->samples.n, 4);
        assert_string_equal(
            pprof_text(p, p->info.drop_frames, NULL),
            "ProfileData::Add|ProfileData::prof_handler|"
            "CpuProfiler::prof_handler|__pthread_sighandler|__restore");
        pprof_free(p);
        fclose(file);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_either_size_and_order_are_read),
        cmocka_unit_test(words_of_either_size_and_order_give_equal_text),
        cmocka_unit_test(other_headers_are_not_recognized),
        cmocka_unit_test(header_alone_is_a_profile_without_samples),
        cmocka_unit_test(missing_end_marker_is_no_failure),
        cmocka_unit_test(addresses_cut_off_count_as_0),
        cmocka_unit_test(record_cut_off_is_not_recognized),
        cmocka_unit_test(profile_cut_anywhere_is_read_or_refused),
        cmocka_unit_test(handler_frame_and_second_leaf_go),
        cmocka_unit_test(at_most_two_handler_frames_go),
        cmocka_unit_test(one_sample_in_32_may_lack_the_handler_frame),
        cmocka_unit_test(cpp_profile_as_the_reference_prints_it),
        cmocka_unit_test(go_profile_as_the_reference_prints_it),
        cmocka_unit_test(old_go_profile_as_the_reference_prints_it),
        cmocka_unit_test(java_profile_as_the_reference_prints_it),
        cmocka_unit_test(real_profile_cut_anywhere_is_read_or_refused),
        cmocka_unit_test(
            bytes_of_no_format_are_refused_in_the_references_words),
        cmocka_unit_test(names_in_front_of_a_profile_go_to_its_locations),
        cmocka_unit_test(names_without_a_memory_map_name_the_program),
        cmocka_unit_test(names_without_a_profile_are_refused),
        cmocka_unit_test(file_is_read_as_well_as_memory),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
