/* SPDX-License-Identifier: MIT */
/* The file that a report is written to. */
#ifndef CLI_OUTPUT_FILE_H
#define CLI_OUTPUT_FILE_H

#include <cpprof/writer.h>

/*
 * cpprof_writer_to_path(); and when SIGINT, SIGTERM or SIGHUP comes before the
 * file is whole, its temporary goes before the signal ends the command. There
 * is one at a time.
 */
enum cpprof_status
cpprof__output_file(const char *path, struct cpprof_writer *writer,
                    struct cpprof_error *error);

#endif
