/* SPDX-License-Identifier: MIT */
/* The names of functions: C++ and Rust, copies, scopes, and odd bytes. */
#include "symbol_fixture.h"

#include "symbol/dwarf/names.h"
#include "symbol/elf/demangle.h"

/* What the symbolizer calls the function of a linker symbol. */
static void
check_name(const char *symbol, const char *wanted)
{
    struct cpprof__names names = {0};
    const char *name = cpprof__names_demangle(&names, symbol, strlen(symbol));

    assert_non_null(name);
    assert_string_equal(name, wanted);
    cpprof__names_free(&names);
}

static void
cxx_name_has_its_parameters(void **state)
{
    check_name("_ZN3app4workERKi", "app::work(int const&)");
    check_name("_ZNSt6vectorIiSaIiEE9push_backEOi",
               "std::vector<int, std::allocator<int> >::push_back(int&&)");
    check_name("_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) "
                                       "const");
}

static void
name_that_is_not_mangled_is_left_alone(void **state)
{
    check_name("main", "main");
    check_name("i", "i"); /* a type, to a demangler that takes types */
    check_name("_Z", "_Z");
    check_name("_Znonsense", "_Znonsense");
    check_name("_Release", "_Release");
    check_name("runtime.mallocgc", "runtime.mallocgc");
}

static void
rust_legacy_name_goes_without_its_hash(void **state)
{
    check_name("_ZN4core3fmt5Write10write_char17h0123456789abcdefE",
               "core::fmt::Write::write_char");
    check_name("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$"
               "LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
               "<Test + 'static as foo::Bar<Test>>::bar");
}

static void
rust_v0_name_goes_without_disambiguators(void **state)
{
    check_name("_RNvC6_123foo3bar", "123foo::bar");
    check_name("_RNvCs1234_7mycrate3foo", "mycrate::foo");
    check_name("_RNvMs_NtCs1234_7mycrate3fooNtB4_3Bar3baz",
               "<mycrate::foo::Bar>::baz");
    check_name("_RINvNtC3std3mem8align_ofjE", "std::mem::align_of::<usize>");
}

static void
copies_have_the_name_of_their_function(void **state)
{
    check_name("work.cold", "work");
    check_name("work.constprop.0", "work");
    check_name("work.part.0.isra.0.cold", "work");
    check_name("main.part", "main.part"); /* of Go: copies have numbers */
    check_name("_ZN3app4workERKi.constprop.0.cold", "app::work(int const&)");
    check_name("work.llvm.1234567890", "work");
    check_name("work.lto_priv.12", "work");
    check_name("_ZN4core3fmt5Write10write_char17h0123456789abcdefE.llvm.77",
               "core::fmt::Write::write_char");
}

static void
other_suffixes_stay(void **state)
{
    check_name("helper.0", "helper.0"); /* a nested function of GNU C */
    check_name("main.main", "main.main");
    check_name(".cold", ".cold");
    check_name("cold.storage", "cold.storage");
}

static void
symbol_version_is_cut_off(void **state)
{
    check_name("memcpy@@GLIBC_2.14", "memcpy");
    check_name("realpath@GLIBC_2.3", "realpath");
    check_name("@odd", "@odd");
}

/* c++filt gives up on names of more than 1 KiB, which templates do have. */
static void
name_of_two_kilobytes_is_demangled(void **state)
{
    char mangled[4096] = "_Z4wide";
    struct cpprof__buffer out = {0};
    size_t i;

    for (i = 0; i < 400; i++)
        strcat(mangled, "4type");
    assert_true(strlen(mangled) > 2000);
    assert_true(cpprof__demangle(&out, mangled, strlen(mangled)));
    assert_int_equal(out.n, strlen("wide()") + 400 * strlen("type, ") - 2);
    assert_memory_equal(out.data, "wide(type, type, ", 17);
    cpprof__buffer_free(&out);
}

/* Substitutions that double at each step print 2^60 words. */
static void
name_that_explodes_stays_mangled(void **state)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char mangled[2048] = "_Z1f1AIiiE";
    struct cpprof__buffer out = {0};
    char step[32];
    size_t i;

    /* S_ is A, S0_ is A<int, int>, and each step names the one before. */
    for (i = 0; i < 34; i++) {
        snprintf(step, sizeof step, "S_IS%c_S%c_E", digits[i], digits[i]);
        strcat(mangled, step);
    }
    assert_false(cpprof__demangle(&out, mangled, strlen(mangled)));
    assert_int_equal(out.n, 0);
    mangled[strlen("_Z1f1AIiiE") + 3 * strlen("S_IS0_S0_E")] = 0;
    assert_true(cpprof__demangle(&out, mangled, strlen(mangled)));
    cpprof__buffer_free(&out);
}

static void
deep_nesting_is_no_harm(void **state)
{
    struct cpprof__buffer out = {0};
    char *mangled = malloc(16 * 1024);

    memset(mangled, 'P', 16 * 1024);
    memcpy(mangled, "_Z1f", 4);
    cpprof__demangle(&out, mangled, 1000);
    cpprof__demangle(&out, mangled, 16 * 1024);
    assert_int_equal(out.n, 0);
    memcpy(mangled, "_RNvC1a", 7);
    cpprof__demangle(&out, mangled, 16 * 1024);
    assert_int_equal(out.n, 0);
    free(mangled);
}

