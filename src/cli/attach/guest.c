/* SPDX-License-Identifier: MIT */
/*
 * The code that is copied into the process (guest.h). It is one section, calls
 * nothing outside it but what the seat names, and has no data: so it runs where
 * it is put.
 *
 * The entry runs on a stack of the seat, with all signals blocked, and keeps
 * all registers there, with those of vectors by XSAVE. It blocks them, and
 * opens them again, on the thread's own stack, where a handler of the program
 * that is due finds itself as if it had interrupted the program: all registers
 * are in its frame or on the stack that it interrupted, as a collector of
 * garbage has it, and there is as much room as the program made. It stays clear
 * of what lies next below the stack pointer and may be in use (the red zone);
 * that there is room below is known, since the thread got a frame of a signal
 * there when it was taken (hold.c). From the moment that signals are open
 * nothing of the seat is needed: a handler may leave by siglongjmp(). The
 * kernel has no part in the return: a system call that was interrupted with a
 * time left is restarted afterwards as if nothing had been, which sigreturn(2)
 * would make impossible.
 */
#include "cli/attach/guest.h"

#if defined __x86_64__ && defined __LP64__

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

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
    "cpprof__guest_entry_" #seat ":\n"                                         \
    "movq %rsp, " FIELD(seat, TEXT(GUEST_RSP)) "\n"                            \
    "leaq -128(%rsp), %rsp\n"                                                  \
    PUSH                                                                       \
    "leaq " FIELD(seat, TEXT(GUEST_BLOCKED)) ", %rsi\n"                        \
    "leaq " FIELD(seat, TEXT(GUEST_BEFORE)) ", %rdx\n"                         \
    SET_MASK                                                                   \
    POP                                                                        \
    "leaq " FIELD(seat, TEXT(GUEST_SEAT_BYTES)) ", %rsp\n"                     \
    "pushfq\n"                                                                 \
    "cld\n"                                                                    \
    "pushq %rax; pushq %rcx; pushq %rdx; pushq %rbx; pushq %rbp\n"             \
    "pushq %rsi; pushq %rdi; pushq %r8; pushq %r9; pushq %r10\n"               \
    "pushq %r11; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"             \
    "leaq " FIELD(seat, "0") ", %rbx\n"                                        \
    "movl $-1, %eax\n"                                                         \
    "movl $-1, %edx\n"                                                         \
    "xsave64 " TEXT(GUEST_XSTATE) "(%rbx)\n"                                   \
    "movq %rbx, %rdi\n"                                                        \
    "call cpprof__guest_borrowed\n"                                            \
    "movl $-1, %eax\n"                                                         \
    "movl $-1, %edx\n"                                                         \
    "xrstor64 " TEXT(GUEST_XSTATE) "(%rbx)\n"                                  \
    "popq %r15; popq %r14; popq %r13; popq %r12; popq %r11\n"                  \
    "popq %r10; popq %r9; popq %r8; popq %rdi; popq %rsi\n"                    \
    "popq %rbp; popq %rbx; popq %rdx; popq %rcx; popq %rax\n"                  \
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
        "cpprof__guest_magic: .ascii \"cpprof guest 6\\n\\0\"\n"
        ENTRY(0) ENTRY(1) ENTRY(2) ENTRY(3)
        ".popsection\n");
/* clang-format on */

extern const char cpprof__guest_entry_0[], cpprof__guest_entry_1[],
    cpprof__guest_entry_2[], cpprof__guest_entry_3[];

_Static_assert(offsetof(struct cpprof__guest, rip) == GUEST_RIP &&
                   offsetof(struct cpprof__guest, rsp) == GUEST_RSP &&
                   offsetof(struct cpprof__guest, left) == GUEST_LEFT &&
                   offsetof(struct cpprof__guest, blocked) == GUEST_BLOCKED &&
                   offsetof(struct cpprof__guest, before) == GUEST_BEFORE &&
                   sizeof(struct cpprof__guest) <= GUEST_XSTATE &&
                   GUEST_SEATS == 4,
               "as the assembler has it");

