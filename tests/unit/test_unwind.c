/* SPDX-License-Identifier: MIT */
/*
 * The unwinder on stacks of ordinary calls: every frame must return to where
 * the compiler says that it returns to, and the last one is the outermost.
 *
 * Each function of a chain notes its return address in `truth`; a walk from
 * the innermost must list exactly those after its own frame.
 */
#include "unwind_fixture.h"

#include <alloca.h>
#include <errno.h>
#include <sys/mman.h>
#include <ucontext.h>

static uintptr_t truth[MAX_FRAMES];
static size_t n_truth;
static struct walk result;
static int direct = 1;
static volatile int sink;

/* The innermost function of all chains. */
static NOINLINE void
end_of_chain(void)
{
    truth[n_truth++] = RETURNS_TO();
    walk_here(&result, direct);
    NOT_A_TAIL_CALL();
}

/* truth was noted from the outermost to the innermost. */
static void
assert_walk_is_the_truth(void)
{
    size_t i;

    assert_true(result.n > n_truth);
    for (i = 0; i < n_truth; i++) {
        if (result.pcs[1 + i] != truth[n_truth - 1 - i])
            printf("# frame %zu of %zu\n", i + 1, result.n);
        assert_int_equal(result.pcs[1 + i], truth[n_truth - 1 - i]);
    }
    assert_string_equal(end_name(result.end), "ROOT");
}

/* Functions that use their stack in different ways. */

static NOINLINE void
plain(int more)
{
    truth[n_truth++] = RETURNS_TO();
    if (more > 0)
        plain(more - 1);
    else
        end_of_chain();
    NOT_A_TAIL_CALL();
}

static NOINLINE void
with_alloca(int n)
{
    volatile char *p = alloca((size_t)n * 40 + 1);

    truth[n_truth++] = RETURNS_TO();
    p[n] = 1;
    plain(2);
    sink = p[n];
}

static NOINLINE void
with_aligned_local(int n)
{
    volatile char p[256] __attribute__((aligned(128)));

    truth[n_truth++] = RETURNS_TO();
    assert_int_equal((uintptr_t)p % 128, 0);
    p[n] = 1;
    with_alloca(n);
    sink = p[n];
}

/* Arguments on the stack below a realigned frame: the compiler needs a second
 * pointer to find them, and its CFI becomes an expression. */
static NOINLINE int
with_aligned_local_and_arguments(int a, int b, int c, int d, int e, int f,
                                 int g, int h, int n)
{
    volatile char p[256] __attribute__((aligned(64)));
    volatile char *q = alloca((size_t)n * 8 + 1);

    truth[n_truth++] = RETURNS_TO();
    p[n] = q[n] = (char)(a + b + c);
    with_aligned_local(n);
    return p[n] + q[n] + d + e + f + g + h + n;
}

static NOINLINE void
with_large_frame(int n)
{
    volatile char p[300000];

    truth[n_truth++] = RETURNS_TO();
    p[n] = p[sizeof p - 1 - (size_t)n] = 1;
    sink = with_aligned_local_and_arguments(1, 2, 3, 4, 5, 6, 7, 8, n);
    sink = p[n];
}

/* Enough values alive across the call to fill all registers that a callee has
 * to keep. */
static NOINLINE long
with_all_registers(const volatile long *v)
{
    long a = v[0], b = v[1], c = v[2], d = v[3], e = v[4], f = v[5], g = v[6];
    long h = v[7], i = v[8], j = v[9], k = v[10], l = v[11], m = v[12];

    truth[n_truth++] = RETURNS_TO();
    with_large_frame(3);
    return a + b + c * d + e * f + g * h + i * j + k * l + m;
}

static void
run_chain(void)
{
    static const volatile long values[13] = {1, 2, 3};

    n_truth = 0;
    sink = (int)with_all_registers(values);
    NOT_A_TAIL_CALL();
}

static void
every_kind_of_frame_is_followed_to_the_root(void **state)
{
    (void)state;
    run_chain();
    assert_walk_is_the_truth();
}

static void
no_stack_in_view_gives_the_same_stack(void **state)
{
    (void)state;
    direct = 0;
    run_chain();
    direct = 1;
    assert_walk_is_the_truth();
}

