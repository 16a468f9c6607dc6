/* SPDX-License-Identifier: MIT */
/*
 * Debug information of which only a part is read, because it was said before
 * which addresses will be asked for. The answers are those of all of it, also
 * for an address that nobody spoke of.
 *
 * The library has a unit of one function first, then a large one, then two
 * small ones: their order in .debug_info is that of the linker's arguments.
 * Another one has a large table of lines between two small ones. A third has
 * symbols that lie within others, reach into them, or have no size.
 */
#include "symbol_fixture.h"

#include "symbol/elf/elf_file.h"
#include "symbol/elf/needed.h"
#include "symbol/resolve.h"

#define N_FUNCTIONS_MAX 5000

/* Functions of the library, with the addresses that nm lists. */
static struct function {
    uint64_t at;
    char name[64];
} functions[N_FUNCTIONS_MAX];
static size_t n_functions;

static const char large[] =
    "awk 'BEGIN { for (i = 0; i < 2200; i++) { n = sprintf(\"%04d\", i);"
    " print \"struct kind_\" n \" { int member_\" n \"; struct kind_\" n"
    " \" *next_\" n \"; };\\nint work_\" n \"(struct kind_\" n \" *p, int x)"
    " { int y = p->member_\" n \" + x; for (int z = 0; z < y; z++) y ^= z;"
    " return y; }\" } }' >large.c";

/* Each line of code is far from the one before, which takes three bytes. */
static const char far_lines[] =
    "awk 'BEGIN { print \".globl far\\n.type far, @function\\nfar:\";"
    " for (i = 0; i < 120000; i++) print \"nop\\n\\n\\n\\n\\n\\n\\n\\n\\n"
    "\\n\\n\\n\\n\\n\\n\\n\\n\\n\\n\\n\";"
    " print \"ret\\n.size far, . - far\" }' >far.s";

static bool
make_sources(void)
{
    write_file("first.c", "static inline __attribute__((always_inline)) int\n"
                          "inside(int x)\n"
                          "{\n    return x * 3;\n}\n"
                          "int first(int *p) { return inside(*p); }\n");
    write_file("shared.h", "struct shared { int a; };\n"
                           "int last(struct shared *s);\n");
    write_file("middle.c", "#include \"shared.h\"\n"
                           "int middle(struct shared *s);\n"
                           "int middle(struct shared *s)\n"
                           "{\n    return last(s) + 1;\n}\n");
    write_file("last.c", "#include \"shared.h\"\n"
                         "int last(struct shared *s) { return s->a; }\n");
    return run("%s", large) && run("%s", far_lines);
}

/* NAME.so, and its debug information packed apart; NAME_whole.so has it, as it
 * is. */
static bool
make_library(const char *name, const char *options)
{
    return run("gcc -fPIC -shared -g %s -Wl,--build-id=sha1 -o %s.so "
               "%s/first.c %s/large.c %s/middle.c %s/last.c",
               options, name, folder, folder, folder, folder) &&
           run("cp %s.so %s_whole.so", name, name) &&
           run("objcopy --only-keep-debug --compress-debug-sections=zlib "
               "%s.so %s.debug && objcopy --strip-debug "
               "--add-gnu-debuglink=%s.debug %s.so",
               name, name, name, name);
}

/* Code with many lines, packed and as it is. */
static bool
make_lines(void)
{
    return run("gcc -fPIC -shared -g -Wl,--build-id=sha1 -o loose.so "
               "%s/first.c %s/far.s %s/last.c && "
               "objcopy --compress-debug-sections=zlib loose.so lines.so",
               folder, folder, folder);
}

static void
list_functions(const char *name)
{
    FILE *list;
    unsigned long at;

    assert_true(
        run("nm %s.so | awk '$2 == \"T\" { print $1, $3 }' >list", name));
    list = fopen("list", "r");
    assert_non_null(list);
    for (n_functions = 0;
         n_functions < N_FUNCTIONS_MAX &&
         fscanf(list, "%lx %63s", &at, functions[n_functions].name) == 2;
         n_functions++)
        functions[n_functions].at = at;
    fclose(list);
    assert_in_range(n_functions, 3, N_FUNCTIONS_MAX);
}

