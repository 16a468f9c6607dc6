/* SPDX-License-Identifier: MIT */
/* What a program pushes is sent in parts that a server takes, and each sample
 * is in one of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "profile/change/split.h"
#include "push/curl/otlp.h"
#include <cpprof/pprof.h>

#include <stdlib.h>
#include <string.h>

static struct cpprof_error error;

/* When the profile begins, since 1970. */
#define BEGIN_NS 1000000000000000000

#define OK(call) assert_int_equal(call, CPPROF_OK)

static int
append(void *ctx, const void *data, size_t n)
{
    cpprof__buffer_append(ctx, data, n);
    return 0;
}

/* n samples of the values 1, 2, ..., each of a function whose name has n_name
 * bytes; gzipped. */
static void
make(size_t n, size_t n_name, struct cpprof__buffer *packed)
{
    const struct cpprof_writer writer = {sizeof writer, append, NULL, packed};
    struct pprof_profile *p;
    char *name = calloc(1, n_name + 1);
    size_t i, k, index;

    OK(pprof_new(&p, &error));
    OK(pprof_add_sample_type(p, "n", "count", &error));
    pprof_set_time(p, BEGIN_NS, 1);
    for (i = 0; i < n; i++) {
        struct pprof_line line = {.line = 1};
        uint32_t location;
        int64_t value = (int64_t)i + 1;

        /* No name is like another, and none is packed well. */
        for (k = 0; k < n_name; k++)
            name[k] = (char)('a' + (i >> 3 * (k % 6) & 7));
        OK(pprof_add_function(
            p,
            &(struct pprof_new_function){
                .size = sizeof(struct pprof_new_function), .name = name},
            &line.function, &error));
        OK(pprof_add_location(p,
                              &(struct pprof_new_location){
                                  .size = sizeof(struct pprof_new_location),
                                  .mapping = PPROF_NONE,
                                  .lines = &line,
                                  .n_lines = 1},
                              &location, &error));
        OK(pprof_add_sample(
            p,
            &(struct pprof_new_sample){.size = sizeof(struct pprof_new_sample),
                                       .values = &value,
                                       .locations = &location,
                                       .n_locations = 1},
            &index, &error));
    }
    OK(pprof_write(p, &writer, PPROF_FORMAT_GZIP, NULL, &error));
    pprof_free(p);
    free(name);
}

static struct seen {
    size_t n_parts, n_samples, most_samples, most_functions, end_at;
    int64_t sum;
    int64_t at_ms; /* the last part begins */
} seen;

static bool
read_part(void *ctx, const struct cpprof__push_piece *part)
{
    struct pprof_sample s = {.size = sizeof s};
    struct pprof_info info = {.size = sizeof info};
    struct pprof_profile *p;
    size_t i, n_samples;

    (void)ctx;
    OK(pprof_read_data(part->data, part->n, NULL, &p, &error));
    pprof_get_info(p, &info);
    assert_true(info.time_ns >= BEGIN_NS &&
                info.time_ns / 1000000 > seen.at_ms);
    seen.at_ms = info.time_ns / 1000000;
    n_samples = pprof_sample_count(p);
    for (i = 0; i < n_samples; i++) {
        pprof_get_sample(p, i, &s);
        seen.sum += s.values[0];
    }
    seen.n_parts++;
    seen.n_samples += n_samples;
    if (n_samples > seen.most_samples)
        seen.most_samples = n_samples;
    if (pprof_function_count(p) > seen.most_functions)
        seen.most_functions = pprof_function_count(p);
    pprof_free(p);
    return seen.n_parts != seen.end_at;
}

/* As the sender does it: requests of OTLP are made of parts. */
static bool
read_request_of(void *ctx, const struct cpprof__push_piece *part)
{
    return cpprof__push_otlp(part, ctx, read_part, NULL);
}

