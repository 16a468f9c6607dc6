/* SPDX-License-Identifier: MIT */
/*
 * Threads that wait in every way while memory is searched for what is lost,
 * which stops them: no wait ends that would not have, and no byte is missing.
 */
#include "tap.h"

#include <cpprof/heap.h>
#include <cpprof/profiles.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define LONG_S 600

/* Each returns true if its wait ended, and was to end only in the end. */
static uint32_t is_over, n_waiting;

struct waiter {
    const char *name;
    int (*wait)(struct waiter *w); /* as the call: -1 and errno */
    int fds[2];
    int result, failed;
};

static int
by_poll(struct waiter *w)
{
    struct pollfd fd = {w->fds[0], POLLIN, 0};

    return poll(&fd, 1, LONG_S * 1000);
}

static int
by_select(struct waiter *w)
{
    struct timeval time = {LONG_S, 0};
    fd_set set;

    FD_ZERO(&set);
    FD_SET(w->fds[0], &set);
    return select(w->fds[0] + 1, &set, NULL, NULL, &time);
}

static int
epoll_of(struct waiter *w)
{
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    epoll_ctl(epoll, EPOLL_CTL_ADD, w->fds[0], &event);
    return epoll;
}

static int
by_epoll(struct waiter *w)
{
    struct epoll_event event;

    return epoll_wait(epoll_of(w), &event, 1, -1);
}

static int
by_epoll_with_time(struct waiter *w)
{
    struct epoll_event event;
    sigset_t none;

    sigemptyset(&none);
    return epoll_pwait(epoll_of(w), &event, 1, LONG_S * 1000, &none);
}

static int
by_read(struct waiter *w)
{
    char byte;

    return (int)read(w->fds[0], &byte, 1);
}

static int
by_recv_with_time(struct waiter *w)
{
    struct timeval time = {LONG_S, 0};
    char byte;

    setsockopt(w->fds[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    return (int)recv(w->fds[0], &byte, 1, 0);
}

static int
by_semaphore(struct waiter *w)
{
    struct timespec until;
    sem_t never;

    (void)w;
    sem_init(&never, 0, 0);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LONG_S;
    return sem_timedwait(&never, &until);
}

static int
by_sleep(struct waiter *w)
{
    struct timespec time = {LONG_S, 0};

    (void)w;
    return nanosleep(&time, NULL);
}

static int
by_signal(struct waiter *w)
{
    const struct timespec time = {LONG_S, 0};
    sigset_t set;

    (void)w;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return sigtimedwait(&set, NULL, &time);
}

static int
by_system_v(struct waiter *w)
{
    struct sembuf take = {0, -1, 0};
    int id = semget(IPC_PRIVATE, 1, 0600), result;

    (void)w;
    if (id < 0)
        return semop(-1, &take, 1);
    result = semop(id, &take, 1);
    semctl(id, 0, IPC_RMID);
    return result;
}

static struct waiter waiters[] = {
    {.name = "poll", .wait = by_poll},
    {.name = "select", .wait = by_select},
    {.name = "epoll_wait", .wait = by_epoll},
    {.name = "epoll_pwait with a time", .wait = by_epoll_with_time},
    {.name = "read", .wait = by_read},
    {.name = "recv with a time", .wait = by_recv_with_time},
    {.name = "sem_timedwait", .wait = by_semaphore},
    {.name = "nanosleep", .wait = by_sleep},
    {.name = "sigtimedwait", .wait = by_signal},
    {.name = "semop", .wait = by_system_v},
};
#define N_WAITERS (sizeof waiters / sizeof *waiters)

static void *
run_waiter(void *arg)
{
    struct waiter *w = arg;

    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, w->fds);
    __atomic_fetch_add(&n_waiting, 1, __ATOMIC_SEQ_CST);
    w->result = w->wait(w);
    w->failed = errno;
    if (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST))
        __atomic_fetch_add(&n_waiting, -1000, __ATOMIC_SEQ_CST);
    return NULL;
}

/* ---- a thread that writes more than there is room for ----------------- */

#define PIECE (1 << 20)

static int pipe_fds[2];
static uint64_t n_short, n_pieces;

static void *
write_pieces(void *arg)
{
    char *piece = calloc(1, PIECE);

    while (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST)) {
        n_short += write(pipe_fds[1], piece, PIECE) != PIECE;
        n_pieces++;
    }
    close(pipe_fds[1]);
    free(piece);
    return arg;
}

static void *
read_pieces(void *arg)
{
    static char piece[PIECE];
    const struct timespec pause = {0, 300000};

    while (read(pipe_fds[0], piece, sizeof piece) > 0)
        nanosleep(&pause, NULL);
    return arg;
}

