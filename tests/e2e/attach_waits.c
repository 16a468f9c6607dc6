/* SPDX-License-Identifier: MIT */
/*
 * Processes to attach to that wait: a mode for each system call, again and
 * again for what comes after a moment, from a child or because the time is
 * over. No other signal comes than those of a mode, so no call may end early.
 */
#include "attach_host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------ calls with a time --
 */

static void
do_nanosleep(void)
{
    struct timespec t = {0, MOMENT_MS * 1000000};

    expect("nanosleep", nanosleep(&t, NULL), 0);
}

/* One sleep, in which it is stopped more than once. */
static void
do_nanosleep_long(void)
{
    struct timespec t = {100, 0};

    if (nanosleep(&t, NULL) && !must_end)
        wrong("nanosleep", errno);
}

static void
do_clock_nanosleep(void)
{
    struct timespec t = {0, MOMENT_MS * 1000000};

    errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
    expect("clock_nanosleep", errno, 0);
}

static void
do_futex_timed(void)
{
    static uint32_t word;
    struct timespec t = {0, MOMENT_MS * 1000000};

    if (syscall(SYS_futex, &word, FUTEX_WAIT, 0, &t, NULL, 0) != -1 ||
        (errno != ETIMEDOUT && !must_end))
        wrong("futex with a time", errno);
}

static void
do_poll(void)
{
    expect("poll", poll(NULL, 0, MOMENT_MS), 0);
}

static void
do_select(void)
{
    struct timeval t = {0, MOMENT_MS * 1000};

    expect("select", select(0, NULL, NULL, NULL, &t), 0);
}

static void
do_epoll(void)
{
    static int fd = -1;
    struct epoll_event event;

    if (fd < 0)
        fd = epoll_create1(0);
    expect("epoll_wait", epoll_wait(fd, &event, 1, MOMENT_MS), 0);
}

static void
do_sigtimedwait(void)
{
    struct timespec t = {0, MOMENT_MS * 1000000};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    if (sigtimedwait(&set, NULL, &t) != -1 || (errno != EAGAIN && !must_end))
        wrong("sigtimedwait", errno);
}

static void
do_semtimedop(void)
{
    static int id = -1;
    struct timespec t = {0, MOMENT_MS * 1000000};
    struct sembuf op = {0, -1, 0};

    if (id < 0) {
        id = semget(IPC_PRIVATE, 1, 0600);
        if (!fork()) {
            signal(SIGTERM, SIG_IGN);
            while (getppid() != 1)
                moment();
            semctl(id, 0, IPC_RMID);
            _exit(0);
        }
    }
    if (semtimedop(id, &op, 1, &t) != -1 || (errno != EAGAIN && !must_end))
        wrong("semtimedop", errno);
}

static void
do_recv_timed(void)
{
    static int fds[2] = {-1};
    struct timeval t = {0, MOMENT_MS * 1000};
    char byte;

    if (fds[0] < 0) {
        socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
        setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    }
    if (recv(fds[0], &byte, 1, 0) != -1 || (errno != EAGAIN && !must_end))
        wrong("recv with a time", errno);
}

/* --------------------------------------------- calls that a child answers --
 */

static void
wake(void *arg)
{
    syscall(SYS_futex, arg, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void
do_futex(void)
{
    static uint32_t *word;

    if (!word) {
        word = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        child_of(wake, word);
    }
    expect("futex", syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0), 0);
}

static void
send_byte(void *arg)
{
    if (write(*(int *)arg, "x", 1) != 1)
        _exit(1);
}

static void
do_read(void)
{
    static int fds[2] = {-1};
    char byte;

    if (fds[0] < 0 && !pipe(fds))
        child_of(send_byte, &fds[1]);
    expect("read", read(fds[0], &byte, 1), 1);
}

static struct sockaddr_in address = {.sin_family = AF_INET};

enum { LONG_BYTES = 200000 };

/* Reads or writes so much, a part at a time. */
static void
in_parts(int fd, bool writes)
{
    static char part[20000];
    ssize_t n;
    int left;

    for (left = LONG_BYTES; left > 0; left -= (int)n) {
        usleep(2000);
        n = writes ? write(fd, part, sizeof part) : read(fd, part, sizeof part);
        if (n <= 0)
            _exit(1);
    }
}

/* The other end of two sockets and a pipe. */
static void
answer_in_parts(void *arg)
{
    int *fds = arg;

    in_parts(fds[1], false);
    in_parts(fds[1], true);
    in_parts(fds[2], false);
}

static void *
wait_for_ever(void *arg)
{
    for (;;)
        pause();
    return arg;
}

/* Calls that would end with a part of it if they were stopped. Another thread
 * waits, and may be. */
static void
do_whole(void)
{
    pthread_t other;
    static int fds[4] = {-1};
    static char all[LONG_BYTES];
    ssize_t n;
    int i;

    if (fds[0] < 0 && !socketpair(AF_UNIX, SOCK_STREAM, 0, fds) &&
        !pipe(fds + 2)) {
        child_of(answer_in_parts, fds);
        pthread_create(&other, NULL, wait_for_ever, NULL);
    }
    for (i = 0; i < 3 && !must_end; i++) {
        n = i == 0   ? send(fds[0], all, sizeof all, 0)
            : i == 1 ? recv(fds[0], all, sizeof all, MSG_WAITALL)
                     : write(fds[3], all, sizeof all);
        if (n != LONG_BYTES && !must_end)
            wrong("a part of it", n);
    }
}

static void
connect_once(void *arg)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (connect(fd, (struct sockaddr *)&address, sizeof address))
        _exit(1);
    close(fd);
}

