/* SPDX-License-Identifier: MIT */
/*
 * One thread of the process, stopped by ptrace(2) for about a tenth of a
 * millisecond. The others run on.
 *
 * This program may be killed at any moment, and the thread then goes on from
 * what it was given last. So nothing that it is given depends on us:
 *
 *   - It is stopped by PTRACE_INTERRUPT and runs from one system call to the
 *     next (PTRACE_SYSCALL): the kernel forgets both with the tracer. Single
 *     steps and breakpoints would remain and kill the process.
 *   - Before its registers are changed, a signal frame with what they were is
 *     put below its stack, and the stack pointer at it. Calls are made by code
 *     of libc that reads `syscall; ret`; the return leads to libc's sigreturn,
 *     and that to where the thread was. We take the thread away before that
 *     happens; if we are gone, it happens.
 *   - Signals are blocked after that frame has the mask of before, and let
 *     through again while it still has.
 *
 * A system call that was interrupted begins again, as the kernel does it: rip
 * goes back by the instruction, and rax is its number, or that of
 * restart_syscall(2) for those that know how much time is left. A signal frame
 * makes them forget that: if it comes to its use, their time begins anew. Some
 * calls give EINTR because of the stop alone. These begin again, too, unless
 * there is a signal.
 */
#include "cli/attach/attach.h"

#include "arch/clock.h"
#include "arch/kernel.h"
#include "cli/attach/sigframe.h"

#include <cpprof/object.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------------- memory ---- */

/* The kernel writes through /proc/PID/mem where the process itself may not. */
static bool
may_write(pid_t pid, uint64_t from, size_t n)
{
    struct cpprof_map map = {.size = sizeof map};
    struct cpprof__buffer maps = {0};
    uint64_t known = from;
    const char *at;

    cpprof__read_proc(&maps, "/proc/%d/maps", (int)pid);
    at = (const char *)maps.data;
    while (maps.n && known < from + n &&
           cpprof_maps_next(&at, (const char *)maps.data + maps.n - 1, &map))
        if (map.start <= known && known < map.limit && map.perms[1] == 'w')
            known = map.limit;
    cpprof__buffer_free(&maps);
    return known >= from + n;
}

/* Some containers (Docker's before 23) allow ptrace() and refuse
 * process_vm_readv(). */
static bool
is_refused(ssize_t result)
{
    return result < 0 && (errno == EPERM || errno == ENOSYS);
}

static int
open_memory(pid_t pid, int flags)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    return open(path, flags | O_CLOEXEC);
}

bool
cpprof__target_read(pid_t pid, uint64_t from, void *to, size_t n)
{
    struct iovec local = {to, n}, remote = {(void *)(uintptr_t)from, n};
    ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    int fd;

    if (is_refused(got) && (fd = open_memory(pid, O_RDONLY)) >= 0) {
        got = pread(fd, to, n, (off_t)from);
        close(fd);
    }
    return got == (ssize_t)n;
}

bool
cpprof__target_write(pid_t pid, uint64_t to, const void *from, size_t n)
{
    struct iovec local = {(void *)from, n}, remote = {(void *)(uintptr_t)to, n};
    ssize_t put = process_vm_writev(pid, &local, 1, &remote, 1, 0);
    int fd;

    if (is_refused(put) && may_write(pid, to, n) &&
        (fd = open_memory(pid, O_WRONLY)) >= 0) {
        put = pwrite(fd, from, n, (off_t)to);
        close(fd);
    }
    return put == (ssize_t)n;
}

#if defined __x86_64__ && defined __LP64__

/* A thread that sleeps or runs stops at once, unless the machine is busy. */
#define STOP_NS CPPROF__NS_PER_S
/* mmap() on a busy machine. */
#define CALL_NS (5 * CPPROF__NS_PER_S)

/* What the kernel gives for a call that begins again (linux/errno.h). */
#define ERESTARTSYS           512
#define ERESTARTNOINTR        513
#define ERESTARTNOHAND        514
#define ERESTART_RESTARTBLOCK 516

#define SYSCALL_BYTES 2

#define PAGE_BYTES 4096u

/* ----------------------------------------------------------- stopping ---- */

#define NO_STOP (-1) /* and not a status of one */

/* Wait until the thread has stopped; its status, or NO_STOP. SIGCHLD is
 * blocked, and tells of it. */
