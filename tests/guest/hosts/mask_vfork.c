/* SPDX-License-Identifier: MIT */
/* guest: 4. A child of vfork that opens its mask opens its own: that of the
 * thread that made it, and what is pending there, stay. */
#include "host.h"

static bool
has_pending(void)
{
    sigset_t set;

    sigpending(&set);
    return sigismember(&set, SIGPROF);
}

static void *
makes_child(void *arg)
{
    sigset_t none, set;
    int status;
    pid_t pid;

    sigemptyset(&none);
    pid = vfork();
    if (!pid) {
        sigprocmask(SIG_SETMASK, &none, NULL);
        execl("/bin/true", "true", NULL);
        _exit(9);
    }
    waitpid(pid, &status, 0);
    EXPECT(status == 0, "the child ended by %x", status);
    sigprocmask(SIG_BLOCK, NULL, &set);
    EXPECT(sigismember(&set, SIGPROF), "SIGPROF is not blocked any more");
    busy_ms(100);
    EXPECT(!has_pending(), "SIGPROF is pending");
    pthread_kill(pthread_self(), SIGPROF);
    EXPECT(has_pending(), "SIGPROF is not pending");
    return arg;
}

int
main(void)
{
    pthread_t thread;
    sigset_t set;

    busy_ms(60);
    sigfillset(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    pthread_create(&thread, NULL, makes_child, NULL); /* born with the mask */
    pthread_join(thread, NULL);
    makes_child(NULL);
    return host_wrong;
}