static int
listening(int backlog)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t n = sizeof address;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) ||
        listen(fd, backlog) || getsockname(fd, (struct sockaddr *)&address, &n))
        wrong("listen", fd);
    return fd;
}

static void
do_accept(void)
{
    static int fd = -1;
    int got;

    if (fd < 0) {
        fd = listening(8);
        child_of(connect_once, NULL);
    }
    got = accept(fd, NULL, NULL);
    expect("accept", got >= 0, 1);
    close(got);
}

static void
accept_two(void *arg)
{
    usleep(300000);
    close(accept(*(int *)arg, NULL, NULL));
    close(accept(*(int *)arg, NULL, NULL));
}

/* A queue of one that is full makes the next wait. */
static void
do_connect(void)
{
    static int listener = -1;
    int fds[3], i;

    if (listener < 0) {
        listener = listening(0);
        child_of(accept_two, &listener);
    }
    for (i = 0; i < 2; i++) {
        struct timeval t = {100, 0};

        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        if (i)
            setsockopt(fds[i], SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
        expect("connect",
               connect(fds[i], (struct sockaddr *)&address, sizeof address), 0);
    }
    for (i = 0; i < 2; i++)
        close(fds[i]);
}

static void
send_usr1(void *arg)
{
    kill(getppid(), SIGUSR1);
}

static void
do_sigsuspend(void)
{
    static int is_begun;
    sigset_t set;
    long before;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (!is_begun++) {
        sigprocmask(SIG_BLOCK, &set, NULL);
        child_of(send_usr1, NULL);
    }
    before = n_usr1;
    sigemptyset(&set);
    sigsuspend(&set);
    if (n_usr1 == before && !must_end)
        wrong("sigsuspend without its signal", n_usr1);
    sigprocmask(SIG_SETMASK, NULL, &set);
    if (!sigismember(&set, SIGUSR1))
        wrong("the mask after sigsuspend", 0);
}

static volatile sig_atomic_t n_usr2, n_usr2_at_usr1;

static void
on_usr2(int signal)
{
    n_usr2++;
}

static void
on_usr1_last(int signal)
{
    n_usr2_at_usr1 = n_usr2;
    n_usr1++;
}

/* Does a process sleep, and block just these signals? Not while somebody holds
 * it: a call that goes on after that lets through what has come meanwhile. */
static bool
sleeps_with(pid_t pid, uint64_t wanted)
{
    char line[128], state = 0;
    uint64_t mask = 0;
    FILE *f;

    snprintf(line, sizeof line, "/proc/%d/status", (int)pid);
    f = fopen(line, "r");
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "State: %c", &state);
        sscanf(line, "SigBlk: %lx", &mask);
    }
    if (f)
        fclose(f);
    return state == 'S' && mask == wanted;
}

/* Of a round of held_back, which a child sees, too. */
struct held_back {
    uint64_t mask;
    _Atomic unsigned n;
};

/* One signal that the call holds back, once the call is there, and after a
 * while one that ends it. */
static void
send_two(void *arg)
{
    static unsigned last;
    struct held_back *round = arg;

    while (round->n == last || !sleeps_with(getppid(), round->mask))
        usleep(1000);
    last = round->n;
    kill(getppid(), SIGUSR2);
    moment();
    kill(getppid(), SIGUSR1);
}

