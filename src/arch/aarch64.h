/* SPDX-License-Identifier: MIT */
/*
 * AArch64: registers by DWARF number, raw system calls, and the few facts about
 * calls and signals that the unwinder needs. Included through arch/regs.h.
 *
 * Source: AADWARF64 4.1 (register numbers), AAPCS64 6.1.1 (registers), 6.4.6
 * (frame records).
 */
#ifndef ARCH_AARCH64_H
#define ARCH_AARCH64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

/* DWARF register numbers: x0 to x30, sp, pc. */
#define CPPROF__REG_FP   29
#define CPPROF__REG_LINK 30
#define CPPROF__REG_SP   31
#define CPPROF__REG_PC   32

/* The registers of a system call's arguments. */
#define CPPROF__SYSCALL_REGS                                                   \
    {                                                                          \
        0, 1, 2, 3, 4, 5                                                       \
    }
#define CPPROF__N_REGS 33

/* As the vdso has it. */
#define CPPROF__VDSO_CLOCK "__kernel_clock_gettime"

/* Of a program: above are tags, if anything. 52 bits are to be asked for. */
#define CPPROF__ADDRESS_BITS 48

/* Kept by a callee unless its rules say otherwise: x19 to x29. */
#define CPPROF__CALLEE_SAVED (0x7ffull << 19)

/* Registers whose rules are followed: x19 to x30 and sp. A signal frame, the
 * only one that restores others, is read from the kernel's ucontext. */
#define CPPROF__RULE_FIRST 19
#define CPPROF__N_RULES    13

/* A frame record may lie anywhere in its frame: the caller's stack pointer
 * does not follow from it. */
#define CPPROF__FP_GIVES_SP 0

/* At a signal's return address, sp points at a siginfo_t, and the ucontext
 * comes after it. */
#define CPPROF__SIGNAL_UCONTEXT 128

#define CPPROF__ALIGNS_STACK /* no need */

struct cpprof__regs {
    union {
        uintptr_t r[CPPROF__N_REGS]; /* by DWARF number */
        struct {
            uintptr_t x[29];
            uintptr_t fp, link, sp, pc;
        };
    };
    uint64_t known; /* bit n: r[n] is this frame's value */
};

/* A counter that runs at one speed, in unknown units. Safety: AS. */
static inline uint64_t
cpprof__cycles(void)
{
    uint64_t cycles;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(cycles));
    return cycles;
}

/* Where the kernel puts register reg in a ucontext: bytes from its start. */
static inline size_t
cpprof__ucontext_offset(unsigned reg)
{
    return offsetof(ucontext_t, uc_mcontext.regs) + 8u * reg;
}

/* The kernel's frame is the siginfo_t and the ucontext, and its registers are
 * arguments: a signal's number and where these two are. */
static inline const void *
cpprof__begun_handler(const struct cpprof__regs *regs, int *number)
{
    *number = (int)regs->x[0];
    return regs->x[0] - 1 < 64 && regs->x[1] == regs->sp &&
                   regs->x[2] == regs->sp + CPPROF__SIGNAL_UCONTEXT
               ? (const void *)regs->x[2]
               : NULL;
}

/*
 * The registers of the caller, at a point inside this (inlined) function. Only
 * those that outlive a call are taken, and x30, which only a leaf still needs.
 */
static inline __attribute__((always_inline)) void
cpprof__regs_here(struct cpprof__regs *regs)
{
    uintptr_t t;

    __asm__ volatile("adr %[t], 0f\n"
                     "0:\tstr %[t], [%[to], #(8 * 32)]\n\t"
                     "mov %[t], sp\n\t"
                     "stp x30, %[t], [%[to], #(8 * 30)]\n\t"
                     "stp x19, x20, [%[to], #(8 * 19)]\n\t"
                     "stp x21, x22, [%[to], #(8 * 21)]\n\t"
                     "stp x23, x24, [%[to], #(8 * 23)]\n\t"
                     "stp x25, x26, [%[to], #(8 * 25)]\n\t"
                     "stp x27, x28, [%[to], #(8 * 27)]\n\t"
                     "str x29, [%[to], #(8 * 29)]"
                     : [t] "=&r"(t)
                     : [to] "r"(regs)
                     : "memory");
    regs->known = CPPROF__CALLEE_SAVED | 7ull << CPPROF__REG_LINK;
}

/* A system call without libc: leaves errno alone. -errno on failure. */
static inline long
cpprof__syscall(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;

    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}

/* It always can be read: tpidr_el0. */
static inline bool
cpprof__has_thread_pointer_insn(unsigned long hwcap2)
{
    (void)hwcap2;
    return true;
}

