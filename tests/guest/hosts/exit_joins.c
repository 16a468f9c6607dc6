/* SPDX-License-Identifier: MIT */
/* guest: 2. A handler of exit(), called by a thread after main() has ended,
 * makes a child, joins threads that compute, lock and allocate, and makes
 * another one. */
#include "host.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t threads[4];
static int is_over;

static void *
work(void *arg)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        pthread_mutex_lock(&lock);
        free(malloc(5000));
        pthread_mutex_unlock(&lock);
        busy_ms(1);
    }
    return arg;
}

static void *
once(void *arg)
{
    busy_ms(5);
    return arg;
}

static void
at_end(void)
{
    pthread_t t;
    void *result;
    pid_t pid;
    int i;

    pid = fork();
    if (pid == 0)
        _exit(5);
    EXPECT(status_of(pid) == 5, "the child ended otherwise");
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    for (i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    EXPECT(pthread_create(&t, NULL, once, &t) == 0, "no thread");
    pthread_join(t, &result);
    EXPECT(result == &t, "another result");
    if (host_wrong)
        _exit(1);
    puts("said");
}

static void *
leave(void *arg)
{
    sleep_ms(20);
    exit(0);
}

static void __attribute__((destructor)) last(void)
{
    puts("last");
}

int
main(void)
{
    int i;

    atexit(at_end);
    for (i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    pthread_create(&(pthread_t){0}, NULL, leave, NULL);
    pthread_exit(NULL);
}
