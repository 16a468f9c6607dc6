/* SPDX-License-Identifier: MIT */
/* guest: 5. A program that lets the kernel refuse memory which becomes
 * executable (PR_SET_MDWE), from the start of its next image on: threads,
 * libraries and children come and go as alone. */
#include "host.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif
#define REFUSE_EXEC_GAIN 1ul

static bool
gains_exec(void)
{
    const size_t n = 4096;
    void *page = mmap(NULL, n, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool gained = mprotect(page, n, PROT_READ | PROT_EXEC) == 0;

    EXPECT(page != MAP_FAILED, "mmap: %s", strerror(errno));
    munmap(page, n);
    return gained;
}

int
main(int argc, char **argv)
{
    char *const again[] = {argv[0], "again", NULL};

    if (argc == 1) {
        busy_ms(20);
        if (prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0) == 0)
            execv("/proc/self/exe", again);
        printf("the kernel has no PR_SET_MDWE\n"); /* before 6.3 */
        return 0;
    }
    EXPECT(!gains_exec(), "memory became executable");
    for (int i = 0; i < 5; i++) {
        pthread_t busy = start_busy(30);
        void *math = dlopen("libm.so.6", RTLD_NOW);
        pid_t pid;

        EXPECT(math, "%s", dlerror());
        free(malloc(300000));
        pid = fork();
        if (pid == 0) {
            busy_ms(10);
            exit(3);
        }
        EXPECT(status_of(pid) == 3, "the child ended otherwise");
        pthread_join(busy, NULL);
        EXPECT(dlclose(math) == 0, "%s", dlerror());
    }
    EXPECT(!gains_exec(), "memory became executable later");
    return host_wrong;
}
