/* SPDX-License-Identifier: MIT */
/* The text of `perf script`: lines, profiles, and back. */
#include "pprof_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "profile/text/perf_line.h"
#include "text_fixture.h"
#include "views.h"

static struct cpprof__text
slice(const char *text)
{
    return (struct cpprof__text){text, strlen(text)};
}

static bool
is(struct cpprof__text text, const char *wanted)
{
    return text.n == strlen(wanted) &&
           (!text.n || memcmp(text.at, wanted, text.n) == 0);
}

static struct pprof_profile *
read_it(const char *text)
{
    return text_must_read(cpprof__read_perf_script, text);
}

/* Root first, as collapsed stacks of a sample type. */
static void
assert_stacks(const struct pprof_profile *p, size_t type, const char *wanted)
{
    char *text = text_write(cpprof__write_collapsed, p, type);

    assert_string_equal(text, wanted);
    free(text);
}

/* ------------------------------------------------------------- lines ---- */

static void
headers_of_all_fields_are_parsed(void **state)
{
    static const struct {
        const char *line, *comm, *event;
        int64_t pid, tid, time_ns, period; /* period -1: none */
    } cases[] = {
        {"java 25607 4794564.109216: cycles: ", "java", "cycles", -1, 25607,
         4794564109216000, -1},
        {"java 12688 [002] 6544038.708352: cpu-clock: ", "java", "cpu-clock",
         -1, 12688, 6544038708352000, -1},
        {"V8 WorkerThread 24636/25607 [000] 94564.109216:    257597 cycles:u:",
         "V8 WorkerThread", "cycles:u", 24636, 25607, 94564109216000, 257597},
        {"worker 3 12/13 1.5: 7 cpu/event=0x3c/: ", "worker 3",
         "cpu/event=0x3c/", 12, 13, 1500000000, 7},
        {"vote   913    72.176760123:     1 cycles:uppp:", "vote",
         "cycles:uppp", -1, 913, 72176760123, 1},
        {"         sqlite3 10740  1970.885639:    1003009 cpu-clock:  fff a",
         "sqlite3", "cpu-clock", -1, 10740, 1970885639000, 1003009},
        {"swapper 0 [001] 5.25: sched:sched_switch: prev_comm=a b: 12",
         "swapper", "sched:sched_switch", -1, 0, 5250000000, -1},
        {"a.out 123 cycles:", "a.out", "cycles", -1, 123, -1, -1},
        {"a.out 123 456 cycles:", "a.out", "cycles", -1, 123, -1, 456},
        {"Web 2 123/9 [003] 456 cycles:u: ", "Web 2", "cycles:u", 123, 9, -1,
         456},
        {"kworker/0:1-ev 17 [000] 1.000001: cycles: ", "kworker/0:1-ev",
         "cycles", -1, 17, 1000001000, -1},
        {"diff 1 2.5: -30 cycles: ", "diff", "cycles", -1, 1, 2500000000, -30},
        {"noevent 1 2.5: ", "noevent", "", -1, 1, 2500000000, -1},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cpprof__perf_header h;

        assert_true(cpprof__perf_header(slice(cases[i].line), &h));
        assert_true(is(h.comm, cases[i].comm));
        assert_true(is(h.event, cases[i].event));
        assert_int_equal(h.pid, cases[i].pid);
        assert_int_equal(h.tid, cases[i].tid);
        assert_int_equal(h.time_ns, cases[i].time_ns);
        assert_int_equal(h.has_period, cases[i].period != -1);
        if (h.has_period)
            assert_int_equal(h.period, cases[i].period);
    }
}

static void
other_lines_are_no_headers(void **state)
{
    static const char *const lines[] = {
        "",
        "java",
        "12 3.4: cycles:",
        "java 12",
        "java 12 3.4: cycles",
        "java 12 3.4: 5 6 cycles:",
        "java 12/ 3.4: cycles:",
        "java 12 3.4: 5",
        "java 12345678901234567890 3.4: cycles:",
        "java 12 :",
        "hello world: 12",
    };
    size_t i;

    for (i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct cpprof__perf_header h;

        assert_false(cpprof__perf_header(slice(lines[i]), &h));
    }
}

