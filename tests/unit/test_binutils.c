/* SPDX-License-Identifier: MIT */
/* What is made of the output of nm and objdump, which here are scripts. */
#include "report/code/binutils.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/cpprof-tools-XXXXXX";

static int
make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int
remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

/* A program of a name, that runs a script. */
static void
make_tool(const char *name, const char *script)
{
    char path[96];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0755), 0);
}

static void
remove_tool(const char *name)
{
    char path[96];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

static bool
is(struct cpprof__text slice, const char *text)
{
    return slice.n == strlen(text) && memcmp(slice.at, text, slice.n) == 0;
}

static void
expect_range(const struct cpprof__instruction *i, const char *function,
             const char *file, int64_t line)
{
    if (!is(i->function, function) || !is(i->file, file) || i->line != line)
        fail_msg("%.*s %.*s:%d, not %s %s:%d", (int)i->function.n,
                 i->function.at, (int)i->file.n, i->file.at, (int)i->line,
                 function, file, (int)line);
}

/* The instructions that a script prints as objdump. */
static void
disassemble(const char *script, struct cpprof__disassembly *d)
{
    struct cpprof__objdump objdump = {0};
    struct cpprof__disassemble what = {.objdump = &objdump,
                                       .tools = folder,
                                       .path = "/bin/x",
                                       .begin = 0x10,
                                       .end = 0x20};
    struct cpprof_error error = {0};

    make_tool("objdump", script);
    if (cpprof__disassemble(d, &what, &error) != CPPROF_OK)
        fail_msg("%s", error.text);
    cpprof__objdump_free(&objdump);
    remove_tool("objdump");
}

#define SAY_GNU "if [ $1 = --version ]; then echo GNU objdump; exit; fi\n"

static void
instructions_know_their_range(void **state)
{
    struct cpprof__disassembly d = {0};

    (void)state;
    disassemble(SAY_GNU "cat <<'END'\n"
                        "/bin/x:     file format elf64-x86-64\n"
                        "\n"
                        "0000000000000010 <main>:\n"
                        "main():\n"
                        "/src/x.c:3 (discriminator 2)\n"
                        "  10:\tpush   %rbp\n"
                        "  11:\tcall   20 <f+0x3>\n"
                        "/src/y.h:7\n"
                        "  16:\tret\n"
                        "Box<int>::f(int):\n"
                        "  17:\tnop\n"
                        "\n"
                        "  18:\tnop\n"
                        "END",
                &d);
    assert_int_equal(d.at.n, 5);
    assert_int_equal(d.at.at[0].address, 0x10);
    assert_true(is(d.at.at[0].text, "push   %rbp"));
    expect_range(&d.at.at[0], "main", "/src/x.c", 3);
    assert_true(is(d.at.at[1].text, "call   20 <f+0x3>"));
    expect_range(&d.at.at[1], "main", "/src/x.c", 3);
    expect_range(&d.at.at[2], "main", "/src/y.h", 7);
    expect_range(&d.at.at[3], "Box<int>::f(int)", "/src/y.h", 7);
    expect_range(&d.at.at[4], "", "", 0);
    cpprof__disassembly_free(&d);
}

static void
nonsense_is_no_instruction(void **state)
{
    struct cpprof__disassembly d = {0};

    (void)state;
    disassemble(SAY_GNU
                "printf '%s\\n' : :: ': ' '; :' ';' '' '():' ' ():' \\\n"
                "  'x:99999999999999999999' 'fffffffffffffffffff: nop' "
                "\\\n"
                "  '10:' '10: ' 'zz: nop'; printf '\\0\\377:\\n  7:\\tend'",
                &d);
    assert_int_equal(d.at.n, 1);
    assert_int_equal(d.at.at[0].address, 7);
    assert_true(is(d.at.at[0].text, "end"));
    cpprof__disassembly_free(&d);
}

static void
file_name_is_no_option(void **state)
{
    struct cpprof__buffer name = {0};

    (void)state;
    cpprof__tool_file("-x", &name);
    assert_string_equal((char *)name.data, "./-x");
    name.n = 0;
    cpprof__tool_file("@list", &name);
    assert_string_equal((char *)name.data, "./@list");
    name.n = 0;
    cpprof__tool_file("/bin/x", &name);
    assert_string_equal((char *)name.data, "/bin/x");
    cpprof__buffer_free(&name);
}

static void
failure_of_a_tool_is_told(void **state)
{
    struct cpprof__objdump objdump = {0};
    struct cpprof__disassemble what = {
        .objdump = &objdump, .tools = folder, .path = "/bin/x"};
    struct cpprof__disassembly d = {0};
    struct cpprof_error error = {0};

    (void)state;
    make_tool("objdump", SAY_GNU "exit 3");
    assert_int_equal(cpprof__disassemble(&d, &what, &error), CPPROF_SYSTEM);
    assert_non_null(strstr(error.text, "objdump --disassemble"));
    cpprof__objdump_free(&objdump);
    cpprof__disassembly_free(&d);
    remove_tool("objdump");
}

static void
missing_tool_is_named(void **state)
{
    struct cpprof__objdump objdump = {0};
    struct cpprof__disassemble what = {
        .objdump = &objdump, .tools = folder, .path = "/bin/x"};
    struct cpprof__disassembly d = {0};
    struct cpprof_error error = {0};
    char *path = strdup(getenv("PATH"));

    (void)state;
    setenv("PATH", folder, 1);
    assert_int_equal(cpprof__disassemble(&d, &what, &error), CPPROF_SYSTEM);
    assert_string_equal(error.text, "cannot disasm: no objdump tool available");
    setenv("PATH", path, 1);
    free(path);
    cpprof__objdump_free(&objdump);
    cpprof__disassembly_free(&d);
}

/* Run a script with bounds; returns the status. */
static enum cpprof_status
run(const char *script, size_t most_bytes, struct cpprof__buffer *out)
{
    char path[96];
    const char *words[] = {path, NULL};
    struct cpprof__tool_run run = {words, most_bytes, 1};
    enum cpprof_status status;

    snprintf(path, sizeof path, "%s/tool", folder);
    make_tool("tool", script);
    status = cpprof__tool_run(&run, out, NULL);
    remove_tool("tool");
    return status;
}

static void
tool_that_hangs_is_stopped(void **state)
{
    struct cpprof__buffer out = {0};

    (void)state;
    assert_int_equal(run("exec sleep 60", 100, &out), CPPROF_LIMIT);
    cpprof__buffer_free(&out);
}

static void
tool_that_prints_for_ever_is_stopped(void **state)
{
    struct cpprof__buffer out = {0};

    (void)state;
    assert_int_equal(run("exec yes", 1 << 20, &out), CPPROF_LIMIT);
    assert_true(out.n < 4 << 20);
    cpprof__buffer_free(&out);
}

static void
output_is_passed_on(void **state)
{
    struct cpprof__buffer out = {0};

    (void)state;
    assert_int_equal(run("printf 'some output'; cat", 1 << 20, &out),
                     CPPROF_OK);
    assert_int_equal(out.n, 11);
    assert_memory_equal(out.data, "some output", out.n);
    cpprof__buffer_free(&out);
}

static const char symbol_lines[] = "cat <<'END'\n"
                                   "                 U puts\n"
                                   "0000000000000010 T _ZN2ns5firstEi\n"
                                   "0000000000000010 t alias\n"
                                   "0000000000000020 T second\n"
                                   "nonsense\n"
                                   "0000000000000030 B third\n"
                                   "END";

static void
expect_symbols_of(const char *nm, const char *expression, uint64_t address,
                  const char *expected)
{
    struct cpprof__object_symbols s = {0};
    struct cpprof__regexp *matching = NULL;
    struct cpprof__buffer text = {0};
    struct cpprof_error error = {0};
    size_t i, k;

    make_tool("nm", nm);
    assert_int_equal(cpprof__regexp_make(expression, "x", &matching, NULL),
                     CPPROF_OK);
    if (cpprof__object_symbols_add(&s, folder, "/bin/x", matching, address,
                                   &error) != CPPROF_OK)
        fail_msg("%s", error.text);
    for (i = 0; i < s.at.n; i++) {
        const char *name = (char *)s.text.data + s.at.at[i].names;

        cpprof__buffer_printf(&text, "%x-%x", (unsigned)s.at.at[i].start,
                              (unsigned)s.at.at[i].end);
        for (k = 0; k < s.at.at[i].n_names; k++, name += strlen(name) + 1)
            cpprof__buffer_printf(&text, " %s", name);
        cpprof__buffer_append(&text, "\n", 1);
    }
    cpprof__buffer_append(&text, "", 1);
    assert_string_equal((char *)text.data, expected);
    cpprof__buffer_free(&text);
    cpprof__regexp_free(matching);
    cpprof__object_symbols_free(&s);
    remove_tool("nm");
}

static void
expect_symbols(const char *expression, uint64_t address, const char *expected)
{
    expect_symbols_of(symbol_lines, expression, address, expected);
}

static void
stripped_library_has_what_it_exports(void **state)
{
    (void)state;
    expect_symbols_of("case $1 in -n) echo 'no symbols' >&2 ;;\n"
                      "-nD) echo '0000000000000010 T exported' ;; esac",
                      "export", 0, "10-ffffffff exported\n");
}

static void
symbols_match_by_name(void **state)
{
    (void)state;
    expect_symbols("second|puts", 0, "20-2f second\n");
    expect_symbols("first", 0, "10-1f _ZN2ns5firstEi\n");
    expect_symbols("ns::first", 0, "10-1f ns::first(int)\n");
    expect_symbols("nosuch", 0, "");
}

static void
symbol_of_an_address_has_all_its_names(void **state)
{
    (void)state;
    expect_symbols("nosuch", 0x12, "10-1f _ZN2ns5firstEi alias\n");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_know_their_range),
        cmocka_unit_test(nonsense_is_no_instruction),
        cmocka_unit_test(file_name_is_no_option),
        cmocka_unit_test(failure_of_a_tool_is_told),
        cmocka_unit_test(missing_tool_is_named),
        cmocka_unit_test(tool_that_hangs_is_stopped),
        cmocka_unit_test(tool_that_prints_for_ever_is_stopped),
        cmocka_unit_test(output_is_passed_on),
        cmocka_unit_test(stripped_library_has_what_it_exports),
        cmocka_unit_test(symbols_match_by_name),
        cmocka_unit_test(symbol_of_an_address_has_all_its_names),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
