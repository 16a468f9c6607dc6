/* SPDX-License-Identifier: MIT */
/*
 * Stacks of allocations have the frames of scripts in them. The interpreter is
 * made up: what stands in place of src/vm tells two frames for each of a run
 * loop, and sees at which moments it is asked. Run on each allocator.
 */
#include "heap_table.h"
#include "memory.h"
#include "profile.h"
#include "tap.h"

#include "collect/signal/heap/hook_stack.h"
#include "collect/signal/tables/interp_frames.h"
#include "collect/signal/tables/scripts.h"
#include "collect/store/script_file.h"
#include <cpprof/heap.h>
#include <cpprof/profiles.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

extern void *
operator_new(size_t n) __asm__("_Znwm");
extern void
operator_delete(void *block) __asm__("_ZdlPv");

#define NOINLINE __attribute__((noinline))
#define STAY     __asm__ volatile("" ::: "memory")

/* ---- the interpreter -------------------------------------------------- */

extern const char __start_loop[] __attribute__((visibility("hidden")));
extern const char __stop_loop[] __attribute__((visibility("hidden")));

/* A native function under a script, depth activations of the run loop. */
typedef void
builtin(void);

NOINLINE __attribute__((section("loop"))) static void
run_loop(builtin *f, unsigned depth)
{
    if (depth > 1)
        run_loop(f, depth - 1);
    else
        f();
    STAY;
}

static struct {
    uintptr_t inner, outer; /* locations of the script */
    unsigned n_asked;
    unsigned n_in_handler;
    size_t n_native, n_native_max;
    unsigned inside, inside_max;
    /* Of a block that is about to be moved, until it may be gone. */
    const unsigned char *old;
    size_t n_old, n_spoiled;
} seen;

static bool
is_loop(uintptr_t pc)
{
    return pc >= (uintptr_t)__start_loop && pc < (uintptr_t)__stop_loop;
}

static void
look_at_old(void)
{
    size_t i;

    for (i = 0; seen.old && i < seen.n_old; i++)
        seen.n_spoiled += seen.old[i] != 0x5a;
}

static void
splice(uintptr_t *pcs, size_t *n, size_t max, enum cpprof__unwind_end *end)
{
    static uintptr_t native[CPPROF__HEAP_DEPTH * 8];
    size_t i, n_native = *n < CPPROF__HEAP_DEPTH * 8 ? *n : 0;

    memcpy(native, pcs, n_native * sizeof *pcs);
    for (i = *n = 0; i < n_native && *n + 2 <= max; i++)
        if (is_loop(native[i])) {
            pcs[(*n)++] = seen.inner;
            pcs[(*n)++] = seen.outer;
        } else {
            pcs[(*n)++] = native[i];
        }
    if (i < n_native)
        *end = CPPROF__UNWIND_DEPTH;
}

static enum cpprof__interp_result
merge(uintptr_t *pcs, size_t *n, size_t max, enum cpprof__unwind_end *end,
      bool is_handler)
{
    bool has_loop = false;
    size_t i;

    for (i = 0; i < *n; i++)
        has_loop |= is_loop(pcs[i]);
    if (!has_loop)
        return CPPROF__INTERP_NONE;
    if (++seen.inside > seen.inside_max)
        seen.inside_max = seen.inside;
    seen.n_asked++;
    seen.n_in_handler += is_handler;
    seen.n_native = *n;
    seen.n_native_max = max;
    look_at_old();
    free(malloc(100)); /* no interpreter may; it is not sampled at least */
    if (!is_handler)
        splice(pcs, n, max, end);
    seen.inside--;
    return is_handler ? CPPROF__INTERP_LATER : CPPROF__INTERP_MERGED;
}

static bool
defer(const struct cpprof__deferred_stack *stack)
{
    (void)stack;
    bail("an allocation was put off");
}

static void
flush(void)
{
}

static const struct cpprof__interp_ops mixer = {
    .merge = merge, .defer = defer, .flush = flush};

static uintptr_t
location(const char *name, int64_t line)
{
    const struct cpprof__script_location script = {.mapping = "[toy]",
                                                   .name = name,
                                                   .system_name = "",
                                                   .file = "a.toy",
                                                   .line = line,
                                                   .has_name = true};

    return cpprof__scripts_add(&cpprof__scripts, &script);
}

