/* SPDX-License-Identifier: MIT */
/* The symbolizer over what compilers write: versions, packing, splitting. */
#include "symbol_fixture.h"

#include <elfutils/version.h>

static int
make_sources(void **state)
{
    if (make_folder(state))
        return -1;
    write_file("inline.c", INLINE_SOURCE);
    return 0;
}

/* Compile inline.c to a library of its own for each test, since the loader
 * takes two of one name for one. */
static void
check_compiled(const char *compiler, const char *flags, const char *name)
{
    NEED(compiler);
    if (!run("%s -O2 -fPIC -shared %s -o %s %s/inline.c 2>%s.log", compiler,
             flags, name, folder, name)) {
        say_skipped(flags);
        return;
    }
    check_library(name, check_inlined);
}

static void
dwarf_4_of_gcc_gives_inlined_frames_and_lines(void **state)
{
    check_compiled("gcc", "-gdwarf-4", "gcc4.so");
}

static void
dwarf_5_of_gcc_gives_inlined_frames_and_lines(void **state)
{
    check_compiled("gcc", "-gdwarf-5", "gcc5.so");
}

/* clang writes no .debug_aranges. */
static void
dwarf_4_of_clang_without_aranges_is_read(void **state)
{
    check_compiled(find_clang(false), "-gdwarf-4", "clang4.so");
}

static void
dwarf_5_of_clang_without_aranges_is_read(void **state)
{
    check_compiled(find_clang(false), "-gdwarf-5", "clang5.so");
}

static void
functions_in_sections_of_their_own_are_read(void **state)
{
    check_compiled("gcc", "-g -ffunction-sections -Wl,--gc-sections",
                   "sections.so");
}

static void
packed_sections_are_unpacked(void **state)
{
    check_compiled("gcc", "-g -gz=zlib", "zlib.so");
}

static void
packed_sections_of_the_old_kind_are_unpacked(void **state)
{
    check_compiled("gcc", "-g -gz=zlib-gnu", "zlib-gnu.so");
}

static void
split_dwarf_5_is_found_beside_the_library(void **state)
{
    check_compiled("gcc", "-gdwarf-5 -gsplit-dwarf", "split5.so");
}

static void
split_dwarf_4_is_found_beside_the_library(void **state)
{
    check_compiled("gcc", "-gdwarf-4 -gsplit-dwarf", "split4.so");
}

static void
split_dwarf_of_clang_is_found(void **state)
{
    check_compiled(find_clang(false), "-gdwarf-5 -gsplit-dwarf",
                   "split-clang.so");
}

/* The library is used from where it was moved to; its .dwo lies beside it. */
static void
split_dwarf_that_moved_along_is_found(void **state)
{
    assert_true(run("mkdir old new && cd old && cp ../inline.c . && "
                    "gcc -O2 -fPIC -g -gsplit-dwarf -c inline.c && "
                    "gcc -shared -o moved.so inline.o && "
                    "sed -i s/x/y/ inline.c && mv moved.so *.dwo ../new"));
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    load(&l, "new/moved.so", "at_leaf");
    symbolize(&l, false);
    assert_int_equal(frames_at(&l, "at_leaf", frames), 3);
    check_frame(&frames[0], "leaf", "inline.c", 4, 2);
    unload(&l);
}

static char told[3 * PATH_MAX];

static void
note_told(void *ctx, const char *text)
{
    assert_string_equal(told, ""); /* once */
    snprintf(told, sizeof told, "%s", text);
}

/* Ask for two addresses of a library whose split unit is not there. */
static void
check_lost(const char *name, const char *wanted)
{
    const struct cpprof__symbolizer_options options = {
        .fetcher = {.warn = note_told}};
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    *told = 0;
    load(&l, name, "at_leaf");
    l.symbolizer = cpprof__symbolizer.make(&options);
    l.index = cpprof__symbolizer.add_mapping(l.symbolizer, &l.mapping);
    assert_int_equal(frames_at(&l, "at_leaf", frames), 1);
    check_frame(&frames[0], "outer", "inline.c", 4, 0);
    frames_at(&l, "at_hidden", frames);
    check_frame(&frames[0], "hidden", "inline.c", 17, 0);
    assert_string_equal(told, wanted);
    assert_false(cpprof__symbolizer.knows_inlines(l.symbolizer, l.index));
    unload(&l);
}

static void
missing_split_file_leaves_function_and_line_and_is_told(void **state)
{
    char wanted[2 * PATH_MAX];

    assert_true(run("gcc -O2 -fPIC -g -gsplit-dwarf -c inline.c -o lost.o && "
                    "gcc -shared -o lost.so lost.o && rm lost.dwo"));
    snprintf(wanted, sizeof wanted,
             "%s/lost.so: inlined functions are missing: lost.dwo is not "
             "there; put the .dwo files beside it",
             folder);
    check_lost("lost.so", wanted);
}

