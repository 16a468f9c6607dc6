/* SPDX-License-Identifier: MIT */
/*
 * Processes to attach to, each of which checks itself: attach_host MODE
 * [THREADS]. It prints "ready", goes on until SIGTERM comes, and then prints
 * how often it went round. A call that ends otherwise than it would alone, or a
 * register that is not what it was, is printed, and the exit status is 1.
 *
 * Modes of calls wait again and again for what comes after a moment: from a
 * child, or because the time is over. No other signal comes, so none of them
 * may end early.
 */
#include "attach_host.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

volatile sig_atomic_t must_end;
volatile sig_atomic_t n_usr1;
static _Atomic unsigned long n_rounds;

static void
on_term(int signal)
{
    must_end = 1;
}

static void
on_usr1(int signal)
{
    n_usr1++;
}

static void
on_tick(int signal)
{
}

void
wrong(const char *what, long got)
{
    printf("%s: %ld, errno %d\n", what, got, errno);
    fflush(stdout);
    _exit(1);
}

double
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

void
moment(void)
{
    usleep(MOMENT_MS * 1000);
}

void
expect(const char *what, long got, long wanted)
{
    if (got != wanted && !(errno == EINTR && must_end))
        wrong(what, got);
}

pid_t
child_of(void (*f)(void *), void *arg)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        moment();
        f(arg);
    }
}

/* ------------------------------------------------------------ busy ones ----
 */

#if defined __x86_64__
/* All registers hold what a round puts there: those of numbers, flags, vectors
 * and the mode of rounding. */
static void
do_registers(void)
{
    uint64_t in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {0}, n = 20000000;
    uint64_t gpr = 0;
    uint32_t mode = 0x5f80, mode_after; /* toward zero */
    uint32_t plain = 0x1f80;

    __asm__ volatile("ldmxcsr %[mode]\n\t"
                     "movdqu %[in], %%xmm0\n\t"
                     "movdqu 16+%[in], %%xmm15\n\t"
                     "mov $0x1111, %%r8\n\t"
                     "mov $0x2222, %%r9\n\t"
                     "mov $0x3333, %%r11\n\t"
                     "mov $0x4444, %%rdx\n\t"
                     "movq $0x5555, -8(%%rsp)\n\t"
                     "std\n\t"
                     "1: dec %[n]\n\t"
                     "jnz 1b\n\t"
                     "pushfq\n\t"
                     "pop %%rcx\n\t"
                     "cld\n\t"
                     "shr $10, %%rcx\n\t"
                     "and $1, %%rcx\n\t"
                     "add %%r8, %[gpr]\n\t"
                     "add %%r9, %[gpr]\n\t"
                     "add %%r11, %[gpr]\n\t"
                     "add %%rdx, %[gpr]\n\t"
                     "add %%rcx, %[gpr]\n\t"
                     "movdqu %%xmm0, %[out]\n\t"
                     "movdqu %%xmm15, 16+%[out]\n\t"
                     "stmxcsr %[after]\n\t"
                     "ldmxcsr %[plain]"
                     : [n] "+r"(n), [gpr] "+r"(gpr), [out] "=m"(out),
                       [after] "=m"(mode_after)
                     : [in] "m"(in), [mode] "m"(mode), [plain] "m"(plain)
                     : "r8", "r9", "r11", "rdx", "rcx", "xmm0", "xmm15",
                       "memory", "cc");
    if (gpr != 0x1111 + 0x2222 + 0x3333 + 0x4444 + 1)
        wrong("general registers", (long)gpr);
    if (memcmp(in, out, 32))
        wrong("vector registers", (long)out[0]);
    if ((mode_after & ~0x3fu) != mode)
        wrong("mode of rounding", mode_after);
}
#else
static void
do_registers(void)
{
    moment();
}
#endif

static void
allocate_all(void)
{
    void *kept[64] = {0};
    unsigned i, seed = (unsigned)(uintptr_t)&i;

    for (i = 0; i < 20000; i++) {
        seed = seed * 1103515245 + 12345;
        free(kept[i % 64]);
        kept[i % 64] = malloc(1 + (seed >> 16 & 2047));
        if (!kept[i % 64])
            wrong("malloc", i);
        *(char *)kept[i % 64] = 1;
    }
    for (i = 0; i < 64; i++)
        free(kept[i]);
}

static void
do_spin(void)
{
    volatile uint64_t n = 0;

    while (n < 50000000)
        n++;
}

/* A signal comes twenty thousand times a second: nearly whenever a thread is to
 * stop, one is on its way to it. */
static void
do_ticks(void)
{
    static const struct itimerval often = {{0, 50}, {0, 50}};
    static const struct itimerval never;
    volatile uint64_t n = 0;

    setitimer(ITIMER_REAL, &often, NULL);
    while (n < 50000000)
        n++;
    setitimer(ITIMER_REAL, &never, NULL);
}

/* A program that has closed a descriptor knows the number of the next, and that
 * nothing can be written to it until then. */
static void
do_descriptors(void)
{
    static int first;
    int fd, i;

    for (i = 0; i < 1000 && !must_end; i++) {
        fd = dup(0);
        if (!first)
            first = fd;
        expect("the next descriptor", fd, first);
        close(fd);
        expect("write to what is closed", write(fd, "x", 1), -1);
    }
}