static void
begin(void)
{
    if (!cpprof__script_file_make())
        bail("no table of scripts");
    seen.inner = location("inner", 7);
    seen.outer = location("outer", 3);
    store_release(&cpprof__interp_ops, &mixer);
}

/* ---- what a script calls ---------------------------------------------- */

#define KIB 1024

static void *kept;

NOINLINE static void
by_malloc(void)
{
    kept = malloc(1 * KIB);
    STAY;
}

NOINLINE static void
by_calloc(void)
{
    kept = calloc(2, KIB);
    STAY;
}

NOINLINE static void
by_realloc_of_null(void)
{
    kept = realloc(NULL, 3 * KIB);
    STAY;
}

NOINLINE static void
by_posix_memalign(void)
{
    if (posix_memalign(&kept, 64, 4 * KIB))
        bail("posix_memalign");
    STAY;
}

NOINLINE static void
by_aligned_alloc(void)
{
    kept = aligned_alloc(64, 5 * KIB);
    STAY;
}

NOINLINE static void
by_operator_new(void)
{
    kept = operator_new(6 * KIB);
    STAY;
}

NOINLINE static void
by_reallocarray(void)
{
    kept = reallocarray(NULL, 7, KIB);
    STAY;
}

static void *old;
static size_t n_new;

NOINLINE static void
by_realloc(void)
{
    kept = realloc(old, n_new);
    seen.old = NULL;
    STAY;
}

/* ---- profiles --------------------------------------------------------- */

static struct profile *
heap_profile(void)
{
    struct cpprof_heap_options options = {.size = sizeof options};
    struct cpprof_error error;
    struct profile *profile;
    struct memory memory;
    char why[200];

    if (cpprof_heap_write((struct cpprof_writer[]){memory_writer(&memory)},
                          &options, &error))
        bail("write: %s", error.text);
    profile = profile_unpack(memory.data, memory.n, why, sizeof why);
    if (!profile)
        bail("read: %s", why);
    free(memory.data);
    return profile;
}

/* Bytes ever allocated by that stack; the second value. */
static int64_t
bytes_in(const char *stack)
{
    struct profile *profile = heap_profile();
    int64_t bytes = profile_cpu_stack(profile, stack);

    profile_free(profile);
    return bytes;
}

static void
check_call(builtin *f, const char *stack, size_t bytes)
{
    unsigned n_before = seen.n_asked, n_handler = seen.n_in_handler;

    run_loop(f, 1);
    if (!kept)
        bail("no memory");
    check_equal(bytes_in(stack), (int64_t)bytes, stack);
    if (seen.n_asked != n_before + 1 || seen.n_in_handler != n_handler)
        check(false, "it was asked once, as at rest");
}

static void
test_names(void)
{
    check_call(by_malloc, "by_malloc;inner;outer;check_call", 1 * KIB);
    free(kept);
    check_call(by_calloc, "by_calloc;inner;outer;check_call", 2 * KIB);
    free(kept);
    check_call(by_realloc_of_null, "by_realloc_of_null;inner;outer;check_call",
               3 * KIB);
    free(kept);
    check_call(by_posix_memalign, "by_posix_memalign;inner;outer;check_call",
               4 * KIB);
    free(kept);
    check_call(by_aligned_alloc, "by_aligned_alloc;inner;outer;check_call",
               5 * KIB);
    free(kept);
    check_call(by_operator_new, "by_operator_new;inner;outer;check_call",
               6 * KIB);
    operator_delete(kept);
    check_call(by_reallocarray, "by_reallocarray;inner;outer;check_call",
               7 * KIB);
    free(kept);
    check_equal(bytes_in("run_loop;...;check_call"), 0,
                "the run loop is in no stack");
    check_equal((int64_t)seen.inside_max, 1,
                "what is allocated while it is asked is not sampled");
}

static void
test_frame_of_script(void)
{
    struct profile *profile = heap_profile();
    size_t i, k, n = 0;

    for (i = 0; i < profile->n_samples; i++)
        for (k = 0; k < profile->samples[i].n_frames; k++) {
            const struct frame *f = &profile->samples[i].frames[k];

            n += frame_is(f, "inner") && !f->address && f->line == 7 &&
                 !strcmp(f->file, "a.toy") && f->mapping != NO_MAPPING &&
                 !strcmp(profile->mappings[f->mapping].file, "[toy]");
        }
    profile_free(profile);
    check_at_least((double)n, 6, "frames have file, line and mapping");
}

