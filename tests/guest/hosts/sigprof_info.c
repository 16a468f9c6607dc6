/* SPDX-License-Identifier: MIT */
/* guest: 4. A SIGPROF that somebody queues arrives with its value. */
#include "host.h"

static volatile sig_atomic_t sum;

static void
add(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    if (info->si_code == SI_QUEUE)
        sum += info->si_value.sival_int;
}

int
main(void)
{
    struct sigaction action = {.sa_sigaction = add, .sa_flags = SA_SIGINFO};

    sigaction(SIGPROF, &action, NULL);
    for (int i = 1; i <= 20; i++) {
        sigqueue(getpid(), SIGPROF, (union sigval){.sival_int = i});
        busy_ms(3);
    }
    EXPECT(sum == 210, "the sum is %d", (int)sum);
    return host_wrong;
}
