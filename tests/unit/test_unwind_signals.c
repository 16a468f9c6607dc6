/* SPDX-License-Identifier: MIT */
/*
 * The unwinder through signal handlers: on the same stack, on an alternate one,
 * one handler inside another; and from inside handlers of a timer, at whatever
 * instruction of a varied load it hits.
 */
#include "unwind_fixture.h"

#include "arch/find_object.h"

#include <dlfcn.h>
#include <math.h>
#include <regex.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <wchar.h>

static uintptr_t stack_lo;
static uintptr_t stack_hi;

static void
install(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {0};

    action.sa_sigaction = handler;
    action.sa_flags = flags | SA_SIGINFO | SA_RESTART;
    assert_int_equal(sigaction(signal, &action, NULL), 0);
}

/* A chain of calls, then signals, then a walk in the handler. */

static uintptr_t truth[16];
static size_t n_truth;
static struct walk result;
static int first_signal;
static bool direct;
static uintptr_t handler_returns_to;
static uintptr_t interrupted_at;

static NOINLINE void
chain(int more)
{
    truth[n_truth++] = RETURNS_TO();
    if (more > 0)
        chain(more - 1);
    else
        raise(first_signal);
    NOT_A_TAIL_CALL();
}

static void
on_walk(int signal, siginfo_t *info, void *context)
{
    struct cpprof__stack_view view = {0};
    struct cpprof__regs regs;

    (void)signal;
    (void)info;
    cpprof__regs_from_ucontext(&regs, context);
    interrupted_at = regs.pc;
    handler_returns_to = RETURNS_TO() + 1;
    cpprof__regs_here(&regs);
    if (direct && regs.sp >= stack_lo && regs.sp < stack_hi)
        view = view_from(regs.sp, stack_hi);
    walk_regs(&result, &regs, &view, MAX_FRAMES);
    NOT_A_TAIL_CALL();
}

static void
on_raise_another(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    (void)context;
    raise(SIGUSR1);
    NOT_A_TAIL_CALL();
}

/* The chain stands in the walk, as one piece, and the walk ends at the root.
 * Between it and the handler are at least `between` frames. */
static void
assert_chain_is_found(size_t between)
{
    size_t i = 0;
    size_t k;

    /* Nothing called what handlers return to, nor what was interrupted: these
     * addresses are exact. */
    assert_true(result.n > 3);
    assert_int_equal(result.pcs[1], handler_returns_to);
    assert_int_equal(result.pcs[2], interrupted_at);
    while (i < result.n && result.pcs[i] != truth[n_truth - 1])
        i++;
    assert_true(i + n_truth < result.n);
    assert_true(i > between);
    for (k = 0; k < n_truth; k++)
        assert_int_equal(result.pcs[i + k], truth[n_truth - 1 - k]);
    assert_string_equal(end_name(result.end), "ROOT");
}

static void
signal_in_chain(int signal, bool with_view)
{
    n_truth = 0;
    first_signal = signal;
    direct = with_view;
    chain(4);
}

static void
handler_is_followed_to_what_it_interrupted(void **state)
{
    (void)state;
    install(SIGUSR1, on_walk, 0);
    signal_in_chain(SIGUSR1, true);
    assert_chain_is_found(2);
    signal_in_chain(SIGUSR1, false);
    assert_chain_is_found(2);
}

