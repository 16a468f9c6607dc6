/* SPDX-License-Identifier: MIT */
/* Whichever allocation fails, a call says so and leaves nothing behind. */
#include "base/gzip.h"
#include "pprof_fixture.h"
#include <cpprof/pprof/report.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "oom.h"

/* A profile of some size, so that tables grow; packed. */
static void
make(struct cpprof__buffer *packed)
{
    struct fixture f = {0};
    char stack[64], labels[64];
    int i;

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/bin/prog", "1234");
    for (i = 0; i < 20; i++) {
        snprintf(stack, sizeof stack, "_Z1fi<in%d out%d main", i, i % 5);
        snprintf(labels, sizeof labels, "thread=t%d bytes=%dkb", i % 5, i);
        fixture_stack(&f, stack, i - 3, labels);
    }
    cpprof__put_uint(&f.bytes, 7, fixture_string(&f, "in7"));
    cpprof__put_uint(&f.bytes, 8, fixture_string(&f, "in8"));
    cpprof__put_uint(&f.bytes, 13, fixture_string(&f, "comment"));
    fixture_strings(&f);
    cpprof__gzip(packed, f.bytes.data, f.bytes.n, 6, NULL);
    fixture_free(&f);
}

/* A sum over what a call made, which is the same whenever it succeeds. */
static uint64_t made;

static int
take(void *ctx, const void *data, size_t n)
{
    const unsigned char *p = data;
    size_t i;

    for (i = 0; i < n; i++)
        made = made * 31 + p[i];
    return 0;
}

/* ---------------------------------------------------------- the calls ---- */

static enum cpprof_status
read_it(const struct cpprof__buffer *packed, struct cpprof_error *error)
{
    struct pprof_profile *p = NULL;
    enum cpprof_status status =
        pprof_read_data(packed->data, packed->n, NULL, &p, error);

    assert_true((p != NULL) == (status == CPPROF_OK));
    pprof_free(p);
    return status;
}

static enum cpprof_status
read_it_from_a_file(const struct cpprof__buffer *packed,
                    struct cpprof_error *error)
{
    int fd = memfd_create("profile", MFD_CLOEXEC);
    struct pprof_profile *p = NULL;
    enum cpprof_status status;
    char path[64];

