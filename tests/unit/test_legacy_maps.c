/* SPDX-License-Identifier: MIT */
/* The memory map of a legacy profile, and which location lies where. */
#include "profile/legacy/maps.h"
#include "profile/model/make.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct cpprof__legacy_lines
lines_of(const char *text)
{
    return (struct cpprof__legacy_lines){text, text + strlen(text)};
}

/* All mappings, each as "start-limit offset file buildid;". */
static const char *
show(const struct pprof_profile *p)
{
    static char out[4096];
    size_t n = 0, i;

    out[0] = '\0';
    for (i = 0; i < p->mappings.n && n < sizeof out; i++) {
        const struct pprof_mapping *m = &p->mappings.at[i];

        n += (size_t)snprintf(
            out + n, sizeof out - n, "%llx-%llx %llx %s %s;",
            (unsigned long long)m->start, (unsigned long long)m->limit,
            (unsigned long long)m->offset, pprof_text(p, m->file, NULL),
            pprof_text(p, m->build_id, NULL));
    }
    return out;
}

static void
assert_parsed(const char *text, const char *want)
{
    struct pprof_profile *p = cpprof__pprof_make();
    struct cpprof__legacy_lines lines = lines_of(text);
    struct cpprof_error error;

    assert_non_null(p);
    assert_int_equal(cpprof__parse_maps(&lines, p, &error), CPPROF_OK);
    assert_string_equal(show(p), want);
    pprof_free(p);
}

/* ----------------------------------------------------------- one line ---- */

