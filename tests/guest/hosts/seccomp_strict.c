/* SPDX-License-Identifier: MIT */
/* guest: 3. A thread under strict seccomp, which may read, write and exit, is
 * killed for no system call of ours, and exit() writes out what was printed. */
#include "host.h"
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int done[2];

static __attribute__((noinline)) void
burn(void)
{
    volatile unsigned sink = 0;

    for (unsigned i = 0; i < 200000 * host_busy; i++)
        sink += i;
}

static void
confine(void)
{
    for (int i = 0; i < 10; i++)
        free(malloc(100));
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        syscall(SYS_exit, 98);
    for (int i = 0; i < 10; i++)
        burn();
    for (int i = 0; i < 1000; i++)
        free(malloc(100));
    if (write(done[1], "x", 1) != 1)
        syscall(SYS_exit, 97);
}

static void *
confined_thread(void *arg)
{
    confine();
    syscall(SYS_exit, 0);
    return arg;
}

int
main(void)
{
    char byte = 0;
    pthread_t thread;
    pid_t pid;

    if (pipe(done))
        return 99;
    busy_ms(20);
    pid = fork();
    if (pid == 0) { /* the only thread */
        confine();
        syscall(SYS_exit, 5);
    }
    EXPECT(status_of(pid) == 5, "the confined child ended otherwise");
    EXPECT(read(done[0], &byte, 1) == 1 && byte == 'x', "it did not write");
    pid = fork();
    if (pid == 0) {
        printf("written out by exit()\n");
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        exit(5);
    }
    EXPECT(status_of(pid) == 256 + SIGKILL, "exit() under strict seccomp");
    pthread_create(&thread, NULL, confined_thread, NULL);
    EXPECT(read(done[0], &byte, 1) == 1 && byte == 'x', "a thread did not");
    EXPECT(pthread_join(thread, NULL) == 0, "join");
    return host_wrong;
}
