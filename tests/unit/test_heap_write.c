/* SPDX-License-Identifier: MIT */
/*
 * The public calls, over real tables: heaps of the program's own, which are
 * there without the names that the library takes over; writers beside threads
 * that allocate, code that comes and goes, and forks.
 */
#include "heap_fixture.h"

#include "collect/encode/names.h"
#include "collect/signal/heap/heap_room.h"
#include "collect/store/tables.h"
#include "views.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static struct cpprof_heap *heap_of_test;

static int
set_up(void **state)
{
    assert_int_equal(cpprof__tables_make(NULL), CPPROF_OK);
    cpprof_heap_set_rate(1);
    cpprof__heap_make(zeroed(cpprof__heap_bytes()),
                      zeroed(cpprof__heap_private_bytes()),
                      &cpprof__tables.tree, CPPROF__HEAP_LIVE);
    assert_int_equal(cpprof_heap_new("test", &heap_of_test, NULL), CPPROF_OK);
    return 0;
}

static struct pprof_profile *
profile_of(const struct cpprof_heap *heap, int32_t debug)
{
    const struct cpprof_heap_options options = {
        .size = sizeof options, .heap = heap, .debug = debug};
    struct cpprof_error error;
    struct sink s = {0};

    if (cpprof_heap_write((struct cpprof_writer[]){sink_writer(&s)}, &options,
                          &error))
        fail_msg("%s", error.text);
    assert_int_equal(s.n_closes, 1);
    return read_back(&s);
}

static int64_t
sum_of(const struct pprof_profile *p, size_t value)
{
    int64_t sum = 0;
    size_t i;

    for (i = 0; i < pprof_sample_count(p); i++)
        sum += sample_of(p, i).values[value];
    return sum;
}

/* ------------------------------------------------------------------------- */

static void
names_of_heaps_are_checked(void **state)
{
    struct cpprof_heap *heap = NULL;
    struct cpprof_error error;
    char longest[65];

    assert_int_equal(cpprof_heap_new(NULL, &heap, &error), CPPROF_INVALID);
    assert_int_equal(cpprof_heap_new("", &heap, &error), CPPROF_INVALID);
    assert_string_equal(error.text, "a heap needs a name");
    assert_int_equal(cpprof_heap_new("test", &heap, &error), CPPROF_INVALID);
    assert_string_equal(error.text, "heap name already in use: test");
    memset(longest, 'x', 64);
    longest[64] = 0;
    assert_int_equal(cpprof_heap_new(longest, &heap, &error), CPPROF_INVALID);
    assert_null(heap);
}

static void
recorded_memory_is_in_use_until_it_is_released(void **state)
{
    struct cpprof_heap *heap;
    struct pprof_profile *p;
    char at[3];
    int32_t debug;

    assert_int_equal(cpprof_heap_new("recorded", &heap, NULL), CPPROF_OK);
    cpprof_heap_record_in(heap, &at[0], 100);
    cpprof_heap_record_in(heap, &at[1], 200);
    cpprof_heap_record_in(heap, &at[2], 400);
    cpprof_heap_record_in(heap, NULL, 800);
    cpprof_heap_release_in(heap, &at[1]);
    cpprof_heap_release_in(heap, &at[1]);     /* once is enough */
    cpprof_heap_release_in(heap_of_test, at); /* not there */
    cpprof_heap_release(at);
    cpprof_heap_release(NULL);
    for (debug = 0; debug < 2; debug++) {
        p = profile_of(heap, debug);
        assert_int_equal(sum_of(p, 0), 3);
        assert_int_equal(sum_of(p, 1), 700);
        assert_int_equal(sum_of(p, 2), 2);
        assert_int_equal(sum_of(p, 3), 500);
        pprof_free(p);
    }
    cpprof_heap_release_in(heap, &at[0]);
    cpprof_heap_release_in(heap, &at[2]);
    p = profile_of(heap, 0);
    assert_int_equal(sum_of(p, 3), 0);
    assert_int_equal(sum_of(p, 1), 700);
    pprof_free(p);
}

/* Here no names are taken over, so malloc's is not ours. */
static void
malloc_of_another_is_named(void **state)
{
    struct cpprof_error error;
    struct sink s = {0};

    assert_int_equal(
        cpprof_heap_write((struct cpprof_writer[]){sink_writer(&s)}, NULL,
                          &error),
        CPPROF_UNSUPPORTED);
    assert_non_null(strstr(error.text, "malloc is that of "));
    assert_int_equal(s.n_closes, 1);
    assert_int_equal(s.failed, 1);
    assert_int_equal(s.bytes.n, 0);
}

