/* SPDX-License-Identifier: MIT */
/* Code made at run time: jit-PID.dump, as perf's format has it. */
#include "symbol_fixture.h"

#include <sys/mman.h>
#include <sys/stat.h>

static char path[128];
static char told[4096];

/* A file as it is put together. */
static struct {
    char bytes[65536];
    size_t n;
} dump;

static void
put(const void *bytes, size_t n)
{
    assert_true(n <= sizeof dump.bytes - dump.n);
    memcpy(dump.bytes + dump.n, bytes, n);
    dump.n += n;
}

static void
put_u32(uint32_t v)
{
    put(&v, sizeof v);
}

static void
put_u64(uint64_t v)
{
    put(&v, sizeof v);
}

static void
put_header(uint32_t magic)
{
    dump.n = 0;
    put_u32(magic);
    put_u32(1);
    put_u32(40);
    put_u32(62);
    put_u32(0);
    put_u32((uint32_t)getpid());
    put_u64(1);
    put_u64(0);
}

static void
put_record(uint32_t kind, size_t n_body, uint64_t time)
{
    put_u32(kind);
    put_u32((uint32_t)(16 + n_body));
    put_u64(time);
}

static void
put_load(uint64_t time, uint64_t start, uint64_t n, uint64_t index,
         const char *name)
{
    put_record(0, 40 + strlen(name) + 1 + 8, time);
    put_u64(0);
    put_u64(start);
    put_u64(start);
    put_u64(n);
    put_u64(index);
    put(name, strlen(name) + 1);
    put("\x90\x90\x90\x90\x90\x90\x90\x90", 8); /* of the code */
}

static void
put_move(uint64_t time, uint64_t from, uint64_t to, uint64_t n, uint64_t index)
{
    put_record(1, 48, time);
    put_u64(0);
    put_u64(to);
    put_u64(from);
    put_u64(to);
    put_u64(n);
    put_u64(index);
}

static void
put_line(uint64_t address, uint32_t line, const char *file)
{
    put_u64(address);
    put_u32(line);
    put_u32(0);
    put(file, strlen(file) + 1);
}

/* Two lines of the function at start. */
static void
put_lines(uint64_t start, uint64_t shift, const char *file)
{
    put_record(2, 16 + 16 + strlen(file) + 1 + 16 + 2, 0);
    put_u64(start);
    put_u64(2);
    put_line(start + shift, 7, file);
    put_line(start + shift + 0x20, 9, "\xff");
}

static void
write_dump(void)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(dump.bytes, 1, dump.n, file), dump.n);
    assert_int_equal(fclose(file), 0);
}

static int
begin(void **state)
{
    snprintf(path, sizeof path, "%s/jit-%d.dump", folder, getpid());
    unlink(path);
    *told = 0;
    put_header(0x4a695444);
    return 0;
}

static void
note_told(void *ctx, const char *text)
{
    assert_string_equal(told, ""); /* once */
    snprintf(told, sizeof told, "%s", text);
}

static struct cpprof__symbolizer *
make_for(const char *mapped)
{
    const struct cpprof__symbolizer_options options = {
        .fetcher = {.warn = note_told}};
    const struct cpprof__symbolizer_mapping mapping = {0x100000, 0x101000, 0,
                                                       mapped,   "",       0};
    struct cpprof__symbolizer *s = cpprof__symbolizer.make(&options);

    assert_non_null(s);
    cpprof__symbolizer.add_mapping(s, &mapping);
    return s;
}

static void
check_at(struct cpprof__symbolizer *s, uint64_t pc, const char *name,
         const char *file, int64_t line)
{
    struct cpprof__frame frame = {.name = "none"};

    cpprof__symbolizer.resolve(s, SIZE_MAX, pc, &frame, 1);
    assert_string_equal(frame.name ? frame.name : "none", name);
    assert_string_equal(frame.file ? frame.file : "none", file);
    assert_int_equal(frame.line, line);
}

static void
code_that_was_loaded_has_its_name_and_lines(void **state)
{
    struct cpprof__symbolizer *s;

    put_lines(0x1000, 0, "/app/main.js");
    put_load(1, 0x1000, 0x100, 1, "JS:*work");
    put_load(2, 0x2000, 0x100, 2, "_ZN3app4workEi");
    write_dump();
    s = make_for(path);
    check_at(s, 0xfff, "none", "none", 0);
    check_at(s, 0x1000, "JS:*work", "/app/main.js", 7);
    check_at(s, 0x101f, "JS:*work", "/app/main.js", 7);
    check_at(s, 0x10ff, "JS:*work", "/app/main.js", 9);
    check_at(s, 0x1100, "none", "none", 0);
    check_at(s, 0x2050, "app::work(int)", "none", 0);
    assert_string_equal(told, "");
    cpprof__symbolizer.free(s);
}

/* Also where threads wrote their records in another order. */
static void
code_that_came_later_wins(void **state)
{
    struct cpprof__symbolizer *s;

    put_load(5, 0x1000, 0x100, 2, "new");
    put_load(3, 0x1000, 0x200, 1, "old");
    write_dump();
    s = make_for(path);
    check_at(s, 0x1000, "new", "none", 0);
    check_at(s, 0x1100, "old", "none", 0);
    cpprof__symbolizer.free(s);
}