    assert_true(fd >= 0);
    assert_int_equal(write(fd, packed->data, packed->n), packed->n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    status = pprof_read_path(path, NULL, &p, error);
    assert_true((p != NULL) == (status == CPPROF_OK));
    pprof_free(p);
    close(fd);
    return status;
}

static enum cpprof_status
write_otlp(const struct cpprof__buffer *packed, struct cpprof_error *error)
{
    struct pprof_write_options options = {.size = sizeof options,
                                          .sample_index = SIZE_MAX,
                                          .resource = "a=b,service.name=c%20"};
    struct cpprof_writer writer = {sizeof writer, take, NULL, NULL};
    struct pprof_profile *p = NULL;
    enum cpprof_status status =
        pprof_read_data(packed->data, packed->n, NULL, &p, error);

    if (status == CPPROF_OK)
        status = pprof_write(p, &writer, PPROF_FORMAT_OTLP, &options, error);
    pprof_free(p);
    return status;
}

static int
append(void *ctx, const void *data, size_t n)
{
    cpprof__buffer_append(ctx, data, n);
    return 0;
}

/* What it says of a profile needs no memory, but for a wrong name. */
static enum cpprof_status
ask(const struct pprof_profile *p, struct cpprof_error *error)
{
    size_t index = 0, n_others = 0;

    pprof_has_functions(p);
    pprof_has_file_lines(p);
    assert_int_equal(pprof_is_diff_base(p, 0), 0);
    assert_int_equal(pprof_has_label(p, 0, "thread", "t0"), 1);
    assert_non_null(pprof_label_unit(p, "bytes", &n_others));
    return pprof_find_sample_type(p, "samples", &index, error);
}

static enum cpprof_status
scale_it(const struct cpprof__buffer *packed, struct cpprof_error *error)
{
    static const double ratios[] = {2, 0.5};
    struct pprof_profile *p = NULL;
    enum cpprof_status status =
        pprof_read_data(packed->data, packed->n, NULL, &p, error);

    if (status == CPPROF_OK)
        status = ask(p, error);
    if (status == CPPROF_OK)
        status = pprof_scale_types(p, ratios, 2, error);
    if (status == CPPROF_OK)
        status = pprof_aggregate(p, PPROF_KEEP_FILES, error);
    if (status == CPPROF_OK)
        status = pprof_compact(p, error);
    pprof_free(p);
    return status;
}

static enum cpprof_status
change_it(const struct cpprof__buffer *packed, struct cpprof_error *error)
{
    struct pprof_profile *p = NULL;
    enum cpprof_status status =
        pprof_read_data(packed->data, packed->n, NULL, &p, error);

    if (status == CPPROF_OK)
        status = pprof_demangle(p, PPROF_DEMANGLE_SHORT, 0, error);
    if (status == CPPROF_OK)
        status = pprof_drop_frames(p, error);
    if (status == CPPROF_OK)
        status = pprof_set_binary(p, "/bin/other", "5678", error);
    if (status == CPPROF_OK)
        status = pprof_add_comment(p, "another", error);
    if (status == CPPROF_OK)
        status = pprof_set_label(p, "key", "value", error);
    if (status == CPPROF_OK)
        pprof_scale(p, -1);
    if (status == CPPROF_OK)
        status = pprof_normalize(p, p, error);
    if (status == CPPROF_OK)
        status = pprof_check(p, error);
    pprof_free(p);
    return status;
}

static enum cpprof_status
merge_it(const struct cpprof__buffer *packed, struct cpprof_error *error)
{
    struct pprof_merger *merger = NULL;
    struct pprof_profile *p = NULL, *merged = NULL;
    enum cpprof_status status = pprof_merger_new(&merger, error);
    int i;

    for (i = 0; i < 2 && status == CPPROF_OK; i++) {
        status = pprof_read_data(packed->data, packed->n, NULL, &p, error);
        if (status == CPPROF_OK && i)
            pprof_scale(p, -1);
        if (status == CPPROF_OK)
            status = pprof_merger_add(merger, p, error);
        pprof_free(p);
        p = NULL;
    }
    if (status == CPPROF_OK)
        status = pprof_merger_finish(merger, &merged, error);
    pprof_merger_free(merger);
    pprof_free(merged);
    return status;
}

/* Of a profile in other units, with one sample type more. */
static struct cpprof__buffer other;

static void
make_other(void)
{
    struct fixture f = {0};

    fixture_value_type(&f, 1, "sample", "count");
    fixture_value_type(&f, 1, "cpu", "microseconds");
    fixture_value_type(&f, 11, "cpu", "milliseconds");
    cpprof__put_uint(&f.bytes, 12, 10);
    fixture_mapping(&f, 1, 0x1000, "/bin/prog", "1234");
    fixture_stack(&f, "x main", 3, "key=v");
    fixture_strings(&f);
    other = f.bytes;
    memset(&f.bytes, 0, sizeof f.bytes);
    fixture_free(&f);
}

/* Types get common units, and values are scaled; what fails in between leaves
 * a profile that is whole. */
static enum cpprof_status
merge_units(const struct cpprof__buffer *packed, struct cpprof_error *error)
{
    struct pprof_profile *p[2] = {NULL, NULL}, *merged = NULL;
    enum cpprof_status status =
        pprof_read_data(packed->data, packed->n, NULL, &p[0], error);
    int i;

    if (status == CPPROF_OK)
        status = pprof_read_data(other.data, other.n, NULL, &p[1], error);
    if (status == CPPROF_OK)
        status = pprof_merge(p, 2, &merged, error);
    oom.countdown = -1;
    for (i = 0; i < 2; i++)
        assert_true(!p[i] || pprof_check(p[i], NULL) == CPPROF_OK);
    pprof_free(p[0]);
    pprof_free(p[1]);
    pprof_free(merged);
    return status;
}

static enum pprof_report_format report_format;

static enum cpprof_status
report_it(const struct cpprof__buffer *packed, struct cpprof_error *error)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct pprof_profile *p = NULL;
    struct cpprof_writer writer = {sizeof writer, take, NULL, NULL};
    enum cpprof_status status =
        pprof_read_data(packed->data, packed->n, NULL, &p, error);

