/* SPDX-License-Identifier: MIT */
/* Code made at run time: /tmp/perf-PID.map, as JIT compilers write it. */
#include "symbol_fixture.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static char map_path[64];

static int
name_map(void **state)
{
    snprintf(map_path, sizeof map_path, "/tmp/perf-%d.map", getpid());
    return 0;
}

static int
remove_map(void **state)
{
    unlink(map_path);
    return 0;
}

static struct cpprof__symbolizer *
make_for(int pid)
{
    struct cpprof__symbolizer_options options = {.pid = pid};

    struct cpprof__symbolizer *s = cpprof__symbolizer.make(&options);

    assert_non_null(s);
    return s;
}

/* What pc is called, or "none"; the symbolizer is asked without a mapping. */
static const char *
name_at(struct cpprof__symbolizer *s, uint64_t pc)
{
    struct cpprof__frame frame;

    if (!cpprof__symbolizer.resolve(s, SIZE_MAX, pc, &frame, 1))
        return "none";
    assert_null(frame.file);
    assert_int_equal(frame.line, 0);
    return frame.name;
}

static void
lines_of_the_map_name_their_code(void **state)
{
    struct cpprof__symbolizer *s = make_for(0);

    write_file(map_path, "7f0000001000 100 Function:~work /app/main.js:12\n"
                         "0x7f0000002000 0x10 with prefix\n"
                         "7F00000030A0 A upper\r\n"
                         "7f0000004000 20 _ZN3app4workEi\n");
    assert_string_equal(name_at(s, 0x7f0000000fff), "none");
    assert_string_equal(name_at(s, 0x7f0000001000),
                        "Function:~work /app/main.js:12");
    assert_string_equal(name_at(s, 0x7f00000010ff),
                        "Function:~work /app/main.js:12");
    assert_string_equal(name_at(s, 0x7f0000001100), "none");
    assert_string_equal(name_at(s, 0x7f000000200f), "with prefix");
    assert_string_equal(name_at(s, 0x7f00000030a9), "upper");
    assert_string_equal(name_at(s, 0x7f0000004010), "app::work(int)");
    cpprof__symbolizer.free(s);
}

static void
later_line_wins_over_an_earlier_one(void **state)
{
    struct cpprof__symbolizer *s = make_for(0);

    write_file(map_path, "1000 100 old\n"
                         "1040 20 new\n"
                         "1050 80 newest\n");
    assert_string_equal(name_at(s, 0x103f), "old");
    assert_string_equal(name_at(s, 0x104f), "new");
    assert_string_equal(name_at(s, 0x1050), "newest");
    assert_string_equal(name_at(s, 0x10cf), "newest");
    assert_string_equal(name_at(s, 0x10d0), "old");
    cpprof__symbolizer.free(s);
}

/* Each name stands where it begins, as it is written. */
static void
check_as_written(const char *map)
{
    struct cpprof__symbolizer *s = make_for(0);
    char line[256];
    int n_line;

    write_file(map_path, map);
    for (; sscanf(map, "%255[^\n]\n%n", line, &n_line) == 1; map += n_line) {
        int at = 0;
        unsigned long start;

        assert_int_equal(sscanf(line, "%lx %*x %n", &start, &at), 1);
        assert_string_equal(name_at(s, start), line + at);
    }
    cpprof__symbolizer.free(s);
}

/* As the runtime's perfmap.cpp writes them: address with leading zeros. */
static void
names_of_dotnet_are_as_they_are_written(void **state)
{
    check_as_written(
        "00007F2B4C0A1B40 3b void [app] Program::Main(string[])[Tier0]\n"
        "00007F2B4C0A1C00 120 instance int32 [System.Private.CoreLib] "
        "System.Collections.Generic.List`1[System.__Canon]::get_Item(int32)"
        "[Tier1]\n"
        "00007F2B4C0A1D80 10 stub<1> GenerateLookupStub<GenerateLookupStub>\n"
        "00007F2B4C0A1DA0 20 void [app] Program+<>c__DisplayClass0_0::<Main>"
        "b__0()[OptimizedTier1]\n");
}