/* libdw 0.191 reads packages; older ones do not. */
static void
package_of_split_files_is_read_or_told(void **state)
{
    char wanted[3 * PATH_MAX];

    NEED("dwp");
    assert_true(run("gcc -O2 -fPIC -gdwarf-4 -gsplit-dwarf -c inline.c "
                    "-o package.o && gcc -shared -o package.so package.o && "
                    "dwp -e package.so -o package.so.dwp && rm package.dwo"));
    if (_ELFUTILS_PREREQ(0, 191)) {
        check_library("package.so", check_inlined);
        return;
    }
    snprintf(wanted, sizeof wanted,
             "%s/package.so: inlined functions are missing: package.dwo is "
             "not there, and %s/package.so.dwp is not read; put the .dwo "
             "files beside it",
             folder, folder);
    check_lost("package.so", wanted);
}

/* There are no linkage names, no declarations, and functions without inlined
 * calls have no DIE at all. */
static void
line_tables_alone_give_inlined_frames(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    NEED(find_clang(false));
    assert_true(run("%s -O2 -fPIC -shared -gline-tables-only -o gmlt.so "
                    "%s/inline.c",
                    find_clang(false), folder));
    load(&l, "gmlt.so", "at_leaf");
    symbolize(&l, false);
    assert_int_equal(frames_at(&l, "at_leaf", frames), 3);
    check_frame(&frames[0], "leaf", "inline.c", 4, 0);
    check_frame(&frames[2], "outer", "inline.c", 13, 0);
    assert_int_equal(frames_at(&l, "at_hidden", frames), 1);
    check_frame(&frames[0], "hidden", "inline.c", 17, 0);
    unload(&l);
}

static void
relative_directories_are_made_absolute(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    assert_true(run("mkdir -p build && cd build && gcc -O2 -fPIC -shared -g "
                    "-o ../relative.so ../inline.c"));
    load(&l, "relative.so", "at_leaf");
    symbolize(&l, false);
    assert_int_equal(frames_at(&l, "at_leaf", frames), 3);
    assert_ptr_equal(strstr(frames[0].file, folder), frames[0].file);
    assert_string_equal(frames[0].file + strlen(folder), "/build/../inline.c");
    unload(&l);
}

/* GNU C's functions in functions, which stand inside of others in DWARF too. */
static void
function_inside_of_a_function_is_found(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    write_file(
        "nested.c",
        "int nested(int x)\n"
        "{\n"
        "    __attribute__((noinline)) int inner(int y)\n"
        "    {\n"
        "        __asm__ volatile(\".globl at_inner\\nat_inner: nop\");\n"
        "        return x + y;\n"
        "    }\n"
        "    return inner(x) + 1;\n"
        "}\n");
    assert_true(run("gcc -O2 -fPIC -shared -g -o nested.so nested.c"));
    load(&l, "nested.so", "at_inner");
    symbolize(&l, false);
    assert_int_equal(frames_at(&l, "at_inner", frames), 1);
    check_frame(&frames[0], "inner", "nested.c", 5, 3);
    unload(&l);
}

/* All copies of a function add up under its name; the copy stays known. */
static void
cold_part_has_the_name_of_its_function(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    write_file("cold.c", "void abort(void);\n"
                         "int warm(int x)\n"
                         "{\n"
                         "    if (x > 100)\n"
                         "        abort();\n"
                         "    return x + 1;\n"
                         "}\n");
    assert_true(run("gcc -O2 -fPIC -shared -g -o cold.so cold.c"));
    load(&l, "cold.so", "warm");
    symbolize(&l, false);
    assert_int_equal(
        frames_of(&l, local_address(&l, "cold.so", "warm.cold"), frames), 1);
    assert_string_equal(frames[0].name, "warm");
    assert_string_equal(frames[0].system_name, "warm.cold");
    assert_int_equal(frames[0].start_line, 2);
    unload(&l);
}

/* As a library calls its own: the name that others use goes before it. */
static void
internal_name_gives_way_to_a_plainer_alias(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    write_file("alias.c",
               "int __work(int x)\n"
               "{\n"
               "    __asm__ volatile(\".globl at_work\\nat_work: nop\");\n"
               "    return x + 1;\n"
               "}\n"
               "int work(int x) __attribute__((weak, alias(\"__work\")));\n");
    assert_true(run("gcc -O2 -fPIC -shared -g -o alias.so alias.c"));
    load(&l, "alias.so", "at_work");
    symbolize(&l, false);
    assert_int_equal(frames_at(&l, "at_work", frames), 1);
    check_frame(&frames[0], "work", "alias.c", 3, 1);
    assert_string_equal(frames[0].system_name, "work");
    unload(&l);
}

/* A unit has one range at most, and a call no place. */
static void
strict_dwarf_2_names_functions(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    assert_true(run("gcc -O2 -fPIC -shared -gdwarf-2 -gstrict-dwarf "
                    "-ffunction-sections -o dwarf2.so %s/inline.c",
                    folder));
    load(&l, "dwarf2.so", "at_leaf");
    symbolize(&l, false);
    assert_int_equal(frames_at(&l, "at_leaf", frames), 3);
    check_frame(&frames[0], "leaf", "inline.c", 4, 2);
    check_frame(&frames[2], "outer", "none", 0, 11);
    assert_int_equal(frames_at(&l, "at_hidden", frames), 1);
    check_frame(&frames[0], "hidden", "inline.c", 17, 15);
    unload(&l);
}

