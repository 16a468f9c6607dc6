/* SPDX-License-Identifier: MIT */
/*
 * The profiles goroutine and threadcreate: every thread that lives, once, with
 * its own stack, whatever it does.
 */
#include "dump.h"
#include "load.h"
#include "others.h"
#include "tap.h"

#include <cpprof/cpprof.h>
#include <cpprof/labels.h>
#include <cpprof/profiles.h>
#include <cpprof/records.h>
#include <cpprof/wall.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static const char of_asan[] = "ASan has that call of its own";

static void
nap(unsigned ms)
{
    uint64_t until = wall_ns() + ms * MS;

    while (wall_ns() < until)
        usleep(1000);
}

NOINLINE static void *
stayer(void *arg)
{
    crowd_wait();
    return arg;
}

/* Of all who are asked, the sum. */
static int64_t
count_now(const char *profile, const char *function)
{
    struct profile *p = dump_take(profile);
    int64_t n = dump_count(p, function);

    profile_free(p);
    return n;
}

/* ---- who is in it ----------------------------------------------------- */

static void
everybody_is_counted_once(void)
{
    struct crowd crowd = crowd_make(20, stayer);
    struct profile *p = dump_take("goroutine");

    check_equal(dump_count(p, NULL), 21, "all_threads_are_counted");
    check_equal(dump_count(p, "stayer"), 20, "each_thread_has_its_stack");
    check_equal(dump_count(p, "main"), 1, "the_caller_is_in_it");
    check_equal((int64_t)p->n_types, 1, "one_value");
    check_text(p->types[0].type, "goroutine", "its_type");
    check_text(p->types[0].unit, "count", "its_unit");
    check_text(p->period_type.type, "goroutine", "the_period_type");
    check_equal(p->period, 1, "the_period");
    check_equal((int64_t)cpprof_profile_count(cpprof_profile_lookup("threads")),
                21, "count_without_a_profile_is_the_same");
    profile_free(p);
    crowd_end(&crowd);
    check_equal(count_now("threads", "stayer"), 0, "ended_threads_are_not");
}

static struct cpprof_labels *red;

NOINLINE static void *
labelled(void *arg)
{
    cpprof_labels_set_current(red);
    crowd_wait();
    return arg;
}

static void
labels_are_in_it(void)
{
    struct crowd crowd;
    char *text;
    int i;

    red = cpprof_labels_new("color", "red", NULL);
    crowd = crowd_make(3, labelled);
    text = dump_text("goroutine", 1);
    /* Some may still be on their way into the wait. */
    for (i = 0; i < 100 && !strstr(text, "\n3 @ 0x"); i++) {
        usleep(10000);
        free(text);
        text = dump_text("goroutine", 1);
    }
    check_has(text, "# labels: {\"color\":\"red\"}\n", "labels_are_written");
    check_has(text, "goroutine profile: total 4\n", "the_text_has_the_total");
    check_has(text, "\n3 @ 0x", "equal_stacks_and_labels_are_one_row");
    free(text);
    crowd_end(&crowd);
    cpprof_labels_free(red);
}

/* At once: the kernel lists a thread before it can say that it is ours. */
static int
dump_beside_the_wall_profile(void)
{
    struct cpprof_writer wall;
    struct profile *p;
    int n;

    if (cpprof_writer_to_path("/dev/null", &wall, NULL) ||
        cpprof_wall_start(&wall, NULL, NULL))
        bail("cannot start");
    p = dump_take("goroutine");
    n = (int)dump_count(p, NULL);
    profile_free(p);
    cpprof_wall_stop(NULL);
    return n;
}