/* A signal that only the call blocks comes after it, and does not end it. */
static void
do_held_back(void)
{
    static struct held_back *round;
    static int fd, n_early;
    const struct timespec long_time = {100, 0};
    struct epoll_event event;
    sigset_t set;
    long before, before_usr1 = n_usr1;

    if (!round) {
        struct sigaction usr1 = {.sa_handler = on_usr1_last};
        struct sigaction usr2 = {.sa_handler = on_usr2};

        sigaction(SIGUSR1, &usr1, NULL);
        sigaction(SIGUSR2, &usr2, NULL);
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        sigprocmask(SIG_SETMASK, &set, NULL);
        fd = epoll_create1(0);
        round = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        round->mask = 1ull << (SIGUSR2 - 1);
        child_of(send_two, round);
    }
    before = n_usr2;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    switch (++round->n % 4) {
    case 0:
        sigsuspend(&set);
        break;
    case 1:
        ppoll(NULL, 0, &long_time, &set);
        break;
    case 2:
        pselect(0, NULL, NULL, NULL, &long_time, &set);
        break;
    default:
        epoll_pwait(fd, &event, 1, 100000, &set);
        break;
    }
    if (must_end)
        return;
    /* Whoever stops us looks before that, and it may come just in between. */
    if (n_usr1 != before_usr1 + 1 || n_usr2_at_usr1 != before) {
        if (++n_early > 1)
            wrong("a signal came that the call holds back", round->n % 4);
        sigemptyset(&set);
        while (n_usr1 == before_usr1)
            sigsuspend(&set);
    } else if (n_usr2 != before + 1)
        wrong("a signal did not come after the call", round->n % 4);
}

static atomic_int n_cleaned;
static int never_written[2];

static void
count(void *arg)
{
    ++*(atomic_int *)arg;
}

static void *
wait_to_be_cancelled(void *arg)
{
    struct timespec t = {100, 0};

    pthread_cleanup_push(count, &n_cleaned);
    switch ((intptr_t)arg % 3) {
    case 0:
        nanosleep(&t, NULL);
        break;
    case 1:
        poll(NULL, 0, -1);
        break;
    default:
        if (read(never_written[0], &t, 1))
            wrong("read", 0);
    }
    pthread_cleanup_pop(0);
    return NULL;
}

/* Threads are cancelled where they wait: the frames of all of them are left.
 * Who waits for that is in a call that nobody may stop, so one of them is
 * borrowed. */
static void
do_cancelled(void)
{
    static int whole[2];
    const struct timeval while_they_wait = {0, 3000};
    char bytes[2];
    pthread_t threads[9];
    sigset_t term;
    intptr_t i;

    if (!never_written[1] &&
        (pipe(never_written) || socketpair(AF_UNIX, SOCK_STREAM, 0, whole) ||
         setsockopt(whole[0], SOL_SOCKET, SO_RCVTIMEO, &while_they_wait,
                    sizeof while_they_wait)))
        wrong("pipe", 0);
    n_cleaned = 0;
    sigemptyset(&term); /* which would end what they wait in */
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, NULL);
    for (i = 0; i < 9; i++)
        pthread_create(&threads[i], NULL, wait_to_be_cancelled, (void *)i);
    pthread_sigmask(SIG_UNBLOCK, &term, NULL);
    if (recv(whole[0], bytes, sizeof bytes, MSG_WAITALL) != -1)
        wrong("recv", 0);
    for (i = 0; i < 9; i++)
        pthread_cancel(threads[i]);
    for (i = 0; i < 9; i++)
        pthread_join(threads[i], NULL);
    if (n_cleaned != 9)
        wrong("frames that were left", n_cleaned);
}

/* Its first thread answers its system calls itself, unless they are in libc or
 * the program. */
static void
do_dispatched(void)
{
    static atomic_bool is_on;
    static char is_blocked = 1;
    uintptr_t from = (uintptr_t)read - (1ul << 30);

    if (!atomic_exchange(&is_on, true) &&
        prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, from,
              (1ul << 47) - 8192 - from, &is_blocked)) {
        puts("skipped: no syscall user dispatch");
        exit(77);
    }
    moment();
}

static void
do_wait(void)
{
    pid_t pid = fork();

    if (!pid) {
        moment();
        _exit(7);
    }
    expect("wait", waitpid(pid, NULL, 0), pid);
}

static void
post(void *arg)
{
    struct sembuf op = {0, 1, 0};

    if (getppid() == 1 || semop(*(int *)arg, &op, 1))
        _exit(1);
}

static void
do_semop(void)
{
    static int id = -1;
    struct sembuf op = {0, -1, 0};

    if (id < 0) {
        id = semget(IPC_PRIVATE, 1, 0600);
        child_of(post, &id);
    }
    expect("semop", semop(id, &op, 1), 0);
    if (must_end)
        semctl(id, 0, IPC_RMID);
}

