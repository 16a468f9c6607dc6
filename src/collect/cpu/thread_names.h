/* SPDX-License-Identifier: MIT */
/*
 * What the threads of this process are called (pthread_setname_np, prctl), for
 * a label of their samples. Whoever counts the samples reads a name from /proc
 * when it is needed, and again a second later; threads and handlers do nothing
 * for it. A thread that is gone by then has no name.
 */
#ifndef COLLECT_THREAD_NAMES_H
#define COLLECT_THREAD_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define CPPROF__THREAD_LABEL "thread"

/* A name, as UTF-8 that ends with a 0. */
#define CPPROF__THREAD_NAME_BYTES 16

/* Threads that are remembered, as slots that others may take. */
#define CPPROF__THREAD_NAMES 256u

/* Zero bytes know none. */
struct cpprof__thread_names {
    struct cpprof__thread_name {
        uint64_t until_ns; /* CLOCK_MONOTONIC: it is read again then */
        int32_t tid;       /* 0: free */
        char text[CPPROF__THREAD_NAME_BYTES];
    } at[CPPROF__THREAD_NAMES];
};

/* The name of a thread of this process, alive until the next call; "": it has
 * none. */
const char *
cpprof__thread_name(struct cpprof__thread_names *names, int32_t tid);

#endif
