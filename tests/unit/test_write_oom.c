/* SPDX-License-Identifier: MIT */
/* Whichever allocation fails, writing and copying say so and leave nothing. */
#include "write_fixture.h"

#include "oom.h"

#include <unistd.h>

static int
take_nothing(void *ctx, const void *data, size_t n)
{
    return 0;
}

static int n_closed;

static int
count_close(void *ctx, int failed)
{
    n_closed++;
    return 0;
}

static enum cpprof_status
write_it(const struct pprof_profile *p, int format, struct cpprof_error *error)
{
    struct cpprof_writer writer = {sizeof writer, take_nothing, count_close,
                                   NULL};
    enum cpprof_status status;

    n_closed = 0;
    status = pprof_write(p, &writer, (enum pprof_format)format, NULL, error);
    assert_int_equal(n_closed, 1);
    return status;
}

static enum cpprof_status
write_to_path(const struct pprof_profile *p, int format,
              struct cpprof_error *error)
{
    char path[64];
    enum cpprof_status status;

    snprintf(path, sizeof path, "/tmp/cpprof-write-%d", getpid());
    status =
        pprof_write_to_path(p, path, (enum pprof_format)format, NULL, error);
    assert_int_equal(unlink(path) == 0, status == CPPROF_OK);
    return status;
}

static enum cpprof_status
copy_it(const struct pprof_profile *p, int format, struct cpprof_error *error)
{
    struct pprof_profile *copy = NULL;
    enum cpprof_status status = pprof_copy(p, &copy, error);

    assert_true((copy != NULL) == (status == CPPROF_OK));
    pprof_free(copy);
    return status;
}

/* Let allocation 1, 2, ... fail, until the call needs no more of them. */
static void
survives(enum cpprof_status (*call)(const struct pprof_profile *p, int format,
                                    struct cpprof_error *error),
         int format)
{
    struct pprof_profile *p = make_odd();
    enum cpprof_status status;
    long n = -1;

    do {
        struct cpprof_error error = {0};

        oom_watch();
        oom.countdown = ++n;
        status = call(p, format, &error);
        oom.countdown = -1;
        assert_int_equal(oom.n_live, 0);
        /* what a writer has no memory for is a write that failed */
        if (status != CPPROF_OK &&
            (status != CPPROF_SYSTEM || error.sys != ENOMEM)) {
            assert_int_equal(status, CPPROF_NOMEM);
            assert_string_equal(error.text, "out of memory");
        }
    } while (status != CPPROF_OK);
    assert_in_range(n, 3, 1000); /* it did allocate */
    pprof_free(p);
}

static void
writing_survives_want_of_memory(void **state)
{
    int format;

    for (format = 0; format <= PPROF_FORMAT_PERF_SCRIPT; format++)
        survives(write_it, format);
    survives(write_to_path, PPROF_FORMAT_GZIP);
}

static void
copying_survives_want_of_memory(void **state)
{
    survives(copy_it, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writing_survives_want_of_memory),
        cmocka_unit_test(copying_survives_want_of_memory),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
