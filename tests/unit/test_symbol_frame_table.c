/* SPDX-License-Identifier: MIT */
/*
 * Functions without a symbol: a stripped library and program, whose frame
 * tables say where functions begin. What is right is known from nm of the
 * same files before they were stripped.
 */
#include "symbol_fixture.h"

/* cold() is moved away from walk() and hidden(): only jumps lead there. */
#define COLD_SOURCE                                                            \
    "#include <stdlib.h>\n"                                                    \
    "#define QUIET __attribute__((noinline, noclone))\n"                       \
    "volatile int sink;\n"                                                     \
    "QUIET __attribute__((cold)) static void cold(int x)\n"                    \
    "{\n"                                                                      \
    "    sink = x;\n"                                                          \
    "}\n"                                                                      \
    "QUIET static int hidden(int x, int y)\n"                                  \
    "{\n"                                                                      \
    "    volatile char text[100];\n"                                           \
    "    for (int i = 0; i < x; i++) {\n"                                      \
    "        text[i % 100] = i;\n"                                             \
    "        if (__builtin_expect(i == y, 0)) {\n"                             \
    "            cold(i); sink = text[i % 50]; cold(x); abort();\n"            \
    "        }\n"                                                              \
    "    }\n"                                                                  \
    "    return text[y % 100];\n"                                              \
    "}\n"                                                                      \
    "int walk(int x)\n"                                                        \
    "{\n"                                                                      \
    "    if (__builtin_expect(x == 7, 0)) {\n"                                 \
    "        cold(x); sink = hidden(x, 5); abort();\n"                         \
    "    }\n"                                                                  \
    "    return hidden(x, 3) + hidden(x + 1, 4);\n"                            \
    "}\n"                                                                      \
    "__asm__(\".globl bare, twice\\n.type bare, @function\\n\"\n"              \
    "        \"bare: "                                                         \
    ".cfi_startproc\\nnop\\nnop\\nnop\\nret\\n.cfi_endproc\\n\""               \
    "\n        \"nop\\n\");\n"

/* pick() and choose() are one or the other, as their resolvers say. */
#define INDIRECT_SOURCE                                                        \
    "volatile int which;\n"                                                    \
    "static int quick(int x) { return x * which; }\n"                          \
    "static int slow(int x) { return x + which; }\n"                           \
    "static int other(int x) { return x - which; }\n"                          \
    "int (*table[])(int) = { other };\n"                                       \
    "typedef int function(int);\n"                                             \
    "static function *choice(void) { return which ? quick : slow; }\n"         \
    "int pick(int) __attribute__((ifunc(\"choice\")));\n"

static int
make_images(void **state)
{
    if (make_folder(state))
        return -1;
    write_file("cold.c", COLD_SOURCE);
    write_file("indirect.c", INDIRECT_SOURCE);
    write_file("main.c", "int walk(int);\n"
                         "int main(int n, char **v) { return walk(n); }\n");
    return !run("gcc -O2 -fPIC -shared -o full.so cold.c && "
                "strip -s -o cold.so full.so && "
                "gcc -O2 -fPIC -shared -o full2.so indirect.c && "
                "strip -s -o indirect.so full2.so && "
                "gcc -O2 -pie -fPIE -o full.pie main.c cold.c && "
                "strip -s -o cold.pie full.pie && "
                "gcc -O2 -no-pie -fno-pie -o full.fixed main.c cold.c && "
                "strip -s -o cold.fixed full.fixed");
}

/* Ask about addresses of a file; the symbols are those of `full`. */
static void
begin(struct loaded *l, const char *name)
{
    struct cpprof__symbolizer_options options = {.addresses = true};

    memset(l, 0, sizeof *l);
    snprintf(l->path, sizeof l->path, "%s/%s", folder, name);
    l->mapping = (struct cpprof__symbolizer_mapping){
        .limit = UINT64_MAX, .path = l->path, .build_id = ""};
    l->symbolizer = cpprof__symbolizer.make(&options);
    assert_non_null(l->symbolizer);
    l->index = cpprof__symbolizer.add_mapping(l->symbolizer, &l->mapping);
}

/* Frames at an offset behind a symbol have this name. */
static void
check_name(struct loaded *l, const char *full, const char *label,
           uint64_t offset, const char *name)
{
    struct cpprof__frame frames[MOST_FRAMES];
    uint64_t start = local_address(l, full, label);

    assert_int_equal(frames_of(l, start + offset, frames), 1);
    assert_string_equal(frames[0].name, name);
    assert_string_equal(frames[0].system_name, name);
    assert_int_equal(frames[0].entry, start);
    assert_null(frames[0].file);
}

/* "[FILE+0xADDRESS]" of a symbol. */
static const char *
stand_in(struct loaded *l, const char *full, const char *label)
{
    static char text[128];
    const char *slash = strrchr(l->path, '/');

    snprintf(text, sizeof text, "[%s+0x%llx]", slash + 1,
             (unsigned long long)local_address(l, full, label));
    return text;
}

static void
function_without_symbol_is_named_by_its_start(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    begin(&l, "cold.so");
    check_name(&l, "full.so", "hidden", 0, stand_in(&l, "full.so", "hidden"));
    check_name(&l, "full.so", "hidden", 9, stand_in(&l, "full.so", "hidden"));
    check_name(&l, "full.so", "cold", 1, stand_in(&l, "full.so", "cold"));
    check_name(&l, "full.so", "walk", 3, "walk");
    frames_of(&l, local_address(&l, "full.so", "hidden"), frames);
    assert_true(frames[0].is_stand_in);
    frames_of(&l, local_address(&l, "full.so", "walk"), frames);
    assert_false(frames[0].is_stand_in);
    unload(&l);
}

