/* SPDX-License-Identifier: MIT */
/*
 * A heap's tables made by hand, a symbolizer that knows some functions, a
 * writer into memory, and what was written read back.
 */
#ifndef TESTS_HEAP_FIXTURE_H
#define TESTS_HEAP_FIXTURE_H

#include "collect/heap/heap_profile.h"
#include "collect/signal/heap/heap_buckets.h"
#include "collect/signal/heap/heap_tables.h"

#include <cpprof/pprof/profile.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/buffer.h"

/* Every test uses some of it. */
#pragma GCC diagnostic ignored "-Wunused-function"

#define TIME_NS     1700000000123456789
#define FRACTION(x) ((uint64_t)((x)*1024.0 + 0.5))

/* --- a writer into memory, which can fail ------------------------------- */

struct sink {
    struct cpprof__buffer bytes;
    unsigned n_closes;
    int failed; /* what close was told */
    int sys;    /* writes fail with this */
};

static int
sink_write(void *ctx, const void *data, size_t n_bytes)
{
    struct sink *s = ctx;

    cpprof__buffer_append(&s->bytes, data, n_bytes);
    return s->bytes.failed ? ENOMEM : s->sys;
}

static int
sink_close(void *ctx, int failed)
{
    struct sink *s = ctx;

    s->n_closes++;
    s->failed = failed;
    return 0;
}

static struct cpprof_writer
sink_writer(struct sink *s)
{
    return (struct cpprof_writer){sizeof(struct cpprof_writer), sink_write,
                                  sink_close, s};
}

/* --- a symbolizer ------------------------------------------------------- */

/* Every function begins at a multiple of 0x100 of the first mapping. */
static const char *const functions[] = {
    "main",   /* 0x10000 */
    "malloc", /* 0x10100 */
    "operator new(unsigned long)" /* 0x10200 */,
    "grow", /* 0x10300 */
    "make<std::pair<int, int> >(char const*)",
    "calloc", /* 0x10500 */
};

/* And one with three frames: grow and two that were inlined. */
#define INLINED_PC 0x10380

static unsigned n_resolved;
static unsigned n_made;

static struct cpprof__symbolizer *
fake_make(const struct cpprof__symbolizer_options *options)
{
    __atomic_fetch_add(&n_made, 1, __ATOMIC_RELAXED);
    return calloc(1, sizeof(size_t));
}

static size_t
fake_add_mapping(struct cpprof__symbolizer *s,
                 const struct cpprof__symbolizer_mapping *mapping)
{
    size_t *n = (size_t *)s;

    return (*n)++;
}

static void
set_frame(struct cpprof__frame *frame, const char *name, uint64_t pc)
{
    *frame = (struct cpprof__frame){
        .name = name,
        .system_name = name,
        .file = "/src/a.c",
        .line = (int64_t)(pc & 0xff),
        .entry = pc & ~(uint64_t)0xff,
    };
}

static unsigned n_expected;
static unsigned n_before; /* resolved when the last one was expected */

static void
fake_expect(struct cpprof__symbolizer *s, size_t mapping, uint64_t pc)
{
    n_expected++;
    n_before = n_resolved;
}

static size_t
fake_resolve(struct cpprof__symbolizer *s, size_t mapping, uint64_t pc,
             struct cpprof__frame *frames, size_t max)
{
    size_t i = (pc - 0x10000) >> 8;

    __atomic_fetch_add(&n_resolved, 1, __ATOMIC_RELAXED);
    if (pc < 0x10000 || i >= sizeof functions / sizeof *functions)
        return 0;
    if (pc == INLINED_PC) {
        set_frame(&frames[0], "std::allocator<int>::allocate(unsigned long)",
                  pc);
        set_frame(&frames[1], "push", pc);
        set_frame(&frames[2], functions[i], pc);
        return 3;
    }
    set_frame(&frames[0], functions[i], pc);
    return 1;
}

static bool
fake_knows_inlines(struct cpprof__symbolizer *s, size_t mapping)
{
    return true;
}

/* What it says to hold; as it is, no symbolizer is kept. */
static size_t n_fake_bytes = SIZE_MAX;
static unsigned n_trimmed;

static size_t
fake_trim(struct cpprof__symbolizer *s, size_t max_bytes)
{
    __atomic_fetch_add(&n_trimmed, 1, __ATOMIC_RELAXED);
    return n_fake_bytes;
}

static void
fake_free(struct cpprof__symbolizer *s)
{
    free(s);
}

static inline void
fake_turn_to_code(struct cpprof__symbolizer *s, uint64_t n_bytes)
{
    (void)s;
    (void)n_bytes;
}

static const struct cpprof__symbolizer_ops fake_ops = {
    .abi = CPPROF__SYMBOLIZER_ABI,
    .make = fake_make,
    .add_mapping = fake_add_mapping,
    .expect = fake_expect,
    .resolve = fake_resolve,
    .turn_to_code = fake_turn_to_code,
    .knows_inlines = fake_knows_inlines,
    .trim = fake_trim,
    .free = fake_free,
};

/* --- tables --------------------------------------------------------------- */

struct made {
    struct cpprof__heap heap;
    struct cpprof__tables tables;
    struct cpprof__source source;
    void *blocks[4];
};

static void *
zeroed(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_true(p != MAP_FAILED);
    return p;
}

