/* SPDX-License-Identifier: MIT */
/* Instructions read from what objdump prints, well-formed or not, and counts
 * written as clang reads them. Here objdump is a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/status.h"
#include "cli/pgo/pgo.h"
#include "cli/terminal.h"
#include "report/code/binutils.h"

#include <stdlib.h>
#include <string.h>

static const char *listing; /* NULL: it takes too long */
static int n_runs;

bool
cpprof__tool_find(const char *tools, const char *of, const char *const *names,
                  struct cpprof__buffer *path)
{
    (void)tools, (void)of;
    cpprof__buffer_append(path, names[0], strlen(names[0]) + 1);
    return true;
}

enum cpprof_status
cpprof__tool_run(const struct cpprof__tool_run *run, struct cpprof__buffer *out,
                 struct cpprof_error *error)
{
    (void)run;
    n_runs++;
    if (!listing)
        return cpprof__fail(error, CPPROF_LIMIT, 0, "took too long");
    cpprof__buffer_append(out, listing, strlen(listing));
    return CPPROF_OK;
}

void
cpprof__tool_file(const char *path, struct cpprof__buffer *out)
{
    cpprof__buffer_append(out, path, strlen(path) + 1);
}

void
cpprof__progress(const char *format, ...)
{
    (void)format;
}

void
cpprof__progress_end(void)
{
}

/* Read the routine from 0x1000 up to 0x2000 of a text; false as it says. */
static bool
read_code(const char *text, struct cpprof__pgo_code *code,
          struct cpprof_error *error)
{
    struct cpprof__pgo_build build = {.path = "x", .code = "x"};
    struct cpprof__pgo_routine routine = {.start = 0x1000, .limit = 0x2000};
    struct cpprof__pgo_leaf leaf = {.address = 0x1004, .n = 7};
    struct cpprof__pgo_counts counts = {0};
    struct cpprof__pgo_listing l = {0};
    bool ok;

    *CPPROF__ARRAY_ADD(&counts.builds) = build;
    *CPPROF__ARRAY_ADD(&counts.routines) = routine;
    *CPPROF__ARRAY_ADD(&counts.leaves) = leaf;
    listing = text;
    ok = cpprof__pgo_code_read(code, &l, &counts, 0, error);
    cpprof__pgo_listing_free(&l);
    CPPROF__ARRAY_FREE(&counts.builds);
    CPPROF__ARRAY_FREE(&counts.routines);
    CPPROF__ARRAY_FREE(&counts.leaves);
    return ok;
}

/* The kind of the first instruction, and where it goes. */
static void
check_instruction(const char *text, enum cpprof__pgo_kind kind, uint64_t target)
{
    struct cpprof__pgo_code code = {0};
    struct cpprof_error error = {0};
    char line[256];

    snprintf(line, sizeof line, "    1000:\t%s\n    1004:\tret\n", text);
    assert_true(read_code(line, &code, &error));
    if (code.instructions.at[0].kind != kind ||
        code.instructions.at[0].target != target)
        fail_msg("%s: kind %d, target %#lx", text, code.instructions.at[0].kind,
                 (unsigned long)code.instructions.at[0].target);
    cpprof__pgo_code_free(&code);
}

static void
jumps_have_the_targets_that_objdump_prints(void **state)
{
    (void)state;
    check_instruction("jne    1004 <f+0x4>", CPPROF__PGO_BRANCH, 0x1004);
    check_instruction("jmp\t0x1004 <f+0x4>", CPPROF__PGO_JUMP, 0x1004);
    check_instruction("bnd jmp 1004", CPPROF__PGO_JUMP, 0x1004);
    check_instruction("jmp    *0x2fe2(%rip)        # 404018 <g>",
                      CPPROF__PGO_INDIRECT, 0);
    check_instruction("b.ne\t1004 <f+0x4>  // b.any", CPPROF__PGO_BRANCH,
                      0x1004);
    check_instruction("b.ne\t1004  // b.any", CPPROF__PGO_BRANCH, 0x1004);
    check_instruction("cbz\tx0, 1004 <f+0x4>", CPPROF__PGO_BRANCH, 0x1004);
    check_instruction("br\tx16", CPPROF__PGO_INDIRECT, 0);
    check_instruction("blr\tx3", CPPROF__PGO_CALL, 0);
}

static void
tests_of_a_bit_have_their_targets_too(void **state)
{
    (void)state;
    check_instruction("tbz\tw0, #3, 1004 <f+0x4>", CPPROF__PGO_BRANCH, 0x1004);
    check_instruction("tbnz\tx1, #0x3f, 0x1004 <f+0x4>", CPPROF__PGO_BRANCH,
                      0x1004);
    check_instruction("tbnz\tw0, #31, 1004", CPPROF__PGO_BRANCH, 0x1004);
}

static void
blocks_end_at_jumps_and_have_their_samples(void **state)
{
    struct cpprof__pgo_code code = {0};
    struct cpprof_error error = {0};

    (void)state;
    assert_true(read_code("f:\n 1000:\ttbz w0, #3, 1008 <f+0x8>\n"
                          " 1004:\tadd x0, x0, #1\n 1008:\tret\n",
                          &code, &error));
    assert_int_equal(code.blocks.n, 3);
    assert_true(code.blocks.at[1].samples == 7);
    assert_int_equal(code.edges.at[0].to, 1);
    assert_int_equal(code.edges.at[1].to, 2);
    cpprof__pgo_code_free(&code);
}

