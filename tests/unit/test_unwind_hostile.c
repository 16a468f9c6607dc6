/* SPDX-License-Identifier: MIT */
/*
 * The unwinder where things are not as they should be: code without call-frame
 * information, registers and stacks full of nonsense, modules that are gone. It
 * must find what can be found, and never fault: these tests install no handler
 * for SIGSEGV.
 */
#include "cfi_fixture.h"
#include "unwind_fixture.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>

static struct walk result;
static uintptr_t stack_lo;
static uintptr_t stack_hi;

/* Code without information. */

/* A function made at run time: keeps a frame pointer, calls its argument. */
#if defined __x86_64__
static const uint8_t framed_code[] = {0x55,             /* push %rbp */
                                      0x48, 0x89, 0xe5, /* mov %rsp, %rbp */
                                      0x48, 0x83, 0xec,
                                      0x20,       /* sub $32, %rsp */
                                      0xff, 0xd7, /* call *%rdi */
                                      0xc9,       /* leave */
                                      0xc3};      /* ret */
#else
static const uint32_t framed_code[] = {
    0xa9bd7bfd,  /* stp x29, x30, [sp, #-48]! */
    0x910003fd,  /* mov x29, sp */
    0xd63f0000,  /* blr x0 */
    0xa8c37bfd,  /* ldp x29, x30, [sp], #48 */
    0xd65f03c0}; /* ret */
#endif

typedef void
call_fn(void (*)(void));

static call_fn *
make_code(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    call_fn *function;

    assert_true(p != MAP_FAILED);
    memcpy(p, framed_code, sizeof framed_code);
    __builtin___clear_cache(p, (char *)p + sizeof framed_code);
    assert_int_equal(mprotect(p, 4096, PROT_READ | PROT_EXEC), 0);
    memcpy(&function, &p, sizeof function);
    return function;
}

static call_fn *made_code;
static uintptr_t truth[4];
static bool direct;

static NOINLINE void
walk_in_callback(void)
{
    truth[0] = RETURNS_TO();
    walk_here(&result, direct);
    NOT_A_TAIL_CALL();
}

static NOINLINE void
call_made_code_again(void)
{
    truth[1] = RETURNS_TO();
    made_code(walk_in_callback);
    NOT_A_TAIL_CALL();
}

static NOINLINE void
call_made_code(void)
{
    truth[2] = RETURNS_TO();
    made_code(call_made_code_again);
    NOT_A_TAIL_CALL();
}

static void
walk_through_made_code(bool with_view)
{
    direct = with_view;
    call_made_code();
    assert_string_equal(end_name(result.end), "ROOT");
    /* walk, made code, again, made code, call_made_code, this */
    assert_int_equal(result.pcs[1], truth[0]);
    assert_int_equal(result.pcs[3], truth[1]);
    assert_int_equal(result.pcs[5], truth[2]);
    assert_true(result.pcs[1] == result.pcs[3]);
}

static void
made_code_is_followed_by_frame_pointer(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < 3; i++)
        walk_through_made_code(true);
    walk_through_made_code(false);
    cpprof__unwind_forget();
    walk_through_made_code(false);
}

/* Leaves of assembly, without information, that stop in the middle. */
void
bare_leaf(void);
void
bare_leaf_with_pushes(void);
#if defined __x86_64__
__asm__(".text\nbare_leaf:\n\tint3\n\tret\n"
        "bare_leaf_with_pushes:\n\t"
        "push %rbx\n\tpush %r12\n\tpush %rbp\n\tmov $77, %ebp\n\t"
        "int3\n\t"
        "pop %rbp\n\tpop %r12\n\tpop %rbx\n\tret\n");
#else
__asm__(".text\nbare_leaf:\n\tnop\n\tbrk #0\n\tret\n"
        "bare_leaf_with_pushes:\n\tnop\n\tbrk #0\n\tret\n");
#endif

static uintptr_t leaf_pc;