/* ---- realloc ---------------------------------------------------------- */

static void
prepare_old(size_t n, size_t n_wanted)
{
    old = malloc(n);
    if (!old)
        bail("no memory");
    memset(old, 0x5a, n);
    seen.old = old;
    seen.n_old = n;
    seen.n_spoiled = 0;
    n_new = n_wanted;
}

static void
check_realloc(size_t n, size_t n_wanted, const char *what)
{
    int64_t before = bytes_in("by_realloc;inner;outer");
    unsigned n_before = seen.n_asked;
    uintptr_t was;

    prepare_old(n, n_wanted);
    was = (uintptr_t)old;
    run_loop(by_realloc, 1);
    if (!kept)
        bail("no memory");
    note("%s: %s", what, (uintptr_t)kept == was ? "in place" : "moved");
    check_equal(bytes_in("by_realloc;inner;outer") - before, (int64_t)n_wanted,
                what);
    check(seen.n_asked == n_before + 1 && !seen.n_spoiled,
          "it was asked once, while the old block was there");
    free(kept);
}

static void
test_realloc(void)
{
    void *wall;

    check_realloc(100, 101, "a block that grows within itself");
    check_realloc(20000, 100, "a block that shrinks");
    check_realloc(100, 300000, "a block that moves");
    check_realloc((size_t)1 << 20, (size_t)200 << 20, "a mapping that moves");
    prepare_old(200, 20000);
    wall = malloc(200); /* glibc: behind it */
    run_loop(by_realloc, 1);
    check_equal((int64_t)seen.n_spoiled, 0, "nor had another been freed");
    free(wall);
    free(kept);
}

static void
test_realloc_that_fails(void)
{
    uint64_t n_before;
    size_t bytes = 0;

    prepare_old(500, SIZE_MAX / 4);
    n_before = heap_n_sampled();
    run_loop(by_realloc, 1);
    check(!kept && heap_n_sampled() == n_before,
          "realloc that fails records nothing");
    check(heap_entries_of(old, &bytes) == 1 && bytes == 500,
          "and leaves what was recorded");
    free(old);
}

/* ---- where nothing is at rest ----------------------------------------- */

static int a_number;

static void
on_signal(int number)
{
    (void)number;
    kept = malloc(333);
}

NOINLINE static void
by_handler(void)
{
    raise(SIGUSR1);
    STAY;
}

NOINLINE static void
by_record(void)
{
    cpprof_heap_record(&a_number, 444);
    STAY;
}

NOINLINE static void
by_wait(void)
{
    cpprof_block_add(1000000, 0);
    STAY;
}

static void
check_not_at_rest(builtin *f, const char *what)
{
    unsigned n_before = seen.n_asked, n_handler = seen.n_in_handler;

    run_loop(f, 1);
    check(seen.n_asked == n_before + 1 && seen.n_in_handler == n_handler + 1,
          what);
}

static void
test_not_at_rest(void)
{
    signal(SIGUSR1, on_signal);
    check_not_at_rest(by_handler, "an allocation in a handler is told of so");
    free(kept);
    check_equal(bytes_in("by_handler;run_loop;check_not_at_rest"), 333,
                "and its stack is as it was");
    check_not_at_rest(by_record, "so is one of an allocator of the program");
    cpprof_heap_release(&a_number);
    cpprof_block_set_rate(1);
    check_not_at_rest(by_wait, "so is a wait");
    cpprof_block_set_rate(0);
}

/* ---- other profiles --------------------------------------------------- */

static struct cpprof_profile *things;
static unsigned n_skip;

NOINLINE static void
by_add(void)
{
    if (cpprof_profile_add(things, &a_number, n_skip, NULL))
        bail("add");
    STAY;
}

NOINLINE static void
by_deep_add(unsigned depth)
{
    if (depth)
        by_deep_add(depth - 1);
    else
        by_add();
    STAY;
}

NOINLINE static void
by_adding_deep(void)
{
    by_deep_add(50);
    STAY;
}