static int
wait_for_stop(pid_t tid, uint64_t patience_ns)
{
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + patience_ns, now;
    struct timespec left;
    sigset_t set;
    int status;
    pid_t got;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (;;) {
        got = waitpid(tid, &status, __WALL | WNOHANG);
        if (got == tid)
            return WIFSTOPPED(status) ? status : NO_STOP;
        now = cpprof__now_ns(CLOCK_MONOTONIC);
        if ((got < 0 && errno != EINTR) || now > until)
            return NO_STOP;
        left = cpprof__timespec_of(until - now);
        sigtimedwait(&set, NULL, &left);
    }
}

/* The stop that was asked for, and not one of a signal, which the thread is to
 * have. */
static bool
is_stop(int status)
{
    return status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP;
}

static bool
is_signal(int status)
{
    return status >> 16 == 0 && WSTOPSIG(status) != (SIGTRAP | 0x80);
}

static uint64_t
signals_of(const struct cpprof__buffer *status, const char *name)
{
    char value[32];

    cpprof__status_field(status, name, value, sizeof value);
    return strtoull(value, NULL, 16);
}

uint64_t
cpprof__status_pending(const struct cpprof__buffer *status)
{
    return signals_of(status, "SigPnd") | signals_of(status, "ShdPnd");
}

uint64_t
cpprof__status_blocked(const struct cpprof__buffer *status)
{
    return signals_of(status, "SigBlk");
}

/* The mask of a call like ppoll() is in force until the thread goes on; ptrace
 * tells of the one that comes back then. No call that the kernel restarts by
 * itself after a signal has one. */
static void
read_signals(struct cpprof__held *held)
{
    struct cpprof__buffer status = {0};
    uint64_t blocked;

    cpprof__read_proc(&status, "/proc/%d/task/%d/status", (int)held->pid,
                      (int)held->tid);
    blocked = cpprof__status_blocked(&status);
    held->held_back = blocked & ~held->mask;
    held->has_signal = cpprof__status_pending(&status) & ~blocked;
    cpprof__buffer_free(&status);
}

/* Calls that give EINTR for a stop, and may be made once more. */
static bool
may_repeat(long number)
{
    static const short calls[] = {SYS_epoll_wait,     SYS_epoll_pwait,
                                  SYS_epoll_pwait2,   SYS_rt_sigtimedwait,
                                  SYS_semop,          SYS_semtimedop,
                                  SYS_io_getevents,   SYS_io_pgetevents,
                                  SYS_io_uring_enter, SYS_accept,
                                  SYS_accept4,        SYS_recvfrom,
                                  SYS_recvmsg,        SYS_recvmmsg,
                                  SYS_read,           SYS_readv,
                                  SYS_sendto,         SYS_sendmsg,
                                  SYS_sendmmsg,       SYS_write,
                                  SYS_writev,         SYS_futex,
                                  SYS_msgrcv,         SYS_msgsnd,
                                  SYS_poll,           SYS_ppoll,
                                  SYS_select,         SYS_pselect6,
                                  SYS_wait4,          SYS_waitid,
                                  SYS_connect};
    size_t i;

    for (i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i] == number)
            return true;
    return false;
}

/* The number of a call that goes on by restart_syscall(2), and has been stopped
 * before: mostly the instruction in front of it loads that. In others (those of
 * musl, syscall(), libc from 2.41 on) it is not known, and the sleep ends with
 * EINTR if this program is killed just then. */
static long
number_of_restarted(const struct cpprof__held *held)
{
    static const uint8_t load = 0xb8, call[SYSCALL_BYTES] = {0x0f, 0x05};
    struct __attribute__((packed)) {
        uint8_t load;
        int32_t number;
        uint8_t call[SYSCALL_BYTES];
    } code;

    if (!cpprof__target_read(held->pid, held->regs.rip - sizeof code, &code,
                             sizeof code) ||
        code.load != load || memcmp(code.call, call, sizeof call) != 0)
        return SYS_restart_syscall;
    return code.number == SYS_nanosleep || code.number == SYS_futex ||
                   code.number == SYS_clock_nanosleep || code.number == SYS_poll
               ? code.number
               : SYS_restart_syscall;
}

