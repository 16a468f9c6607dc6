/* SPDX-License-Identifier: MIT */
/*
 * Where the memory of this process goes: a sample of its allocations, on
 * whatever allocator it uses, and of memory that it hands out itself.
 *
 *     struct cpprof_writer out;
 *
 *     cpprof_writer_to_path("heap.pb.gz", &out, NULL);
 *     cpprof_heap_write(&out, NULL, NULL);
 *
 * A program that is linked with libcpprof is sampled from its first allocation
 * on, one in 512 KiB, as Go programs are; CPPROF= decides where it is set.
 */
#ifndef CPPROF_HEAP_H
#define CPPROF_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include <cpprof/options.h>
#include <cpprof/status.h>
#include <cpprof/writer.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Sample one allocation in so many bytes on average (0: none, 1: all), from now
 * on, in every thread. Earlier samples keep their weight, so a change at any
 * time leaves all values unbiased. A negative number changes nothing. More than
 * 2^40 bytes count as 2^40.
 *
 * Returns the rate before.
 * Units:   bytes; 524288 at the start.
 * Safety:  MT. AS.
 * Source:  Go runtime.MemProfileRate.
 */
CPPROF_API int64_t
cpprof_heap_set_rate(int64_t bytes);

/* Memory of another kind than malloc's: a GPU's, a file's, an arena's. */
struct cpprof_heap;

struct cpprof_heap_options {
    size_t size;   /* sizeof (struct cpprof_heap_options) */
    int32_t debug; /* 0: gzipped protobuf; 1 and more: text; not negative */
    enum cpprof_symbolize symbolize;
    uint32_t flags; /* CPPROF_FLAG_ALLOCS, _PEAK, _LABELS, _LEGACY */
    const struct cpprof_heap *heap; /* NULL: malloc and its family */
};

/*
 * Write what was sampled up to now. The program's other threads run on.
 *
 * writer   receives the file; closed by this call.
 * options  NULL for defaults.
 * error    filled on failure; may be NULL.
 *
 * Shape:   one sample per (stack, size class), four values each:
 *          alloc_objects, alloc_space, inuse_objects, inuse_space; the number
 *          label "bytes" is the size of its first object, for good.
 * Units:   count, bytes, count, bytes; estimates of what the program did.
 * Errors:  CPPROF_NOMEM, CPPROF_SYSTEM (a write failed), CPPROF_INVALID,
 *          CPPROF_UNSUPPORTED (the program's allocations do not come by us:
 *          the text says whose malloc it is).
 * Owner:   the writer is cpprof's.
 * Safety:  MT. Not AS.
 * Source:  Go runtime/pprof.WriteHeapProfile.
 */
CPPROF_API enum cpprof_status
cpprof_heap_write(const struct cpprof_writer *writer,
                  const struct cpprof_heap_options *options,
                  struct cpprof_error *error);

/* cpprof_heap_write() to the file at path, in one call: with a writer of
 * cpprof_writer_to_path(), whose errors come too. Safety: MT. Not AS. */
CPPROF_API enum cpprof_status
cpprof_heap_write_to_path(const char *path,
                          const struct cpprof_heap_options *options,
                          struct cpprof_error *error);

/*
 * Memory that the program hands out itself, out of an arena or a pool: as
 * malloc(size) gave ptr, and as free(ptr). Sampled like any allocation.
 * ptr is an address and is not read; it must not be live in the same heap.
 * Releasing what was never recorded does nothing.
 *
 * Safety:  MT. AS.
 */
CPPROF_API void
cpprof_heap_record(const void *ptr, size_t size);
CPPROF_API void
cpprof_heap_release(const void *ptr);

/*
 * A heap of its own, with a profile of its own. At most 63 of them; they are
 * never freed.
 *
 * name     copied; the profile has it in a comment.
 *
 * Errors:  CPPROF_INVALID (no name, or one that is in use), CPPROF_NOMEM.
 * Safety:  MT. Not AS.
 */
CPPROF_API enum cpprof_status
cpprof_heap_new(const char *name, struct cpprof_heap **heap,
                struct cpprof_error *error);

/* cpprof_heap_record() and cpprof_heap_release() in that heap. Safety: MT. AS.
 */
CPPROF_API void
cpprof_heap_record_in(struct cpprof_heap *heap, const void *ptr, size_t size);
CPPROF_API void
cpprof_heap_release_in(struct cpprof_heap *heap, const void *ptr);

/*
 * Follow mmap(), munmap() and mremap() from now on, in a heap of its own with
 * the name "mmap": mappings without a file that can be touched (not PROT_NONE)
 * when they are made, by the program and by the allocator that it has, unless
 * that is libc's. The same heap each time.
 *
 * Errors:  CPPROF_INVALID (the name is in use), CPPROF_NOMEM.
 * Safety:  MT. Not AS.
 */
CPPROF_API enum cpprof_status
cpprof_heap_follow_mmap(struct cpprof_heap **heap, struct cpprof_error *error);

/*
 * What a count and a size of sampled objects, unscaled, stand for when one in
 * rate bytes was sampled: for profiles in the old formats.
 *
 * Units:   count, bytes.
 * Safety:  AS.
 * Source:  Go runtime/pprof.scaleHeapSample.
 */
CPPROF_API void
cpprof_heap_scale_sample(int64_t count, int64_t size, int64_t rate,
                         int64_t *scaled_count, int64_t *scaled_size);

#ifdef __cplusplus
}
#endif

#endif
