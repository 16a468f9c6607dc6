/* SPDX-License-Identifier: MIT */
/*
 * Which file the symbolizer reads: debug information apart from the image,
 * images that are gone or not the ones that ran, and what is not ELF.
 */
#include "symbol_fixture.h"

#include <sys/auxv.h>

extern const char *cpprof__debug_root;

static int
make_library(void **state)
{
    if (make_folder(state))
        return -1;
    write_file("inline.c", INLINE_SOURCE);
    return !run("gcc -O2 -fPIC -shared -g -Wl,--build-id=sha1 -o full.so "
                "%s/inline.c",
                folder);
}

/* name.so without debug information, and name.debug with it; what: the option
 * of objcopy that takes it away. */
static void
make_stripped(const char *name, const char *what)
{
    assert_true(run("objcopy --only-keep-debug full.so %s.debug && "
                    "objcopy %s full.so %s.so",
                    name, what, name));
}

static void
debug_link_beside_the_library_is_followed(void **state)
{
    make_stripped("linked", "--strip-all");
    assert_true(run("objcopy --add-gnu-debuglink=linked.debug linked.so"));
    check_library("linked.so", check_inlined);
}

static void
debug_link_in_the_debug_folder_is_followed(void **state)
{
    make_stripped("below", "--strip-debug");
    assert_true(run("objcopy --add-gnu-debuglink=below.debug below.so && "
                    "mkdir .debug && mv below.debug .debug"));
    check_library("below.so", check_inlined);
}

static void
debug_link_below_the_debug_root_is_followed(void **state)
{
    char root[PATH_MAX];

    make_stripped("rooted", "--strip-debug");
    assert_true(run("objcopy --add-gnu-debuglink=rooted.debug rooted.so && "
                    "mkdir -p root%s && mv rooted.debug root%s",
                    folder, folder));
    snprintf(root, sizeof root, "%s/root", folder);
    cpprof__debug_root = root;
    check_library("rooted.so", check_inlined);
    cpprof__debug_root = "/usr/lib/debug";
}

static void
build_id_below_the_debug_root_is_found(void **state)
{
    char root[PATH_MAX];

    make_stripped("by-id", "--strip-all");
    assert_true(run("id=$(readelf -n by-id.so | sed -n "
                    "'s/.*Build ID: //p') && "
                    "first=$(echo $id | cut -c1-2) && "
                    "mkdir -p tree/.build-id/$first && mv by-id.debug "
                    "tree/.build-id/$first/$(echo $id | cut -c3-).debug"));
    snprintf(root, sizeof root, "%s/tree", folder);
    cpprof__debug_root = root;
    check_library("by-id.so", check_inlined);
    cpprof__debug_root = "/usr/lib/debug";
}

/* As a package of another version leaves it, or a folder that was copied. */
static void
debug_file_of_another_build_below_the_debug_root_is_not_used(void **state)
{
    char root[PATH_MAX];

    make_stripped("misnamed", "--strip-debug");
    assert_true(
        run("gcc -O2 -fPIC -shared -g -DOTHER=1 "
            "-Wl,--build-id=0x1122334455667788 -o other.tmp inline.c && "
            "id=$(readelf -n misnamed.so | sed -n "
            "'s/.*Build ID: //p') && "
            "first=$(echo $id | cut -c1-2) && "
            "mkdir -p wrong/.build-id/$first && "
            "objcopy --only-keep-debug other.tmp "
            "wrong/.build-id/$first/$(echo $id | cut -c3-).debug"));
    snprintf(root, sizeof root, "%s/wrong", folder);
    cpprof__debug_root = root;
    check_library("misnamed.so", check_symbol_only);
    assert_true(run("cp misnamed.debug wrong/.build-id/*/*.debug"));
    check_library("misnamed.so", check_inlined);
    cpprof__debug_root = "/usr/lib/debug";
}

static void
debug_link_of_another_build_is_not_followed(void **state)
{
    make_stripped("other", "--strip-debug");
    assert_true(run("gcc -O2 -fPIC -shared -g -DOTHER=1 "
                    "-Wl,--build-id=0x1122334455667788 -o other.tmp inline.c &&"
                    " objcopy --only-keep-debug other.tmp other.debug && "
                    "objcopy --add-gnu-debuglink=other.debug other.so"));
    check_library("other.so", check_symbol_only);
}

