/* SPDX-License-Identifier: MIT */
/*
 * A profile as a stream: failures of the writer and of every allocation,
 * memory that does not grow, many gzip members, and another reader's view.
 */
#include "builder_fixture.h"
#include "collect/encode/builder_internal.h"
#include "oom.h"

#include <unistd.h>

/* --- failures --------------------------------------------------------------*/

/* A builder whose gzip members are small. */
static void
begin_with_members(struct fixture *f)
{
    begin(f);
    f->builder->member_bytes = 256 * 1024;
}

/* Stacks that differ: about 20 bytes a sample in the stream. */
static void
many_samples(struct fixture *f, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        sample(f, (int64_t)i + 1,
               PCS(0x1010, 0x1020 + i % 31, 0x2010 + i % 32, 0x1030));
}

static void
unknown_head_is_refused_and_the_writer_closed(void **state)
{
    struct cpprof__profile_head bad = cpu_head;
    struct cpprof__builder *b;
    struct cpprof_error error;
    struct sink sink = {0};

    (void)state;
    bad.time_ns = 0;
    assert_int_equal(
        cpprof__builder_make(&bad, sink_writer(&sink), NULL, NULL, &b, &error),
        CPPROF_INVALID);
    assert_int_equal(sink.n_closes, 1);
    assert_int_equal(sink.failed, 1);
    assert_int_equal(sink.n_writes, 0);
}

static void
write_error_is_returned_and_nothing_follows_it(void **state)
{
    struct cpprof_error error;
    struct fixture f;
    unsigned n_writes, at;

    (void)state;
    begin_with_members(&f);
    f.sink.discard = true;
    many_samples(&f, 100000);
    assert_int_equal(cpprof__builder_end(f.builder, 1, &error), CPPROF_OK);
    n_writes = f.sink.n_writes;
    assert_true(n_writes >= 3);
    for (at = 1; at <= n_writes; at++) {
        begin_with_members(&f);
        f.sink.discard = true;
        f.sink.fail_at = at;
        f.sink.sys = at == 2 ? EPIPE : ENOSPC;
        many_samples(&f, 100000);
        assert_int_equal(cpprof__builder_end(f.builder, 1, &error),
                         CPPROF_SYSTEM);
        assert_string_equal(error.text, at == 2
                                            ? "write: Broken pipe"
                                            : "write: No space left on device");
        assert_int_equal(error.sys, f.sink.sys);
        assert_int_equal(f.sink.n_writes, at);
        assert_int_equal(f.sink.n_closes, 1);
        assert_int_equal(f.sink.failed, 1);
    }
}

static void
error_of_close_is_returned(void **state)
{
    struct cpprof_error error;
    struct fixture f;

    (void)state;
    begin(&f);
    f.sink.discard = true;
    f.sink.close_sys = EIO;
    sample(&f, 1, PCS(0x1010));
    assert_int_equal(cpprof__builder_end(f.builder, 1, &error), CPPROF_SYSTEM);
    assert_string_equal(error.text, "close: Input/output error");
    assert_int_equal(f.sink.n_closes, 1);
}

static void
writer_without_close_is_enough(void **state)
{
    struct fixture f;
    struct cpprof_writer writer = {sizeof writer, sink_write, NULL, &f.sink};

    (void)state;
    memset(&f, 0, sizeof f);
    f.sink.discard = true;
    assert_int_equal(
        cpprof__builder_make(&cpu_head, writer, NULL, NULL, &f.builder, NULL),
        CPPROF_OK);
    assert_int_equal(cpprof__builder_end(f.builder, 1, NULL), CPPROF_OK);
    assert_int_equal(f.sink.n_writes, 1);
}

/* One of everything, and enough of it that tables grow. */
static enum cpprof_status
make_one_profile(struct fixture *f, struct cpprof_error *error)
{
    struct cpprof__builder_label label = {.key = "k", .str = "v"};
    struct cpprof__builder_frame frame;
    enum cpprof_status status;
    uint64_t i;

    memset(f, 0, sizeof *f);
    f->sink.discard = true;
    f->symbolizer.max_mappings = 16;
    status = cpprof__builder_make(&cpu_head, sink_writer(&f->sink), &fake_ops,
                                  &f->symbolizer, &f->builder, error);
    if (status)
        return status;
    for (i = 0; i < 100; i++)
        cpprof__builder_add_mapping(
            f->builder, &(struct cpprof__symbolizer_mapping){
                            0x1000 * i, 0x1000 * i + 0x1000, 0, "/p", "ab", 0});
    for (i = 0; i < 300; i++) {
        frame = (struct cpprof__builder_frame){0x1000 + i, 0};
        cpprof__builder_add_sample(f->builder, (int64_t[]){1, 2}, &frame, 1,
                                   &label, 1);
    }
    cpprof__builder_add_comment(f->builder, "comment");
    return cpprof__builder_end(f->builder, 1, error);
}

static void
every_allocation_may_fail(void **state)
{
    struct cpprof_error error;
    struct fixture f;
    long n, n_failed = 0;

    (void)state;
    for (n = 0;; n++) {
        enum cpprof_status status;

        oom_watch();
        oom.countdown = n;
        status = make_one_profile(&f, &error);
        oom.countdown = -1;
        assert_int_equal(f.sink.n_closes, 1);
        assert_int_equal(oom.n_live, 0);
        if (status == CPPROF_OK)
            break;
        n_failed++;
        assert_int_equal(status, CPPROF_NOMEM);
        assert_string_equal(error.text, "out of memory");
        assert_int_equal(f.sink.failed, 1);
        assert_int_equal(f.sink.n_writes, 0);
    }
    assert_int_equal(f.sink.failed, 0);
    assert_true(n_failed > 20);
}

