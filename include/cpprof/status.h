/* SPDX-License-Identifier: MIT */
/*
 * How every call of cpprof reports failure.
 *
 * A fallible function returns an enum cpprof_status and takes a
 * struct cpprof_error as its last argument, which may be NULL. Outputs are
 * untouched on failure. The library never prints, exits or aborts.
 *
 * A pointer that is NULL crashes no call. Where the comment of a call says what
 * NULL stands for, it does. Elsewhere a call that can fail returns
 * CPPROF_INVALID and closes its writer; one that cannot does nothing, and
 * returns 0, false, NULL or "". (The inline functions of <cpprof/vm.h> are a
 * part of the interpreter, and look at no pointer.) Of a pointer and a number
 * of elements, NULL and 0 are none.
 */
#ifndef CPPROF_STATUS_H
#define CPPROF_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CPPROF_API __attribute__((visibility("default")))

/*
 * The one table of failures: the enum, cpprof_status_name() and
 * cpprof_status_text() are made from it.
 */
#define CPPROF_STATUS_MAP(X)                                                   \
    X(OK, 0, "success")                                                        \
    X(NOMEM, -1, "out of memory")                                              \
    X(BAD_DATA, -2, "input is malformed")                                      \
    X(SYSTEM, -3, "system call failed, see .sys")                              \
    X(INVALID, -4, "an argument is outside its range")                         \
    X(BUSY, -5, "already in use")                                              \
    X(UNSUPPORTED, -6, "not possible on this system")                          \
    X(LIMIT, -7, "a limit set by the caller was reached")

enum cpprof_status {
#define CPPROF_STATUS_VALUE_(name, value, text) CPPROF_##name = (value),
    CPPROF_STATUS_MAP(CPPROF_STATUS_VALUE_)
#undef CPPROF_STATUS_VALUE_
};

struct cpprof_error {
    enum cpprof_status status;
    int sys;         /* errno of the failing call, or 0 */
    uint64_t offset; /* byte offset in the input, or 0 */
    char text[240];  /* one line, always terminated */
};

/*
 * The name of a status, "NOMEM", or its meaning in one line.
 *
 * Errors:  none; an unknown value gives "UNKNOWN" and "unknown status".
 * Owner:   static strings.
 * Safety:  AS.
 */
CPPROF_API const char *
cpprof_status_name(enum cpprof_status status);
CPPROF_API const char *
cpprof_status_text(enum cpprof_status status);

#ifdef __cplusplus
}
#endif

#endif