static void
debug_link_without_build_id_needs_its_checksum(void **state)
{
    assert_true(run("gcc -O2 -fPIC -shared -g -Wl,--build-id=none -o full-n.so "
                    "%s/inline.c",
                    folder));
    assert_true(run("objcopy --only-keep-debug full-n.so crc.debug && "
                    "objcopy --strip-debug --add-gnu-debuglink=crc.debug "
                    "full-n.so crc-right.so && "
                    "cp crc-right.so crc-wrong.so"));
    check_library("crc-right.so", check_inlined);
    assert_true(run("printf x >> crc.debug"));
    check_library("crc-wrong.so", check_symbol_only);
}

static void
stripped_debug_information_leaves_the_symbol_table(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    make_stripped("symtab", "--strip-debug");
    check_library("symtab.so", check_symbol_only);
    load(&l, "symtab.so", "at_hidden");
    symbolize(&l, false);
    assert_int_equal(frames_at(&l, "at_hidden", frames), 1);
    assert_string_equal(frames[0].name, "hidden");
    unload(&l);
}

/* hidden() lies between exported functions and has no symbol any more: it is
 * none of them, but the function that the frame table has. */
static void
stripped_symbol_table_leaves_what_is_exported(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    make_stripped("dynsym", "--strip-all");
    check_library("dynsym.so", check_symbol_only);
    load(&l, "dynsym.so", "at_hidden");
    symbolize(&l, false);
    assert_int_equal(frames_at(&l, "at_hidden", frames), 1);
    assert_true(frames[0].is_stand_in);
    assert_int_equal(strncmp(frames[0].name, "[dynsym.so+0x", 13), 0);
    unload(&l);
}

/* As cfree, which libc keeps for old programs, is where free is. */
static void
old_version_of_a_symbol_goes_last(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;
    int stripped;

    write_file("versions.c",
               "int work(int x)\n"
               "{\n"
               "    __asm__ volatile(\".globl at_v\\nat_v: nop\");\n"
               "    return x + 1;\n"
               "}\n"
               "int old_work(int x) __attribute__((alias(\"work\")));\n"
               "__asm__(\".symver old_work,a@V1\");\n");
    write_file("versions.map", "V1 { global: a; }; V2 { global: work; at_v; "
                               "local: *; } V1;\n");
    for (stripped = 0; stripped < 2; stripped++) {
        assert_true(run("gcc -O2 -fPIC -shared %s -Wl,--version-script="
                        "versions.map -o versions%d.so versions.c",
                        stripped ? "-s" : "", stripped));
        load(&l, stripped ? "versions1.so" : "versions0.so", "at_v");
        symbolize(&l, false);
        assert_int_equal(frames_at(&l, "at_v", frames), 1);
        assert_string_equal(frames[0].name, "work");
        assert_string_equal(frames[0].system_name, "work");
        unload(&l);
    }
}

static void
mini_debug_info_names_what_is_not_exported(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    NEED("xz");
    make_stripped("mini", "--strip-all");
    assert_true(run("objcopy --strip-debug full.so mini.symbols && "
                    "xz -k mini.symbols && objcopy --add-section "
                    ".gnu_debugdata=mini.symbols.xz mini.so"));
    load(&l, "mini.so", "at_hidden");
    symbolize(&l, false);
    assert_int_equal(frames_at(&l, "at_hidden", frames), 1);
    assert_string_equal(frames[0].name, "hidden");
    unload(&l);
}

static char told[512];

static void
note_told(void *ctx, const char *text)
{
    (void)ctx;
    assert_string_equal(told, ""); /* once */
    snprintf(told, sizeof told, "%s", text);
}

/* Some bytes in the file, and much when it is unpacked. */
static void
mini_debug_info_of_enormous_size_is_told_and_not_read(void **state)
{
    const struct cpprof__symbolizer_options options = {
        .fetcher = {.warn = note_told}};
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    NEED("xz");
    make_stripped("bomb", "--strip-all");
    assert_true(run("objcopy --strip-debug full.so bomb.symbols && "
                    "truncate -s 100M bomb.symbols && xz -0 bomb.symbols && "
                    "objcopy --add-section "
                    ".gnu_debugdata=bomb.symbols.xz bomb.so"));
    load(&l, "bomb.so", "at_hidden");
    l.symbolizer = cpprof__symbolizer.make(&options);
    assert_non_null(l.symbolizer);
    l.index = cpprof__symbolizer.add_mapping(l.symbolizer, &l.mapping);
    frames_at(&l, "at_hidden", frames);
    frames_at(&l, "at_leaf", frames);
    assert_non_null(strstr(told, "bomb.so: its .gnu_debugdata is more than 64 "
                                 "MB and is not read"));
    unload(&l);
}

