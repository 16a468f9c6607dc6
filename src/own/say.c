/* SPDX-License-Identifier: MIT */
/*
 * Says lines by a copy of descriptor 2 (say.h), which is compared with what 2
 * was, written to and closed. So is what the calling thread writes without
 * being ended for it.
 */
#include "own/say.h"

#include "arch/mix.h"
#include "arch/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* Tunable: the copy has this number or a higher one, or half of the limit on
 * descriptors where that is lower. */
#define HIGH 256

/* What descriptor 2 was; 0: nothing. */
static uint64_t standard_error CPPROF__AT_START;

/* Tunable: who reads a pipe or a terminal that is full has so long. */
#define ROOM_NS 100000000L

/* Who waits for room in a pipe has room for so much. */
#define PIECE ((size_t)PIPE_BUF)

/* Tunable. A line that as many signals come in between of is lost. */
#define INTERRUPTIONS 100u

/* What tells an open file from all others, or 0. The number of an inode comes
 * again when its file is gone, often for the next file that is made: that one
 * was born later, where the file system tells. A server that has the file is
 * not asked: it may not answer. */
static uint64_t
identity_of(int fd)
{
    struct statx file = {0};
    uint64_t identity = 0;
    size_t i;

    if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
                STATX_TYPE | STATX_INO | STATX_BTIME, &file))
        return 0;

    const uint64_t words[] = {
        file.stx_ino,
        (uint64_t)file.stx_dev_major << 32 | file.stx_dev_minor,
        (uint64_t)file.stx_rdev_major << 32 | file.stx_rdev_minor,
        file.stx_mode & S_IFMT,
        (uint64_t)file.stx_btime.tv_sec,
        file.stx_btime.tv_nsec,
    };
    for (i = 0; i < sizeof words / sizeof *words; i++)
        identity = cpprof__mix_u64(identity ^ words[i]) + CPPROF__GOLDEN;
    return identity;
}

/* The terminal that the process is in. Any other is a device, or the end of one
 * that the program reads and writes for another: what is said there is typed.
 */
static bool
is_own_terminal(int fd)
{
    pid_t session = getsid(0);

    return session > 0 && tcgetsid(fd) == session;
}

void
cpprof__say_begin(bool is_late)
{
    int sys = errno;

    if (!is_late || is_own_terminal(STDERR_FILENO))
        standard_error = identity_of(STDERR_FILENO);
    errno = sys;
}

bool
cpprof__say_knows(int fd)
{
    return standard_error && identity_of(fd) == standard_error;
}

static int
copy_high(void)
{
    struct rlimit limit;
    int high = HIGH;

    if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur / 2 < HIGH)
        high = (int)(limit.rlim_cur / 2);
    return (int)syscall(SYS_fcntl, STDERR_FILENO, F_DUPFD_CLOEXEC, high);
}

/* The wait goes on where a handler interrupted it: the kernel keeps `left`. */
static bool
has_room(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
    struct timespec left = {0, ROOM_NS};
    unsigned i;
    long n = -1;

    for (i = 0; n < 0 && i < INTERRUPTIONS; i++) {
        n = syscall(SYS_ppoll, &poll_fd, 1, &left, NULL, _NSIG / 8);
        if (n < 0 && errno != EINTR)
            return false;
    }
    return n > 0;
}

/* What has room has it for one piece. */
void
cpprof__say_to(int fd, const char *line, size_t n)
{
    ssize_t written;

    while (n && has_room(fd)) {
        written = cpprof__write_quietly(fd, line, n < PIECE ? n : PIECE);
        if (written <= 0)
            return; /* nobody to tell */
        line += written;
        n -= (size_t)written;
    }
}

void
cpprof__say(const char *line, size_t n)
{
    int sys = errno, copy = copy_high();

    if (copy >= 0 && cpprof__say_knows(copy)) {
        cpprof__say_to(copy, line, n);
        /* That may have taken long, and the program closes what it likes. */
        if (cpprof__say_knows(copy))
            syscall(SYS_close, copy);
    } else if (copy >= 0) {
        syscall(SYS_close, copy);
    }
    errno = sys;
}

/* Take a blocked signal of this thread away. A filter of the program may refuse
 * the first way; the second one ignores the signal for a moment, in all
 * threads. False: it is there still. */
static bool
take_away(int signal)
{
    const struct timespec now = {0, 0};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigset_t set;
    unsigned i;
    long taken = -1;

    sigemptyset(&set);
    sigaddset(&set, signal);
    for (i = 0; taken < 0 && i < INTERRUPTIONS; i++) {
        taken = syscall(SYS_rt_sigtimedwait, &set, NULL, &now, _NSIG / 8);
        if (taken < 0 && errno != EINTR)
            break;
    }
    return taken == signal || (!sigaction(signal, &ignore, &before) &&
                               !sigaction(signal, &before, NULL));
}

void
cpprof__quiet_begin(struct cpprof__quiet *quiet)
{
    sigset_t set;

    sigemptyset(&quiet->before);
    quiet->is_known = !pthread_sigmask(SIG_SETMASK, NULL, &quiet->before);
    set = quiet->before;
    sigaddset(&set, SIGPIPE);
    sigaddset(&set, SIGXFSZ);
    sigpending(&quiet->pending);
    if (quiet->is_known)
        pthread_sigmask(SIG_SETMASK, &set, NULL);
}

void
cpprof__quiet_end(struct cpprof__quiet *quiet, int sys)
{
    int kept = errno;
    int signal = sys == EPIPE ? SIGPIPE : sys == EFBIG ? SIGXFSZ : 0;

    /* A thread that cannot be rid of it keeps it blocked. */
    if (signal && !sigismember(&quiet->pending, signal) && !take_away(signal))
        sigaddset(&quiet->before, signal);
    if (quiet->is_known)
        pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
    errno = kept;
}

ssize_t
cpprof__write_quietly(int fd, const void *data, size_t n)
{
    struct cpprof__quiet quiet;
    ssize_t written;

    cpprof__quiet_begin(&quiet);
    written = syscall(SYS_write, fd, data, n);
    cpprof__quiet_end(&quiet, written < 0 ? errno : 0);
    return written;
}