/* As lj_trace.c writes them, if built so; traces are flushed, and others are
 * put where they were. */
static void
names_of_luajit_are_as_they_are_written(void **state)
{
    struct cpprof__symbolizer *s = make_for(0);

    check_as_written("7f2b4bff0000 1a5 TRACE_1::@app/hot.lua:1\n"
                     "7f2b4bfeff00 9c TRACE_2::/srv/@x/lib.part.0:12\n");
    write_file(map_path, "2000 200 TRACE_3::c.lua:3\n"
                         "1000 400 TRACE_1::a.lua:1\n"
                         "1100 100 TRACE_2::b.lua:2\n"
                         "1180 f00 TRACE_1::d.lua:4\n"
                         "0f00 110 TRACE_2::e.lua:5\n");
    assert_string_equal(name_at(s, 0x100f), "TRACE_2::e.lua:5");
    assert_string_equal(name_at(s, 0x1010), "TRACE_1::a.lua:1");
    assert_string_equal(name_at(s, 0x117f), "TRACE_2::b.lua:2");
    assert_string_equal(name_at(s, 0x1180), "TRACE_1::d.lua:4");
    assert_string_equal(name_at(s, 0x207f), "TRACE_1::d.lua:4");
    assert_string_equal(name_at(s, 0x2080), "TRACE_3::c.lua:3");
    cpprof__symbolizer.free(s);
}

/* Several looks, since it is not looked at again at once. */
static const char *
name_at_soon(struct cpprof__symbolizer *s, uint64_t pc, const char *wanted)
{
    const char *name = name_at(s, pc);
    int i;

    for (i = 0; i < 100 && strcmp(name, wanted) != 0; i++) {
        usleep(20000);
        name = name_at(s, pc);
    }
    return name;
}

static void
map_that_grew_is_read_again(void **state)
{
    struct cpprof__symbolizer *s = make_for(0);
    FILE *file;

    write_file(map_path, "1000 100 first\n");
    assert_string_equal(name_at(s, 0x1000), "first");
    assert_string_equal(name_at(s, 0x2000), "none");
    file = fopen(map_path, "a");
    fputs("2000 100 second\n1000 100 third\n", file);
    fclose(file);
    assert_string_equal(name_at_soon(s, 0x2000, "second"), "second");
    assert_string_equal(name_at(s, 0x1000), "third");
    cpprof__symbolizer.free(s);
}

static void
malformed_lines_are_skipped(void **state)
{
    struct cpprof__symbolizer *s = make_for(0);

    write_file(map_path, "\n"
                         " \n"
                         "1000\n"
                         "1000 100\n"
                         "1000 100 \n"
                         "xyz 100 not hex\n"
                         "1000 1g0 not hex\n"
                         "11112222333344445 10 too long\n"
                         "fffffffffffffff0 100 wraps\n"
                         "5000 0 empty\n"
                         "2000 100 good\n"
                         "3000 100 cut off");
    assert_string_equal(name_at(s, 0x1000), "none");
    assert_string_equal(name_at(s, 0xfffffffffffffff8), "none");
    assert_string_equal(name_at(s, 0x5000), "none");
    assert_string_equal(name_at(s, 0x2000), "good");
    assert_string_equal(name_at(s, 0x3000), "none"); /* still being written */
    cpprof__symbolizer.free(s);
}

static void
what_is_no_plain_file_is_not_read(void **state)
{
    struct cpprof__symbolizer *s = make_for(0);

    assert_int_equal(mkfifo(map_path, 0600), 0);
    assert_string_equal(name_at(s, 0x1000), "none");
    assert_int_equal(unlink(map_path), 0);
    assert_int_equal(symlink("/etc/passwd", map_path), 0);
    assert_string_equal(name_at_soon(s, 0x1000, "x"), "none");
    cpprof__symbolizer.free(s);
}

static void
file_of_another_user_is_not_read(void **state)
{
    struct cpprof__symbolizer *s = make_for(0);

    write_file(map_path, "1000 100 planted\n");
    if (chown(map_path, 65534, 65534) != 0) {
        say_skipped("root");
        cpprof__symbolizer.free(s);
        return;
    }
    assert_string_equal(name_at(s, 0x1000), "none");
    cpprof__symbolizer.free(s);
}

