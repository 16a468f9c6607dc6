/* SPDX-License-Identifier: MIT */
/*
 * Names that were found once, remembered between profiles: a program that is
 * asked for a profile every few seconds reads its debug information the first
 * time only. What is kept are the answers (functions, files, lines), not the
 * indexes they come from.
 *
 * It is a symbolizer like the one underneath (object/symbolizer.h), which is
 * opened only for an address that is new. One profile at a time uses what is
 * remembered; another one that does not want to wait goes without. Code without
 * a build id is known only until something is unloaded, JIT code never, and
 * that nothing is known about an address for a minute.
 */
#ifndef COLLECT_NAMES_H
#define COLLECT_NAMES_H

#include "object/symbolizer.h"

/* Tunable: memory for what is remembered, for the whole process; an address
 * takes some 100 bytes. Once it is full nothing is added, and it is emptied
 * when a profile needed less than half of it. */
#define CPPROF__NAMES_BYTES (16u * 1024 * 1024)

/* NULL as cpprof__symbolizer_load(). */
const struct cpprof__symbolizer_ops *
cpprof__names_load(void);

/* The same over another symbolizer: for tests. */
const struct cpprof__symbolizer_ops *
cpprof__names_over(const struct cpprof__symbolizer_ops *inner);

/* Forget everything, and how many bytes are held. Safety: MT. */
void
cpprof__names_forget(void);
size_t
cpprof__names_held(void);

/* fork: the child keeps what is remembered unless it was in use. */
void
cpprof__names_fork_prepare(void);
void
cpprof__names_fork_parent(void);
void
cpprof__names_fork_child(void);

#endif
