/* SPDX-License-Identifier: MIT */
/* The ready writers as values, for use in an expression. */
#ifndef TESTS_WRITERS_H
#define TESTS_WRITERS_H

#include <cpprof/writer.h>

static inline struct cpprof_writer
fd_writer(int fd)
{
    struct cpprof_writer writer;

    cpprof_writer_to_fd(fd, &writer);
    return writer;
}

static inline struct cpprof_writer
stream_writer(FILE *file)
{
    struct cpprof_writer writer;

    cpprof_writer_to_stream(file, &writer);
    return writer;
}

#endif
