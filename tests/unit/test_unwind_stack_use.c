/* SPDX-License-Identifier: MIT */
/*
 * What a walk needs of the stack of the thread that it interrupts: less than
 * 1 KiB, whichever way it goes. Measured on a painted stack.
 */
#include "cfi_fixture.h"
#include "unwind_fixture.h"

#include <ucontext.h>

#define LIMIT       1024
#define STACK_BYTES 65536
#define PAINT       0xa5

static uint8_t stack[STACK_BYTES] __attribute__((aligned(16)));
static ucontext_t outside;
static ucontext_t inside;
static struct cpprof__regs regs;
static struct cpprof__stack_view view;
static struct walk result;
static uintptr_t before; /* sp of the unwinder's caller */

static NOINLINE void
call_unwinder(void)
{
    struct cpprof__regs here;

    cpprof__regs_here(&here);
    before = here.sp;
    result.n =
        cpprof__unwind(&regs, &view, result.pcs, MAX_FRAMES, &result.end);
}

/* The bytes below the caller that were written. */
static size_t
measure(void)
{
    size_t i = 0;

    memset(stack, PAINT, sizeof stack);
    assert_int_equal(getcontext(&inside), 0);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = sizeof stack;
    inside.uc_link = &outside;
    makecontext(&inside, call_unwinder, 0);
    assert_int_equal(swapcontext(&outside, &inside), 0);
    while (stack[i] == PAINT)
        i++;
    return before - (uintptr_t)(stack + i);
}

static void
assert_is_small(const char *what)
{
    size_t n = measure();

    printf("# %s: %zu bytes, %zu frames, %s\n", what, n, result.n,
           end_name(result.end));
#if defined __OPTIMIZE__ && !defined __SANITIZE_ADDRESS__ &&                   \
    !defined __SANITIZE_THREAD__
    assert_true(n < LIMIT);
#endif
}

static void
ordinary_frames_need_little(void **state)
{
    uintptr_t lo;
    uintptr_t hi;

    (void)state;
    own_stack(&lo, &hi);
    cpprof__regs_here(&regs);
    view = view_from(regs.sp, hi);
    cpprof__unwind_forget();
    assert_is_small("unknown frames");
    assert_true(result.n > 3);
    assert_is_small("known frames");
    view = view_from(0, 0);
    assert_is_small("no stack in view");
    cpprof__unwind_forget();
    assert_is_small("unknown frames, no stack in view");
    assert_true(result.n > 3);
    NOT_A_TAIL_CALL();
}

static void
own_table_needs_little(void **state)
{
    (void)state;
    cpprof__regs_here(&regs);
    cpprof__module_use_table(true);
    cpprof__unwind_refresh_modules();
    cpprof__unwind_forget();
    assert_is_small("unknown frames, own table");
    assert_true(result.n > 3);
    cpprof__module_use_table(false);
}

static void
code_without_information_needs_little(void **state)
{
    static uintptr_t words[64];
    struct cpprof__regs saved = regs;
    size_t i;

    (void)state;
    for (i = 0; i < 64; i++)
        words[i] = (uintptr_t)qsort + 64 + i;
    regs.pc = (uintptr_t)words;
    regs.sp = (uintptr_t)words;
    regs.fp = (uintptr_t)(words + 4);
    assert_is_small("no information");
    regs = saved;
}

/* A module of our own, whose code is in `code`; frames on `frames`, each of
 * which returns into that code again. */
static uintptr_t frames[64];

static void
use_section(const void *program, size_t n, uint8_t table)
{
    static struct cpprof__module_entry entries[2];
    struct cpprof__module_table *t = &cpprof__module_table;
    uintptr_t lo = (uintptr_t)section.bytes;
    size_t i;

    begin_section(&section);
    put_cie(&section, &usual);
    put_fde(&section, CODE, 256, program, n);
    put_header(&section, 0x1b, table == 0xff ? 0xff : 3, table);
    lo = lo < CODE ? lo : CODE;
    entries[0].lo = lo;
    entries[0].hi = lo + 1000000;
    entries[0].hdr = (uintptr_t)section.bytes;
    for (i = 0; i < 2; i++) {
        t->buffers[i].entries = entries;
        t->buffers[i].n = 1;
    }
    memset(&regs, 0, sizeof regs);
    for (i = 0; i < 64; i++)
        frames[i] = CODE + 100;
    regs.known = (1ull << CPPROF__N_REGS) - 1;
    regs.pc = CODE + 50;
    regs.sp = (uintptr_t)frames;
    for (i = 0; i < CPPROF__N_REGS - 2; i++) {
        if (i != CPPROF__REG_SP)
            regs.r[i] = (uintptr_t)(frames + 8);
    }
    cpprof__unwind_forget();
}

static void
frames_that_need_all_registers_need_little(void **state)
{
    /* CFA: what is at A, by a few operations; the return address at CFA - 8,
     * all others by expressions. */
    static const uint8_t program[] = {
        0x0f, 9,    0x70 + A, 0,    0x12,      0x06,
        0x13, 0x38, 0x38,     0x1c, 0x22,      0x80 | RA_COLUMN,
        1,    0x10, B,        3,    0x70 + SP, 8,
        0x06, 0x16, B + 1,    3,    0x70 + SP, 8,
        0x06,
    };
    static const uint8_t tables[] = {0x3b, 0x04, 0xff};
    static const char *const names[] = {"all registers",
                                        "all registers, unusual table",
                                        "all registers, no table"};
    const struct cpprof__module_table real_table = cpprof__module_table;
    size_t i;

    (void)state;
    cpprof__module_use_table(true);
    view = view_from(0, 0);
    for (i = 0; i < 3; i++) {
        use_section(program, sizeof program, tables[i]);
        assert_is_small(names[i]);
        assert_true(result.n > 1);
    }
    cpprof__module_table = real_table;
    cpprof__module_use_table(false);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_frames_need_little),
        cmocka_unit_test(own_table_needs_little),
        cmocka_unit_test(code_without_information_needs_little),
        cmocka_unit_test(frames_that_need_all_registers_need_little),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    cpprof__unwind_refresh_modules();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
