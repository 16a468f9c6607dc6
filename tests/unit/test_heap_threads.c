/* SPDX-License-Identifier: MIT */
/* Threads, signal handlers and forks in the midst of it: at the end the tables
 * hold what they should, and meanwhile readers see blocks of one piece. Under
 * ThreadSanitizer also the proof that nothing in it is a data race. */
#include "heap_core_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8
#define ROUNDS  60
#define BLOCKS  300

/* Blocks of one thread, freed by the next one. */
static uintptr_t
address_of(unsigned thread, unsigned i)
{
    return 0x10000000 + ((uintptr_t)thread * BLOCKS + i) * 48;
}

/* Every size is used at addresses of its own, so that a reader can tell. */
static size_t
size_at(uintptr_t address)
{
    return 16 + address / 48 % 5000;
}

static pthread_barrier_t barrier;
static uint32_t stop;
static uint32_t n_missed;

static void *
allocate_and_free(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    unsigned round, i;

    for (round = 0; round < ROUNDS; round++) {
        for (i = 0; i < BLOCKS; i++)
            allocated(address_of(me, i), size_at(address_of(me, i)));
        pthread_barrier_wait(&barrier);
        for (i = 0; i < BLOCKS; i++)
            if (!freed(address_of((me + 1) % THREADS, i)))
                add_relaxed(&n_missed, 1);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void *
read_all_the_time(void *arg)
{
    uint32_t *n_torn = arg;

    while (!load_acquire(&stop)) {
        uint32_t i, n = cpprof__heap_n_blocks(&cpprof__heap);
        struct cpprof__heap_block b;

        for (i = 1; i < n; i++)
            if (cpprof__heap_read_block(&cpprof__heap, i, &b) &&
                (b.bytes != size_at(b.address) || b.weight != FRACTION))
                ++*n_torn;
    }
    return NULL;
}

static void
threads_free_each_others_blocks_and_nothing_remains(void **state)
{
    pthread_t threads[THREADS], reader;
    struct cpprof__heap_sum sum;
    uint32_t n_torn = 0;
    uintptr_t i;

    (void)state;
    fresh_heap(1);
    stop = n_missed = 0;
    pthread_barrier_init(&barrier, NULL, THREADS);
    pthread_create(&reader, NULL, read_all_the_time, &n_torn);
    for (i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, allocate_and_free, (void *)i);
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    store_release(&stop, 1);
    pthread_join(reader, NULL);
    pthread_barrier_destroy(&barrier);
    assert_int_equal(n_torn, 0);
    assert_int_equal(n_missed, 0);
    assert_int_equal(cpprof__heap.head->n_lost, 0);
    sum = in_use(&cpprof__heap);
    assert_int_equal(sum.n_sampled, 0);
    assert_int_equal(cpprof__heap.head->peaks[0].now_bytes, 0);
    assert_int_equal(ever_allocated(&cpprof__heap).n_sampled,
                     THREADS * ROUNDS * BLOCKS);
    for (i = 0; i < CPPROF__HEAP_FILTER; i++)
        assert_int_equal(cpprof__heap_filter[i], 0);
}

static void *
allocate_for_ever(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    unsigned i;

    while (!load_acquire(&stop)) {
        for (i = 0; i < BLOCKS; i++)
            allocated(address_of(me, i), size_at(address_of(me, i)));
        for (i = 0; i < BLOCKS; i++)
            freed(address_of(me, i));
    }
    return NULL;
}

static void *
change_the_rate(void *arg)
{
    (void)arg;
    while (!load_acquire(&stop)) {
        cpprof__heap_set_rate(1);
        cpprof__heap_set_rate(100);
        cpprof__heap_set_rate(0);
    }
    return NULL;
}

static void
start_threads(pthread_t threads[THREADS])
{
    uintptr_t i;

    store_release(&stop, 0);
    for (i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL,
                       i ? allocate_for_ever : change_the_rate, (void *)i);
}

static void
stop_threads(pthread_t threads[THREADS])
{
    unsigned i;

    store_release(&stop, 1);
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void
rate_changes_at_any_time_leave_nothing_behind(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    fresh_heap(1);
    start_threads(threads);
    usleep(300000);
    stop_threads(threads);
    assert_int_equal(in_use(&cpprof__heap).n_sampled, 0);
    assert_int_equal(cpprof__heap.head->peaks[0].now_bytes, 0);
}

/* 0: what the child's tables should be. Frees what the others had, for their
 * blocks are the child's now. */
static int
child(void)
{
    uintptr_t address;
    unsigned t, i;

    cpprof__heap_forked();
    cpprof__heap_set_rate(1);
    for (i = 0; i < 1000; i++)
        allocated(0x90000000 + i * 64, 64);
    for (i = 0; i < 1000; i++)
        if (!freed(0x90000000 + i * 64))
            return 1;
    for (t = 1; t < THREADS; t++) {
        for (i = 0; i < BLOCKS; i++) {
            address = address_of(t, i);
            cpprof__heap_remove((void *)address, 0, NULL);
            allocated(address, 64);
            if (!freed(address))
                return 2;
        }
    }
    return 0;
}

static void
child_of_a_fork_amid_all_threads_has_tables_that_work(void **state)
{
    pthread_t threads[THREADS];
    int i, status;

    (void)state;
    fresh_heap(1);
    start_threads(threads);
    for (i = 0; i < 20; i++) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(child());
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    stop_threads(threads);
}

static uint32_t n_handled;

/* Allocates and frees in the midst of whatever it interrupted. */
static void
handler(int signo)
{
    (void)signo;
    allocated(0xa0000000, 64);
    freed(0xa0000000);
    add_relaxed(&n_handled, 1);
}

static void
handler_that_allocates_inside_the_hook_leaves_it_whole(void **state)
{
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    unsigned i;

    (void)state;
    fresh_heap(1);
    n_handled = 0;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    while (load_relaxed(&n_handled) < 500) {
        for (i = 0; i < BLOCKS; i++)
            allocated(address_of(0, i), 48);
        for (i = 0; i < BLOCKS; i++)
            assert_true(freed(address_of(0, i)));
    }
    setitimer(ITIMER_REAL, &never, NULL);
    assert_int_equal(cpprof__hook_self.exempt, 0);
    assert_int_equal(in_use(&cpprof__heap).n_sampled, 0);
    assert_int_equal(cpprof__heap.head->peaks[0].now_bytes, 0);
    assert_int_equal(cpprof__heap.head->n_lost, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_free_each_others_blocks_and_nothing_remains),
        cmocka_unit_test(rate_changes_at_any_time_leave_nothing_behind),
        cmocka_unit_test(child_of_a_fork_amid_all_threads_has_tables_that_work),
        cmocka_unit_test(
            handler_that_allocates_inside_the_hook_leaves_it_whole),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