/* The registers as the thread is to go on: see the head of this file. */
static void
restart_call(struct cpprof__held *held)
{
    struct user_regs_struct *r = &held->regs;
    long number = (long)r->orig_rax, result = (long)r->rax;

    held->is_running = number < 0;
    held->anew = r->rax;
    r->orig_rax = (unsigned long long)-1;
    if (number < 0)
        return;
    if (result == -EINTR || result == -ERESTARTNOHAND)
        read_signals(held);
    held->has_time = result == -ERESTART_RESTARTBLOCK;
    if (held->has_time)
        r->rax = SYS_restart_syscall;
    else if (result == -ERESTARTSYS || result == -ERESTARTNOINTR ||
             result == -ERESTARTNOHAND ||
             (result == -EINTR && may_repeat(number) && !held->has_signal))
        r->rax = (unsigned long long)number;
    else
        return;
    held->kernel_restarts = result != -EINTR;
    held->call = result == -ERESTARTNOINTR ? CPPROF__GUEST_CALL_GOES_ON
                 : result == -ERESTARTSYS  ? CPPROF__GUEST_CALL_RESTARTS
                                           : CPPROF__GUEST_CALL_ENDS;
    if (number == SYS_restart_syscall)
        number = number_of_restarted(held);
    held->anew = (uint64_t)number;
    r->rip -= SYSCALL_BYTES;
}

/* A sequence that the kernel restarts from its beginning (rseq(2)) cannot be
 * gone on with. */
static bool
is_in_sequence(const struct cpprof__held *held)
{
    struct {
        uint32_t version, flags;
        uint64_t start, length, abort;
    } sequence;
    struct __ptrace_rseq_configuration c;
    uint64_t at = 0;

    return ptrace(PTRACE_GET_RSEQ_CONFIGURATION, held->tid, sizeof c, &c) > 0 &&
           c.rseq_abi_pointer &&
           cpprof__target_read(held->pid, c.rseq_abi_pointer + 8, &at,
                               sizeof at) &&
           at &&
           cpprof__target_read(held->pid, at, &sequence, sizeof sequence) &&
           held->regs.rip - sequence.start < sequence.length;
}

static bool
read_state(struct cpprof__held *held)
{
    if (ptrace(PTRACE_GETREGS, held->tid, 0, &held->regs) ||
        ptrace(PTRACE_GETSIGMASK, held->tid, sizeof held->mask, &held->mask))
        return false;
    if (is_in_sequence(held) || !held->regs.fs_base)
        return false;
    restart_call(held);
    return true;
}

bool
cpprof__hold_take(struct cpprof__held *held, pid_t pid, pid_t tid)
{
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + STOP_NS;
    int status = NO_STOP;

    *held = (struct cpprof__held){.pid = pid, .tid = tid};
    if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD))
        return false;
    /* A stop for a signal counts as the one that was asked for (ptrace_stop()
     * of Linux), so another is asked for before the signal is given. */
    do {
        ptrace(PTRACE_INTERRUPT, tid, 0, 0);
        if (is_signal(status))
            ptrace(PTRACE_CONT, tid, 0, WSTOPSIG(status));
        status = wait_for_stop(tid, STOP_NS);
    } while (is_signal(status) && cpprof__now_ns(CLOCK_MONOTONIC) < until);
    held->since_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    if (is_stop(status) && read_state(held))
        return true;
    /* Stopped by somebody else, or ended: nothing was changed. One that did not
     * stop in time cannot be let go, and stops later. */
    if (is_signal(status))
        ptrace(PTRACE_DETACH, tid, 0, WSTOPSIG(status));
    else
        held->is_late =
            ptrace(PTRACE_DETACH, tid, 0, 0) && !tgkill(pid, tid, 0);
    return false;
}

bool
cpprof__hold_release(struct cpprof__held *held)
{
    /* The kernel knows best whether a signal that has come ends the call. */
    bool is_as_it_was = !held->frame && held->kernel_restarts;
    /* The signals first: until the registers are back, the frame below the
     * stack, which has both, is still in force. */
    bool done = is_as_it_was ||
                ((!held->frame || !ptrace(PTRACE_SETSIGMASK, held->tid,
                                          sizeof held->mask, &held->mask)) &&
                 !ptrace(PTRACE_SETREGS, held->tid, 0, &held->regs));

    return !ptrace(PTRACE_DETACH, held->tid, 0, 0) && done;
}

/* --------------------------------------------------- the signal frame ---- */

/* What is below the stack pointer may be in use. */
#define RED_ZONE 128

struct frame {
    uint64_t return_to;
    ucontext_t context; /* up to the mask */
};
#define FRAME_BYTES (offsetof(struct frame, context.uc_sigmask) + 8)

