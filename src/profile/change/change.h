/* SPDX-License-Identifier: MIT */
/* What the files of this folder share, and reports use. */
#ifndef PROFILE_CHANGE_H
#define PROFILE_CHANGE_H

#include "base/buffer.h"
#include "profile/model/model.h"
#include <cpprof/pprof/build.h>

/* ---- build.c ---- */

/* The number of a copied text, which may be NULL. Errors: CPPROF_NOMEM. */
enum cpprof_status
cpprof__build_string(struct pprof_profile *p, const char *text,
                     uint32_t *string, struct cpprof_error *error);

/* CPPROF_INVALID unless index is below n. */
enum cpprof_status
cpprof__build_index(const char *what, size_t index, size_t n,
                    struct cpprof_error *error);

/* CPPROF_INVALID for a number of elements and no array of them. */
enum cpprof_status
cpprof__build_array(const char *what, const void *given, size_t n,
                    struct cpprof_error *error);

/* CPPROF_LIMIT when there are n already, and one more has no index. */
enum cpprof_status
cpprof__build_room(const char *what, size_t n, struct cpprof_error *error);

/* ---- scale.c ---- */

/*
 * Give two profiles the same sample types, those that both have, in the order
 * of the first; and the same units, the finer one of each.
 *
 * Errors: CPPROF_INVALID with the reference's words.
 */
enum cpprof_status
cpprof__make_compatible(struct pprof_profile *a, struct pprof_profile *b,
                        struct cpprof_error *error);

/* ---- demangle.c ---- */

/*
 * Append the demangled form of a terminated mangled name, not terminated, and
 * without what compilers add for their clones of a function; false, and out
 * empty, where it is not mangled. out must be empty.
 */
bool
cpprof__demangled(const char *name, enum pprof_demangle mode,
                  struct cpprof__buffer *out);

#endif
