/* SPDX-License-Identifier: MIT */
/*
 * The public calls of <cpprof/heap.h>: rates, heaps of the program's own, and
 * writing; and the heap's entries in the registry, `heap` and `allocs`, the
 * same profile with different default values.
 *
 * Heaps are numbered and never removed. A heap is complete before n_heaps
 * counts it, so readers need no lock; heaps_lock guards adding.
 */
#include "collect/signal/heap/heap.h"
#include "own/memory.h"

#include "arch/clock.h"
#include "arch/place.h"
#include "base/options.h"
#include "base/status.h"
#include "base/writer.h"
#include "collect/encode/names.h"
#include "collect/heap/heap_owner.h"
#include "collect/heap/heap_profile.h"
#include "collect/registry/registry.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/next.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/real.h"
#include "collect/runtime/uncancelled.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HEAPS_MAX  63
#define NAME_BYTES 64

struct cpprof_heap {
    uint16_t number;
    char name[NAME_BYTES];
};

static struct cpprof_heap heaps[HEAPS_MAX] CPPROF__LARGE;
static uint32_t n_heaps;
static struct cpprof__own_lock heaps_lock CPPROF__AT_START;

int64_t
cpprof_heap_set_rate(int64_t bytes)
{
    return cpprof__heap_set_rate(bytes);
}

/* ---- memory of the program's own -------------------------------------- */

CPPROF__HOOK void
cpprof_heap_record(const void *ptr, size_t size)
{
    if (cpprof__heap_due(size) && ptr)
        cpprof__heap_sample_anywhere(ptr, size, 0);
}

CPPROF__HOOK void
cpprof_heap_record_in(struct cpprof_heap *heap, const void *ptr, size_t size)
{
    if (cpprof__heap_due(size) && ptr && heap)
        cpprof__heap_sample_anywhere(ptr, size, heap->number);
}

void
cpprof_heap_release(const void *ptr)
{
    if (cpprof__heap_may_be_sampled(ptr))
        cpprof__heap_remove(ptr, 0, NULL);
}

void
cpprof_heap_release_in(struct cpprof_heap *heap, const void *ptr)
{
    if (cpprof__heap_may_be_sampled(ptr) && heap)
        cpprof__heap_remove(ptr, heap->number, NULL);
}

CPPROF__FIRST_STEP void
cpprof__heaps_in_child(void)
{
    cpprof__own_lock_in_child(&heaps_lock);
}

uint16_t
cpprof__heap_number(const struct cpprof_heap *heap)
{
    return heap->number;
}

static bool
is_in_use(const char *name)
{
    uint32_t i;

    for (i = 0; i < n_heaps; i++)
        if (strcmp(heaps[i].name, name) == 0)
            return true;
    return false;
}

static enum cpprof_status
add_heap(const char *name, struct cpprof_heap **heap,
         struct cpprof_error *error)
{
    struct cpprof_heap *made = &heaps[n_heaps];

    if (is_in_use(name))
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "heap name already in use: %s", name);
    if (n_heaps == HEAPS_MAX)
        return cpprof__fail(error, CPPROF_NOMEM, 0, "there are %d heaps",
                            HEAPS_MAX);
    made->number = (uint16_t)(n_heaps + 1);
    memcpy(made->name, name, strlen(name) + 1);
    n_heaps++;
    *heap = made;
    return CPPROF_OK;
}

enum cpprof_status
cpprof_heap_new(const char *name, struct cpprof_heap **heap,
                struct cpprof_error *error)
{
    CPPROF__NEED(error, heap);

    enum cpprof_status status;
    sigset_t old;

    if (!name || !*name)
        return cpprof__fail(error, CPPROF_INVALID, 0, "a heap needs a name");
    if (strlen(name) >= NAME_BYTES)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "a heap's name has at most %d bytes",
                            NAME_BYTES - 1);
    cpprof__block_signals(&old);
    cpprof__own_lock_take(&heaps_lock);
    status = add_heap(name, heap, error);
    cpprof__own_lock_give(&heaps_lock);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return status;
}

/* ---- writing ---------------------------------------------------------- */

static enum cpprof_status
take_options(const struct cpprof_heap_options *given,
             struct cpprof_heap_options *options, struct cpprof_error *error)
{
    enum cpprof_status status;

    memset(options, 0, sizeof *options);
    status = cpprof__options(options, sizeof *options, given,
                             "cpprof_heap_options", error);
    if (status != CPPROF_OK)
        return status;
    if (options->debug < 0)
        return cpprof__fail(error, CPPROF_INVALID, 0, "debug is negative");
    return cpprof__options_flags(options->flags, CPPROF__HEAP_FLAGS,
                                 options->symbolize, error);
}

/* cpprof__heap_reserve() tells who comes while another thread makes the tables
 * that there are none: that lasts some microseconds. */
static bool
reserve_tables(void)
{
    int tries = 50;

    while (!cpprof__heap_reserve()) {
        if (--tries == 0)
            return false;
        cpprof__sleep_ns(1000000);
    }
    return true;
}

/* Is there something to be written? Of a heap of the program's own there is
 * whatever malloc is in use. */
static enum cpprof_status
check_heap(const struct cpprof_heap *heap, struct cpprof_error *error)
{
    char owner[256];

    if (!heap && cpprof__heap_owner(owner, sizeof owner))
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "allocations do not come by cpprof: malloc is "
                            "that of %s",
                            owner);
    if (!reserve_tables())
        return cpprof__tables_fail(error);
    return CPPROF_OK;
}