static void
our_own_threads_are_not(void)
{
    struct cpprof_writer cpu;
    struct crowd crowd = crowd_make(2, stayer);
    int i, n_wrong = 0, n_counted = 0;

    if (cpprof_writer_to_path("/dev/null", &cpu, NULL) ||
        cpprof_cpu_start(&cpu, NULL, NULL))
        bail("cannot start");
    for (i = 0; i < 50; i++) {
        n_wrong += dump_beside_the_wall_profile() != 3;
        n_counted +=
            cpprof_profile_count(cpprof_profile_lookup("goroutine")) != 3;
    }
    check_equal(n_wrong, 0, "threads_of_the_profiler_are_left_out");
    check_equal(n_counted, 0, "and_are_not_counted");
    cpprof_cpu_stop(NULL);
    crowd_end(&crowd);
}

/* ---- who cannot answer ------------------------------------------------ */

NOINLINE static void *
deaf(void *arg)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    crowd_wait();
    return arg;
}

static atomic_bool is_deaf, is_over;

NOINLINE static void *
deaf_spinner(void *arg)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    atomic_store(&is_deaf, true);
    while (!atomic_load(&is_over))
        load_sink += churn(load_sink);
    return arg;
}

/* One that sleeps is looked at from outside. */
static void
who_blocks_every_signal_is_listed(void)
{
    struct crowd crowd = crowd_make(2, deaf);
    pthread_t thread;
    struct profile *p;
    char *text;

    let_others_sleep();
    pthread_create(&thread, NULL, deaf_spinner, NULL);
    while (!atomic_load(&is_deaf))
        nap(1);
    p = dump_take("goroutine");
    check_equal(dump_count(p, "deaf_spinner"), 1,
                "a_thread_that_blocks_every_signal_is_listed");
    check_equal(dump_count(p, "crowd_wait"), 2, "with_its_stack_if_it_sleeps");
    check_equal(dump_count(p, "[unwind failed]"), 0, "all_of_it");
    profile_free(p);
    text = dump_text("goroutine", 2);
    check_has(text, "[sleeping, ", "with_its_state");
    check_has(text, "deaf_spinner(...)", "and_the_other_s_stack");
    free(text);
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    crowd_end(&crowd);
}

static atomic_int got_signal;

NOINLINE static void *
signal_waiter(void *arg)
{
    sigset_t all;
    int signo = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    sigwait(&all, &signo);
    atomic_store(&got_signal, signo);
    return arg;
}

static void
who_waits_for_signals_is_left_alone(void)
{
    uint64_t begin = wall_ns();
    pthread_t thread;
    int64_t n;

    pthread_create(&thread, NULL, signal_waiter, NULL);
    do {
        nap(50);
        n = count_now("goroutine", "signal_waiter");
    } while (n != 1 && wall_ns() - begin < 10000000000u);
    check_equal(n, 1, "a_thread_in_sigwait_is_listed");
    nap(50);
    check_equal(atomic_load(&got_signal), 0, "and_its_wait_goes_on");
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    check_equal(atomic_load(&got_signal), SIGUSR1, "until_its_signal_comes");
}

static int gate[2]; /* at its end it is written to */

/* 20 s at most. */
static void
wait_at_gate(void)
{
    const struct timespec timeout = {20, 0};
    struct pollfd fd = {gate[0], POLLIN, 0};

    syscall(SYS_ppoll, &fd, 1, &timeout, NULL, 0);
}