static void
hostile_listings_are_read_without_harm(void **state)
{
    static const char *const texts[] = {
        " 1000:\tjmp",
        " 1000:\tjmp \n 1000:\tjmp ffffffffffffffffffff\n",
        " 1008:\tje 1000\n 1004:\tje 1008\n 1000:\tje 1004\n",
        " 1000:\t\n:\n::::\n 1001:\tlock lock lock rep\n",
        " 1000:\ttbz #,#,#,\n 1001:\tb.\n 1002:\txchg ,\n 1003:\txchg\n",
        " 1000:\tjmp //\n 1002:\tjmp <\n 1004:\tjmp 0x\n 1006:\tjmp x\n",
        "\xff\xfe 1000:\tjmp\n 1001:\t\xff\xff\xff\n 1002:\tret"};
    struct cpprof_error error = {0};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct cpprof__pgo_code code = {0};

        if (read_code(texts[i], &code, &error)) {
            assert_true(code.instructions.n > 0);
            assert_true(code.blocks.n > 0);
        }
        cpprof__pgo_code_free(&code);
    }
}

static void
listing_without_code_and_one_that_hangs_are_told_apart(void **state)
{
    struct cpprof__pgo_code code = {0};
    struct cpprof_error error = {0};

    (void)state;
    assert_false(read_code("no code here\n", &code, &error));
    assert_int_equal(error.status, CPPROF_BAD_DATA);
    n_runs = 0;
    assert_false(read_code(NULL, &code, &error));
    assert_int_equal(error.status, CPPROF_LIMIT);
    assert_string_equal(error.text, "took too long");
    assert_int_equal(n_runs, 1); /* no other objdump is tried for as long */
    cpprof__pgo_code_free(&code);
}

/* A function of each name with so many samples, as clang's text. */
static void
write_functions(const char *const *names, size_t n, double count,
                struct cpprof__buffer *out, size_t *n_functions,
                size_t *n_unreadable)
{
    struct cpprof__pgo_counts counts = {0};
    struct cpprof__pgo_tree tree = {0};
    bool added;
    size_t i;

    assert_true(cpprof__strings_begin(&counts.names));
    for (i = 0; i < n; i++) {
        struct cpprof__pgo_node node = {
            .position = {.node = CPPROF__PGO_NONE,
                         .name =
                             cpprof__strings_add_text(&counts.names, names[i])},
            .total = count};
        struct cpprof__pgo_line line = {
            .position = {.node = (uint32_t)i, .line = 1}, .count = count};

        cpprof__table_add(&tree.nodes, &node, sizeof node.position, sizeof node,
                          &added);
        cpprof__table_add(&tree.lines, &line, sizeof line.position, sizeof line,
                          &added);
    }
    assert_true(
        cpprof__pgo_clang(&tree, &counts, out, n_functions, n_unreadable));
    cpprof__buffer_append(out, "", 1);
    cpprof__pgo_tree_free(&tree);
    cpprof__strings_free(&counts.names);
}

void
cpprof__pgo_tree_free(struct cpprof__pgo_tree *tree)
{
    cpprof__table_free(&tree->nodes);
    cpprof__table_free(&tree->lines);
    cpprof__table_free(&tree->targets);
}

static void
names_that_clang_cannot_read_are_left_out_and_counted(void **state)
{
    static const char *const names[] = {"main", " f",  "[x]", "#g",
                                        "h@v1", "a b", "1",   "_Z1kv"};
    struct cpprof__buffer out = {0};
    size_t n_functions, n_unreadable;

    (void)state;
    write_functions(names, 8, 2, &out, &n_functions, &n_unreadable);
    assert_string_equal((char *)out.data, "main:2000:0\n 1: 2000\n"
                                          "_Z1kv:2000:0\n 1: 2000\n");
    assert_int_equal(n_functions, 2);
    assert_int_equal(n_unreadable, 6);
    cpprof__buffer_free(&out);
}

static void
counts_too_large_to_be_exact_are_scaled(void **state)
{
    static const char *const names[] = {"f"};
    struct cpprof__buffer out = {0};
    size_t n_functions, n_unreadable;

    (void)state;
    write_functions(names, 1, 1e19, &out, &n_functions, &n_unreadable);
    assert_string_equal((char *)out.data,
                        "f:9007199254740992:0\n 1: 9007199254740992\n");
    cpprof__buffer_free(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jumps_have_the_targets_that_objdump_prints),
        cmocka_unit_test(tests_of_a_bit_have_their_targets_too),
        cmocka_unit_test(blocks_end_at_jumps_and_have_their_samples),
        cmocka_unit_test(hostile_listings_are_read_without_harm),
        cmocka_unit_test(
            listing_without_code_and_one_that_hangs_are_told_apart),
        cmocka_unit_test(names_that_clang_cannot_read_are_left_out_and_counted),
        cmocka_unit_test(counts_too_large_to_be_exact_are_scaled),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
