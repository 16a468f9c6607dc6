/* SPDX-License-Identifier: MIT */
/*
 * The code that is copied into the process (guest.h). It is one section, calls
 * nothing outside it but what the seat names, and has no data: so it runs where
 * it is put.
 *
 * A borrowed thread comes with all signals blocked, but for those of libc that
 * others wait for. All its registers are kept in a signal frame in the seat,
 * and the C code runs on the seat's stack. The thread goes on by sigreturn(2)
 * from that frame: registers and mask change at once, so a signal that is due
 * finds the thread where the program had it, as it does alone, whether a
 * handler walks the stack, leaves by siglongjmp() or cancels the thread.
 * Nothing is put on a stack of the program's.
 *
 * There are two exceptions. A thread that comes when a function returns has its
 * signals open: it blocks them on its own stack, where it has room, as what it
 * called was there. And sigreturn(2) makes the kernel forget how much time an
 * interrupted call has left. If there is such a call and no signal is due, the
 * thread opens its signals on its own stack instead, and jumps; it stays clear
 * of what lies next below the stack pointer and may be in use (the red zone). A
 * signal that comes in just these instructions has its handler run there, above
 * a stack that is as it was, and nothing of the seat is needed any more.
 */
#include "cli/attach/guest.h"

#include "arch/kernel.h"
#include "cli/attach/sigframe.h"

#if defined __x86_64__ && defined __LP64__

#include <dlfcn.h>
#include <errno.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

/* clang-format off */
#define FIELD(seat, of)                                                        \
    "__start_cpprof_guest + " TEXT(GUEST_CODE_BYTES) " + " #seat " * "         \
    TEXT(GUEST_SEAT_BYTES) " + " of "(%rip)"
/* Below the red zone of the thread's own stack. */
#define PUSH                                                                   \
    "pushfq; pushq %rax; pushq %rcx; pushq %rdx; pushq %rsi; pushq %rdi\n"     \
    "pushq %r10; pushq %r11\n"
#define POP                                                                    \
    "popq %r11; popq %r10; popq %rdi; popq %rsi; popq %rdx; popq %rcx\n"       \
    "popq %rax; popfq\n"
/* rt_sigprocmask(2), SIG_SETMASK */
#define SET_MASK                                                               \
    "movl $2, %edi\n"                                                          \
    "movl $8, %r10d\n"                                                         \
    "movl $14, %eax\n"                                                         \
    "syscall\n"
#define ENTRY(seat)                                                            \
    "cpprof__guest_return_" #seat ":\n"                                        \
    "movq %rsp, " FIELD(seat, TEXT(GUEST_RSP)) "\n"                            \
    "leaq -128(%rsp), %rsp\n"                                                  \
    PUSH                                                                       \
    "leaq " FIELD(seat, TEXT(GUEST_BLOCKED)) ", %rsi\n"                        \
    "leaq " FIELD(seat, TEXT(GUEST_BEFORE)) ", %rdx\n"                         \
    SET_MASK                                                                   \
    POP                                                                        \
    "leaq 128(%rsp), %rsp\n"                                                   \
    "cpprof__guest_entry_" #seat ":\n"                                         \
    "movq %rsp, " FIELD(seat, TEXT(GUEST_RSP)) "\n"                            \
    "leaq " FIELD(seat, TEXT(GUEST_REGS_END)) ", %rsp\n"                       \
    "pushfq\n"                                                                 \
    "cld\n"                                                                    \
    "pushq " FIELD(seat, TEXT(GUEST_RIP)) "\n"                                 \
    "pushq " FIELD(seat, TEXT(GUEST_RSP)) "\n"                                 \
    "pushq %rcx; pushq %rax; pushq %rdx; pushq %rbx; pushq %rbp\n"             \
    "pushq %rsi; pushq %rdi; pushq %r15; pushq %r14; pushq %r13\n"             \
    "pushq %r12; pushq %r11; pushq %r10; pushq %r9; pushq %r8\n"               \
    "leaq " FIELD(seat, "0") ", %rbx\n"                                        \
    "leaq " FIELD(seat, TEXT(GUEST_SEAT_BYTES)) ", %rsp\n"                     \
    "movl $-1, %eax\n"                                                         \
    "movl $-1, %edx\n"                                                         \
    "xsave64 " TEXT(GUEST_XSTATE) "(%rbx)\n"                                   \
    "movq %rbx, %rdi\n"                                                        \
    "call cpprof__guest_borrowed\n"                                            \
    "testb %al, %al\n"                                                         \
    "jz 1f\n"                                                                  \
    /* rt_sigreturn(2) */                                                      \
    "leaq " TEXT(GUEST_FRAME) "(%rbx), %rsp\n"                                 \
    "movl $1, " TEXT(GUEST_LEFT) "(%rbx)\n"                                    \
    "movl $15, %eax\n"                                                         \
    "syscall\n"                                                                \
    "1:\n"                                                                     \
    "movl $-1, %eax\n"                                                         \
    "movl $-1, %edx\n"                                                         \
    "xrstor64 " TEXT(GUEST_XSTATE) "(%rbx)\n"                                  \
    "leaq " TEXT(GUEST_REGS) "(%rbx), %rsp\n"                                  \
    "popq %r8; popq %r9; popq %r10; popq %r11; popq %r12\n"                    \
    "popq %r13; popq %r14; popq %r15; popq %rdi; popq %rsi\n"                  \
    "popq %rbp; popq %rbx; popq %rdx; popq %rax; popq %rcx\n"                  \
    "leaq 16(%rsp), %rsp\n"                                                    \
    "popfq\n"                                                                  \
    "movq " FIELD(seat, TEXT(GUEST_RSP)) ", %rsp\n"                            \
    "leaq -128(%rsp), %rsp\n"                                                  \
    "pushq " FIELD(seat, TEXT(GUEST_RIP)) "\n"                                 \
    PUSH                                                                       \
    "pushq " FIELD(seat, TEXT(GUEST_BEFORE)) "\n"                              \
    "movl $1, " FIELD(seat, TEXT(GUEST_LEFT)) "\n"                             \
    "movq %rsp, %rsi\n"                                                        \
    "xorl %edx, %edx\n"                                                        \
    SET_MASK                                                                   \
    "leaq 8(%rsp), %rsp\n"                                                     \
    POP                                                                        \
    "ret $128\n"