static uint64_t
address_in(const char *function)
{
    size_t i;

    for (i = 0; i < n_functions; i++)
        if (!strcmp(functions[i].name, function))
            return functions[i].at;
    fail_msg("no function %s", function);
    return 0;
}

static int
make_libraries(void **state)
{
    return make_folder(state) || !make_sources() ||
           !make_library("plain", "-O0") ||
           !make_library("shared", "-O0 -flto=1") || !make_lines();
}

/* ---- what is unpacked -------------------------------------------------- */

/* Bytes of .debug_info once the file is open for such addresses; is_partial:
 * says the file that it is not all. */
static uint64_t
info_bytes(const char *file, uint64_t *addresses, size_t n, bool *is_partial)
{
    struct cpprof__wanted wanted = {.at = addresses, .n = n};
    struct cpprof__elf_file elf = {.wanted = &wanted};
    GElf_Shdr header;

    assert_true(cpprof__elf_open(&elf, file, "", CPPROF__ELF_DWARF));
    assert_non_null(elf.dwarf);
    assert_non_null(cpprof__elf_section(&elf, ".debug_info", &header));
    *is_partial = elf.is_partial;
    cpprof__elf_close(&elf);
    return header.sh_size;
}

static void
only_the_units_that_are_expected_are_read(void **state)
{
    uint64_t at, whole;
    bool is_partial;

    list_functions("plain");
    whole = info_bytes("plain.debug", NULL, 0, &is_partial);
    assert_false(is_partial);
    assert_in_range(whole, 300000, 10000000);
    at = address_in("first");
    assert_in_range(info_bytes("plain.debug", &at, 1, &is_partial), 100, 2000);
    assert_true(is_partial);
    assert_in_range(info_bytes("plain_whole.so", &at, 1, &is_partial), 100,
                    2000);
    assert_true(is_partial);
    at = address_in("last");
    assert_in_range(info_bytes("plain.debug", &at, 1, &is_partial), 100,
                    whole - 1);
    assert_true(is_partial);
}

static void
address_in_no_unit_needs_all_of_them(void **state)
{
    uint64_t at[2] = {1, address_in("first")};
    bool is_partial;

    info_bytes("plain.debug", at, 2, &is_partial);
    assert_false(is_partial);
}

static void
all_is_unpacked_where_no_section_says_what_is_needed(void **state)
{
    uint64_t at = address_in("first");
    bool is_partial;

    assert_true(run("objcopy --remove-section=.debug_aranges plain.debug "
                    "without.debug"));
    info_bytes("without.debug", &at, 1, &is_partial);
    assert_false(is_partial);
}

static void
tables_of_lines_are_unpacked_when_they_are_asked_for(void **state)
{
    struct cpprof__elf_file elf = {NULL}, loose = {NULL};
    struct cpprof__late_lines *lines = &elf.late_lines;
    GElf_Shdr header;
    const char *whole;
    uint64_t all;

    assert_true(cpprof__elf_open(&elf, "lines.so", "", CPPROF__ELF_DWARF));
    assert_true(cpprof__elf_open(&loose, "loose.so", "", CPPROF__ELF_DWARF));
    whole =
        elf_rawdata(cpprof__elf_section(&loose, ".debug_line", &header), NULL)
            ->d_buf;
    all = header.sh_size;
    assert_null(loose.late_lines.bytes);
    assert_non_null(lines->bytes);
    assert_int_equal(lines->n, 0);
    cpprof__lines_need(lines, 0);
    assert_in_range(lines->n, 100, all / 2);
    assert_memory_equal(lines->bytes, whole, lines->n);
    cpprof__lines_need(lines, all);
    assert_in_range(lines->n, 100, all / 2);
    cpprof__lines_need(lines, all - 100);
    assert_int_equal(lines->n, all);
    assert_memory_equal(lines->bytes, whole, all);
    cpprof__elf_close(&elf);
    cpprof__elf_close(&loose);
}

/* ---- what is answered -------------------------------------------------- */

struct pair {
    struct cpprof__symbolizer *whole, *part;
};

static struct cpprof__symbolizer *
open_library(const char *name)
{
    struct cpprof__symbolizer_options options = {.addresses = true};
    struct cpprof__symbolizer_mapping mapping = {.limit = UINT64_MAX,
                                                 .build_id = ""};
    struct cpprof__symbolizer *s = cpprof__symbolizer.make(&options);
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s.so", folder, name);
    mapping.path = path;
    assert_non_null(s);
    assert_int_equal(cpprof__symbolizer.add_mapping(s, &mapping), 0);
    return s;
}