/* The 13 of the reference's TestParseMappingEntry come first. */
static void
every_form_of_a_line_is_read(void **state)
{
    static const struct {
        const char *line, *want;
    } cases[] = {
        {"00400000-02e00000 r-xp 00000000 00:00 0", "400000-2e00000 0  ;"},
        {"02e00000-02e8a000 r-xp 02a00000 00:00 15953927    /foo/bin",
         "2e00000-2e8a000 2a00000 /foo/bin ;"},
        {"02e00000-02e8a000 r-xp 000000 00:00 15953927    [vdso]",
         "2e00000-2e8a000 0 [vdso] ;"},
        {"  02e00000-02e8a000: /foo/bin (@2a00000)",
         "2e00000-2e8a000 2a00000 /foo/bin ;"},
        {"  02e00000-02e8a000: /foo/bin (deleted)",
         "2e00000-2e8a000 0 /foo/bin ;"},
        {"  02e00000-02e8a000: /foo/bin", "2e00000-2e8a000 0 /foo/bin ;"},
        {"  02e00000-02e8a000: [vdso]", "2e00000-2e8a000 0 [vdso] ;"},
        {"0xff6810563000 0xff6810565000 r-xp abc_exe "
         "87c4d547f895cfd6a370e08dc5c5ee7bd4199d5b",
         "ff6810563000-ff6810565000 0 abc_exe "
         "87c4d547f895cfd6a370e08dc5c5ee7bd4199d5b;"},
        {"7f5e5435e000-7f5e5455e000 --xp 00002000 00:00 1531        myprogram",
         "7f5e5435e000-7f5e5455e000 2000 myprogram ;"},
        {"7f7472710000-7f7472722000 r-xp 00000000 fc:00 790190      "
         "/usr/lib/libfantastic-1.2.so",
         "7f7472710000-7f7472722000 0 /usr/lib/libfantastic-1.2.so ;"},
        {"7f47a542f000-7f47a5447000: /lib/libpthread-2.15.so",
         "7f47a542f000-7f47a5447000 0 /lib/libpthread-2.15.so ;"},
        {"0x40000-0x80000 /path/to/binary      (@FF00)            abc123456",
         "40000-80000 ff00 /path/to/binary abc123456;"},
        {"7f5e5435e000-7f5e5455e000 ---p 00002000 00:00 1531        myprogram",
         ""},
        /* What else the expressions let through. */
        {"1000-2000 00:00 0 /no/perm", "1000-2000 0 /no/perm ;"},
        {"1000-2000 40 00:00 0 /no/perm", "1000-2000 40 /no/perm ;"},
        {"1000-2000 r-xp 00:00 0", "1000-2000 0  ;"},
        {"1000-2000 r-xp 0 8:1 12x /cut", "1000-2000 0  ;"},
        {"1000 2000 /space", "1000-2000 0 /space ;"},
        {"1000- 2000 /space", "1000-2000 0 /space ;"},
        {"1000-2000 xorg", "1000-2000 0  ;"}, /* "x" is a permission */
        {"1000-2000 prog", ""},               /* "pr" are */
        {"1000-2000 /a with spaces", "1000-2000 0 /a ;"},
        {"1000-2000 /a (@zz) 7", "1000-2000 0 /a ;"},
        {"1000-2000 /a (@12 7", "1000-2000 0 /a ;"},
        {"ABCDEF-FFFFFF: /upper", "abcdef-ffffff 0 /upper ;"},
        {"12", "1-2 0  ;"},
        {"0x12 /one/number", "1-2 0 /one/number ;"},
        {"10x5 /joined", "1-5 0 /joined ;"},
        {"123 08:01 7 /split", "12-3 0 /split ;"},
        {"1000 - 2000", ""}, /* start 100, limit 0, permission "-" */
        {"1", ""},
        {"0x", ""},
        {"", ""},
        {"MAPPED_LIBRARIES:", ""},
        {"10000000000000000-20000000000000000 r-xp 0 8:1 1 /large", ""},
        {"ffffffffffffffff-ffffffffffffffff 1 8:1 1 /last",
         "ffffffffffffffff-ffffffffffffffff 1 /last ;"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_parsed(cases[i].line, cases[i].want);
}

static void
log_prefix_is_skipped(void **state)
{
    (void)state;
    assert_parsed("I0102 03:04:05.6 77 prof.cc:123] 1000-2000 r-xp 0 8:1 1 /a",
                  "1000-2000 0 /a ;");
    assert_parsed("x:1] 12-34 r-xp 0 8:1 1 /a\n" /* shortest */
                  ":1] 56-78 r-xp 0 8:1 1 /b\n"  /* nothing in front */
                  "[x:1] 9a-bc r-xp 0 8:1 1 /c\n"
                  "x:] de-ff r-xp 0 8:1 1 /d\n",
                  "12-34 0 /a ;");
}

/* --------------------------------------------------------- attributes ---- */

static void
attributes_are_replaced_in_the_lines_below(void **state)
{
    (void)state;
    assert_parsed("1000-2000: $lib/a\n"
                  " lib = /usr/lib \n"
                  "vers=$lib/2\n"
                  "2000-3000: $lib/b$vers$none$\n",
                  "1000-2000 0 $lib/a ;"
                  "2000-3000 0 /usr/lib/b/usr/lib/2$none$ ;");
}

static void
first_of_attributes_that_match_wins(void **state)
{
    (void)state;
    assert_parsed("lib=/1\nlibrary=/2\nlib=/3\n1000-2000: $library\n",
                  "1000-2000 0 /1rary ;");
    assert_parsed("library=/2\nlib=/1\n1000-2000: $library\n",
                  "1000-2000 0 /2 ;");
    assert_parsed("=!\n1000-2000: /a$b$\n", "1000-2000 0 /a!b! ;");
}

/* Each line doubles: the last would have 2^199 bytes. */
static void
attributes_that_grow_without_end_are_cut_off(void **state)
{
    struct pprof_profile *p = cpprof__pprof_make();
    struct cpprof__legacy_lines lines;
    char text[8192];
    size_t n = 0;
    int i;

    (void)state;
    n += (size_t)snprintf(text, sizeof text, "z0_=zzzzzzzz\n");
    for (i = 1; i < 200; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "z%d_=$z%d_$z%d_\n", i,
                              i - 1, i - 1);
    lines = lines_of(text);
    assert_non_null(p);
    assert_int_equal(cpprof__parse_maps(&lines, p, NULL), CPPROF_OK);
    assert_int_equal(p->mappings.n, 0);
    pprof_free(p);
}

/* ------------------------------------------------------------ massage ---- */

static void
assert_massaged(const char *text, const char *want)
{
    struct pprof_profile *p = cpprof__pprof_make();
    struct cpprof__legacy_lines lines = lines_of(text);
    size_t i;

    assert_non_null(p);
    assert_int_equal(cpprof__parse_maps(&lines, p, NULL), CPPROF_OK);
    assert_int_equal(cpprof__massage_maps(p, NULL), CPPROF_OK);
    assert_string_equal(show(p), want);
    for (i = 0; i < p->mappings.n; i++)
        assert_int_equal(p->mappings.at[i].id, i + 1);
    pprof_free(p);
}

static void
adjacent_mappings_of_one_file_are_joined(void **state)
{
    (void)state;
    assert_massaged("1000-2000: /a (@100)\n2000-3000: /a (@1100) ab\n"
                    "3000-4000 00:00 0\n",
                    "1000-4000 100 /a ab;");
    assert_massaged("1000-2000: /a\n2001-3000: /a\n",
                    "1000-2000 0 /a ;2001-3000 0 /a ;");
    assert_massaged("1000-2000: /a\n2000-3000: /b\n",
                    "1000-2000 0 /a ;2000-3000 0 /b ;");
    assert_massaged("1000-2000: /a (@100)\n2000-3000: /a (@1101)\n",
                    "1000-2000 100 /a ;2000-3000 1101 /a ;");
    assert_massaged("1000-2000: /a (@1) ab\n2000-3000: /a (@1001) ac\n",
                    "1000-2000 1 /a ab;2000-3000 1001 /a ac;");
    assert_massaged("", "");
}

/* The program changes places with the first one. Source: TestSetMain. */
static void
first_that_is_no_library_is_the_program(void **state)
{
    (void)state;
    assert_massaged("1-2: /lib/a.so\n3-4: /lib/a.so.6\n5-6: /lib/a.so_1\n"
                    "7-8: [vdso]\n9-a: /bin/main\nb-c: /bin/other\n",
                    "9-a 0 /bin/main ;3-4 0 /lib/a.so.6 ;5-6 0 /lib/a.so_1 ;"
                    "7-8 0 [vdso] ;1-2 0 /lib/a.so ;b-c 0 /bin/other ;");
    assert_massaged("1-2: /lib/a.so\n3-4: /a.so.d/x\n",
                    "3-4 0 /a.so.d/x ;1-2 0 /lib/a.so ;");
    assert_massaged("1-2: /lib/a.so\n3-4: [vdso]\n",
                    "1-2 0 /lib/a.so ;3-4 0 [vdso] ;");
}

static void
deleted_library_is_not_the_program(void **state)
{
    (void)state;
    assert_massaged("1-2: /lib/a.so(deleted)\n3-4: (deleted)\n5-6: /main\n",
                    "5-6 0 /main ;3-4 0 (deleted) ;1-2 0 /lib/a.so(deleted) ;");
}

/* -------------------------------------------------------------- remap ---- */

/* Read maps into a profile with one sample of these addresses. */
static struct pprof_profile *
mapped(const char *text, const uint64_t *addresses, size_t n)
{
    struct pprof_profile *p = cpprof__pprof_make();
    struct cpprof__maker m = {.p = p};
    struct cpprof__legacy_lines lines = lines_of(text);
    uint32_t frames[16];
    int64_t value = 1;
    size_t i;

    assert_non_null(p);
    cpprof__make_sample_type(&m, "samples", "count");
    for (i = 0; i < n; i++)
        frames[i] =
            cpprof__make_location(&m, PPROF_NONE, addresses[i], PPROF_NONE, 0);
    cpprof__make_sample(&m, frames, n, &value);
    assert_false(m.failed);
    cpprof__maker_free(&m);
    assert_int_equal(cpprof__read_maps(&lines, p, NULL), CPPROF_OK);
    assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    return p;
}

#define ADDRESSES(...)                                                         \
    (uint64_t[]){__VA_ARGS__}, sizeof(uint64_t[]){__VA_ARGS__} / 8

static void
assert_mapped(const char *text, const uint64_t *addresses, size_t n,
              const char *maps, const uint32_t *mappings)
{
    struct pprof_profile *p = mapped(text, addresses, n);
    size_t i;

    assert_string_equal(show(p), maps);
    assert_int_equal(p->locations.n, n);
    for (i = 0; i < n; i++) {
        assert_int_equal(p->locations.at[i].address, addresses[i]);
        assert_int_equal(p->locations.at[i].mapping, mappings[i]);
    }
    pprof_free(p);
}

static void
location_gets_the_first_mapping_it_lies_in(void **state)
{
    (void)state;
    assert_mapped("5000-6000: /main\n1000-4000: /a.so\n2000-8000: /b.so\n",
                  ADDRESSES(0x1000, 0x1fff, 0x3fff, 0x4000, 0x5000, 0x5fff,
                            0x6000, 0x7fff),
                  "5000-6000 0 /main ;1000-4000 0 /a.so ;2000-8000 0 /b.so ;",
                  (uint32_t[]){1, 1, 1, 2, 0, 0, 2, 2});
    assert_mapped("1000-2000: /main\n1000-2000: /b.so\n2000-2000: /c.so\n",
                  ADDRESSES(0x1000, 0x1fff),
                  "1000-2000 0 /main ;1000-2000 0 /b.so ;2000-2000 0 /c.so ;",
                  (uint32_t[]){0, 0});
}

static void
address_0_and_profile_without_maps(void **state)
{
    (void)state;
    assert_mapped("", ADDRESSES(0), "", (uint32_t[]){PPROF_NONE});
    assert_mapped("", ADDRESSES(0, 7), "0-ffffffffffffffff 0  ;",
                  (uint32_t[]){PPROF_NONE, 0});
}

static void
addresses_outside_get_one_mapping_made_up(void **state)
{
    (void)state;
    assert_mapped(
        "1000-2000: /main\n", ADDRESSES(0xfff, 0x1000, 0x2000, UINT64_MAX),
        "1000-2000 0 /main ;0-ffffffffffffffff 0  ;", (uint32_t[]){1, 0, 1, 1});
}

static void
mapping_without_its_first_part_is_extended(void **state)
{
    (void)state;
    assert_mapped("8000-9000: /main\n3000-4000: /a.so (@1000)\n"
                  "6000-7000: /b.so (@1000)\n",
                  ADDRESSES(0x2000, 0x2fff, 0x5fff),
                  "8000-9000 0 /main ;2000-4000 0 /a.so ;5000-7000 0 /b.so ;",
                  (uint32_t[]){1, 1, 2});
    /* Not any more once there is one for everything. */
    assert_mapped("8000-9000: /main\n3000-4000: /a.so (@1000)\n",
                  ADDRESSES(0x1fff, 0x2000),
                  "8000-9000 0 /main ;3000-4000 1000 /a.so ;"
                  "0-ffffffffffffffff 0  ;",
                  (uint32_t[]){2, 2});
    /* An offset above the start leads nowhere. */
    assert_mapped("8000-9000: /main\n3000-4000: /a.so (@3001)\n",
                  ADDRESSES(0x2000),
                  "8000-9000 0 /main ;3000-4000 3001 /a.so ;"
                  "0-ffffffffffffffff 0  ;",
                  (uint32_t[]){2});
}

static void
program_at_its_usual_address_begins_there(void **state)
{
    (void)state;
    assert_mapped("402000-403000: /main (@2000)\n", ADDRESSES(0x400010),
                  "400000-403000 0 /main ;", (uint32_t[]){0});
}

static void
huge_pages_in_front_of_the_program_go(void **state)
{
    (void)state;
    assert_mapped("400000-500000: /anon_hugepage(deleted)\n"
                  "500000-600000: /main (@100000)\n",
                  ADDRESSES(0x400010), "400000-600000 0 /main ;",
                  (uint32_t[]){0});
    assert_mapped("400000-500000: /anon_hugepage\n500001-600000: /main\n",
                  ADDRESSES(0x400010),
                  "400000-500000 0 /anon_hugepage ;500001-600000 0 /main ;",
                  (uint32_t[]){0});
}

/* What a name says about the kernel's relocation stays in it. Source:
 * TestParseKernelRelocation. */
static void
kernel_mapping_keeps_its_symbol(void **state)
{
    (void)state;
    assert_mapped("1000-2000: /main\n"
                  "ffffffff81000000-ffffffffa0000000 r-xp 0 00:00 0 "
                  "[kernel.kallsyms]_text\n",
                  ADDRESSES(0xffffffff81000010),
                  "1000-2000 0 /main ;"
                  "ffffffff81000000-ffffffffa0000000 0 "
                  "[kernel.kallsyms]_text ;",
                  (uint32_t[]){1});
}

static void
unused_locations_and_functions_go_and_order_is_of_use(void **state)
{
    struct pprof_profile *p = cpprof__pprof_make();
    struct cpprof__maker m = {.p = p};
    uint32_t frames[4], i;
    int64_t value = 1;

    (void)state;
    assert_non_null(p);
    cpprof__make_sample_type(&m, "samples", "count");
    for (i = 0; i < 4; i++) {
        char name[] = {(char)('a' + i), '\0'};
        uint32_t s = cpprof__make_text(&m, name);

        frames[i] = cpprof__make_location(
            &m, PPROF_NONE, 0, cpprof__make_function(&m, s, s, 0), i + 1);
    }
    cpprof__make_sample(&m, (uint32_t[]){frames[3], frames[1]}, 2, &value);
    cpprof__make_sample(&m, (uint32_t[]){frames[1], frames[0]}, 2, &value);
    assert_false(m.failed);
    cpprof__maker_free(&m);
    assert_int_equal(cpprof__remap(p, NULL), CPPROF_OK);
    assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    assert_int_equal(p->locations.n, 3);
    assert_int_equal(p->functions.n, 3);
    assert_memory_equal(p->frames.at, ((uint32_t[]){0, 1, 1, 2}), 16);
    for (i = 0; i < 3; i++) {
        assert_int_equal(p->locations.at[i].id, i + 1);
        assert_int_equal(p->functions.at[i].id, i + 1);
        assert_int_equal(p->lines.at[p->locations.at[i].first_line].function,
                         i);
        assert_int_equal(*pprof_text(p, p->functions.at[i].name, NULL),
                         "dba"[i]);
    }
    pprof_free(p);
}

/* ---------------------------------------------------- against the rule ---- */

static uint64_t
next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return *seed >> 33;
}

/* The reference's two loops, as they are. */
static uint32_t
slow_mapping(struct pprof_mapping *all, size_t *n, uint64_t address)
{
    size_t i;

    for (i = 0; i < *n; i++)
        if (all[i].start <= address && address < all[i].limit)
            return (uint32_t)i;
    for (i = 0; i < *n; i++) {
        if (!all[i].offset || all[i].start - all[i].offset > address ||
            address >= all[i].start)
            continue;
        all[i].start -= all[i].offset;
        all[i].offset = 0;
        return (uint32_t)i;
    }
    all[*n] = (struct pprof_mapping){.limit = UINT64_MAX};
    return (uint32_t)(*n)++;
}

static void
mappings_are_found_as_by_looking_at_each(void **state)
{
    uint64_t seed = 1, addresses[16];
    unsigned round, i;

    (void)state;
    for (round = 0; round < 2000; round++) {
        struct pprof_mapping all[16] = {0};
        size_t n_maps = next_random(&seed) % 8, n = 0;
        char text[1024] = "";
        struct pprof_profile *p;

        for (i = 0; i < n_maps; i++) {
            all[i].start = next_random(&seed) % 200;
            all[i].limit = next_random(&seed) % 200;
            all[i].offset = next_random(&seed) % 60;
            n += (size_t)snprintf(
                text + n, sizeof text - n, "%02x-%02x: [%u] (@%x)\n",
                (unsigned)all[i].start, (unsigned)all[i].limit, i,
                (unsigned)all[i].offset);
        }
        for (i = 0; i < 16; i++)
            addresses[i] = 1 + (i * 37 + round) % 210;
        p = mapped(text, addresses, 16);
        for (i = 0; i < 16; i++)
            assert_int_equal(p->locations.at[i].mapping,
                             slow_mapping(all, &n_maps, addresses[i]));
        pprof_free(p);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_a_line_is_read),
        cmocka_unit_test(log_prefix_is_skipped),
        cmocka_unit_test(attributes_are_replaced_in_the_lines_below),
        cmocka_unit_test(first_of_attributes_that_match_wins),
        cmocka_unit_test(attributes_that_grow_without_end_are_cut_off),
        cmocka_unit_test(adjacent_mappings_of_one_file_are_joined),
        cmocka_unit_test(first_that_is_no_library_is_the_program),
        cmocka_unit_test(deleted_library_is_not_the_program),
        cmocka_unit_test(location_gets_the_first_mapping_it_lies_in),
        cmocka_unit_test(address_0_and_profile_without_maps),
        cmocka_unit_test(addresses_outside_get_one_mapping_made_up),
        cmocka_unit_test(mapping_without_its_first_part_is_extended),
        cmocka_unit_test(program_at_its_usual_address_begins_there),
        cmocka_unit_test(huge_pages_in_front_of_the_program_go),
        cmocka_unit_test(kernel_mapping_keeps_its_symbol),
        cmocka_unit_test(unused_locations_and_functions_go_and_order_is_of_use),
        cmocka_unit_test(mappings_are_found_as_by_looking_at_each),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
