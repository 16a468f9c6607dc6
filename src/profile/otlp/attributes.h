/* SPDX-License-Identifier: MIT */
/* What the parts of the encoder share. */
#ifndef PROFILE_OTLP_ATTRIBUTES_H
#define PROFILE_OTLP_ATTRIBUTES_H

#include "profile/otlp/otlp.h"

/* Fields of AnyValue. */
enum { VALUE_STRING = 1, VALUE_BOOL, VALUE_INT, VALUE_ARRAY = 5 };

/* KeyValue: its strings stand in it, because receivers know no others here. */
void
cpprof__otlp_put_pair(struct cpprof__buffer *out, uint32_t field,
                      const char *key, size_t n_key, const char *text,
                      size_t n);

#endif
