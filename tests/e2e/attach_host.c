/* SPDX-License-Identifier: MIT */
/*
 * Processes to attach to, each of which checks itself: attach_host MODE
 * [THREADS]. It prints "ready", goes on until SIGTERM comes, and then prints
 * how often it went round. A call that ends otherwise than it would alone, or a
 * register that is not what it was, is printed, and the exit status is 1.
 *
 * Modes of calls wait again and again for what comes after a moment: from a
 * child, or because the time is over. No other signal comes, so none of them
 * may end early.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOMENT_MS 50

static volatile sig_atomic_t must_end;
static volatile sig_atomic_t n_usr1;
static _Atomic unsigned long n_rounds;

static void
on_term(int signal)
{
    must_end = 1;
}

static void
on_usr1(int signal)
{
    n_usr1++;
}

static void __attribute__((noreturn)) wrong(const char *what, long got)
{
    printf("%s: %ld, errno %d\n", what, got, errno);
    fflush(stdout);
    _exit(1);
}

static double
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void
moment(void)
{
    usleep(MOMENT_MS * 1000);
}

/* A call that waits; SIGTERM alone may interrupt it. */
static void
expect(const char *what, long got, long wanted)
{
    if (got != wanted && !(errno == EINTR && must_end))
        wrong(what, got);
}

/* A child that calls f(arg) after each moment, for as long as we live. */
static pid_t
child_of(void (*f)(void *), void *arg)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        moment();
        f(arg);
    }
}

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

/* Threads are cancelled where they wait: the frames of all of them are
 * left. */
static void
do_cancelled(void)
{
    pthread_t threads[9];
    double end;
    intptr_t i;

    if (!never_written[1] && pipe(never_written))
        wrong("pipe", 0);
    n_cleaned = 0;
    for (i = 0; i < 9; i++)
        pthread_create(&threads[i], NULL, wait_to_be_cancelled, (void *)i);
    for (end = now_ms() + 4; now_ms() < end;)
        ;
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

/* ------------------------------------------------------------ busy ones ----
 */

#if defined __x86_64__
/* All registers hold what a round puts there: those of numbers, flags, vectors
 * and the mode of rounding. */
static void
do_registers(void)
{
    uint64_t in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {0}, n = 20000000;
    uint64_t gpr = 0;
    uint32_t mode = 0x5f80, mode_after; /* toward zero */
    uint32_t plain = 0x1f80;

    __asm__ volatile("ldmxcsr %[mode]\n\t"
                     "movdqu %[in], %%xmm0\n\t"
                     "movdqu 16+%[in], %%xmm15\n\t"
                     "mov $0x1111, %%r8\n\t"
                     "mov $0x2222, %%r9\n\t"
                     "mov $0x3333, %%r11\n\t"
                     "mov $0x4444, %%rdx\n\t"
                     "movq $0x5555, -8(%%rsp)\n\t"
                     "std\n\t"
                     "1: dec %[n]\n\t"
                     "jnz 1b\n\t"
                     "pushfq\n\t"
                     "pop %%rcx\n\t"
                     "cld\n\t"
                     "shr $10, %%rcx\n\t"
                     "and $1, %%rcx\n\t"
                     "add %%r8, %[gpr]\n\t"
                     "add %%r9, %[gpr]\n\t"
                     "add %%r11, %[gpr]\n\t"
                     "add %%rdx, %[gpr]\n\t"
                     "add %%rcx, %[gpr]\n\t"
                     "movdqu %%xmm0, %[out]\n\t"
                     "movdqu %%xmm15, 16+%[out]\n\t"
                     "stmxcsr %[after]\n\t"
                     "ldmxcsr %[plain]"
                     : [n] "+r"(n), [gpr] "+r"(gpr), [out] "=m"(out),
                       [after] "=m"(mode_after)
                     : [in] "m"(in), [mode] "m"(mode), [plain] "m"(plain)
                     : "r8", "r9", "r11", "rdx", "rcx", "xmm0", "xmm15",
                       "memory", "cc");
    if (gpr != 0x1111 + 0x2222 + 0x3333 + 0x4444 + 1)
        wrong("general registers", (long)gpr);
    if (memcmp(in, out, 32))
        wrong("vector registers", (long)out[0]);
    if ((mode_after & ~0x3fu) != mode)
        wrong("mode of rounding", mode_after);
}
#else
static void
do_registers(void)
{
    moment();
}
#endif

static void
allocate_all(void)
{
    void *kept[64] = {0};
    unsigned i, seed = (unsigned)(uintptr_t)&i;

    for (i = 0; i < 20000; i++) {
        seed = seed * 1103515245 + 12345;
        free(kept[i % 64]);
        kept[i % 64] = malloc(1 + (seed >> 16 & 2047));
        if (!kept[i % 64])
            wrong("malloc", i);
        *(char *)kept[i % 64] = 1;
    }
    for (i = 0; i < 64; i++)
        free(kept[i]);
}

static void
do_spin(void)
{
    volatile uint64_t n = 0;

    while (n < 50000000)
        n++;
}

/* At work half of the time: who waits for a recording leaves the
 * processors to others. */
/* Busy in code that has no tables, as of a runtime that compiles, deep in a
 * stack that ends in malloc: whoever looks has to look at all of it. */
static void __attribute__((noinline)) do_untabled(void)
{
    /* push %rbp; xor %ebp, %ebp; mov $0x7fffffff, %ecx; 1: dec %ecx; jnz 1b;
     * pop %rbp; ret */
    static const unsigned char code[] = {0x55, 0x31, 0xed, 0xb9, 0xff,
                                         0xff, 0xff, 0x7f, 0xff, 0xc9,
                                         0x75, 0xfc, 0x5d, 0xc3};
    static _Atomic(void *) page;
    uintptr_t room[110000] = {0};
    void *p = page;

    if (!p) {
        p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(p, code, sizeof code);
        page = p;
    }
    room[sizeof room / sizeof *room - 1] = (uintptr_t)malloc + 8;
    __asm__ volatile("" : : "r"(room) : "memory");
    ((void (*)(void))p)();
    __asm__ volatile("" : : "r"(room) : "memory"); /* the call comes back */
}

static void
do_pulse(void)
{
    volatile uint64_t n = 0;

    usleep(5000);
    while (n < 2000000)
        n++;
}

static void
do_fork(void)
{
    int status;
    pid_t pid = fork();

    if (!pid)
        _exit(3);
    while (waitpid(pid, &status, 0) != pid)
        if (errno != EINTR || !must_end)
            wrong("waitpid", errno);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 3)
        wrong("status of a child", status);
}