static void
add_mapping(struct made *m, uint64_t start, const char *path)
{
    struct cpprof__store *store = &m->tables.store;
    struct cpprof__store_mapping mapping = {
        .start = start,
        .limit = start + 0x10000,
        .path = cpprof__store_add_text(store, path, strlen(path)),
        .build_id = cpprof__store_add_text(store, "abcd", 4),
    };

    assert_int_not_equal(cpprof__store_add_mapping(store, &mapping),
                         CPPROF__NO_MAPPING);
}

static void
make(struct made *m)
{
    memset(m, 0, sizeof *m);
    m->blocks[0] = zeroed(cpprof__heap_bytes());
    m->blocks[1] = zeroed(cpprof__tree_bytes());
    m->blocks[2] = zeroed(cpprof__tree_index_bytes());
    m->blocks[3] = zeroed(cpprof__store_bytes());
    cpprof__tree_make(&m->tables.tree, m->blocks[1], m->blocks[2]);
    assert_true(cpprof__store_make(&m->tables.store, m->blocks[3]));
    cpprof__heap_lay_out(&m->heap, m->blocks[0]);
    m->heap.head->rate = 524288;
    m->heap.head->n_buckets = 1;
    m->heap.head->n_blocks = 1;
    add_mapping(m, 0x10000, "/bin/program");
    add_mapping(m, 0x20000, "/lib/library.so");
    m->source = (struct cpprof__source){
        .heap = &m->heap,
        .tables = &m->tables,
        .ops = &fake_ops,
        .pid = 1,
        .time_ns = TIME_NS,
    };
}

static void
unmake(struct made *m)
{
    munmap(m->blocks[0], cpprof__heap_bytes());
    munmap(m->blocks[1], cpprof__tree_bytes());
    munmap(m->blocks[2], cpprof__tree_index_bytes());
    munmap(m->blocks[3], cpprof__store_bytes());
}

/* pcs end with 0. Mappings are given by address. */
static uint32_t
add_stack(struct made *m, const uintptr_t *pcs)
{
    uint32_t stack, node;
    size_t n = 0;

    while (pcs[n])
        n++;
    stack = cpprof__tree_add(&m->tables.tree, pcs, n);
    assert_true(stack > 0);
    for (node = stack; node; node = m->tables.tree.nodes[node].parent) {
        uint64_t pc = m->tables.tree.nodes[node].pc;

        m->tables.tree.nodes[node].mapping = pc >= 0x10000 && pc < 0x30000
                                                 ? (uint32_t)(pc >> 16)
                                                 : CPPROF__TREE_NO_MAPPING;
    }
    return stack;
}

/* n samples of that size, each with that weight; the first n_live of them are
 * live. Returns the bucket. */
static uint32_t
add_samples(struct made *m, const uintptr_t *pcs, uint64_t n, uint64_t n_live,
            uint64_t bytes, double weight)
{
    uint32_t number = m->heap.head->n_buckets++;
    struct cpprof__heap_bucket *bucket = &m->heap.buckets[number];
    uint64_t i;

    bucket->stack = add_stack(m, pcs);
    bucket->size_class = (uint16_t)bytes;
    bucket->first_size = cpprof__heap_size_code(bytes);
    bucket->n_sampled = n;
    bucket->bytes_sampled = n * bytes;
    bucket->alloc_objects = n * FRACTION(weight);
    bucket->alloc_bytes = n * bytes * FRACTION(weight);
    for (i = 0; i < n_live; i++) {
        uint32_t at = m->heap.head->n_blocks++;

        m->heap.blocks[at] = (struct cpprof__heap_block){
            .address = 0x7f0000000000 + at * 0x100000ull,
            .bytes = bytes,
            .weight = FRACTION(weight),
            .bucket = number,
        };
    }
    return number;
}

#define PCS(...) ((const uintptr_t[]){__VA_ARGS__, 0})

/* --- what was written ----------------------------------------------------- */

/* NULL options: defaults. The caller frees s->bytes. */
static void
write_to(const struct made *m, const struct cpprof_heap_options *options,
         struct sink *s)
{
    const struct cpprof_heap_options none = {.size = sizeof none};
    struct cpprof_error error = {0};

    memset(s, 0, sizeof *s);
    if (cpprof__heap_profile_write(&m->source, options ? options : &none,
                                   sink_writer(s), &error) != CPPROF_OK)
        fail_msg("%s", error.text);
    assert_int_equal(s->n_closes, 1);
    assert_int_equal(s->failed, 0);
}

static struct pprof_profile *
read_back(struct sink *s)
{
    struct pprof_profile *profile;
    struct cpprof_error error;

    if (pprof_read_data(s->bytes.data, s->bytes.n, NULL, &profile, &error) !=
        CPPROF_OK)
        fail_msg("%s", error.text);
    cpprof__buffer_free(&s->bytes);
    return profile;
}

static struct pprof_profile *
written(const struct made *m, const struct cpprof_heap_options *options)
{
    struct sink s;

    write_to(m, options, &s);
    return read_back(&s);
}

/* The text that was written, terminated; the caller frees it. */
static char *
written_text(const struct made *m, uint32_t flags)
{
    struct cpprof_heap_options options = {.size = sizeof options,
                                          .debug =
                                              !(flags & CPPROF_FLAG_LEGACY),
                                          .flags = flags};
    struct sink s;

    write_to(m, &options, &s);
    cpprof__buffer_append(&s.bytes, "", 1);
    assert_false(s.bytes.failed);
    return (char *)s.bytes.data;
}

static const char *
text_of(const struct pprof_profile *profile, pprof_string string)
{
    return pprof_text(profile, string, NULL);
}

#endif
