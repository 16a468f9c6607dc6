/* SPDX-License-Identifier: MIT */
/* guest: 3. ulimit -u: the program has all threads and processes of its user
 * that it has without us. needs: root */
#include "host.h"
#include <sys/resource.h>

enum { MOST = 4, TURNS = 3 };

static pthread_barrier_t all;

static void *
wait_for_all(void *tid)
{
    *(pid_t *)tid = gettid();
    pthread_barrier_wait(&all);
    return NULL;
}

/* The kernel counts a thread for a moment after it was joined. */
static void
wait_gone(pid_t tid)
{
    while (!tgkill(getpid(), tid, 0))
        sleep_ms(1);
}

/* The last place is for a thread, or for a process. */
static void
take_all_places(int turn, bool by_process)
{
    pthread_t threads[MOST];
    pid_t tids[MOST];
    int n = by_process ? MOST - 2 : MOST - 1, i;

    pthread_barrier_init(&all, NULL, (unsigned)n + 1);
    for (i = 0; i < n; i++) {
        int failed = pthread_create(&threads[i], NULL, wait_for_all, &tids[i]);

        EXPECT(failed == 0, "thread %d of turn %d: %s", i, turn,
               strerror(failed));
        if (failed)
            exit(1);
    }
    if (by_process) {
        pid_t pid = fork();

        EXPECT(pid >= 0, "fork in turn %d: %s", turn, strerror(errno));
        if (pid == 0)
            _exit(3);
        EXPECT(status_of(pid) == 3, "the child ended otherwise");
    }
    pthread_barrier_wait(&all);
    for (i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&all);
    for (i = 0; i < n; i++)
        wait_gone(tids[i]);
}

int
main(void)
{
    struct rlimit limit = {MOST, MOST};
    uid_t uid = 20000 + (uid_t)getpid() % 40000; /* nobody else's */
    int i;

    busy_ms(20);
    if (setgid(uid) || setuid(uid))
        return 99;
    setrlimit(RLIMIT_NPROC, &limit);
    for (i = 0; i < TURNS; i++)
        take_all_places(i, i % 2 == 0);
    return host_wrong;
}