static void
assert_same_text(const char *a, const char *b)
{
    assert_string_equal(a ? a : "none", b ? b : "none");
}

static void
check_address(const struct pair *pair, uint64_t at)
{
    struct cpprof__frame a[MOST_FRAMES], b[MOST_FRAMES];
    size_t n = cpprof__symbolizer.resolve(pair->whole, 0, at, a, MOST_FRAMES);
    size_t i;

    assert_int_equal(
        cpprof__symbolizer.resolve(pair->part, 0, at, b, MOST_FRAMES), n);
    assert_int_not_equal(n, 0);
    for (i = 0; i < n; i++) {
        assert_string_equal(a[i].name, b[i].name);
        assert_string_equal(a[i].system_name, b[i].system_name);
        assert_same_text(a[i].file, b[i].file);
        assert_int_equal(a[i].line, b[i].line);
        assert_int_equal(a[i].start_line, b[i].start_line);
        assert_int_equal(a[i].entry, b[i].entry);
    }
    assert_int_equal(cpprof__symbolizer.knows_inlines(pair->whole, 0),
                     cpprof__symbolizer.knows_inlines(pair->part, 0));
}

/* All functions, where `expected` was said to be asked for. */
static void
check_both(const char *name, const char *expected)
{
    struct pair pair = {open_library(name), open_library(name)};
    size_t i;

    list_functions(name);
    cpprof__symbolizer.expect(pair.part, 0, address_in(expected));
    check_address(&pair, address_in(expected));
    for (i = 0; i < n_functions; i++)
        if (functions[i].name[0] != '_')
            check_address(&pair, functions[i].at);
    cpprof__symbolizer.free(pair.whole);
    cpprof__symbolizer.free(pair.part);
}

static void
unexpected_address_gets_the_answer_of_the_whole(void **state)
{
    check_both("plain", "first");
    check_both("plain", "middle");
    check_both("plain", "last");
    check_both("plain_whole", "first");
    check_both("plain_whole", "middle");
    check_both("plain_whole", "last");
}

static void
lines_that_are_unpacked_late_are_those_of_the_whole(void **state)
{
    struct pair pair = {open_library("loose"), open_library("lines")};
    size_t i;

    list_functions("loose");
    check_address(&pair, address_in("first"));
    check_address(&pair, address_in("far") + 100000);
    for (i = 0; i < n_functions; i++)
        if (functions[i].name[0] != '_')
            check_address(&pair, functions[i].at);
    cpprof__symbolizer.free(pair.whole);
    cpprof__symbolizer.free(pair.part);
}

/* Link-time optimization leaves names and lines in the units of the sources,
 * and refers to them from the one that has the code. */
static void
unit_that_refers_to_others_is_read_with_all_of_them(void **state)
{
    check_both("shared", "first");
    check_both("shared", "last");
    check_both("shared_whole", "first");
    check_both("shared_whole", "last");
}

static void
inlined_function_of_a_part_is_named(void **state)
{
    struct cpprof__symbolizer *s = open_library("plain");
    struct cpprof__frame frames[MOST_FRAMES];
    uint64_t at;
    size_t n = 0;

    list_functions("plain");
    at = address_in("first");
    for (; n < 2 && at < address_in("first") + 64; at++) {
        cpprof__symbolizer.expect(s, 0, at);
        n = cpprof__symbolizer.resolve(s, 0, at, frames, MOST_FRAMES);
    }
    assert_int_equal(n, 2);
    check_frame(&frames[0], "inside", "first.c", 4, 2);
    assert_string_equal(frames[1].name, "first");
    cpprof__symbolizer.free(s);
}