static void
refused_copy_gives_the_same_stack(void **state)
{
    (void)state;
    cpprof__stack_view_refuse_copy(true);
    direct = 0;
    run_chain();
    direct = 1;
    cpprof__stack_view_refuse_copy(false);
    assert_walk_is_the_truth();
}

static void
own_module_table_gives_the_same_stack(void **state)
{
    (void)state;
    cpprof__module_use_table(true);
    cpprof__unwind_refresh_modules();
    cpprof__unwind_forget();
    run_chain();
    assert_walk_is_the_truth();
    cpprof__unwind_refresh_modules();
    cpprof__module_use_table(false);
    cpprof__unwind_forget();
    run_chain();
    assert_walk_is_the_truth();
}

static int
compare_and_walk(const void *a, const void *b)
{
    if (result.n == 0) {
        truth[0] = RETURNS_TO();
        n_truth = 1;
        end_of_chain();
    }
    return *(const int *)a - *(const int *)b;
}

static void
callback_from_libc_is_followed_through_libc(void **state)
{
    int values[20] = {3, 1, 2};
    struct walk here;

    (void)state;
    result.n = 0;
    walk_here(&here, true);
    qsort(values, 20, sizeof *values, compare_and_walk);
    assert_walk_is_the_truth();
    /* All that is outside of this function is outside of the callback. */
    assert_true(result.n > here.n + 2);
    assert_memory_equal(here.pcs + 1, result.pcs + result.n - here.n + 1,
                        (here.n - 1) * sizeof *here.pcs);
}

/* Depth. */

static struct cpprof__regs deep_regs;
static uintptr_t pcs[MAX_FRAMES + 1];

static NOINLINE int
recurse(int n, void (*at_the_end)(void))
{
    volatile char pad[32];

    pad[0] = (char)n;
    if (n == 0)
        at_the_end();
    else
        recurse(n - 1, at_the_end);
    return pad[0];
}

static NOINLINE void
walk_300(void)
{
    struct cpprof__stack_view view;
    uintptr_t lo;
    uintptr_t hi;
    enum cpprof__unwind_end end;
    size_t i;

    own_stack(&lo, &hi);
    cpprof__regs_here(&deep_regs);
    view = view_from(deep_regs.sp, hi);
    pcs[300] = 1234;
    assert_int_equal(cpprof__unwind(&deep_regs, &view, pcs, 300, &end), 300);
    assert_string_equal(end_name(end), "DEPTH");
    assert_int_equal(pcs[300], 1234);
    /* The recursion is never folded. */
    for (i = 5; i < 300; i++)
        assert_int_equal(pcs[i], pcs[4]);
}

static void
deep_recursion_ends_by_depth(void **state)
{
    (void)state;
    recurse(10000, walk_300);
}

static NOINLINE void
walk_with_all_limits(void)
{
    struct cpprof__stack_view view;
    struct cpprof__regs regs;
    uintptr_t lo;
    uintptr_t hi;
    enum cpprof__unwind_end end;
    size_t max;
    struct walk all;

    own_stack(&lo, &hi);
    cpprof__regs_here(&regs);
    view = view_from(regs.sp, hi);
    walk_regs(&all, &regs, &view, MAX_FRAMES);
    assert_string_equal(end_name(all.end), "ROOT");
    for (max = 1; max <= all.n + 1; max++) {
        size_t n = cpprof__unwind(&regs, &view, pcs, max, &end);

        assert_int_equal(n, max < all.n ? max : all.n);
        assert_memory_equal(pcs, all.pcs, n * sizeof *pcs);
        assert_string_equal(end_name(end), max < all.n ? "DEPTH" : "ROOT");
    }
    assert_int_equal(cpprof__unwind(&regs, &view, pcs, 0, &end), 0);
}

static void
limit_that_just_fits_ends_at_the_root(void **state)
{
    (void)state;
    recurse(20, walk_with_all_limits);
}

/* Other stacks. */

static void *
thread(void *arg)
{
    (void)arg;
    n_truth = 0;
    plain(3);
    return NULL;
}