/* Bytes of the state with these features. */
static uint32_t
xstate_bytes(uint64_t features)
{
    uint32_t n = 576, a, b, c, d;
    unsigned i;

    for (i = 2; i < 63; i++) {
        if (!(features >> i & 1))
            continue;
        __asm__ volatile("cpuid"
                         : "=a"(a), "=b"(b), "=c"(c), "=d"(d)
                         : "a"(13), "c"(i));
        if (a + b > n)
            n = a + b;
    }
    return n;
}

/* All that the kernel keeps of a thread (XCR0). */
static uint64_t
features_kept(void)
{
    uint32_t lo, hi;

    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return lo | (uint64_t)hi << 32;
}

void
cpprof__hold_describe_xstate(struct cpprof__guest *guest)
{
    guest->features = features_kept();
    guest->n_xstate = xstate_bytes(guest->features & ~CPPROF__XSTATE_TILES);
    guest->n_xstate_tiles = xstate_bytes(guest->features);
}

/* Read the state and make it one of a frame. Its size, with the last word; 0:
 * cannot be read. */
static size_t
read_xstate(pid_t tid, uint8_t *data)
{
    struct iovec io = {data, CPPROF__XSTATE_MAX};
    const uint32_t end = CPPROF__XSTATE_END;
    uint64_t features, used;
    struct cpprof__xstate_words words = {.magic = CPPROF__XSTATE_MAGIC};

    if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &io) || io.iov_len < 576)
        return 0;
    memcpy(&features, data + CPPROF__XSTATE_WORDS, sizeof features);
    memcpy(&used, data + CPPROF__XSTATE_USED, sizeof used);
    if (!(used & CPPROF__XSTATE_TILES))
        features &= ~CPPROF__XSTATE_TILES;
    words.features = features;
    words.n = xstate_bytes(features);
    words.n_with_end = words.n + (uint32_t)sizeof end;
    if (words.n > io.iov_len || words.n_with_end > CPPROF__XSTATE_MAX)
        return 0;
    memset(data + CPPROF__XSTATE_WORDS, 0,
           CPPROF__XSTATE_USED - CPPROF__XSTATE_WORDS);
    memcpy(data + CPPROF__XSTATE_WORDS, &words, sizeof words);
    memcpy(data + words.n, &end, sizeof end);
    return words.n_with_end;
}

static void
fill_frame(struct frame *frame, const struct cpprof__held *held,
           uint64_t xstate)
{
    const struct user_regs_struct *r = &held->regs;
    greg_t *g = frame->context.uc_mcontext.gregs;

    frame->context.uc_flags = CPPROF__FRAME_FLAGS;
    frame->context.uc_stack.ss_flags = CPPROF__FRAME_SAME_STACK;
    g[REG_R8] = (greg_t)r->r8;
    g[REG_R9] = (greg_t)r->r9;
    g[REG_R10] = (greg_t)r->r10;
    g[REG_R11] = (greg_t)r->r11;
    g[REG_R12] = (greg_t)r->r12;
    g[REG_R13] = (greg_t)r->r13;
    g[REG_R14] = (greg_t)r->r14;
    g[REG_R15] = (greg_t)r->r15;
    g[REG_RDI] = (greg_t)r->rdi;
    g[REG_RSI] = (greg_t)r->rsi;
    g[REG_RBP] = (greg_t)r->rbp;
    g[REG_RBX] = (greg_t)r->rbx;
    g[REG_RDX] = (greg_t)r->rdx;
    g[REG_RAX] = (greg_t)held->anew;
    g[REG_RCX] = (greg_t)r->rcx;
    g[REG_RSP] = (greg_t)r->rsp;
    g[REG_RIP] = (greg_t)r->rip;
    g[REG_EFL] = (greg_t)r->eflags;
    g[REG_CSGSFS] = (greg_t)(r->cs | (uint64_t)r->gs << 16 |
                             (uint64_t)r->fs << 32 | (uint64_t)r->ss << 48);
    frame->context.uc_mcontext.fpregs = (void *)(uintptr_t)xstate;
    memcpy(&frame->context.uc_sigmask, &held->mask, sizeof held->mask);
}

/* How far the data of a thread reach from its own address on, at the least
 * (struct pthread of glibc). */
#define OWN_WORDS 256u

/* Where struct pthread of musl has the number of the thread, and what was
 * mapped for it. */
#define MUSL_TID    48
#define MUSL_MAPPED 72

