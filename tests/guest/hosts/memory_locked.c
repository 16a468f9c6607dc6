/* SPDX-License-Identifier: MIT */
/* guest: 4. Memory: a program that has all that it maps locked holds no more of
 * it, and waits for no memory of ours to be filled when it maps something. */
#include "host.h"
#include <sys/mman.h>

#define RESIDENT_MAX_KB 65536

static unsigned long
resident_kb(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    unsigned long kb = 0;
    char line[256];

    while (file && fgets(line, sizeof line, file))
        sscanf(line, "VmRSS: %lu kB", &kb);
    if (file)
        fclose(file);
    return kb;
}

static void
work(void)
{
    pthread_t busy = start_busy(300);

    for (int i = 0; i < 300; i++) {
        void *block = malloc(100000), *page;

        busy_ms(1);
        free(block);
        page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT(page != MAP_FAILED, "mmap: %m");
        munmap(page, 4096);
    }
    pthread_join(busy, NULL);
    EXPECT(resident_kb() < RESIDENT_MAX_KB, "%lu KB are resident",
           resident_kb());
}

int
main(void)
{
    pid_t child;

    /* Without privilege there may be a limit. */
    if (mlockall(MCL_FUTURE))
        return 0;
    sleep_ms(100);
    work();
    child = fork();
    if (!child) {
        work();
        _exit(host_wrong);
    }
    EXPECT(status_of(child) == 0, "the child");
    return host_wrong;
}
