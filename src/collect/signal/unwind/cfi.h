/* SPDX-License-Identifier: MIT */
/*
 * DWARF call-frame information as it is loaded with a module: find the FDE of
 * a program counter through .eh_frame_hdr, execute its CFA program up to that
 * counter, evaluate its expressions.
 *
 * Everything is bounded; bytes that make no sense give a refusal, never a fault
 * or a loop. What belongs to code that cannot go, because the calling thread
 * will return to it, is read in place; all else is copied through the kernel,
 * since another thread may be unloading it. No state, no allocation:
 * async-signal-safe.
 *
 * Source: DWARF 5, 6.4 and 2.5; LSB Core 5.0, 10.6 (.eh_frame, .eh_frame_hdr).
 */
#ifndef COLLECT_SIGNAL_CFI_H
#define COLLECT_SIGNAL_CFI_H

#include "collect/signal/unwind/stack_view.h"

#include <stdbool.h>
#include <stdint.h>

/* The information of one module. No byte outside [lo, hi) is read. */
struct cpprof__cfi {
    const uint8_t *lo;
    const uint8_t *hi;
    const uint8_t *hdr;              /* .eh_frame_hdr, or NULL: there is none */
    struct cpprof__stack_view *view; /* to copy by, or NULL: read in place */
    /* Of the code around the pc that it was found by: all of the module, or
     * the part that lies apart from the information. */
    uintptr_t code_lo, code_hi;
};

static inline bool
cpprof__cfi_has_code(const struct cpprof__cfi *cfi, uintptr_t pc)
{
    return pc - cfi->code_lo < cfi->code_hi - cfi->code_lo;
}

/* Where a row comes from: what is needed to apply it. */
struct cpprof__cfi_origin {
    const uint8_t *at; /* the FDE: expressions are found from here */
    struct cpprof__stack_view *view;
    uint32_t n;        /* bytes from there that may be read */
    int8_t ra_column;  /* a register whose rule is followed */
    bool signal_frame; /* augmentation S: a handler returns through this */
    uint8_t encoding;  /* of the operand of DW_CFA_set_loc */
};

/* A frame description entry, together with what its CIE says. */
struct cpprof__fde {
    uintptr_t start; /* of the code that it describes */
    uintptr_t limit;
    const uint8_t *cie_code;
    const uint8_t *cie_end;
    const uint8_t *code;
    const uint8_t *end;
    uint64_t code_align;
    int64_t data_align;
    struct cpprof__cfi_origin origin;
};

/*
 * How to find a register's value in the caller. A rule is
 * (value << CPPROF__RULE_BITS) | kind; value counts bytes, or is a register,
 * or where an expression's length stands, in bytes from origin->at.
 */
enum cpprof__rule {
    CPPROF__RULE_NONE,      /* no rule: kept if callee-saved, else lost */
    CPPROF__RULE_UNDEFINED, /* lost; of the return address: outermost frame */
    CPPROF__RULE_SAME,
    CPPROF__RULE_AT_CFA,        /* saved at CFA + value */
    CPPROF__RULE_CFA_PLUS,      /* is CFA + value */
    CPPROF__RULE_REGISTER,      /* in another register */
    CPPROF__RULE_AT_EXPRESSION, /* saved where the expression says */
    CPPROF__RULE_IS_EXPRESSION, /* what the expression says */
    CPPROF__RULE_BITS = 3,
    CPPROF__RULE_MASK = (1 << CPPROF__RULE_BITS) - 1
};

#define CPPROF__CFA_EXPRESSION (-1)

/* One row of the table that a CFA program stands for. */
struct cpprof__cfi_row {
    int32_t cfa_reg;                /* or CPPROF__CFA_EXPRESSION */
    int32_t cfa_off;                /* bytes; or the expression, as in a rule */
    int32_t rules[CPPROF__N_RULES]; /* of register CPPROF__RULE_FIRST + i */
};

/* The entry whose code holds pc; false: there is none, or it is refused. */
bool
cpprof__cfi_find(const struct cpprof__cfi *cfi, uintptr_t pc,
                 struct cpprof__fde *fde);

/* Execute fde's program up to pc; false: refused, *row is not to be used. */
bool
cpprof__cfi_run(const struct cpprof__fde *fde, uintptr_t pc,
                struct cpprof__cfi_row *row);

/*
 * Evaluate the expression at origin->at + position. initial is what the stack
 * begins with, or NULL. false: refused, it needs a register that is not known,
 * or memory that cannot be read.
 */
bool
cpprof__cfi_evaluate(const struct cpprof__cfi_origin *origin, int32_t position,
                     const struct cpprof__regs *regs,
                     struct cpprof__stack_view *view, const uintptr_t *initial,
                     uintptr_t *value);

/*
 * Is the expression just `breg REG, offset` (deref = false) or that followed by
 * a deref? Then *offset is set.
 */
bool
cpprof__cfi_is_breg(const struct cpprof__cfi_origin *origin, int32_t position,
                    unsigned reg, bool deref, int32_t *offset);

/*
 * From the registers of a frame to those of its caller by a row. On
 * success regs->pc is the return address; *root says that there is no caller
 * (then regs is as it was).
 */
bool
cpprof__cfi_step(const struct cpprof__cfi_row *row,
                 const struct cpprof__cfi_origin *origin,
                 struct cpprof__regs *regs, struct cpprof__stack_view *view,
                 bool *root);

#endif
