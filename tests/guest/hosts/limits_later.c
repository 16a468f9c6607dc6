/* SPDX-License-Identifier: MIT */
/* guest: 3. Limits that a program sets while it is busy: each refuses what it
 * has to, leaves what is below it, and is as it was set. */
#include "host.h"
#include <fcntl.h>
#include <sys/resource.h>

#define MB (1024ul * 1024)

/* Bytes of address space (0) or of data (5), as the limits count them. */
static unsigned long
used(int field)
{
    unsigned long pages[7] = {0};
    FILE *file = fopen("/proc/self/statm", "r");

    for (int i = 0; file && i < 7; i++)
        EXPECT(fscanf(file, "%lu", &pages[i]) == 1, "statm");
    if (file)
        fclose(file);
    return pages[field] * (unsigned long)sysconf(_SC_PAGESIZE);
}

static void
set(__rlimit_resource_t which, rlim_t to, struct rlimit *before)
{
    struct rlimit now;

    getrlimit(which, before);
    now = *before;
    now.rlim_cur = to;
    EXPECT(setrlimit(which, &now) == 0, "setrlimit: %s", strerror(errno));
    busy_ms(30);
    getrlimit(which, &now);
    EXPECT(now.rlim_cur == to, "the limit %d is %lu", (int)which,
           (unsigned long)now.rlim_cur);
}

static void
try_memory(__rlimit_resource_t which, int field)
{
    struct rlimit before;
    void *block;

    set(which, used(field) + 96 * MB, &before);
    block = malloc(16 * MB);
    EXPECT(block != NULL, "limit %d: no memory", (int)which);
    free(block);
    block = malloc(512 * MB);
    EXPECT(!block && errno == ENOMEM, "limit %d: too much", (int)which);
    setrlimit(which, &before);
    block = malloc(512 * MB);
    EXPECT(block != NULL, "limit %d: no memory afterwards", (int)which);
    free(block);
}

static void
try_descriptors(void)
{
    struct rlimit before;
    int fd = open("/dev/null", O_RDONLY);

    set(RLIMIT_NOFILE, (rlim_t)fd + 1, &before);
    EXPECT(open("/dev/null", O_RDONLY) < 0 && errno == EMFILE, "open: %s",
           strerror(errno));
    close(fd);
    EXPECT(open("/dev/null", O_RDONLY) == fd, "another descriptor");
    setrlimit(RLIMIT_NOFILE, &before);
    close(fd);
}

static void
try_signals(void)
{
    struct rlimit before;
    struct timespec now = {0, 0};
    sigset_t queued;
    int n = 0;

    sigemptyset(&queued);
    sigaddset(&queued, SIGRTMIN);
    getrlimit(RLIMIT_SIGPENDING, &before);
    set(RLIMIT_SIGPENDING, before.rlim_cur / 2, &before);
    while (n < 20 && sigqueue(getpid(), SIGRTMIN, (union sigval){n}) == 0)
        n++;
    EXPECT(n == 20, "%d signals: %s", n, strerror(errno));
    while (sigtimedwait(&queued, NULL, &now) == SIGRTMIN)
        n--;
    EXPECT(n == 0, "%d signals too few", n);
    setrlimit(RLIMIT_SIGPENDING, &before);
}

int
main(void)
{
    pthread_t busy;
    sigset_t queued;

    sigemptyset(&queued);
    sigaddset(&queued, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &queued, NULL); /* of all threads */
    busy = start_busy(200);
    try_descriptors();
    try_signals();
    try_memory(RLIMIT_AS, 0);
    try_memory(RLIMIT_DATA, 5);
    pthread_join(busy, NULL);
    pthread_join(start_busy(30), NULL);
    return host_wrong;
}
