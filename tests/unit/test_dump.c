/* SPDX-License-Identifier: MIT */
/* Slots that threads answer into, and what a wall profile counts. */
#include "arch/atomic.h"
#include "collect/dump/dump.h"
#include "collect/runtime/own_threads.h"
#include "collect/signal/sample/handler.h"
#include "collect/signal/sample/sampler.h"
#include "collect/signal/unwind/stack_view.h"
#include "collect/store/tables.h"
#include "collect/wall/wall_counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define SLOT 5

static int32_t
own_tid(void)
{
    return (int32_t)syscall(SYS_gettid);
}

static struct cpprof__dump_slot *
slot_of(enum cpprof__dump_user user)
{
    return cpprof__dump_slot(user, SLOT);
}

static const void *
own_context(void)
{
    static ucontext_t context;

    getcontext(&context);
    return &context;
}

/* Ask the own thread, which answers as soon as the kernel has looked at its
 * clock. */
static int
ask_own(enum cpprof__dump_user user)
{
    uint64_t end = cpprof__now_ns(CLOCK_MONOTONIC) + 10000000000u;
    int failed = cpprof__dump_send(user, SLOT, own_tid());

    while (!failed && cpprof__dump_state(slot_of(user)) == CPPROF__DUMP_ASKED &&
           cpprof__now_ns(CLOCK_MONOTONIC) < end)
        continue;
    return failed;
}

/* A signal that brings the value of an older question. */
static void
bring(uint64_t value)
{
    siginfo_t info;

    memset(&info, 0, sizeof info);
    info.si_code = SI_TIMER;
    info.si_value.sival_ptr = (void *)(uintptr_t)value;
    cpprof__on_signal(CPPROF__SIGNAL, &info, (void *)own_context());
}

static int
set_up(void **state)
{
    (void)state;
    return cpprof__dump_start(NULL) ||
           !cpprof__dump_make_slots(CPPROF__DUMP_ALL, SLOT + 1) ||
           !cpprof__dump_make_slots(CPPROF__DUMP_WALL, SLOT + 1);
}

static void
a_question_is_answered_with_a_stack(void **state)
{
    struct cpprof__dump_answer answer;

    (void)state;
    cpprof__dump_ask(CPPROF__DUMP_ALL, SLOT, own_tid());
    assert_int_equal(cpprof__dump_state(slot_of(CPPROF__DUMP_ALL)),
                     CPPROF__DUMP_ASKED);
    assert_int_equal(ask_own(CPPROF__DUMP_ALL), 0);
    assert_int_equal(cpprof__dump_state(slot_of(CPPROF__DUMP_ALL)),
                     CPPROF__DUMP_ANSWERED);
    answer = cpprof__dump_take(slot_of(CPPROF__DUMP_ALL));
    assert_int_not_equal(answer.stack, 0);
    assert_int_equal(answer.labels, 0);
    assert_int_equal(cpprof__dump_state(slot_of(CPPROF__DUMP_ALL)),
                     CPPROF__DUMP_FREE);
}

static void
a_late_answer_writes_nowhere(void **state)
{
    uint64_t late = cpprof__dump_ask(CPPROF__DUMP_ALL, SLOT, own_tid());
    uint64_t word;

    (void)state;
    assert_true(cpprof__dump_give_up(slot_of(CPPROF__DUMP_ALL)));
    word = slot_of(CPPROF__DUMP_ALL)->word;
    bring(late);
    assert_int_equal(slot_of(CPPROF__DUMP_ALL)->word, word);

    /* nor into the next question of the slot */
    cpprof__dump_ask(CPPROF__DUMP_ALL, SLOT, own_tid());
    word = slot_of(CPPROF__DUMP_ALL)->word;
    bring(late);
    assert_int_equal(slot_of(CPPROF__DUMP_ALL)->word, word);
    assert_true(cpprof__dump_give_up(slot_of(CPPROF__DUMP_ALL)));
}

static void
an_answer_is_not_given_up(void **state)
{
    (void)state;
    cpprof__dump_ask(CPPROF__DUMP_WALL, SLOT, own_tid());
    ask_own(CPPROF__DUMP_WALL);
    assert_false(cpprof__dump_give_up(slot_of(CPPROF__DUMP_WALL)));
    assert_int_not_equal(slot_of(CPPROF__DUMP_WALL)->cpu_ns, 0);
    cpprof__dump_take(slot_of(CPPROF__DUMP_WALL));
}

