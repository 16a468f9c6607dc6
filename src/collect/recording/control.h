/* SPDX-License-Identifier: MIT */
#ifndef COLLECT_RECORDING_CONTROL_H
#define COLLECT_RECORDING_CONTROL_H

#include <stdbool.h>

/* Was cpprof_recording_stop() called? */
bool
cpprof__control_is_set(const char *directory);

#endif