__asm__(".pushsection cpprof_guest, \"ax\", @progbits\n"
        ".hidden __start_cpprof_guest\n"
        ".balign 16\n"
        "cpprof__guest_magic: .ascii \"cpprof guest A\\n\\0\"\n"
        ".hidden cpprof__guest_no_second\n"
        ".globl cpprof__guest_no_second\n"
        "cpprof__guest_no_second:\n"
        ".asciz \"a second thread cannot be made\"\n"
        ".hidden cpprof__guest_forks_on\n"
        ".globl cpprof__guest_forks_on\n"
        "cpprof__guest_forks_on:\n"
        ".asciz \"a fork is under way in it all the time\"\n"
        ".balign 16\n"
        ENTRY(0) ENTRY(1) ENTRY(2) ENTRY(3)
        ".popsection\n");
/* clang-format on */

extern const char cpprof__guest_no_second[]
    __attribute__((visibility("hidden")));
extern const char cpprof__guest_forks_on[]
    __attribute__((visibility("hidden")));
extern const char cpprof__guest_entry_0[], cpprof__guest_entry_1[],
    cpprof__guest_entry_2[], cpprof__guest_entry_3[], cpprof__guest_return_0[],
    cpprof__guest_return_1[], cpprof__guest_return_2[],
    cpprof__guest_return_3[];

#define AT_REGS(i)                                                             \
    (GUEST_FRAME + offsetof(ucontext_t, uc_mcontext.gregs) + 8 * (i))

_Static_assert(offsetof(struct cpprof__guest, rip) == GUEST_RIP &&
                   offsetof(struct cpprof__guest, rsp) == GUEST_RSP &&
                   offsetof(struct cpprof__guest, left) == GUEST_LEFT &&
                   offsetof(struct cpprof__guest, blocked) == GUEST_BLOCKED &&
                   offsetof(struct cpprof__guest, before) == GUEST_BEFORE &&
                   sizeof(struct cpprof__guest) <= GUEST_FORKS &&
                   GUEST_FORKS + sizeof(struct cpprof__guest_forks) <=
                       GUEST_XSTATE &&
                   GUEST_XSTATE + 2 * CPPROF__XSTATE_MAX <= GUEST_FRAME &&
                   AT_REGS(REG_R8) == GUEST_REGS &&
                   AT_REGS(REG_EFL + 1) == GUEST_REGS_END && GUEST_SEATS == 4,
               "as the assembler has it");

/* Code for the process: nothing that a compiler adds for this one. */
#define GUEST_CODE                                                             \
    __attribute__((section("cpprof_guest"), used, noinline,                    \
                   no_stack_protector,                                         \
                   no_sanitize("address", "undefined", "thread"),              \
                   no_instrument_function))

