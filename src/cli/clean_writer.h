/* SPDX-License-Identifier: MIT */
/* A writer that keeps names of a profile from controlling a terminal. */
#ifndef CLI_CLEAN_H
#define CLI_CLEAN_H

#include <cpprof/status.h>
#include <cpprof/writer.h>

/*
 * A writer in front of `to`, which ends at fd. If fd is a terminal, control
 * characters are shown as "\x1b", except ends of lines and tabs; else bytes
 * pass as they are. There is one at a time: the next one takes the place of the
 * last.
 */
struct cpprof_writer
cpprof__clean_writer(struct cpprof_writer to, int fd);

#endif