static void
random_bytes_are_no_harm(void **state)
{
    unsigned round;

    srand(2);
    for (round = 0; round < 200; round++) {
        static const char alphabet[] = "0123456789abcdefx \n\n\r\xff\x01";
        struct cpprof__symbolizer *s = make_for(0);
        FILE *file = fopen(map_path, "w");
        int i;

        for (i = 0; i < 4000; i++)
            fputc(alphabet[(size_t)rand() % (sizeof alphabet - 1)], file);
        fclose(file);
        for (i = 0; i < 4096; i += 7) {
            const char *name = name_at(s, (uint64_t)i);

            assert_null(strchr(name, '\x01'));
            assert_null(strchr(name, '\xff'));
        }
        cpprof__symbolizer.free(s);
    }
}

/* The map of another process, by its number there and here. */
static void
map_of_another_process_is_found(void **state)
{
    struct cpprof__symbolizer *s;
    char path[64];
    pid_t child = fork();

    if (child == 0) {
        pause();
        _exit(0);
    }
    snprintf(path, sizeof path, "/tmp/perf-%d.map", child);
    write_file(path, "1000 100 theirs\n");
    s = make_for(child);
    assert_string_equal(name_at(s, 0x1000), "theirs");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    unlink(path);
    cpprof__symbolizer.free(s);
}

static void
map_of_a_process_that_ended_is_found(void **state)
{
    struct cpprof__symbolizer *s;
    char path[64];
    pid_t child = fork();

    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    snprintf(path, sizeof path, "/tmp/perf-%d.map", child);
    write_file(path, "1000 100 theirs\n");
    s = make_for(child);
    assert_string_equal(name_at(s, 0x1000), "theirs");
    unlink(path);
    cpprof__symbolizer.free(s);
}

static void
mapping_without_a_file_is_looked_up_too(void **state)
{
    struct cpprof__symbolizer *s = make_for(0);
    struct cpprof__symbolizer_mapping mapping = {0x1000,       0x2000, 0,
                                                 "/memfd:jit", "",     0};
    struct cpprof__frame frame;
    size_t index = cpprof__symbolizer.add_mapping(s, &mapping);

    write_file(map_path, "1000 100 made\n");
    assert_int_equal(cpprof__symbolizer.resolve(s, index, 0x1010, &frame, 1),
                     1);
    assert_string_equal(frame.name, "made");
    assert_string_equal(frame.system_name, "made");
    assert_false(cpprof__symbolizer.knows_inlines(s, index));
    cpprof__symbolizer.free(s);
}

static const char *
name_by(struct cpprof__symbolizer *s, uint64_t pc, uint64_t n_bytes)
{
    cpprof__symbolizer.turn_to_code(s, n_bytes);
    return name_at(s, pc);
}

/* Lines of 11 bytes. */
static void
code_is_called_as_it_was_when_it_ran(void **state)
{
    struct cpprof__symbolizer *s = make_for(0);

    write_file(map_path, "1000 20 aa\n"
                         "1010 40 bb\n"
                         "1000 18 cc\n"
                         "2000 10 dd\n"
                         "1018 08 ee\n");
    assert_string_equal(name_by(s, 0x1000, 11), "aa");
    assert_string_equal(name_by(s, 0x1018, 11), "aa");
    assert_string_equal(name_by(s, 0x1018, 20), "aa");
    assert_string_equal(name_by(s, 0x1018, 22), "bb");
    assert_string_equal(name_by(s, 0x1000, 31), "aa");
    assert_string_equal(name_by(s, 0x1000, 33), "cc");
    assert_string_equal(name_by(s, 0x1018, 44), "bb");
    assert_string_equal(name_by(s, 0x1018, 55), "ee");
    assert_string_equal(name_by(s, 0x1020, 55), "bb");
    assert_string_equal(name_by(s, 0x104f, UINT64_MAX), "bb");
    assert_string_equal(name_by(s, 0x1050, UINT64_MAX), "none");
    cpprof__symbolizer.free(s);
}

