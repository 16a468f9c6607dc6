/* SPDX-License-Identifier: MIT */
/* Sampling of waits that are told, not waited, and the tables of them. */
#include "collect/contention/block_profile.h"
#include "collect/signal/waits/waits.h"
#include "heap_core_fixture.h"
#include <cpprof/profiles.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct sums {
    double count, delay_ns;
    unsigned n_buckets;
};

static struct sums
sums_of(enum cpprof__wait_profile profile)
{
    uint32_t i, n = cpprof__waits_n_buckets(&cpprof__waits);
    struct sums sums = {0, 0, 0};
    struct cpprof__wait_bucket b;

    for (i = 1; i < n; i++) {
        if (!cpprof__waits_read(&cpprof__waits, i, &b) || b.profile != profile)
            continue;
        sums.count += (double)b.count / (1 << CPPROF__WAIT_FRACTION_BITS);
        sums.delay_ns += (double)b.delay_ns;
        sums.n_buckets++;
    }
    return sums;
}

static int
setup(void **state)
{
    fresh_heap(0);
    cpprof__waits_forked();
    cpprof_block_set_rate(0);
    cpprof_mutex_set_fraction(0);
    cpprof__hook_self.random = 20240229;
    return 0;
}

static void
released(uint64_t ns)
{
    cpprof__wait_released(NULL, (struct cpprof__wait_charge){ns, 1}, NULL);
}

__attribute__((noinline)) static void
many_events(int n, int64_t ns)
{
    while (n-- > 0)
        cpprof_block_add(ns, 0);
    __asm__ volatile("");
}

static void
rates_return_the_one_before_and_negative_ones_read(void **state)
{
    assert_int_equal(cpprof_block_set_rate(17), 0);
    assert_int_equal(cpprof_block_set_rate(-1), 17);
    assert_int_equal(cpprof_block_set_rate(0), 17);
    assert_int_equal(cpprof_mutex_set_fraction(5), 0);
    assert_int_equal(cpprof_mutex_set_fraction(-1), 5);
    assert_int_equal(cpprof_mutex_set_fraction(0), 5);
    assert_true(cpprof__waits_are_off());
}

static void
nothing_is_recorded_at_rate_0(void **state)
{
    many_events(1000, 1000);
    released(1000);
    assert_true(sums_of(CPPROF__WAIT_BLOCK).count == 0);
    assert_true(sums_of(CPPROF__WAIT_MUTEX).count == 0);
}

static void
everything_is_recorded_at_rate_1(void **state)
{
    struct sums sums;

    cpprof_block_set_rate(1);
    many_events(1000, 250);
    cpprof_block_add(0, 0); /* as Go: at least 1 */
    sums = sums_of(CPPROF__WAIT_BLOCK);
    assert_true(sums.count == 1001);
    assert_true(sums.delay_ns == 250001);
}

/*
 * Go's TestBlockProfileBias, which asks for 20 %. One run is off by 1 % (its
 * standard deviation), whatever the seed; the mean of 16, by 0.25 %. So 1 %
 * is a bias that is four times as large as chance, and then more runs are
 * made, not less asked for.
 */
static void
short_and_long_waits_are_sampled_without_bias(void **state)
{
    const double rate = 100000;
    double count = 0, delay_ns = 0;
    struct sums sums;
    int runs = 0, wanted;

    cpprof_block_set_rate((int64_t)rate);
    for (wanted = 16; wanted <= 256; wanted *= 4) {
        for (; runs < wanted; runs++) {
            cpprof__waits_forked();
            cpprof__hook_self.random = runs ? 0 : 20240229;
            many_events(100000, (int64_t)rate / 10);
            sums = sums_of(CPPROF__WAIT_BLOCK);
            assert_true(sums.count > 95000 && sums.count < 105000);
            count += sums.count;
            delay_ns += sums.delay_ns;
        }
        if (fabs(count / runs / 100000 - 1) < 0.01)
            break;
    }
    assert_true(wanted <= 256);
    assert_true(fabs(delay_ns / (count * rate / 10) - 1) < 0.001);
    cpprof__waits_forked();
    many_events(10000, (int64_t)rate);
    sums = sums_of(CPPROF__WAIT_BLOCK);
    assert_true(sums.count == 10000 && sums.delay_ns == 10000 * rate);
}