    options.granularity = PPROF_REPORT_LINES;
    options.flags = PPROF_REPORT_MEAN | PPROF_REPORT_NO_TRIM;
    options.focus = options.show = options.show_from = "main|in";
    options.ignore = options.hide = options.prune_from = "in1";
    options.tagfocus = "t[0-4]";
    options.tagignore = "bytes=5mb:";
    if (report_format != PPROF_REPORT_TAGS) /* none would be left */
        options.tagshow = options.taghide = "thread";
    options.tagroot = "thread";
    options.tagleaf = "bytes";
    if (report_format == PPROF_REPORT_PEEK)
        options.symbol = "main|in";
    if (status == CPPROF_OK)
        status = pprof_report_write(p, &writer, report_format, &options, error);
    /* Large reports are written bit by bit. */
    assert_true(status == CPPROF_OK ? made != 0
                                    : report_format != 0 || made == 0);
    pprof_free(p);
    return status;
}

typedef enum cpprof_status
a_call(const struct cpprof__buffer *file, struct cpprof_error *error);

/* Let allocation 1, 2, ... fail, until the call needs no more of them. */
static void
survives_with(a_call *call, const struct cpprof__buffer *file)
{
    struct cpprof_error why;
    uint64_t expected;
    long n;

    made = 0;
    if (call(file, &why) != CPPROF_OK)
        fail_msg("%s", why.text);
    expected = made;
    for (n = 0;; n++) {
        struct cpprof_error error = {0};
        enum cpprof_status status;

        oom_watch();
        oom.countdown = n;
        made = 0;
        status = call(file, &error);
        oom.countdown = -1;
        assert_int_equal(oom.n_live, 0);
        if (status == CPPROF_OK)
            break;
        assert_int_equal(status, CPPROF_NOMEM);
        assert_string_equal(error.text, "out of memory");
    }
    assert_int_equal(made, expected);
    /* It did allocate, and often. */
    assert_in_range(n, 10, 10000);
}

static void
survives(a_call *call)
{
    struct cpprof__buffer packed = {0};

    make(&packed);
    survives_with(call, &packed);
    cpprof__buffer_free(&packed);
}

static void
reading_survives_want_of_memory(void **state)
{
    survives(read_it);
}

static void
changing_survives_want_of_memory(void **state)
{
    survives(change_it);
}

static void
merging_survives_want_of_memory(void **state)
{
    survives(merge_it);
}

static void
otlp_survives_want_of_memory(void **state)
{
    struct cpprof__buffer packed = {0}, file = {0};
    struct cpprof_writer writer = {sizeof writer, append, NULL, &file};
    struct pprof_profile *p = NULL;

    survives(write_otlp);
    make(&packed);
    assert_int_equal(pprof_read_data(packed.data, packed.n, NULL, &p, NULL),
                     CPPROF_OK);
    assert_int_equal(pprof_write(p, &writer, PPROF_FORMAT_OTLP, NULL, NULL),
                     CPPROF_OK);
    pprof_free(p);
    survives_with(read_it, &file);
    cpprof__buffer_free(&packed);
    cpprof__buffer_free(&file);
}

static void
reading_a_file_survives_want_of_memory(void **state)
{
    survives(read_it_from_a_file);
}

static void
scaling_survives_want_of_memory(void **state)
{
    survives(scale_it);
}

static void
merging_other_units_survives_want_of_memory(void **state)
{
    make_other();
    survives(merge_units);
    cpprof__buffer_free(&other);
}