static bool
parts_of(size_t n, size_t n_name, const char *resource, size_t end_at)
{
    struct cpprof__buffer packed = {0};
    bool made;

    seen = (struct seen){.end_at = end_at};
    make(n, n_name, &packed);
    made = cpprof__push_parts(
        &(struct cpprof__push_piece){packed.data, packed.n, 0},
        resource ? CPPROF__PUSH_FOR_OTLP : 0,
        resource ? read_request_of : read_part, (void *)resource);
    cpprof__buffer_free(&packed);
    if (made) {
        assert_int_equal(seen.n_samples, n);
        assert_int_equal(seen.sum, (int64_t)(n * (n + 1) / 2));
    }
    return made;
}

static void
what_fits_is_one_part(void **state)
{
    (void)state;
    assert_true(parts_of(16000, 6, NULL, 0));
    assert_int_equal(seen.n_parts, 1);
    assert_true(parts_of(17000, 6, "service.name=a", 0));
    assert_int_equal(seen.n_parts, 1);
}

static void
pyroscope_takes_16000_samples_and_2_mib(void **state)
{
    (void)state;
    assert_true(parts_of(16001, 6, NULL, 0));
    assert_int_equal(seen.n_parts, 2);
    assert_true(parts_of(300, 20000, NULL, 0));
    assert_int_equal(seen.n_parts, 4);
    assert_int_equal(seen.most_functions, 75);
}

static void
a_collector_takes_more(void **state)
{
    (void)state;
    assert_true(parts_of(600, 20000, "service.name=a", 0));
    assert_int_equal(seen.n_parts, 2);
    assert_int_equal(seen.most_functions, 300);
}

/* Halve each part of what is handed over, so many times. */
struct halver {
    int n_times;
    struct cpprof__push_piece whole; /* was handed over last */
};

static bool
halve_part(void *ctx, const struct cpprof__push_piece *part)
{
    struct halver inner = *(struct halver *)ctx;

    ((struct halver *)ctx)->whole = *part;
    if (!inner.n_times--)
        return read_part(NULL, part);
    return cpprof__push_parts(part, CPPROF__PUSH_HALVE, halve_part, &inner);
}

static void
halves_of_halves_begin_at_times_of_their_own(void **state)
{
    struct halver halver = {.n_times = 2};
    struct cpprof__buffer packed = {0};

    (void)state;
    seen = (struct seen){0};
    make(17000, 6, &packed);
    assert_true(cpprof__push_parts(
        &(struct cpprof__push_piece){packed.data, packed.n, 0}, 0, halve_part,
        &halver));
    assert_int_equal(seen.n_parts, 8);
    assert_int_equal(seen.n_samples, 17000);
    assert_int_equal(seen.sum, 17000 * 17001 / 2);
    assert_int_equal(seen.most_samples, 2125);
    cpprof__buffer_free(&packed);
}

static void
one_sample_is_never_halved(void **state)
{
    struct cpprof__buffer packed = {0};
    struct halver halver = {0};

    (void)state;
    seen = (struct seen){0};
    make(1, 6, &packed);
    assert_true(cpprof__push_parts(
        &(struct cpprof__push_piece){packed.data, packed.n, 7},
        CPPROF__PUSH_HALVE, halve_part, &halver));
    assert_int_equal(seen.n_parts, 1);
    assert_ptr_equal(halver.whole.data, packed.data);
    assert_int_equal(halver.whole.room_ns, 7);
    cpprof__buffer_free(&packed);
}

static void
who_ends_it_gets_no_more(void **state)
{
    (void)state;
    assert_false(parts_of(16001, 6, NULL, 1));
    assert_int_equal(seen.n_parts, 1);
    assert_false(parts_of(600, 20000, "service.name=a", 1));
    assert_int_equal(seen.n_parts, 1);
    assert_false(cpprof__push_parts(
        &(struct cpprof__push_piece){"no gzip", 7, 0}, 0, read_part, NULL));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_is_one_part),
        cmocka_unit_test(pyroscope_takes_16000_samples_and_2_mib),
        cmocka_unit_test(a_collector_takes_more),
        cmocka_unit_test(halves_of_halves_begin_at_times_of_their_own),
        cmocka_unit_test(one_sample_is_never_halved),
        cmocka_unit_test(who_ends_it_gets_no_more),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
