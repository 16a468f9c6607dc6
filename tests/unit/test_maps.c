/* SPDX-License-Identifier: MIT */
/*
 * The table is that of Go's TestProcSelfMaps (runtime/pprof proto_test.go):
 * normal, deleted, with spaces, huge pages.
 */

#include <cpprof/object.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

/* A program, %s being what the kernel says behind its name. */
#define CAT(behind)                                                            \
    "00400000-0040b000 r-xp 00000000 fc:01 787766                         "    \
    "    /bin/cat" behind "\n"                                                 \
    "0060a000-0060b000 r--p 0000a000 fc:01 787766                         "    \
    "    /bin/cat" behind "\n"                                                 \
    "0060b000-0060c000 rw-p 0000b000 fc:01 787766                         "    \
    "    /bin/cat" behind "\n"                                                 \
    "014ab000-014cc000 rw-p 00000000 00:00 0                              "    \
    "    [heap]\n"                                                             \
    "7f7d7797c000-7f7d77b36000 r-xp 00000000 fc:01 1180226                "    \
    "    /lib/x86_64-linux-gnu/libc-2.19.so\n"                                 \
    "7f7d77b36000-7f7d77d36000 ---p 001ba000 fc:01 1180226                "    \
    "    /lib/x86_64-linux-gnu/libc-2.19.so\n"                                 \
    "7f7d77d3c000-7f7d77d41000 rw-p 00000000 00:00 0\n"                        \
    "7f7d77f61000-7f7d77f63000 rw-p 00000000 00:00 0 \n"                       \
    "7ffc342a2000-7ffc342c3000 rw-p 00000000 00:00 0                      "    \
    "    [stack]\n"                                                            \
    "7ffc34343000-7ffc34345000 r-xp 00000000 00:00 0                      "    \
    "    [vdso]\n"                                                             \
    "ffffffffff600000-ffffffffff601000 --xp 00000090 00:00 0              "    \
    "    [vsyscall]\n"

#define CAT_LISTED(behind)                                                     \
    "00400000 0040b000 00000000 /bin/cat" behind "\n"                          \
    "7f7d7797c000 7f7d77b36000 00000000 "                                      \
    "/lib/x86_64-linux-gnu/libc-2.19.so\n"                                     \
    "7ffc34343000 7ffc34345000 00000000 [vdso]\n"                              \
    "ffffffffff600000 ffffffffff601000 00000090 [vsyscall]\n"

/* What is listed of the n bytes of text, in the form of Go's test. */
static void
list(const char *text, size_t n, char *out, size_t n_out)
{
    const char *next = text, *end = text + n;
    struct cpprof_map line = {.size = sizeof line};
    size_t at = 0;

    *out = 0;
    while (cpprof_maps_next(&next, end, &line))
        if (cpprof_map_is_listed(&line) && at < n_out)
            at += (size_t)snprintf(
                out + at, n_out - at, "%08llx %08llx %08llx %.*s\n",
                (unsigned long long)line.start, (unsigned long long)line.limit,
                (unsigned long long)line.offset, (int)line.n_path, line.path);
    assert_ptr_equal(next, end);
}

static void
check(const char *text, const char *want)
{
    char out[2000];

    list(text, strlen(text), out, sizeof out);
    assert_string_equal(out, want);
}

static void
ordinary_program_lists_executable_mappings(void **state)
{
    (void)state;
    check(CAT(""), CAT_LISTED(""));
}

static void
deleted_is_stripped(void **state)
{
    (void)state;
    check(CAT(" (deleted)"), CAT_LISTED(""));
}

static void
spaces_in_names_are_kept(void **state)
{
    (void)state;
    check(CAT(" with space"), CAT_LISTED(" with space"));
    check(CAT(" with  two"), CAT_LISTED(" with  two"));
    check(CAT(" (deleted) "), CAT_LISTED(" (deleted) "));
}

static void
huge_page_remainder_without_a_name_is_not_listed(void **state)
{
    (void)state;
    check("00400000-07000000 r-xp 00000000 00:00 0 \n"
          "07000000-07093000 r-xp 06c00000 00:2e 536754          "
          "             /path/to/gobench_server_main\n"
          "07093000-0722d000 rw-p 06c92000 00:2e 536754          "
          "             /path/to/gobench_server_main\n"
          "0722d000-07b21000 rw-p 00000000 00:00 0\n"
          "c000000000-c000036000 rw-p 00000000 00:00 0\n",
          "07000000 07093000 06c00000 /path/to/gobench_server_main\n");
}

