/* SPDX-License-Identifier: MIT */
/*
 * x86-64: registers by DWARF number, raw system calls, and the few facts about
 * calls and signals that the unwinder needs. Included through arch/regs.h.
 *
 * Source: System V ABI for AMD64, 3.2.1 (registers), 3.6.2 (DWARF numbers).
 */
#ifndef ARCH_X86_64_H
#define ARCH_X86_64_H

#include <asm/prctl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>

/* DWARF register numbers. */
#define CPPROF__REG_FP 6
#define CPPROF__REG_SP 7
#define CPPROF__REG_PC 16

/* The registers of a system call's arguments. */
#define CPPROF__SYSCALL_REGS                                                   \
    {                                                                          \
        5, 4, 1, 10, 8, 9                                                      \
    }
#define CPPROF__N_REGS 17

/* As the vdso has it. */
#define CPPROF__VDSO_CLOCK "__vdso_clock_gettime"

/* Of a program: above are tags, if anything. */
#define CPPROF__ADDRESS_BITS 47

/* Kept by a callee unless its rules say otherwise: rbx, rbp, r12 to r15. */
#define CPPROF__CALLEE_SAVED (1u << 3 | 1u << 6 | 0xfu << 12)

/* Registers whose rules are followed: all of them. */
#define CPPROF__RULE_FIRST 0
#define CPPROF__N_RULES    17

/* A call pushes its return address: no register holds it. */
#define CPPROF__REG_LINK (-1)

/* A counter that runs at one speed, in unknown units. Safety: AS. */
static inline uint64_t
cpprof__cycles(void)
{
    return __builtin_ia32_rdtsc();
}

/* The caller's stack pointer is 16 above a frame pointer: push, push. */
#define CPPROF__FP_GIVES_SP 1

/* At a signal's return address, sp points at this many bytes before the
 * ucontext. */
#define CPPROF__SIGNAL_UCONTEXT 0

/* On what may begin with a stack that is not aligned, and would end by SIGSEGV:
 * a handler of signals in an emulator (QEMU 7.2 in user mode), the end of a
 * thread that musl cancels. */
#define CPPROF__ALIGNS_STACK __attribute__((force_align_arg_pointer))

struct cpprof__regs {
    union {
        uintptr_t r[CPPROF__N_REGS]; /* by DWARF number */
        struct {
            uintptr_t rax, rdx, rcx, rbx, rsi, rdi;
            uintptr_t fp, sp;
            uintptr_t r8, r9, r10, r11, r12, r13, r14, r15;
            uintptr_t pc;
        };
    };
    uint64_t known; /* bit n: r[n] is this frame's value */
};

/* Where the kernel puts register reg in a ucontext: bytes from its start. */
static inline size_t
cpprof__ucontext_offset(unsigned reg)
{
    static const uint8_t greg[CPPROF__N_REGS] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
        REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
        REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

    return offsetof(ucontext_t, uc_mcontext.gregs) + 8u * greg[reg];
}

/* The kernel's frame is a return address, the ucontext and, after its 304
 * bytes, the siginfo_t, and its registers are arguments: a signal's number and
 * where these two are. */
static inline const void *
cpprof__begun_handler(const struct cpprof__regs *regs, int *number)
{
    *number = (int)regs->rdi;
    return regs->rdi - 1 < 64 && regs->rdx == regs->sp + 8 &&
                   regs->rsi == regs->rdx + 304
               ? (const void *)regs->rdx
               : NULL;
}

/*
 * The registers of the caller, at a point inside this (inlined) function. Only
 * those that outlive a call are taken.
 */
static inline __attribute__((always_inline)) void
cpprof__regs_here(struct cpprof__regs *regs)
{
    uintptr_t pc;

    __asm__ volatile("leaq 0f(%%rip), %[pc]\n"
                     "0:\tmovq %[pc], %c[o_pc](%[to])\n\t"
                     "movq %%rbx, %c[o_rbx](%[to])\n\t"
                     "movq %%rbp, %c[o_fp](%[to])\n\t"
                     "movq %%rsp, %c[o_sp](%[to])\n\t"
                     "movq %%r12, %c[o_r12](%[to])\n\t"
                     "movq %%r13, %c[o_r12]+8(%[to])\n\t"
                     "movq %%r14, %c[o_r12]+16(%[to])\n\t"
                     "movq %%r15, %c[o_r12]+24(%[to])"
                     : [pc] "=&r"(pc)
                     : [to] "r"(regs), [o_pc] "i"(8 * CPPROF__REG_PC),
                       [o_rbx] "i"(8 * 3), [o_fp] "i"(8 * CPPROF__REG_FP),
                       [o_sp] "i"(8 * CPPROF__REG_SP), [o_r12] "i"(8 * 12)
                     : "memory");
    regs->known =
        CPPROF__CALLEE_SAVED | 1u << CPPROF__REG_SP | 1u << CPPROF__REG_PC;
}

