#!/usr/bin/env python3
"""Into programs whose threads are where an exception may leave: in an allocator
of their own, in a callback of the loader; and out again. It finds its callers.
Words: attached.py.
"""
import os
import subprocess
import sys

from attached import calls, library, main, t

ROUNDS = "30"

# An allocator of one arena. Its operator new works for a while and then looks
# for its callers, as an exception does that it would throw. Pages of the arena
# come when a handler of SIGSEGV makes them.
ALLOCATOR = """
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unwind.h>
#define BYTES (1l << 36)
static char *arena;
static _Atomic long used;
__thread int n_callers;
static void on_fault(int number, siginfo_t *info, void *context)
{
    char *at = info->si_addr;
    if (at < arena || at >= arena + BYTES)
        signal(SIGSEGV, SIG_DFL);
    else
        mprotect((char *)((uintptr_t)at & -4096ul), 4096,
                 PROT_READ | PROT_WRITE);
}
__attribute__((constructor)) static void begin(void)
{
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (arena)
        return;
    arena = mmap(0, BYTES, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    sigaction(SIGSEGV, &action, NULL);
}
void *memalign(size_t to, size_t n)
{
    long *block;
    if (!arena)
        begin();
    n = (n + to + 31) & -16l;
    block = (long *)(((uintptr_t)arena + atomic_fetch_add(&used, n) + 16 + to -
                      1) & -to);
    block[-1] = n;
    return block;
}
void *malloc(size_t n) { return memalign(16, n); }
void free(void *p) { }
void *aligned_alloc(size_t to, size_t n) { return memalign(to, n); }
int posix_memalign(void **p, size_t to, size_t n)
{
    *p = memalign(to, n);
    return 0;
}
void *calloc(size_t n, size_t size) { return malloc(n * size); }
void *realloc(void *p, size_t n)
{
    void *q = malloc(n);
    long before = p ? ((long *)p)[-1] : 0;
    return p ? memcpy(q, p, n < before ? n : before) : q;
}
static _Unwind_Reason_Code count(struct _Unwind_Context *context, void *arg)
{
    n_callers++;
    return _URC_NO_REASON;
}
static __attribute__((noinline)) void refuse(void)
{
    volatile long i = 0;
    while (i < 10000000)
        i++;
    n_callers = 0;
    _Unwind_Backtrace(count, 0);
}
__attribute__((noinline)) void *_Znwm(size_t n)
{
    refuse();
    return malloc(n);
}
"""

USER = """
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
extern __thread int n_callers;
void *_Znwm(size_t n);
static volatile sig_atomic_t is_over;
static void on_term(int number) { is_over = 1; }
static void *work(void *arg)
{
    int expected = 0;
    char *p;
    while (!is_over) {
        p = _Znwm(10000);
        p[0] = p[9999] = 1;
        if (!expected)
            expected = n_callers;
        if (n_callers != expected)
            _exit(3);
        usleep(20000);
    }
    return expected < 3 ? NULL : arg;
}
int main(void)
{
    pthread_t thread;
    void *result;
    signal(SIGTERM, on_term);
    puts("ready");
    fflush(stdout);
    if (pthread_create(&thread, NULL, work, &thread) || !work(&thread))
        return 2;
    pthread_join(thread, &result);
    return result != &thread;
}
"""

# In a callback of the loader.
WALKS = """
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <unwind.h>
static volatile sig_atomic_t is_over;
static void on_term(int number) { is_over = 1; }
static _Unwind_Reason_Code count(struct _Unwind_Context *context, void *n)
{
    ++*(int *)n;
    return _URC_NO_REASON;
}
static int work(struct dl_phdr_info *info, size_t size, void *arg)
{
    volatile long i = 0;
    while (i < 10000000)
        i++;
    _Unwind_Backtrace(count, arg);
    return 1;
}
int main(void)
{
    int expected = 0, n;
    signal(SIGTERM, on_term);
    puts("ready");
    fflush(stdout);
    while (!is_over) {
        n = 0;
        dl_iterate_phdr(work, &n);
        if (!expected)
            expected = n;
        if (n != expected)
            return 3;
        usleep(5000);
    }
    return expected < 3;
}
"""

# The sanitizer takes over poll() as it does malloc(): who waits in it may be
# borrowed.
POLLS = """
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static volatile sig_atomic_t is_over;
static void on_term(int number) { is_over = 1; }
int main(void)
{
    char *p;
    signal(SIGTERM, on_term);
    puts("ready");
    fflush(stdout);
    while (!is_over) {
        if (poll(NULL, 0, 50))
            return !is_over;
        p = malloc(1000);
        if (strlen(memset(p, 0, 1000)))
            return 3;
        free(p);
    }
    return 0;
}
"""


def compiled(name, text, *flags):
    path = os.path.join(os.getcwd(), name)
    with open(path + ".c", "w", encoding="ascii") as f:
        f.write(text)
    return path if subprocess.run(
        ["cc", "-O1", "-w", "-pthread", "-fexceptions", path + ".c", "-o",
         path] + list(flags), check=False,
        capture_output=True).returncode == 0 else None


def goes_on(name, path, *more):
    if not path:
        t.skip(name, "cannot be compiled here")
        return
    with subprocess.Popen([path], stdout=subprocess.PIPE, text=True) as p:
        p.stdout.readline()
        done = subprocess.run([calls, str(p.pid), library, ROUNDS] + list(more),
                              capture_output=True, text=True, check=False,
                              timeout=300)
        t.same("%s: all calls are answered" % name,
               (done.returncode, done.stderr), (0, ""))
        p.terminate()
        t.same("%s: it goes on" % name, p.wait(timeout=60), 0)


def in_the_program():
    goes_on("allocator of the program",
            compiled("one", ALLOCATOR + USER.replace("extern", ""),
                     "-rdynamic"))


def in_a_library():
    made = compiled("liballocator.so", ALLOCATOR, "-shared", "-fPIC")
    goes_on("allocator of a library",
            made and compiled("user", USER, made, "-Wl,-rpath," + os.getcwd()))


def in_the_loader():
    goes_on("a callback of the loader", compiled("walks", WALKS))


def with_a_sanitizer():
    goes_on("a program with ASan that polls",
            compiled("polls", POLLS, "-fsanitize=address"))


sys.exit(main(in_the_program, in_a_library, in_the_loader,
              with_a_sanitizer))
