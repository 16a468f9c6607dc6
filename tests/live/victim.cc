// SPDX-License-Identifier: MIT
// A program that knows nothing of profiling: it burns and ends as it is told.
//
//     victim WORD...    done one after the other
//
//     burn=MS       burn so many ms of CPU time in victim_burn
//     rest=MS       sleep so long
//     thread=MS     the same in another thread, waited for
//     background=MS the same in another thread, not waited for
//     out=TEXT      print TEXT on standard output
//     block         block all signals
//     close         close every descriptor above 2
//     fork=MS       fork a child that burns so long in victim_child
//     old_fork=MS   the same, when the child has lived for a second
//     exec          run this program again with the words that follow
//     return=N exit=N _exit=N quick_exit=N raw_exit=N
//     abort terminate kill=SIGNAL segv hang end_main
#include "arch/kernel.h"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

static uint64_t
cpu_ns()
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return uint64_t(t.tv_sec) * 1000000000 + uint64_t(t.tv_nsec);
}

static inline __attribute__((always_inline)) void
burn_here(int ms)
{
    uint64_t end = cpu_ns() + uint64_t(ms) * 1000000;

    while (cpu_ns() < end)
        for (int i = 0; i < 40000; i++)
            sink = sink * 6364136223846793005 + (sink >> 33);
}

extern "C" {
__attribute__((noinline)) void
victim_burn(int ms)
{
    burn_here(ms);
    sink = sink + 1;
}

__attribute__((noinline)) void
victim_child(int ms)
{
    burn_here(ms);
    sink = sink + 1;
}

__attribute__((noinline)) void
victim_thread(int ms)
{
    burn_here(ms);
    sink = sink + 1;
}
}

static void *
thread_main(void *ms)
{
    victim_thread(int(reinterpret_cast<intptr_t>(ms)));
    return nullptr;
}

static pthread_t
start_thread(int ms)
{
    pthread_t thread;

    if (pthread_create(&thread, nullptr, thread_main,
                       reinterpret_cast<void *>(intptr_t(ms))))
        abort();
    return thread;
}

static void
fork_and_wait(int sleep_ms, int ms)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        usleep(useconds_t(sleep_ms) * 1000);
        victim_child(ms);
        exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        exit(99);
}

static void
fork_child(int ms)
{
    fork_and_wait(0, ms);
}

static void
fork_old_child(int ms)
{
    fork_and_wait(1300, ms);
}

static void
fault()
{
    volatile int *nowhere = nullptr;

    *nowhere = 1;
}

static void
block_all()
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

static void
hang()
{
    for (;;)
        pause();
}

// Words with a number, and without.
struct numbered {
    const char *name;
    void (*run)(int n);
};
static const numbered numbered_words[] = {
    {"burn", victim_burn},
    {"rest", [](int ms) { usleep(useconds_t(ms) * 1000); }},
    {"thread", [](int ms) { pthread_join(start_thread(ms), nullptr); }},
    {"background", [](int ms) { start_thread(ms); }},
    {"fork", fork_child},
    {"old_fork", fork_old_child},
    {"exit", [](int n) { exit(n); }},
    {"_exit", [](int n) { _exit(n); }},
    {"quick_exit", [](int n) { quick_exit(n); }},
    {"raw_exit", [](int n) { syscall(SYS_exit_group, n); }},
    {"kill", [](int signo) { kill(getpid(), signo); }},
};
struct plain {
    const char *name;
    void (*run)();
};
static const plain plain_words[] = {
    {"abort", abort},
    {"terminate", std::terminate},
    {"segv", fault},
    {"hang", hang},
    {"block", block_all},
    {"close", [] { syscall(SYS_close_range, 3, ~0U, 0); }},
    {"end_main", [] { pthread_exit(nullptr); }},
};

static bool
run_word(const char *word)
{
    size_t n = strcspn(word, "=");

    for (const numbered &w : numbered_words)
        if (strlen(w.name) == n && strncmp(w.name, word, n) == 0 && word[n])
            return w.run(atoi(word + n + 1)), true;
    for (const plain &w : plain_words)
        if (strcmp(w.name, word) == 0)
            return w.run(), true;
    return false;
}

int
main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "return=", 7) == 0)
            return atoi(argv[i] + 7);
        if (strcmp(argv[i], "exec") == 0) {
            argv[i] = argv[0];
            execv("/proc/self/exe", argv + i);
            return 98;
        }
        if (strncmp(argv[i], "out=", 4) == 0) {
            printf("%s\n", argv[i] + 4);
            fflush(stdout);
        } else if (!run_word(argv[i])) {
            fprintf(stderr, "victim: what is %s?\n", argv[i]);
            return 97;
        }
    }
    return 0;
}
