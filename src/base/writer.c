/* SPDX-License-Identifier: MIT */
#include "base/writer.h"

#include "base/options.h"
#include "base/status.h"

#include <string.h>

enum cpprof_status
cpprof__writer_take(const struct cpprof_writer *given,
                    struct cpprof_writer *writer, struct cpprof_error *error)
{
    enum cpprof_status status;

    memset(writer, 0, sizeof *writer);
    if (!given || !given->size)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "there is no writer: it is zeroed, as one that "
                            "could not be made is");
    status =
        cpprof__options(writer, sizeof *writer, given, "cpprof_writer", error);
    if (status == CPPROF_OK && !writer->write) {
        cpprof__writer_refuse(writer);
        memset(writer, 0, sizeof *writer);
        status = cpprof__fail(error, CPPROF_INVALID, 0,
                              "the writer has no write function");
    }
    return status;
}

void
cpprof__writer_refuse(const struct cpprof_writer *writer)
{
    if (writer->close)
        writer->close(writer->ctx, 1);
}

void
cpprof__writer_end(const struct cpprof_writer *writer,
                   struct cpprof_error *error)
{
    int sys = 0;

    if (writer->close)
        sys = writer->close(writer->ctx, error->status != CPPROF_OK);
    if (sys && error->status == CPPROF_OK)
        cpprof__fail(error, CPPROF_SYSTEM, sys, "close: %s", strerror(sys));
}
