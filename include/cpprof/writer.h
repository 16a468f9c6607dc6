/* SPDX-License-Identifier: MIT */
/*
 * Where bytes go: a callback, or one of the ready ones below.
 */
#ifndef CPPROF_WRITER_H
#define CPPROF_WRITER_H

#include <stddef.h>
#include <stdio.h>

#include <cpprof/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A sink of bytes.
 *
 * write    takes all n_bytes or fails: 0, or the errno that says why.
 * close    called exactly once when the last byte was written (failed is 0) or
 *          when no more will come (failed is 1); 0 or an errno. May be NULL.
 *
 * A call takes the struct by its address and copies it. One that is zeroed, as
 * it is when it could not be made, is refused with CPPROF_INVALID.
 *
 * A writer given to cpprof is used from one thread at a time, not always the
 * caller's. Its functions return: an exception or longjmp() out of one leaves
 * behind what the operation has, memory, locks and, where profiles of the
 * running process are written, a thread whose cancellation is disabled.
 */
struct cpprof_writer {
    size_t size; /* sizeof (struct cpprof_writer); 0: there is no writer */
    int (*write)(void *ctx, const void *data, size_t n_bytes);
    int (*close)(void *ctx, int failed);
    void *ctx;
};

/*
 * Write to an open descriptor or stream, which stays open.
 *
 * file     NULL, as fopen() returns it when it fails: the writer is zeroed, and
 *          the operation that is given it fails.
 *
 * Shape:   bytes as they come; short writes and EINTR are handled; a stream is
 *          flushed at the end. Neither SIGPIPE nor SIGXFSZ is raised: a pipe
 *          that nobody reads any more is the error EPIPE.
 * Errors:  of write(2) or fwrite(3), through the operation that writes.
 * Owner:   fd and file stay the caller's and must outlive the writer's use.
 * Safety:  MT.
 */
CPPROF_API void
cpprof_writer_to_fd(int fd, struct cpprof_writer *writer);
CPPROF_API void
cpprof_writer_to_stream(FILE *file, struct cpprof_writer *writer);

/*
 * Write to the file at path: under a temporary name beside it, renamed when
 * the last byte is there, so that a partial file is never taken for a whole
 * one. A symbolic link to a file is followed, and one that leads nowhere is
 * replaced. A device or a pipe is written where it is.
 *
 * writer   filled on success, zeroed on failure.
 *
 * Errors:  CPPROF_NOMEM, CPPROF_SYSTEM (the rights of the folder do not allow
 *          it, or there is none). No file is made before the first byte, so a
 *          full disk is an error then.
 * Owner:   the writer owns its state and frees it in close; give it to one
 *          call of cpprof, which always closes it.
 * Safety:  MT.
 */
CPPROF_API enum cpprof_status
cpprof_writer_to_path(const char *path, struct cpprof_writer *writer,
                      struct cpprof_error *error);

#ifdef __cplusplus
}
#endif

#endif
