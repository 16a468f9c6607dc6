/* SPDX-License-Identifier: MIT */
/*
 * Every row of the call-frame information of all modules that this process has
 * loaded, and of a few large ones that it loads for this, against what libdw
 * makes of it: the CFA, and the rule of every register that is followed.
 *
 * Also counted: how many rows are short enough for the cache. The others cost a
 * walk its slow way.
 */
#include "collect/signal/unwind/cfi.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Rows looked at in one module. libpython has 47 000. */
#define MAX_ROWS 100000

struct module {
    const char *name;
    uintptr_t bias;
    struct cpprof__cfi cfi;
    Dwarf_CFI *libdw;
    size_t n_rows;
    size_t n_refused;
    size_t n_wrong;
    size_t n_full; /* CFA neither on sp nor on fp, nor a realigned frame's */
};

/* Rule kinds as libdw shows them. */
static int
libdw_rule(Dwarf_Frame *frame, unsigned reg, int64_t *value)
{
    Dwarf_Op memory[3];
    Dwarf_Op *ops;
    size_t n;

    *value = 0;
    if (dwarf_frame_register(frame, (int)reg, memory, &ops, &n) != 0)
        return -1;
    if (n == 0)
        return ops == memory ? CPPROF__RULE_UNDEFINED : CPPROF__RULE_SAME;
    if (ops != memory || ops[0].atom != DW_OP_call_frame_cfa) {
        *value = ops[0].atom == DW_OP_regx ? (int64_t)ops[0].number : 0;
        return ops[0].atom == DW_OP_regx ? CPPROF__RULE_REGISTER
                                         : CPPROF__RULE_AT_EXPRESSION;
    }
    if (n > 1 && ops[1].atom == DW_OP_plus_uconst)
        *value = (int64_t)ops[1].number;
    return ops[n - 1].atom == DW_OP_stack_value ? CPPROF__RULE_CFA_PLUS
                                                : CPPROF__RULE_AT_CFA;
}

/* Is our rule the same? None of ours is the ABI's, which libdw fills in. */
static bool
same_rule(Dwarf_Frame *frame, unsigned reg, int32_t rule)
{
    int64_t value;
    int theirs = libdw_rule(frame, reg, &value);
    int ours = rule & CPPROF__RULE_MASK;

    switch (ours) {
    case CPPROF__RULE_NONE:
        return theirs == CPPROF__RULE_SAME ||
               theirs == CPPROF__RULE_UNDEFINED || reg == CPPROF__REG_SP;
    case CPPROF__RULE_AT_EXPRESSION:
    case CPPROF__RULE_IS_EXPRESSION:
        return theirs == CPPROF__RULE_AT_EXPRESSION;
    case CPPROF__RULE_UNDEFINED:
    case CPPROF__RULE_SAME:
        return theirs == ours;
    }
    return theirs == ours && value == rule >> CPPROF__RULE_BITS;
}

static bool
same_cfa(Dwarf_Frame *frame, const struct cpprof__cfi_row *row)
{
    Dwarf_Op *ops;
    size_t n;

    if (dwarf_frame_cfa(frame, &ops, &n) != 0 || n == 0)
        return false;
    if (row->cfa_reg == CPPROF__CFA_EXPRESSION)
        return n > 1;
    if (n != 1)
        return false;
    if (ops[0].atom == DW_OP_bregx)
        return (int64_t)ops[0].number == row->cfa_reg &&
               (int64_t)ops[0].number2 == row->cfa_off;
    return ops[0].atom - DW_OP_breg0 == row->cfa_reg &&
           (int64_t)ops[0].number == row->cfa_off;
}

static bool
same_row(Dwarf_Frame *frame, const struct cpprof__cfi_row *row)
{
    unsigned i;

    for (i = 0; i < CPPROF__N_RULES; i++) {
        if (!same_rule(frame, CPPROF__RULE_FIRST + i, row->rules[i]))
            return false;
    }
    return same_cfa(frame, row);
}

static bool
is_short(const struct cpprof__fde *fde, const struct cpprof__cfi_row *row)
{
    int32_t offset;

    return row->cfa_reg == CPPROF__REG_SP || row->cfa_reg == CPPROF__REG_FP ||
           (row->cfa_reg == CPPROF__CFA_EXPRESSION &&
            cpprof__cfi_is_breg(&fde->origin, row->cfa_off, CPPROF__REG_FP,
                                true, &offset));
}