static void
bytes_that_are_no_text_are_replaced(void **state)
{
    struct cpprof__names names = {0};

    assert_string_equal(cpprof__names_add(&names, "a\x01z", 3), "a?z");
    assert_string_equal(cpprof__names_add(&names, "a\xff\xfez", 4), "a??z");
    assert_string_equal(cpprof__names_add(&names, "gr\xc3\xbc\xc3\x9f", 6),
                        "gr\xc3\xbc\xc3\x9f");
    assert_string_equal(cpprof__names_add(&names, "\xc3", 1), "?");
    assert_string_equal(cpprof__names_add(&names, "\xed\xa0\x80", 3), "???");
    assert_string_equal(cpprof__names_add(&names, "\xc0\x80", 2), "??");
    assert_string_equal(cpprof__names_add(&names, "", 0), "");
    cpprof__names_free(&names);
}

static void
same_text_is_kept_once(void **state)
{
    struct cpprof__names names = {0};
    char text[32];
    const char *first;
    int i;

    first = cpprof__names_add(&names, "name 0", 6);
    for (i = 0; i < 10000; i++) {
        snprintf(text, sizeof text, "name %d", i);
        assert_string_equal(cpprof__names_add(&names, text, strlen(text)),
                            text);
    }
    assert_ptr_equal(cpprof__names_add(&names, "name 0", 6), first);
    assert_int_equal(names.items.n, 10000);
    cpprof__names_free(&names);
}

static void
check_path(const char *directory, const char *path, const char *wanted)
{
    struct cpprof__names names = {0};

    assert_string_equal(cpprof__names_add_path(&names, directory, path),
                        wanted);
    cpprof__names_free(&names);
}

static void
relative_path_is_below_its_directory(void **state)
{
    check_path("/src/app", "main.c", "/src/app/main.c");
    check_path("/src/app", "./main.c", "/src/app/./main.c");
    check_path("/src/app", "/usr/include/stdio.h", "/usr/include/stdio.h");
    check_path("/src/app", "<artificial>", "<artificial>");
    check_path(NULL, "main.c", "main.c");
    check_path("./build", "../main.c", "./build/../main.c");
    check_path("./build", "./lib/main.c", "./lib/main.c");
}

/* A method of a template in an anonymous namespace, inlined into a lambda. */
static void
check_cxx(const char *compiler, const char *name)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;
    size_t n;

    NEED(compiler);
    assert_true(run("%s -O2 -fPIC -shared -g -o %s scopes.cc", compiler, name));
    load(&l, name, "at_get");
    symbolize(&l, false);
    n = frames_at(&l, "at_get", frames);
    assert_int_equal(n, 3);
    assert_memory_equal(frames[0].name,
                        "app::(anonymous namespace)::box<int>::"
                        "get",
                        41);
    assert_int_equal(frames[0].line, 6);
    assert_non_null(strstr(frames[1].name, "app::use(int)::"));
    assert_non_null(strstr(frames[1].name, "operator()"));
    assert_int_equal(frames[1].line, 13);
    assert_string_equal(frames[2].name, "app::use(int)");
    assert_string_equal(frames[2].system_name, "_ZN3app3useEi");
    assert_int_equal(frames[2].line, 15);
    assert_int_equal(frames[2].start_line, 10);
    unload(&l);
}

static int
make_cxx(void **state)
{
    if (make_folder(state))
        return -1;
    write_file("scopes.cc",
               "namespace app {\n"
               "namespace {\n"
               "template <class T> struct box {\n"
               "    T value;\n"
               "    __attribute__((always_inline)) T get() const {\n"
               "        asm volatile(\".globl at_get\\nat_get: nop\");\n"
               "        return value;\n"
               "    }\n"
               "}; }\n"
               "__attribute__((noinline)) int use(int x) {\n"
               "    auto f = [](int y) __attribute__((always_inline)) {\n"
               "        box<int> b{y};\n"
               "        return b.get();\n"
               "    };\n"
               "    return f(x) + 1;\n"
               "}\n"
               "}\n");
    return 0;
}

static void
inlined_names_of_gcc_have_their_scopes(void **state)
{
    check_cxx("g++", "scopes-gcc.so");
}

static void
inlined_names_of_clang_have_their_scopes(void **state)
{
    check_cxx(find_clang(true), "scopes-clang.so");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(cxx_name_has_its_parameters),
        cmocka_unit_test(name_that_is_not_mangled_is_left_alone),
        cmocka_unit_test(rust_legacy_name_goes_without_its_hash),
        cmocka_unit_test(rust_v0_name_goes_without_disambiguators),
        cmocka_unit_test(copies_have_the_name_of_their_function),
        cmocka_unit_test(other_suffixes_stay),
        cmocka_unit_test(symbol_version_is_cut_off),
        cmocka_unit_test(name_of_two_kilobytes_is_demangled),
        cmocka_unit_test(name_that_explodes_stays_mangled),
        cmocka_unit_test(deep_nesting_is_no_harm),
        cmocka_unit_test(bytes_that_are_no_text_are_replaced),
        cmocka_unit_test(same_text_is_kept_once),
        cmocka_unit_test(relative_path_is_below_its_directory),
        cmocka_unit_test(inlined_names_of_gcc_have_their_scopes),
        cmocka_unit_test(inlined_names_of_clang_have_their_scopes),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_cxx, remove_folder);
}
