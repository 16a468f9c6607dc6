/* SPDX-License-Identifier: MIT */
/*
 * The processor's trap flag: while it is set, SIGTRAP comes after every
 * instruction; its handler itself runs without. Other processors have none:
 * tests that need it are skipped there.
 */
#ifndef TRAP_FLAG_H
#define TRAP_FLAG_H

#ifdef __x86_64__
#define HAS_TRAP_FLAG 1

/* In assembly, so that the push is in the call-frame information. */
void
trap_flag_on(void);
void
trap_flag_off(void);
__asm__(".text\n"
        "trap_flag_on:\n\t"
        ".cfi_startproc\n\t"
        "pushfq\n\t"
        ".cfi_adjust_cfa_offset 8\n\t"
        "orq $0x100, (%rsp)\n\t"
        "popfq\n\t"
        ".cfi_adjust_cfa_offset -8\n\t"
        "ret\n\t"
        ".cfi_endproc\n"
        "trap_flag_off:\n\t"
        ".cfi_startproc\n\t"
        "pushfq\n\t"
        ".cfi_adjust_cfa_offset 8\n\t"
        "andq $~0x100, (%rsp)\n\t"
        "popfq\n\t"
        ".cfi_adjust_cfa_offset -8\n\t"
        "ret\n\t"
        ".cfi_endproc\n");
#else
#define HAS_TRAP_FLAG 0

static inline void
trap_flag_on(void)
{
}

static inline void
trap_flag_off(void)
{
}
#endif

#endif