/* Compilers may write late. */
static void
code_without_a_name_as_yet_has_the_next_one(void **state)
{
    struct cpprof__symbolizer *s = make_for(0);

    write_file(map_path, "1000 20 aa\n"
                         "2000 40 bb\n"
                         "2000 18 cc\n");
    assert_string_equal(name_by(s, 0x2000, 11), "bb");
    assert_string_equal(name_by(s, 0x1000, 0), "aa");
    assert_string_equal(name_by(s, 0x3000, 0), "none");
    cpprof__symbolizer.free(s);
}

/* Any overlaps, held against a search of all lines from the end. */
static void
any_moment_has_the_last_line_before_it(void **state)
{
    enum { LINES = 400 };
    struct cpprof__symbolizer *s = make_for(0);
    unsigned starts[LINES], sizes[LINES], i, k;
    FILE *file = fopen(map_path, "w");

    assert_non_null(file);
    srand(7);
    for (i = 0; i < LINES; i++) {
        starts[i] = 0x1000 + (unsigned)rand() % 200;
        sizes[i] = 1 + (unsigned)rand() % 60;
        fprintf(file, "%04x %02x %04u\n", starts[i], sizes[i], i);
    }
    assert_int_equal(fclose(file), 0);
    for (k = 0; k < 3000; k++) {
        unsigned pc = 0x1000 + (unsigned)rand() % 260;
        unsigned n = (unsigned)rand() % (LINES + 1);
        char wanted[16] = "none";

        for (i = n; i < LINES && !strcmp(wanted, "none"); i++)
            if (pc - starts[i] < sizes[i])
                snprintf(wanted, sizeof wanted, "%04u", i);
        for (i = 0; i < n; i++)
            if (pc - starts[i] < sizes[i])
                snprintf(wanted, sizeof wanted, "%04u", i);
        assert_string_equal(name_by(s, pc, n * 13), wanted);
    }
    cpprof__symbolizer.free(s);
}

static unsigned n_told;
static char told[512];

static void
note_told(void *ctx, const char *text)
{
    (void)ctx;
    n_told++;
    snprintf(told, sizeof told, "%s", text);
}

static void
map_of_enormous_size_is_read_in_part_and_told_once(void **state)
{
    const struct cpprof__symbolizer_options options = {
        .fetcher = {.warn = note_told}};
    struct cpprof__symbolizer *s = cpprof__symbolizer.make(&options);
    char wanted[256];

    write_file(map_path, "1000 20 first\n");
    assert_int_equal(truncate(map_path, 300 << 20), 0);
    n_told = 0;
    assert_string_equal(name_at(s, 0x1000), "first");
    assert_string_equal(name_at(s, 0x2000), "none");
    assert_int_equal(truncate(map_path, 301 << 20), 0);
    usleep(60000);
    assert_string_equal(name_at(s, 0x1001), "first");
    snprintf(wanted, sizeof wanted,
             "%s: only the first 64 MB and 2097152 functions are read; code "
             "made later may have no names or old ones",
             map_path);
    assert_int_equal(n_told, 1);
    assert_string_equal(told, wanted);
    cpprof__symbolizer.free(s);
}

int
main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, name_map, remove_map)
    static const struct CMUnitTest tests[] = {
        CASE(lines_of_the_map_name_their_code),
        CASE(later_line_wins_over_an_earlier_one),
        CASE(names_of_dotnet_are_as_they_are_written),
        CASE(names_of_luajit_are_as_they_are_written),
        CASE(map_that_grew_is_read_again),
        CASE(malformed_lines_are_skipped),
        CASE(what_is_no_plain_file_is_not_read),
        CASE(file_of_another_user_is_not_read),
        CASE(random_bytes_are_no_harm),
        CASE(map_of_another_process_is_found),
        CASE(map_of_a_process_that_ended_is_found),
        CASE(mapping_without_a_file_is_looked_up_too),
        CASE(code_is_called_as_it_was_when_it_ran),
        CASE(code_without_a_name_as_yet_has_the_next_one),
        CASE(any_moment_has_the_last_line_before_it),
        CASE(map_of_enormous_size_is_read_in_part_and_told_once),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
