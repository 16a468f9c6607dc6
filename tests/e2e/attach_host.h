/* SPDX-License-Identifier: MIT */
/*
 * Processes to attach to: what their modes share (attach_host.c).
 */
#ifndef E2E_ATTACH_HOST_H
#define E2E_ATTACH_HOST_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

#define MOMENT_MS 50

/* One goes round and round until SIGTERM has come. */
struct mode {
    const char *name;
    void (*round)(void);
};

/* attach_waits.c: those that wait in a system call, and an empty one. */
extern const struct mode waits[];

extern volatile sig_atomic_t must_end; /* SIGTERM has come */
extern volatile sig_atomic_t n_usr1;   /* so often SIGUSR1 */

/* Say what was other than alone, and end. */
void __attribute__((noreturn)) wrong(const char *what, long got);

double
now_ms(void);

void
moment(void);

/* Of a call that waits; SIGTERM alone may interrupt it. */
void
expect(const char *what, long got, long wanted);

/* A child that calls f(arg) after each moment, for as long as we live. */
pid_t
child_of(void (*f)(void *), void *arg);

#endif
