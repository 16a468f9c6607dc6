/* SPDX-License-Identifier: MIT */
/* Where a name is defined, without the loader: as the loader says it. */
#include "collect/runtime/next.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include <cmocka.h>

/* Indirect functions, several versions, several libraries, data in between. */
static const char *const names[] = {
/* dlsym() did not give the default version of those that have several. */
#if __GLIBC_PREREQ(2, 36)
    "memcpy",
    "realpath",
    "posix_spawn",
    "pthread_cond_wait",
    "regexec",
    "nftw",
#endif
    "malloc",
    "free",
    "strlen",
    "pthread_create",
    "_exit",
    "gettimeofday",
    "deflateInit_",
    "libdeflate_alloc_compressor",
    "_cmocka_run_group_tests"};
#define N_NAMES (sizeof names / sizeof *names)

/* Shown to the loader by the test's link arguments. */
__attribute__((visibility("default"))) int
pause(void);
__attribute__((visibility("default"))) int
pause(void)
{
    return 7;
}

static void
next_definition_is_that_of_the_loader(void **state)
{
    size_t i, n_found = 0;

    for (i = 0; i < N_NAMES; i++) {
        void *found = cpprof__next_symbol(names[i]);

        if (found != dlsym(RTLD_NEXT, names[i]))
            print_error("%s\n", names[i]);
        assert_ptr_equal(found, dlsym(RTLD_NEXT, names[i]));
        n_found += found != NULL;
    }
    assert_true(n_found >= N_NAMES - 2);
}

static void
first_definition_is_that_of_the_loader_with_its_module(void **state)
{
    const struct link_map *module = NULL;
    Dl_info info;
    size_t i;

    for (i = 0; i < N_NAMES; i++) {
        void *found = cpprof__first_symbol(names[i], &module);

        assert_ptr_equal(found, dlsym(RTLD_DEFAULT, names[i]));
        if (!found || !dladdr(found, &info))
            continue;
        /* An indirect function of libc's may be the kernel's (aarch64). */
        if ((uintptr_t)info.dli_fbase == getauxval(AT_SYSINFO_EHDR))
            continue;
        assert_int_equal(module->l_addr, (uintptr_t)info.dli_fbase);
    }
}

static void
own_definition_is_first_and_not_next(void **state)
{
    const struct link_map *module = NULL;

    assert_ptr_equal(cpprof__first_symbol("pause", &module), pause);
    assert_ptr_equal(module, cpprof__own_module());
    assert_ptr_not_equal(cpprof__next_symbol("pause"), pause);
    assert_non_null(cpprof__next_symbol("pause"));
}

static void
name_that_nobody_defines_is_not_found(void **state)
{
    const struct link_map *module = NULL;

    assert_null(cpprof__next_symbol("no_such_function_anywhere"));
    assert_null(cpprof__next_symbol(""));
    assert_null(cpprof__first_symbol("no_such_function_anywhere", &module));
    /* Data is no function. */
    assert_null(cpprof__next_symbol("environ"));
}

static void
library_that_is_loaded_later_is_found_until_it_goes(void **state)
{
    void *library = dlopen("libBrokenLocale.so.1", RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, "__ctype_get_mb_cur_max") : NULL;

    if (!library)
        skip();
    assert_non_null(found);
    /* libc's comes before it. */
    assert_ptr_equal(cpprof__next_symbol("__ctype_get_mb_cur_max"),
                     dlsym(RTLD_NEXT, "__ctype_get_mb_cur_max"));
    dlclose(library);
    assert_non_null(cpprof__next_symbol("__ctype_get_mb_cur_max"));
}

static void
own_module_is_the_program(void **state)
{
    const struct link_map *own = cpprof__own_module();

    assert_non_null(own);
    assert_null(own->l_prev);
    assert_string_equal(own->l_name, "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_definition_is_that_of_the_loader),
        cmocka_unit_test(
            first_definition_is_that_of_the_loader_with_its_module),
        cmocka_unit_test(own_definition_is_first_and_not_next),
        cmocka_unit_test(name_that_nobody_defines_is_not_found),
        cmocka_unit_test(library_that_is_loaded_later_is_found_until_it_goes),
        cmocka_unit_test(own_module_is_the_program),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