static pthread_t thread;
static pthread_barrier_t barrier; /* it has started; it may end */

static void *
wait_for_end(void *arg)
{
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return arg;
}

NOINLINE static void
by_thread(void)
{
    if (pthread_create(&thread, NULL, wait_for_end, NULL))
        bail("pthread_create");
    STAY;
}

static bool
has(const char *name, const char *stack)
{
    struct cpprof_profile_options options = {.size = sizeof options};
    struct cpprof_error error;
    struct profile *profile;
    struct memory memory;
    bool found = false;
    char why[200];
    size_t i;

    if (cpprof_profile_write(cpprof_profile_lookup(name),
                             (struct cpprof_writer[]){memory_writer(&memory)},
                             &options, &error))
        bail("write: %s", error.text);
    profile = profile_unpack(memory.data, memory.n, why, sizeof why);
    if (!profile)
        bail("read: %s", why);
    for (i = 0; i < profile->n_samples; i++)
        found |= stack_matches(&profile->samples[i], stack);
    if (!found)
        profile_note(profile, 5);
    profile_free(profile);
    free(memory.data);
    return found;
}

static void
test_custom(void)
{
    if (cpprof_profile_new("things", &things, NULL))
        bail("no profile");
    run_loop(by_add, 1);
    check(has("things", "by_add;inner;outer;test_custom"),
          "what is added to a profile has frames of scripts");
    cpprof_profile_remove(things, &a_number);
    n_skip = 1;
    run_loop(by_add, 1);
    check(has("things", "inner;outer;test_custom"),
          "so it has without its first frames");
    cpprof_profile_remove(things, &a_number);
    n_skip = 52;
    run_loop(by_adding_deep, 1);
    check(has("things", "by_adding_deep;inner;outer;test_custom"),
          "and without many of them");
    cpprof_profile_remove(things, &a_number);
}

static void
test_threads(void)
{
    unsigned n_handler = seen.n_in_handler;

    pthread_barrier_init(&barrier, NULL, 2);
    run_loop(by_thread, 1);
    pthread_barrier_wait(&barrier);
    check(has("threadcreate", "by_thread;inner;outer;test_threads"),
          "where threads are made is said by line");
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    check_equal((int64_t)seen.n_in_handler, n_handler, "asked as at rest");
}

/* ---- deep stacks ------------------------------------------------------ */

NOINLINE static void
by_deep_malloc(void)
{
    kept = malloc(11 * KIB);
    STAY;
}

static void
test_depth(void)
{
    run_loop(by_deep_malloc, 300);
    check_at_least((double)seen.n_native, 300,
                   "more native frames are told than stay");
    check_at_least((double)seen.n_native_max, (double)seen.n_native,
                   "and there is room for as many");
    check_equal(bytes_in("by_deep_malloc;inner;outer;inner;outer;inner;outer"),
                11 * KIB, "the leaf's side of a deep stack stays");
    check_equal(bytes_in("by_deep_malloc;...;[truncated]"), 11 * KIB,
                "and it says that it was cut");
    free(kept);
}

/* ---- as text ---------------------------------------------------------- */

static void
test_text(void)
{
    struct cpprof_heap_options options = {.size = sizeof options, .debug = 1};
    struct memory memory;
    char *text;

    if (cpprof_heap_write((struct cpprof_writer[]){memory_writer(&memory)},
                          &options, NULL))
        bail("write");
    text = calloc(1, memory.n + 1);
    if (!text)
        bail("no memory");
    memcpy(text, memory.data, memory.n);
    check_has(text, "inner", "the text has frames of scripts");
    check_has(text, "a.toy:7", "and their lines");
    free(text);
    free(memory.data);
}

int
main(int argc, char **argv)
{
    if (!heap_is_on(argc, argv))
        return check_skip_all("this allocator is not installed");
    cpprof_heap_set_rate(1);
    run_loop(by_malloc, 1);
    free(kept);
    check_equal(bytes_in("by_malloc;run_loop;main"), 1 * KIB,
                "without an interpreter the stack is as it is");
    begin();
    test_names();
    test_frame_of_script();
    test_realloc();
    test_realloc_that_fails();
    test_not_at_rest();
    test_custom();
    test_threads();
    test_depth();
    test_text();
    return check_done();
}