/* Busy in code that has no tables, as of a runtime that compiles, deep in a
 * stack that ends in malloc: whoever looks has to look at all of it. */
static void __attribute__((noinline)) do_untabled(void)
{
    /* push %rbp; xor %ebp, %ebp; mov $0x7fffffff, %ecx; 1: dec %ecx; jnz 1b;
     * pop %rbp; ret */
    static const unsigned char code[] = {0x55, 0x31, 0xed, 0xb9, 0xff,
                                         0xff, 0xff, 0x7f, 0xff, 0xc9,
                                         0x75, 0xfc, 0x5d, 0xc3};
    static _Atomic(void *) page;
    uintptr_t room[110000] = {0};
    void *p = page;

    if (!p) {
        p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(p, code, sizeof code);
        page = p;
    }
    room[sizeof room / sizeof *room - 1] = (uintptr_t)malloc + 8;
    __asm__ volatile("" : : "r"(room) : "memory");
    ((void (*)(void))p)();
    __asm__ volatile("" : : "r"(room) : "memory"); /* the call comes back */
}

/* At work for a fifth of the time: who waits for a recording leaves the
 * processors to others. */
static void
do_pulse(void)
{
    volatile uint64_t n = 0;

    usleep(5000);
    while (n < 400000)
        n++;
}

/* Likewise, in malloc. */
static void
do_allocate(void)
{
    usleep(5000);
    allocate_all();
}

static void
do_fork(void)
{
    int status;
    pid_t pid = fork();

    if (!pid)
        _exit(3);
    while (waitpid(pid, &status, 0) != pid)
        if (errno != EINTR || !must_end)
            wrong("waitpid", errno);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 3)
        wrong("status of a child", status);
}

/* No thread can be made after it by who calls it. */
static void
unshare_once(int flags)
{
    static bool is_done;

    usleep(20000);
    if (is_done || !n_usr1)
        return;
    is_done = true;
    puts(unshare(flags) ? strerror(errno) : "unshared");
    fflush(stdout);
}

static void
do_unshare(void)
{
    unshare_once(CLONE_NEWPID | CLONE_NEWNS);
}

/* And there may be no other thread meanwhile. */
static void
do_unshare_user(void)
{
    unshare_once(CLONE_NEWPID | CLONE_NEWUSER);
}

/* In the loader, whose lock it has, until it is told so. */
static int
stay(struct dl_phdr_info *info, size_t n, void *arg)
{
    (void)info;
    (void)n;
    (void)arg;
    puts("stays");
    fflush(stdout);
    while (n_usr1 < 2 && !must_end)
        usleep(20000);
    return 1;
}

static void
do_loader(void)
{
    static _Atomic bool is_there;

    usleep(20000);
    if (n_usr1 != 1 || atomic_exchange(&is_there, true))
        return;
    dl_iterate_phdr(stay, NULL);
    is_there = false;
}

static void
do_dlopen(void)
{
    void *library = dlopen("libm.so.6", RTLD_NOW);
    void *other = dlopen("libresolv.so.2", RTLD_NOW);

    if (!library || !dlsym(library, "cos"))
        wrong("dlopen", 0);
    dlclose(library);
    if (other)
        dlclose(other);
}

static const struct mode busy[] = {
    {"registers", do_registers},
    {"malloc", allocate_all},
    {"spin", do_spin},
    {"pulse", do_pulse},
    {"allocate", do_allocate},
    {"untabled", do_untabled},
    {"ticks", do_ticks},
    {"descriptors", do_descriptors},
    {"fork", do_fork},
    {"unshare", do_unshare},
    {"unshare_user", do_unshare_user},
    {"loader", do_loader},
    {"dlopen", do_dlopen},
    {NULL, NULL},
};

static const struct mode *
find(const struct mode *modes, const char *name)
{
    for (; modes->name; modes++)
        if (!strcmp(modes->name, name))
            return modes;
    return NULL;
}

static void *
run(void *arg)
{
    const struct mode *mode = arg;

    while (!must_end) {
        mode->round();
        n_rounds++;
    }
    return NULL;
}

int
main(int argc, char **argv)
{
    struct sigaction term = {.sa_handler = on_term};
    struct sigaction usr1 = {.sa_handler = on_usr1};
    struct sigaction tick = {.sa_handler = on_tick};
    const struct mode *mode = NULL;
    int n = argc > 2 ? atoi(argv[2]) : 1;
    pthread_t thread;

    if (argc > 1)
        mode = find(busy, argv[1]);
    if (argc > 1 && !mode)
        mode = find(waits, argv[1]);
    if (!mode)
        return 2;
    sigaction(SIGTERM, &term, NULL);
    sigaction(SIGUSR1, &usr1, NULL);
    sigaction(SIGALRM, &tick, NULL);
    puts("ready");
    fflush(stdout);
    while (--n > 0)
        pthread_create(&thread, NULL, run, (void *)mode);
    run((void *)mode);
    printf("%s: %lu rounds, %.0f ms\n", mode->name, (unsigned long)n_rounds,
           now_ms());
    return 0;
}