/* Go's TestMutexProfileRateAdjust. */
static void
mutex_sums_stay_when_the_fraction_changes(void **state)
{
    struct sums before, after;

    cpprof_mutex_set_fraction(1);
    released(7000);
    before = sums_of(CPPROF__WAIT_MUTEX);
    assert_true(before.count == 1 && before.delay_ns == 7000);
    cpprof_mutex_set_fraction(100);
    after = sums_of(CPPROF__WAIT_MUTEX);
    assert_true(after.count == 1 && after.delay_ns == 7000);
    cpprof_mutex_set_fraction(0);
    after = sums_of(CPPROF__WAIT_MUTEX);
    assert_true(after.count == 1 && after.delay_ns == 7000);
}

/* Gives the lock up: what there is to be charged with. */
static struct cpprof__wait_charge
release(const void *lock)
{
    struct cpprof__wait_charge charge = {0, 0};

    cpprof__wait_release(lock, &charge);
    return charge;
}

/* Which waits are followed is drawn when they begin; what was charged for one
 * stands for ten. */
static void
fraction_of_waits_stands_for_all(void **state)
{
    uint64_t n_followed = 0;
    struct cpprof_wait wait;
    struct sums sums;
    int i, lock = 0;

    cpprof_mutex_set_fraction(10);
    for (i = 0; i < 100000; i++) {
        cpprof_wait_begin(&wait, &lock);
        cpprof_wait_end(&wait);
        n_followed += release(&lock).n;
    }
    assert_in_range(n_followed, 9500, 10500);
    cpprof__wait_released(NULL, (struct cpprof__wait_charge){500, 3}, NULL);
    sums = sums_of(CPPROF__WAIT_MUTEX);
    assert_true(sums.count == 30 && sums.delay_ns == 5000);
    cpprof__wait_released(NULL, (struct cpprof__wait_charge){500, 0}, NULL);
    sums = sums_of(CPPROF__WAIT_MUTEX);
    assert_true(sums.count == 30 && sums.delay_ns == 10000);
}

/* As many contentions whichever the fraction is: waiters, not unlocks. */
static void
unlock_for_three_waiters_is_three_contentions(void **state)
{
    struct cpprof_wait waits[3];
    struct sums sums;
    int i, lock = 0;

    cpprof_mutex_set_fraction(1);
    for (i = 0; i < 3; i++)
        cpprof_wait_begin(&waits[i], &lock);
    usleep(1000);
    cpprof_wait_released(&lock);
    sums = sums_of(CPPROF__WAIT_MUTEX);
    assert_true(sums.delay_ns >= 3000000);
    usleep(1000);
    cpprof_wait_released(&lock);
    sums = sums_of(CPPROF__WAIT_MUTEX);
    assert_true(sums.delay_ns >= 6000000);
    for (i = 0; i < 3; i++)
        cpprof_wait_end(&waits[i]);
    assert_true(sums_of(CPPROF__WAIT_MUTEX).count == 3);
}

/* Go's TestMutexBlockFullAggregation. */
static void
one_stack_is_one_bucket_in_each_profile(void **state)
{
    cpprof_block_set_rate(1);
    cpprof_mutex_set_fraction(1);
    many_events(1000, 5);
    assert_int_equal(sums_of(CPPROF__WAIT_BLOCK).n_buckets, 1);
    assert_int_equal(sums_of(CPPROF__WAIT_MUTEX).n_buckets, 0);
}

static void
skipping_more_than_there_is_leaves_one_frame(void **state)
{
    struct cpprof__tree_node nodes[4];
    struct cpprof__wait_bucket b;
    uint32_t i, n;

    cpprof_block_set_rate(1);
    cpprof_block_add(100, 47674);
    n = cpprof__waits_n_buckets(&cpprof__waits);
    for (i = 1; i < n; i++)
        if (cpprof__waits_read(&cpprof__waits, i, &b))
            break;
    assert_true(i < n);
    assert_int_equal(cpprof__tree_stack(&heap_tree, b.stack, nodes, 4), 1);
    assert_int_equal(nodes[0].pc, CPPROF__FRAME_LOST);
}

