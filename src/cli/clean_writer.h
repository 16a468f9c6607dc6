/* SPDX-License-Identifier: MIT */
/* Names of a profile are not to command a terminal. */
#ifndef CLI_CLEAN_H
#define CLI_CLEAN_H

#include <cpprof/status.h>
#include <cpprof/writer.h>

/*
 * `to`, which ends at fd. Where that is a terminal, control characters are
 * shown as "\x1b", ends of lines and tabs excepted; else bytes pass as they
 * are. There is one at a time: the next one takes the place of the last.
 */
struct cpprof_writer
cpprof__clean_writer(struct cpprof_writer to, int fd);

#endif