static void
frames_are_parsed(void **state)
{
    static const struct {
        const char *line, *name, *dso;
        uint64_t address;
        bool inlined;
    } cases[] = {
        {"\tffffffff81013236 cpu_idle+0x16 ([kernel.kallsyms])", "cpu_idle",
         "[kernel.kallsyms]", 0xffffffff81013236, false},
        {"\t 7f533952bc77 operator()(int, (anonymous namespace)::T)+0x5 "
         "(/tmp/a b.so (deleted))",
         "operator()(int, (anonymous namespace)::T)", "/tmp/a b.so (deleted)",
         0x7f533952bc77, false},
        {"\t 12ab f<int>(char) (inlined)", "f<int>(char)", "", 0x12ab, true},
        {"\t 0 [unknown] ([unknown])", "", "", 0, false},
        {"\t 7f1e2215d058  (/lib/libc-2.15.so)", "", "/lib/libc-2.15.so",
         0x7f1e2215d058, false},
        {"\t 7f72 Ljava/io/PrintStream;::print (/tmp/perf-19982.map)",
         "Ljava/io/PrintStream;::print", "/tmp/perf-19982.map", 0x7f72, false},
        {"    ab x+0xzz", "x+0xzz", "", 0xab, false},
        {"\tab a+b+0x1f (/x (y)/z+0x12)", "a+b", "/x (y)/z", 0xab, false},
        {"\t0xAB f(int)", "f(int)", "", 0xab, false},
        {"\tab", "", "", 0xab, false},
    };
    struct cpprof__perf_frame f;
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(cpprof__perf_frame(slice(cases[i].line), &f));
        assert_true(is(f.name, cases[i].name));
        assert_true(is(f.dso, cases[i].dso));
        assert_true(f.address == cases[i].address);
        assert_int_equal(f.inlined, cases[i].inlined);
    }
    assert_false(cpprof__perf_frame(slice(""), &f));
    assert_false(cpprof__perf_frame(slice("\tmain (/bin/x)"), &f));
    assert_false(cpprof__perf_frame(slice("\t12345678901234567 f (x)"), &f));
    assert_false(cpprof__perf_frame(slice("\t0x f (x)"), &f));
}

/* ----------------------------------------------------------- profiles ---- */

static const char two_samples[] =
    "# ========\n"
    "# cmdline : perf record\n"
    "#\n"
    "my prog 10/11 [001] 2.000000:    1000 cpu-clock:u: \n"
    "\tffff8001 sys_read+0x1 ([kernel.kallsyms])\n"
    "\t    1234 read+0x4 (/lib/libc.so.6)\n"
    "\t    5678 leaf (inlined)\n"
    "\t    5678 middle (inlined)\n"
    "\t    5678 main+0x8 (/usr/bin/my prog)\n"
    "\t       0 [unknown] ([unknown])\n"
    "\n"
    "my prog 10/12 [000] 2.500000:    1000 cpu-clock:u: \n"
    "\t    5678 leaf (inlined)\n"
    "\t    5678 middle (inlined)\n"
    "\t    5678 main+0x8 (/usr/bin/my prog)\n"
    "\t    9abc [unknown] (/usr/bin/my prog)\n";

