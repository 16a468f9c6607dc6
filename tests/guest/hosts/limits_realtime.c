/* SPDX-License-Identifier: MIT */
/* guest: 3. ulimit -R 0: the kernel ends who has a CPU timer that expires, also
 * without real-time scheduling. */
#include "host.h"
#include <sys/resource.h>
#include <sys/wait.h>

int
main(int argc, char **argv)
{
    const struct rlimit none = {0, 0};
    char *words[] = {argv[0], "limited", NULL};
    int status = -1;
    pthread_t busy;
    pid_t child;

    if (argc > 1) {
        busy = start_busy(200);
        busy_ms(200);
        pthread_join(busy, NULL);
        return host_wrong;
    }
    child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_RTTIME, &none);
        unsetenv("HOST_ATTACH"); /* who attaches is refused */
        execv("/proc/self/exe", words);
        _exit(99);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    EXPECT(status == 0, "a child with the limit ended with %x", status);
    return host_wrong;
}
