/* SPDX-License-Identifier: MIT */
/* Names for the addresses of a profile that has none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <cpprof/pprof/change.h>

#include "oom.h"

/* Call addresses are one behind the call: 0x1000, 0x1100, 0x2000. */
static const char heap[] = "heap profile: 3: 300 [3: 300] @ heapprofile\n"
                           "1: 100 [1: 100] @ 0x1001 0x2001\n"
                           "2: 200 [2: 200] @ 0x1101 0x2001\n"
                           "MAPPED_LIBRARIES:\n"
                           "00001000-00002000 r-xp 00000000 00:00 0 /bin/x\n"
                           "00002000-00003000 r-xp 00000000 00:00 0 /lib/y\n";

static const struct pprof_symbol symbols[] = {{0x0fff, "before"},
                                              {0x1000, "one"},
                                              {0x1001, "behind"},
                                              {0x1100, "one"},
                                              {0x2000, "other"}};
#define N_SYMBOLS (sizeof symbols / sizeof *symbols)

static struct pprof_profile *
make(void)
{
    struct cpprof_error error = {0};
    struct pprof_profile *p = NULL;

    if (pprof_read_data(heap, sizeof heap - 1, NULL, &p, &error) != CPPROF_OK)
        fail_msg("%s", error.text);
    return p;
}

static void
mapping_that_is_not_there_is_refused(void **state)
{
    static const struct pprof_symbol nameless[] = {{0x1000, NULL}};
    const size_t far[] = {2, 3, UINT32_MAX, SIZE_MAX};
    struct cpprof_error error = {0};
    struct pprof_profile *p = make();
    size_t i;

    (void)state;
    for (i = 0; i < sizeof far / sizeof *far; i++) {
        assert_int_equal(pprof_set_mapping_file(p, far[i], "/x", &error),
                         CPPROF_INVALID);
        assert_int_equal(
            pprof_set_symbols(p, far[i], symbols, N_SYMBOLS, &error),
            CPPROF_INVALID);
    }
    assert_int_equal(pprof_set_symbols(p, 0, nameless, 1, &error),
                     CPPROF_INVALID);
    assert_int_equal(pprof_has_functions(p), 0);
    assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    pprof_free(p);
}

/* The name at an address; "" for none. */
static const char *
name_at(const struct pprof_profile *p, uint64_t address)
{
    const struct pprof_location *l = pprof_locations(p);
    size_t i;

    for (i = 0; i < pprof_location_count(p); i++) {
        if (l[i].address != address)
            continue;
        if (!l[i].n_lines)
            return "";
        assert_int_equal(l[i].n_lines, 1);
        return pprof_text(
            p,
            pprof_functions(p)[pprof_lines(p)[l[i].first_line].function].name,
            NULL);
    }
    fail_msg("no location at %#llx", (unsigned long long)address);
    return NULL;
}

static void
symbols_name_the_locations_of_their_mapping(void **state)
{
    struct pprof_profile *p = make();
    (void)state;

    assert_int_equal(pprof_set_symbols(p, 0, symbols, N_SYMBOLS, NULL),
                     CPPROF_OK);
    assert_string_equal(name_at(p, 0x1000), "one");
    assert_string_equal(name_at(p, 0x1100), "one");
    assert_string_equal(name_at(p, 0x2000), "");
    assert_int_equal(pprof_function_count(p), 1);
    assert_true(pprof_mappings(p)[0].flags & PPROF_HAS_FUNCTIONS);
    assert_false(pprof_mappings(p)[1].flags & PPROF_HAS_FUNCTIONS);
    assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    pprof_free(p);
}

static void
symbols_replace_names(void **state)
{
    static const struct pprof_symbol again[] = {{0x1100, "two"}};
    struct pprof_profile *p = make();
    (void)state;

    pprof_set_symbols(p, 0, symbols, N_SYMBOLS, NULL);
    assert_int_equal(pprof_set_symbols(p, 0, again, 1, NULL), CPPROF_OK);
    assert_string_equal(name_at(p, 0x1000), "one");
    assert_string_equal(name_at(p, 0x1100), "two");
    assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    pprof_free(p);
}

static void
mapping_file_is_changed(void **state)
{
    struct pprof_profile *p = make();
    (void)state;

    assert_int_equal(pprof_set_mapping_file(p, 1, "/new", NULL), CPPROF_OK);
    assert_string_equal(pprof_text(p, pprof_mappings(p)[1].file, NULL), "/new");
    assert_string_equal(pprof_text(p, pprof_mappings(p)[0].file, NULL),
                        "/bin/x");
    pprof_free(p);
}

static void
any_allocation_may_fail(void **state)
{
    enum cpprof_status status = CPPROF_NOMEM;
    struct cpprof_error error;
    struct pprof_profile *p;
    long n;
    (void)state;

    for (n = 0; status != CPPROF_OK; n++) {
        oom_watch();
        p = make();
        oom.countdown = n;
        status = pprof_set_mapping_file(p, 0, "/a/new/name", &error);
        if (status == CPPROF_OK)
            status = pprof_set_symbols(p, 0, symbols, N_SYMBOLS, &error);
        oom.countdown = -1;
        if (status != CPPROF_OK)
            assert_int_equal(error.status, CPPROF_NOMEM);
        assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
        pprof_free(p);
        assert_int_equal(oom.n_live, 0);
        assert_true(n < 100);
    }
    assert_true(n > 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symbols_name_the_locations_of_their_mapping),
        cmocka_unit_test(symbols_replace_names),
        cmocka_unit_test(mapping_file_is_changed),
        cmocka_unit_test(mapping_that_is_not_there_is_refused),
        cmocka_unit_test(any_allocation_may_fail),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
