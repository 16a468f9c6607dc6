/* SPDX-License-Identifier: MIT */
#ifndef COLLECT_RECORDING_CONTROL_H
#define COLLECT_RECORDING_CONTROL_H

#include <stdbool.h>

/* Has this process called cpprof_recording_stop()? */
bool
cpprof__control_is_set(const char *directory);

#endif
