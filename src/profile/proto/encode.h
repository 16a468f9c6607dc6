/* SPDX-License-Identifier: MIT */
/* From a profile to the bytes of profile.proto, and to text. */
#ifndef PROFILE_ENCODE_H
#define PROFILE_ENCODE_H

#include "profile/model/model.h"
#include "profile/proto/sink.h"

/*
 * Write all of a profile that pprof_check() finds whole: as
 * profile.proto, and as Profile.String() prints it.
 *
 * Errors:  CPPROF_NOMEM; failures of the sink are the sink's.
 */
enum cpprof_status
cpprof__encode(const struct pprof_profile *p, struct cpprof__sink *out,
               struct cpprof_error *error);
enum cpprof_status
cpprof__dump_text(const struct pprof_profile *p, struct cpprof__sink *out,
                  struct cpprof_error *error);

#endif