static void
samples_become_a_profile(void **state)
{
    struct pprof_profile *p = read_it(two_samples);
    struct pprof_sample sample = sample_of(p, 1);
    const struct pprof_location *l = &p->locations.at[sample.locations[0]];

    assert_int_equal(p->samples.n, 2);
    assert_int_equal(p->sample_types.n, 2);
    assert_string_equal(text_of(p, p->sample_types.at[0].type), "samples");
    assert_string_equal(text_of(p, p->sample_types.at[1].type), "cpu-clock:u");
    assert_string_equal(text_of(p, p->sample_types.at[1].unit), "nanoseconds");
    assert_string_equal(text_of(p, p->info.default_sample_type), "cpu-clock:u");
    assert_int_equal(p->info.period, 1000);
    assert_int_equal(p->info.duration_ns, 500000000);
    assert_int_equal(sample.values[0], 1);
    assert_int_equal(sample.values[1], 1000);
    assert_int_equal(sample.n_locations, 2);
    assert_int_equal(l->n_lines, 3);
    assert_true(l->address == 0x5678);
    /* The inlined functions and their frame are shared by both. */
    assert_int_equal(p->locations.n, 5);
    assert_stacks(p, 1,
                  "[unknown <0x0>];main;middle;leaf;read;sys_read 1000\n"
                  "[my prog <0x9abc>];main;middle;leaf 1000\n");
    pprof_free(p);
}

static void
process_becomes_labels(void **state)
{
    struct pprof_profile *p = read_it(two_samples);
    struct pprof_sample sample = sample_of(p, 1);

    assert_int_equal(sample.n_labels, 3);
    assert_true(pprof_has_label(p, 1, "comm", "my prog"));
    assert_string_equal(text_of(p, sample.labels[1].key), "pid");
    assert_int_equal(sample.labels[1].num, 10);
    assert_string_equal(text_of(p, sample.labels[2].key), "tid");
    assert_int_equal(sample.labels[2].num, 12);
    pprof_free(p);
}

static void
files_become_mappings_the_program_first(void **state)
{
    struct pprof_profile *p = read_it(two_samples);
    const struct pprof_mapping *m = p->mappings.at;

    assert_int_equal(p->mappings.n, 3);
    assert_string_equal(text_of(p, m[0].file), "/usr/bin/my prog");
    assert_true(m[0].start == 0x5000 && m[0].limit == 0xa000);
    assert_true(m[0].offset == 0x5000);
    assert_int_equal(m[0].flags, PPROF_HAS_INLINE_FRAMES);
    assert_string_equal(text_of(p, m[1].file), "[kernel.kallsyms]");
    assert_int_equal(m[1].flags, PPROF_HAS_FUNCTIONS);
    assert_string_equal(text_of(p, m[2].file), "/lib/libc.so.6");
    assert_true(m[2].start == 0x1000 && m[2].limit == 0x2000);
    pprof_free(p);
}

static void
every_event_is_a_sample_type(void **state)
{
    struct pprof_profile *p = read_it("a 1 1.1: 3 instructions: \n"
                                      "\t1 f (/a)\n"
                                      "\n"
                                      "a 1 1.0: 10 cycles: \n"
                                      "\t1 f (/a)\n"
                                      "\n"
                                      "a 1 1.2: 20 cycles: \n"
                                      "\t2 g (/a)\n"
                                      "\n"
                                      "a 1 1.3: sched:wakeup: comm=b pid=1\n"
                                      "\t3 h (/a)\n"
                                      "\n");

    assert_int_equal(p->sample_types.n, 4);
    assert_string_equal(text_of(p, p->sample_types.at[1].type), "instructions");
    assert_string_equal(text_of(p, p->sample_types.at[1].unit), "count");
    assert_string_equal(text_of(p, p->sample_types.at[2].type), "cycles");
    assert_string_equal(text_of(p, p->info.default_sample_type), "cycles");
    assert_int_equal(p->info.period_type.type, p->sample_types.at[2].type);
    assert_string_equal(text_of(p, p->sample_types.at[3].type), "sched:wakeup");
    assert_int_equal(p->info.period, 0);
    assert_stacks(p, 0, "f 2\ng 1\nh 1\n");
    assert_stacks(p, 1, "f 3\n");
    assert_stacks(p, 2, "f 10\ng 20\n");
    assert_stacks(p, 3, "h 1\n");
    pprof_free(p);
}

