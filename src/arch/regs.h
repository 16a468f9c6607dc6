/* SPDX-License-Identifier: MIT */
/*
 * The registers of one frame, by DWARF number, and how to come by them.
 *
 * The header of each architecture defines:
 *
 *   struct cpprof__regs               r[], also by name: fp, sp, pc; known
 *   CPPROF__REG_FP, _SP, _PC          their numbers
 *   CPPROF__REG_LINK                  holds a leaf's return address, or -1
 *   CPPROF__SYSCALL_REGS              those of a system call's six arguments
 *   CPPROF__N_REGS                    registers in r[], pc the last
 *   CPPROF__CALLEE_SAVED              bits of those that outlive a call
 *   CPPROF__RULE_FIRST, _N_RULES      registers whose unwind rules are followed
 *   CPPROF__FP_GIVES_SP               caller's sp is fp + 16
 *   CPPROF__SIGNAL_UCONTEXT           from sp to the ucontext, in sigreturn
 *   CPPROF__SIGRETURN_BYTES           length of the sigreturn code
 *   cpprof__begun_handler(regs, &number)
 *                                     the signal and the ucontext of a handler
 *                                     that has its arguments and its sp yet;
 *                                     else NULL
 *   cpprof__ucontext_offset(reg)      where a ucontext holds a register
 *   cpprof__regs_here(regs)           the caller's own registers
 *   cpprof__syscall(n, a, b, c, d, e, f)
 *   cpprof__thread_self()             the thread pointer, at once
 *   cpprof__has_thread_pointer_insn(hwcap2), cpprof__thread_pointer(has_insn)
 *   CPPROF__PROLOGUE_BYTES            enough of a function's first bytes
 *   cpprof__prologue_frame(code)      from sp to fp after those, or < 0
 *   cpprof__strip_return_address(ra)
 *   cpprof__call_target(code, ra)     where a call leads
 *   cpprof__target_slot(code, at, is_call)
 *                                     by which word; CPPROF__STUB_BYTES
 *   cpprof__jump_target(code, at)     where a jump leads; CPPROF__JUMP_BYTES,
 *                                     CPPROF__CODE_ALIGN
 *   cpprof__ends_in_call(code)        8 bytes before a return address
 *   cpprof__is_sigreturn(code)
 *   CPPROF__GOEXIT_BYTES              length of what goroutines return to
 *   cpprof__is_goexit(code)
 *   CPPROF__SYSCALL_BYTES             length of the system call instruction
 *   cpprof__is_syscall(code)
 *   cpprof__came_by_fault(ucontext)   from a page fault, where that can be told
 *   cpprof__bear_unaligned(ucontext)  in a handler, if what it interrupted has
 *                                     words that are not aligned be errors
 *   CPPROF__VDSO_CLOCK                name of the vdso's clock_gettime()
 *   CPPROF__ADDRESS_BITS              of a pointer, lowest first
 *   CPPROF__CALL_UNDER, _PLACE        a call whose frame has a personality
 *
 * All of them are async-signal-safe.
 */
#ifndef ARCH_REGS_H
#define ARCH_REGS_H

#if defined __x86_64__ && defined __LP64__
#include "arch/x86_64.h"
#elif defined __aarch64__ && defined __LP64__ && !defined __AARCH64EB__
#include "arch/aarch64.h"
#else
#error "cpprof knows x86-64 and little-endian aarch64"
#endif

/* All registers of the code that a signal interrupted. ucontext is the third
 * argument of a handler that was installed with SA_SIGINFO. */
static inline void
cpprof__regs_from_ucontext(struct cpprof__regs *regs, const void *ucontext)
{
    const char *from = ucontext;
    unsigned i;

    for (i = 0; i < CPPROF__N_REGS; i++) {
        __builtin_memcpy(&regs->r[i], from + cpprof__ucontext_offset(i),
                         sizeof regs->r[i]);
    }
    regs->known = (1ull << CPPROF__N_REGS) - 1;
}

#endif