static void
debug_information_shared_by_dwz_is_read(void **state)
{
    NEED("dwz");
    assert_true(run("cp full.so dwz1.so && cp full.so dwz2.so && "
                    "dwz -m %s/shared.dwz dwz1.so dwz2.so",
                    folder));
    check_library("dwz1.so", check_inlined);
}

/* Ask for an address of a library whose debug information cannot be read. */
static void
check_unread(const char *name, const char *wanted)
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
    assert_string_equal(frames[0].name, "outer");
    frames_at(&l, "at_hidden", frames);
    assert_non_null(strstr(told, wanted));
    assert_false(cpprof__symbolizer.knows_inlines(l.symbolizer, l.index));
    unload(&l);
}

static void
shared_debug_information_that_is_gone_is_told(void **state)
{
    NEED("dwz");
    assert_true(run("cp full.so dwz3.so && cp full.so dwz4.so && "
                    "dwz -m gone.dwz dwz3.so dwz4.so && rm gone.dwz"));
    check_unread("dwz3.so",
                 "dwz3.so: inlined functions are missing: gone.dwz, which dwz "
                 "moved them to, is not there or of another build");
    assert_true(run("cp full.so gone.dwz"));
    check_unread("dwz4.so", "or of another build");
}

/* Old libelf do not know zstd; old objcopy do not, either. */
static void
debug_information_packed_by_zstd_is_read_or_told(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;
    size_t n;

    if (!run("objcopy --compress-debug-sections=zstd full.so zstd.so "
             "2>/dev/null")) {
        say_skipped("an objcopy that knows zstd");
        return;
    }
    load(&l, "zstd.so", "at_leaf");
    symbolize(&l, false);
    n = frames_at(&l, "at_leaf", frames);
    unload(&l);
    if (n == 1)
        check_unread("zstd.so", "zstd.so: lines and inlined functions are "
                                "missing: libelf here cannot unpack");
    else
        check_library("zstd.so", check_inlined);
}

static void
image_of_another_build_id_is_not_used(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    assert_true(run("cp full.so wrong-id.so"));
    load(&l, "wrong-id.so", "at_leaf");
    build_id_of(&l);
    symbolize(&l, false);
    check_inlined(&l);
    cpprof__symbolizer.free(l.symbolizer);
    memset(l.build_id, 'a', 8);
    symbolize(&l, false);
    assert_int_equal(frames_at(&l, "at_leaf", frames), 0);
    assert_false(cpprof__symbolizer.knows_inlines(l.symbolizer, l.index));
    unload(&l);
}

/* What a package upgrade does: another file has the name now. */
static void
image_that_was_replaced_is_not_misread(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;
    size_t n;

    assert_true(run("cp full.so replaced.so && "
                    "(echo 'int first(void) { return 1; }'; cat inline.c) > "
                    "later.c && gcc -O2 -fPIC -shared -g "
                    "-Wl,--build-id=sha1 -o later.so later.c"));
    load(&l, "replaced.so", "at_leaf");
    build_id_of(&l);
    assert_true(run("mv later.so replaced.so"));
    symbolize(&l, false);
    n = frames_at(&l, "at_leaf", frames);
    /* The kernel shows the file that runs to those who may look. */
    if (n)
        check_inlined(&l);
    else
        assert_int_not_equal(geteuid(), 0);
    unload(&l);
}

/* Without a build id, too. */
static void
image_that_was_deleted_is_shown_by_the_kernel(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    assert_true(run("cp full.so deleted.so"));
    load(&l, "deleted.so", "at_leaf");
    assert_int_equal(unlink("deleted.so"), 0);
    symbolize(&l, false);
    if (frames_at(&l, "at_leaf", frames))
        check_inlined(&l);
    else
        assert_int_not_equal(geteuid(), 0);
    unload(&l);
}

