/* SPDX-License-Identifier: MIT */
/* guest: 4. What a handler may call on a small alternate stack, it can: nothing
 * of ours needs more of it. Below lies a page that nobody may touch. */
#include "host.h"
#include <sys/mman.h>

enum { SIZE = 8192, ROOM = 4096, PAGE = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t is_held;

static void *
holder(void *arg)
{
    pthread_mutex_lock(&lock);
    is_held = 1;
    sleep_ms(30);
    pthread_mutex_unlock(&lock);
    return arg;
}

static void
allocates(void)
{
    int i;

    for (i = 0; i < 3000; i++) {
        void *block = malloc(1000 + (size_t)i);

        block = realloc(block, 3000);
        free(block);
    }
}

static void
waits(void)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    sleep_ms(5);
}

static void
makes_a_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, busy_thread, (void *)5) == 0)
        pthread_join(thread, NULL);
}

static void
forks(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(3);
    if (status_of(pid) != 3)
        _exit(90);
}

static void
executes(void)
{
    char *words[] = {"true", NULL};
    pid_t pid = fork();

    if (pid == 0) {
        execv("/bin/true", words);
        _exit(91);
    }
    if (status_of(pid) != 0)
        _exit(92);
}

static void
becomes_itself(void)
{
    if (setuid(getuid()) != 0 || setgid(getgid()) != 0)
        _exit(93);
}

static void
ends(void)
{
    exit(5);
}

static void
ends_quickly(void)
{
    quick_exit(5);
}

static void
ends_at_once(void)
{
    _exit(5);
}

static const struct {
    const char *name;
    void (*call)(void);
} calls[] = {
    {"malloc", allocates},
    {"waits", waits},
    {"pthread_create", makes_a_thread},
    {"fork", forks},
    {"execv", executes},
    {"setuid", becomes_itself},
    {"exit", ends},
    {"quick_exit", ends_quickly},
    {"_exit", ends_at_once},
};
static size_t which;

static void
on_usr1(int signal)
{
    (void)signal;
    busy_ms(20);
    calls[which].call();
}

static void
run(void)
{
    struct sigaction action = {.sa_handler = on_usr1, .sa_flags = SA_ONSTACK};
    size_t least = ((size_t)sysconf(_SC_MINSIGSTKSZ) + ROOM + 63) & ~63ul;
    size_t size = least > SIZE ? least : SIZE;
    char *memory = mmap(NULL, PAGE + size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = {.ss_sp = memory + PAGE, .ss_size = size};
    pthread_t thread;

    mprotect(memory, PAGE, PROT_NONE);
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&thread, NULL, holder, NULL);
    while (!is_held)
        sched_yield();
    raise(SIGUSR1);
    pthread_join(thread, NULL);
    exit(5);
}

int
main(void)
{
    for (which = 0; which < sizeof calls / sizeof *calls; which++) {
        pid_t pid = fork();
        int status;

        if (pid == 0)
            run();
        status = status_of(pid);
        EXPECT(status == 5, "%s: it ended with %d", calls[which].name, status);
    }
    puts("runs");
    return host_wrong;
}
