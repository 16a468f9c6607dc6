/* SPDX-License-Identifier: MIT */
/*
 * A process's CPU time from outside: an interrupt for each period of it, by
 * perf events, with the registers and the bytes of the stack. Nothing in the
 * process is touched, and nothing of it is stopped.
 */
#ifndef CLI_EVENTS_H
#define CLI_EVENTS_H

#include "arch/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cpprof__events;

enum cpprof__event_kind {
    CPPROF__EVENT_TICK,
    CPPROF__EVENT_MAPPED, /* the process has mapped code */
    CPPROF__EVENT_EXEC,   /* it runs another program now */
    CPPROF__EVENT_ENDED   /* a thread; of none but a tick more is filled */
};

/* What happened, in the order of time. What it points to is there until the
 * next. */
struct cpprof__event {
    enum cpprof__event_kind kind;
    bool exec_follows; /* among those that have come: what /proc says now is of
                        * a later program */
    pid_t tid;
    struct cpprof__regs regs;
    const uint8_t *stack; /* the bytes from regs.sp on */
    size_t n_stack;
    const uint8_t *chain; /* words: pc, then return addresses that the kernel
                           * found by frame pointers */
    size_t n_chain;       /* words */
};

/* Begin, as one of so many processes that share what memory may be locked.
 * NULL: error is for cpprof__events_error(). */
struct cpprof__events *
cpprof__events_open(pid_t pid, uint32_t rate_hz, unsigned n_processes,
                    int *error);

/* Those that have come; each is given to take. Returns how many were lost. */
uint64_t
cpprof__events_read(struct cpprof__events *events,
                    void (*take)(void *ctx, const struct cpprof__event *event),
                    void *ctx);

/* Time in the kernel may not be sampled by this user, and is missing. */
bool
cpprof__events_are_user_only(const struct cpprof__events *events);

/* Open and close them: 0, or the error. */
int
cpprof__events_probe(pid_t pid, unsigned n_processes);

const char *
cpprof__events_error(int error);

void
cpprof__events_close(struct cpprof__events *events);

#endif