static void
image_with_another_inode_is_not_read(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    load(&l, "full.so", "at_leaf");
    l.mapping.inode++;
    symbolize(&l, false);
    assert_int_equal(frames_at(&l, "at_leaf", frames), 0);
    build_id_of(&l); /* by which it is known */
    cpprof__symbolizer.free(l.symbolizer);
    symbolize(&l, false);
    check_inlined(&l);
    unload(&l);
}

static void
image_that_is_gone_is_read_from_its_debug_file(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;
    char root[PATH_MAX];

    make_stripped("gone", "--strip-all");
    assert_true(run("id=$(readelf -n gone.so | sed -n "
                    "'s/.*Build ID: //p') && "
                    "first=$(echo $id | cut -c1-2) && "
                    "mkdir -p gone/.build-id/$first && mv gone.debug "
                    "gone/.build-id/$first/$(echo $id | cut -c3-).debug"));
    load(&l, "gone.so", "at_leaf");
    build_id_of(&l);
    snprintf(l.path, sizeof l.path, "/nowhere/gone.so");
    l.mapping.limit = l.mapping.start; /* nor among its map_files */
    snprintf(root, sizeof root, "%s/gone", folder);
    cpprof__debug_root = root;
    symbolize(&l, false);
    assert_int_equal(frames_at(&l, "at_leaf", frames), 3);
    check_frame(&frames[0], "leaf", "inline.c", 4, 2);
    unload(&l);
    cpprof__debug_root = "/usr/lib/debug";
}

/* Every length from nothing to all of it, in steps that are no multiple. */
static void
truncated_image_is_no_harm(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;
    long n_bytes;
    long n;
    size_t n_named = 0;
    FILE *file;

    load(&l, "full.so", "at_leaf");
    file = fopen("full.so", "r");
    fseek(file, 0, SEEK_END);
    n_bytes = ftell(file);
    fclose(file);
    l.mapping.inode = 0; /* the one at the path is read */
    snprintf(l.path, sizeof l.path, "%s/short.so", folder);
    for (n = 0; n < n_bytes; n += 97) {
        assert_true(run("head -c %ld full.so > short.so", n));
        symbolize(&l, false);
        n_named +=
            frames_at(&l, "at_leaf", frames) > 0 && !frames[0].is_stand_in;
        cpprof__symbolizer.free(l.symbolizer);
    }
    /* The section headers come last: without them there are no symbols. */
    assert_true(n_named <= 1);
    dlclose(l.handle);
}

static void
what_is_no_image_is_no_harm(void **state)
{
    static const char *const paths[] = {"/dev/zero",   "/dev/null", "/tmp",
                                        "/etc/passwd", "/nowhere",  ""};
    struct cpprof__frame frame;
    struct loaded l;
    size_t i;

    assert_true(run("mkfifo fifo"));
    for (i = 0; i <= sizeof paths / sizeof *paths; i++) {
        memset(&l, 0, sizeof l);
        snprintf(l.path, sizeof l.path, "%s/fifo", folder);
        if (i < sizeof paths / sizeof *paths)
            snprintf(l.path, sizeof l.path, "%s", paths[i]);
        l.mapping = (struct cpprof__symbolizer_mapping){0x1000, 0x2000,     0,
                                                        l.path, l.build_id, 0};
        symbolize(&l, false);
        assert_int_equal(
            cpprof__symbolizer.resolve(l.symbolizer, 0, 0x1800, &frame, 1), 0);
        assert_false(cpprof__symbolizer.knows_inlines(l.symbolizer, 0));
        unload(&l);
    }
}

static void
vdso_is_read_from_this_process(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l = {0};
    void *clock;

    l.handle = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!l.handle || !getauxval(AT_SYSINFO_EHDR)) {
        say_skipped("vdso");
        return;
    }
    clock = dlsym(l.handle, "__vdso_clock_gettime");
    if (!clock)
        clock = dlsym(l.handle, "__kernel_clock_gettime");
    assert_non_null(clock);
    find_mapping(&l, (uint64_t)(uintptr_t)clock);
    assert_string_equal(l.path, "[vdso]");
    symbolize(&l, false);
    assert_int_equal(frames_of(&l, (uint64_t)(uintptr_t)clock + 1, frames), 1);
    assert_non_null(strstr(frames[0].name, "clock_gettime"));
    /* Its first bytes are no code. */
    assert_int_equal(frames_of(&l, l.mapping.start, frames), 1);
    assert_string_equal(frames[0].name, "[vdso]");
    assert_true(frames[0].is_stand_in);
    unload(&l);
}

