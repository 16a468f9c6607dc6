/* SPDX-License-Identifier: MIT */
/* guest: 4. The alternate stack of the program is small: what lies below it
 * stays as it is. */
#include "host.h"

#ifdef __aarch64__
enum { SIZE = 16384 }; /* SIGSTKSZ; the kernel keeps 4.7 KB for each signal */
#else
enum { SIZE = 8192 };
#endif
enum { BELOW = 65536 };
static unsigned char memory[BELOW + SIZE] __attribute__((aligned(64)));

static void
on_usr1(int signal)
{
    (void)signal;
    busy_ms(150);
}

int
main(void)
{
    struct sigaction action = {.sa_handler = on_usr1, .sa_flags = SA_ONSTACK};
    stack_t stack = {.ss_sp = memory + BELOW, .ss_size = SIZE};
    size_t changed = 0;

    memset(memory, 0xa5, sizeof memory);
    EXPECT(sigaltstack(&stack, NULL) == 0, "sigaltstack: %s", strerror(errno));
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    for (size_t i = 0; i < BELOW; i++)
        changed += memory[i] != 0xa5;
    EXPECT(changed == 0, "%zu bytes below the stack changed", changed);
    return host_wrong;
}