static void
thread_ends_at_its_start(void **state)
{
    pthread_t t;

    (void)state;
    assert_int_equal(pthread_create(&t, NULL, thread, NULL), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_walk_is_the_truth();
    /* plain 4 times, the walk's function, thread, start_thread, clone; a
     * sanitizer adds its own */
    assert_true(result.n >= 8);
}

static ucontext_t main_context;
static ucontext_t coroutine;

static void
in_coroutine(void)
{
    n_truth = 0;
    plain(3);
    assert_int_equal(swapcontext(&coroutine, &main_context), 0);
    n_truth = 0;
    direct = 0;
    plain(5);
    direct = 1;
}

static void
coroutine_ends_at_its_start(void **state)
{
    static char stack[65536];

    (void)state;
    assert_int_equal(getcontext(&coroutine), 0);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = sizeof stack;
    coroutine.uc_link = &main_context;
    makecontext(&coroutine, in_coroutine, 0);
    assert_int_equal(swapcontext(&main_context, &coroutine), 0);
    assert_walk_is_the_truth();
    /* Leaf, plain 4 times, in_coroutine, where contexts start. */
    assert_int_equal(result.n, 7);
    assert_int_equal(swapcontext(&main_context, &coroutine), 0);
    assert_walk_is_the_truth();
    assert_int_equal(result.n, 9);
}

/* A stack that was made by hand, where the function that is returned to begins
 * right behind another. */
void
function_before(void);
void
function_behind(void);
__asm__(".text\n\t"
        ".cfi_startproc\n"
        "function_before:\n\t"
        ".rept 8\n\t"
        "nop\n\t"
        ".endr\n\t"
        "ret\n\t"
        ".cfi_endproc\n\t"
        ".cfi_startproc\n"
        "function_behind:\n\t"
        "nop\n\t"
        "ret\n\t"
        ".cfi_endproc\n");

static void
stack_made_by_hand_ends_at_what_it_returns_to(void **state)
{
    uintptr_t words[4] = {(uintptr_t)function_behind, 0, 0, 0};
    struct cpprof__stack_view view;
    struct cpprof__regs regs = {0};

    (void)state;
    regs.pc = (uintptr_t)function_before;
    regs.sp = (uintptr_t)words;
#if defined __aarch64__
    regs.link = words[0];
#endif
    regs.known = ~0ull;
    view = view_from(regs.sp, (uintptr_t)(words + 4));
    walk_regs(&result, &regs, &view, MAX_FRAMES);
    assert_int_equal(result.n, 2);
    assert_int_equal(result.pcs[0], (uintptr_t)function_before);
    assert_int_equal(result.pcs[1], (uintptr_t)function_behind);
    assert_string_equal(end_name(result.end), "ROOT");
}

#if defined __x86_64__

/* Go's code: without information, with frame records. C is called on the stack
 * of the thread, where its caller makes no record; the first function returns
 * to one that did not call it. */
extern const char go_calls_c[];
extern const char go_calls_go[];
extern const char go_exit[];
__asm__(".text\n"
        "go_code:\n\t"
        "call go_code\n"
        "go_calls_c:\n\t"
        "call go_code\n"
        "go_calls_go:\n\t"
        "ret\n"
        "go_exit:\n\t"
        "nop\n\t"
        "call go_code\n\t"
        "nop\n");

/* In C that a goroutine has called; caller 0: its first function has. */
static void
walk_goroutine(uintptr_t caller, uintptr_t end)
{
    static uintptr_t goroutine[4];
    uintptr_t words[4] = {(uintptr_t)go_calls_c};
    struct cpprof__stack_view view;
    struct cpprof__regs regs = {0};

    goroutine[0] = (uintptr_t)(goroutine + 2);
    goroutine[1] = caller;
    goroutine[2] = 0;
    goroutine[3] = end;
    regs.pc = (uintptr_t)function_before;
    regs.sp = (uintptr_t)words;
    regs.fp = (uintptr_t)(caller ? goroutine : goroutine + 2);
    regs.known = ~0ull;
    view = view_from(regs.sp, (uintptr_t)(words + 4));
    walk_regs(&result, &regs, &view, MAX_FRAMES);
}

static void
goroutine_in_c_is_followed_to_its_end(void **state)
{
    (void)state;
    walk_goroutine((uintptr_t)go_calls_go, (uintptr_t)go_exit + 1);
    assert_int_equal(result.n, 4);
    assert_int_equal(result.pcs[1], (uintptr_t)go_calls_c - 1);
    assert_int_equal(result.pcs[2], (uintptr_t)go_calls_go - 1);
    assert_int_equal(result.pcs[3], (uintptr_t)go_exit);
    assert_string_equal(end_name(result.end), "ROOT");
    walk_goroutine(0, (uintptr_t)go_exit + 1); /* its first function */
    assert_int_equal(result.n, 3);
    assert_int_equal(result.pcs[2], (uintptr_t)go_exit);
    assert_string_equal(end_name(result.end), "ROOT");
}

static void
what_is_no_record_of_a_goroutine_is_not_followed(void **state)
{
    (void)state;
    walk_goroutine((uintptr_t)go_exit, (uintptr_t)go_exit + 1);
    assert_int_equal(result.n, 2);
    assert_string_equal(end_name(result.end), "BROKEN");
    walk_goroutine((uintptr_t)strlen, (uintptr_t)go_exit + 1);
    assert_int_equal(result.n, 2);
    assert_string_equal(end_name(result.end), "BROKEN");
    walk_goroutine((uintptr_t)go_calls_go, (uintptr_t)go_exit);
    assert_int_equal(result.n, 2);
    assert_string_equal(end_name(result.end), "BROKEN");
}

/* Coroutines that wait are a ring of where each is to go on. */
static void
list_of_return_addresses_is_not_followed(void **state)
{
    static uintptr_t ring[3][2];
    uintptr_t words[4] = {(uintptr_t)go_calls_c};
    struct cpprof__stack_view view;
    struct cpprof__regs regs = {0};
    unsigned i;

    (void)state;
    for (i = 0; i < 3; i++) {
        ring[i][0] = (uintptr_t)ring[(i + 1) % 3];
        ring[i][1] = (uintptr_t)go_calls_go;
    }
    regs.pc = (uintptr_t)function_before;
    regs.sp = (uintptr_t)words;
    regs.fp = (uintptr_t)ring;
    regs.known = ~0ull;
    view = view_from(regs.sp, (uintptr_t)(words + 4));
    walk_regs(&result, &regs, &view, MAX_FRAMES);
    assert_int_equal(result.n, 2);
    assert_string_equal(end_name(result.end), "BROKEN");
}

#endif

/* Registers of a context that was saved, as a handler would get them. glibc
 * for aarch64 saves a place inside swapcontext, with the return address in a
 * register that no call-frame information names. */
#if defined __x86_64__
#define SAVED_CONTEXTS_ARE_WALKABLE 1
#else
#define SAVED_CONTEXTS_ARE_WALKABLE 0
#endif

static void
saved_context_is_walked_from_where_it_stopped(void **state)
{
    static char stack[65536];
    struct cpprof__stack_view view = {0};
    struct cpprof__regs regs;

    (void)state;
    if (!SAVED_CONTEXTS_ARE_WALKABLE) {
        printf("# skipped: libc saves contexts that cannot be walked\n");
        return;
    }
    assert_int_equal(getcontext(&coroutine), 0);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = sizeof stack;
    coroutine.uc_link = &main_context;
    makecontext(&coroutine, in_coroutine, 0);
    assert_int_equal(swapcontext(&main_context, &coroutine), 0);
    cpprof__regs_from_ucontext(&regs, &coroutine);
    walk_regs(&result, &regs, &view, MAX_FRAMES);
    assert_string_equal(end_name(result.end), "ROOT");
    /* The return from swapcontext, and two frames that were found before. */
    assert_true(result.n == 2 || result.n == 3);
    assert_int_equal(swapcontext(&main_context, &coroutine), 0);
}

/* Code made at run time that nobody called: as the JVM's interpreter, which
 * jumps to what it calls and gives it an address of its own to return to. Three
 * such frames, each with a frame record; the last was called from ra. */
static void
walk_jumps(uintptr_t ra, const uint8_t *code)
{
    uintptr_t words[128] = {8};
    uintptr_t *records = words + 64; /* no leaf has pushed so much */
    struct cpprof__stack_view view;
    struct cpprof__regs regs = {0};
    size_t i;

    for (i = 0; i < 2; i++) {
        records[4 * i] = (uintptr_t)&records[4 * i + 4];
        records[4 * i + 1] = (uintptr_t)code + 64 * (i + 1);
    }
    records[9] = ra;
    regs.pc = (uintptr_t)code + 1024;
    regs.sp = (uintptr_t)words;
    regs.fp = (uintptr_t)records;
    regs.known = ~0ull;
    view = view_from(regs.sp, (uintptr_t)(words + 128));
    cpprof__unwind_forget();
    walk_regs(&result, &regs, &view, MAX_FRAMES);
}

/* More than the hole between two parts of a module: that of glibc 2.31's loader
 * takes a page, and is the first to be given, and of a module. */
#define CODE_BYTES ((size_t)4 << 20)

static void
interpreter_that_jumps_is_followed_to_what_called_it(void **state)
{
    uintptr_t ra = (uintptr_t)__builtin_return_address(0);
    uint8_t *code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_true(code != MAP_FAILED);
    walk_jumps(ra, code);
    assert_true(result.n >= 4);
    assert_int_equal(result.pcs[0], (uintptr_t)code + 1024);
    assert_int_equal(result.pcs[1], (uintptr_t)code + 64 - 1);
    assert_int_equal(result.pcs[2], (uintptr_t)code + 128 - 1);
    assert_int_equal(result.pcs[3], ra - 1);
    /* Not if that leads to nothing, or through memory that is not there. */
    walk_jumps(16, code);
    assert_int_equal(result.n, 1);
    assert_string_equal(end_name(result.end), "BROKEN");
    munmap(code, CODE_BYTES);
    walk_jumps(ra, code);
    assert_int_equal(result.n, 1);
    assert_string_equal(end_name(result.end), "BROKEN");
}

/* Promises. */

static void
errno_is_kept(void **state)
{
    struct cpprof__stack_view view = {0};
    struct cpprof__regs regs = {0};

    (void)state;
    memset(regs.r, 8, sizeof regs.r);
    regs.pc = (uintptr_t)errno_is_kept + 4;
    regs.known = ~0ull;
    errno = 4711;
    walk_regs(&result, &regs, &view, MAX_FRAMES);
    assert_int_equal(errno, 4711);
    assert_int_equal(result.n, 1);
    assert_string_equal(end_name(result.end), "BROKEN");
}

static void
forgetting_changes_nothing_but_the_time(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < 100; i++) {
        cpprof__unwind_forget();
        run_chain();
        assert_walk_is_the_truth();
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_frame_is_followed_to_the_root),
        cmocka_unit_test(no_stack_in_view_gives_the_same_stack),
        cmocka_unit_test(refused_copy_gives_the_same_stack),
        cmocka_unit_test(own_module_table_gives_the_same_stack),
        cmocka_unit_test(callback_from_libc_is_followed_through_libc),
        cmocka_unit_test(deep_recursion_ends_by_depth),
        cmocka_unit_test(limit_that_just_fits_ends_at_the_root),
        cmocka_unit_test(thread_ends_at_its_start),
        cmocka_unit_test(coroutine_ends_at_its_start),
        cmocka_unit_test(stack_made_by_hand_ends_at_what_it_returns_to),
#if defined __x86_64__
        cmocka_unit_test(goroutine_in_c_is_followed_to_its_end),
        cmocka_unit_test(what_is_no_record_of_a_goroutine_is_not_followed),
        cmocka_unit_test(list_of_return_addresses_is_not_followed),
#endif
        cmocka_unit_test(saved_context_is_walked_from_where_it_stopped),
        cmocka_unit_test(interpreter_that_jumps_is_followed_to_what_called_it),
        cmocka_unit_test(errno_is_kept),
        cmocka_unit_test(forgetting_changes_nothing_but_the_time),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    cpprof__unwind_refresh_modules();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
