/* SPDX-License-Identifier: MIT */
/*
 * Where an address lies in an image, which files are images at all, and where
 * they are looked for. Names themselves: tests/e2e/symbolize.sh.
 */
#include "profile/model/make.h"
#include "symbolize/image.h"
#include <cpprof/pprof/symbolize.h>

#include <elf.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "oom.h"

#define KERNEL 0xffffffff81000000u

/* ---------------------------------------------------------- addresses ---- */

/* What GNU ld makes: a part of data, one of code, ... */
static struct cpprof__load pie_loads[] = {{0, 0, 0x600, 0x600, false},
                                          {0x1000, 0x1000, 0x900, 0x900, true},
                                          {0x2000, 0x2000, 0x300, 0x300, false},
                                          {0x2d00, 0x3d00, 0x300, 0x900, 0}};

/* What lld makes: several parts share a page of the file. */
static struct cpprof__load lld_loads[] = {{0, 0, 0x6a0, 0x6a0, false},
                                          {0x6a0, 0x16a0, 0x500, 0x500, true},
                                          {0xba0, 0x2ba0, 0x200, 0x200, false}};

static struct cpprof__load fixed_load[] = {{0, 0x400000, 0x9000, 0x9000, true}};

static struct cpprof__load kernel_load[] = {
    {0x200000, KERNEL, 0x800000, 0x800000, true}};

/* What objcopy --only-keep-debug leaves. */
static struct cpprof__load debug_loads[] = {{0, 0, 0x600, 0x600, false},
                                            {0, 0x1000, 0, 0x900, true},
                                            {0, 0x3d00, 0, 0x900, false}};

#define IMAGE(type, loads)                                                     \
    {                                                                          \
        type, loads, sizeof loads / sizeof *loads, ""                          \
    }

static const struct address_case {
    const char *name;
    struct cpprof__image image;
    struct cpprof__mapped_range range;
    uint64_t pc;
    uint64_t address; /* UINT64_MAX: none */
} address_cases[] = {
    {"PIE, its code",
     IMAGE(ET_DYN, pie_loads),
     {0x55550001000, 0x55550002000, 0x1000},
     0x55550001234,
     0x1234},
    {"PIE, all parts joined",
     IMAGE(ET_DYN, pie_loads),
     {0x55550000000, 0x55550005000, 0},
     0x55550001234,
     0x1234},
    {"fixed",
     IMAGE(ET_EXEC, fixed_load),
     {0x400000, 0x409000, 0},
     0x401234,
     0x401234},
    {"fixed, moved by a tool",
     IMAGE(ET_EXEC, fixed_load),
     {0x800000, 0x809000, 0},
     0x801234,
     0x401234},
    {"fixed, no mapping known",
     IMAGE(ET_EXEC, fixed_load),
     {0, UINT64_MAX, 0},
     0x401234,
     0x401234},
    {"fixed, a mapping of nothing",
     IMAGE(ET_EXEC, fixed_load),
     {0, 0, 0},
     0x401234,
     0x401234},
    {"PIE, no mapping known",
     IMAGE(ET_DYN, pie_loads),
     {0, UINT64_MAX, 0},
     0x1234,
     0x1234},
    {"shared page, code",
     IMAGE(ET_DYN, lld_loads),
     {0x7f0000001000, 0x7f0000002000, 0},
     0x7f00000017a0,
     0x17a0},
    {"no part there",
     IMAGE(ET_DYN, pie_loads),
     {0x55550001000, 0x55550002000, 0x9000},
     0x55550001234,
     UINT64_MAX},
    {"kernel where its file says",
     IMAGE(ET_EXEC, kernel_load),
     {KERNEL, KERNEL + 0x800000, 0},
     KERNEL + 0x1234,
     KERNEL + 0x1234},
    {"kernel moved",
     IMAGE(ET_EXEC, kernel_load),
     {KERNEL + 0x7000000, KERNEL + 0x7800000, 0},
     KERNEL + 0x7001234,
     KERNEL + 0x1234},
    {"kernel at 0",
     IMAGE(ET_EXEC, kernel_load),
     {0, 0x800000, 0x200000},
     0x1234,
     KERNEL + 0x1234},
    {"object file", {ET_REL, NULL, 0, ""}, {0x1000, 0x2000, 0}, 0x1234, 0x234},
    {"object file, with an offset",
     {ET_REL, NULL, 0, ""},
     {0x1000, 0x2000, 0x40},
     0x1234,
     UINT64_MAX},
    {"core file",
     IMAGE(ET_CORE, fixed_load),
     {0x400000, 0x409000, 0},
     0x401234,
     UINT64_MAX},
    {"debug file, its code",
     IMAGE(ET_DYN, debug_loads),
     {0x55550001000, 0x55550002000, 0x1000},
     0x55550001234,
     0x1234},
};

