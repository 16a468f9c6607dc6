/* SPDX-License-Identifier: MIT */
/* Frames of scripts in the forms that are text: by name, file and line where
 * names stand, and left out where only addresses do. */
#include "heap_fixture.h"

#include "collect/contention/block_profile.h"
#include "collect/dump/dump.h"
#include "collect/wall/wall_counts.h"
#include "views.h"

static struct cpprof__scripts scripts;
static void *block;

static uint64_t
location(const char *name, const char *file, int64_t line)
{
    const struct cpprof__script_location script = {
        .mapping = "[lua]", .name = name, .file = file, .line = line};

    return cpprof__scripts_add(&scripts, &script);
}

static void
make_mixed(struct made *m)
{
    make(m);
    block = zeroed(CPPROF__SCRIPTS_BYTES);
    assert_true(cpprof__scripts_make(&scripts, block, NULL));
    m->tables.scripts = &scripts;
}

static void
unmake_mixed(struct made *m)
{
    unmake(m);
    munmap(block, CPPROF__SCRIPTS_BYTES);
}

/* ---- heap ------------------------------------------------------------- */

static void
add_mixed(struct made *m)
{
    add_samples(m,
                PCS(0x10110, 0x10310, location("sort", "list.lua", 12),
                    location("", "main.lua", 3), 0x10010),
                3, 1, 1024, 1);
    add_samples(m, PCS(0x10110, location("a\n1: b", "c\nd", 1)), 1, 1, 64, 1);
    add_samples(m, PCS(CPPROF__SCRIPT_NO_ROOM), 1, 1, 16, 1);
}

static void
heap_text_has_their_lines_and_no_address(void **state)
{
    struct made m;
    char *text, *end;

    (void)state;
    make_mixed(&m);
    add_mixed(&m);
    text = written_text(&m, 0);
    end = strstr(text, "\n# runtime.MemStats\n");
    assert_non_null(end);
    *end = 0;
    assert_string_equal(text, "heap profile: 3: 1104 [5: 3152] @ heap/1048576\n"
                              "1: 1024 [3: 3072] @ 0x10111 0x10311 0x10011\n"
                              "#\t0x10310\tgrow+0x10\t/src/a.c:16\n"
                              "#\t[lua]\tsort\t\tlist.lua:12\n"
                              "#\t[lua]\tmain.lua\tmain.lua:3\n"
                              "#\t0x10010\tmain+0x10\t/src/a.c:16\n"
                              "\n"
                              "1: 64 [1: 64] @ 0x10111\n"
                              "#\t[lua]\ta?1: b\tc?d:1\n"
                              "\n"
                              "1: 16 [1: 16] @ 0x4\n"
                              "#\t-\t[unknown]\t?:0\n"
                              "\n");
    free(text);
    unmake_mixed(&m);
}

/* Of each value of all samples. */
static void
sum_values(const struct pprof_profile *p, int64_t sums[4])
{
    size_t i, value;

    memset(sums, 0, 4 * sizeof *sums);
    assert_int_equal(pprof_sample_type_count(p), 4);
    for (i = 0; i < pprof_sample_count(p); i++)
        for (value = 0; value < 4; value++)
            sums[value] += sample_of(p, i).values[value];
}

static void
heap_text_reads_as_the_same_numbers(void **state)
{
    int64_t of_proto[4], of_text[4];
    struct pprof_profile *p;
    struct sink s = {0};
    struct made m;
    char *text;

    (void)state;
    make_mixed(&m);
    m.heap.head->rate = 1; /* nothing is scaled */
    add_mixed(&m);
    text = written_text(&m, 0);
    cpprof__buffer_append(&s.bytes, text, strlen(text));
    free(text);
    p = read_back(&s);
    sum_values(p, of_text);
    pprof_free(p);
    p = written(&m, NULL);
    sum_values(p, of_proto);
    pprof_free(p);
    assert_int_equal(of_text[2], of_proto[2]);
    assert_int_equal(of_text[3], of_proto[3]);
    assert_int_equal(of_proto[3], 1024 + 64 + 16);
    unmake_mixed(&m);
}

/* ---- rows ------------------------------------------------------------- */

static char *
terminated(struct sink *s)
{
    cpprof__buffer_append(&s->bytes, "", 1);
    assert_false(s->bytes.failed);
    return (char *)s->bytes.data;
}

static char *
rows_text(const struct made *m, const struct cpprof__records_form *of,
          int64_t a, int64_t b, uint32_t stack)
{
    const struct cpprof_profile_options options = {.size = sizeof options,
                                                   .debug = 1};
    struct cpprof__stack_record row = {{a, b}, stack, 0};
    struct cpprof__records_form form = *of;
    struct sink s = {0};

    form.source = &m->source;
    assert_int_equal(
        cpprof__records_write(&form, &row, 1, &options, sink_writer(&s), NULL),
        CPPROF_OK);
    return terminated(&s);
}

