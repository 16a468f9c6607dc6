/* SPDX-License-Identifier: MIT */
/* -symbolize=...: what it says, and doing it. */
#ifndef CLI_SYMBOLS_H
#define CLI_SYMBOLS_H

#include <cpprof/pprof/change.h>

#include <stdbool.h>

/* All 0: the flag was not given. */
struct cpprof__symbolize {
    bool none;      /* leave names as they are; nothing below counts */
    bool no_local;  /* not from binaries */
    bool no_remote; /* not from where the profile was fetched */
    bool fast;      /* functions only */
    bool force;     /* also what has names */
    enum pprof_demangle demangle;
    uint32_t flags; /* PPROF_DEMANGLE_* */
};

/* Parse "fastlocal:force:demangle=full", or NULL. Unknown parts are reported on
 * stderr and ignored. */
void
cpprof__parse_symbolize(struct cpprof__symbolize *symbolize, const char *text);

/*
 * Look for the binaries of a profile in the folders of PPROF_BINARY_PATH. Part
 * of reading it, whatever -symbolize says.
 */
enum cpprof_status
cpprof__find_binaries(struct pprof_profile *profile,
                      struct cpprof_error *error);

/*
 * Give a profile names, and demangle them. What is missing is reported on
 * stderr.
 *
 * remote   asks the profile's sources for names that are still missing, unless
 *          symbolize has no_remote; NULL: there are none to ask.
 */
struct cpprof__remote {
    enum cpprof_status (*symbolize)(void *ctx, struct pprof_profile *profile,
                                    bool force, struct cpprof_error *error);
    void *ctx;
};

enum cpprof_status
cpprof__symbolize(struct pprof_profile *profile,
                  const struct cpprof__symbolize *symbolize,
                  const struct cpprof__remote *remote,
                  struct cpprof_error *error);

#endif