/* A symbolizer is kept between profiles. */
static void
addresses_of_another_profile_are_no_reason_to_read_all(void **state)
{
    const char *const expected[] = {"first", "work_0007", "middle"};
    struct cpprof__symbolizer_options options = {.addresses = true};
    struct cpprof__symbolizer_mapping mapping = {.limit = UINT64_MAX};
    struct cpprof__module module = {0};
    struct cpprof__names names = {0};
    struct cpprof__frame frame = {0};
    char path[PATH_MAX];
    size_t i;

    list_functions("plain");
    snprintf(path, sizeof path, "%s/plain.so", folder);
    mapping.path = module.path = cpprof__strdup(path);
    mapping.build_id = "";
    for (i = 0; i < 3; i++) {
        cpprof__module_expect(&module, &options, &mapping,
                              address_in(expected[i]));
        assert_int_equal(cpprof__resolve(&module, &options, &names, &mapping,
                                         address_in(expected[i]), &frame, 1),
                         1);
        assert_string_equal(frame.name, expected[i]);
        assert_non_null(frame.file);
        assert_true(module.debug.is_partial);
    }
    assert_int_equal(cpprof__resolve(&module, &options, &names, &mapping,
                                     address_in("last"), &frame, 1),
                     1);
    assert_string_equal(frame.name, "last");
    assert_false(module.debug.is_partial);
    cpprof__module_close(&module);
    cpprof__names_free(&names);
}

/* ---- symbols ----------------------------------------------------------- */

static const char symbols_s[] =
    ".text\n"
    ".macro fn name, size\n"
    ".globl \\name\n.type \\name, @function\n"
    ".if \\size\n.size \\name, \\size\n.endif\n\\name:\n"
    ".endm\n"
    ".fill 16, 1, 0x90\n"
    "fn apart 32\nfn __apart 32\n.fill 32, 1, 0x90\n"
    "fn bare 0\n.fill 16, 1, 0x90\n"
    "fn outer 64\n.fill 16, 1, 0x90\n"
    "fn inner 16\n.fill 8, 1, 0x90\n"
    "fn bare_inside 0\n.fill 40, 1, 0x90\n"
    "fn reaches_out 32\n.fill 16, 1, 0x90\n"
    "fn next 48\n.fill 24, 1, 0x90\n"
    "fn reaches_into_gap 64\n.fill 24, 1, 0x90\n.fill 60, 1, 0x90\n"
    "fn last 16\n.fill 16, 1, 0x90\n";

/* What is said of an address when nothing, or only this one, was expected. */
static void
check_symbol(uint64_t at, uint64_t also)
{
    struct pair pair = {open_library("symbols"), open_library("symbols")};
    struct cpprof__frame a = {0}, b = {0};
    size_t n;

    cpprof__symbolizer.expect(pair.part, 0, at);
    n = cpprof__symbolizer.resolve(pair.whole, 0, at, &a, 1);
    assert_int_equal(cpprof__symbolizer.resolve(pair.part, 0, at, &b, 1), n);
    assert_same_text(a.name, b.name);
    assert_int_equal(a.entry, b.entry);
    assert_int_equal(a.limit, b.limit);
    assert_int_equal(a.is_stand_in, b.is_stand_in);
    n = cpprof__symbolizer.resolve(pair.whole, 0, also, &a, 1);
    assert_int_equal(cpprof__symbolizer.resolve(pair.part, 0, also, &b, 1), n);
    assert_same_text(a.name, b.name);
    assert_int_equal(a.entry, b.entry);
    assert_int_equal(a.limit, b.limit);
    cpprof__symbolizer.free(pair.whole);
    cpprof__symbolizer.free(pair.part);
}

static void
symbols_near_the_expected_address_say_what_all_of_them_say(void **state)
{
    uint64_t first, at;

    write_file("symbols.s", symbols_s);
    assert_true(
        run("gcc -shared -nostdlib -o symbols.so %s/symbols.s", folder));
    list_functions("symbols");
    first = address_in("apart") - 16;
    for (at = first; at < address_in("last") + 24; at++)
        check_symbol(at, first + (at * 37) % (address_in("last") - first));
}

/* ---- .debug_aranges ---------------------------------------------------- */

/* Two units at 0 and 0x100, with one range each, and a third without any. */
static const uint8_t aranges[] = {
    44, 0, 0, 0, 2, 0, 0, 0, 0,    0, 8, 0, 0, 0, 0, 0, /* unit 0 */
    0,  0, 1, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, /* 0x10000 */
    0,  0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0, /* end */
    44, 0, 0, 0, 2, 0, 0, 1, 0,    0, 8, 0, 0, 0, 0, 0, /* unit 0x100 */
    0,  0, 2, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, /* 0x20000 */
    0,  0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0, /* end */
    28, 0, 0, 0, 2, 0, 0, 3, 0,    0, 8, 0, 0, 0, 0, 0, /* unit 0x300 */
    0,  0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0, /* end */
};

