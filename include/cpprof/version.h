/* SPDX-License-Identifier: MIT */
/*
 * The version of these headers, and that of the library that runs.
 *
 *     if (cpprof_version() < CPPROF_VERSION_NUMBER)
 *         puts("the library is older than the headers");
 */
#ifndef CPPROF_VERSION_H
#define CPPROF_VERSION_H

#include <stdint.h>

#include <cpprof/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CPPROF_VERSION_MAJOR 0
#define CPPROF_VERSION_MINOR 1
#define CPPROF_VERSION_PATCH 0

/* Greater for a later version: 1.2.3 is 1002003. */
#define CPPROF_VERSION_NUMBER                                                  \
    (CPPROF_VERSION_MAJOR * 1000000 + CPPROF_VERSION_MINOR * 1000 +            \
     CPPROF_VERSION_PATCH)

/* "0.1.0" */
#define CPPROF_VERSION_TEXT_(major, minor, patch) #major "." #minor "." #patch
#define CPPROF_VERSION_TEXT_OF(major, minor, patch)                            \
    CPPROF_VERSION_TEXT_(major, minor, patch)
#define CPPROF_VERSION_TEXT                                                    \
    CPPROF_VERSION_TEXT_OF(CPPROF_VERSION_MAJOR, CPPROF_VERSION_MINOR,         \
                           CPPROF_VERSION_PATCH)

/* CPPROF_VERSION_NUMBER of the library. Safety: AS. */
CPPROF_API uint32_t
cpprof_version(void);

#ifdef __cplusplus
}
#endif

#endif
