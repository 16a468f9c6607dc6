/* SPDX-License-Identifier: MIT */
/* guest: 2, 3. System calls by which a program leaves its descriptors, its user
 * or its namespaces, made without libc: nothing hangs, and no byte of ours is
 * in a file of the program. */
#include "host.h"

#include "arch/kernel.h"
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static void
leave_descriptors(void)
{
    syscall(SYS_unshare, CLONE_FILES);
}

static void
leave_folder(void)
{
    syscall(SYS_unshare, CLONE_FS);
    if (chdir("/"))
        _exit(96);
}

static void
leave_mounts(void)
{
    syscall(SYS_unshare, CLONE_NEWNS);
}

static void
close_all(void)
{
    syscall(SYS_close_range, 3, ~0u, 0);
}

static void
close_all_apart(void)
{
    syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_UNSHARE);
}

static void
change_user(void)
{
    syscall(SYS_setgid, 65534);
    syscall(SYS_setuid, 65534);
}

static void
block_all(void)
{
    uint64_t all = ~0ull;

    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8);
}

/* Files that take the numbers that were freed, in the hands of the program. */
static void
use_descriptors(int fds[40])
{
    for (int i = 0; i < 40; i++)
        fds[i] = open("/tmp", O_TMPFILE | O_RDWR, 0600);
}

static void
check_descriptors(const int fds[40])
{
    struct stat st;

    for (int i = 0; i < 40; i++) {
        if (fds[i] < 0)
            continue;
        EXPECT(fstat(fds[i], &st) == 0, "a descriptor is gone");
        EXPECT(st.st_size == 0, "%d bytes in a file", (int)st.st_size);
        close(fds[i]);
    }
}

static void
child(void (*call)(void))
{
    pthread_t thread;
    int fds[40];

    sleep_ms(1300); /* until a forked child is sampled */
    call();
    use_descriptors(fds);
    thread = start_busy(20);
    busy_ms(20);
    pthread_join(thread, NULL);
    sleep_ms(50);
    check_descriptors(fds);
    exit(host_wrong ? 1 : 3);
}

int
main(void)
{
    static void (*const calls[])(void) = {
        leave_descriptors, leave_folder, leave_mounts, close_all,
        close_all_apart,   change_user,  block_all};
    enum { N = sizeof calls / sizeof *calls };
    pid_t pids[N];
    int i;

    for (i = 0; i < N; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            child(calls[i]);
    }
    for (i = 0; i < N; i++) {
        int status = status_of(pids[i]);

        EXPECT(status == 3, "call %d: %d", i, status);
    }
    return host_wrong;
}