/* In vfork() a thread sleeps uninterruptibly until the child is gone. */
NOINLINE static void *
vforker(void *arg)
{
    pid_t pid = vfork();
    int status;

    if (!pid) {
        wait_at_gate();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    crowd_wait();
    return arg;
}

/* One of those who cannot answer, and the seconds of the fastest of some. */
static char *
dump_that_has(const char *state, double *best)
{
    char *text = dump_text("goroutine", 2);
    int i;

    *best = 1e9;
    for (i = 0; i < 200 && (*best > 0.5 || !strstr(text, state)); i++) {
        uint64_t begin = wall_ns();

        free(text);
        text = dump_text("goroutine", 2);
        if ((double)(wall_ns() - begin) / 1e9 < *best && strstr(text, state))
            *best = (double)(wall_ns() - begin) / 1e9;
        nap(20);
    }
    return text;
}

static void
who_is_uninterruptible_is_listed(void)
{
    struct crowd crowd = {calloc(1, sizeof(pthread_t)), 1};
    uint64_t begin = wall_ns();
    pthread_t thread;
    double seconds;
    int64_t n;
    char *text;

    crowd_open();
    if (pipe(gate))
        bail("pipe");
    pthread_create(&thread, NULL, vforker, NULL);
    text = dump_that_has("[uninterruptible, ", &seconds);
    check_at_most(seconds, 0.5, "a_dump_does_not_wait_for_who_cannot_answer");
    check_has(text, "[uninterruptible, ", "who_cannot_answer_has_its_state");
    if (!check_skip_asan("and_its_stack", of_asan))
        check_has(text, "\nvforker(", "and_its_stack");
    free(text);
    if (write(gate[1], "x", 1) != 1)
        bail("write");
    do {
        nap(100);
        n = count_now("goroutine", "crowd_wait");
    } while (n != 1 && wall_ns() - begin < 20000000000u);
    check_equal(n, 1, "a_late_answer_goes_nowhere");
    close(gate[0]);
    close(gate[1]);
    crowd.threads[0] = thread;
    crowd_end(&crowd);
}

/* Stop a thread of the parent until it says so, from a process of its own. */
static pid_t
stop_thread(pid_t tid, int ready)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) ||
        ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) ||
        waitpid(tid, NULL, __WALL) != tid)
        _exit(1);
    if (write(ready, "x", 1) != 1)
        _exit(1);
    wait_at_gate();
    ptrace(PTRACE_DETACH, tid, NULL, NULL);
    _exit(0);
}

static atomic_int stopped_tid;

NOINLINE static void *
stopped(void *arg)
{
    atomic_store(&stopped_tid, (int)syscall(SYS_gettid));
    crowd_wait();
    return arg;
}

static atomic_bool is_idle;

NOINLINE static void *
busy(void *arg)
{
    while (!atomic_load(&is_idle))
        load_sink += churn(load_sink);
    return arg;
}

/* Far more than there are processors. */
static void
who_runs_is_waited_for(void)
{
    pthread_t threads[30];
    uint64_t begin;
    int64_t n;
    int i;

    for (i = 0; i < 30; i++)
        pthread_create(&threads[i], NULL, busy, NULL);
    begin = thread_waited_ns();
    free(dump_text("goroutine", 2));
    check_at_most((double)(thread_waited_ns() - begin) / 1e9, 6,
                  "a_dump_of_many_that_run_has_an_end");
    /* Each answers when it has a processor, for which it may wait too long. */
    for (i = 0, n = 0; i < 20 && n != 30; i++)
        n = count_now("goroutine", "busy");
    check_equal(n, 30, "with_all_of_them");
    atomic_store(&is_idle, true);
    for (i = 0; i < 30; i++)
        pthread_join(threads[i], NULL);
}

static void
who_is_stopped_is_listed(void)
{
    struct crowd crowd = crowd_make(1, stopped);
    int ready[2], status;
    char *text, x;
    pid_t pid;

    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (pipe(ready) || pipe(gate))
        bail("pipe");
    pid = stop_thread(atomic_load(&stopped_tid), ready[1]);
    close(ready[1]);
    if (read(ready[0], &x, 1) != 1) {
        check_skip("a_stopped_thread_has_its_state", "ptrace is not allowed");
    } else {
        text = dump_text("goroutine", 2);
        check_has(text, "[traced, ", "a_stopped_thread_has_its_state");
        free(text);
    }
    close(ready[0]);
    if (write(gate[1], "x", 1) != 1)
        bail("write");
    waitpid(pid, &status, 0);
    close(gate[0]);
    close(gate[1]);
    check_equal(count_now("goroutine", "stopped"), 1,
                "once_it_goes_on_it_answers");
    crowd_end(&crowd);
}

static atomic_int n_own;

