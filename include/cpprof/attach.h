/* SPDX-License-Identifier: MIT */
/*
 * Profiling of a process that runs already. `cpprof record -p PID` has the
 * process load this library and call these, each on a thread that was made for
 * the call; a program that loads the library by dlopen() may do the same.
 *
 *     char message[256];
 *
 *     cpprof_attach("cpu,heap,out=%k.pb.gz", message, sizeof message);
 *     ...
 *     cpprof_detach(message, sizeof message);
 *
 * A library that was loaded late does nothing before. docs/attach.md tells what
 * happens in the process.
 */
#ifndef CPPROF_ATTACH_H
#define CPPROF_ATTACH_H

#include <cpprof/status.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Begin to profile this process.
 *
 * config   what the variable CPPROF would say.
 * message  on failure one line without its end, why; may be NULL.
 * size     bytes that message has room for.
 *
 * Returns: 0, or a number of <errno.h>: EINVAL (config), EBUSY (it is profiled
 *          already), ENOTSUP (not in this process), and those of calls that
 *          failed. After a failure nothing is left of it.
 * Safety:  MT. Not AS: it makes threads and memory, and asks the loader.
 */
CPPROF_API int
cpprof_attach(const char *config, char *message, size_t size);

/*
 * End what cpprof_attach() has begun: the profiles are complete when it
 * returns, no thread and no handler of ours is left, and modules call what they
 * called before. The library stays; it may be attached again.
 *
 * Returns: 0, also when nothing was attached; or a number of <errno.h>:
 *          ETIMEDOUT (a thread of ours has not ended yet), and those of calls
 *          that failed.
 * Safety:  MT. Not AS.
 */
CPPROF_API int
cpprof_detach(char *message, size_t size);

#ifdef __cplusplus
}
#endif

#endif