static uint64_t
needed(const uint8_t *bytes, size_t n, uint64_t at)
{
    struct cpprof__needed found = {0};
    uint64_t n_bytes = UINT64_MAX;

    if (cpprof__needed_find(
            bytes, n, &(struct cpprof__wanted){.at = &at, .n = 1}, &found))
        n_bytes = found.n_bytes;
    cpprof__needed_free(&found);
    return n_bytes;
}

static void
units_of_expected_addresses_are_needed_and_no_others(void **state)
{
    uint64_t at[] = {0x10000, 0x1000f, 0x20008};
    struct cpprof__needed found = {0};

    assert_true(cpprof__needed_find(aranges, sizeof aranges,
                                    &(struct cpprof__wanted){.at = at, .n = 3},
                                    &found));
    assert_int_equal(found.n_bytes, 0x300);
    assert_int_equal(found.units.n, 2);
    assert_int_equal(found.units.at[0], 0);
    assert_int_equal(found.units.at[1], 0x100);
    cpprof__needed_free(&found);
    assert_true(cpprof__needed_find(
        aranges, sizeof aranges, &(struct cpprof__wanted){.at = at + 2, .n = 1},
        &found));
    assert_int_equal(found.units.n, 1);
    assert_int_equal(found.units.at[0], 0x100);
    cpprof__needed_free(&found);
}

/* The whole is not unpacked twice, first a part for the first table. */
static void
table_of_the_last_expected_unit_is_unpacked_with_the_first(void **state)
{
    struct cpprof__elf_file elf = {NULL};
    struct cpprof__late_lines *lines = &elf.late_lines;
    uint64_t all;

    assert_true(cpprof__elf_open(&elf, "lines.so", "", CPPROF__ELF_DWARF));
    all = lines->packed.n_unpacked;
    lines->expected = all / 2;
    cpprof__lines_need(lines, 0);
    assert_in_range(lines->n, all / 2, all * 3 / 4);
    cpprof__elf_close(&elf);
}

static void
unit_is_needed_up_to_the_next_one(void **state)
{
    const size_t n = sizeof aranges;

    assert_int_equal(needed(aranges, n, 0x10000), 0x100);
    assert_int_equal(needed(aranges, n, 0x1000f), 0x100);
    assert_int_equal(needed(aranges, n, 0x20008), 0x300);
    assert_int_equal(needed(aranges, n, 0xffff), UINT64_MAX);
    assert_int_equal(needed(aranges, n, 0x10010), UINT64_MAX);
    /* The last one that is listed may be followed by others. */
    assert_int_equal(needed(aranges, 96, 0x20008), UINT64_MAX);
}

static void
broken_section_needs_all(void **state)
{
    size_t n;

    for (n = 1; n < sizeof aranges; n++) {
        uint8_t *copy = malloc(n);

        assert_non_null(copy);
        memcpy(copy, aranges, n);
        assert_int_equal(needed(copy, n, 0x20000), UINT64_MAX);
        free(copy);
    }
}

/* ---- units ------------------------------------------------------------- */

/* At 0, 16, 40, 56 and 80; of versions 5, 4, 5, 4 in the 64-bit format, 5. */
static const uint8_t units[] = {
    12,   0,    0,    0,    5,   0,   1,    8,
    0x10, 0,    0,    0,    'a', 'a', 'a',  'a', /* */
    20,   0,    0,    0,    4,   0,   0x20, 0,
    0,    0,    8,    'b',  'b', 'b', 'b',  'b', /* */
    'b',  'b',  'b',  'b',  'b', 'b', 'b',  'b', /* */
    12,   0,    0,    0,    5,   0,   1,    8,
    0x30, 0,    0,    0,    'c', 'c', 'c',  'c', /* */
    0xff, 0xff, 0xff, 0xff, 12,  0,   0,    0,
    0,    0,    0,    0,    4,   0,   0x40, 0,   /* */
    0,    0,    0,    0,    0,   0,   8,    'd', /* */
    12,   0,    0,    0,    5,   0,   1,    8,
    0x50, 0,    0,    0,    'e', 'e', 'e',  'e', /* */
};