static void
a_second_signal_finds_no_question(void **state)
{
    uint64_t value = cpprof__dump_ask(CPPROF__DUMP_ALL, SLOT, own_tid());
    uint64_t word;

    (void)state;
    ask_own(CPPROF__DUMP_ALL);
    word = slot_of(CPPROF__DUMP_ALL)->word;
    bring(value);
    assert_int_equal(slot_of(CPPROF__DUMP_ALL)->word, word);
    cpprof__dump_take(slot_of(CPPROF__DUMP_ALL));
}

static void
signals_of_others_are_no_questions(void **state)
{
    siginfo_t info;

    (void)state;
    memset(&info, 0, sizeof info);
    info.si_code = SI_QUEUE;
    info.si_value.sival_ptr =
        (void *)(uintptr_t)cpprof__dump_value(CPPROF__DUMP_ALL, SLOT);
    assert_int_equal(cpprof__signal_source(&info), CPPROF__FROM_OTHERS);
    info.si_code = SI_TIMER;
    assert_int_equal(cpprof__signal_source(&info), CPPROF__FROM_QUESTION);
    info.si_value.sival_ptr = NULL;
    assert_int_equal(cpprof__signal_source(&info), CPPROF__FROM_OTHERS);
}

/* Then a question could never lose its value, and it does not. */
static void
no_question_is_sent_where_the_queue_of_signals_is_full(void **state)
{
    struct rlimit limit, none;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_SIGPENDING, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &none), 0);
    cpprof__dump_ask(CPPROF__DUMP_ALL, SLOT, own_tid());
    assert_int_equal(ask_own(CPPROF__DUMP_ALL), EAGAIN);
    assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &limit), 0);
    assert_int_equal(ask_own(CPPROF__DUMP_ALL), 0);
    cpprof__dump_take(slot_of(CPPROF__DUMP_ALL));
}

static void
who_blocks_all_signals_answers(void **state)
{
    sigset_t all, saved, pending;

    (void)state;
    cpprof__dump_ask(CPPROF__DUMP_ALL, SLOT, own_tid());
    sigemptyset(&pending); /* the kernel writes a part of it */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &saved);
    assert_int_equal(ask_own(CPPROF__DUMP_ALL), 0);
    sigpending(&pending);
    assert_true(sigisemptyset(&pending));
    sigprocmask(SIG_SETMASK, &saved, NULL);
    assert_non_null(
        (void *)(uintptr_t)cpprof__dump_take(slot_of(CPPROF__DUMP_ALL)).stack);
}

static void
slots_beyond_the_table_are_refused(void **state)
{
    (void)state;
    assert_false(
        cpprof__dump_make_slots(CPPROF__DUMP_ALL, CPPROF__MAX_THREADS + 1));
    assert_null(cpprof__dump_slot(CPPROF__DUMP_ALL, CPPROF__MAX_THREADS));
}

/* ---- tasks ------------------------------------------------------------ */

static void
a_task_is_told_from_proc(void **state)
{
    struct cpprof__task task;

    (void)state;
    pthread_setname_np(pthread_self(), "a) S (b");
    assert_true(cpprof__task_look(CPPROF__NO_FOLDER, own_tid(), &task));
    assert_string_equal(task.comm, "a) S (b");
    assert_int_equal(task.state, 'R');
    assert_false(cpprof__task_look(CPPROF__NO_FOLDER, 0x7fffffff, &task));
}

/* Ends the process, with 0 if it can read memory. */
static void *
read_without_main(void *arg)
{
    static struct cpprof__stack_view view;
    struct cpprof__task task = {.state = 0};

    while (cpprof__task_look(CPPROF__NO_FOLDER, (int32_t)getpid(), &task) &&
           task.state != 'Z')
        usleep(1000);
    _exit(cpprof__stack_fetch(&view, (uintptr_t)&task, 8) ? 0 : 1);
    return arg;
}