/* ---- readers that want more than one byte ------------------------------ */

#define WANTED 8

struct reader {
    const char *name;
    int from, to;
    ssize_t n;
};

static struct reader
from_terminal(void)
{
    struct reader r = {.name = "a read from a terminal with VMIN"};
    struct termios how;

    r.to = posix_openpt(O_RDWR | O_NOCTTY);
    if (r.to < 0 || grantpt(r.to) || unlockpt(r.to))
        bail("posix_openpt");
    r.from = open(ptsname(r.to), O_RDWR | O_NOCTTY);
    tcgetattr(r.from, &how);
    cfmakeraw(&how);
    how.c_cc[VMIN] = WANTED;
    how.c_cc[VTIME] = 0;
    tcsetattr(r.from, TCSANOW, &how);
    return r;
}

static struct reader
from_socket(void)
{
    struct reader r = {.name = "a read from a socket with SO_RCVLOWAT"};
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int listener = socket(AF_INET, SOCK_STREAM, 0), least = WANTED;
    socklen_t n = sizeof at;

    if (bind(listener, (struct sockaddr *)&at, n) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&at, &n))
        bail("listen");
    r.to = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(r.to, (struct sockaddr *)&at, n))
        bail("connect");
    r.from = accept(listener, NULL, NULL);
    setsockopt(r.from, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
    close(listener);
    return r;
}

static void *
run_reader(void *arg)
{
    struct reader *r = arg;
    char bytes[64];

    r->n = read(r->from, bytes, WANTED);
    return NULL;
}

static int
search(void);

static void
check_reader(struct reader r)
{
    pthread_t thread;

    pthread_create(&thread, NULL, run_reader, &r);
    usleep(50000);
    if (write(r.to, "abc", 3) != 3)
        bail("write");
    usleep(50000);
    search(); /* there may be no result */
    if (write(r.to, "defgh", 5) != 5)
        bail("write");
    pthread_join(thread, NULL);
    check_equal(r.n, WANTED, r.name);
}

/* ------------------------------------------------------------------------ */

static int
search(void)
{
    struct cpprof_profile_options options = {
        .size = sizeof options, .symbolize = CPPROF_SYMBOLIZE_NONE};
    struct cpprof_error error = {.text = ""};
    enum cpprof_status status = cpprof_profile_write_to_path(
        cpprof_profile_lookup("heapleak"), "/dev/null", &options, &error);

    if (status != CPPROF_OK)
        note("%s", error.text);
    return status == CPPROF_OK;
}

__attribute__((noinline)) static void
lose(void)
{
    int i;

    for (i = 0; i < 100; i++) {
        void *volatile block = calloc(1, 200);

        (void)block;
    }
}

static void *
lose_in_thread(void *arg)
{
    lose();
    return arg;
}

static void
check_waits(void)
{
    pthread_t threads[N_WAITERS], loser, writer, reader;
    unsigned i, n_found = 0;
    char name[64];

    for (i = 0; i < N_WAITERS; i++)
        pthread_create(&threads[i], NULL, run_waiter, &waiters[i]);
    while (__atomic_load_n(&n_waiting, __ATOMIC_SEQ_CST) < N_WAITERS)
        usleep(1000);
    pthread_create(&loser, NULL, lose_in_thread, NULL);
    pthread_join(loser, NULL);
    if (pipe(pipe_fds))
        bail("pipe");
    pthread_create(&reader, NULL, read_pieces, NULL);
    n_found += search();
    for (i = 0; i < N_WAITERS; i++) {
        snprintf(name, sizeof name, "%s goes on", waiters[i].name);
        check(waiters[i].result == 0 && waiters[i].failed == 0, name);
    }
    check_equal(n_found, 1, "the search has a result");
    /* While one writes there may be none, and nothing is cut short. */
    pthread_create(&writer, NULL, write_pieces, NULL);
    for (i = 0; i < 2; i++)
        search();
    __atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
    pthread_join(writer, NULL);
    pthread_join(reader, NULL);
    note("%llu pieces", (unsigned long long)n_pieces);
    check_equal((int64_t)n_short, 0, "no write is cut short");
    check(__atomic_load_n(&n_waiting, __ATOMIC_SEQ_CST) == N_WAITERS,
          "all waited to the end");
}

/* No child of ours is one that wait() knows. */
static void
check_children(void)
{
    check(wait(NULL) == -1 && errno == ECHILD, "wait() knows no child");
    check(waitpid(-1, NULL, __WALL | WNOHANG) == -1 && errno == ECHILD,
          "none is left");
}

int
main(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    cpprof_heap_set_rate(1);
    check_waits();
    check_reader(from_terminal());
    check_reader(from_socket());
    check_children();
    fflush(NULL);
    exit(check_done());
}
