/* SPDX-License-Identifier: MIT */
/*
 * Option structs of public calls begin with their size, so that a program and
 * a library of different age go together.
 */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include <cpprof/status.h>
#include <stddef.h>

/*
 * Lay what the caller gave over the defaults: `options` has n_options bytes
 * and begins with a size_t; given, of which the first size_t says how long it
 * is, may be NULL. A shorter one leaves the rest at its defaults; of a longer
 * one what we do not know must be zero bytes.
 *
 * Errors: CPPROF_INVALID; `what` names the struct.
 */
enum cpprof_status
cpprof__options(void *options, size_t n_options, const void *given,
                const char *what, struct cpprof_error *error);

#endif