static void
on_trap(int signal, siginfo_t *info, void *context)
{
    struct cpprof__stack_view view;
    struct cpprof__regs regs;

    (void)signal;
    (void)info;
    cpprof__regs_from_ucontext(&regs, context);
    view = view_from(regs.sp, stack_hi);
    walk_regs(&result, &regs, &view, MAX_FRAMES);
    leaf_pc = regs.pc;
#if defined __aarch64__
    ((ucontext_t *)context)->uc_mcontext.pc += 4; /* brk does not advance */
#endif
}

static NOINLINE void
call_leaf(void (*leaf)(void))
{
    truth[0] = RETURNS_TO();
    leaf();
    NOT_A_TAIL_CALL();
}

static void
leaf_without_information_is_followed_to_its_caller(void **state)
{
    struct sigaction action = {0};
    void (*const leaves[])(void) = {bare_leaf, bare_leaf_with_pushes};
    size_t i;

    (void)state;
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO;
    assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
    for (i = 0; i < 2; i++) {
        call_leaf(leaves[i]);
        assert_string_equal(end_name(result.end), "ROOT");
        assert_int_equal(result.pcs[0], leaf_pc);
        assert_int_equal(result.pcs[2], truth[0]);
    }
}

/* A frame pointer that leads back to itself, or down. */
static void
looping_frame_pointers_end(void **state)
{
    uintptr_t words[8];
    struct cpprof__stack_view view;
    struct cpprof__regs regs = {0};
    uintptr_t inside = (uintptr_t)made_code + sizeof framed_code - 2;
    int to;

    (void)state;
    for (to = 0; to <= 4; to += 2) {
        words[2] = (uintptr_t)&words[to];
        words[3] = inside;
        words[0] = words[4] = (uintptr_t)&words[2];
        words[1] = words[5] = inside;
        regs.pc = inside;
        regs.sp = (uintptr_t)words;
        regs.fp = (uintptr_t)&words[2];
        regs.known = ~0ull;
        view = view_from(regs.sp, (uintptr_t)(words + 8));
        walk_regs(&result, &regs, &view, MAX_FRAMES);
        assert_true(result.n <= 4);
        assert_string_equal(end_name(result.end), "BROKEN");
    }
}

/* The same by call-frame information: a module of the test's own, in whose code
 * the CFA counts from fp, or is an expression that needs all registers. */
static uintptr_t frames[64];
static struct cpprof__module_table real_table;

static void
leave_section(void)
{
    cpprof__module_table = real_table;
    cpprof__module_use_table(false);
    cpprof__unwind_forget();
}

static void
use_section(const void *program, size_t n)
{
    static struct cpprof__module_entry entry;
    struct cpprof__module_table *t = &cpprof__module_table;
    uintptr_t lo = (uintptr_t)section.bytes;
    size_t i;

    make_section(&usual, program, n);
    entry.lo = lo < CODE ? lo : CODE;
    entry.hi = entry.lo + 1000000;
    entry.hdr = lo;
    for (i = 0; i < 2; i++) {
        t->buffers[i].entries = &entry;
        t->buffers[i].n = 1;
    }
    cpprof__module_use_table(true);
    cpprof__unwind_forget();
}

/* From frames[8], whose caller's fp is at frames + to. */
static void
walk_to(size_t to, bool with_view)
{
    struct cpprof__stack_view view = {0};
    struct cpprof__regs regs = {0};
    size_t i;

    for (i = 0; i < 64; i++)
        frames[i] = CODE + 100;
    frames[10] = frames[to] = (uintptr_t)(frames + to);
    regs.pc = CODE + 50;
    regs.sp = (uintptr_t)(frames + 8);
    regs.fp = (uintptr_t)(frames + 10);
    regs.known = (1ull << CPPROF__N_REGS) - 1;
    if (with_view)
        view = view_from((uintptr_t)frames, (uintptr_t)(frames + 64));
    walk_regs(&result, &regs, &view, MAX_FRAMES);
}

