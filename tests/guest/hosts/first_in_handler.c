/* SPDX-License-Identifier: MIT */
/* guest: 2. The first call of each function comes from a handler of signals
 * that interrupts the loader, or from two threads at once. */
#include "host.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>

static volatile sig_atomic_t n_calls;
static int pipe_ends[2];
static sem_t semaphore;

static pid_t
fork_one(void)
{
    pid_t pid = _Fork();

    if (pid == 0)
        _exit(4);
    return pid;
}

#define STEP(number, good) EXPECT(n_calls != (number) || (good), #good)

/* What a handler may call by POSIX, each for the first time. */
static void
call_next(int sig)
{
    const struct timespec none = {0, 0};
    const int code = errno;
    struct sigaction action;
    struct timeval zero = {0, 0};
    struct itimerval timer;
    struct timespec now;
    struct pollfd fd = {pipe_ends[0], POLLIN, 0};
    sigset_t set;
    char byte = 0;

    STEP(0, sem_post(&semaphore) == 0);
    STEP(1, write(pipe_ends[1], &byte, 1) == 1);
    STEP(2, poll(&fd, 1, 0) == 1);
    STEP(3, read(pipe_ends[0], &byte, 1) == 1);
    STEP(4, sigaction(sig, NULL, &action) == 0);
    STEP(5, pthread_sigmask(SIG_BLOCK, NULL, &set) == 0);
    STEP(6, sigprocmask(SIG_BLOCK, NULL, &set) == 0);
    STEP(7, nanosleep(&none, NULL) == 0);
    STEP(8, getitimer(ITIMER_REAL, &timer) == 0);
    STEP(9, clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    STEP(10, kill(getpid(), SIGUSR1) == 0);
    STEP(11, raise(SIGUSR1) == 0);
    STEP(12, pthread_kill(pthread_self(), SIGUSR1) == 0);
    STEP(13, sigpending(&set) == 0);
    STEP(14, close(dup(pipe_ends[0])) == 0);
    STEP(15, fcntl(pipe_ends[0], F_GETFD) >= 0);
    STEP(16, close(open("/dev/null", O_RDONLY)) == 0);
    STEP(17, close(socket(AF_UNIX, SOCK_STREAM, 0)) == 0);
    STEP(18, waitpid(-1, NULL, WNOHANG) == -1);
    STEP(19, signal(SIGUSR2, SIG_IGN) == SIG_DFL);
    STEP(20, select(0, NULL, NULL, NULL, &zero) == 0);
    STEP(21, sigemptyset(&set) == 0);
    STEP(22, setuid(getuid()) == 0);
    STEP(23, ppoll(&fd, 0, &none, NULL) == 0);
    STEP(24, status_of(fork_one()) == 4);
    n_calls++;
    errno = code;
}

static pthread_barrier_t both;

/* What two threads call for the first time. */
static void *
call_all(void *arg)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
    const struct timespec past = {1, 0};
    pthread_cond_t condition;
    pthread_t thread;
    void *block = NULL;

    pthread_barrier_wait(&both);
    pthread_mutex_lock(&mutex);
    EXPECT(pthread_mutex_trylock(&mutex) == EBUSY, "trylock");
    EXPECT(pthread_mutex_timedlock(&mutex, &past) == ETIMEDOUT, "timedlock");
    pthread_barrier_wait(&both);
    pthread_cond_init(&condition, NULL);
    EXPECT(pthread_cond_timedwait(&condition, &mutex, &past) == ETIMEDOUT,
           "timedwait");
    pthread_mutex_unlock(&mutex);
    pthread_barrier_wait(&both);
    pthread_rwlock_rdlock(&rwlock);
    EXPECT(pthread_rwlock_trywrlock(&rwlock) == EBUSY, "trywrlock");
    pthread_rwlock_unlock(&rwlock);
    pthread_barrier_wait(&both);
    EXPECT(posix_memalign(&block, 64, 1000) == 0, "posix_memalign");
    free(realloc(block, 300000));
    free(aligned_alloc(64, 6400));
    free(calloc(100, 100));
    pthread_barrier_wait(&both);
    pthread_create(&thread, NULL, busy_thread, NULL);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&condition);
    return arg;
}

int
main(void)
{
    const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0}, {0}};
    struct sigaction action = {.sa_handler = call_next, .sa_flags = SA_RESTART};
    pthread_t threads[2];
    int i;

    EXPECT(pipe(pipe_ends) == 0 && sem_init(&semaphore, 0, 0) == 0, "begin");
    signal(SIGUSR1, SIG_IGN);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (i = 0; n_calls < 25 || i < 200; i++) {
        void *library = dlopen("libm.so.6", RTLD_NOW);

        EXPECT(library && dlsym(library, "cos"), "%s", dlerror());
        dlclose(library);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    pthread_barrier_init(&both, NULL, 2);
    for (i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, call_all, NULL);
    for (i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return host_wrong;
}