static void
memory_is_read_after_the_first_thread_has_ended(void **state)
{
    pthread_t thread;
    int status = -1;
    pid_t pid = fork();

    if (!pid) {
        pthread_create(&thread, NULL, read_without_main, *state);
        pthread_exit(NULL);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

static void
own_threads_are_not_listed(void **state)
{
    const int32_t extra[2] = {own_tid(), 0x7ffffff0};
    int32_t *tids;
    size_t n = 0;

    (void)state;
    tids = cpprof__tasks(extra, 2, &n);
    assert_non_null(tids);
    assert_int_equal(n, 2);
    assert_int_equal(tids[0], own_tid());
    assert_int_equal(tids[1], 0x7ffffff0);
    free(tids);
    cpprof__own_thread_begin();
    tids = cpprof__tasks(extra, 2, &n);
    assert_int_equal(n, 1);
    free(tids);
    assert_int_equal(cpprof__own_threads(), 1);
    cpprof__own_thread_end();
    assert_int_equal(cpprof__own_threads(), 0);
    assert_true(cpprof__is_own_thread(own_tid())); /* it lingers */
    cpprof__own_threads_in_child();
    assert_false(cpprof__is_own_thread(own_tid()));
}

/* ---- a thread of ours that is slow to begin ---------------------------- */

int
__real_cpprof__real_pthread_create(pthread_t *thread,
                                   const pthread_attr_t *attr,
                                   void *(*start)(void *), void *arg);
int
__wrap_cpprof__real_pthread_create(pthread_t *thread,
                                   const pthread_attr_t *attr,
                                   void *(*start)(void *), void *arg);

static struct late {
    void *(*start)(void *);
    void *arg;
} late;

static void *
begin_late(void *arg)
{
    (void)arg;
    usleep(30000);
    return late.start(late.arg);
}

int
__wrap_cpprof__real_pthread_create(pthread_t *thread,
                                   const pthread_attr_t *attr,
                                   void *(*start)(void *), void *arg)
{
    late = (struct late){start, arg};
    return __real_cpprof__real_pthread_create(thread, attr, begin_late, NULL);
}

static bool
wait_for(void *finish)
{
    while (!__atomic_load_n((bool *)finish, __ATOMIC_ACQUIRE))
        usleep(1000);
    return false;
}

static void
own_threads_are_not_listed_before_they_say_so(void **state)
{
    bool finish = false;
    struct cpprof__own_thread thread = {
        .name = "late", .run = wait_for, .arg = &finish};
    int32_t *tids;
    size_t n = 0;

    (void)state;
    assert_int_equal(cpprof__own_thread_start(&thread), 0);
    tids = cpprof__tasks(NULL, 0, &n);
    __atomic_store_n(&finish, true, __ATOMIC_RELEASE);
    assert_true(cpprof__own_thread_join(&thread, UINT64_MAX));
    assert_int_equal(n, 1);
    assert_int_equal(tids[0], own_tid());
    free(tids);
    cpprof__own_threads_in_child();
}

/* ---- counts ----------------------------------------------------------- */

static void
equal_keys_add_up_and_others_do_not(void **state)
{
    struct cpprof__wall_counts counts = {0};
    int64_t n = 0, ns = 0;
    uint32_t i;

    (void)state;
    for (i = 0; i < 9000; i++) {
        const struct cpprof__wall_count key = {
            .stack = i % 1500, .labels = i % 2, .state = i % 3};

        cpprof__wall_add(&counts, &key, 10);
    }
    assert_int_equal(counts.n, 1500);
    for (i = 0; i < counts.n_slots; i++)
        if (counts.slots[i].n) {
            assert_int_equal(counts.slots[i].n, 6);
            assert_int_equal(counts.slots[i].ns, 60);
            n += counts.slots[i].n;
            ns += counts.slots[i].ns;
        }
    assert_int_equal(n, 9000);
    assert_int_equal(ns, 90000);
    cpprof__wall_counts_free(&counts);
    assert_null(counts.slots);
}

/* 40 bits of 1024 ns are 13 days. */
static void
a_wait_began_when_it_did_however_long_the_host_is_up(void **state)
{
    const uint64_t day = 86400ull * 1000000000, second = 1000000000;
    uint64_t up, ago;

    (void)state;
    for (up = day / 2; up < 4000 * day; up = up * 3 + 12345) {
        for (ago = 0; ago < 12 * day && ago <= up; ago = ago * 7 + second) {
            uint64_t began = up - ago;
            uint64_t stored = began / 1024 & ((1ull << 40) - 1);
            uint64_t since = cpprof__dump_since_ns(stored, up);

            assert_true(since <= began && began - since < 1024);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_is_answered_with_a_stack),
        cmocka_unit_test(a_late_answer_writes_nowhere),
        cmocka_unit_test(an_answer_is_not_given_up),
        cmocka_unit_test(a_second_signal_finds_no_question),
        cmocka_unit_test(signals_of_others_are_no_questions),
        cmocka_unit_test(
            no_question_is_sent_where_the_queue_of_signals_is_full),
        cmocka_unit_test(who_blocks_all_signals_answers),
        cmocka_unit_test(slots_beyond_the_table_are_refused),
        cmocka_unit_test(a_task_is_told_from_proc),
        cmocka_unit_test(memory_is_read_after_the_first_thread_has_ended),
        cmocka_unit_test(own_threads_are_not_listed),
        cmocka_unit_test(own_threads_are_not_listed_before_they_say_so),
        cmocka_unit_test(a_wait_began_when_it_did_however_long_the_host_is_up),
        cmocka_unit_test(equal_keys_add_up_and_others_do_not),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, NULL);
}