static void
mapped_library_has_the_same_names(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;
    uint64_t hidden;

    load(&l, "cold.so", "walk");
    symbolize(&l, false);
    hidden = local_address(&l, "full.so", "hidden");
    assert_int_equal(frames_of(&l, hidden + 5, frames), 1);
    assert_int_equal(frames[0].entry, hidden);
    assert_true(frames[0].is_stand_in);
    hidden = frames_of(&l, hidden, frames);
    unload(&l);
    begin(&l, "cold.so");
    hidden = local_address(&l, "full.so", "hidden");
    frames_of(&l, hidden, frames);
    assert_string_equal(frames[0].name, stand_in(&l, "full.so", "hidden"));
    unload(&l);
}

/* The part lies elsewhere, with an entry of its own. */
static void
cold_part_is_its_function(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    begin(&l, "cold.so");
    check_name(&l, "full.so", "hidden.cold", 1,
               stand_in(&l, "full.so", "hidden"));
    check_name(&l, "full.so", "walk.cold", 1, "walk");
    /* Concluded: no reason to say that the mapping has names. */
    frames_of(&l, local_address(&l, "full.so", "walk.cold"), frames);
    assert_true(frames[0].is_stand_in);
    unload(&l);
}

static void
code_that_nothing_covers_is_said_to_be_behind_a_symbol(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;
    uint64_t bare;

    begin(&l, "cold.so");
    bare = local_address(&l, "full.so", "bare");
    assert_int_equal(frames_of(&l, bare + 4, frames), 1);
    assert_string_equal(frames[0].name, "[cold.so after bare]");
    assert_int_equal(frames[0].entry, bare);
    assert_true(frames[0].is_stand_in);
    /* No code, and code of a section without symbols. */
    assert_int_equal(frames_of(&l, 8, frames), 0);
    unload(&l);
    begin(&l, "cold.pie");
    bare = local_address(&l, "full.pie", "bare");
    assert_int_equal(frames_of(&l, bare + 4, frames), 0);
    unload(&l);
}

static void
exported_symbol_without_size_names_its_entry(void **state)
{
    struct loaded l;

    begin(&l, "cold.so");
    check_name(&l, "full.so", "bare", 0, "bare");
    unload(&l);
    begin(&l, "cold.so");
    check_name(&l, "full.so", "bare", 3, "bare");
    unload(&l);
}

static void
main_is_what_the_entry_point_hands_over(void **state)
{
#ifdef __x86_64__
    static const char *const names[][2] = {{"cold.pie", "full.pie"},
                                           {"cold.fixed", "full.fixed"}};
    size_t i;

    for (i = 0; i < 2; i++) {
        struct loaded l;

        begin(&l, names[i][0]);
        check_name(&l, names[i][1], "main", 2, "main");
        check_name(&l, names[i][1], "_start", 5, "_start");
        check_name(&l, names[i][1], "walk", 2,
                   stand_in(&l, names[i][1], "walk"));
        unload(&l);
    }
#endif
}

static void
indirect_function_names_what_it_may_be(void **state)
{
#ifdef __x86_64__
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    begin(&l, "indirect.so");
    check_name(&l, "full2.so", "quick", 1, "pick");
    check_name(&l, "full2.so", "slow", 1, "pick");
    check_name(&l, "full2.so", "other", 1, stand_in(&l, "full2.so", "other"));
    /* Its own name is another one. */
    frames_of(&l, local_address(&l, "full2.so", "slow"), frames);
    assert_true(frames[0].is_stand_in);
    unload(&l);
#endif
}

/* A byte of the header, of the table or of an entry is another one. */
static void
damaged_table_gives_no_fault(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;
    unsigned offset = 0, n_bytes = 0, i;
    uint64_t at;
    FILE *sections;

    assert_true(run("readelf -SW cold.so | sed -n "
                    "'s/.*eh_frame_hdr *[A-Z]* *[0-9a-f]* \\([0-9a-f]*\\) "
                    "\\([0-9a-f]*\\) .*/\\1 \\2/p' > section"));
    sections = fopen("section", "r");
    assert_int_equal(fscanf(sections, "%x %x", &offset, &n_bytes), 2);
    fclose(sections);
    begin(&l, "cold.so");
    at = local_address(&l, "full.so", "hidden");
    unload(&l);
    for (i = 0; i < n_bytes + 200; i++) {
        FILE *file;

        if (i % 16 == 0)
            assert_true(run("cp cold.so damaged.so"));
        file = fopen("damaged.so", "r+");
        assert_int_equal(fseek(file, offset + i, SEEK_SET), 0);
        fputc((int)(i * 37 + 0x81), file);
        fclose(file);
        begin(&l, "damaged.so");
        assert_true(frames_of(&l, at, frames) <= 1);
        assert_true(frames_of(&l, at + 400, frames) <= 1);
        unload(&l);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(function_without_symbol_is_named_by_its_start),
        cmocka_unit_test(mapped_library_has_the_same_names),
        cmocka_unit_test(cold_part_is_its_function),
        cmocka_unit_test(
            code_that_nothing_covers_is_said_to_be_behind_a_symbol),
        cmocka_unit_test(exported_symbol_without_size_names_its_entry),
        cmocka_unit_test(main_is_what_the_entry_point_hands_over),
        cmocka_unit_test(indirect_function_names_what_it_may_be),
        cmocka_unit_test(damaged_table_gives_no_fault),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_images, remove_folder);
}