/* Code for the process: nothing that a compiler adds for this one. */
#define GUEST_CODE                                                             \
    __attribute__((section("cpprof_guest"), used, noinline,                    \
                   no_stack_protector,                                         \
                   no_sanitize("address", "undefined", "thread"),              \
                   no_instrument_function))

/* A filter of the program may have it answer system calls: whoever blocks it is
 * ended by the kernel then (collect/runtime/own_lock.h). */
#define OF_FILTERS (1ull << (SIGSYS - 1))

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

GUEST_CODE static void *
run(void *arg)
{
    struct cpprof__guest *g = arg;
    void *library, *function = g->known;
    int result = -1;

    __atomic_store_n(&g->state, (uint32_t)CPPROF__GUEST_RUNS, __ATOMIC_RELEASE);
    kernel(SYS_prctl, (void *)PR_SET_NAME, g->thread, 0, 0);
    g->pthread_detach(g->pthread_self());
    library = function ? NULL : g->dlopen(g->library, RTLD_NOW);
    if (library)
        function = g->dlsym(library, g->function);
    if (!function)
        say(g, g->dlerror());
    else if (g->has_argument)
        result = ((int (*)(const char *, char *, size_t))function)(
            g->argument, g->message, sizeof g->message);
    else
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

/* Signals have come meanwhile, and their handlers run before the call begins
 * again: it ends by EINTR then, as it does alone. Which handlers end it is told
 * in signal(7); of several the first counts. A signal by which musl cancels a
 * thread ends it, too: its handler does not find the thread in the call. */
GUEST_CODE static bool
ends_call(const struct cpprof__guest *g, uint64_t mask)
{
    struct kernel_action action;
    uint64_t pending = 0;

    if (g->call == CPPROF__GUEST_NO_CALL ||
        kernel(SYS_rt_sigpending, &pending, (void *)sizeof pending, 0, 0))
        return false;
    pending &= ~mask;
    if (pending & g->cancels)
        return true;
    if (g->call == CPPROF__GUEST_CALL_GOES_ON)
        return false;
    for (; pending; pending &= pending - 1)
        if (!kernel(SYS_rt_sigaction, (void *)(__builtin_ctzll(pending) + 1L),
                    NULL, (long)&action, sizeof mask) &&
            action.handler != SIG_DFL && action.handler != SIG_IGN)
            return g->call == CPPROF__GUEST_CALL_ENDS ||
                   !(action.flags & SA_RESTART);
    return false;
}

/* Called by the entries. The made thread has all signals blocked, as they are
 * for the program's threads, but for that of filters, if this one has not. */
GUEST_CODE void
cpprof__guest_borrowed(struct cpprof__guest *g);

GUEST_CODE void
cpprof__guest_borrowed(struct cpprof__guest *g)
{
    uint64_t all = g->blocked, before;
    pthread_attr_t small;
    unsigned long thread;
    int *at, kept;

    before = g->has_mask ? g->mask : g->before;
    all &= before | ~OF_FILTERS;
    set_mask(&all);
    protect();
    at = g->errno_location();
    kept = *at;
    g->attr_init(&small);
    g->attr_setstacksize(&small, GUEST_STACK_BYTES);
    g->result = g->pthread_create(&thread, &small, run, g);
    if (g->result == EINVAL) /* variables of threads leave no room in it */
        g->result = g->pthread_create(&thread, NULL, run, g);
    if (g->result)
        __atomic_store_n(&g->state, (uint32_t)CPPROF__GUEST_NO_THREAD,
                         __ATOMIC_RELEASE);
    *at = kept;
    if (ends_call(g, before)) {
        *(volatile int64_t *)((char *)g + GUEST_SEAT_BYTES - GUEST_RAX) =
            -EINTR;
        g->rip += GUEST_CALL_BYTES;
    }
    g->before = before;
}

size_t
cpprof__guest_entry(unsigned seat)
{
    const char *const entries[] = {cpprof__guest_entry_0, cpprof__guest_entry_1,
                                   cpprof__guest_entry_2,
                                   cpprof__guest_entry_3};

    return (size_t)(entries[seat] - __start_cpprof_guest);
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