static void
on_own_signal(int signo)
{
    atomic_fetch_add(&n_own, signo == SIGPROF);
}

/* Signals of the program lose what they carry as those of a dump do. */
static void
a_full_queue_of_signals_loses_nobody(void)
{
    struct rlimit old, none;
    struct crowd crowd = crowd_make(5, stayer);
    int i;

    getrlimit(RLIMIT_SIGPENDING, &old);
    none = (struct rlimit){0, old.rlim_max};
    signal(SIGPROF, on_own_signal);
    setrlimit(RLIMIT_SIGPENDING, &none);
    check_equal(count_now("goroutine", "crowd_wait"), 5,
                "a_full_queue_of_signals_loses_nobody");
    check_equal(atomic_load(&n_own), 0, "nor_is_a_question_the_program_s");
    raise(SIGPROF);
    check_equal(atomic_load(&n_own), 1, "what_it_sends_itself_arrives");
    pthread_kill(crowd.threads[0], SIGPROF);
    for (i = 0; i < 1000 && atomic_load(&n_own) < 2; i++)
        nap(10);
    check_equal(atomic_load(&n_own), 2, "and_what_it_sends_a_thread");
    setrlimit(RLIMIT_SIGPENDING, &old);
    signal(SIGPROF, SIG_DFL);
    crowd_end(&crowd);
}

/* ---- while things go on ----------------------------------------------- */

static atomic_bool enough;

static void *
short_lived(void *arg)
{
    return arg;
}

static void *
breeder(void *arg)
{
    while (!atomic_load(&enough)) {
        pthread_t threads[8];
        int i, n = 0;

        for (i = 0; i < 8; i++)
            n += !pthread_create(&threads[n], NULL, short_lived, NULL);
        while (n > 0)
            pthread_join(threads[--n], NULL);
    }
    return arg;
}

static void
nobody_is_missing_while_others_come_and_go(void)
{
    struct crowd crowd = crowd_make(30, stayer);
    pthread_t breeders[2];
    int i, missing = 0, created = 0;

    atomic_store(&enough, false);
    for (i = 0; i < 2; i++)
        pthread_create(&breeders[i], NULL, breeder, NULL);
    for (i = 0; i < 40; i++) {
        missing += count_now("goroutine", "crowd_wait") != 30;
        created += count_now("threadcreate", "crowd_make") != 30;
    }
    check_equal(missing, 0, "nobody_is_missing_while_others_come_and_go");
    check_equal(created, 0, "nor_is_who_created_them");
    atomic_store(&enough, true);
    for (i = 0; i < 2; i++)
        pthread_join(breeders[i], NULL);
    crowd_end(&crowd);
}

static atomic_int wrong;

static void *
dumper(void *arg)
{
    int i;

    for (i = 0; i < 10; i++)
        if (count_now("goroutine", "stayer") != 10)
            atomic_fetch_add(&wrong, 1);
    return arg;
}

static void
dumps_at_the_same_time_are_whole(void)
{
    struct crowd crowd = crowd_make(10, stayer);
    pthread_t dumpers[4];
    int i;

    for (i = 0; i < 4; i++)
        pthread_create(&dumpers[i], NULL, dumper, NULL);
    for (i = 0; i < 4; i++)
        pthread_join(dumpers[i], NULL);
    check_equal(atomic_load(&wrong), 0, "dumps_at_the_same_time_are_whole");
    crowd_end(&crowd);
}

static int channel[2];
static atomic_int n_interrupted;

NOINLINE static void *
reader(void *arg)
{
    char x;

    while (read(channel[0], &x, 1) < 0)
        atomic_fetch_add(&n_interrupted, errno == EINTR);
    return arg;
}

static void
a_read_goes_on(void)
{
    pthread_t thread;
    int i;

    if (pipe(channel))
        bail("pipe");
    pthread_create(&thread, NULL, reader, NULL);
    let_others_sleep();
    for (i = 0; i < 20; i++)
        free(dump_text("goroutine", 1));
    check_equal(atomic_load(&n_interrupted), 0, "a_read_is_not_interrupted");
    if (write(channel[1], "x", 1) != 1)
        bail("write");
    pthread_join(thread, NULL);
}