static void
assembly_has_its_symbol_and_line(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    write_file("hand.S", ".text\n"
                         ".globl by_hand\n"
                         "by_hand:\n"
                         "    nop\n"
                         ".globl at_hand\n"
                         "at_hand:\n"
                         "    nop\n"
                         "    ret\n"
                         ".section .note.GNU-stack,\"\",%progbits\n");
    assert_true(run("gcc -shared -g -o hand.so hand.S"));
    load(&l, "hand.so", "by_hand");
    symbolize(&l, false);
    assert_int_equal(frames_at(&l, "by_hand", frames), 1);
    check_frame(&frames[0], "by_hand", "hand.S", 4, 0);
    assert_false(cpprof__symbolizer.knows_inlines(l.symbolizer, l.index));
    unload(&l);
}

static void
fewer_frames_than_there_are_end_with_the_function(void **state)
{
    struct cpprof__frame frames[2];
    struct loaded l;

    assert_true(run("gcc -O2 -fPIC -shared -g -o few.so inline.c"));
    load(&l, "few.so", "at_leaf");
    symbolize(&l, false);
    assert_int_equal(cpprof__symbolizer.resolve(l.symbolizer, l.index,
                                                address_of(&l, "at_leaf"),
                                                frames, 2),
                     2);
    check_frame(&frames[0], "leaf", "inline.c", 4, 2);
    check_frame(&frames[1], "outer", "inline.c", 13, 11);
    assert_int_equal(cpprof__symbolizer.resolve(l.symbolizer, l.index,
                                                address_of(&l, "at_leaf"),
                                                frames, 0),
                     0);
    unload(&l);
}

static void
functions_only_gives_no_lines_and_no_inlined_frames(void **state)
{
    struct loaded l;

    assert_true(run("gcc -O2 -fPIC -shared -g -o functions.so inline.c"));
    load(&l, "functions.so", "at_leaf");
    symbolize(&l, true);
    check_symbol_only(&l);
    unload(&l);
}

/* Addresses as they are in the file: an executable that is not moved. */
static void
executable_at_a_fixed_address_is_read(void **state)
{
    struct loaded l = {0};
    struct cpprof__frame frames[MOST_FRAMES];
    uint64_t address;

    assert_true(run("echo 'int entry(int); int main(int c, char **v) "
                    "{ return entry(c); }' > main.c && "
                    "gcc -O2 -g -no-pie -o fixed main.c inline.c"));
    address = local_address(&l, "fixed", "at_leaf");
    snprintf(l.path, sizeof l.path, "%s/fixed", folder);
    l.mapping = (struct cpprof__symbolizer_mapping){
        .start = address & ~(uint64_t)4095,
        .limit = (address & ~(uint64_t)4095) + 4096,
        .offset = (address & ~(uint64_t)4095) - 0x400000,
        .path = l.path,
        .build_id = ""};
    symbolize(&l, false);
    assert_int_equal(frames_of(&l, address, frames), 3);
    check_frame(&frames[0], "leaf", "inline.c", 4, 2);
    unload(&l);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(dwarf_4_of_gcc_gives_inlined_frames_and_lines),
        cmocka_unit_test(dwarf_5_of_gcc_gives_inlined_frames_and_lines),
        cmocka_unit_test(dwarf_4_of_clang_without_aranges_is_read),
        cmocka_unit_test(dwarf_5_of_clang_without_aranges_is_read),
        cmocka_unit_test(functions_in_sections_of_their_own_are_read),
        cmocka_unit_test(packed_sections_are_unpacked),
        cmocka_unit_test(packed_sections_of_the_old_kind_are_unpacked),
        cmocka_unit_test(split_dwarf_5_is_found_beside_the_library),
        cmocka_unit_test(split_dwarf_4_is_found_beside_the_library),
        cmocka_unit_test(split_dwarf_of_clang_is_found),
        cmocka_unit_test(split_dwarf_that_moved_along_is_found),
        cmocka_unit_test(
            missing_split_file_leaves_function_and_line_and_is_told),
        cmocka_unit_test(package_of_split_files_is_read_or_told),
        cmocka_unit_test(line_tables_alone_give_inlined_frames),
        cmocka_unit_test(relative_directories_are_made_absolute),
        cmocka_unit_test(function_inside_of_a_function_is_found),
        cmocka_unit_test(cold_part_has_the_name_of_its_function),
        cmocka_unit_test(internal_name_gives_way_to_a_plainer_alias),
        cmocka_unit_test(strict_dwarf_2_names_functions),
        cmocka_unit_test(assembly_has_its_symbol_and_line),
        cmocka_unit_test(fewer_frames_than_there_are_end_with_the_function),
        cmocka_unit_test(functions_only_gives_no_lines_and_no_inlined_frames),
        cmocka_unit_test(executable_at_a_fixed_address_is_read),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_sources, remove_folder);
}
