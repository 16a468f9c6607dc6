/* SPDX-License-Identifier: MIT */
/* guest: 2. Handlers of pthread_atfork() that allocate under a lock of the
 * program, which forks while threads come and go. */
#include "host.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *volatile block;

static void
use(void)
{
    free(block);
    block = malloc(5000);
}

static void
prepare(void)
{
    pthread_mutex_lock(&lock);
    use();
}

static void
go_on(void)
{
    use();
    pthread_mutex_unlock(&lock);
}

static void
work(void)
{
    char line[64];

    pthread_mutex_lock(&lock);
    use();
    snprintf(line, sizeof line, "%p", block);
    pthread_mutex_unlock(&lock);
}

static volatile bool ends;

static void *
churn(void *arg)
{
    while (!ends) {
        pthread_t thread;

        work();
        if (pthread_create(&thread, NULL, busy_thread, (void *)1) == 0)
            pthread_join(thread, NULL);
    }
    return arg;
}

int
main(void)
{
    pthread_t threads[3];
    int i;

    pthread_atfork(prepare, go_on, go_on);
    for (i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, churn, NULL);
    for (i = 0; i < 60; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            alarm(30);
            work();
            _exit(3);
        }
        EXPECT(status_of(pid) == 3, "a child ended otherwise");
    }
    ends = true;
    for (i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return host_wrong;
}