static void
program_may_tell_of_its_own_waits(void **state)
{
    struct cpprof_wait wait, inner;
    int lock = 0, other = 0;

    cpprof_block_set_rate(1);
    cpprof_mutex_set_fraction(1);
    cpprof_wait_begin(&wait, &lock);
    assert_int_equal(cpprof__wait_now(cpprof__wait_own).kind,
                     CPPROF__WAITS_OTHER_LOCK);
    assert_ptr_equal(cpprof__wait_now(cpprof__wait_own).lock, &lock);
    cpprof_wait_begin(&inner, &other); /* in a signal handler */
    assert_ptr_equal(cpprof__wait_now(cpprof__wait_own).lock, &other);
    cpprof_wait_end(&inner);
    assert_ptr_equal(cpprof__wait_now(cpprof__wait_own).lock, &lock);
    cpprof_wait_released(&lock);
    cpprof_wait_end(&wait);
    assert_int_equal(cpprof__wait_now(cpprof__wait_own).kind,
                     CPPROF__WAITS_NOT);
    assert_true(sums_of(CPPROF__WAIT_BLOCK).count == 2);
    assert_true(sums_of(CPPROF__WAIT_MUTEX).count == 1);
}

/* ---- waits that are left ---------------------------------------------- */

static char left_lock[8], other_lock[8];

__attribute__((noinline)) static void
begin_and_leave(enum cpprof__wait_kind kind)
{
    struct cpprof__wait wait;

    cpprof__wait_begin(&wait, kind, left_lock, NULL);
    assert_true(cpprof__wait_may_charge(left_lock));
}

static bool
is_any_lock_waited_for(void)
{
    unsigned i;

    for (i = 0; i < CPPROF__WAIT_STRIPES; i++)
        if (cpprof__wait_stripes[i])
            return true;
    return false;
}

static void
wait_that_was_left_ends_when_the_next_begins(void **state)
{
    struct cpprof__wait wait;

    cpprof_mutex_set_fraction(1);
    begin_and_leave(CPPROF__WAITS_MUTEX_LOCK);
    assert_int_equal(cpprof__wait_own->n, 1);
    cpprof__wait_begin(&wait, CPPROF__WAITS_SEMAPHORE, other_lock, NULL);
    assert_int_equal(cpprof__wait_own->n, 1);
    assert_false(is_any_lock_waited_for());
    cpprof__wait_end(&wait, CPPROF__WAIT_GOT);
    assert_int_equal(cpprof__wait_own->n, 0);
}

static void
wait_that_was_left_ends_when_something_is_given_up(void **state)
{
    cpprof_mutex_set_fraction(1);
    begin_and_leave(CPPROF__WAITS_MUTEX_LOCK);
    assert_true(release(left_lock).ns == 0);
    assert_false(is_any_lock_waited_for());
}

static void
wait_that_was_left_ends_with_its_thread(void **state)
{
    cpprof_mutex_set_fraction(1);
    begin_and_leave(CPPROF__WAITS_MUTEX_LOCK);
    cpprof__waits_thread_ended();
    assert_null(cpprof__wait_own);
    assert_true(release(left_lock).ns > 0); /* until it ended */
    assert_false(is_any_lock_waited_for());
}

enum { N_PLACES = 1000 };

static uintptr_t places[N_PLACES];

static void *
wait_and_go(void *number)
{
    struct cpprof__wait wait;

    cpprof__wait_begin(&wait, CPPROF__WAITS_SEMAPHORE, other_lock, NULL);
    cpprof__wait_end(&wait, CPPROF__WAIT_GOT);
    places[(uintptr_t)number] = (uintptr_t)cpprof__wait_own;
    return NULL;
}