static void
options_of_another_version_are_refused(void **state)
{
    struct {
        struct cpprof_heap_options known;
        uint64_t later;
    } options = {{.size = sizeof options, .heap = heap_of_test}, 1};
    struct cpprof_error error;
    struct sink s = {0};

    assert_int_equal(
        cpprof_heap_write((struct cpprof_writer[]){sink_writer(&s)},
                          &options.known, &error),
        CPPROF_INVALID);
    assert_int_equal(s.n_closes, 1);
    options.later = 0;
    assert_int_equal(
        cpprof_heap_write((struct cpprof_writer[]){sink_writer(&s)},
                          &options.known, &error),
        CPPROF_OK);
    cpprof__buffer_free(&s.bytes);
    assert_int_equal(
        cpprof_heap_write(&(struct cpprof_writer){0}, &options.known, &error),
        CPPROF_INVALID);
}

static void
options_out_of_range_are_refused(void **state)
{
    const struct cpprof_heap_options options[] = {
        {.debug = -1},
        {.symbolize = CPPROF_SYMBOLIZE_NONE + 1},
        {.flags = CPPROF_FLAG_NO_LABELS},
        {.flags = 0x80000000u},
    };
    size_t i;

    for (i = 0; i < sizeof options / sizeof *options; i++) {
        struct cpprof_heap_options bad = options[i];
        struct cpprof_error error;
        struct sink s = {0};

        bad.size = sizeof bad;
        bad.heap = heap_of_test;
        assert_int_equal(
            cpprof_heap_write((struct cpprof_writer[]){sink_writer(&s)}, &bad,
                              &error),
            CPPROF_INVALID);
        assert_int_equal(s.n_closes, 1);
        assert_int_equal(s.failed, 1);
    }
}

/* ---- code that goes -------------------------------------------------------
 */

#define LIBRARY                                                                \
    "libcrypt.so.1" /* of libc, or near it; loaded by nobody here              \
                     */

static uint32_t
mapping_of(uint32_t stack)
{
    return load_acquire(&cpprof__tables.tree.nodes[stack].mapping);
}

static const char *
path_of(uint32_t mapping)
{
    const struct cpprof__store *store = &cpprof__tables.store;

    return cpprof__store_text(
        store, store->mappings[(mapping & ~CPPROF__TREE_GONE) - 1].path);
}

static void
unloaded_code_keeps_its_mapping_and_is_not_found_again(void **state)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    uintptr_t pcs[2];
    uint32_t stack, again, in_program;

    if (!library) {
        print_message("# %s is not there\n", LIBRARY);
        skip();
    }
    pcs[0] = (uintptr_t)dlsym(library, "crypt");
    pcs[1] = (uintptr_t)unloaded_code_keeps_its_mapping_and_is_not_found_again;
    stack = cpprof__tree_add(&cpprof__tables.tree, pcs, 2);
    in_program = cpprof__tree_add(&cpprof__tables.tree, &pcs[1], 1);
    assert_int_equal(mapping_of(stack), CPPROF__TREE_UNRESOLVED);
    cpprof__tables_resolve();
    assert_non_null(strstr(path_of(mapping_of(stack)), "libcrypt"));
    assert_int_equal(cpprof__tree_add(&cpprof__tables.tree, pcs, 2), stack);
    dlclose(library);
    cpprof__tables_after_unload();
    assert_true(mapping_of(stack) & CPPROF__TREE_GONE);
    assert_non_null(strstr(path_of(mapping_of(stack)), "libcrypt"));
    assert_false(mapping_of(in_program) & CPPROF__TREE_GONE);
    again = cpprof__tree_add(&cpprof__tables.tree, pcs, 2);
    assert_int_not_equal(again, stack);
    assert_int_equal(cpprof__tree_add(&cpprof__tables.tree, &pcs[1], 1),
                     in_program);
    cpprof__tables_resolve();
    assert_int_equal(mapping_of(again), CPPROF__TREE_NO_MAPPING);
}

/* ---- all at once ----------------------------------------------------------
 */

