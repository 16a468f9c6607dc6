/* SPDX-License-Identifier: MIT */
/*
 * The program's standard error, from threads with a table of descriptors of
 * their own (own_threads.h). A line that the keeper is to write is in `saying`
 * until it has taken it; a newer one takes its place.
 */
#include "collect/runtime/own_threads.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/kernel.h"
#include "collect/runtime/keeper.h"
#include "own/memory.h"
#include "own/say.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Tunables. The keeper has so many looks of this length to write a line. */
#define SAY_LOOK_NS 1000000
#define SAY_LOOKS   1000u

struct saying {
    size_t n;
    char line[];
};
static struct saying *saying;

static void
say_on_keeper(void)
{
    struct saying *s = __atomic_exchange_n(&saying, NULL, __ATOMIC_ACQ_REL);

    if (s)
        cpprof__say(s->line, s->n);
    cpprof__free(s);
}

/* The keeper may block in write(), so the wait for it is bounded. */
static void
have_keeper_say(const char *line, size_t n)
{
    struct saying *s = cpprof__malloc(sizeof *s + n);
    unsigned i;

    if (!s)
        return;
    s->n = n;
    memcpy(s->line, line, n);
    cpprof__free(__atomic_exchange_n(&saying, s, __ATOMIC_ACQ_REL));
    if (!cpprof__keeper_run(say_on_keeper))
        say_on_keeper();
    for (i = 0; load_acquire(&saying) && i < SAY_LOOKS; i++)
        cpprof__sleep_ns(SAY_LOOK_NS);
}

void
cpprof__own_thread_say(const char *line, size_t n)
{
    int process, fd;

    if (!cpprof__own_thread_has_table()) {
        cpprof__say(line, n);
        return;
    }
    process = (int)syscall(SYS_pidfd_open, getpid(), 0);
    fd = (int)syscall(SYS_pidfd_getfd, process, STDERR_FILENO, 0);
    if (fd < 0)
        have_keeper_say(line, n);
    else if (cpprof__say_knows(fd))
        cpprof__say_to(fd, line, n);
    close(fd);
    close(process);
}