/* None of these says that it ends. */
static void
memory_of_threads_that_ended_is_used_again(void **state)
{
    uintptr_t i, lo = UINTPTR_MAX, hi = 0;
    pthread_t thread;

    cpprof_block_set_rate(1);
    for (i = 0; i < N_PLACES; i++) {
        assert_int_equal(pthread_create(&thread, NULL, wait_and_go, (void *)i),
                         0);
        pthread_join(thread, NULL);
        assert_int_not_equal(places[i], 0);
        lo = places[i] < lo ? places[i] : lo;
        hi = places[i] > hi ? places[i] : hi;
    }
    assert_in_range(hi - lo, 0, 256 * sizeof(struct cpprof__wait_self));
    cpprof_block_set_rate(0);
}

static volatile unsigned n_questions;

/* The call that asks then returns anything but that there is no such thread. */
static void
count_question(int signo)
{
    (void)signo;
    n_questions++;
}

/* Takes as many places as threads that stay, and tells how often it asked for
 * one of them at most. */
static void *
ask_for_many(void *most)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    static struct cpprof__wait_self *taken[N_PLACES];
    unsigned i;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return NULL;
    for (i = 0; i < N_PLACES; i++) {
        unsigned before = n_questions, asked;

        cpprof__wait_own = NULL;
        taken[i] = cpprof__wait_self_take() ? cpprof__wait_own : NULL;
        asked = n_questions - before;
        *(unsigned *)most =
            asked > *(unsigned *)most ? asked : *(unsigned *)most;
    }
    cpprof__wait_own = NULL;
    for (i = 0; i < N_PLACES; i++)
        if (taken[i])
            taken[i]->tid = 0;
    return most;
}

static void
first_wait_beside_a_thousand_threads_asks_for_few(void **state)
{
    unsigned most = 0;
    pthread_t thread;
    void *is_done;

    signal(SIGSYS, count_question);
    assert_int_equal(pthread_create(&thread, NULL, ask_for_many, &most), 0);
    pthread_join(thread, &is_done);
    signal(SIGSYS, SIG_DFL);
    if (!is_done)
        skip();
    assert_in_range(most, 1, 64);
}

static void *
wait_and_say_so(void *number)
{
    wait_and_go(number);
    cpprof__waits_thread_ended();
    return NULL;
}

/* Though others are free. */
static void
memory_that_was_given_back_is_taken_first(void **state)
{
    pthread_t thread;
    uintptr_t i;

    cpprof_block_set_rate(1);
    for (i = 0; i < 3; i++) {
        assert_int_equal(
            pthread_create(&thread, NULL, wait_and_say_so, (void *)i), 0);
        pthread_join(thread, NULL);
    }
    cpprof_block_set_rate(0);
    assert_int_not_equal(places[0], 0);
    assert_int_equal(places[1], places[0]);
    assert_int_equal(places[2], places[0]);
}

__attribute__((noinline)) static void
wait_below(void)
{
    struct cpprof__wait waits[10]; /* further below, as a signal's frame is */

    cpprof__wait_begin(waits, CPPROF__WAITS_SEMAPHORE, other_lock, NULL);
    assert_int_equal(cpprof__wait_own->n, 2);
    cpprof__wait_end(waits, CPPROF__WAIT_GOT);
}

static void
wait_in_a_handler_leaves_the_outer_one_alone(void **state)
{
    struct cpprof__wait wait;

    cpprof_mutex_set_fraction(1);
    cpprof__wait_begin(&wait, CPPROF__WAITS_MUTEX_LOCK, left_lock, NULL);
    wait_below();
    assert_true(cpprof__wait_may_charge(left_lock));
    assert_int_equal(cpprof__wait_now(cpprof__wait_own).kind,
                     CPPROF__WAITS_MUTEX_LOCK);
    cpprof__wait_end(&wait, CPPROF__WAIT_GOT);
    release(left_lock); /* nobody was charged for it */
    assert_false(is_any_lock_waited_for());
}

static void
more_waits_than_there_is_room_for_end_once(void **state)
{
    struct cpprof_wait waits[3 * CPPROF__WAITS_NESTED];
    unsigned i, n = sizeof waits / sizeof *waits;

    cpprof_mutex_set_fraction(1);
    for (i = 0; i < n; i++)
        cpprof_wait_begin(&waits[i], left_lock);
    for (i = 0; i < n; i++)
        cpprof_wait_end(&waits[i]);
    assert_int_equal(cpprof__wait_own->n, 0);
    release(left_lock); /* nobody was charged for it */
    assert_false(is_any_lock_waited_for());
}

