/* SPDX-License-Identifier: MIT */
/* From a profile to the bytes of profile.proto, and to text. */
#ifndef PROFILE_ENCODE_H
#define PROFILE_ENCODE_H

#include "base/buffer.h"
#include "profile/model.h"
#include "profile/sink.h"

/* Append profile.proto, not compressed. */
enum cpprof_status
cpprof__encode(const struct cpprof_pprof *p, struct cpprof__buffer *out,
               struct cpprof_error *error);

/* Write all of a profile as text, as Profile.String() does. */
enum cpprof_status
cpprof__dump_text(const struct cpprof_pprof *p, struct cpprof__sink *out,
                  struct cpprof_error *error);

#endif