static void
call_chains_may_be_missing(void **state)
{
    struct pprof_profile *p =
        read_it("        a 1  1.0:  5 cycles:  ffff1 f+0x1 ([kernel])\n"
                "        a 1  1.1:  6 cycles:      b2 g h() (/bin/a)\n"
                "        a 1  1.2:  7 cycles: \n"
                "        a 1  1.3:  8 raw:sys: 5 (2, 7)\n"
                "a 1 1.3: PERF_RECORD_MMAP2 1/1: [0x7f(0x10) @ 0 0]: r-xp x\n"
                "a 1  1.4:  2 cycles:  b2 g h() (/bin/a)\n");

    assert_stacks(p, 1, "f 5\ng h() 8\n[unknown] 7\n");
    pprof_free(p);
}

static void
source_lines_belong_to_their_frames(void **state)
{
    struct pprof_profile *p = read_it("a 1 1.0: 5 cycles: \n"
                                      "\tffff f+0x1 ([kernel])\n"
                                      "  [kernel][ffff]\n"
                                      "\t  12 g (/bin/a)\n"
                                      "  src/my g.c:42\n"
                                      "\t  12 g (/bin/a)\n"
                                      "  src/my g.c:43\n");
    struct pprof_sample sample = sample_of(p, 0);
    const struct pprof_line *line =
        &p->lines.at[p->locations.at[sample.locations[2]].first_line];

    assert_int_equal(sample.n_locations, 3);
    assert_int_not_equal(sample.locations[1], sample.locations[2]);
    assert_int_equal(line->line, 43);
    assert_string_equal(text_of(p, p->functions.at[line->function].file),
                        "src/my g.c");
    assert_int_equal(p->functions.n, 2);
    pprof_free(p);
}

/* ----------------------------------------------------------- refusals ---- */

static void
other_text_is_not_recognized(void **state)
{
    static const char *const texts[] = {
        "",
        "# only\n# comments\n",
        "hello world\n",
        "Note 5 apples: hello\n\nand more\n",
        "kernel 12 34.56: started: yes\nkernel: more\n",
        "\tffff f (/x)\n",
        "main;f 12\n",
        "heap profile: 1: 2 [ 3: 4 ] @ heapprofile\n",
    };
    size_t i;

    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        enum cpprof_status status;

        assert_null(text_read(cpprof__read_perf_script, texts[i],
                              strlen(texts[i]), &status, NULL));
        assert_int_equal(status, CPPROF_OK);
    }
}

static void
malformed_line_is_told_by_its_number(void **state)
{
    static const char text[] = "a 1 1.0: 5 cycles: \n"
                               "\tffff f (/x)\n"
                               "\tno address (/x)\n";
    struct cpprof_error error = {0};
    enum cpprof_status status;

    assert_null(text_read(cpprof__read_perf_script, text, sizeof text - 1,
                          &status, &error));
    assert_int_equal(status, CPPROF_BAD_DATA);
    assert_string_equal(error.text, "perf script: line 3 is neither a sample "
                                    "nor a frame of one");
}

static void
too_many_events_are_refused(void **state)
{
    struct cpprof__buffer text = {0};
    struct cpprof_error error = {0};
    enum cpprof_status status;
    int i;

    for (i = 0; i < 100; i++)
        cpprof__buffer_printf(&text, "a 1 1.0: 5 event%d: \n\n", i);
    assert_null(text_read(cpprof__read_perf_script, (char *)text.data, text.n,
                          &status, &error));
    assert_int_equal(status, CPPROF_LIMIT);
    assert_string_equal(error.text, "perf script: more than 64 events");
    cpprof__buffer_free(&text);
}

static void
text_cut_anywhere_is_read_or_refused(void **state)
{
    size_t n;

    for (n = 0; n < sizeof two_samples; n++) {
        struct cpprof_error error = {0};
        enum cpprof_status status;
        struct pprof_profile *p = text_read(cpprof__read_perf_script,
                                            two_samples, n, &status, &error);

        if (p)
            assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
        assert_true((status == CPPROF_BAD_DATA) == (error.text[0] != 0));
        pprof_free(p);
    }
}