static void
anonymous_memory_with_a_name_or_an_inode_is_listed(void **state)
{
    (void)state;
    check("1000-2000 r-xp 0 00:00 0   [anon:jit]\n"
          "2000-3000 rwxp 0 00:01 77  /memfd:code (deleted)\n"
          "3000-4000 rwxs 0 00:05 9\n",
          "00001000 00002000 00000000 [anon:jit]\n"
          "00002000 00003000 00000000 /memfd:code\n"
          "00003000 00004000 00000000 \n");
}

static void
all_fields_of_a_line_are_read(void **state)
{
    static const char text[] = "7f0000001000-7f0000002000 rw-s 0000a000 "
                               "fc:1f 787766   /a b (deleted)";
    const char *next = text;
    struct cpprof_map line = {.size = sizeof line};

    (void)state;
    assert_true(cpprof_maps_next(&next, text + sizeof text - 1, &line));
    assert_true(line.start == 0x7f0000001000);
    assert_true(line.limit == 0x7f0000002000);
    assert_int_equal(line.offset, 0xa000);
    assert_int_equal(line.dev_major, 0xfc);
    assert_int_equal(line.dev_minor, 0x1f);
    assert_int_equal(line.inode, 787766);
    assert_memory_equal(line.perms, "rw-s", 4);
    assert_true(line.deleted);
    assert_int_equal(line.n_path, 4);
    assert_memory_equal(line.path, "/a b", 4);
    assert_false(cpprof_map_is_listed(&line));
    assert_false(cpprof_maps_next(&next, text + sizeof text - 1, &line));
}

static void
lines_of_another_kind_are_skipped(void **state)
{
    (void)state;
    check("Size:                 4 kB\n"
          "\n"
          "-\n"
          "g000-2000 r-xp 0 00:00 1 /bad/digit\n"
          "2000-1000 r-xp 0 00:00 1 /backwards\n"
          "1000-1000 r-xp 0 00:00 1 /empty\n"
          "1000-2000 r-x 0 00:00 1 /short/perms\n"
          "1000-2000 rrxp 0 00:00 1 /bad/perms\n"
          "1000-2000 r-xp 0 0000 1 /no/colon\n"
          "1000-2000 r-xp 0 00:00 /no/inode\n"
          "1000-2000 r-xp 0 00:00 1x /bad/inode\n"
          "10000000000000000-20000000000000000 r-xp 0 00:00 1 /too/large\n"
          "1000-2000 r-xp 0 00:00 1 /good\n"
          "VmFlags: rd ex mr mw me",
          "00001000 00002000 00000000 /good\n");
}

static void
text_cut_at_any_byte_is_not_read_past_its_end(void **state)
{
    static const char text[] = CAT(" (deleted)");
    char out[2000];
    size_t n;

    (void)state;
    for (n = 0; n < sizeof text; n++) {
        char *copy = malloc(n ? n : 1);

        assert_non_null(copy);
        memcpy(copy, text, n);
        list(copy, n, out, sizeof out);
        free(copy);
    }
    assert_string_equal(out, CAT_LISTED(""));
}

/* The kernel's own text: this function lies in a mapping that is listed. */
static void
this_process_is_understood(void **state)
{
    static char text[1 << 20];
    const char *next = text;
    struct cpprof_map line = {.size = sizeof line};
    uintptr_t here = (uintptr_t)this_process_is_understood;
    FILE *f = fopen("/proc/self/maps", "r");
    int n_found = 0;
    size_t n;

    (void)state;
    assert_non_null(f);
    n = fread(text, 1, sizeof text, f);
    fclose(f);
    while (cpprof_maps_next(&next, text + n, &line)) {
        if (here < line.start || here >= line.limit)
            continue;
        n_found++;
        assert_true(cpprof_map_is_listed(&line));
        assert_int_equal(line.path[0], '/');
        assert_int_equal(line.path[line.n_path], '\n');
    }
    assert_int_equal(n_found, 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_program_lists_executable_mappings),
        cmocka_unit_test(deleted_is_stripped),
        cmocka_unit_test(spaces_in_names_are_kept),
        cmocka_unit_test(huge_page_remainder_without_a_name_is_not_listed),
        cmocka_unit_test(anonymous_memory_with_a_name_or_an_inode_is_listed),
        cmocka_unit_test(all_fields_of_a_line_are_read),
        cmocka_unit_test(lines_of_another_kind_are_skipped),
        cmocka_unit_test(text_cut_at_any_byte_is_not_read_past_its_end),
        cmocka_unit_test(this_process_is_understood),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