static void
address_is_that_of_the_image(void **state)
{
    size_t i;

    for (i = 0; i < sizeof address_cases / sizeof *address_cases; i++) {
        const struct address_case *c = &address_cases[i];
        uint64_t address = UINT64_MAX;

        if (cpprof__image_address(&c->image, &c->range, c->pc, &address) !=
                (c->address != UINT64_MAX) ||
            address != c->address)
            fail_msg("%s: %llx, not %llx", c->name, (unsigned long long)address,
                     (unsigned long long)c->address);
    }
}

/* -------------------------------------------------------------- files ---- */

static char folder[64];

static int
make_folder(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/cpprof-symbolize-XXXXXX");
    return !mkdtemp(folder) || chdir(folder);
}

static int
remove_folder(void **state)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") || system(command);
}

static void
write_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void
refused(const char *path, const char *text)
{
    struct cpprof__image image = {0};
    struct cpprof_error error = {0};

    assert_int_not_equal(cpprof__image_open(&image, path, &error), CPPROF_OK);
    assert_string_equal(error.text, text);
}

static void
files_that_are_no_images_are_told_of(void **state)
{
    write_bytes("empty", "", 0);
    write_bytes("text", "hello, world", 12);
    write_bytes("short", ELFMAG "\2\1\1", 7);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    refused("nothing", "stat nothing: no such file or directory");
    refused("empty", "error reading magic number from empty: EOF");
    refused("text", "unrecognized binary format: text");
    refused("short", "error reading ELF file short: malformed");
    refused("pipe", "unrecognized binary format: pipe");
    refused(".", "unrecognized binary format: .");
}

/* Headers that lie cost a bounded number of reads, and never more memory. */
static void
damaged_headers_are_survived(void **state)
{
    unsigned char bytes[4096], copy[sizeof bytes];
    FILE *self = fopen("/proc/self/exe", "r");
    struct cpprof_error error;
    int round, n;

    assert_non_null(self);
    assert_int_equal(fread(bytes, 1, sizeof bytes, self), sizeof bytes);
    fclose(self);
    srand(1);
    for (round = 0; round < 2000; round++) {
        struct cpprof__image image = {0};
        struct cpprof__mapped_range range = {0x1000, 0x9000, 0};
        uint64_t address;

        memcpy(copy, bytes, sizeof bytes);
        for (n = 1 + rand() % 6; n > 0; n--)
            copy[4 + (size_t)rand() % 900] = (unsigned char)rand();
        write_bytes("damaged", copy, sizeof copy);
        if (cpprof__image_open(&image, "damaged", &error) == CPPROF_OK) {
            assert_true(image.n_loads <= 1024);
            cpprof__image_address(&image, &range, 0x1234, &address);
            cpprof__image_fits(&image, "damaged", &range, &error);
        } else {
            assert_int_not_equal(error.text[0], 0);
        }
        cpprof__image_close(&image);
    }
}

/* ---------------------------------------------------------- searching ---- */

static char self_path[PATH_MAX];
static char self_id[CPPROF_BUILD_ID_MAX];
static char warnings[4096];

static void
take_warning(void *ctx, const char *text)
{
    size_t n = strlen(warnings);

    snprintf(warnings + n, sizeof warnings - n, "%s\n", text);
}

static const struct pprof_symbolize_options options = {.size = sizeof options,
                                                       .warn = take_warning};

/* A profile with one location in one mapping. */
static struct pprof_profile *
make_profile(const char *file, const char *build_id)
{
    struct pprof_profile *p = cpprof__pprof_make();
    struct cpprof__maker maker = {.p = p};
    uint32_t mapping, location;
    int64_t value = 1;

    assert_non_null(p);
    cpprof__make_sample_type(&maker, "samples", "count");
    mapping = cpprof__make_mapping(&maker, 0x1000, 0x100000, 0x1000,
                                   cpprof__make_text(&maker, file),
                                   cpprof__make_text(&maker, build_id));
    location = cpprof__make_location(&maker, mapping, 0x1234, PPROF_NONE, 0);
    cpprof__make_sample(&maker, &location, 1, &value);
    assert_false(maker.failed);
    cpprof__maker_free(&maker);
    warnings[0] = 0;
    return p;
}

static const char *
file_of(const struct pprof_profile *p)
{
    return pprof_text(p, pprof_mappings(p)[0].file, NULL);
}

