/* SPDX-License-Identifier: MIT */
/* Small reads from /proc/self, outside handlers. */
#ifndef COLLECT_PROC_H
#define COLLECT_PROC_H

#include "base/buffer.h"
#include "own/folder.h"

#include <stdbool.h>
#include <stdint.h>

/* The process's mappings; a main thread that has ended has none, so they are
 * those of the calling thread. Without /proc they are the loader's modules. */
bool
cpprof__proc_maps(struct cpprof__buffer *out);

/* Without /proc: see which modules there are now. Asks for the loader's lock.
 */
void
cpprof__proc_note_modules(void);

/* In a child made by fork. */
void
cpprof__proc_in_child(void);

/* The executable's path, " (deleted)" stripped; "" when it cannot be told. */
void
cpprof__proc_exe(char *path, size_t n);

/* Its base name. */
void
cpprof__proc_name(char *name, size_t n);

/* The field of that number in the text of a file `stat`, or NULL. The second is
 * in parentheses, and may have any of the characters. Source: proc_pid_stat(5).
 */
const char *
cpprof__proc_stat_field(const char *stat, unsigned number);

/* The main thread stays in the list of threads, as a zombie, until the process
 * ends. status: as wait() would tell it. */
bool
cpprof__proc_main_has_ended(int *status);

/* The number of the pid namespace that this process is in; 0 when it cannot be
 * told. */
uint64_t
cpprof__proc_pid_namespace(void);

/* Lists /proc/self/task, which may be of another pid namespace, where threads
 * have other numbers. False: errno says why, ESRCH for that. */
bool
cpprof__proc_threads(struct cpprof__folder *tasks);

/* How many threads the kernel counts; 0 when it cannot be told. */
uint32_t
cpprof__proc_n_threads(void);

/* How much of the user's limit on queued signals is used, 0 to 1; 0 when it
 * cannot be told. */
double
cpprof__proc_signals_queued(void);

/* Has it locked memory? */
bool
cpprof__proc_locks_memory(void);

/* Has the program set up a seccomp filter, which may end it for a call of ours?
 * One that all processes of a container have came before. */
bool
cpprof__proc_has_own_filter(void);

/* The program, or a parent of this child, is about to set one up, as it said by
 * prctl(); and did it? From then on a thread reads what is its own without the
 * kernel's copying, for which a filter may kill. Safety: AS. */
void
cpprof__proc_note_filter(void);
bool
cpprof__proc_had_filter(void);

/* Does thread tid block signal signo? */
bool
cpprof__proc_blocks(int32_t tid, int signo);

#endif
