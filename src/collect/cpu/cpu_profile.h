/* SPDX-License-Identifier: MIT */
/* A CPU profile as a file: from stores to the builder. */
#ifndef COLLECT_CPU_PROFILE_H
#define COLLECT_CPU_PROFILE_H

#include "collect/cpu/cpu_legacy.h"
#include "collect/encode/builder.h"
#include "collect/store/spool.h"
#include <cpprof/cpprof.h>

/* One being written. */
struct cpprof__cpu_profile {
    bool is_legacy; /* in use if is_legacy, else the fields below */
    struct cpprof__cpu_legacy legacy;
    struct cpprof__builder *builder;
    const struct cpprof__symbolizer_ops *ops;
    struct cpprof__symbolizer *symbolizer;
    uint64_t period_ns;
    uint64_t n_samples; /* by weight */
};

enum cpprof__cpu_names {
    CPPROF__CPU_NAMES_APART,      /* by a symbolizer of its own */
    CPPROF__CPU_NAMES_KEPT,       /* kept_symbolizer.h: of any process */
    CPPROF__CPU_NAMES_REMEMBERED, /* names.h: of this process */
};

/* Begin, in the form and with the names that options ask for; no other option
 * is read. The writer belongs to the profile from here on, also on failure. */
enum cpprof_status
cpprof__cpu_profile_begin(struct cpprof__cpu_profile *profile,
                          const struct cpprof__spool_head *head,
                          const struct cpprof_cpu_options *options,
                          enum cpprof__cpu_names names,
                          struct cpprof_writer writer,
                          struct cpprof_error *error);

/* Add all that a store holds. */
void
cpprof__cpu_profile_add(struct cpprof__cpu_profile *profile,
                        const struct cpprof__store *store);

/* There was no memory for something to be added: the end will report it. */
void
cpprof__cpu_profile_fail_nomem(struct cpprof__cpu_profile *profile);

/* Add what was lost, say how it was made, write the end, close the writer. */
enum cpprof_status
cpprof__cpu_profile_end(struct cpprof__cpu_profile *profile,
                        const struct cpprof__spool_head *head, uint64_t lost,
                        struct cpprof_error *error);

/* "timer, 100 Hz" or, where the kernel delivers less, "timer, 1000 Hz asked,
 * 250 Hz delivered". */
void
cpprof__cpu_profile_engine(const struct cpprof__spool_head *head,
                           uint64_t n_samples, char *text, size_t n);

#endif