static int
make_links(void **state)
{
    ssize_t n = readlink("/proc/self/exe", self_path, sizeof self_path - 1);
    struct cpprof_error error;

    if (n < 0 || make_folder(state))
        return -1;
    self_path[n] = 0;
    return cpprof_build_id_of_file(self_path, self_id, &error) != CPPROF_OK;
}

/* Put this program at that path, made with all folders. */
static void
put_binary(const char *path)
{
    char command[2 * PATH_MAX];

    snprintf(command, sizeof command, "mkdir -p $(dirname %s)", path);
    assert_int_equal(system(command), 0);
    assert_int_equal(symlink(self_path, path), 0);
}

/* FILE of that build id is found at path, when it is there alone. */
static void
finds(const char *file, const char *build_id, const char *path)
{
    struct pprof_profile *p = make_profile(file, build_id);
    char wanted[PATH_MAX + 8];

    put_binary(path);
    assert_int_equal(pprof_find_binaries(p, "none:here/", &options, NULL),
                     CPPROF_OK);
    snprintf(wanted, sizeof wanted, "%s", path);
    assert_string_equal(file_of(p), wanted);
    assert_string_equal(warnings, "");
    assert_int_equal(unlink(path), 0);
    pprof_free(p);
}

static void
binaries_are_found_in_every_layout(void **state)
{
    char path[PATH_MAX];

#define AT(...) (snprintf(path, sizeof path, __VA_ARGS__), path)
    finds("/usr/bin/tool", self_id, AT("here/%s/tool", self_id));
    finds("/usr/bin/tool", self_id, AT("here/%s/zzz", self_id));
    finds("/usr/bin/tool", self_id, AT("here/usr/bin/tool/%s", self_id));
    finds("/usr/bin/tool", self_id,
          AT("here/%.2s/%s.debug", self_id, self_id + 2));
    finds("", self_id, AT("here/%s/tool", self_id));
    assert_int_equal(system("rm -rf here"), 0);
    finds("/usr/bin/tool", "", "here/tool");
    finds("/usr/bin/tool", self_id, "here/usr/bin/tool");
    finds("/usr/bin/tool", "", "here/usr/bin/tool.debug");
    finds("/usr/bin/tool", "", "here/usr/bin/.debug/tool.debug");
    finds("/usr/bin/tool", "", "here/usr/lib/debug/usr/bin/tool.debug");
    finds("tool", "", "here/tool.debug");
#undef AT
}

static void
binary_of_another_build_id_is_told_of(void **state)
{
    struct pprof_profile *p = make_profile("/bin/tool", "0123abcd");
    char wanted[512];

    put_binary("here/tool");
    assert_int_equal(pprof_find_binaries(p, "here", &options, NULL), CPPROF_OK);
    assert_string_equal(file_of(p), "/bin/tool");
    snprintf(wanted, sizeof wanted,
             "Ignoring local file here/tool: build-id mismatch (0123abcd != "
             "%s)\n",
             self_id);
    assert_string_equal(warnings, wanted);
    pprof_free(p);
}

static void
folders_come_from_the_environment(void **state)
{
    struct pprof_profile *p = make_profile("/bin/tool", "");

    put_binary("home/pprof/binaries/tool");
    setenv("HOME", "home", 1);
    unsetenv("PPROF_BINARY_PATH");
    assert_int_equal(pprof_find_binaries(p, NULL, NULL, NULL), CPPROF_OK);
    assert_string_equal(file_of(p), "home/pprof/binaries/tool");
    put_binary("set/binaries/tool");
    setenv("PPROF_BINARY_PATH", "set/binaries", 1);
    assert_int_equal(pprof_find_binaries(p, NULL, NULL, NULL), CPPROF_OK);
    assert_string_equal(file_of(p), "set/binaries/tool");
    pprof_free(p);
}

/* ---------------------------------------------------- what is missing ---- */

#define INCOMPLETE                                                             \
    "Some binary filenames not available. Symbolization may be incomplete.\n"  \
    "Try setting PPROF_BINARY_PATH to the search path for local binaries.\n"

static void
warns(const char *file, const char *build_id, const char *text)
{
    struct pprof_profile *p = make_profile(file, build_id);

    assert_int_equal(pprof_symbolize(p, &options, NULL), CPPROF_OK);
    assert_string_equal(warnings, text);
    assert_int_equal(pprof_mappings(p)[0].flags, 0);
    assert_int_equal(pprof_locations(p)[0].n_lines, 0);
    assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    pprof_free(p);
}