/* Signals that a thread causes itself: whoever blocks them is ended by the
 * kernel then. A filter of the program may have it answer system calls
 * (collect/runtime/own_lock.h), or memory that malloc uses may be given on
 * demand. */
#define OF_THREAD                                                              \
    (1ull << (SIGSYS - 1) | 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) |     \
     1ull << (SIGFPE - 1) | 1ull << (SIGILL - 1) | 1ull << (SIGTRAP - 1))

GUEST_CODE static long
kernel(long number, const void *first, const void *second, long third,
       long fourth)
{
    register long r10 __asm__("r10") = fourth;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third),
                       "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
}

GUEST_CODE static void
set_mask(const uint64_t *mask)
{
    kernel(SYS_rt_sigprocmask, (void *)SIG_SETMASK, mask, 0, sizeof *mask);
}

/* The area was made so that one system call suffices while the thread is held.
 * From now on code is no data. */
GUEST_CODE static void
protect(void)
{
    const char *area = __start_cpprof_guest;

    kernel(SYS_mprotect, area, (void *)GUEST_CODE_BYTES, PROT_READ | PROT_EXEC,
           0);
    kernel(SYS_mprotect, area + GUEST_CODE_BYTES,
           (void *)(GUEST_BYTES - GUEST_CODE_BYTES), PROT_READ | PROT_WRITE, 0);
}

GUEST_CODE static void
say(struct cpprof__guest *g, const char *text)
{
    volatile char *to = g->message; /* not to become a call of strcpy() */
    size_t i = 0;

    for (; text && text[i] && i + 1 < sizeof g->message; i++)
        to[i] = text[i];
    to[i] = 0;
}

/* Not the priority in real time of the thread that made it, nor its processor,
 * but where the program's first thread may run. */
GUEST_CODE static void
leave_schedule(void)
{
    unsigned long processors[16] = {0}; /* 1024 */
    int priority = 0;
    long n;

    if (kernel(SYS_sched_getscheduler, NULL, NULL, 0, 0) != SCHED_OTHER)
        kernel(SYS_sched_setscheduler, NULL, (void *)SCHED_OTHER,
               (long)&priority, 0);
    n = kernel(SYS_sched_getaffinity,
               (void *)kernel(SYS_getpid, NULL, NULL, 0, 0),
               (void *)sizeof processors, (long)processors, 0);
    if (n > 0)
        kernel(SYS_sched_setaffinity, NULL, (void *)n, (long)processors, 0);
}

/* 0 or an errno. */
GUEST_CODE static int
make_thread(struct cpprof__guest *g, void *(*f)(void *))
{
    pthread_attr_t small;
    unsigned long thread;
    int failed;

    g->attr_init(&small);
    g->attr_setstacksize(&small, GUEST_STACK_BYTES);
    failed = g->pthread_create(&thread, &small, f, g);
    if (failed == EINVAL) /* variables of threads leave no room in it */
        failed = g->pthread_create(&thread, NULL, f, g);
    return failed;
}

GUEST_CODE static void
begin(struct cpprof__guest *g)
{
    leave_schedule();
    kernel(SYS_prctl, (void *)PR_SET_NAME, g->thread, 0, 0);
    g->pthread_detach(g->pthread_self());
}

/*
 * A child has the loader's list as it is when it is forked, and its lock, which
 * libc does not free there. So the library is loaded while no fork is under
 * way, and forks that begin meanwhile wait, for a fifth of a second in all: one
 * that is begun by who has the loader's first lock waits for itself. From then
 * on the library sees to it (collect/runtime/loader.h), and this does nothing.
 *
 * A fork is counted before it looks whether it has to wait, and the load is
 * told before it looks for forks, so one of them sees the other. Forks that
 * began before the handlers were there are not known of, and get time to end.
 */
#define FORK_TURN_NS   1000000
#define FORKS_WAIT_NS  200000000
#define FORKS_BEFORE   50 /* turns */
#define FORKS_PATIENCE 100

GUEST_CODE static struct cpprof__guest_forks *
forks(void)
{
    return cpprof__guest_forks((uintptr_t)__start_cpprof_guest);
}