static void
looping_call_frame_information_ends(void **state)
{
    /* CFA: fp + 16; fp at CFA - 16, the return address at CFA - 8. */
    static const uint8_t plain[] = {
        0x0c, CPPROF__REG_FP,   16, 0x80 | CPPROF__REG_FP,
        2,    0x80 | RA_COLUMN, 1};
    static const uint8_t full[] = {0x0f,
                                   3,
                                   0x70 + CPPROF__REG_FP,
                                   16,
                                   0x96,
                                   0x80 | CPPROF__REG_FP,
                                   2,
                                   0x80 | RA_COLUMN,
                                   1};
    size_t to;

    (void)state;
    real_table = cpprof__module_table;
    for (to = 2; to <= 10; to += 8) {
        use_section(plain, sizeof plain);
        walk_to(to, true);
        assert_int_equal(result.n, 2);
        assert_string_equal(end_name(result.end), "BROKEN");
        use_section(full, sizeof full);
        walk_to(to, true);
        assert_int_equal(result.n, 2);
        assert_string_equal(end_name(result.end), "BROKEN");
        /* Where nothing is known to be one stack, a few steps down are
         * followed: they might lead to another. */
        use_section(plain, sizeof plain);
        walk_to(to, false);
        assert_true(result.n <= 12);
        assert_string_equal(end_name(result.end), "BROKEN");
    }
    leave_section();
}

/* A jump to nowhere: the return address is where the call left it. */
static NOINLINE void
walk_from_nowhere(uintptr_t pc)
{
    struct cpprof__stack_view view;
    struct cpprof__regs regs;

    truth[0] = RETURNS_TO();
    cpprof__regs_here(&regs);
    regs.pc = pc;
    /* As if a call from here had just happened. */
#if defined __x86_64__
    uintptr_t *top = (uintptr_t *)__builtin_alloca(64);

    top[0] = truth[0] + 1;
    regs.sp = (uintptr_t)top;
#else
    regs.link = truth[0] + 1;
#endif
    regs.known |= 7ull << 29;
    view = view_from(regs.sp, stack_hi);
    walk_regs(&result, &regs, &view, MAX_FRAMES);
    NOT_A_TAIL_CALL();
}

static void
jump_to_nowhere_is_followed_to_its_caller(void **state)
{
    static const uintptr_t nowhere[] = {0, 1, 4096, UINTPTR_MAX};
    size_t i;

    (void)state;
    for (i = 0; i < 4; i++) {
        walk_from_nowhere(nowhere[i]);
        assert_true(result.n >= 2);
        assert_int_equal(result.pcs[0], nowhere[i]);
        assert_int_equal(result.pcs[1], truth[0]);
    }
}

/* Nonsense. */

static uint64_t
random_u64(void)
{
    static uint64_t s = 88172645463325252u;

    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return s;
}

/* Addresses that mean something, to be near of. */
static uintptr_t places[64];
static size_t n_places;

static int
on_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    size_t i;

    (void)size;
    (void)arg;
    for (i = 0; i < info->dlpi_phnum && n_places + 2 < 60; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        places[n_places++] = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        places[n_places++] = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr +
                             info->dlpi_phdr[i].p_memsz;
    }
    return 0;
}

static void
find_places(void)
{
    n_places = 0;
    dl_iterate_phdr(on_module, NULL);
    places[n_places++] = stack_lo;
    places[n_places++] = stack_hi;
    places[n_places++] = 0;
    places[n_places++] = (uintptr_t)made_code;
}

static uintptr_t
random_address(void)
{
    uintptr_t near = places[random_u64() % n_places];

    switch (random_u64() % 5) {
    case 0:
        return random_u64();
    case 1:
        return near + random_u64() % 4096;
    case 2:
        return near - random_u64() % 4096;
    case 3:
        return near + random_u64() % 2000000;
    }
    return stack_hi - random_u64() % 8192;
}

static void
random_regs(struct cpprof__regs *regs)
{
    size_t i;

    for (i = 0; i < CPPROF__N_REGS; i++)
        regs->r[i] = random_address();
    regs->known = random_u64() % 4 == 0 ? random_u64() : ~0ull;
}

static void
assert_walk_is_sane(size_t max)
{
    assert_true(result.n >= 1);
    assert_true(result.n <= max);
    assert_true(result.end <= CPPROF__UNWIND_BROKEN);
}

