/* SPDX-License-Identifier: MIT */
/* Whose profiles OTLP brings: the attributes of this process. */
#ifndef PUSH_RESOURCE_H
#define PUSH_RESOURCE_H

#include "base/buffer.h"
#include "push/plan.h"

/*
 * Append, as OTEL_RESOURCE_ATTRIBUTES has them and with a zero byte at the end,
 * what this process is: its pid, executable, host and container; then that
 * variable, then the labels of the plan, and OTEL_SERVICE_NAME or the name that
 * was given as service.name. The last of a key counts. out->failed: no memory.
 * Returns the first member of the variable that cannot be read, of *n_bad
 * bytes, or NULL.
 *
 * Safety:  MT. Opens files.
 */
const char *
cpprof__push_resource(const struct cpprof__push_plan *plan,
                      struct cpprof__buffer *out, size_t *n_bad);

/* The id of the container in the text of /proc/self/cgroup or mountinfo, 64
 * digits of hex, or NULL. */
const char *
cpprof__push_container(const char *text);

#endif
