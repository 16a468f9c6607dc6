/* SPDX-License-Identifier: MIT */
/*
 * A builder with a writer into memory, which can fail, and a symbolizer that
 * knows a few addresses; and what was built, read back.
 */
#ifndef TESTS_BUILDER_FIXTURE_H
#define TESTS_BUILDER_FIXTURE_H

#include "collect/encode/builder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "profile_walk.h"

#define PERIOD_NS 2000000 /* 500 Hz */
#define TIME_NS   1700000000123456789

/* --- a writer into memory, which can fail ------------------------------- */

struct sink {
    struct cpprof__buffer bytes;
    unsigned n_writes, n_closes;
    int failed;       /* what close was told */
    unsigned fail_at; /* the write that fails, from 1; 0: none */
    int sys;          /* with this */
    int close_sys;
    bool discard;
};

static int
sink_write(void *ctx, const void *data, size_t n_bytes)
{
    struct sink *s = ctx;

    assert_int_equal(s->n_closes, 0);
    assert_true(n_bytes > 0);
    s->n_writes++;
    assert_true(!s->fail_at || s->n_writes <= s->fail_at);
    if (s->n_writes == s->fail_at)
        return s->sys;
    if (!s->discard)
        cpprof__buffer_append(&s->bytes, data, n_bytes);
    return s->bytes.failed ? ENOMEM : 0;
}

static int
sink_close(void *ctx, int failed)
{
    struct sink *s = ctx;

    s->n_closes++;
    s->failed = failed;
    return s->close_sys;
}

static struct cpprof_writer
sink_writer(struct sink *s)
{
    return (struct cpprof_writer){sizeof(struct cpprof_writer), sink_write,
                                  sink_close, s};
}

/* --- a symbolizer that knows a few addresses ----------------------------- */

struct cpprof__symbolizer {
    size_t n_mappings, max_mappings;
    unsigned n_resolved;
    uint64_t n_code_bytes; /* turn_to_code() */
    bool no_inlines;       /* of the first mapping */
};

struct known {
    size_t mapping; /* SIZE_MAX: none */
    uint64_t pc;
    struct cpprof__frame frames[4];
};

/* 0x1010: two inlined into bottom; 0x1020: bottom itself; 0x1030 and 0x1040:
 * a recursion that was inlined; 0x2010, 0x2020: incomplete knowledge. */
static const struct known known[] = {
    {0,
     0x1010,
     {{"leaf", "_Zleaf", "a.h", 7, 9, 3, 0, false, 0, 0},
      {"middle", "_Zmiddle", "a.h", 17, 19, 0, 0, false, 0, 0},
      {"bottom", "bottom", "a.c", 27, 29, 0, 0, false, 0, 0}}},
    {0, 0x1020, {{"bottom", "bottom", "a.c", 27, 30, 0, 0, false, 0, 0}}},
    {0,
     0x1030,
     {{"middle", "_Zmiddle", "a.h", 17, 20, 0, 0, false, 0, 0},
      {"top", "top", "a.c", 40, 41, 0, 0, false, 0, 0},
      {"bottom", "bottom", "a.c", 27, 31, 0, 0, false, 0, 0}}},
    {0,
     0x1040,
     {{"middle", "_Zmiddle", "a.h", 17, 20, 0, 0, false, 0, 0},
      {"top", "top", "a.c", 40, 41, 0, 0, false, 0, 0},
      {"main", "main", "a.c", 50, 51, 0, 0, false, 0, 0}}},
    {1, 0x2010, {{"no_file", "no_file", NULL, 0, 0, 0, 0, false, 0, 0}}},
    {1, 0x2020, {{"no_line", "no_line", "b.c", 1, 0, 0, 0, false, 0, 0}}},
    {1, 0x2030, {{"whole", "whole", "b.c", 1, 2, 0, 0, false, 0, 0}}},
    {1, 0x2040, {{"[b+0x40]", "[b+0x40]", NULL, 0, 0, 0, 0x2040, true, 0, 0}}},
    {SIZE_MAX, 0x9000, {{"jit", "jit", NULL, 0, 0, 0, 0, false, 0, 0}}},
    {100, 0x9100, {{"early", "early", NULL, 0, 0, 0, 0, false, 0, 0}}},
    {200, 0x9100, {{"late", "late", NULL, 0, 0, 0, 0, false, 0, 0}}},
};

static void
fake_turn_to_code(struct cpprof__symbolizer *s, uint64_t n_bytes)
{
    s->n_code_bytes = n_bytes;
}

