/* SPDX-License-Identifier: MIT */
/*
 * The unwinder at every single instruction.
 *
 * With the trap flag set the processor raises SIGTRAP after each instruction;
 * the handler walks the interrupted stack twice, with cpprof and with libgcc's
 * unwinder, and the two must agree. This stops in every prologue, epilogue,
 * PLT entry and trampoline that the work comes through; the program is linked
 * for lazy binding, so the loader's symbol resolution is among it.
 *
 * The one difference that is right: libgcc stops at code without call-frame
 * information (the .init section of a library that is being loaded), where
 * cpprof goes on by guess and gets to the root. Then libgcc's stack must be the
 * beginning of cpprof's.
 *
 * Before glibc 2.35 libgcc asks the loader which module an address is in, which
 * takes the loader's lock. In the loader, at the instruction that takes this
 * lock, it would wait for ever; so there cpprof's stacks have no judge but the
 * root, which they must reach.
 */
#include "unwind_fixture.h"

#if defined __x86_64__ && !defined __SANITIZE_ADDRESS__ &&                     \
    !defined __SANITIZE_THREAD__

#include "trap_flag.h"

#include <dlfcn.h>
#include <regex.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <wchar.h>

struct counts {
    size_t steps;
    size_t same;
    size_t further; /* cpprof gets to the root and libgcc does not */
    size_t wrong;
};

static struct counts counts;
static struct walk ours;
static struct walk theirs;
static struct walk wrong[2]; /* the first disagreement: ours, theirs */
static uintptr_t stack_lo;
static uintptr_t stack_hi;
static bool in_view;
static bool ends_by_hand; /* on a stack that makecontext() made */
static bool is_judged = true;

/* Is walk the beginning of ours? On a stack that was made by hand, libgcc also
 * names what is behind its start, and what would have called that. The frame
 * tables of glibc before 2.35 are wrong between the two stacks of
 * swapcontext(), where both give up. */
static bool
agrees(struct walk *walk)
{
    if (ends_by_hand && walk->n >= ours.n) {
        walk->n = ours.n;
        if (walk->pcs[ours.n - 1] == ours.pcs[ours.n - 1] - 1)
            walk->pcs[ours.n - 1]++;
    }
#if !__GLIBC_PREREQ(2, 35)
    if (ends_by_hand && ours.n == 1 && walk->n == 1)
        return ours.pcs[0] == walk->pcs[0];
#endif
    return ours.end == CPPROF__UNWIND_ROOT && ours.n >= walk->n &&
           memcmp(ours.pcs, walk->pcs, walk->n * sizeof *ours.pcs) == 0;
}

static void
on_step(int signal, siginfo_t *info, void *context)
{
    struct cpprof__stack_view view = {0};
    struct cpprof__regs regs;

    (void)signal;
    (void)info;
    cpprof__regs_from_ucontext(&regs, context);
    if (in_view && regs.sp >= stack_lo && regs.sp < stack_hi)
        view = view_from(regs.sp, stack_hi);
    walk_regs(&ours, &regs, &view, MAX_FRAMES);
    theirs.n = 0;
    if (is_judged)
        walk_libgcc(&theirs);
    begin_at(&theirs, regs.pc);
    counts.steps++;
    if (agrees(&theirs)) {
        counts.same += ours.n == theirs.n;
        counts.further += ours.n > theirs.n;
    } else if (counts.wrong++ == 0) {
        wrong[0] = ours;
        wrong[1] = theirs;
    }
}

static void
print_frame(const struct walk *walk, size_t i)
{
    Dl_info info = {0};

    if (i >= walk->n)
        return;
    dladdr((void *)walk->pcs[i], &info);
    printf(" %lx (%s+%lx %s)", walk->pcs[i], info.dli_fname,
           walk->pcs[i] - (uintptr_t)info.dli_fbase,
           info.dli_sname ? info.dli_sname : "");
}

static void
print_wrong(void)
{
    size_t i;

    printf("# ended: %s; ours | libgcc's:\n", end_name(wrong[0].end));
    for (i = 0; i < wrong[0].n || i < wrong[1].n; i++) {
        printf("#");
        print_frame(&wrong[0], i);
        printf(" |");
        print_frame(&wrong[1], i);
        printf("\n");
    }
}

static void
step_through(void (*work)(void), size_t at_least)
{
    counts = (struct counts){0};
    cpprof__unwind_forget();
    trap_flag_on();
    work();
    trap_flag_off();
    printf("# %zu instructions: %zu same, %zu further than libgcc, %zu wrong\n",
           counts.steps, counts.same, counts.further, counts.wrong);
    if (counts.wrong > 0)
        print_wrong();
    assert_true(counts.steps >= at_least);
    assert_int_equal(counts.wrong, 0);
    /* More would be libgcc's failure to follow what it can follow. */
    assert_true(!is_judged || counts.further <= counts.steps / 10);
}

/* The work. */

static volatile double sink;
static char buffer[8192];

static int
compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void
sorting(void)
{
    int values[24];
    int i;

    for (i = 0; i < 24; i++)
        values[i] = i * 7 % 24;
    qsort(values, 24, sizeof *values, compare);
    sink = values[3];
}

