/* SPDX-License-Identifier: MIT */
/*
 * The unwinder on made-up call-frame information, registers and stack: it may
 * find anything, but must come back, with what it promises, and must not read
 * a byte that it was not given.
 *
 * An input is a struct input, then the bytes of .eh_frame_hdr and .eh_frame,
 * which end where they end: the allocation has no byte more. Words that stand
 * for addresses say what they count from, so that an input means the same
 * wherever its memory comes to lie.
 *
 * By hand, in the root of the tree:
 *
 *     clang-14 -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined
 *         -fno-strict-aliasing -Iinclude -Isrc tests/fuzz/fuzz_cfi.c
 *         src/collect/signal/{cfi,cfi_expression,cfi_program,cfi_step}.c
 *         src/collect/signal/{module,row_cache,stack_view,unwind}.c
 *         src/collect/signal/{walk_full,walk_guess}.c -o fuzz_cfi
 *     ./fuzz_cfi -max_len=2000 corpus-of-yours tests/fuzz/corpus/cfi
 *
 * Of the corpus, seed_cfi.c made the files with names; found-* are what the
 * fuzzer found beyond them, as few as keep its coverage (-set_cover_merge=1).
 */
#include "collect/signal/unwind/cfi.h"
#include "collect/signal/unwind/module.h"
#include "collect/signal/unwind/unwind.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define N_WORDS    32 /* of stack */
#define MAX_FRAMES 64

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct input {
    uint8_t flags;
    uint8_t hdr_at; /* where .eh_frame_hdr begins */
    uint16_t pc;    /* from the start of the section, which is the code, too */
    uint32_t known;
    uint64_t regs[CPPROF__N_REGS];
    uint64_t stack[N_WORDS];
};

enum { IN_VIEW = 1, NO_COPY = 2 };

/* Upper 16 bits of a word that stands for an address. */
#define FROM_SECTION 0xfe01u
#define FROM_STACK   0xfe02u

static uint64_t stack[N_WORDS];

static uint64_t
address(uint64_t word, const uint8_t *section)
{
    switch (word >> 48) {
    case FROM_SECTION:
        return (uintptr_t)section + (uint16_t)word;
    case FROM_STACK:
        return (uintptr_t)stack + (uint16_t)word;
    }
    return word;
}

static void
expect(int holds)
{
    if (!holds)
        abort();
}

static void
set_up(const struct input *in, const uint8_t *section,
       struct cpprof__regs *regs, struct cpprof__stack_view *view)
{
    size_t i;

    for (i = 0; i < N_WORDS; i++)
        stack[i] = address(in->stack[i], section);
    for (i = 0; i < CPPROF__N_REGS; i++)
        regs->r[i] = address(in->regs[i], section);
    regs->pc = (uintptr_t)section + in->pc;
    regs->known = in->flags & 4 ? ~0ull : in->known;
    memset(view, 0, sizeof *view);
    if (in->flags & IN_VIEW) {
        view->lo = (uintptr_t)stack;
        view->hi = (uintptr_t)(stack + N_WORDS);
    }
}

/* One FDE, its row, one step, and what the row says of each expression. */
static void
step(const struct cpprof__cfi *cfi, struct cpprof__regs regs,
     struct cpprof__stack_view *view)
{
    struct cpprof__cfi_row row;
    struct cpprof__fde fde;
    bool root;

    if (!cpprof__cfi_find(cfi, regs.pc, &fde))
        return;
    expect(fde.start <= regs.pc && regs.pc < fde.limit);
    if (!cpprof__cfi_run(&fde, regs.pc, &row))
        return;
    cpprof__cfi_step(&row, &fde.origin, &regs, view, &root);
}

/* The whole walk, in a module table that lists this section. */
static void
walk(const struct cpprof__cfi *cfi, const struct cpprof__regs *regs,
     struct cpprof__stack_view *view)
{
    static struct cpprof__module_entry entries[1];
    struct cpprof__module_table *t = &cpprof__module_table;
    uintptr_t pcs[MAX_FRAMES + 1];
    enum cpprof__unwind_end end;
    size_t frames;
    size_t i;

    entries[0].lo = (uintptr_t)cfi->lo;
    entries[0].hi = (uintptr_t)cfi->hi;
    entries[0].hdr = (uintptr_t)cfi->hdr;
    for (i = 0; i < 2; i++) {
        t->buffers[i].entries = entries;
        t->buffers[i].n = 1;
    }
    cpprof__module_use_table(true);
    cpprof__unwind_forget();
    pcs[MAX_FRAMES] = 4711;
    frames = cpprof__unwind(regs, view, pcs, MAX_FRAMES, &end);
    expect(frames >= 1 && frames <= MAX_FRAMES && pcs[MAX_FRAMES] == 4711);
    expect(pcs[0] == regs->pc);
    expect(end != CPPROF__UNWIND_DEPTH || frames == MAX_FRAMES);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct cpprof__stack_view view;
    struct cpprof__regs regs;
    struct cpprof__cfi cfi;
    struct input in;
    uint8_t *section;

    if (n < sizeof in || n > sizeof in + 65535)
        return 0;
    memcpy(&in, data, sizeof in);
    n -= sizeof in;
    section = malloc(n);
    if (section == NULL)
        return 0;
    memcpy(section, data + sizeof in, n);
    cfi.lo = section;
    cfi.hi = section + n;
    cfi.hdr = section + (in.hdr_at < n ? in.hdr_at : n);
    set_up(&in, section, &regs, &view);
    step(&cfi, regs, &view);
    walk(&cfi, &regs, &view);
    free(section);
    return 0;
}
