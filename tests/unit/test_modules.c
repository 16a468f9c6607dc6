/* SPDX-License-Identifier: MIT */
/*
 * The table of modules that stands in for _dl_find_object: what the loader
 * lists is found, and what it does not list, the vdso; it grows and shrinks,
 * and a child that was forked in the middle of a refresh can refresh.
 *
 * The loader's list is made here: dl_iterate_phdr is wrapped.
 */
#include "arch/atomic.h"
#include "collect/signal/unwind/module.h"
#include "collect/signal/unwind/row_cache.h"
#include "collect/signal/unwind/unwind.h"

#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define BASE ((uintptr_t)1 << 40)
#define STEP ((uintptr_t)1 << 20)

typedef int
callback_fn(struct dl_phdr_info *, size_t, void *);

int
__wrap_dl_iterate_phdr(callback_fn *callback, void *arg);

static size_t n_listed;
static unsigned long long n_adds;
static unsigned long long n_subs;
static void (*in_the_middle)(void);

/* Module i: two segments of 64 KiB with a hole between them, and information
 * in the second; every third has none. */
static int
give(size_t i, callback_fn *callback, void *arg)
{
    ElfW(Phdr) headers[] = {
        {.p_type = PT_LOAD, .p_vaddr = 0x1000, .p_memsz = 0x10000},
        {.p_type = PT_LOAD, .p_vaddr = 0x40000, .p_memsz = 0x10000},
        {.p_type = PT_GNU_EH_FRAME, .p_vaddr = 0x41000, .p_memsz = 64}};
    struct dl_phdr_info info = {.dlpi_addr = BASE + i * STEP,
                                .dlpi_name = "made up",
                                .dlpi_phdr = headers,
                                .dlpi_phnum = i % 3 == 2 ? 2 : 3,
                                .dlpi_adds = n_adds,
                                .dlpi_subs = n_subs};

    return callback(&info, sizeof info, arg);
}

int
__wrap_dl_iterate_phdr(callback_fn *callback, void *arg)
{
    size_t i;

    for (i = 0; i < n_listed; i++) {
        /* Not in the order of their addresses. */
        int result = give((i * 7 + 3) % n_listed, callback, arg);

        if (result != 0)
            return result;
        if (in_the_middle != NULL && i == n_listed / 2)
            in_the_middle();
    }
    return 0;
}

static void
refresh(size_t n)
{
    n_listed = n;
    n_adds++;
    cpprof__unwind_refresh_modules();
}

static void
assert_module_is_found(size_t i)
{
    uintptr_t base = BASE + i * STEP;
    struct cpprof__cfi cfi = {0};

    assert_false(cpprof__module_find(base + 0xfff, &cfi));
    assert_true(cpprof__module_find(base + 0x1000, &cfi));
    assert_int_equal((uintptr_t)cfi.lo, base + 0x1000);
    assert_int_equal((uintptr_t)cfi.hi, base + 0x50000);
    assert_int_equal((uintptr_t)cfi.hdr, i % 3 == 2 ? 0 : base + 0x41000);
    assert_true(cpprof__module_find(base + 0x4ffff, &cfi));
    assert_false(cpprof__module_find(base + 0x50000, &cfi));
}

static void
every_listed_module_is_found(void **state)
{
    static const size_t sizes[] = {1, 2, 3, 100, 127, 128, 129, 1000, 2999, 5};
    struct cpprof__cfi cfi = {0};
    size_t k;
    size_t i;

    (void)state;
    for (k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        refresh(sizes[k]);
        for (i = 0; i < sizes[k]; i++)
            assert_module_is_found(i);
        assert_false(
            cpprof__module_find(BASE + sizes[k] * STEP + 0x1000, &cfi));
        assert_false(cpprof__module_find(0, &cfi));
    }
}

static bool
has_frames(const ElfW(Ehdr) * header)
{
    const ElfW(Phdr) *p = (const void *)((uintptr_t)header + header->e_phoff);
    int i;

    for (i = 0; i < header->e_phnum; i++)
        if (p[i].p_type == PT_GNU_EH_FRAME)
            return true;
    return false;
}

static void
vdso_is_found_where_it_is_not_listed(void **state)
{
    uintptr_t at = getauxval(AT_SYSINFO_EHDR);
    struct cpprof__fde fde;
    struct cpprof__cfi cfi = {0};
    uint32_t n;
    int32_t start;

    (void)state;
    if (at == 0) {
        printf("# skipped: there is no vdso\n");
        return;
    }
    refresh(3);
    assert_true(cpprof__module_find(at, &cfi));
    assert_int_equal((uintptr_t)cfi.lo, at);
    if (!has_frames((const void *)at)) { /* aarch64 leaves them out */
        assert_null(cfi.hdr);
        return;
    }
    assert_non_null(cfi.hdr);
    /* Its first function has an FDE. */
    memcpy(&n, cfi.hdr + 8, sizeof n);
    memcpy(&start, cfi.hdr + 12, sizeof start);
    assert_true(n > 0);
    assert_true(cpprof__cfi_find(
        &cfi, (uintptr_t)cfi.hdr + (uintptr_t)(intptr_t)start, &fde));
}

static void
rows_are_forgotten_when_modules_changed(void **state)
{
    uint32_t before;

    (void)state;
    refresh(3);
    before = load_acquire(&cpprof__row_generation);
    cpprof__unwind_refresh_modules();
    assert_int_equal(load_acquire(&cpprof__row_generation), before);
    n_subs++;
    cpprof__unwind_refresh_modules();
    assert_int_not_equal(load_acquire(&cpprof__row_generation), before);
}

/* The parent's refresh goes on for ever in the child, and nobody ends it. */
static int child_status;

static void
fork_in_the_middle(void)
{
    struct cpprof__cfi cfi = {0};
    pid_t child;

    in_the_middle = NULL;
    child = fork();
    if (child == 0) {
        refresh(50);
        _exit(cpprof__module_find(BASE + 49 * STEP + 0x1000, &cfi) ? 17 : 1);
    }
    waitpid(child, &child_status, 0);
}

static void
child_forked_in_the_middle_can_refresh(void **state)
{
    (void)state;
    refresh(10);
    in_the_middle = fork_in_the_middle;
    refresh(20);
    assert_true(WIFEXITED(child_status));
    assert_int_equal(WEXITSTATUS(child_status), 17);
    assert_module_is_found(19);
}

/* What the same thread does not do, for lack of a lock that it could wait for:
 * a refresh inside a refresh. */
static void
refresh_inside_a_refresh_is_left_out(void **state)
{
    (void)state;
    refresh(10);
    in_the_middle = cpprof__unwind_refresh_modules;
    n_listed = 20;
    n_adds++;
    cpprof__unwind_refresh_modules();
    in_the_middle = NULL;
    assert_module_is_found(19);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_listed_module_is_found),
        cmocka_unit_test(vdso_is_found_where_it_is_not_listed),
        cmocka_unit_test(rows_are_forgotten_when_modules_changed),
        cmocka_unit_test(child_forked_in_the_middle_can_refresh),
        cmocka_unit_test(refresh_inside_a_refresh_is_left_out),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    cpprof__module_use_table(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
