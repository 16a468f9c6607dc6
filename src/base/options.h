/* SPDX-License-Identifier: MIT */
/*
 * Option structs of public calls begin with their size, so that programs and
 * libraries of different versions work together.
 */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include <cpprof/status.h>
#include <stddef.h>

/*
 * Copy the caller's options over the defaults. `options` has n_options bytes
 * and begins with a size_t. `given` may be NULL; its first size_t is its
 * length. If it is shorter, the rest keeps its defaults. If it is longer, the
 * part that we do not know must be zero bytes.
 *
 * Errors: CPPROF_INVALID; `what` names the struct.
 */
enum cpprof_status
cpprof__options(void *options, size_t n_options, const void *given,
                const char *what, struct cpprof_error *error);

#endif