static void
random_registers_never_fault(void **state)
{
    struct cpprof__stack_view view;
    struct cpprof__regs regs;
    size_t ends[3] = {0};
    int i;

    (void)state;
    for (i = 0; i < 100000; i++) {
        random_regs(&regs);
        view = view_from(stack_hi - 4096, stack_hi);
        if (i % 3 == 0)
            view = view_from(0, 0);
        walk_regs(&result, &regs, &view, 64);
        assert_walk_is_sane(64);
        ends[result.end]++;
        if (i % 1000 == 0)
            cpprof__unwind_forget();
    }
    printf("# ended at the root %zu, by depth %zu, broken %zu\n", ends[0],
           ends[1], ends[2]);
    assert_true(ends[2] > 0);
}

/* A copy of a good stack with some of its words overwritten. */
static uintptr_t good[2048];
static uintptr_t bad[2048];
static size_t n_good;
static struct cpprof__regs good_regs;

CPPROF__NO_SANITIZE static NOINLINE void
copy_words(uintptr_t *to, uintptr_t from, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        to[i] = stack_load(from + i * sizeof *to);
}

static NOINLINE void
copy_stack(int more)
{
    volatile char pad[48];

    pad[0] = (char)more;
    if (more > 0) {
        copy_stack(more - 1);
    } else {
        cpprof__regs_here(&good_regs);
        n_good = (stack_hi - good_regs.sp) / sizeof *good;
        n_good = n_good < 2048 ? n_good : 2048;
        copy_words(good, good_regs.sp, n_good);
    }
    pad[1] = pad[0];
}

/* Pointers into the stack that was copied point into the copy. */
static uintptr_t
moved(uintptr_t v)
{
    if (v - good_regs.sp < n_good * sizeof *bad)
        return v - good_regs.sp + (uintptr_t)bad;
    return v;
}

static void
damage_stack(struct cpprof__regs *regs, size_t n_damages)
{
    size_t i;

    for (i = 0; i < n_good; i++)
        bad[i] = moved(good[i]);
    *regs = good_regs;
    for (i = 0; i < CPPROF__N_REGS; i++)
        regs->r[i] = moved(regs->r[i]);
    for (i = 0; i < n_damages; i++)
        bad[random_u64() % n_good] = moved(random_address());
}

static void
damaged_stack_never_faults(void **state)
{
    struct cpprof__stack_view view;
    struct cpprof__regs regs;
    struct walk whole;
    size_t n_short = 0;
    int i;

    (void)state;
    copy_stack(20);
    damage_stack(&regs, 0);
    view = view_from((uintptr_t)bad, (uintptr_t)(bad + n_good));
    walk_regs(&whole, &regs, &view, MAX_FRAMES);
    assert_true(whole.n > 21);
    for (i = 0; i < 30000; i++) {
        damage_stack(&regs, 1 + random_u64() % 30);
        view = view_from((uintptr_t)bad, (uintptr_t)(bad + n_good));
        if (i % 2 == 0)
            view = view_from(0, 0);
        walk_regs(&result, &regs, &view, MAX_FRAMES);
        assert_walk_is_sane(MAX_FRAMES);
        assert_int_equal(result.pcs[0], whole.pcs[0]);
        n_short += result.n < whole.n;
    }
    assert_true(n_short > 100);
}

