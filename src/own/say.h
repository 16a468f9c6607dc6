/* SPDX-License-Identifier: MIT */
/*
 * Lines for whoever reads the program's standard error.
 *
 * Descriptor 2 is a number that the program may give to any file: a data base
 * that it opened after close(2) gets it. So what 2 is when the library comes
 * into the process is remembered, and a line is written only where 2 is that
 * file still. Otherwise it is lost.
 *
 * Safety: MT.
 */
#ifndef OWN_SAY_H
#define OWN_SAY_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What 2 is now is the standard error. In a process that has run for a while
 * nobody knows what it is, so is_late takes the process's own terminal only.
 * Once, before any other call. */
void
cpprof__say_begin(bool is_late);

/* Is fd the standard error? */
bool
cpprof__say_knows(int fd);

/*
 * Write to the standard error of the caller's table of descriptors. A copy of
 * it is written to, at a high number for so long: what is looked at is what is
 * written to, whatever other threads close and open meanwhile. No copy, no
 * line.
 */
void
cpprof__say(const char *line, size_t n);

/* Write to a descriptor, or nothing: where nobody reads what stands in a pipe
 * or on a terminal, the program would wait with us. */
void
cpprof__say_to(int fd, const char *line, size_t n);

/*
 * What the calling thread writes between these two raises neither SIGPIPE nor
 * SIGXFSZ: a closed pipe, or RLIMIT_FSIZE, must not end the program. What was
 * pending before stays pending. sys is the errno of what failed, 0 if nothing
 * did. errno stays.
 */
struct cpprof__quiet {
    sigset_t before, pending;
    bool is_known; /* what the mask was */
};
void
cpprof__quiet_begin(struct cpprof__quiet *quiet);
void
cpprof__quiet_end(struct cpprof__quiet *quiet, int sys);

/* write(2) so. It is no point of cancellation. */
ssize_t
cpprof__write_quietly(int fd, const void *data, size_t n);

#endif
