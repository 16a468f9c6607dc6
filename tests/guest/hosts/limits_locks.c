/* SPDX-License-Identifier: MIT */
/* guest: 3. ulimit -d: a program with a limit in which tables find no room, or
 * some of them, waits for locks and allocates. */
#include "host.h"
#include <sys/resource.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *
locks(void *arg)
{
    int i;

    for (i = 0; i < 50; i++) {
        pthread_mutex_lock(&mutex);
        free(malloc(1000));
        usleep(100);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

int
main(int argc, char **argv)
{
    static const int limits_mb[] = {20, 40, 100, 200, 400};
    char *words[] = {argv[0], "again", NULL};
    pthread_t threads[2];
    int i, status;

    if (argc > 1) {
        for (i = 0; i < 2; i++)
            if (pthread_create(&threads[i], NULL, locks, NULL))
                threads[i] = 0; /* the stack may be what finds no room */
        for (i = 0; i < 2; i++)
            if (threads[i])
                pthread_join(threads[i], NULL);
        return 0;
    }
    for (i = 0; i < 5; i++) {
        struct rlimit data = {limits_mb[i] << 20, limits_mb[i] << 20};
        pid_t pid = fork();

        if (!pid) {
            setrlimit(RLIMIT_DATA, &data);
            execv("/proc/self/exe", words);
            _exit(99);
        }
        waitpid(pid, &status, 0);
        EXPECT(status == 0, "with %d MB: %x", limits_mb[i], status);
    }
    return host_wrong;
}
