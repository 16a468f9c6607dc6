/* SPDX-License-Identifier: MIT */
/* The file that a report is written to. */
#ifndef CLI_OUTPUT_FILE_H
#define CLI_OUTPUT_FILE_H

#include <cpprof/writer.h>

/*
 * As cpprof_writer_to_path(). If SIGINT, SIGTERM or SIGHUP comes before the
 * file is complete, its temporary is removed before the signal ends the
 * command. There is one at a time.
 */
enum cpprof_status
cpprof__output_file(const char *path, struct cpprof_writer *writer,
                    struct cpprof_error *error);

#endif
