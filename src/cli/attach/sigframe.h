/* SPDX-License-Identifier: MIT */
/*
 * What a signal frame has, so that rt_sigreturn(2) takes a thread back to where
 * it was: the kernel's, on x86-64 (asm/ucontext.h, asm/sigcontext.h).
 */
#ifndef CLI_ATTACH_SIGFRAME_H
#define CLI_ATTACH_SIGFRAME_H

#include <stdint.h>

/* The flags that a frame of a 64-bit program has. */
#define CPPROF__FRAME_FLAGS 7

/* restore_altstack() refuses this, and leaves what there is. */
#define CPPROF__FRAME_SAME_STACK 4

/*
 * In the registers of vectors, as XSAVE writes them, these bytes are free. A
 * frame has words there that say what there is, and one more word behind it.
 */
#define CPPROF__XSTATE_MAX   16384
#define CPPROF__XSTATE_WORDS 464 /* of ptrace(2): the enabled features */
#define CPPROF__XSTATE_USED  512
#define CPPROF__XSTATE_TILES (1ull << 18) /* AMX data: in a frame if in use */
#define CPPROF__XSTATE_MAGIC 0x46505853u
#define CPPROF__XSTATE_END   0x46505845u

struct cpprof__xstate_words {
    uint32_t magic, n_with_end;
    uint64_t features;
    uint32_t n;
};

#endif
