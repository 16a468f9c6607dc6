/* SPDX-License-Identifier: MIT */
/* What others may know of the ready writers. */
#ifndef BASE_WRITER_IO_H
#define BASE_WRITER_IO_H

#include <cpprof/writer.h>

#include <stdbool.h>

/* Is it one of cpprof_writer_to_path()? It needs nothing of its maker's. */
bool
cpprof__writer_is_path(const struct cpprof_writer *writer);

#endif