/* No thread can be made after it by who calls it. */
static void
unshare_once(int flags)
{
    static bool is_done;

    usleep(20000);
    if (is_done || !n_usr1)
        return;
    is_done = true;
    puts(unshare(flags) ? strerror(errno) : "unshared");
    fflush(stdout);
}

static void
do_unshare(void)
{
    unshare_once(CLONE_NEWPID | CLONE_NEWNS);
}

/* And there may be no other thread meanwhile. */
static void
do_unshare_user(void)
{
    unshare_once(CLONE_NEWPID | CLONE_NEWUSER);
}

/* In the loader, whose lock it has, until it is told so. */
static int
stay(struct dl_phdr_info *info, size_t n, void *arg)
{
    (void)info;
    (void)n;
    (void)arg;
    puts("stays");
    fflush(stdout);
    while (n_usr1 < 2 && !must_end)
        usleep(20000);
    return 1;
}

static void
do_loader(void)
{
    static _Atomic bool is_there;

    usleep(20000);
    if (n_usr1 != 1 || atomic_exchange(&is_there, true))
        return;
    dl_iterate_phdr(stay, NULL);
    is_there = false;
}

static void
do_dlopen(void)
{
    void *library = dlopen("libm.so.6", RTLD_NOW);
    void *other = dlopen("libresolv.so.2", RTLD_NOW);

    if (!library || !dlsym(library, "cos"))
        wrong("dlopen", 0);
    dlclose(library);
    if (other)
        dlclose(other);
}

static const struct mode {
    const char *name;
    void (*round)(void);
} modes[] = {
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
    {"accept", do_accept},
    {"connect", do_connect},
    {"sigsuspend", do_sigsuspend},
    {"held_back", do_held_back},
    {"cancelled", do_cancelled},
    {"dispatched", do_dispatched},
    {"wait", do_wait},
    {"semop", do_semop},
    {"io_uring", do_io_uring},
    {"registers", do_registers},
    {"malloc", allocate_all},
    {"spin", do_spin},
    {"pulse", do_pulse},
    {"untabled", do_untabled},
    {"fork", do_fork},
    {"unshare", do_unshare},
    {"unshare_user", do_unshare_user},
    {"loader", do_loader},
    {"dlopen", do_dlopen},
};

static void *
run(void *arg)
{
    const struct mode *mode = arg;

    while (!must_end) {
        mode->round();
        n_rounds++;
    }
    return NULL;
}

int
main(int argc, char **argv)
{
    struct sigaction term = {.sa_handler = on_term};
    struct sigaction usr1 = {.sa_handler = on_usr1};
    const struct mode *mode = NULL;
    int n = argc > 2 ? atoi(argv[2]) : 1;
    pthread_t thread;
    size_t i;

    for (i = 0; i < sizeof modes / sizeof *modes && argc > 1; i++)
        if (!strcmp(modes[i].name, argv[1]))
            mode = &modes[i];
    if (!mode)
        return 2;
    sigaction(SIGTERM, &term, NULL);
    sigaction(SIGUSR1, &usr1, NULL);
    puts("ready");
    fflush(stdout);
    while (--n > 0)
        pthread_create(&thread, NULL, run, (void *)mode);
    run((void *)mode);
    printf("%s: %lu rounds, %.0f ms\n", mode->name, (unsigned long)n_rounds,
           now_ms());
    return 0;
}