static void
memory_does_not_grow_with_the_number_of_samples(void **state)
{
    struct fixture f;
    size_t after_some;

    (void)state;
    oom_watch();
    begin_with_members(&f);
    f.sink.discard = true;
    many_samples(&f, 100000);
    after_some = oom.peak_bytes;
    many_samples(&f, 900000);
    assert_int_equal(oom.peak_bytes, after_some);
    assert_true(oom.peak_bytes < 4 << 20);
    assert_int_equal(cpprof__builder_end(f.builder, 1, NULL), CPPROF_OK);
    assert_int_equal(oom.n_live, 0);
    assert_true(f.sink.n_writes > 30);
}

static void
many_members_are_one_profile(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    begin_with_members(&f);
    many_samples(&f, 100000);
    w = end(&f);
    assert_true(f.sink.n_writes >= 3);
    assert_int_equal(w->n_samples, 100000);
    walk_free(w);
}

/* Some readers know only the first member of a file. */
static void
less_than_16_mib_is_one_member(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    f.sink.discard = true;
    many_samples(&f, 500000);
    assert_true(f.builder->out.n > 8 << 20);
    assert_int_equal(f.sink.n_writes, 0);
    many_samples(&f, 500000);
    assert_int_equal(f.sink.n_writes, 1);
    assert_int_equal(cpprof__builder_end(f.builder, 1, NULL), CPPROF_OK);
    assert_int_equal(f.sink.n_writes, 2);
}

/* --- the oracle ------------------------------------------------------------*/

static void
write_file(const char *path, const struct cpprof__buffer *bytes)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes->data, 1, bytes->n, f), bytes->n);
    assert_int_equal(fclose(f), 0);
}

/* What go tool pprof -raw says of a profile. */
static void
go_raw(const struct cpprof__buffer *bytes, char *text, size_t n)
{
    char path[] = "/tmp/cpprof-test-XXXXXX", command[200];
    int fd = mkstemp(path);
    FILE *f;

    assert_true(fd >= 0);
    close(fd);
    write_file(path, bytes);
    snprintf(command, sizeof command,
             "go tool pprof -symbolize=none -raw %s 2>&1", path);
    f = popen(command, "r");
    assert_non_null(f);
    n = fread(text, 1, n - 1, f);
    text[n] = 0;
    assert_int_equal(pclose(f), 0);
    unlink(path);
}

static void
go_tool_pprof_reads_the_same(void **state)
{
    struct cpprof__builder_label label = {.key = "job", .str = "one"};
    struct cpprof__builder_frame frame = {CPPROF__FRAME_LOST, 0};
    struct fixture f;
    static char text[8000];

    (void)state;
    if (system("go version >/dev/null 2>&1") != 0) {
        printf("# go is not installed\n");
        return;
    }
    begin(&f);
    sample(&f, 20, PCS(0x1010, 0x1020, 0x2f00));
    cpprof__builder_add_sample(f.builder, (int64_t[]){3, 6000000}, &frame, 1,
                               &label, 1);
    cpprof__builder_add_comment(f.builder, "a comment");
    assert_int_equal(cpprof__builder_end(f.builder, 5000000000, NULL),
                     CPPROF_OK);
    go_raw(&f.sink.bytes, text, sizeof text);
    cpprof__buffer_free(&f.sink.bytes);
    /* From the samples on; above there is the time in the local zone. */
    assert_non_null(strstr(text, "Comment: a comment\n"));
    assert_non_null(strstr(text, "PeriodType: cpu nanoseconds\n"
                                 "Period: 2000000\n"));
    assert_non_null(strstr(text, "Duration: 5s\n"));
    assert_non_null(strstr(text, "Samples:\n"));
    assert_string_equal(
        strstr(text, "Samples:\n"),
        "Samples:\n"
        "samples/count cpu/nanoseconds\n"
        "         20   40000000: 1 2 3 \n"
        "          3    6000000: 4 \n"
        "                job:[one]\n"
        "Locations\n"
        "     1: 0x1010 M=1 leaf a.h:9 s=7(_Zleaf)\n"
        "             middle a.h:19 s=17(_Zmiddle)\n"
        "             bottom a.c:29 s=27\n"
        "     2: 0x1020 M=1 bottom a.c:30 s=27\n"
        "     3: 0x2f00 M=2 \n"
        "     4: 0x0 [lost samples] :0 s=0\n"
        "Mappings\n"
        "1: 0x1000/0x2000/0x100 /bin/a b abcd [FN][FL][LN][IN]\n"
        "2: 0x2000/0x3000/0x0 /lib/b.so  \n");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_head_is_refused_and_the_writer_closed),
        cmocka_unit_test(write_error_is_returned_and_nothing_follows_it),
        cmocka_unit_test(error_of_close_is_returned),
        cmocka_unit_test(writer_without_close_is_enough),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(memory_does_not_grow_with_the_number_of_samples),
        cmocka_unit_test(many_members_are_one_profile),
        cmocka_unit_test(less_than_16_mib_is_one_member),
        cmocka_unit_test(go_tool_pprof_reads_the_same),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