static void
a_thousand_threads_are_seen(void)
{
    struct crowd crowd = crowd_make(1000, stayer);
    uint64_t best = UINT64_MAX;
    int i;

    for (i = 0; i < 5; i++) {
        uint64_t begin = wall_ns();
        struct profile *p = dump_take("goroutine");

        if (wall_ns() - begin < best)
            best = wall_ns() - begin;
        if (i == 0)
            check_equal(dump_count(p, "stayer"), 1000,
                        "a_thousand_threads_are_seen");
        profile_free(p);
    }
    /* ./dev bench threads holds it against 50 ms */
    check_at_most((double)best / 1e6, 500, "in_a_short_time");
    crowd_end(&crowd);
}

/* ---- records ---------------------------------------------------------- */

static void
records_come_in_two_calls(void)
{
    struct crowd crowd = crowd_make(4, stayer);
    struct cpprof_stack_record *records;
    size_t i, n = 0, n_full = 0;

    check_equal(cpprof_goroutine_records(NULL, 0, &n, NULL), CPPROF_OK,
                "a_call_without_room_succeeds");
    check_equal((int64_t)n, 5, "and_says_how_many_there_are");
    records = calloc(n + 8, sizeof *records);
    cpprof_goroutine_records(records, n + 8, &n, NULL);
    for (i = 0; i < n; i++)
        n_full += records[i].stack[0] != 0;
    check_equal((int64_t)n_full, 5, "with_room_there_are_stacks");
    cpprof_threadcreate_records(NULL, 0, &n, NULL);
    check_equal((int64_t)n, 5, "threadcreate_has_as_many");
    free(records);
    crowd_end(&crowd);
}

/* ---- who created them ------------------------------------------------- */

static pthread_t made;

NOINLINE static void
make_one(void)
{
    pthread_create(&made, NULL, stayer, NULL);
    __asm__ volatile("");
}

static void
creators_are_known(void)
{
    struct crowd crowd = crowd_make(3, stayer);
    struct crowd one = {calloc(1, sizeof(pthread_t)), 1};
    struct profile *p;
    uint64_t ended;
    int64_t n;

    make_one();
    one.threads[0] = made;
    let_others_sleep();
    p = dump_take("threadcreate");
    check_equal(dump_count(p, "crowd_make"), 3, "the_creator_is_known");
    check_equal(dump_count(p, "make_one"), 1, "each_thread_has_its_own");
    if (!check_skip_asan("the_call_itself_is_not_in_the_stack", of_asan))
        check_equal(dump_count(p, "pthread_create"), 0,
                    "the_call_itself_is_not_in_the_stack");
    check_equal(dump_count(p, "[main thread]"), 1,
                "nobody_created_the_main_thread");
    check_equal(dump_count(p, NULL), 5, "all_live_threads_are_counted");
    check_text(p->types[0].type, "threadcreate", "the_type_of_threadcreate");
    profile_free(p);
    crowd_end(&one);
    crowd_end(&crowd);
    ended = wall_ns();
    do {
        nap(20); /* the kernel lists who has ended for a moment */
        n = count_now("threadcreate", "make_one");
    } while (n && wall_ns() - ended < 10 * SECOND);
    check_equal(n, 0, "threads_that_ended_are_not");
}

/* ---- the readable dump ------------------------------------------------ */

static bool
matches(const char *pattern, const char *text)
{
    regex_t regex;
    bool found;

    if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB))
        bail("regcomp: %s", pattern);
    found = !regexec(&regex, text, 0, NULL, 0);
    regfree(&regex);
    return found;
}

/*
 * The lines as readers of Go's dumps know them (github.com/maruel/panicparse,
 * stack/context.go): a header, functions with their places, who created it.
 */