static void
code_that_moved_keeps_its_name_and_lines(void **state)
{
    struct cpprof__symbolizer *s;

    put_lines(0x1000, 0, "a.js");
    put_load(1, 0x1000, 0x100, 7, "work");
    put_move(2, 0x1000, 0x3000, 0x100, 7);
    put_load(3, 0x1000, 0x100, 8, "other");
    put_move(4, 0x3000, 0x5000, 0x100, 7);
    put_move(5, 0x9000, 0x9900, 0x100, 99); /* of nothing */
    write_dump();
    s = make_for(path);
    check_at(s, 0x1000, "other", "none", 0);
    check_at(s, 0x3000, "work", "a.js", 7);
    check_at(s, 0x5020, "work", "a.js", 9);
    check_at(s, 0x9900, "none", "none", 0);
    cpprof__symbolizer.free(s);
}

/* V8 adds the size of the header that perf puts before the code, and node 20
 * writes names of files from freed memory. */
static void
lines_of_v8_are_where_the_code_is_or_none(void **state)
{
    struct cpprof__symbolizer *s;

    put_lines(0x1000, 0x40, "a.js");
    put_load(1, 0x1000, 0x100, 1, "good");
    put_lines(0x2000, 0x40, "\xbb\x1e\x04");
    put_load(2, 0x2000, 0x100, 2, "freed");
    write_dump();
    s = make_for(path);
    check_at(s, 0x1000, "good", "a.js", 7);
    check_at(s, 0x1020, "good", "a.js", 9);
    check_at(s, 0x2000, "freed", "none", 0);
    cpprof__symbolizer.free(s);
}

static void
file_of_another_process_is_not_read(void **state)
{
    char other[160];
    struct cpprof__symbolizer *s;

    put_load(1, 0x1000, 0x100, 1, "work");
    snprintf(path, sizeof path, "%s/jit-1.dump", folder);
    write_dump();
    s = make_for(path);
    check_at(s, 0x1000, "none", "none", 0);
    cpprof__symbolizer.free(s);
    unlink(path);

    begin(NULL);
    snprintf(other, sizeof other, "%s/aside", folder);
    assert_int_equal(symlink(other, path), 0);
    s = make_for(path);
    check_at(s, 0x1000, "none", "none", 0);
    cpprof__symbolizer.free(s);
    unlink(path);

    put_load(1, 0x1000, 0x100, 1, "work");
    write_dump();
    if (chown(path, 65534, 65534) != 0)
        return;
    s = make_for(path);
    check_at(s, 0x1000, "none", "none", 0);
    assert_string_equal(told, "");
    cpprof__symbolizer.free(s);
}

static void
file_of_another_byte_order_is_told(void **state)
{
    char wanted[256];
    struct cpprof__symbolizer *s;

    put_header(0x4454694a);
    put_load(1, 0x1000, 0x100, 1, "work");
    write_dump();
    s = make_for(path);
    check_at(s, 0x1000, "none", "none", 0);
    check_at(s, 0x1001, "none", "none", 0);
    snprintf(wanted, sizeof wanted,
             "%s: is no jitdump file of this machine; code made at run time "
             "may have no names",
             path);
    assert_string_equal(told, wanted);
    cpprof__symbolizer.free(s);
}

/* Cut at every byte, and every byte made the largest: the names before hold. */
static void
damaged_file_is_no_harm(void **state)
{
    size_t n, i;

    put_lines(0x1000, 0, "a.js");
    put_load(1, 0x1000, 0x100, 1, "first");
    put_move(2, 0x1000, 0x3000, 0x100, 1);
    put_load(3, 0x2000, 0x100, 2, "second");
    n = dump.n;
    for (i = 0; i < n; i++) {
        struct cpprof__symbolizer *s;
        char was = dump.bytes[i];

        *told = 0;
        dump.bytes[i] = (char)0xff;
        write_dump();
        s = make_for(path);
        if (i > n - 15) /* in the last name and its code */
            check_at(s, 0x3000, "first", "a.js", 7);
        else
            cpprof__symbolizer.resolve(s, SIZE_MAX, 0x3000,
                                       &(struct cpprof__frame){0}, 1);
        cpprof__symbolizer.free(s);
        dump.bytes[i] = was;

        *told = 0;
        dump.n = i;
        write_dump();
        s = make_for(path);
        check_at(s, 0x2000, "none", "none", 0);
        cpprof__symbolizer.free(s);
        dump.n = n;
    }
}

int
main(void)
{
#define CASE(f) cmocka_unit_test_setup(f, begin)
    static const struct CMUnitTest tests[] = {
        CASE(code_that_was_loaded_has_its_name_and_lines),
        CASE(code_that_came_later_wins),
        CASE(code_that_moved_keeps_its_name_and_lines),
        CASE(lines_of_v8_are_where_the_code_is_or_none),
        CASE(file_of_another_process_is_not_read),
        CASE(file_of_another_byte_order_is_told),
        CASE(damaged_file_is_no_harm),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
