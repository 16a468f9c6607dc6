/* SPDX-License-Identifier: MIT */
/* Whichever allocation fails, text formats say so and leave nothing behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "oom.h"
#include "profile/text/text.h"

struct format {
    const char *text;
    cpprof__legacy_reader *read;
    void (*write)(const struct pprof_profile *p, size_t type,
                  struct cpprof__sink *out);
};

static int
take(void *ctx, const void *data, size_t n)
{
    return 0;
}

/* Read and write again. */
static enum cpprof_status
go_through(const struct format *format)
{
    struct cpprof__sink sink = {
        .writer = {sizeof(struct cpprof_writer), take, NULL, NULL}};
    struct pprof_profile *p = NULL;
    enum cpprof_status status = cpprof__legacy_try(
        format->read, format->text, strlen(format->text), &p, NULL);

    if (status == CPPROF_OK) {
        assert_non_null(p);
        format->write(p, 0, &sink);
        status = cpprof__sink_end(&sink, status, NULL);
    }
    pprof_free(p);
    return status;
}

static void
every_allocation_fails_in_turn(const struct format *format)
{
    enum cpprof_status status = CPPROF_NOMEM;
    long n;

    for (n = 0; status != CPPROF_OK && n < 10000; n++) {
        oom_watch();
        oom.countdown = n;
        status = go_through(format);
        oom.countdown = -1;
        assert_true(status == CPPROF_OK || status == CPPROF_NOMEM);
        assert_int_equal(oom.n_live, 0);
    }
    assert_int_equal(status, CPPROF_OK);
    assert_true(n > 10);
}

static void
collapsed_stacks_survive(void **state)
{
    char text[4096] = "", line[64];
    struct format format = {text, cpprof__read_collapsed,
                            cpprof__write_collapsed};
    int i;

    for (i = 0; i < 60; i++) {
        snprintf(line, sizeof line, "main;f%d;g%d;h %d\n", i, i % 5, i + 1);
        strcat(text, line);
    }
    every_allocation_fails_in_turn(&format);
}

static void
perf_script_survives(void **state)
{
    char text[8192] = "", line[200];
    struct format format = {text, cpprof__read_perf_script,
                            cpprof__write_perf_script};
    int i;

    for (i = 0; i < 40; i++) {
        snprintf(line, sizeof line,
                 "a %d/%d 1.%d: 5 e%d: \n\t%x f%d (inlined)\n\t%x g (/b%d)\n"
                 "  x.c:%d\n\n",
                 i % 3, i, i, i % 2, i, i, i, i % 20, i);
        strcat(text, line);
    }
    every_allocation_fails_in_turn(&format);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collapsed_stacks_survive),
        cmocka_unit_test(perf_script_survives),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
