/* SPDX-License-Identifier: MIT */
/*
 * Remembers names between profiles: a program that is asked for a profile every
 * few seconds reads its debug information only the first time. The answers are
 * kept: functions, files, lines.
 *
 * It is a symbolizer with an inner one (object/symbolizer.h), which is made
 * only for a new address. That is kept, too, with its files, but for large ones
 * and those that have changed; it is given back before the next profile that
 * needs one if something was unloaded. One profile at a time uses the
 * remembered names; another one that does not want to wait goes without. Names
 * of code without a build id are kept only until something is unloaded, names
 * of JIT code not at all, and the answer that there is no name for a minute.
 */
#ifndef COLLECT_NAMES_H
#define COLLECT_NAMES_H

#include "object/symbolizer.h"

/* Tunable: memory for remembered names, for the whole process. An address takes
 * some 100 bytes. When it is full nothing is added. It is emptied when a
 * profile has used less than half of it. */
#define CPPROF__NAMES_BYTES (16u * 1024 * 1024)

/* Tunable: an inner symbolizer that holds more closes its largest files when
 * the profile is written, and opens them again for a new address. */
#define CPPROF__NAMES_INNER_BYTES (4u * 1024 * 1024)

/* NULL as cpprof__symbolizer_load(). */
const struct cpprof__symbolizer_ops *
cpprof__names_load(void);

/* The same with another inner symbolizer: for tests. */
const struct cpprof__symbolizer_ops *
cpprof__names_over(const struct cpprof__symbolizer_ops *inner);

/* Forget everything; and the number of bytes held. Safety: MT. */
void
cpprof__names_forget(void);
size_t
cpprof__names_held(void);

/* dlclose(): where something went, no file stays mapped. */
void
cpprof__names_after_unload(void);

/* fork: the child keeps what is remembered unless it was in use. */
void
cpprof__names_in_child(void);

#endif