static void
missing_binary_is_told_of_once(void **state)
{
    char text[1024];

    warns("/none/tool", "",
          "Local symbolization failed for tool: stat /none/tool: no such file "
          "or directory\n" INCOMPLETE);
    warns("/none/tool", "0123abcd",
          "Local symbolization failed for tool (build ID 0123abcd): stat "
          "/none/tool: no such file or directory\n" INCOMPLETE);
    warns("", "", "Main binary filename not available.\n");
    warns("[vdso]", "", "");
    warns("http://host:80/debug/pprof/heap", "", "");
    snprintf(text, sizeof text,
             "Local symbolization failed for %s (build ID 0123abcd): build ID "
             "mismatch, the file has %s\n",
             strrchr(self_path, '/') + 1, self_id);
    warns(self_path, "0123abcd", text);
}

/* A program that was built with another version of the header has more members
 * or fewer. What this version does not know must be zero. */
static void
options_of_other_versions_are_taken_for_what_they_say(void **state)
{
    struct pprof_profile *p = make_profile("/none/tool", "");
    struct {
        struct pprof_symbolize_options known;
        uint64_t later;
    } o = {{.size = offsetof(struct pprof_symbolize_options, binaries),
            .n_binaries = 1},
           1};

    assert_int_equal(pprof_symbolize(p, &o.known, NULL), CPPROF_OK);
    assert_int_equal(pprof_find_binaries(p, "", &o.known, NULL), CPPROF_OK);
    o.known.n_binaries = 0;
    o.known.size = sizeof o;
    assert_int_equal(pprof_symbolize(p, &o.known, NULL), CPPROF_INVALID);
    o.later = 0;
    assert_int_equal(pprof_symbolize(p, &o.known, NULL), CPPROF_OK);
    o.known.size = 4;
    assert_int_equal(pprof_symbolize(p, &o.known, NULL), CPPROF_INVALID);
    assert_int_equal(pprof_find_binaries(p, "", &o.known, NULL),
                     CPPROF_INVALID);
    pprof_free(p);
}

static void
options_that_make_no_sense_are_refused(void **state)
{
    static const char *const none[] = {NULL};
    struct pprof_profile *p = make_profile("/none/tool", "");
    struct pprof_symbolize_options o = {.size = sizeof o, .flags = 8};

    assert_int_equal(pprof_symbolize(p, &o, NULL), CPPROF_INVALID);
    o.flags = 0;
    o.n_binaries = 1;
    assert_int_equal(pprof_symbolize(p, &o, NULL), CPPROF_INVALID);
    o.binaries = none;
    assert_int_equal(pprof_symbolize(p, &o, NULL), CPPROF_INVALID);
    pprof_free(p);
}

static void
failed_allocation_leaves_a_whole_profile(void **state)
{
    long n, n_failed = 0;

    oom_watch();
    assert_int_equal(mkdir("here", 0700), 0);
    for (n = 0; n < 200; n++) {
        struct pprof_profile *p = make_profile("/bin/tool", self_id);
        enum cpprof_status status;
        long live = oom.n_live;

        oom.countdown = n;
        status = pprof_find_binaries(p, "here:there", NULL, NULL);
        if (status == CPPROF_OK)
            status = pprof_symbolize(p, NULL, NULL);
        oom.countdown = -1;
        n_failed += status == CPPROF_NOMEM;
        assert_true(status == CPPROF_OK || status == CPPROF_NOMEM);
        assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
        /* The table of strings may have grown, nothing else. */
        assert_true(oom.n_live <= live + 1);
        pprof_free(p);
    }
    assert_true(n_failed > 10);
    assert_true(n_failed < 200);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(address_is_that_of_the_image),
        cmocka_unit_test_setup_teardown(files_that_are_no_images_are_told_of,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(damaged_headers_are_survived,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(binaries_are_found_in_every_layout,
                                        make_links, remove_folder),
        cmocka_unit_test_setup_teardown(binary_of_another_build_id_is_told_of,
                                        make_links, remove_folder),
        cmocka_unit_test_setup_teardown(folders_come_from_the_environment,
                                        make_links, remove_folder),
        cmocka_unit_test_setup_teardown(missing_binary_is_told_of_once,
                                        make_links, remove_folder),
        cmocka_unit_test_setup_teardown(
            options_of_other_versions_are_taken_for_what_they_say, make_links,
            remove_folder),
        cmocka_unit_test_setup_teardown(options_that_make_no_sense_are_refused,
                                        make_links, remove_folder),
        cmocka_unit_test_setup_teardown(
            failed_allocation_leaves_a_whole_profile, make_links,
            remove_folder),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
