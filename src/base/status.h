/* SPDX-License-Identifier: MIT */
/* Filling a struct cpprof_error. */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include <cpprof/status.h>

/* Fill *error, which may be NULL, with one formatted line; returns status. */
enum cpprof_status
cpprof__fail(struct cpprof_error *error, enum cpprof_status status, int sys,
             const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same for a failure at a byte offset of an input. */
enum cpprof_status
cpprof__fail_at(struct cpprof_error *error, uint64_t offset, const char *format,
                ...) __attribute__((format(printf, 3, 4)));

/* "out of memory" */
enum cpprof_status
cpprof__fail_nomem(struct cpprof_error *error);

/* A pointer that a public call needs is NULL. */
enum cpprof_status
cpprof__fail_null(struct cpprof_error *error, const char *call);

/* The first line of such a call; `there` says that no pointer is missing. */
#define CPPROF__NEED(error, there)                                             \
    do {                                                                       \
        if (!(there))                                                          \
            return cpprof__fail_null(error, __func__);                         \
    } while (0)

#endif
