/* SPDX-License-Identifier: MIT */
/* guest: 2. A program that has names of libc of its own, which take a plain
 * lock, as wrappers for tests, tracing and sandboxes do. It holds that lock
 * while it allocates, waits for locks, makes threads and forks, none of which
 * uses these names: it goes on, and so do its children. */
#include "host.h"

#include "arch/regs.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int is_held;

/* Longer where the host is busy for a part of the time only. */
static void
rest(void)
{
    const struct timespec t = {0, 200000 + 10000 * (100 - (long)host_busy)};

    cpprof__syscall(SYS_nanosleep, (long)&t, 0, 0, 0, 0, 0);
}

static void
lock(void)
{
    while (__atomic_exchange_n(&is_held, 1, __ATOMIC_ACQUIRE))
        rest();
}

static void
unlock(void)
{
    __atomic_store_n(&is_held, 0, __ATOMIC_RELEASE);
}

static long
locked(long n, long a, long b, long c, long d, long e, long f)
{
    long result;

    lock();
    result = cpprof__syscall(n, a, b, c, d, e, f);
    unlock();
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

/* A function of libc's name that the headers do not see. */
#define OWN(name, args, call)                                                  \
    long own_##name args __asm__(#name);                                       \
    long own_##name args                                                       \
    {                                                                          \
        return call;                                                           \
    }
#define CALL(name, number, a, b, c, d, e, f)                                   \
    OWN(name, (long x1, long x2, long x3, long x4, long x5, long x6),          \
        locked(number, a, b, c, d, e, f))
#define CALL0(name, number) CALL(name, number, 0, 0, 0, 0, 0, 0)
#define CALL6(name, number) CALL(name, number, x1, x2, x3, x4, x5, x6)

OWN(syscall, (long n, long a, long b, long c, long d, long e, long f),
    locked(n, a, b, c, d, e, f))
CALL0(getpid, SYS_getpid)
CALL0(getppid, SYS_getppid)
CALL0(gettid, SYS_gettid)
CALL0(geteuid, SYS_geteuid)
CALL6(read, SYS_read)
CALL6(write, SYS_write)
CALL6(close, SYS_close)
CALL6(openat64, SYS_openat)
CALL6(pread64, SYS_pread64)
CALL6(lseek64, SYS_lseek)
CALL6(fchmod, SYS_fchmod)
CALL6(ftruncate64, SYS_ftruncate)
CALL6(fallocate64, SYS_fallocate)
CALL6(fcntl64, SYS_fcntl)
CALL6(ioctl, SYS_ioctl)
CALL6(kill, SYS_kill)
CALL6(mmap, SYS_mmap)
CALL6(mmap64, SYS_mmap)
CALL6(munmap, SYS_munmap)
CALL6(mprotect, SYS_mprotect)
CALL6(madvise, SYS_madvise)
CALL6(mremap, SYS_mremap)
CALL6(prctl, SYS_prctl)
CALL6(getrandom, SYS_getrandom)
CALL6(getrusage, SYS_getrusage)
CALL6(memfd_create, SYS_memfd_create)
CALL6(process_vm_readv, SYS_process_vm_readv)
CALL6(nanosleep, SYS_nanosleep)
CALL6(clock_gettime, SYS_clock_gettime)
CALL(open64, SYS_openat, AT_FDCWD, x1, x2, x3, 0, 0)
CALL(open, SYS_openat, AT_FDCWD, x1, x2, x3, 0, 0)
CALL(access, SYS_faccessat, AT_FDCWD, x1, x2, 0, 0, 0)
CALL(mkdir, SYS_mkdirat, AT_FDCWD, x1, x2, 0, 0, 0)
CALL(unlink, SYS_unlinkat, AT_FDCWD, x1, 0, 0, 0, 0)
CALL(readlink, SYS_readlinkat, AT_FDCWD, x1, x2, x3, 0, 0)
CALL(getrlimit64, SYS_prlimit64, 0, x1, 0, x2, 0, 0)
CALL(getrlimit, SYS_prlimit64, 0, x1, 0, x2, 0, 0)
CALL(sigprocmask, SYS_rt_sigprocmask, x1, x2, x3, 8, 0, 0)
CALL(sigpending, SYS_rt_sigpending, x1, 8, 0, 0, 0, 0)
CALL(pthread_sigmask, SYS_rt_sigprocmask, x1, x2, x3, 8, 0, 0)

/* What has no system call of its own, by libc's other names. */
extern int
__sigaction(int signal, const struct sigaction *action, struct sigaction *old);

static long
own_action(long signal, long action, long old)
{
    long result;

    lock();
    result = __sigaction((int)signal, (void *)action, (void *)old);
    unlock();
    return result;
}

OWN(sigaction, (long x1, long x2, long x3), own_action(x1, x2, x3))

extern char **environ;

static long
value_of(const char *name)
{
    size_t n = 0;
    long value = 0;

    lock();
    while (name[n])
        n++;
    for (char **at = environ; at && *at && !value; at++) {
        size_t i = 0;

        while (i < n && (*at)[i] == name[i])
            i++;
        if (i == n && (*at)[i] == '=')
            value = (long)(*at + n + 1);
    }
    unlock();
    return value;
}

OWN(getenv, (long x1), value_of((const char *)x1))
OWN(secure_getenv, (long x1), value_of((const char *)x1))

static long
copy(char *to, const char *from, long n)
{
    lock();
    while (n--)
        *to++ = *from++;
    unlock();
    return 0;
}

/* What compilers make calls of, too. */
void *
memcpy(void *to, const void *from, size_t n)
{
    copy(to, from, (long)n);
    return to;
}

size_t
strlen(const char *text)
{
    size_t n = 0;

    lock();
    while (text[n])
        n++;
    unlock();
    return n;
}

/* ---- what it does ----------------------------------------------------- */

enum { N_THREADS = 3, N_ROUNDS = 60 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile bool is_over;
static volatile uint64_t busy_until = UINT64_MAX; /* CLOCK_MONOTONIC */

static void *
sleeper(void *arg)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return arg;
}

/* All of it while it has the lock. */
static void
work_locked(void)
{
    pthread_t thread;
    void *block;

    lock();
    block = malloc(70000);
    block = realloc(block, 500000);
    free(block);
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, sleeper, NULL);
    pthread_mutex_unlock(&mutex);
    unlock();
    pthread_join(thread, NULL);
}

static uint64_t
now_ns(void)
{
    struct timespec t;

    cpprof__syscall(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t, 0, 0, 0, 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *
work(void *arg)
{
    while (!is_over) {
        while (now_ns() > busy_until && !is_over)
            rest();
        lock();
        for (volatile unsigned i = 0; i < 2000 * host_busy; i++)
            continue;
        unlock();
        (void)getpid();
        rest();
    }
    return arg;
}

/* Its child has the lock for ever, or finds it taken: it lives for so long that
 * it would be sampled. */
static void
fork_locked(bool holds)
{
    uint64_t until = now_ns() + 1200000000u;
    pid_t pid;

    if (holds)
        lock();
    pid = fork();
    if (pid == 0) {
        while (now_ns() < until) {
            free(malloc(1000));
            if (host_busy < 100)
                rest();
        }
        _exit(3);
    }
    if (holds)
        unlock();
    busy_until = until;
    EXPECT(status_of(pid) == 3, "a child ended otherwise");
    busy_until = UINT64_MAX;
}

int
main(void)
{
    pthread_t threads[N_THREADS];

    alarm(50);
    for (int i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < N_ROUNDS; i++)
        work_locked();
    fork_locked(true);
    fork_locked(false);
    is_over = true;
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return host_wrong;
}
