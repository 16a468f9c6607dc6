/* SPDX-License-Identifier: MIT */
/* guest: 2. A child of a bare clone() has the memory of a thread, thread-local
 * variables too, and runs beside it: both wait for the same locks. Another one
 * is killed in such a wait, and its stack goes. Then the thread calls
 * pthread_exit(). */
#include "host.h"
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { STACK = 65536, ROUNDS = 4000, N_LOCKS = 3 };

static pthread_mutex_t locks[N_LOCKS] = {PTHREAD_MUTEX_INITIALIZER,
                                         PTHREAD_MUTEX_INITIALIZER,
                                         PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static long sum[N_LOCKS];

/* Those of all tasks are taken by turns, so that each waits often. */
static int
take_turns(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        int which = i % N_LOCKS;

        pthread_mutex_lock(&locks[which]);
        sum[which]++;
        if (i % 8 == 0)
            syscall(SYS_sched_yield);
        pthread_mutex_unlock(&locks[which]);
    }
    return 0;
}

static void *
turns_of_thread(void *arg)
{
    take_turns(arg);
    return arg;
}

static int
wait_for_held(void *arg)
{
    pthread_mutex_lock(&held);
    return 0;
}

static pid_t
begin(int (*f)(void *), char *stack)
{
    pid_t pid = clone(f, stack + STACK,
                      CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, NULL);

    EXPECT(pid > 0, "clone: %s", strerror(errno));
    return pid;
}

static void
kill_one_that_waits(void)
{
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid_t pid;

    pthread_mutex_lock(&held);
    pid = begin(wait_for_held, stack);
    while (__atomic_load_n(&held.__data.__lock, __ATOMIC_ACQUIRE) != 2)
        sleep_ms(1);
    sleep_ms(5);
    kill(pid, SIGKILL);
    EXPECT(status_of(pid) == 256 + SIGKILL, "it was not killed");
    pthread_mutex_unlock(&held);
    munmap(stack, STACK);
}

static void *
thread(void *arg)
{
    static char stack[STACK] __attribute__((aligned(16)));
    pid_t pid = begin(take_turns, stack);
    int status;

    take_turns(NULL);
    status = status_of(pid);
    EXPECT(status == 0, "the child ended with %d", status);
    kill_one_that_waits();
    pthread_exit(sum);
}

int
main(void)
{
    pthread_t other, one;
    void *how;

    pthread_create(&other, NULL, turns_of_thread, NULL);
    pthread_create(&one, NULL, thread, NULL);
    pthread_join(other, NULL);
    pthread_join(one, &how);
    EXPECT(how == sum, "it ended otherwise");
    for (int i = 0; i < N_LOCKS; i++)
        EXPECT(sum[i] >= 3 * (ROUNDS / N_LOCKS), "lock %d: %ld", i, sum[i]);
    return host_wrong;
}