/* The number of a thread in its own namespace. */
static int32_t
inner_tid(const struct cpprof__held *held)
{
    struct cpprof__buffer status = {0};
    const char *last;
    char tids[128];

    cpprof__read_proc(&status, "/proc/%d/task/%d/status", (int)held->pid,
                      (int)held->tid);
    cpprof__status_field(&status, "NSpid", tids, sizeof tids);
    cpprof__buffer_free(&status);
    last = strrchr(tids, '\t');
    return (int32_t)strtol(last ? last : tids, NULL, 10);
}

bool
cpprof__hold_has_descriptor(const struct cpprof__held *held,
                            const struct cpprof__target *target)
{
    uint64_t own = held->regs.fs_base, self = 0;
    void *list = NULL;
    int32_t tid = 0;
    size_t n;

    if (!cpprof__target_read(held->pid, own, &self, sizeof self) || self != own)
        return false;
    if (target->images.is_musl)
        return cpprof__target_read(held->pid, own + MUSL_TID, &tid,
                                   sizeof tid) &&
               tid == inner_tid(held);
    /* glibc tells the kernel of a list in the descriptor of each thread. */
    return !syscall(SYS_get_robust_list, held->tid, &list, &n) && list &&
           (uint64_t)(uintptr_t)list - own < OWN_WORDS * sizeof own;
}

/* As of Linux 6.4 (linux/ptrace.h, linux/prctl.h). */
#define GET_DISPATCH 0x4210
struct dispatch {
    uint64_t mode, selector, offset, length;
};

bool
cpprof__hold_is_dispatched(const struct cpprof__held *held)
{
    struct dispatch dispatch = {0};

    return !ptrace(GET_DISPATCH, held->tid, sizeof dispatch, &dispatch) &&
           dispatch.mode;
}

/* What a thread's stack may grow into; empty: not known. */
struct room {
    uint64_t lo, hi;
};

/*
 * A thread of glibc knows its block, the size of that, and of the guard where
 * it begins, three words that follow each other (struct pthread). The words are
 * believed if that guard is there: a mapping without rights (those of a Java
 * machine lie within), or, from glibc 2.42 on, a part of the stack's mapping
 * that cannot be read. A stack of the program's own (pthread_attr_setstack) has
 * none that the thread knows of.
 */
static struct room
room_of_glibc(const struct cpprof__held *held, const struct cpprof_map *map,
              bool is_guarded)
{
    uint64_t words[OWN_WORDS], own = held->regs.fs_base;
    char byte;
    size_t i;

    if (!cpprof__target_read(held->pid, own, words, sizeof words))
        return (struct room){0, 0};
    for (i = 0; i + 2 < OWN_WORDS; i++) {
        uint64_t block = words[i], size = words[i + 1], guard = words[i + 2];

        if (!block || (block | size | guard) % PAGE_BYTES || guard >= size ||
            own - block >= size)
            continue;
        if (is_guarded && map->start >= block + guard)
            return (struct room){map->start, own};
        if (guard && map->start <= block &&
            cpprof__target_read(held->pid, block + guard, &byte, 1) &&
            !cpprof__target_read(held->pid, block + guard - 1, &byte, 1))
            return (struct room){block + guard, own};
    }
    return (struct room){0, 0};
}

/* A thread of musl knows what was mapped for it, how much, and how much of that
 * is the guard at its begin; of a stack of the program's own nothing was. */
static struct room
room_of_musl(const struct cpprof__held *held, const struct cpprof_map *map,
             bool is_guarded)
{
    uint64_t own = held->regs.fs_base;
    struct {
        uint64_t base, size, stack, stack_size, guard;
    } mapped;

    if (!is_guarded ||
        !cpprof__target_read(held->pid, own + MUSL_MAPPED, &mapped,
                             sizeof mapped) ||
        own - mapped.base >= mapped.size ||
        mapped.base + mapped.guard != map->start)
        return (struct room){0, 0};
    return (struct room){map->start, own};
}

/* libc names stacks so where glibc.mem.decorate_maps is set. */
static bool
has_no_file(const struct cpprof_map *map)
{
    static const char anonymous[] = {'[', 'a', 'n', 'o', 'n', ':'};

    return !map->n_path || (map->n_path > sizeof anonymous &&
                            !memcmp(map->path, anonymous, sizeof anonymous));
}

/* The stack that the thread was made with: its end is known there. What lies
 * below another one (of a coroutine, of signals) is not. */
