/* SPDX-License-Identifier: MIT */
/* From the bytes of profile.proto to a profile. */
#ifndef PROFILE_DECODE_H
#define PROFILE_DECODE_H

#include "profile/model/model.h"

/*
 * Decode n bytes. With `consume` this call may destroy the bytes, which must be
 * private memory of the process. Whole pages are given back to the system as
 * soon as they have been read, so that the input and the profile are never in
 * memory at the same time.
 */
enum cpprof_status
cpprof__decode(uint8_t *data, size_t n, bool consume,
               struct pprof_profile **out, struct cpprof_error *error);

#endif