/* As fork() in a handler that interrupted a wait. */
static void
wait_that_goes_on_in_a_child_is_none_there(void **state)
{
    struct cpprof__wait wait;
    struct cpprof_wait own;

    cpprof_mutex_set_fraction(1);
    cpprof_wait_begin(&own, other_lock);
    cpprof__wait_begin(&wait, CPPROF__WAITS_MUTEX_LOCK, left_lock, NULL);
    cpprof__waits_forked();
    cpprof__wait_end(&wait, CPPROF__WAIT_GOT);
    cpprof_wait_end(&own);
    assert_false(is_any_lock_waited_for());
}

static void
waits_of_the_profiler_are_not_seen(void **state)
{
    struct cpprof_wait wait;
    int lock = 0;

    cpprof_block_set_rate(1);
    cpprof__hook_self.exempt++;
    cpprof_wait_begin(&wait, &lock);
    cpprof_wait_end(&wait);
    cpprof__hook_self.exempt--;
    assert_true(sums_of(CPPROF__WAIT_BLOCK).count == 0);
}

static void
wait_that_began_at_rate_0_ends_in_peace(void **state)
{
    struct cpprof_wait wait;
    int lock = 0;

    cpprof_wait_begin(&wait, &lock);
    cpprof_block_set_rate(1);
    cpprof_wait_end(&wait);
    assert_true(sums_of(CPPROF__WAIT_BLOCK).count == 0);
}

static void
what_finds_no_room_is_a_record_of_its_own(void **state)
{
    struct cpprof__stack_record *records;
    size_t n;

    cpprof__wait_count(CPPROF__WAIT_BLOCK, 0, 3 << CPPROF__WAIT_FRACTION_BITS,
                       500);
    assert_int_equal(cpprof__block_records(&cpprof__waits, CPPROF__WAIT_BLOCK,
                                           77, &records, &n, NULL),
                     CPPROF_OK);
    assert_int_equal(n, 1);
    assert_int_equal(records[0].stack, 77);
    assert_int_equal(records[0].values[0], 3);
    assert_int_equal(records[0].values[1], 500);
    free(records);
}

static void
copy_of_the_tables_can_be_read_and_garbage_cannot(void **state)
{
    size_t n = cpprof__waits_bytes();
    void *copy = fresh_pages(n);
    struct cpprof__waits waits;
    struct cpprof__wait_bucket b;

    assert_false(cpprof__waits_open(&waits, copy, n));
    cpprof__wait_count(CPPROF__WAIT_MUTEX, 1, 1, 2);
    memcpy(copy, cpprof__waits.head, n);
    assert_false(cpprof__waits_open(&waits, copy, n - 1));
    assert_true(cpprof__waits_open(&waits, copy, n));
    assert_int_equal(cpprof__waits_n_buckets(&waits),
                     cpprof__waits_n_buckets(&cpprof__waits));
    waits.head->n_buckets = UINT32_MAX;
    assert_int_equal(cpprof__waits_n_buckets(&waits), CPPROF__WAIT_BUCKETS);
    assert_false(cpprof__waits_read(&waits, CPPROF__WAIT_BUCKETS, &b));
    assert_false(cpprof__waits_read(&waits, 0, &b));
    munmap(copy, n);
}

static void *
events_of_a_thread(void *arg)
{
    struct cpprof_wait wait;
    int i;

    for (i = 0; i < 2000; i++) {
        cpprof_block_add(100, (unsigned)i % 2);
        cpprof_wait_begin(&wait, arg);
        cpprof_wait_released(arg);
        cpprof_wait_end(&wait);
        if (i % 100 == 0)
            cpprof_mutex_set_fraction(1 + i % 3);
    }
    return NULL;
}

static void
events_of_many_threads_are_all_counted(void **state)
{
    pthread_t threads[8];
    int i, lock = 0;

    cpprof_block_set_rate(1);
    cpprof_mutex_set_fraction(1);
    for (i = 0; i < 8; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, events_of_a_thread, &lock), 0);
    for (i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    /* Each wait is one, too. */
    assert_true(sums_of(CPPROF__WAIT_BLOCK).count == 8 * 4000);
}