/* The file name of the library below us, which is never freed. */
static char allocator[128];
static pthread_once_t allocator_once = PTHREAD_ONCE_INIT;

static void
find_allocator(void)
{
    void *next = cpprof__next_symbol("malloc");
    const char *slash;
    Dl_info info;

    if (!next || !dladdr(next, &info) || !info.dli_fname)
        return;
    slash = strrchr(info.dli_fname, '/');
    snprintf(allocator, sizeof allocator, "%s",
             slash ? slash + 1 : info.dli_fname);
}

enum cpprof_status
cpprof__heap_own_source(const struct cpprof_heap_options *options,
                        struct cpprof__source *source,
                        struct cpprof_error *error)
{
    enum cpprof_status status = check_heap(options->heap, error);

    if (status != CPPROF_OK)
        return status;
    pthread_once(&allocator_once, find_allocator);
    *source = (struct cpprof__source){
        .heap = &cpprof__heap,
        .tables = &cpprof__tables,
        .ops = options->symbolize == CPPROF_SYMBOLIZE_NONE
                   ? NULL
                   : cpprof__names_load(),
        .pid = (int32_t)getpid(),
        .is_self = true,
        .number = options->heap ? options->heap->number : 0,
        .name = options->heap ? options->heap->name : NULL,
        .allocator = *allocator ? allocator : NULL,
        .time_ns = (int64_t)cpprof__now_ns(CLOCK_REALTIME),
    };

    if (options->flags & CPPROF_FLAG_LABELS)
        store_release(&cpprof__wants_labels, 1);
    return CPPROF_OK;
}

enum cpprof_status
cpprof_heap_write(const struct cpprof_writer *given_writer,
                  const struct cpprof_heap_options *given,
                  struct cpprof_error *error)
{
    struct cpprof_heap_options options;
    struct cpprof_writer writer;
    struct cpprof__source source;
    enum cpprof_status status;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    status = cpprof__writer_take(given_writer, &writer, error);
    if (status == CPPROF_OK)
        status = take_options(given, &options, error);
    if (status == CPPROF_OK)
        status = cpprof__heap_own_source(&options, &source, error);
    if (status == CPPROF_OK)
        status = cpprof__heap_profile_write(&source, &options, writer, error);
    else
        cpprof__writer_refuse(&writer);
    return status;
}

enum cpprof_status
cpprof_heap_write_to_path(const char *path,
                          const struct cpprof_heap_options *options,
                          struct cpprof_error *error)
{
    return CPPROF__TO_PATH(path, error,
                           cpprof_heap_write(&writer, options, error));
}

/* ---- the registry ----------------------------------------------------- */

static size_t
count(const struct cpprof__builtin *self)
{
    struct cpprof__heap_records records;
    size_t n;

    if (!cpprof__heap.head ||
        cpprof__heap_records_take(&cpprof__heap, 0, 0, &records, NULL) !=
            CPPROF_OK)
        return 0;
    n = records.n;
    cpprof__free(records.records);
    return n;
}

static enum cpprof_status
write_builtin(const struct cpprof__builtin *self, struct cpprof_writer writer,
              const struct cpprof_profile_options *options,
              struct cpprof_error *error)
{
    struct cpprof_heap_options heap = {
        .size = sizeof heap,
        .debug = options->debug,
        .symbolize = options->symbolize,
        .flags = options->flags & CPPROF__HEAP_FLAGS,
    };

    if (self == &cpprof__builtin_allocs)
        heap.flags |= CPPROF_FLAG_ALLOCS;
    return cpprof_heap_write(&writer, &heap, error);
}

/* Unscaled, as Go's are; there is another call for estimates. */
static enum cpprof_status
all_records(const struct cpprof__builtin *self,
            struct cpprof__records *all_records, struct cpprof_error *error)
{
    struct cpprof__heap_records records;
    enum cpprof_status status;
    size_t i;

    status = check_heap(NULL, error);
    if (status != CPPROF_OK)
        return status;
    status = cpprof__heap_records_take(&cpprof__heap, 0, 0, &records, error);
    if (status != CPPROF_OK)
        return status;
    for (i = 0; i < records.n; i++) {
        const int64_t *n = records.records[i].sampled;
        const int64_t values[CPPROF__RECORD_VALUES] = {
            n[CPPROF__ALLOC_BYTES],
            n[CPPROF__ALLOC_BYTES] - n[CPPROF__INUSE_BYTES],
            n[CPPROF__ALLOC_OBJECTS],
            n[CPPROF__ALLOC_OBJECTS] - n[CPPROF__INUSE_OBJECTS]};

        if (all_records->not_in_use || n[CPPROF__INUSE_OBJECTS])
            cpprof__records_add_stack(all_records, values,
                                      records.records[i].stack);
    }
    cpprof__free(records.records);
    return CPPROF_OK;
}

const struct cpprof__builtin cpprof__builtin_heap = {
    .name = "heap",
    .count = count,
    .write = write_builtin,
    .all_records = all_records,
};

const struct cpprof__builtin cpprof__builtin_allocs = {
    .name = "allocs",
    .count = count,
    .write = write_builtin,
    .all_records = all_records,
};
