/* SPDX-License-Identifier: MIT */
/* guest: 3. No new privileges: a step before a filter, or all that a program
 * does. Afterwards it is as it was: alone where it was alone, and it ends when
 * its last thread does. */
#include "host.h"
#include <sched.h>
#include <sys/prctl.h>

static void
forgo(void)
{
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "prctl: %s",
           strerror(errno));
}

/* Only a process of one thread may have a user namespace of its own. */
static void
own_namespace(void)
{
    busy_ms(30);
    forgo();
    EXPECT(unshare(CLONE_NEWUSER) == 0, "unshare: %s", strerror(errno));
    busy_ms(10);
}

static void
last_thread(void)
{
    busy_ms(30);
    forgo();
    pthread_exit(NULL);
}

static void
other_program(void)
{
    forgo();
    execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
}

static void
thread_that_goes_on(void)
{
    pthread_t thread;

    forgo();
    thread = start_busy(30);
    pthread_join(thread, NULL);
    exit(5);
}

static int
in_child(void (*f)(void))
{
    pid_t pid = fork();

    if (pid)
        return status_of(pid);
    alarm(10); /* and not after half a minute */
    f();
    exit(host_wrong);
}

/* It has its parent's memory. */
static void
in_vfork_child(void)
{
    pid_t pid = vfork();

    if (!pid) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        _exit(3);
    }
    EXPECT(status_of(pid) == 3, "child of vfork");
}

int
main(void)
{
    int status;

    alarm(60);
    in_vfork_child();
    status = in_child(own_namespace);
    EXPECT(status == 0, "namespace: %d", status);
    status = in_child(last_thread);
    EXPECT(status == 0, "last thread: %d", status);
    status = in_child(other_program);
    EXPECT(status == 7, "other program: %d", status);
    status = in_child(thread_that_goes_on);
    EXPECT(status == 5, "thread: %d", status);
    busy_ms(20);
    own_namespace();
    last_thread();
}