static void
formatting(void)
{
    snprintf(buffer, sizeof buffer, "%d %s %.17g %a %ls", 12, "x", 1.1, 2.2,
             L"wide");
    sink = strtod(buffer, NULL);
    sscanf("1 2.5 word", "%*d %*f %100s", buffer);
}

static void
matching(void)
{
    regmatch_t m[4];
    regex_t r;

    if (regcomp(&r, "a*b$", 0) == 0)
        sink = regexec(&r, "aab", 4, m, 0);
    regfree(&r);
}

static void
moving(void)
{
    size_t n;

    for (n = 1; n < 4096; n *= 3) {
        memmove(buffer + 64, buffer, n);
        memset(buffer + 3, 'a', n);
        sink = (double)(strlen(buffer) + (memchr(buffer, 'z', n) != NULL));
    }
}

static void
allocating(void)
{
    void *volatile p[40];
    size_t i;

    for (i = 0; i < 40; i++)
        p[i] = malloc(i * i * 8);
    for (i = 0; i < 40; i++)
        free(p[i]);
}

/* Not called before: each of these goes through the loader once. */
static void
binding(void)
{
    char *end;

    sink = (double)strtoull("123", &end, 10);
    sink = (double)strcspn("abc", "c");
    sink = (double)wcslen(L"abc");
    sink = (double)labs(-3);
    sink = (double)getppid();
}

static volatile int n_handled;

static void
on_signal(int signal)
{
    n_handled += signal > 0;
}

static void
signalling(void)
{
    /* Before glibc 2.35 raise() blocks all signals, and a step is one. */
#if !__GLIBC_PREREQ(2, 35)
#define raise(signal) kill(getpid(), signal)
#endif
    raise(SIGUSR1);
    raise(SIGUSR2); /* on the alternate stack */
}

static ucontext_t outside;
static ucontext_t inside;

static void
coroutine(void)
{
    sorting();
    swapcontext(&inside, &outside);
    moving();
}

static void
switching(void)
{
    static char stack[65536];

    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = sizeof stack;
    inside.uc_link = NULL;
    makecontext(&inside, coroutine, 0);
    swapcontext(&outside, &inside);
}

static sigjmp_buf jump;

static __attribute__((noinline)) void
jump_back(int n)
{
    volatile char pad[100];

    pad[n] = 1;
    if (n == 0)
        siglongjmp(jump, 1);
    jump_back(n - 1);
    sink = pad[n];
}

static void
jumping(void)
{
    if (sigsetjmp(jump, 1) == 0)
        jump_back(5);
}

static void
loading(void)
{
    void *handle = dlopen("libresolv.so.2", RTLD_NOW);

    if (handle != NULL) {
        sink = dlsym(handle, "ns_get16") != NULL;
        dlclose(handle);
    }
}

static void
timing(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    sink = (double)t.tv_nsec;
}

static const struct work {
    const char *name;
    void (*run)(void);
    size_t at_least; /* instructions */
} works[] = {
    {"sorting", sorting, 2000},       {"formatting", formatting, 3000},
    {"matching", matching, 2000},     {"moving", moving, 300},
    {"allocating", allocating, 1000}, {"binding", binding, 1000},
    {"signalling", signalling, 100},  {"jumping", jumping, 50},
    {"timing", timing, 30},           {"loading", loading, 20000},
};

static void
step_through_all(void)
{
    size_t i;

    for (i = 0; i < sizeof works / sizeof *works; i++) {
        printf("# %s\n", works[i].name);
#if !__GLIBC_PREREQ(2, 35)
        is_judged = works[i].run != loading;
#endif
        step_through(works[i].run, works[i].at_least);
    }
    is_judged = true;
}

static void
every_instruction_agrees_with_libgcc(void **state)
{
    (void)state;
    in_view = true;
    step_through_all();
}

static void
every_instruction_agrees_without_a_view(void **state)
{
    (void)state;
    in_view = false;
    step_through(sorting, 2000);
    step_through(signalling, 30);
}

static void
every_instruction_of_a_coroutine_ends_at_its_start(void **state)
{
    (void)state;
    in_view = true;
    ends_by_hand = true;
    step_through(switching, 2000);
    ends_by_hand = false;
}

static void
install(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = {0};

    action.sa_handler = handler;
    action.sa_flags = flags;
    assert_int_equal(sigaction(signal, &action, NULL), 0);
}

static int
set_up(void **state)
{
    struct sigaction action = {0};
    stack_t alternate = {0};

    (void)state;
    action.sa_sigaction = on_step;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, NULL);
    alternate.ss_size = 65536;
    alternate.ss_sp = mmap(NULL, alternate.ss_size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&alternate, NULL);
    install(SIGUSR1, on_signal, 0);
    install(SIGUSR2, on_signal, SA_ONSTACK);
    own_stack(&stack_lo, &stack_hi);
    walk_libgcc(&theirs); /* now it has loaded what it needs */
    cpprof__unwind_refresh_modules();
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_agrees_with_libgcc),
        cmocka_unit_test(every_instruction_agrees_without_a_view),
        cmocka_unit_test(every_instruction_of_a_coroutine_ends_at_its_start),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, NULL);
}

#else

int
main(void)
{
    puts("1..0 # SKIP needs the trap flag of x86-64, and no sanitizer");
    return 0;
}

#endif