/* The allocators of the sanitizers are in any state in a forked child. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FORKS false
#else
#define FORKS true
#endif

#define N_THREADS 4
#define N_LIVE    64

static bool ended;
static char memory[N_THREADS][N_LIVE];

static __attribute__((noinline)) void
record_deep(struct cpprof_heap *heap, const void *at, unsigned how)
{
    if (how > 1)
        record_deep(heap, at, how / 2);
    else
        cpprof_heap_record_in(heap, at, 64);
    __asm__ volatile("" ::: "memory");
}

static void *
allocate(void *arg)
{
    char *mine = arg;
    unsigned i;

    /* At least once around: the last check counts on it. */
    for (i = 0; !load_acquire(&ended) || i <= N_LIVE; i++) {
        char *at = &mine[i % N_LIVE];

        if (i >= N_LIVE)
            cpprof_heap_release_in(heap_of_test, at);
        record_deep(heap_of_test, at, 1u << i % 12);
    }
    for (i = 0; i < N_LIVE; i++)
        cpprof_heap_release_in(heap_of_test, &mine[i]);
    return NULL;
}

static void *
write_often(void *debug)
{
    const struct cpprof_heap_options options = {
        .size = sizeof options,
        .heap = heap_of_test,
        .debug = debug != NULL,
        .flags = CPPROF_FLAG_PEAK * (debug == NULL),
    };

    while (!load_acquire(&ended)) {
        struct sink s = {0};

        if (cpprof_heap_write((struct cpprof_writer[]){sink_writer(&s)},
                              &options, NULL))
            abort();
        cpprof__buffer_free(&s.bytes);
    }
    return NULL;
}

static void *
load_and_unload(void *arg)
{
    while (!load_acquire(&ended)) {
        void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
        uintptr_t pc = library ? (uintptr_t)dlsym(library, "crypt") : 0;

        if (pc)
            cpprof__tree_add(&cpprof__tables.tree, &pc, 1);
        cpprof__tables_resolve();
        if (library)
            dlclose(library);
        cpprof__tables_after_unload();
    }
    return NULL;
}

/* The child writes a profile, too; without names, for which it would ask the
 * loader, whose lock another thread may hold. */
static void
fork_once(void)
{
    int status;
    pid_t pid;

    pid = fork();
    if (!pid) {
        const struct cpprof_heap_options options = {
            .size = sizeof options,
            .heap = heap_of_test,
            .symbolize = CPPROF_SYMBOLIZE_NONE,
        };
        struct sink s = {0};

        cpprof__names_in_child();
        cpprof__tables_in_child();
        alarm(20);
        _exit(cpprof_heap_write((struct cpprof_writer[]){sink_writer(&s)},
                                &options, NULL) != CPPROF_OK);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void
writers_are_right_beside_threads_unloads_and_forks(void **state)
{
    void *(*const others[])(void *) = {write_often, write_often,
                                       load_and_unload};
    void *const args[] = {NULL, &ended, NULL};
    pthread_t threads[N_THREADS + 3];
    struct pprof_profile *p;
    size_t i;

    for (i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, allocate, memory[i]);
    for (i = 0; i < 3; i++)
        pthread_create(&threads[N_THREADS + i], NULL, others[i], args[i]);
    for (i = 0; i < 20; i++) {
        size_t j;

        p = profile_of(heap_of_test, 0);
        assert_true(sum_of(p, 2) <= N_THREADS * N_LIVE);
        for (j = 0; j < pprof_sample_count(p); j++) {
            struct pprof_sample s = sample_of(p, j);

            assert_true(s.values[0] >= s.values[2]);
            /* Objects are read after bytes, while both grow. */
            assert_true(s.values[1] <= 64 * s.values[0]);
            assert_int_equal(s.values[1] % 64, 0);
        }
        pprof_free(p);
        if (FORKS)
            fork_once();
    }
    store_release(&ended, true);
    for (i = 0; i < N_THREADS + 3; i++)
        pthread_join(threads[i], NULL);
    p = profile_of(heap_of_test, 0);
    assert_int_equal(sum_of(p, 2), 0);
    assert_int_equal(sum_of(p, 3), 0);
    assert_true(sum_of(p, 0) > N_THREADS * N_LIVE);
    pprof_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_heaps_are_checked),
        cmocka_unit_test(recorded_memory_is_in_use_until_it_is_released),
        cmocka_unit_test(malloc_of_another_is_named),
        cmocka_unit_test(options_of_another_version_are_refused),
        cmocka_unit_test(options_out_of_range_are_refused),
        cmocka_unit_test(
            unloaded_code_keeps_its_mapping_and_is_not_found_again),
        cmocka_unit_test(writers_are_right_beside_threads_unloads_and_forks),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, NULL);
}