static inline uintptr_t
cpprof__thread_self(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

static inline uintptr_t
cpprof__thread_pointer(bool has_insn)
{
    (void)has_insn;
    return cpprof__thread_self();
}

/* How far sp is below fp after a prologue like this. Always unknown: on AArch64
 * frames are found from sp wherever possible. */
#define CPPROF__PROLOGUE_BYTES 4
static inline int32_t
cpprof__prologue_frame(const uint8_t *code)
{
    (void)code;
    return -1;
}

/*
 * A return address as the program counter it stands for: without its pointer
 * authentication code. xpaclri is a hint: nothing on a machine without PAC.
 */
static inline uintptr_t
cpprof__strip_return_address(uintptr_t ra)
{
    register uintptr_t x30 __asm__("x30") = ra;

    __asm__("hint #7" : "+r"(x30));
    return x30;
}

/* Of return addresses that are looked for on the stack; here a leaf has its in
 * a register. 0: nothing is known. */
#define CPPROF__STUB_BYTES 4
static inline uintptr_t
cpprof__target_slot(const uint8_t *code, uintptr_t at, bool is_call)
{
    return (void)code, (void)at, (void)is_call, 0;
}

static inline uintptr_t
cpprof__call_target(const uint8_t code[5], uintptr_t ra)
{
    return (void)code, (void)ra, 0;
}

struct cpprof__prologue {
    uintptr_t bytes, fp_below;
};

#define CPPROF__PROLOGUE_MAX 32
static inline struct cpprof__prologue
cpprof__read_prologue(const uint8_t *code, uintptr_t done)
{
    return (void)code, (void)done, (struct cpprof__prologue){0, 0};
}

#define CPPROF__END_BYTES 8
static inline bool
cpprof__ends_function(const uint8_t *code)
{
    return (void)code, false;
}

/* Where the jump at an address leads; 0: it is none. b. */
#define CPPROF__JUMP_BYTES 4
#define CPPROF__CODE_ALIGN 4
static inline uintptr_t
cpprof__jump_target(const uint8_t code[CPPROF__JUMP_BYTES], uintptr_t at)
{
    uint32_t insn;

    __builtin_memcpy(&insn, code, sizeof insn);
    if (insn >> 26 != 0x05)
        return 0;
    return at + (uintptr_t)(intptr_t)((int32_t)(insn << 6) >> 6) * 4;
}

/* Do these 8 bytes of code end in bl or blr (or blraa and its like)? */
static inline bool
cpprof__ends_in_call(const uint8_t code[8])
{
    uint32_t insn;

    __builtin_memcpy(&insn, code + 4, sizeof insn);
    return insn >> 26 == 0x25 || (insn & 0xfffffc1f) == 0xd63f0000 ||
           (insn & 0xfefff800) == 0xd63f0800;
}

/* Is this the code that a signal handler returns to?
 * mov x8, #__NR_rt_sigreturn; svc #0. */
#define CPPROF__SIGRETURN_BYTES 8
static inline bool
cpprof__is_sigreturn(const uint8_t *code)
{
    static const uint8_t want[CPPROF__SIGRETURN_BYTES] = {
        0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};

    return __builtin_memcmp(code, want, sizeof want) == 0;
}

/* Goroutines have not been looked at here. */
#define CPPROF__GOEXIT_BYTES 4
static inline bool
cpprof__is_goexit(const uint8_t *code)
{
    (void)code;
    return false;
}

#define CPPROF__SYSCALL_BYTES 4
static inline bool
cpprof__is_syscall(const uint8_t *code)
{
    static const uint8_t want[CPPROF__SYSCALL_BYTES] = {1, 0, 0, 0xd4};

    return __builtin_memcmp(code, want, sizeof want) == 0;
}

static inline bool
cpprof__came_by_fault(const void *ucontext)
{
    (void)ucontext;
    return false;
}

static inline void
cpprof__bear_unaligned(const void *ucontext)
{
    (void)ucontext;
}

/*
 * cpprof__call_under(scope, fn, arg), see collect/labels/labels_current.c:
 * calls fn(arg) in a frame that holds scope at CPPROF__CALL_UNDER_PLACE bytes
 * above its stack pointer.
 */
#define CPPROF__CALL_UNDER_PLACE 16
#define CPPROF__CALL_UNDER                                                     \
    ".pushsection cpprof_hooks, \"ax\", %progbits\n"                           \
    ".hidden cpprof__call_under\n"                                             \
    ".globl cpprof__call_under\n"                                              \
    ".type cpprof__call_under, %function\n"                                    \
    "cpprof__call_under:\n"                                                    \
    ".cfi_startproc\n"                                                         \
    ".cfi_personality 0x1b, cpprof__call_under_personality\n"                  \
    "    stp x29, x30, [sp, -32]!\n"                                           \
    ".cfi_def_cfa_offset 32\n"                                                 \
    ".cfi_offset 29, -32\n"                                                    \
    ".cfi_offset 30, -24\n"                                                    \
    "    str x0, [sp, 16]\n"                                                   \
    "    mov x29, sp\n"                                                        \
    "    mov x0, x2\n"                                                         \
    "    blr x1\n"                                                             \
    "    ldp x29, x30, [sp], 32\n"                                             \
    ".cfi_restore 30\n"                                                        \
    ".cfi_restore 29\n"                                                        \
    ".cfi_def_cfa_offset 0\n"                                                  \
    "    ret\n"                                                                \
    ".cfi_endproc\n"                                                           \
    ".size cpprof__call_under, . - cpprof__call_under\n"                       \
    ".popsection\n"

#endif
