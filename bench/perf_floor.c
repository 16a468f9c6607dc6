/* SPDX-License-Identifier: MIT */
/*
 * The least that sampling by perf events can cost here: the event and the
 * signal of the perf engine with a handler that does nothing.
 *
 *     LD_PRELOAD=libperf_floor.so PERF_FLOOR_HZ=1000 program
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void
nothing(int signo)
{
    (void)signo;
}

__attribute__((constructor)) static void
arm(void)
{
    struct f_owner_ex owner = {F_OWNER_TID, (pid_t)syscall(SYS_gettid)};
    struct sigaction action = {.sa_flags = SA_RESTART};
    const char *hz = getenv("PERF_FLOOR_HZ");
    struct perf_event_attr attr;
    int fd;

    if (!hz)
        return;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.sample_period = 1000000000u / (unsigned)atoi(hz);
    attr.exclude_kernel = 1;
    attr.wakeup_events = 1;
    action.sa_handler = nothing;
    sigaction(SIGPROF, &action, NULL);
    fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
                      PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        _exit(77);
    fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK);
    fcntl(fd, F_SETSIG, SIGPROF);
    fcntl(fd, F_SETOWN_EX, &owner);
}
