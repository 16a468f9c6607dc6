/* SPDX-License-Identifier: MIT */
/*
 * The interpreter of examples/toy_vm.c, and profiles of it in memory.
 */
#ifndef LIVE_VM_TOY_H
#define LIVE_VM_TOY_H

#define TOY_NO_MAIN
#include "../../examples/toy_vm.c"

#include "memory.h"
#include "tap.h"

#include <string.h>

static struct cpprof_vm *toy_vm;
static struct memory toy_memory;

static inline void
toy_make(struct toy *toy)
{
    memset(toy, 0, sizeof *toy);
    if ((!toy_vm && cpprof_vm_new(&toy_ops, &toy_vm, NULL)) ||
        cpprof_vm_thread_new(toy_vm, toy, &toy->t, NULL))
        bail("no interpreter");
}

static inline void
toy_start_with(const struct cpprof_vm_options *options)
{
    struct cpprof_error error;

    if (cpprof_vm_start((struct cpprof_writer[]){memory_writer(&toy_memory)},
                        options, &error))
        bail("start: %s", error.text);
}

static inline void
toy_start(enum cpprof_vm_mode mode, uint32_t rate_hz)
{
    const struct cpprof_vm_options options = {
        .size = sizeof options, .mode = mode, .rate_hz = rate_hz};

    toy_start_with(&options);
}

/* Its one value is where those of CPU profiles have their time. */
static inline struct profile *
toy_read(void)
{
    struct profile *p = memory_profile(&toy_memory);
    size_t i;

    if (!p)
        bail("no profile");
    for (i = 0; i < p->n_samples; i++)
        p->samples[i].cpu_ns = p->samples[i].count;
    return p;
}

static inline struct profile *
toy_stop(void)
{
    struct cpprof_error error;

    if (cpprof_vm_stop(&error))
        bail("stop: %s", error.text);
    return toy_read();
}

static inline uint64_t
toy_clock(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