/* ------------------------------------------------------------ writing ---- */

static void
profile_is_written_as_perf_prints_it(void **state)
{
    struct pprof_profile *p = read_it(two_samples);
    char *text = text_write(cpprof__write_perf_script, p, 1);

    assert_string_equal(text,
                        "my prog 10/11     0.000000:       1000 cpu-clock:u: \n"
                        "\t        ffff8001 sys_read ([kernel.kallsyms])\n"
                        "\t            1234 read (/lib/libc.so.6)\n"
                        "\t            5678 leaf (inlined)\n"
                        "\t            5678 middle (inlined)\n"
                        "\t            5678 main (/usr/bin/my prog)\n"
                        "\t               0 [unknown] ([unknown])\n"
                        "\n"
                        "my prog 10/12     0.000001:       1000 cpu-clock:u: \n"
                        "\t            5678 leaf (inlined)\n"
                        "\t            5678 middle (inlined)\n"
                        "\t            5678 main (/usr/bin/my prog)\n"
                        "\t            9abc [unknown] (/usr/bin/my prog)\n"
                        "\n");
    free(text);
    pprof_free(p);
}

static void
stacks_and_values_survive_the_round_trip(void **state)
{
    struct fixture f = {0};
    struct pprof_profile *p = NULL, *again;
    char *first, *second;

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/bin/pr og", "1234");
    fixture_stack(&f, "inner<middle<outer main", 30, "thread=a");
    fixture_stack(&f, "other main", -5, "tid=12 pid=3");
    fixture_stack(&f, "inner<middle<outer main", 12, NULL);
    fixture_stack(&f, "a;b(c)(d) main", INT64_MAX, NULL);
    fixture_stack(&f, "least main", INT64_MIN, NULL);
    fixture_stack(&f, "zero main", 0, NULL);
    fixture_strings(&f);
    assert_int_equal(pprof_read_data(f.bytes.data, f.bytes.n, NULL, &p, NULL),
                     CPPROF_OK);
    fixture_free(&f);
    first = text_write(cpprof__write_perf_script, p, 1);
    again = read_it(first);
    assert_string_equal(text_of(again, again->sample_types.at[1].type),
                        "cpu-clock");
    assert_string_equal(text_of(again, again->sample_types.at[1].unit),
                        "nanoseconds");
    assert_stacks(again, 1,
                  "main;outer;middle;inner 42\nmain;other -5\n"
                  "main;a:b(c)(d) 9223372036854775807\n"
                  "main;least -9223372036854775808\n");
    assert_int_equal(again->locations.n, 5);
    second = text_write(cpprof__write_perf_script, again, 1);
    assert_string_equal(second, first);
    free(first);
    free(second);
    pprof_free(p);
    pprof_free(again);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_of_all_fields_are_parsed),
        cmocka_unit_test(other_lines_are_no_headers),
        cmocka_unit_test(frames_are_parsed),
        cmocka_unit_test(samples_become_a_profile),
        cmocka_unit_test(process_becomes_labels),
        cmocka_unit_test(files_become_mappings_the_program_first),
        cmocka_unit_test(every_event_is_a_sample_type),
        cmocka_unit_test(call_chains_may_be_missing),
        cmocka_unit_test(source_lines_belong_to_their_frames),
        cmocka_unit_test(other_text_is_not_recognized),
        cmocka_unit_test(malformed_line_is_told_by_its_number),
        cmocka_unit_test(too_many_events_are_refused),
        cmocka_unit_test(text_cut_anywhere_is_read_or_refused),
        cmocka_unit_test(profile_is_written_as_perf_prints_it),
        cmocka_unit_test(stacks_and_values_survive_the_round_trip),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
