/* SPDX-License-Identifier: MIT */
/* From the bytes of profile.proto to a profile. */
#ifndef PROFILE_DECODE_H
#define PROFILE_DECODE_H

#include "profile/model/model.h"

/*
 * Decode n bytes. With `consume` the bytes are this call's to destroy: they
 * are private memory of the process, and whole pages of them are given back to
 * the system as soon as they have been read, so that the bytes and what they
 * turn into are never in memory both.
 */
enum cpprof_status
cpprof__decode(uint8_t *data, size_t n, bool consume, struct cpprof_pprof **out,
               struct cpprof_error *error);

#endif