static size_t
fake_add_mapping(struct cpprof__symbolizer *s,
                 const struct cpprof__symbolizer_mapping *mapping)
{
    assert_non_null(mapping->path);
    assert_non_null(mapping->build_id);
    return s->n_mappings < s->max_mappings ? s->n_mappings++ : SIZE_MAX;
}

static size_t expected_mapping;
static uint64_t expected_pc; /* of the last call; 0: none yet */

static void
fake_expect(struct cpprof__symbolizer *s, size_t mapping, uint64_t pc)
{
    assert_true(mapping < s->n_mappings);
    expected_mapping = mapping;
    expected_pc = pc;
}

static size_t
fake_resolve(struct cpprof__symbolizer *s, size_t mapping, uint64_t pc,
             struct cpprof__frame *frames, size_t max)
{
    size_t i, n;

    s->n_resolved++;
    if (mapping == SIZE_MAX && pc == 0x9100)
        mapping = s->n_code_bytes < 200 ? 100 : 200;
    for (i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].mapping != mapping || known[i].pc != pc)
            continue;
        for (n = 0; n < 4 && n < max && known[i].frames[n].name; n++)
            frames[n] = known[i].frames[n];
        return n;
    }
    return 0;
}

static bool
fake_knows_inlines(struct cpprof__symbolizer *s, size_t mapping)
{
    assert_true(mapping < s->n_mappings);
    return mapping != 0 || !s->no_inlines;
}

static const struct cpprof__symbolizer_ops fake_ops = {
    .abi = CPPROF__SYMBOLIZER_ABI,
    .add_mapping = fake_add_mapping,
    .expect = fake_expect,
    .resolve = fake_resolve,
    .turn_to_code = fake_turn_to_code,
    .knows_inlines = fake_knows_inlines,
};

/* --- one profile in the making ------------------------------------------- */

struct fixture {
    struct sink sink;
    struct cpprof__symbolizer symbolizer;
    struct cpprof__builder *builder;
    uint32_t a, b; /* mappings 0x1000-0x2000, 0x2000-0x3000 */
};

static const struct cpprof__value_type cpu_types[] = {{"samples", "count"},
                                                      {"cpu", "nanoseconds"}};
static const struct cpprof__profile_head cpu_head = {
    .sample_types = cpu_types,
    .n_sample_types = 2,
    .period_type = {"cpu", "nanoseconds"},
    .period = PERIOD_NS,
    .time_ns = TIME_NS,
};

static void
begin_without_mappings(struct fixture *f,
                       const struct cpprof__profile_head *head)
{
    memset(f, 0, sizeof *f);
    f->symbolizer.max_mappings = 16;
    assert_int_equal(cpprof__builder_make(head, sink_writer(&f->sink),
                                          &fake_ops, &f->symbolizer,
                                          &f->builder, NULL),
                     CPPROF_OK);
}

static void
begin(struct fixture *f)
{
    begin_without_mappings(f, &cpu_head);
    f->a = cpprof__builder_add_mapping(
        f->builder, &(struct cpprof__symbolizer_mapping){
                        0x1000, 0x2000, 0x100, "/bin/a b", "abcd", 0});
    f->b = cpprof__builder_add_mapping(
        f->builder, &(struct cpprof__symbolizer_mapping){0x2000, 0x3000, 0,
                                                         "/lib/b.so", "", 0});
    assert_int_equal(f->a, 0);
    assert_int_equal(f->b, 1);
}

/* A sample of count; pcs end with 0 and are in the mapping they fall into. */
static void
sample(struct fixture *f, int64_t count, const uint64_t *pcs)
{
    struct cpprof__builder_frame stack[16];
    int64_t values[2] = {count, count * PERIOD_NS};
    size_t n;

    for (n = 0; pcs[n]; n++) {
        stack[n].pc = pcs[n];
        stack[n].mapping = CPPROF__NO_MAPPING;
        if (pcs[n] >= 0x1000 && pcs[n] < 0x3000)
            stack[n].mapping = pcs[n] < 0x2000 ? f->a : f->b;
    }
    cpprof__builder_add_sample(f->builder, values, stack, n, NULL, 0);
}
#define PCS(...) ((const uint64_t[]){__VA_ARGS__, 0})

/* Finish without failure and read back what was written. */
static struct walk *
end(struct fixture *f)
{
    struct cpprof_error error;
    struct walk *w;

    assert_int_equal(cpprof__builder_end(f->builder, 5000000000, &error),
                     CPPROF_OK);
    assert_int_equal(f->sink.n_closes, 1);
    assert_int_equal(f->sink.failed, 0);
    w = walk_profile(f->sink.bytes.data, f->sink.bytes.n);
    cpprof__buffer_free(&f->sink.bytes);
    return w;
}

#endif
