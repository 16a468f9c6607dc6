/* SPDX-License-Identifier: MIT */
/* What calls that are given a writer have in common, and what they may know of
 * the ready writers. */
#ifndef BASE_WRITER_H
#define BASE_WRITER_H

#include <cpprof/writer.h>

#include <stdbool.h>

/*
 * Copy the writer that a public call was given. When that cannot be used,
 * *writer is zeroed, which cpprof__writer_refuse() knows.
 *
 * Errors:  CPPROF_INVALID (NULL, zeroed, or without a write function).
 */
enum cpprof_status
cpprof__writer_take(const struct cpprof_writer *given,
                    struct cpprof_writer *writer, struct cpprof_error *error);

/* Close a writer that got nothing, because the call failed before. */
void
cpprof__writer_refuse(const struct cpprof_writer *writer);

/* CPPROF__NEED() of a call with a writer, which is closed then. */
#define CPPROF__NEED_BESIDES(given, error, there)                              \
    do {                                                                       \
        if (!(there))                                                          \
            return cpprof__writer_refuse_call(given, error, __func__);         \
    } while (0)
enum cpprof_status
cpprof__writer_refuse_call(const struct cpprof_writer *given,
                           struct cpprof_error *error, const char *call);

/* call(&writer) with a writer to the file at path; or why there is none. */
#define CPPROF__TO_PATH(path, error, call)                                     \
    ({                                                                         \
        struct cpprof_writer writer;                                           \
        enum cpprof_status status_ =                                           \
            cpprof_writer_to_path(path, &writer, error);                       \
                                                                               \
        status_ == CPPROF_OK ? (call) : status_;                               \
    })

/* Close a writer after the last write; failed if *error has a status. If close
 * fails, and nothing has before, *error says so. */
void
cpprof__writer_end(const struct cpprof_writer *writer,
                   struct cpprof_error *error);

/*
 * Memory that cpprof allocates for itself must not appear in the program's heap
 * profile. This folder does not know the heap profiler, which only one of the
 * libraries contains. That library sets a function here, which exempts the
 * calling thread (1) or ends that (-1).
 */
extern void (*cpprof__own_memory)(int by);

/* Is it one of cpprof_writer_to_path()? It needs nothing of its maker's. */
bool
cpprof__writer_is_path(const struct cpprof_writer *writer);

#endif
