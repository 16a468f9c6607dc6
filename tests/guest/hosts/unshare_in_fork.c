/* SPDX-License-Identifier: MIT */
/* guest: 2. A signal handler that interrupts fork() changes the credentials and
 * the table of descriptors of its process. */
#include "host.h"
#include <linux/close_range.h>
#include <sched.h>
#include <sys/time.h>

enum { FORKS = 300, EVERY_US = 300 };

static volatile sig_atomic_t n_wrong;

static void
change(int signal)
{
    int saved_errno = errno;

    (void)signal;
    n_wrong += unshare(CLONE_FS) != 0;
    n_wrong += close_range(1000000, 1000001, CLOSE_RANGE_UNSHARE) != 0;
    n_wrong += setuid(getuid()) != 0;
    errno = saved_errno;
}

/* fork() alone is not interrupted where it has locks often enough. */
static void
prepare(void)
{
    raise(SIGALRM);
}

int
main(void)
{
    struct sigaction action = {.sa_handler = change, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, EVERY_US}, {0, EVERY_US}};
    struct itimerval never = {{0, 0}, {0, 0}};
    int i;

    busy_ms(20);
    pthread_atfork(prepare, NULL, NULL);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (i = 0; i < FORKS; i++) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(3);
        EXPECT(status_of(pid) == 3, "a child ended otherwise");
    }
    setitimer(ITIMER_REAL, &never, NULL);
    EXPECT(n_wrong == 0, "%d calls failed", (int)n_wrong);
    return host_wrong;
}
