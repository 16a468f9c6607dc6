/* SPDX-License-Identifier: MIT */
/*
 * A program whose waits are known: each round one thread waits for a lock that
 * another one holds for 20 ms.
 *
 *     waiter WORD...
 *
 * N: so many rounds; fork: the rest is done by a child, which is waited for;
 * second: sleeps for one; kill: SIGKILL; _exit: as it says.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HELD_US 20000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t is_there; /* a waiter, about to wait */

static __attribute__((noinline)) void
wait_for_it(void)
{
    pthread_mutex_lock(&lock);
    __asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void
give_it_up(void)
{
    pthread_mutex_unlock(&lock);
    __asm__ volatile("" ::: "memory");
}

/* All of it, whatever interrupts it. */
static __attribute__((noinline)) void
sleep_for(long us)
{
    struct timespec left = {us / 1000000, us % 1000000 * 1000};

    while (nanosleep(&left, &left))
        continue;
}

/* Another thread of this process, by what the kernel says of it. */
static int
sleeps(pid_t tid)
{
    char path[64], state = 0;
    FILE *stat;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
    stat = fopen(path, "r");
    if (!stat || fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
        abort();
    fclose(stat);
    return state == 'S';
}

static void *
waiter(void *arg)
{
    __atomic_store_n(&is_there, gettid(), __ATOMIC_RELEASE);
    wait_for_it();
    pthread_mutex_unlock(&lock);
    return arg;
}

static void
round_of_waiting(void)
{
    pthread_t thread;
    pid_t tid;

    pthread_mutex_lock(&lock);
    __atomic_store_n(&is_there, 0, __ATOMIC_RELEASE);
    if (pthread_create(&thread, NULL, waiter, NULL))
        abort();
    while (!(tid = __atomic_load_n(&is_there, __ATOMIC_ACQUIRE)) ||
           !sleeps(tid))
        usleep(HELD_US / 20);
    sleep_for(HELD_US);
    give_it_up();
    sleep_for(HELD_US / 4); /* so that the join below waits for nothing */
    pthread_join(thread, NULL);
}

int
main(int argc, char **argv)
{
    int i, n;

    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "kill"))
            raise(SIGKILL);
        else if (!strcmp(argv[i], "_exit"))
            _exit(0);
        else if (!strcmp(argv[i], "fork") && fork()) {
            wait(NULL);
            return 0;
        } else if (!strcmp(argv[i], "second"))
            sleep_for(1300000);
        for (n = atoi(argv[i]); n > 0; n--)
            round_of_waiting();
    }
    return 0;
}
