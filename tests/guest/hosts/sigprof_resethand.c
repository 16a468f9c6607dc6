/* SPDX-License-Identifier: MIT */
/* guest: 4. SA_RESETHAND and SA_NODEFER of the program's SIGPROF are
 * honoured: the second signal ends it. */
#include "host.h"

static volatile sig_atomic_t n;

static void
count(int signal)
{
    (void)signal;
    n++;
}

int
main(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct sigaction action = {.sa_handler = count,
                                   .sa_flags = (int)SA_RESETHAND | SA_NODEFER};

        sigaction(SIGPROF, &action, NULL);
        raise(SIGPROF);
        if (n != 1)
            _exit(3);
        raise(SIGPROF);
        _exit(4);
    }
    EXPECT(status_of(pid) == 256 + SIGPROF, "it did not end by SIGPROF");
    return host_wrong;
}
