/* SPDX-License-Identifier: MIT */
/* guest: 3. All memory is gone when threads, children and the program itself
 * begin, wait and end. */
#include "host.h"
#include <fcntl.h>
#include <sys/resource.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t is_held;

static void *
holder(void *arg)
{
    pthread_mutex_lock(&lock);
    is_held = 1;
    sleep_ms(40);
    pthread_mutex_unlock(&lock);
    busy_ms(20);
    return arg;
}

/* What the program has now is all that there is. */
static void
use_up(void)
{
    char text[64] = "";
    struct rlimit limit;
    size_t n;
    int fd = open("/proc/self/statm", O_RDONLY);

    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        _exit(99);
    close(fd);
    limit.rlim_cur = limit.rlim_max =
        strtoul(text, NULL, 10) * (unsigned long)sysconf(_SC_PAGESIZE);
    setrlimit(RLIMIT_AS, &limit);
    for (n = 1 << 20; n; n /= 2)
        while (malloc(n))
            continue;
    EXPECT(errno == ENOMEM, "malloc: %s", strerror(errno));
}

static void
check_waits(pthread_t thread)
{
    struct timespec t = {0, 3000000};
    void *result = NULL;

    while (!is_held)
        sched_yield();
    EXPECT(pthread_mutex_lock(&lock) == 0, "pthread_mutex_lock");
    pthread_mutex_unlock(&lock);
    EXPECT(nanosleep(&t, NULL) == 0, "nanosleep: %s", strerror(errno));
    EXPECT(pthread_join(thread, &result) == 0 && result == &lock,
           "pthread_join");
}

static void
check_children(void)
{
    char *words[] = {"true", NULL};
    int i, status;

    for (i = 0; i < 4; i++) {
        pid_t pid = fork();

        EXPECT(pid >= 0, "fork: %s", strerror(errno));
        if (pid == 0) {
            busy_ms(15);
            sleep_ms(15);
            if (i == 0)
                _exit(10);
            if (i == 1)
                quick_exit(11);
            if (i == 2)
                exit(12);
            execv("/bin/true", words); /* it has room */
            _exit(13);
        }
        status = status_of(pid);
        EXPECT(status == (i < 3 ? 10 + i : 0), "child %d ended with %d", i,
               status);
    }
}

int
main(void)
{
    static char buffer[BUFSIZ];
    pthread_t thread;

    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    EXPECT(pthread_create(&thread, NULL, holder, &lock) == 0, "pthread_create");
    busy_ms(30);
    use_up();
    check_waits(thread);
    check_children();
    busy_ms(30);
    puts("runs");
    return host_wrong;
}
