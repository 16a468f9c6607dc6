/* SPDX-License-Identifier: MIT */
/*
 * Debug files and binaries from the servers of $DEBUGINFOD_URLS, by
 * libdebuginfod, which keeps them where all of its users find them. The library
 * is loaded when the first file is asked for.
 *
 * Threads: one at a time.
 */
#ifndef CLI_DEBUGINFOD_H
#define CLI_DEBUGINFOD_H

#include <cpprof/pprof/symbolize.h>

#include <stdbool.h>
#include <stddef.h>

/* The value of -debuginfod where it is not given: ask if $DEBUGINFOD_URLS is
 * set. */
extern const char cpprof__debuginfod_default[];

/*
 * Take the value of -debuginfod: a URL, "" for $DEBUGINFOD_URLS, or NULL for
 * "no". False after printing that no server is known.
 */
bool
cpprof__debuginfod_begin(const char *value);

/* Will servers be asked? */
bool
cpprof__debuginfod_is_on(void);

/* fetch of struct pprof_symbolize_options. Once a server does not answer none
 * is asked any more, which is printed. */
bool
cpprof__debuginfod_fetch(void *ctx, enum pprof_wanted_file what,
                         const char *build_id, char *path, size_t n_path);

#endif