static void
block_text_has_their_lines_and_no_address(void **state)
{
    struct made m;
    char *text;

    (void)state;
    make_mixed(&m);
    text = rows_text(&m, &cpprof__block_form, 2, 700,
                     add_stack(&m, PCS(0x10310, location("f", "a.lua", 4))));
    assert_string_equal(text, "--- contention:\ncycles/second=1000000000\n"
                              "700 2 @ 0x10311\n"
                              "#\t0x10310\tgrow+0x10\t/src/a.c:16\n"
                              "#\t[lua]\tf\t\ta.lua:4\n"
                              "\n");
    free(text);
    unmake_mixed(&m);
}

static void
count_text_has_their_lines_and_no_address(void **state)
{
    static const struct cpprof__value_type type = {"goroutine", "count"};
    static const struct cpprof__records_form form = {
        .name = "goroutine",
        .types = &type,
        .n_types = 1,
        .period_type = {"goroutine", "count"},
        .period = 1};
    struct made m;
    char *text;

    (void)state;
    make_mixed(&m);
    text = rows_text(&m, &form, 3, 0,
                     add_stack(&m, PCS(location("f", "a.lua", 4), 0x10010)));
    assert_string_equal(text, "goroutine profile: total 3\n"
                              "3 @ 0x10011\n"
                              "#\t[lua]\tf\t\ta.lua:4\n"
                              "#\t0x10010\tmain+0x10\t/src/a.c:16\n"
                              "\n");
    free(text);
    unmake_mixed(&m);
}

/* ---- folded, and threads ---------------------------------------------- */

static void
folded_stacks_have_their_names(void **state)
{
    struct cpprof__wall_count row = {.n = 4, .ns = 40000000};
    const struct cpprof__wall_counts counts = {&row, 1, 1, 0, false};
    struct cpprof__wall_summary summary = {
        .options = {.size = sizeof summary.options,
                    .rate_hz = 100,
                    .flags = CPPROF_FLAG_COLLAPSED},
        .time_ns = TIME_NS};
    struct sink s = {0};
    struct made m;
    char *text;

    (void)state;
    make_mixed(&m);
    summary.source = &m.source;
    row.stack = add_stack(&m, PCS(0x10310, location("so;rt", "a.lua", 4),
                                  CPPROF__SCRIPT_NO_ROOM,
                                  location("", "main.lua", 1), 0x10010));
    assert_int_equal(
        cpprof__wall_write(&counts, &summary, sink_writer(&s), NULL),
        CPPROF_OK);
    text = terminated(&s);
    assert_string_equal(text, "main;main.lua;[unknown];so:rt;grow 4\n");
    free(text);
    unmake_mixed(&m);
}

/* The dump is of this process's tables. */
static void
thread_dump_has_their_locations(void **state)
{
    struct cpprof__dump_thread thread = {.tid = 7, .task = {.state = 'S'}};
    const struct cpprof__dump dump = {.threads = &thread, .n = 1, .caller = 1};
    struct cpprof__tables own;
    struct sink s = {0};
    struct made m;
    char *text;

    (void)state;
    make_mixed(&m);
    /* Made before, so that nobody makes them in this place. */
    assert_int_equal(cpprof__tables_make(NULL), CPPROF_OK);
    own = cpprof__tables;
    cpprof__tables = m.tables;
    thread.stack = add_stack(
        &m, PCS(location("f", "a.lua", 4), location("g\nh", "b\n.lua", 5)));
    assert_int_equal(cpprof__dump_write_text(&dump, CPPROF_SYMBOLIZE_NONE,
                                             sink_writer(&s), NULL),
                     CPPROF_OK);
    text = terminated(&s);
    assert_string_equal(text, "goroutine 7 [sleeping, name \"\"]:\n"
                              "f(...)\n\ta.lua:4 +0x0\n"
                              "g?h(...)\n\tb?.lua:5 +0x0\n"
                              "\n");
    free(text);
    cpprof__tables = own;
    unmake_mixed(&m);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heap_text_has_their_lines_and_no_address),
        cmocka_unit_test(heap_text_reads_as_the_same_numbers),
        cmocka_unit_test(block_text_has_their_lines_and_no_address),
        cmocka_unit_test(count_text_has_their_lines_and_no_address),
        cmocka_unit_test(folded_stacks_have_their_names),
        cmocka_unit_test(thread_dump_has_their_locations),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
