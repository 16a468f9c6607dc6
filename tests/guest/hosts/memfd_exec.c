/* SPDX-License-Identifier: MIT */
/* guest: 2. A program that runs itself from a copy in memory (memfd_create,
 * fexecve), has its own maps replaced by PR_SET_MM where it may, and waits in
 * epoll for a signalfd: nothing comes that nobody sent. */
#include "host.h"
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

static void
inside(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(0), signals, i;
    sigset_t all;

    prctl(PR_SET_MM, PR_SET_MM_ARG_START, (unsigned long)&all, 0, 0);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    signals = signalfd(-1, &all, 0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, signals, &event);
    for (i = 0; i < 40; i++) {
        int n = epoll_wait(epoll, &event, 1, 10);

        EXPECT(n == 0, "epoll_wait: %d, %s", n, strerror(errno));
        busy_ms(4);
    }
    raise(SIGUSR1);
    EXPECT(epoll_wait(epoll, &event, 1, 1000) == 1, "not what was sent");
}

int
main(int argc, char **argv)
{
    extern char **environ;
    char *words[] = {argv[0], "again", NULL};
    int file, copy = memfd_create("copy", 0);
    struct stat info;
    pid_t pid;

    if (argc > 1) {
        inside();
        return host_wrong;
    }
    file = open("/proc/self/exe", O_RDONLY);
    fstat(file, &info);
    EXPECT(sendfile(copy, file, NULL, (size_t)info.st_size) == info.st_size,
           "no copy");
    pid = fork();
    if (pid == 0) {
        fexecve(copy, words, environ);
        _exit(99);
    }
    EXPECT(status_of(pid) == 0, "the copy ended otherwise");
    return host_wrong;
}