/* sp in a guard page, at the edges of mappings, at the end of memory. */
static void
unmapped_stack_is_broken(void **state)
{
    char *pages =
        mmap(NULL, 64 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uintptr_t at = (uintptr_t)pages;
    const uintptr_t sps[] = {
        at, at + 4096 - 8,   at + 8192 - 8,      at + 8192 - 4,     0,
        8,  UINTPTR_MAX - 3, UINTPTR_MAX - 4095, (uintptr_t)1 << 47};
    struct cpprof__stack_view view = {0};
    struct cpprof__regs regs;
    size_t refuse;
    size_t i;

    (void)state;
    assert_int_equal(mprotect(pages + 4096, 4096, PROT_READ | PROT_WRITE), 0);
    memset(pages + 4096, 0x5a, 4096);
    for (refuse = 0; refuse <= 1; refuse++) {
        cpprof__stack_view_refuse_copy(refuse);
        for (i = 0; i < sizeof sps / sizeof *sps; i++) {
            cpprof__regs_here(&regs);
            regs.sp = sps[i];
            regs.fp = sps[i] + 16;
            walk_regs(&result, &regs, &view, MAX_FRAMES);
            assert_int_equal(result.n, 1);
            assert_string_equal(end_name(result.end), "BROKEN");
        }
    }
    cpprof__stack_view_refuse_copy(false);
    munmap(pages, 64 * 4096);
}

/* Reading at the edge of what is mapped. */
static void
far_reads_stop_at_the_edge(void **state)
{
    char *pages = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct cpprof__stack_view view = {0};
    uintptr_t edge = (uintptr_t)pages + 4096;
    uintptr_t value;
    size_t refuse;

    (void)state;
    assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
    memset(pages, 0x5a, 4096);
    for (refuse = 0; refuse <= 1; refuse++) {
        cpprof__stack_view_refuse_copy(refuse);
        view.window_n = 0;
        assert_true(cpprof__stack_read_far(&view, edge - 8, &value));
        assert_int_equal(value, 0x5a5a5a5a5a5a5a5a);
        assert_true(cpprof__stack_read_far(&view, edge - 13, &value));
        assert_false(cpprof__stack_read_far(&view, edge - 7, &value));
        assert_false(cpprof__stack_read_far(&view, edge, &value));
        assert_false(cpprof__stack_read_far(&view, 0, &value));
        assert_false(cpprof__stack_read_far(&view, UINTPTR_MAX - 6, &value));
        assert_true(cpprof__stack_read_far(&view, edge - 4096, &value));
        assert_true(cpprof__stack_read_far(&view, edge - 4096 + 504, &value));
        assert_true(cpprof__stack_read_far(&view, edge - 4096 + 505, &value));
    }
    cpprof__stack_view_refuse_copy(false);
    munmap(pages, 2 * 4096);
}

/* The table may still list a module that was unloaded. */
static void
unloaded_module_in_the_table_never_faults(void **state)
{
    void *handle = dlopen("libresolv.so.2", RTLD_NOW);
    void *function = handle != NULL ? dlsym(handle, "ns_get16") : NULL;
    struct cpprof__regs regs;
    struct cpprof__stack_view view;
    struct cpprof__cfi found;

    (void)state;
    if (function == NULL) {
        printf("# skipped: there is no libresolv.so.2 to load\n");
        return;
    }
    cpprof__module_use_table(true);
    cpprof__unwind_refresh_modules();
    assert_true(cpprof__module_find((uintptr_t)function, &found));
    assert_non_null(found.hdr);
    dlclose(handle);
    assert_true(cpprof__module_find((uintptr_t)function, &found));
    cpprof__regs_here(&regs);
    regs.pc = (uintptr_t)function + 4;
    view = view_from(regs.sp, stack_hi);
    walk_regs(&result, &regs, &view, MAX_FRAMES);
    assert_walk_is_sane(MAX_FRAMES);
    cpprof__unwind_refresh_modules();
    assert_false(cpprof__module_find((uintptr_t)function, &found));
    cpprof__module_use_table(false);
    cpprof__unwind_forget();
}

static int
set_up(void **state)
{
    (void)state;
    own_stack(&stack_lo, &stack_hi);
    made_code = make_code();
    find_places();
    cpprof__unwind_refresh_modules();
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_code_is_followed_by_frame_pointer),
        cmocka_unit_test(leaf_without_information_is_followed_to_its_caller),
        cmocka_unit_test(looping_frame_pointers_end),
        cmocka_unit_test(looping_call_frame_information_ends),
        cmocka_unit_test(jump_to_nowhere_is_followed_to_its_caller),
        cmocka_unit_test(random_registers_never_fault),
        cmocka_unit_test(damaged_stack_never_faults),
        cmocka_unit_test(unmapped_stack_is_broken),
        cmocka_unit_test(far_reads_stop_at_the_edge),
        cmocka_unit_test(unloaded_module_in_the_table_never_faults),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, NULL);
}
