/* SPDX-License-Identifier: MIT */
/*
 * Stand-ins: names of functions without a symbol, "[IMAGE+0xADDRESS]". They say
 * where a function begins in one build of an image, so they mean something
 * else in another build.
 */
#ifndef PROFILE_STAND_INS_H
#define PROFILE_STAND_INS_H

#include "profile/model/model.h"

/* Is a name of n bytes, with a terminator, "[IMAGE+0xADDRESS]"? */
bool
cpprof__is_stand_in(const char *name, size_t n);

/*
 * Keep the functions of different builds apart: where mappings of the same file
 * name have different build ids, their stand-ins become "[IMAGE+0xADDRESS of
 * ID]", with eight digits of the build id. False: no memory.
 */
bool
cpprof__stand_ins_part(struct pprof_profile *p);

#endif