static struct room
room_in(const struct cpprof__held *held, const struct cpprof__target *target,
        const struct cpprof_map *map, bool is_guarded)
{
    uint64_t own = held->regs.fs_base;

    if (map->perms[1] != 'w')
        return (struct room){0, 0};
    if (map->n_path == 7 && !memcmp(map->path, "[stack]", 7))
        return (struct room){map->start, map->limit};
    if (!has_no_file(map) || own < map->start || own >= map->limit)
        return (struct room){0, 0};
    if (target->images.is_musl)
        return room_of_musl(held, map, is_guarded);
    return room_of_glibc(held, map, is_guarded);
}

/* Is all of this on that stack? */
static bool
is_own_stack(const struct cpprof__held *held,
             const struct cpprof__target *target, uint64_t lo, uint64_t hi)
{
    struct cpprof__buffer maps = {0};
    struct cpprof_map map = {.size = sizeof map};
    uint64_t guarded = 0;
    const char *at;
    bool is = false;

    cpprof__read_proc(&maps, "/proc/%d/maps", (int)held->pid);
    at = (char *)maps.data;
    while (at && !is &&
           cpprof_maps_next(&at, (char *)maps.data + maps.n - 1, &map)) {
        if (map.start <= lo && hi <= map.limit) {
            struct room room =
                room_in(held, target, &map, map.start == guarded);

            is = room.lo <= lo && hi <= room.hi;
        }
        guarded = memcmp(map.perms, "---", 3) == 0 ? map.limit : 0;
    }
    cpprof__buffer_free(&maps);
    return is;
}

const char *
cpprof__hold_prepare(struct cpprof__held *held,
                     const struct cpprof__target *target)
{
    static uint8_t xstate[CPPROF__XSTATE_MAX];
    struct frame frame = {.return_to = target->images.sigreturn};
    size_t n = read_xstate(held->tid, xstate);
    uint64_t at_xstate = (held->regs.rsp - RED_ZONE - n) & -64ull;
    uint64_t at = (at_xstate - FRAME_BYTES) & -16ull;

    if (!n)
        return "the registers of a thread cannot be read";
    if (!is_own_stack(held, target, at, held->regs.rsp))
        return "a thread is on a stack that it was not made with, or has no "
               "room on it";
    fill_frame(&frame, held, at_xstate);
    if (!cpprof__target_write(held->pid, at_xstate, xstate, n) ||
        !cpprof__target_write(held->pid, at, &frame, FRAME_BYTES))
        return "memory of the process cannot be written";
    held->frame = at;
    return NULL;
}

/* --------------------------------------------------------- system calls --- */

/* Let it run to where a system call begins or ends. */
static bool
run_to_call(struct cpprof__held *held)
{
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + CALL_NS;
    int status, signal = 0;

    do {
        if (ptrace(PTRACE_SYSCALL, held->tid, 0, signal))
            return false;
        status = wait_for_stop(held->tid, CALL_NS);
        if (status < 0)
            return false;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80))
            return true;
        signal = is_signal(status) ? WSTOPSIG(status) : 0;
    } while (cpprof__now_ns(CLOCK_MONOTONIC) < until);
    return false;
}

/* Is the thread where that system call begins? */
static bool
begins_call(const struct cpprof__held *held, long number, uint64_t rip)
{
    struct user_regs_struct regs;

    return !ptrace(PTRACE_GETREGS, held->tid, 0, &regs) &&
           (long)regs.orig_rax == number && regs.rip == rip;
}

/* All signals are blocked meanwhile, those of libc, too: a handler would make
 * system calls of its own. If this program is killed, the frame has the mask
 * of before. */
long
cpprof__hold_syscall(struct cpprof__held *held,
                     const struct cpprof__target *target, long number,
                     const uint64_t args[6])
{
    struct user_regs_struct regs = held->regs;
    uint64_t all = ~0ull;

    regs.rip = target->images.syscall_ret;
    regs.rsp = held->frame;
    regs.rax = (unsigned long long)number;
    regs.rdi = args[0];
    regs.rsi = args[1];
    regs.rdx = args[2];
    regs.r10 = args[3];
    regs.r8 = args[4];
    regs.r9 = args[5];
    if (ptrace(PTRACE_SETREGS, held->tid, 0, &regs) ||
        ptrace(PTRACE_SETSIGMASK, held->tid, sizeof all, &all) ||
        !run_to_call(held) ||
        !begins_call(held, number,
                     target->images.syscall_ret + GUEST_CALL_BYTES) ||
        !run_to_call(held) || ptrace(PTRACE_GETREGS, held->tid, 0, &regs))
        return -ENOTRECOVERABLE;
    return (long)regs.rax;
}

#endif