enum { LEAST = 10 };

/* So many bytes, in two parts. */
static void
send_in_two(void *fd)
{
    if (write(*(int *)fd, "123", 3) != 3)
        _exit(1);
    moment();
    if (write(*(int *)fd, "4567890", LEAST - 3) != LEAST - 3)
        _exit(1);
}

/* A terminal whose leading end a child has, and that has no lines. */
static int
terminal(void)
{
    static int leader;
    struct termios raw;
    int number, unlocked = 0, fd;
    char path[32];

    leader = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    if (ioctl(leader, TIOCSPTLCK, &unlocked) ||
        ioctl(leader, TIOCGPTN, &number))
        wrong("terminal", leader);
    snprintf(path, sizeof path, "/dev/pts/%d", number);
    fd = open(path, O_RDWR | O_NOCTTY);
    if (tcgetattr(fd, &raw))
        wrong("tcgetattr", fd);
    cfmakeraw(&raw);
    raw.c_cc[VMIN] = LEAST;
    tcsetattr(fd, TCSANOW, &raw);
    child_of(send_in_two, &leader);
    return fd;
}

/* Calls that wait for a least number of bytes. Another thread waits, and may be
 * stopped. */
static void
do_least(void)
{
    static int sockets[2], tty;
    const int least = LEAST;
    char bytes[100];
    pthread_t thread;
    ssize_t n;
    int i;

    if (!tty) {
        tty = terminal();
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
            wrong("socketpair", 0);
        setsockopt(sockets[0], SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
        child_of(send_in_two, &sockets[1]);
        pthread_create(&thread, NULL, wait_for_ever, NULL);
    }
    for (i = 0; i < 3 && !must_end; i++) {
        n = i == 0   ? read(tty, bytes, LEAST)
            : i == 1 ? recv(sockets[0], bytes, LEAST, 0)
                     : read(sockets[0], bytes, LEAST);
        if (n != LEAST && !must_end) /* SIGTERM leaves a part */
            wrong("fewer than the least", n);
    }
}

static void
do_io_uring(void)
{
    static int fd = -1;
    static struct io_uring_params p;
    static char *rings;
    static struct io_uring_sqe *sqes;
    static struct {
        int64_t s, ns;
    } t = {0, MOMENT_MS * 1000000};
    unsigned tail, *at;

    if (fd < 0) {
        fd = (int)syscall(SYS_io_uring_setup, 4, &p);
        if (fd < 0) {
            puts("skipped: no io_uring");
            exit(77);
        }
        rings = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                     IORING_OFF_SQ_RING);
        sqes = mmap(NULL, 4 * sizeof *sqes, PROT_READ | PROT_WRITE, MAP_SHARED,
                    fd, IORING_OFF_SQES);
    }
    at = (unsigned *)(rings + p.sq_off.tail);
    tail = *at;
    memset(&sqes[tail & 3], 0, sizeof *sqes);
    sqes[tail & 3].opcode = IORING_OP_TIMEOUT;
    sqes[tail & 3].addr = (uint64_t)(uintptr_t)&t;
    sqes[tail & 3].len = 1;
    ((unsigned *)(rings + p.sq_off.array))[tail & 3] = tail & 3;
    __atomic_store_n(at, tail + 1, __ATOMIC_RELEASE);
    expect("io_uring_enter to submit",
           syscall(SYS_io_uring_enter, fd, 1, 0, 0, NULL, 0), 1);
    expect(
        "io_uring_enter",
        syscall(SYS_io_uring_enter, fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0),
        0);
    at = (unsigned *)(rings + p.cq_off.head);
    __atomic_store_n(at, *at + 1, __ATOMIC_RELEASE);
}

const struct mode waits[] = {
    {"nanosleep", do_nanosleep},
    {"nanosleep_long", do_nanosleep_long},
    {"clock_nanosleep", do_clock_nanosleep},
    {"futex_timed", do_futex_timed},
    {"poll", do_poll},
    {"select", do_select},
    {"epoll", do_epoll},
    {"sigtimedwait", do_sigtimedwait},
    {"semtimedop", do_semtimedop},
    {"recv_timed", do_recv_timed},
    {"futex", do_futex},
    {"read", do_read},
    {"whole", do_whole},
    {"least", do_least},
    {"accept", do_accept},
    {"connect", do_connect},
    {"sigsuspend", do_sigsuspend},
    {"held_back", do_held_back},
    {"cancelled", do_cancelled},
    {"dispatched", do_dispatched},
    {"wait", do_wait},
    {"semop", do_semop},
    {"io_uring", do_io_uring},
    {NULL, NULL},
};