static void
reporting_survives_want_of_memory(void **state)
{
    int format;

    for (format = PPROF_REPORT_TOP; format <= PPROF_REPORT_CALLGRIND;
         format++) {
        report_format = (enum pprof_report_format)format;
        survives(report_it);
    }
    report_format = PPROF_REPORT_TOP;
}

#define MAPS                                                                   \
    "lib=/usr/lib\n"                                                           \
    "10000-20000 r-xp 00000000 00:00 0 /bin/prog\n"                            \
    "30000-40000: $lib/libc.so.6 (@10) abcd\n"

static void
reading_older_formats_survives_want_of_memory(void **state)
{
    static const char *const texts[] = {
        "heap profile: 2: 96 [5: 4096] @ heap_v2/524288\n"
        "1: 64 [3: 3000] @ 0x10010 0x30020\n"
        "1: 32 [2: 1096] @ 0x10030\nMAPPED_LIBRARIES:\n" MAPS,
        "goroutine profile: total 4\n3 @ 0x10010 0x30020\n"
        "# labels: {\"key\":\"value\"}\n1 @ 0x10030\n",
        "--- threadz 1 ---\n\n--- Thread 7f (name: main/1) stack: ---\n"
        "  PC: 0x00010010: f\n  0x00030020: main\n"
        "--- Thread 80 (name: t/2) stack: ---\n"
        "  [same as previous thread]\n--- Memory map: ---\n" MAPS,
        "--- contentionz 1 ---\ncycles/second = 1000000000\n"
        "sampling period = 100\n27 1 @ 0x10010 0x30020\n"
        "--- Memory map: ---\n" MAPS,
        "--- contentionz 1 ---\nformat = java\nresolution = microseconds\n"
        "sampling period = 100\nms since reset = 6019923\n"
        "  1  1 @ 0x00000003 0x00000004\n\n\n"
        " 0x0000003 com.example.f (source.java:03)\n 0x0000004 GC\n",
        "main;a;b 3\nmain;c_[k] 4\nmain 1\n",
        "prog 1/2 [001] 1.5: 250 cycles:u:\n\t 10010 f+0x4 (/bin/prog)\n"
        "\t 30020 main+0x1 (/usr/lib/libc.so.6)\n\n",
    };
    size_t i;

    for (i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct cpprof__buffer file = {(uint8_t *)texts[i], strlen(texts[i]), 0,
                                      false};

        survives_with(read_it, &file);
    }
}

/* Ten times the samples of the same stacks: not one allocation more but for
 * the doubling of arrays. */
static void
samples_are_not_allocated_one_by_one(void **state)
{
    long needed[2] = {0, 0};
    int round;

    for (round = 0; round < 2; round++) {
        struct cpprof__buffer packed = {0};
        struct fixture f = {0};
        enum cpprof_status status;
        int i;

        fixture_cpu(&f);
        for (i = 0; i < (round ? 20000 : 2000); i++)
            fixture_stack(&f, i % 2 ? "a b main" : "c main", i, "k=v");
        fixture_strings(&f);
        cpprof__gzip(&packed, f.bytes.data, f.bytes.n, 1, NULL);
        fixture_free(&f);
        do {
            made = 0;
            oom_watch();
            oom.countdown = needed[round]++;
            status = report_it(&packed, NULL);
            oom.countdown = -1;
        } while (status == CPPROF_NOMEM);
        assert_int_equal(status, CPPROF_OK);
        cpprof__buffer_free(&packed);
    }
    assert_in_range(needed[1], needed[0], needed[0] + 20);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_survives_want_of_memory),
        cmocka_unit_test(reading_a_file_survives_want_of_memory),
        cmocka_unit_test(otlp_survives_want_of_memory),
        cmocka_unit_test(reading_older_formats_survives_want_of_memory),
        cmocka_unit_test(changing_survives_want_of_memory),
        cmocka_unit_test(scaling_survives_want_of_memory),
        cmocka_unit_test(merging_survives_want_of_memory),
        cmocka_unit_test(merging_other_units_survives_want_of_memory),
        cmocka_unit_test(reporting_survives_want_of_memory),
        cmocka_unit_test(samples_are_not_allocated_one_by_one),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