static void *
vforks_and_waits(void *arg)
{
    struct cpprof__wait wait;
    pid_t child = vfork();
    int status;

    (void)arg;
    if (child == 0) {
        cpprof__wait_begin(&wait, CPPROF__WAITS_MUTEX_LOCK, &wait, NULL);
        cpprof__wait_end(&wait, CPPROF__WAIT_GOT);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    /* What the child was refused is there for the thread. */
    assert_null(cpprof__wait_own);
    cpprof__wait_begin(&wait, CPPROF__WAITS_MUTEX_LOCK, &wait, NULL);
    assert_int_equal(cpprof__wait_own->tid, syscall(SYS_gettid));
    cpprof__wait_end(&wait, CPPROF__WAIT_GOT);
    child = vfork();
    if (child == 0) {
        cpprof__wait_begin(&wait, CPPROF__WAITS_MUTEX_LOCK, &wait, NULL);
        _exit(wait.is_seen);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    /* Nor is it a wait of the thread's that never ends. */
    assert_int_equal(cpprof__wait_own->n, 0);
    return NULL;
}

/* Its parent's thread would keep memory that belongs to a thread which is gone,
 * and share it with the next that waits. */
static void
child_of_vfork_takes_no_memory_for_its_waits(void **state)
{
    pthread_t thread;

    cpprof_block_set_rate(1);
    assert_int_equal(pthread_create(&thread, NULL, vforks_and_waits, NULL), 0);
    pthread_join(thread, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(
            rates_return_the_one_before_and_negative_ones_read, setup),
        cmocka_unit_test_setup(nothing_is_recorded_at_rate_0, setup),
        cmocka_unit_test_setup(everything_is_recorded_at_rate_1, setup),
        cmocka_unit_test_setup(short_and_long_waits_are_sampled_without_bias,
                               setup),
        cmocka_unit_test_setup(mutex_sums_stay_when_the_fraction_changes,
                               setup),
        cmocka_unit_test_setup(fraction_of_waits_stands_for_all, setup),
        cmocka_unit_test_setup(unlock_for_three_waiters_is_three_contentions,
                               setup),
        cmocka_unit_test_setup(one_stack_is_one_bucket_in_each_profile, setup),
        cmocka_unit_test_setup(skipping_more_than_there_is_leaves_one_frame,
                               setup),
        cmocka_unit_test_setup(program_may_tell_of_its_own_waits, setup),
        cmocka_unit_test_setup(wait_that_was_left_ends_when_the_next_begins,
                               setup),
        cmocka_unit_test_setup(
            wait_that_was_left_ends_when_something_is_given_up, setup),
        cmocka_unit_test_setup(wait_that_was_left_ends_with_its_thread, setup),
        cmocka_unit_test_setup(memory_of_threads_that_ended_is_used_again,
                               setup),
        cmocka_unit_test_setup(
            first_wait_beside_a_thousand_threads_asks_for_few, setup),
        cmocka_unit_test_setup(memory_that_was_given_back_is_taken_first,
                               setup),
        cmocka_unit_test_setup(child_of_vfork_takes_no_memory_for_its_waits,
                               setup),
        cmocka_unit_test_setup(wait_in_a_handler_leaves_the_outer_one_alone,
                               setup),
        cmocka_unit_test_setup(more_waits_than_there_is_room_for_end_once,
                               setup),
        cmocka_unit_test_setup(wait_that_goes_on_in_a_child_is_none_there,
                               setup),
        cmocka_unit_test_setup(waits_of_the_profiler_are_not_seen, setup),
        cmocka_unit_test_setup(wait_that_began_at_rate_0_ends_in_peace, setup),
        cmocka_unit_test_setup(what_finds_no_room_is_a_record_of_its_own,
                               setup),
        cmocka_unit_test_setup(
            copy_of_the_tables_can_be_read_and_garbage_cannot, setup),
        cmocka_unit_test_setup(events_of_many_threads_are_all_counted, setup),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
