/* SPDX-License-Identifier: MIT */
/* Files that the command makes: reports, copies, folders above them. */
#ifndef CLI_OUTPUT_FILE_H
#define CLI_OUTPUT_FILE_H

#include <cpprof/writer.h>

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * As cpprof_writer_to_path(). If SIGINT, SIGTERM or SIGHUP comes before the
 * file is complete, its temporary is removed before the signal ends the
 * command. There is one at a time.
 */
enum cpprof_status
cpprof__output_file(const char *path, struct cpprof_writer *writer,
                    struct cpprof_error *error);

/* Make the first file FRONT001END, FRONT002END, ... that is not there yet. path
 * is its name, or the one that failed. Returns a descriptor, or -1 with errno.
 */
int
cpprof__numbered_file(char path[PATH_MAX], const char *front, const char *end);

/* Remove all files of an open folder, and the empty folders in it. Safety: AS.
 */
void
cpprof__remove_files(int folder);

/* mkdir -p of the folders above a file; false with errno. */
bool
cpprof__make_folders_above(const char *path, mode_t mode);

#endif