/* A system call without libc: leaves errno alone. -errno on failure. */
static inline long
cpprof__syscall(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
                       "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* May programs read the thread pointer by an instruction? HWCAP2_FSGSBASE. */
static inline bool
cpprof__has_thread_pointer_insn(unsigned long hwcap2)
{
    return hwcap2 & 2;
}

/* The thread pointer, as it is in the memory that it points at: what
 * __builtin_thread_pointer() is, which GCC has from 11 on and clang later. */
static inline uintptr_t
cpprof__thread_self(void)
{
    uintptr_t self;

    __asm__("mov %%fs:0, %0" : "=r"(self));
    return self;
}

/* The thread pointer, as it is in the register. */
static inline uintptr_t
cpprof__thread_pointer(bool has_insn)
{
    uintptr_t pointer = 0;

    if (has_insn)
        __asm__ volatile("rdfsbase %0" : "=r"(pointer));
    else
        cpprof__syscall(SYS_arch_prctl, ARCH_GET_FS, (long)&pointer, 0, 0, 0,
                        0);
    return pointer;
}

/* A return address as the program counter it stands for. */
static inline uintptr_t
cpprof__strip_return_address(uintptr_t ra)
{
    return ra;
}

/* Are these n >= 2 bytes one call r/m64 (ff /2)? Intel SDM, volume 2, 2.1.5
 * (ModR/M and SIB). */
static inline bool
cpprof__is_indirect_call(const uint8_t *code, size_t n)
{
    unsigned mod = code[1] >> 6;
    unsigned rm = code[1] & 7;
    size_t length = 2;

    if (code[0] != 0xff || (code[1] & 0x38) != 0x10)
        return false;
    if (mod != 3 && rm == 4 && n > 2) {
        length++;
        rm = code[2] & 7;
    }
    if (mod == 1)
        length++;
    else if (mod == 2 || (mod == 0 && rm == 5))
        length += 4;
    return n == length;
}

/* Where the jump at an address leads, of which 6 bytes are there; 0: it is
 * none. jmp rel32, jcc rel32. */
#define CPPROF__JUMP_BYTES 6
#define CPPROF__CODE_ALIGN 1
static inline uintptr_t
cpprof__jump_target(const uint8_t code[CPPROF__JUMP_BYTES], uintptr_t at)
{
    const bool is_jump = code[0] == 0xe9;
    int32_t by;

    if (!is_jump && (code[0] != 0x0f || (code[1] & 0xf0) != 0x80))
        return 0;
    __builtin_memcpy(&by, code + (is_jump ? 1 : 2), sizeof by);
    return at + (is_jump ? 5 : 6) + (uintptr_t)(intptr_t)by;
}

/*
 * The word that the first of these instructions takes its target from, where it
 * is a jump through memory (a stub of a procedure linkage table), or, with
 * is_call, a call (-fno-plt); 0: it is neither.
 */
#define CPPROF__STUB_BYTES 11
static inline uintptr_t
cpprof__target_slot(const uint8_t *code, uintptr_t at, bool is_call)
{
    size_t n = 0;
    int32_t by;

    if (!is_call && code[0] == 0xf3 && code[1] == 0x0f &&
        code[2] == 0x1e) /* endbr64 */
        n = 4;
    n += !is_call && code[n] == 0xf2; /* bnd */
    if (code[n] != 0xff || code[n + 1] != (is_call ? 0x15 : 0x25))
        return 0;
    __builtin_memcpy(&by, code + n + 2, sizeof by);
    return at + n + 6 + (uintptr_t)(intptr_t)by;
}

/* What the call that ends with these 5 bytes, in front of ra, calls; 0: it is
 * none that says it. */
static inline uintptr_t
cpprof__call_target(const uint8_t code[5], uintptr_t ra)
{
    int32_t by;

    if (code[0] != 0xe8)
        return 0;
    __builtin_memcpy(&by, code + 1, sizeof by);
    return ra + (uintptr_t)(intptr_t)by;
}

/* Bytes of a ModRM byte and of what it brings with it. */
static inline unsigned
cpprof__modrm_bytes(const uint8_t *at)
{
    unsigned mod = at[0] >> 6, rm = at[0] & 7, n = 1;

    if (mod == 3)
        return 1;
    if (rm == 4)
        rm = at[n++] & 7;
    if (mod == 0)
        return rm == 5 ? n + 4 : n;
    return n + (mod == 1 ? 1 : 4);
}

/* Bytes of an instruction as functions begin with, which moves, adds, compares
 * or jumps on a condition; 0: none of these. It reads no more than 12. */
static inline unsigned
cpprof__plain_bytes(const uint8_t *code)
{
    bool is_wide = false;
    unsigned n = 0;

    while (n < 3 && (code[n] == 0x64 || code[n] == 0x66 || code[n] == 0xf2 ||
                     code[n] == 0xf3))
        n++;
    if ((code[n] & 0xf0) == 0x40)
        is_wide = code[n++] & 8;
    if (code[n] == 0x0f && (code[n + 1] & 0xf0) == 0x80) /* jcc */
        return n + 6;
    if (code[n] == 0x0f)
        return n + 2 + cpprof__modrm_bytes(code + n + 2);
    if ((code[n] & 0xf0) == 0x70) /* jcc */
        return n + 2;
    if ((code[n] & 0xf8) == 0xb8) /* mov $n */
        return n + 1 + (is_wide ? 8 : 4);
    if (code[n] == 0x80 || code[n] == 0x83 || code[n] == 0xc6)
        return n + 2 + cpprof__modrm_bytes(code + n + 1);
    if (code[n] == 0x81 || code[n] == 0xc7)
        return n + 5 + cpprof__modrm_bytes(code + n + 1);
    if (code[n] < 0x40
            ? (code[n] & 7) < 4 /* arithmetic */
            : code[n] == 0x63 || code[n] == 0x8d || (code[n] & 0xf8) == 0x88 ||
                  (code[n] & 0xfc) == 0x84)
        return n + 1 + cpprof__modrm_bytes(code + n + 1);
    return 0;
}

/* What sub $n, %rsp (48 83 ec ib, 48 81 ec id) and add $-n, %rsp (48 83 c4 ib)
 * take; 0: it is neither. */
static inline uintptr_t
cpprof__room_taken(const uint8_t *code)
{
    uint32_t n;

    if (code[0] != 0x48)
        return 0;
    if (code[1] == 0x83 && code[2] == 0xec)
        return code[3];
    if (code[1] == 0x83 && code[2] == 0xc4)
        return 256u - code[3];
    __builtin_memcpy(&n, code + 3, sizeof n);
    return code[1] == 0x81 && code[2] == 0xec ? n : 0;
}

/* May what is in front of this code be the end of another function, or what
 * fills up behind one? ret, nop, int3, ud2; the last bytes of longer nops. */
#define CPPROF__END_BYTES 8
static inline bool
cpprof__ends_function(const uint8_t *code)
{
    return code[-1] == 0xc3 || code[-1] == 0x90 || code[-1] == 0xcc ||
           code[-1] == 0x00 || code[-1] == 0x0b || code[-5] == 0xe9 ||
           code[-5] == 0xe8 || code[-2] == 0xeb;
}

/*
 * What a function has put on the stack below its return address by the first
 * `done` bytes of its code: push (5x, 41 5x) and the one that takes room, with
 * plain ones between them.
 */
struct cpprof__prologue {
    uintptr_t bytes;
    uintptr_t fp_below; /* the caller's %rbp is so far below; 0: it is kept */
};

#define CPPROF__PROLOGUE_MAX 96
static inline struct cpprof__prologue
cpprof__read_prologue(const uint8_t *code, uintptr_t done)
{
    struct cpprof__prologue p = {0, 0};
    unsigned i, n;

    for (i = 0; i < CPPROF__PROLOGUE_MAX - 12 && i < done; i += n) {
        uintptr_t room = cpprof__room_taken(code + i);

        n = code[i] == 0x41 ? 2 : 1;
        if (room) {
            p.bytes += room;
            break;
        }
        if ((code[i + n - 1] & 0xf8) == 0x50) {
            p.bytes += 8;
            if (code[i] == 0x55)
                p.fp_below = p.bytes;
            continue;
        }
        n = cpprof__plain_bytes(code + i);
        if (!n)
            break;
    }
    return p;
}

/* Do these 8 bytes of code end in a call? call rel32 is e8 and 4 bytes; others
 * are indirect. Bytes that only look like a call also count as one. */
static inline bool
cpprof__ends_in_call(const uint8_t code[8])
{
    size_t n;

    if (code[3] == 0xe8)
        return true;
    for (n = 2; n <= 7; n++) {
        if (cpprof__is_indirect_call(code + 8 - n, n))
            return true;
    }
    return false;
}

/*
 * How far sp is below fp in a function that begins like this, after that; < 0:
 * it does not keep a frame pointer, or not as compilers do:
 * endbr64 (f3 0f 1e fa)?, push %rbp (55), mov %rsp, %rbp (48 89 e5),
 * push (5x, 41 5x)*, sub $n, %rsp (48 83 ec ib, 48 81 ec id)?
 */
#define CPPROF__PROLOGUE_BYTES 32
static inline int32_t
cpprof__prologue_frame(const uint8_t *code)
{
    static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
    static const uint8_t set_up[] = {0x55, 0x48, 0x89, 0xe5};
    int32_t pushed = 0, size = 0;

    if (__builtin_memcmp(code, endbr, sizeof endbr) == 0)
        code += sizeof endbr;
    if (__builtin_memcmp(code, set_up, sizeof set_up) != 0)
        return -1;
    code += sizeof set_up;
    for (; pushed < 5 * 8; pushed += 8) { /* those that are callee-saved */
        if (code[0] == 0x41)
            code += (code[1] & 0xf8) == 0x50;
        if ((code[0] & 0xf8) != 0x50)
            break;
        code++;
    }
    if (code[0] == 0x48 && code[1] == 0x83 && code[2] == 0xec)
        size = (int8_t)code[3];
    else if (code[0] == 0x48 && code[1] == 0x81 && code[2] == 0xec)
        __builtin_memcpy(&size, code + 3, sizeof size);
    return size < 0 || size > INT32_MAX - pushed ? -1 : size + pushed;
}

/* Is this the code that a signal handler returns to?
 * mov $__NR_rt_sigreturn, %rax (7 bytes); syscall. */
#define CPPROF__SIGRETURN_BYTES 9
static inline bool
cpprof__is_sigreturn(const uint8_t *code)
{
    static const uint8_t want[CPPROF__SIGRETURN_BYTES] = {
        0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

    return __builtin_memcmp(code, want, sizeof want) == 0;
}

/* nop, call runtime.goexit1, nop: a goroutine's first function returns to the
 * second of these, though nothing there has called it. */
#define CPPROF__GOEXIT_BYTES 7
static inline bool
cpprof__is_goexit(const uint8_t *code)
{
    return code[0] == 0x90 && code[1] == 0xe8 && code[6] == 0x90;
}

#define CPPROF__SYSCALL_BYTES 2
static inline bool
cpprof__is_syscall(const uint8_t *code)
{
    return code[0] == 0x0f && code[1] == 0x05;
}

/* A fault saves the flag RF as 1, an interrupt as 0, unless it comes within a
 * repeated instruction. Intel SDM, volume 3, 17.3.1.1. */
static inline bool
cpprof__came_by_fault(const void *ucontext)
{
    return ((const ucontext_t *)ucontext)->uc_mcontext.gregs[REG_EFL] >> 16 & 1;
}

/* A signal handler begins with the flag AC of the code that it interrupted: a
 * word that is not aligned is SIGBUS with it. The return sets it again. */
static inline void
cpprof__bear_unaligned(const void *ucontext)
{
    const unsigned ac = 18;

    if (((const ucontext_t *)ucontext)->uc_mcontext.gregs[REG_EFL] >> ac & 1)
        __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() &
                                       ~(1ull << ac));
}

/*
 * cpprof__call_under(scope, fn, arg), see collect/labels/labels_current.c:
 * calls fn(arg) in a frame that holds scope so many bytes above its stack
 * pointer.
 */
#define CPPROF__CALL_UNDER_PLACE 0
#define CPPROF__CALL_UNDER                                                     \
    ".pushsection cpprof_hooks, \"ax\", %progbits\n"                           \
    ".hidden cpprof__call_under\n"                                             \
    ".globl cpprof__call_under\n"                                              \
    ".type cpprof__call_under, @function\n"                                    \
    "cpprof__call_under:\n"                                                    \
    ".cfi_startproc\n"                                                         \
    ".cfi_personality 0x1b, cpprof__call_under_personality\n"                  \
    "    push %rdi\n"                                                          \
    ".cfi_adjust_cfa_offset 8\n"                                               \
    "    mov %rdx, %rdi\n"                                                     \
    "    call *%rsi\n"                                                         \
    "    pop %rdi\n"                                                           \
    ".cfi_adjust_cfa_offset -8\n"                                              \
    "    ret\n"                                                                \
    ".cfi_endproc\n"                                                           \
    ".size cpprof__call_under, . - cpprof__call_under\n"                       \
    ".popsection\n"

#endif