/* The units that begin at a and at b, of the first n bytes; n_bytes: the end of
 * the last. Their bytes must be exactly so many. */
static bool
pick(uint64_t a, uint64_t b, uint64_t n_bytes, size_t n,
     struct cpprof__picked *picked)
{
    uint64_t at[] = {a, b};
    struct cpprof__needed needed = {.n_bytes = n_bytes};
    uint8_t *copy = malloc(n + !n);
    bool is_picked;

    assert_non_null(copy);
    memcpy(copy, units, n);
    needed.units.at = at;
    needed.units.n = a == b ? 1 : 2;
    is_picked = cpprof__needed_pick(&needed, copy, n, picked);
    free(copy);
    return is_picked;
}

static void
needed_units_are_taken_out_of_the_others(void **state)
{
    struct cpprof__picked picked;

    assert_true(pick(0, 40, 56, sizeof units, &picked));
    assert_int_equal(picked.n_info, 24 + 16 + 16);
    assert_memory_equal(picked.info, units + 16, 24);
    assert_memory_equal((char *)picked.info + 24, units, 16);
    assert_memory_equal((char *)picked.info + 40, units + 40, 16);
    cpprof__free(picked.info);
    assert_true(pick(16, 56, 80, sizeof units, &picked));
    assert_int_equal(picked.n_info, 24 + 24);
    assert_memory_equal(picked.info, units + 16, 24);
    assert_memory_equal((char *)picked.info + 24, units + 56, 24);
    cpprof__free(picked.info);
}

static void
abbreviations_are_needed_up_to_those_of_another_unit(void **state)
{
    struct cpprof__picked picked;

    assert_true(pick(0, 0, 16, sizeof units, &picked));
    assert_int_equal(picked.n_abbrev, 0x20);
    cpprof__free(picked.info);
    assert_true(pick(0, 0, 16, 16, &picked));
    assert_int_equal(picked.n_abbrev, UINT64_MAX);
    cpprof__free(picked.info);
    assert_true(pick(0, 56, 80, sizeof units, &picked));
    assert_int_equal(picked.n_abbrev, 0x50);
    cpprof__free(picked.info);
    assert_true(pick(56, 80, 96, sizeof units, &picked));
    assert_int_equal(picked.n_abbrev, UINT64_MAX);
    cpprof__free(picked.info);
}

static void
broken_unit_is_not_taken(void **state)
{
    struct cpprof__picked picked;
    size_t n;

    assert_false(pick(0, 17, 80, sizeof units, &picked));
    assert_false(pick(0, 0, 15, sizeof units, &picked));
    assert_false(pick(0, 40, 60, sizeof units, &picked));
    for (n = 0; n < 80; n++)
        assert_false(pick(16, 56, 80, n, &picked));
    for (; n <= sizeof units; n++) {
        assert_true(pick(16, 56, 80, n, &picked));
        cpprof__free(picked.info);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_units_that_are_expected_are_read),
        cmocka_unit_test(address_in_no_unit_needs_all_of_them),
        cmocka_unit_test(all_is_unpacked_where_no_section_says_what_is_needed),
        cmocka_unit_test(tables_of_lines_are_unpacked_when_they_are_asked_for),
        cmocka_unit_test(lines_that_are_unpacked_late_are_those_of_the_whole),
        cmocka_unit_test(unexpected_address_gets_the_answer_of_the_whole),
        cmocka_unit_test(unit_that_refers_to_others_is_read_with_all_of_them),
        cmocka_unit_test(inlined_function_of_a_part_is_named),
        cmocka_unit_test(
            addresses_of_another_profile_are_no_reason_to_read_all),
        cmocka_unit_test(unit_is_needed_up_to_the_next_one),
        cmocka_unit_test(units_of_expected_addresses_are_needed_and_no_others),
        cmocka_unit_test(
            table_of_the_last_expected_unit_is_unpacked_with_the_first),
        cmocka_unit_test(broken_section_needs_all),
        cmocka_unit_test(needed_units_are_taken_out_of_the_others),
        cmocka_unit_test(abbreviations_are_needed_up_to_those_of_another_unit),
        cmocka_unit_test(broken_unit_is_not_taken),
        cmocka_unit_test(
            symbols_near_the_expected_address_say_what_all_of_them_say),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_libraries, remove_folder);
}
