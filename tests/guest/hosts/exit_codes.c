/* SPDX-License-Identifier: MIT */
/* guest: 2. However a process ends, that is its status. */
#include "host.h"

static void *
exits(void *arg)
{
    exit(*(int *)arg);
}

static void
exits_in_handler(int signal)
{
    _exit(signal);
}

static void
end(int how)
{
    static int status = 12;
    pthread_t thread;

    switch (how) {
    case 0:
        exit(11);
    case 1:
        pthread_create(&thread, NULL, exits, &status);
        pause();
        break;
    case 2:
        signal(SIGUSR1, exits_in_handler);
        raise(SIGUSR1);
        break;
    case 3:
        quick_exit(13);
    case 4:
        abort();
    case 5:
        raise(SIGKILL);
        break;
    case 6:
        *(volatile int *)16 = 1;
        break;
    case 7:
        start_busy(20);
        pthread_exit(NULL);
    case 8:
        raise(SIGTERM);
        break;
    }
}

int
main(void)
{
    const int wanted[] = {11,
                          12,
                          SIGUSR1,
                          13,
                          256 + SIGABRT,
                          256 + SIGKILL,
                          256 + SIGSEGV,
                          0,
                          256 + SIGTERM};

    for (int i = 0; i < 9; i++) {
        pid_t pid = fork();
        int got;

        if (pid == 0) {
            busy_ms(15);
            end(i);
        }
        got = status_of(pid);
        EXPECT(got == wanted[i], "way %d: %d, not %d", i, got, wanted[i]);
    }
    return host_wrong;
}
