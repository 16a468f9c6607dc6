/* SPDX-License-Identifier: MIT */
/* Threads that race with each other, and with forks of their process. */
#ifndef LIVE_RACE_H
#define LIVE_RACE_H

#include "load.h"
#include "tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_bool enough; /* what the threads end by */

/* One thread for each role, up to 16, until so many children, one after the
 * other, have come and gone. */
static void
race(void *(*const roles[])(void *), unsigned n_roles, unsigned n_children)
{
    pthread_t threads[16];
    unsigned i, failed = 0;
    int status;

    for (i = 0; i < n_roles; i++)
        if (pthread_create(&threads[i], NULL, roles[i], NULL))
            bail("pthread_create");
    for (i = 0; i < n_children; i++) {
        uint64_t until = wall_ns() + 150 * MS;
        pid_t pid;

        while (wall_ns() < until)
            usleep(10000); /* which signals end */
        pid = fork();
        if (!pid)
            _exit(0);
        waitpid(pid, &status, 0);
        failed += status != 0;
    }
    atomic_store(&enough, true);
    for (i = 0; i < n_roles; i++)
        pthread_join(threads[i], NULL);
    check_equal(failed, 0, "children_forked_meanwhile_end_well");
}

#endif