static void
handler_on_alternate_stack_is_followed_to_the_other(void **state)
{
    stack_t alternate = {0};
    stack_t none = {0};

    (void)state;
    alternate.ss_size = 65536;
    alternate.ss_sp = mmap(NULL, alternate.ss_size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(sigaltstack(&alternate, NULL), 0);
    install(SIGUSR1, on_walk, SA_ONSTACK);
    signal_in_chain(SIGUSR1, true);
    assert_chain_is_found(2);
    signal_in_chain(SIGUSR1, false);
    assert_chain_is_found(2);
    /* From the other stack up to this one, through two handlers. */
    install(SIGUSR2, on_raise_another, 0);
    signal_in_chain(SIGUSR2, true);
    assert_chain_is_found(6);
    none.ss_flags = SS_DISABLE;
    assert_int_equal(sigaltstack(&none, NULL), 0);
    munmap(alternate.ss_sp, alternate.ss_size);
}

static void
handler_inside_handler_is_followed_through_both(void **state)
{
    (void)state;
    install(SIGUSR1, on_walk, 0);
    install(SIGUSR2, on_raise_another, 0);
    signal_in_chain(SIGUSR2, true);
    assert_chain_is_found(6);
}

/* A program may bring the code that its handlers return to. This is not the
 * one that the unwinder knows by sight: it has to go by the call-frame
 * information, an expression for each register, as in glibc's. */
#if defined __x86_64__
void
own_sigreturn(void);
#define SAVED(reg, at)                                                         \
    ".cfi_escape 0x10, " #reg ", 3, 0x77, (" #at ") % 128 | 128, " #at         \
    " / 128\n\t"
__asm__(".text\n\t"
        ".cfi_startproc\n\t"
        ".cfi_signal_frame\n\t"
        ".cfi_escape 0x0f, 4, 0x77, 160 % 128 | 128, 160 / 128, 0x06\n\t" SAVED(
            8, 40) SAVED(9, 48) SAVED(10, 56) SAVED(11, 64) SAVED(12, 72)
            SAVED(13, 80) SAVED(14, 88) SAVED(15, 96) SAVED(5, 104)
                SAVED(4, 112) SAVED(6, 120) SAVED(3, 128) SAVED(1, 136)
                    SAVED(0, 144) SAVED(2, 152) SAVED(7, 160)
                        SAVED(16, 168) "nop\n"
                                       "own_sigreturn:\n\t"
                                       "mov $15, %eax\n\t"
                                       "syscall\n\t"
                                       ".cfi_endproc\n");

static void
install_with_own_sigreturn(int signal)
{
    struct {
        void (*handler)(int, siginfo_t *, void *);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } action = {on_walk, SA_SIGINFO | 0x04000000 /* SA_RESTORER */,
                own_sigreturn, 0};

    assert_int_equal(
        cpprof__syscall(SYS_rt_sigaction, signal, (long)&action, 0, 8, 0, 0),
        0);
}

static void
other_sigreturn_is_followed_by_its_information(void **state)
{
    (void)state;
    install_with_own_sigreturn(SIGUSR1);
    signal_in_chain(SIGUSR1, true);
    assert_int_equal(handler_returns_to, (uintptr_t)own_sigreturn);
    assert_chain_is_found(2);
    signal_in_chain(SIGUSR1, false);
    assert_chain_is_found(2);
}
#else
static void
other_sigreturn_is_followed_by_its_information(void **state)
{
    (void)state;
    printf("# skipped: the kernel brings the code that handlers return to\n");
    return;
}
#endif

/* A timer hits a load at any instruction. */

#define MAX_WRONG 4

struct storm {
    size_t points;
    size_t wanted;
    size_t same;
    size_t further; /* cpprof gets to the root and libgcc does not */
    size_t in_vdso;
    size_t n_wrong;
    struct walk wrong[MAX_WRONG][2];
};

static struct storm storm;
static timer_t timer;
static struct walk ours;
static struct walk theirs;
static uintptr_t vdso_lo;
static uintptr_t vdso_hi;

static bool
is_vdso(uintptr_t pc)
{
    return pc >= vdso_lo && pc < vdso_hi;
}

static void
find_vdso(void)
{
    uintptr_t at = getauxval(AT_SYSINFO_EHDR);
    struct cpprof__cfi module;

    if (at != 0 && cpprof__module_find(at, &module)) {
        vdso_lo = (uintptr_t)module.lo;
        vdso_hi = (uintptr_t)module.hi;
    }
}

/* From here: where a handler takes longer than any interval, as under an
 * emulator on a machine that does other things, the load gets on nevertheless.
 */
static void
start_timer(void)
{
    const struct itimerspec when = {{0, 0}, {0, 150000}};

    assert_int_equal(timer_settime(timer, 0, &when, NULL), 0);
}

static void
on_timer(int signal, siginfo_t *info, void *context)
{
    struct cpprof__stack_view view = {0};
    struct cpprof__regs regs;

    (void)signal;
    (void)info;
    cpprof__regs_from_ucontext(&regs, context);
    if (regs.sp >= stack_lo && regs.sp < stack_hi)
        view = view_from(regs.sp, stack_hi);
    walk_regs(&ours, &regs, &view, MAX_FRAMES);
    walk_libgcc(&theirs);
    begin_at(&theirs, regs.pc);
    storm.points++;
    storm.in_vdso += is_vdso(regs.pc);
    if (ours.end == CPPROF__UNWIND_ROOT && ours.n >= theirs.n &&
        memcmp(ours.pcs, theirs.pcs, theirs.n * sizeof *ours.pcs) == 0) {
        storm.same += ours.n == theirs.n;
        storm.further += ours.n > theirs.n;
    } else if (storm.n_wrong++ < MAX_WRONG) {
        storm.wrong[storm.n_wrong - 1][0] = ours;
        storm.wrong[storm.n_wrong - 1][1] = theirs;
    }
    if (storm.points < storm.wanted)
        start_timer();
}

static void
make_timer(void)
{
    struct sigevent event = {0};

    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGALRM;
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
}

static double
now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Run work until there are as many points, 20 s at most. */
static void
storm_over(void (*work)(void), size_t points)
{
    double end = now_s() + 20;

    memset(&storm, 0, sizeof storm);
    storm.wanted = points;
    install(SIGALRM, on_timer, 0);
    walk_libgcc(&theirs); /* it loads what it needs */
    make_timer();
    start_timer();
    while (storm.points < points && now_s() < end)
        work();
    timer_delete(timer);
    printf("# %zu points: %zu same as libgcc, %zu further, %zu wrong\n",
           storm.points, storm.same, storm.further, storm.n_wrong);
    if (storm.n_wrong > 0)
        print_walks(&storm.wrong[0][0], &storm.wrong[0][1]);
    assert_true(storm.points > points / 10);
}

static volatile double sink;
static char text[65536];
static char other[65536];

static int
compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void
sort(void)
{
    static int values[3000];
    int i;

    for (i = 0; i < 3000; i++)
        values[i] = rand();
    qsort(values, 3000, sizeof *values, compare);
}

static void
format(void)
{
    int i;

    for (i = 0; i < 200; i++) {
        snprintf(text, sizeof text, "%d %s %.17g %a %ls", i, "x", i / 3.0,
                 i * 2.2, L"wide");
        sink += strtod(text, NULL);
    }
}

static void
match(void)
{
    regmatch_t m[4];
    regex_t r;
    int i;

    if (regcomp(&r, "(a|b)*c([0-9]+)(x|y)*[[:alpha:]]+$", REG_EXTENDED) != 0)
        return;
    for (i = 0; i < 20; i++)
        sink += regexec(&r, "ababababc123456xyxyabcdef", 4, m, 0);
    regfree(&r);
}

static void
move(void)
{
    int i;

    for (i = 0; i < 100; i++) {
        memcpy(text, other, sizeof text);
        memset(other, i, (size_t)1 << i % 16);
        sink += (double)strlen(other) + (memchr(text, 7, 100) != NULL);
    }
}

/* Calls into libm, some of them hand-written (Go's TestMathBigDivide). */
static void
calculate(void)
{
    int i;

    for (i = 1; i < 500; i++)
        sink += sin(i) + exp(i % 50) + pow(i, 1.5) + log(i) + fmod(1e300, i);
}

static void
allocate(void)
{
    void *p[300];
    size_t i;

    for (i = 0; i < 300; i++)
        p[i] = malloc(i * 17);
    for (i = 0; i < 300; i++)
        free(p[i]);
}

/* Not on aarch64: there libgcc reads the code at a pc that it finds no module
 * for, to see whether it is a signal's trampoline, and faults when there is
 * none, as may be while a library is being loaded. */
static void
load(void)
{
#if !defined __aarch64__
    void *handle = dlopen("libresolv.so.2", RTLD_NOW);

    if (handle != NULL)
        dlclose(handle);
#endif
    cpprof__unwind_forget();
}

static NOINLINE int
recurse(int n)
{
    volatile char pad[64];

    pad[0] = (char)n;
    return n > 0 ? recurse(n - 1) + pad[0] : (int)strlen(other);
}

static void
walk(void)
{
    struct walk w;

    walk_libgcc(&w);
    sink += (double)w.n + recurse(60);
}

static void
varied_load(void)
{
    sort();
    format();
    match();
    move();
    calculate();
    allocate();
    /* Before glibc 2.35 libgcc takes the loader's lock, which it would wait for
     * for ever in a handler that comes while it is being taken. */
    if (cpprof__has_find_object()) {
        walk();
        load();
    }
}

static void
random_points_agree_with_libgcc(void **state)
{
    (void)state;
    storm_over(varied_load, 5000);
    assert_true(storm.n_wrong == 0);
    /* libgcc stops where a library is being loaded and has no information. */
    assert_true(storm.further <= storm.points / 100);
}

static void
read_clocks(void)
{
    struct timespec t;
    int i;

    for (i = 0; i < 10000; i++) {
        clock_gettime(CLOCK_MONOTONIC, &t);
        clock_gettime(CLOCK_REALTIME, &t);
    }
    sink += (double)t.tv_nsec;
}

/* Go's TestTimeVDSO: its frames are there once, and their caller after them. */
static void
vdso_is_followed_to_its_caller(void **state)
{
    (void)state;
    if (vdso_lo == vdso_hi) {
        printf("# skipped: no vdso here\n");
        return;
    }
    storm_over(read_clocks, 1000);
    printf("# %zu in the vdso\n", storm.in_vdso);
    assert_int_equal(storm.n_wrong, 0);
    assert_true(storm.in_vdso > storm.points / 20);
}

static int
set_up(void **state)
{
    (void)state;
    own_stack(&stack_lo, &stack_hi);
    cpprof__unwind_refresh_modules();
    find_vdso();
    return 0;
}

/* ThreadSanitizer keeps signals back and calls handlers as plain functions,
 * with a context that they do not return to. */
#ifdef __SANITIZE_THREAD__
#define HANDLERS_ARE_REAL 0
#else
#define HANDLERS_ARE_REAL 1
#endif

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handler_is_followed_to_what_it_interrupted),
        cmocka_unit_test(handler_on_alternate_stack_is_followed_to_the_other),
        cmocka_unit_test(handler_inside_handler_is_followed_through_both),
        cmocka_unit_test(other_sigreturn_is_followed_by_its_information),
        cmocka_unit_test(random_points_agree_with_libgcc),
        cmocka_unit_test(vdso_is_followed_to_its_caller),
    };

    if (!HANDLERS_ARE_REAL) {
        puts("1..0 # SKIP signals are not delivered as they come");
        return 0;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, NULL);
}
