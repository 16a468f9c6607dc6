/* SPDX-License-Identifier: MIT */
/*
 * Whichever allocation fails, a report says so and leaves nothing behind: the
 * formats that read other files than the profile, ask programs, or are written
 * as pages.
 */
#include "code_fixture.h"
#include "pprof_fixture.h"
#include <cpprof/pprof/report.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "oom.h"

static struct pprof_profile *
make(void)
{
    struct fixture f = {0};
    char stack[64], labels[64];
    int i;

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, code_path("prog"), "");
    fixture_stack(&f, "leaf main", 300000000, NULL);
    for (i = 0; i < 20; i++) {
        snprintf(stack, sizeof stack, "_Z1fi<in%d out%d main", i, i % 5);
        snprintf(labels, sizeof labels, "thread=t%d bytes=%dkb", i % 5, i);
        fixture_stack(&f, stack, i + 1, labels);
    }
    return fixture_must_read(&f);
}

/* A sum over what was written, the same whenever it succeeds. */
static uint64_t made;

static int
take(void *ctx, const void *data, size_t n)
{
    const unsigned char *p = data;
    size_t i;

    (void)ctx;
    for (i = 0; i < n; i++)
        made = made * 31 + p[i];
    return 0;
}

static enum cpprof_status
report(struct pprof_profile *p, enum pprof_report_format format,
       const char *symbol, struct cpprof_error *error)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct cpprof_writer writer = {sizeof writer, take, NULL, NULL};

    made = 0;
    options.symbol = symbol;
    options.tools = code_folder;
    options.trim_path = "/src";
    options.source_path = code_folder;
    return pprof_report_write(p, &writer, format, &options, error);
}

/* Let allocation 1, 2, ... fail, until the report needs no more of them. */
static void
survives(enum pprof_report_format format, const char *symbol)
{
    struct pprof_profile *p = make();
    struct cpprof_error error = {0};
    enum cpprof_status status = report(p, format, symbol, &error);
    uint64_t expected = made;
    long n;

    if (status != CPPROF_OK)
        fail_msg("%s", error.text);
    assert_true(expected != 0);
    for (n = 0, status = CPPROF_NOMEM; status != CPPROF_OK; n++) {
        oom_watch();
        oom.countdown = n;
        status = report(p, format, symbol, &error);
        oom.countdown = -1;
        if (oom.n_live || (status != CPPROF_OK && status != CPPROF_NOMEM))
            fail_msg("allocation %ld: %ld are left, %s", n, oom.n_live,
                     error.text);
        assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    }
    assert_true(made == expected);
    /* It did allocate. */
    assert_in_range(n, 5, 10000);
    pprof_free(p);
}

static void
list_survives_want_of_memory(void **state)
{
    (void)state;
    survives(PPROF_REPORT_LIST, "leaf|in");
}

static void
disasm_survives_want_of_memory(void **state)
{
    (void)state;
    survives(PPROF_REPORT_DISASM, "leaf|main");
}

static void
weblist_survives_want_of_memory(void **state)
{
    (void)state;
    survives(PPROF_REPORT_WEBLIST, "leaf|main");
}

static void
weblist_without_the_library_survives_want_of_memory(void **state)
{
    (void)state;
    code_no_library = true;
    survives(PPROF_REPORT_WEBLIST, "leaf");
    code_no_library = false;
}

static void
stacks_survive_want_of_memory(void **state)
{
    static const enum pprof_report_format formats[] = {
        PPROF_REPORT_TRACES, PPROF_REPORT_COLLAPSED, PPROF_REPORT_JSON,
        PPROF_REPORT_FLAMEGRAPH, PPROF_REPORT_HEADING};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof formats / sizeof *formats; i++)
        survives(formats[i], NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_survives_want_of_memory),
        cmocka_unit_test(disasm_survives_want_of_memory),
        cmocka_unit_test(weblist_survives_want_of_memory),
        cmocka_unit_test(weblist_without_the_library_survives_want_of_memory),
        cmocka_unit_test(stacks_survive_want_of_memory),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, code_make, code_remove);
}