/* The stubs have no symbols; each is named by what it jumps to, and the one
 * that asks the loader by its address: it is no part of who jumps to another.
 */
static void
plt_stub_has_the_name_of_its_function(void **state)
{
    struct cpprof__frame frame;
    struct loaded l;
    unsigned long address;
    unsigned long n_bytes;
    unsigned long named;
    unsigned long i;
    size_t n_stubs = 0;
    uint64_t base;
    FILE *sections;

    write_file("calls.c", "int getppid(void); int getpgrp(void);\n"
                          "int calls(void) { return getppid() + getpgrp(); }\n"
                          "int jumps(void) { return getppid(); }\n");
    assert_true(run("gcc -O2 -fPIC -shared -fplt -Wl,-z,lazy -o calls.so "
                    "calls.c && "
                    "readelf -SW calls.so | awk '{ sub(/^ *\\[ */, \"\"); "
                    "if ($2 == \".plt.sec\" || $2 == \".plt\") "
                    "print $4, $6 }' > calls.plt"));
    load(&l, "calls.so", "calls");
    base = l.mapping.start - l.mapping.offset;
    symbolize(&l, false);
    sections = fopen("calls.plt", "r");
    while (fscanf(sections, "%lx %lx", &address, &n_bytes) == 2)
        for (i = 0; i < n_bytes; i += 4)
            if (!cpprof__symbolizer.resolve(l.symbolizer, l.index,
                                            base + address + i, &frame, 1)) {
                continue;
            } else if (frame.is_stand_in) {
                assert_int_equal(sscanf(frame.name, "[calls.so+0x%lx]", &named),
                                 1);
                assert_in_range(named, address, address + i);
            } else {
                assert_true(!strcmp(frame.name, "getppid@plt") ||
                            !strcmp(frame.name, "getpgrp@plt") ||
                            !strcmp(frame.name, "__cxa_finalize@plt"));
                n_stubs++;
            }
    fclose(sections);
    assert_true(n_stubs >= 8); /* two of 16 bytes */
    unload(&l);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(debug_link_beside_the_library_is_followed),
        cmocka_unit_test(debug_link_in_the_debug_folder_is_followed),
        cmocka_unit_test(debug_link_below_the_debug_root_is_followed),
        cmocka_unit_test(build_id_below_the_debug_root_is_found),
        cmocka_unit_test(
            debug_file_of_another_build_below_the_debug_root_is_not_used),
        cmocka_unit_test(debug_link_of_another_build_is_not_followed),
        cmocka_unit_test(debug_link_without_build_id_needs_its_checksum),
        cmocka_unit_test(stripped_debug_information_leaves_the_symbol_table),
        cmocka_unit_test(stripped_symbol_table_leaves_what_is_exported),
        cmocka_unit_test(old_version_of_a_symbol_goes_last),
        cmocka_unit_test(mini_debug_info_names_what_is_not_exported),
        cmocka_unit_test(mini_debug_info_of_enormous_size_is_told_and_not_read),
        cmocka_unit_test(debug_information_shared_by_dwz_is_read),
        cmocka_unit_test(shared_debug_information_that_is_gone_is_told),
        cmocka_unit_test(debug_information_packed_by_zstd_is_read_or_told),
        cmocka_unit_test(image_of_another_build_id_is_not_used),
        cmocka_unit_test(image_that_was_replaced_is_not_misread),
        cmocka_unit_test(image_that_was_deleted_is_shown_by_the_kernel),
        cmocka_unit_test(image_with_another_inode_is_not_read),
        cmocka_unit_test(image_that_is_gone_is_read_from_its_debug_file),
        cmocka_unit_test(truncated_image_is_no_harm),
        cmocka_unit_test(what_is_no_image_is_no_harm),
        cmocka_unit_test(vdso_is_read_from_this_process),
        cmocka_unit_test(plt_stub_has_the_name_of_its_function),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_library, remove_folder);
}