GUEST_CODE static uint64_t
now_ns(void)
{
    struct timespec now = {.tv_nsec = 0};

    kernel(SYS_clock_gettime, (void *)CLOCK_MONOTONIC, &now, 0, 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

GUEST_CODE static void
wait_a_turn(void)
{
    const struct timespec turn = {.tv_nsec = FORK_TURN_NS};

    kernel(SYS_nanosleep, &turn, NULL, 0, 0);
}

GUEST_CODE static void
before_fork(void)
{
    struct cpprof__guest_forks *f = forks();

    for (;;) {
        __atomic_fetch_add(&f->n_under_way, 1, __ATOMIC_SEQ_CST);
        if (!__atomic_load_n(&f->is_loading, __ATOMIC_SEQ_CST) ||
            now_ns() >= f->until_ns)
            return;
        __atomic_fetch_sub(&f->n_under_way, 1, __ATOMIC_SEQ_CST);
        wait_a_turn();
    }
}

GUEST_CODE static void
after_fork(void)
{
    __atomic_fetch_sub(&forks()->n_under_way, 1, __ATOMIC_SEQ_CST);
}

GUEST_CODE static void
in_child(void)
{
    forks()->n_under_way = forks()->is_loading = 0;
}

/* False: forks are under way all the time. */
GUEST_CODE static bool
begin_loading(const struct cpprof__guest *g)
{
    struct cpprof__guest_forks *f = forks();
    int i;

    if (!g->register_atfork)
        return true;
    if (!f->is_registered) {
        f->is_registered = 1;
        g->register_atfork(before_fork, after_fork, in_child, NULL);
        for (i = 0; i < FORKS_BEFORE; i++)
            wait_a_turn();
    }
    f->until_ns = now_ns() + FORKS_WAIT_NS;
    __atomic_store_n(&f->is_loading, 1u, __ATOMIC_SEQ_CST);
    for (i = 0; i < FORKS_PATIENCE; i++) {
        if (!__atomic_load_n(&f->n_under_way, __ATOMIC_SEQ_CST))
            return true;
        wait_a_turn();
    }
    __atomic_store_n(&f->is_loading, 0u, __ATOMIC_SEQ_CST);
    return false;
}

GUEST_CODE static void
end_loading(void)
{
    __atomic_store_n(&forks()->is_loading, 0u, __ATOMIC_SEQ_CST);
}

/* A kernel that cannot (before 5.9) has it in the table of all. */
GUEST_CODE static void *
load(void *arg)
{
    struct cpprof__guest *g = arg;
    void *library;

    begin(g);
    kernel(SYS_close_range, NULL, (void *)(unsigned long)~0u,
           CLOSE_RANGE_UNSHARE, 0);
    library = g->dlopen(g->library, RTLD_NOW);
    if (library)
        g->known = g->dlsym(library, g->function);
    if (!g->known)
        say(g, g->dlerror());
    end_loading();
    __atomic_store_n(&g->loaded, 1u, __ATOMIC_RELEASE);
    kernel(SYS_futex, &g->loaded, (void *)FUTEX_WAKE, 1, 0);
    return NULL;
}

GUEST_CODE static void
have_loaded(struct cpprof__guest *g)
{
    if (!begin_loading(g)) {
        say(g, cpprof__guest_forks_on);
        return;
    }
    if (make_thread(g, load)) {
        end_loading();
        say(g, cpprof__guest_no_second);
        return;
    }
    while (!__atomic_load_n(&g->loaded, __ATOMIC_ACQUIRE))
        kernel(SYS_futex, &g->loaded, (void *)FUTEX_WAIT, 0, 0);
}

GUEST_CODE static void *
run(void *arg)
{
    struct cpprof__guest *g = arg;
    void *function;
    int result = -1;

    __atomic_store_n(&g->state, (uint32_t)CPPROF__GUEST_RUNS, __ATOMIC_RELEASE);
    begin(g);
    if (!g->known)
        have_loaded(g);
    function = g->known;
    if (function && g->has_argument)
        result = ((int (*)(const char *, char *, size_t))function)(
            g->argument, g->message, sizeof g->message);
    else if (function)
        result =
            ((int (*)(char *, size_t))function)(g->message, sizeof g->message);
    g->result = result;
    __atomic_store_n(&g->state, (uint32_t)CPPROF__GUEST_DONE, __ATOMIC_RELEASE);
    return NULL;
}

/* As the kernel has it. */
struct kernel_action {
    void (*handler)(int signo);
    unsigned long flags, restorer, mask;
};

/* Signals that come when those of before are opened. */
GUEST_CODE static uint64_t
due(uint64_t before)
{
    uint64_t pending = 0;

    kernel(SYS_rt_sigpending, &pending, (void *)sizeof pending, 0, 0);
    return pending & ~before;
}

/* Handlers of these run before the call begins again: it ends by EINTR then, as
 * it does alone. Which handlers end it is told in signal(7); of several the
 * first counts. Each ends one that has a time. */
GUEST_CODE static bool
ends_call(const struct cpprof__guest *g, uint64_t signals)
{
    struct kernel_action action;

    if (g->call == CPPROF__GUEST_NO_CALL ||
        g->call == CPPROF__GUEST_CALL_GOES_ON)
        return false;
    for (; signals; signals &= signals - 1)
        if (!kernel(SYS_rt_sigaction, (void *)(__builtin_ctzll(signals) + 1L),
                    NULL, (long)&action, sizeof signals) &&
            action.handler != SIG_DFL && action.handler != SIG_IGN)
            return g->call == CPPROF__GUEST_CALL_ENDS ||
                   !(action.flags & SA_RESTART);
    return false;
}

/* The registers of vectors, as they were kept, become those of the frame. AMX
 * data are in one only if they are in use. */
GUEST_CODE static void
complete_xstate(const struct cpprof__guest *g)
{
    char *at = (char *)g + GUEST_XSTATE;
    uint64_t used = *(uint64_t *)(at + CPPROF__XSTATE_USED);
    bool has_tiles = used & CPPROF__XSTATE_TILES;
    uint32_t n = has_tiles ? g->n_xstate_tiles : g->n_xstate;
    struct cpprof__xstate_words *words = (void *)(at + CPPROF__XSTATE_WORDS);

    words->magic = CPPROF__XSTATE_MAGIC;
    words->n_with_end = n + sizeof(uint32_t);
    words->features =
        has_tiles ? g->features : g->features & ~CPPROF__XSTATE_TILES;
    words->n = n;
    *(uint32_t *)(at + n) = CPPROF__XSTATE_END;
}

GUEST_CODE static void
complete_frame(const struct cpprof__guest *g, uint64_t mask)
{
    ucontext_t *frame = (void *)((char *)g + GUEST_FRAME);
    uint64_t cs, ss;

    __asm__("mov %%cs, %k0; mov %%ss, %k1" : "=r"(cs), "=r"(ss));
    complete_xstate(g);
    frame->uc_flags = CPPROF__FRAME_FLAGS;
    frame->uc_stack.ss_flags = CPPROF__FRAME_SAME_STACK;
    frame->uc_mcontext.gregs[REG_CSGSFS] = (greg_t)(cs | ss << 48);
    frame->uc_mcontext.fpregs = (void *)((char *)g + GUEST_XSTATE);
    *(uint64_t *)&frame->uc_sigmask = mask;
}

/* Called by the entries. The made thread has all signals blocked, as they are
 * for the program's threads, but for those above, if this one has not.
 * True: the thread goes on by the frame. */
GUEST_CODE bool
cpprof__guest_borrowed(struct cpprof__guest *g);

GUEST_CODE bool
cpprof__guest_borrowed(struct cpprof__guest *g)
{
    greg_t *regs = (greg_t *)((char *)g + GUEST_REGS);
    uint64_t all = g->blocked, before;
    int *at, kept, failed;
    bool ends;

    before = g->has_mask ? g->mask : g->before;
    g->before = before;
    all &= before | ~OF_THREAD;
    set_mask(&all);
    protect();
    at = g->errno_location();
    kept = *at;
    failed = make_thread(g, run);
    /* Else the result is the made thread's, which may have answered by now. */
    if (failed) {
        g->result = failed;
        __atomic_store_n(&g->state, (uint32_t)CPPROF__GUEST_NO_THREAD,
                         __ATOMIC_RELEASE);
    }
    *at = kept;
    complete_frame(g, before);
    ends = ends_call(g, due(before) & ~g->held_back);
    if (ends) {
        regs[REG_RAX] = -EINTR;
        regs[REG_RIP] += GUEST_CALL_BYTES;
    }
    return ends || !g->has_time;
}

size_t
cpprof__guest_entry(unsigned seat, bool by_return)
{
    const char *const entries[] = {cpprof__guest_entry_0, cpprof__guest_entry_1,
                                   cpprof__guest_entry_2,
                                   cpprof__guest_entry_3};
    const char *const returns[] = {
        cpprof__guest_return_0, cpprof__guest_return_1, cpprof__guest_return_2,
        cpprof__guest_return_3};

    return (size_t)((by_return ? returns : entries)[seat] -
                    __start_cpprof_guest);
}

bool
cpprof__guest_is_known(void)
{
    return true;
}

#else

bool
cpprof__guest_is_known(void)
{
    return false;
}

#endif