/* One row; returns where the next begins. */
static uintptr_t
check_row(struct module *m, const struct cpprof__fde *fde, uintptr_t pc)
{
    struct cpprof__cfi_row row;
    Dwarf_Frame *frame;
    Dwarf_Addr start;
    Dwarf_Addr end = pc - m->bias + 1;
    bool signal_frame;

    if (dwarf_cfi_addrframe(m->libdw, pc - m->bias, &frame) != 0)
        return fde->limit;
    m->n_rows++;
    if (!cpprof__cfi_run(fde, pc, &row))
        m->n_refused++;
    else if (!same_row(frame, &row) && m->n_wrong++ == 0)
        printf("# %s: differs at %lx\n", m->name, pc - m->bias);
    else
        m->n_full += !is_short(fde, &row);
    dwarf_frame_info(frame, &start, &end, &signal_frame);
    if (signal_frame != fde->origin.signal_frame)
        m->n_wrong++;
    free(frame);
    return end > pc - m->bias ? end + m->bias : fde->limit;
}

static void
check_function(struct module *m, uintptr_t pc)
{
    struct cpprof__fde fde;

    if (!cpprof__cfi_find(&m->cfi, pc, &fde)) {
        m->n_refused++;
        return;
    }
    if (fde.start != pc)
        m->n_wrong++;
    while (pc < fde.limit && m->n_rows < MAX_ROWS)
        pc = check_row(m, &fde, pc);
}

/* The functions of the search table (in the form that all linkers write). */
static void
check_functions(struct module *m)
{
    uint32_t n;
    uint32_t i;

    memcpy(&n, m->cfi.hdr + 8, sizeof n);
    for (i = 0; i < n && m->n_rows < MAX_ROWS; i++) {
        int32_t start;

        memcpy(&start, m->cfi.hdr + 12 + 8 * (size_t)i, sizeof start);
        check_function(m, (uintptr_t)m->cfi.hdr + (uintptr_t)(intptr_t)start);
    }
}

static size_t n_modules;
static size_t n_rows;
static size_t n_full;
static size_t n_bad;

static void
check_file(struct module *m, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;

    m->libdw = elf != NULL ? dwarf_getcfi_elf(elf) : NULL;
    if (m->libdw != NULL) {
        check_functions(m);
        printf("# %-28s %6zu rows, %4zu full, %zu refused, %zu wrong\n",
               m->name, m->n_rows, m->n_full, m->n_refused, m->n_wrong);
        n_modules++;
        n_rows += m->n_rows;
        n_full += m->n_full;
        n_bad += m->n_refused + m->n_wrong;
    }
    elf_end(elf);
    if (fd >= 0)
        close(fd);
}

static int
on_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct module m = {0};
    const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
    const char *slash = strrchr(path, '/');
    size_t i;

    (void)size;
    (void)arg;
    m.name = slash != NULL ? slash + 1 : path;
    m.bias = info->dlpi_addr;
    m.cfi.lo = (const uint8_t *)UINTPTR_MAX;
    for (i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const uint8_t *at = (const uint8_t *)(info->dlpi_addr + p->p_vaddr);

        if (p->p_type == PT_GNU_EH_FRAME)
            m.cfi.hdr = at;
        if (p->p_type == PT_LOAD && at < m.cfi.lo)
            m.cfi.lo = at;
        if (p->p_type == PT_LOAD && at + p->p_memsz > m.cfi.hi)
            m.cfi.hi = at + p->p_memsz;
    }
    if (m.cfi.hdr != NULL && m.cfi.hdr[3] == 0x3b)
        check_file(&m, path);
    return 0;
}

static void
every_row_is_what_libdw_says(void **state)
{
    static const char *const others[] = {"libcrypto.so.3", "libpython3.11.so.1",
                                         "libstdc++.so.6", "libsqlite3.so.0",
                                         "libm.so.6"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof others / sizeof *others; i++)
        dlopen(others[i], RTLD_LAZY);
    elf_version(EV_CURRENT);
    dl_iterate_phdr(on_module, NULL);
    printf("# %zu modules, %zu rows, %zu full (%.3f %%)\n", n_modules, n_rows,
           n_full, 100.0 * (double)n_full / (double)n_rows);
    assert_true(n_modules >= 3);
    assert_true(n_rows > 10000);
    assert_int_equal(n_bad, 0);
    /* At least 99 of 100 rows are short, or walks would be slow. */
    assert_true(n_full <= n_rows / 100);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_what_libdw_says),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