static bool
is_known_line(const char *line)
{
    return !*line || matches("^goroutine [0-9]+ \\[[^]]+\\]:$", line) ||
           matches("^created by .+$", line) || matches("^.+\\(.*\\)$", line) ||
           matches("^\t[^:]+:[0-9]+ \\+0x[0-9a-f]+$", line) ||
           !strcmp(line, "...additional frames elided...") ||
           !strcmp(line,
                   "\tgoroutine running on other thread; stack unavailable");
}

NOINLINE static void *
named(void *arg)
{
    prctl(PR_SET_NAME, "wor]ker\n7");
    crowd_wait();
    return arg;
}

static void
the_dump_has_the_shape_of_go(void)
{
    struct crowd crowd = crowd_make(2, named);
    char *text, *line, *rest, first[64];
    int unknown = 0;

    let_others_sleep();
    text = dump_text("goroutine", 2);
    snprintf(first, sizeof first, "goroutine %d [running, ", (int)getpid());
    check(!strncmp(text, first, strlen(first)), "the_caller_comes_first");
    check_has(text, "name \"wor?ker?7\"", "names_cannot_end_the_brackets");
    check_has(text, "wchan futex", "the_wait_channel_is_named");
    check(matches("\\[sleeping, for [0-9]+\\.[0-9]{3} s, ", text) ||
              !strstr(text, "[sleeping, for"),
          "how_long_it_sleeps_is_a_number");
    check_has(text, "\nnamed(...)\n\t", "functions_have_their_place");
    if (!check_skip_asan("the_creator_is_named", of_asan))
        check_has(text, "created by crowd_make\n\t", "the_creator_is_named");
    rest = text;
    while ((line = strsep(&rest, "\n")))
        if (!is_known_line(line)) {
            note("unknown: %s", line);
            unknown++;
        }
    check_equal(unknown, 0, "every_line_is_one_that_go_has");
    free(text);
    crowd_end(&crowd);
}

/* ---- fork and exec ---------------------------------------------------- */

static void
a_child_has_one_thread(void)
{
    struct crowd crowd = crowd_make(3, stayer);
    int status = -1;
    pid_t pid = fork();

    if (!pid)
        _exit(count_now("goroutine", NULL) == 1 &&
                      count_now("threadcreate", NULL) == 1
                  ? 0
                  : 1);
    waitpid(pid, &status, 0);
    check_equal(status, 0, "a_forked_child_sees_itself_only");
    crowd_end(&crowd);
}

static void *
always_dumping(void *arg)
{
    for (;;)
        free(dump_text("goroutine", 1));
    return arg;
}

/* A question that is pending when the new image starts would end it. */
static void
exec_during_dumps(void)
{
    int i, failed = 0;

    for (i = 0; i < 10; i++) {
        pid_t pid = fork();
        int status = -1;

        if (!pid) {
            pthread_t thread;
            uint64_t all = UINT64_MAX;

            if (i % 2)
                syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8);
            pthread_create(&thread, NULL, always_dumping, NULL);
            usleep(30000 + 1000 * (unsigned)i);
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        waitpid(pid, &status, 0);
        failed += status != 0;
    }
    check_equal(failed, 0, "an_exec_during_dumps_succeeds");
}

int
main(void)
{
    everybody_is_counted_once();
    labels_are_in_it();
    our_own_threads_are_not();
    who_blocks_every_signal_is_listed();
    who_waits_for_signals_is_left_alone();
    who_is_uninterruptible_is_listed();
    who_is_stopped_is_listed();
    who_runs_is_waited_for();
    a_full_queue_of_signals_loses_nobody();
    nobody_is_missing_while_others_come_and_go();
    dumps_at_the_same_time_are_whole();
    a_read_goes_on();
    a_thousand_threads_are_seen();
    records_come_in_two_calls();
    creators_are_known();
    the_dump_has_the_shape_of_go();
    a_child_has_one_thread();
    exec_during_dumps();
    return check_done();
}
