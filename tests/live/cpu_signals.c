/* SPDX-License-Identifier: MIT */
/*
 * The program's own use of SIGPROF goes on, before, while and after it is
 * profiled; system calls that a tick interrupts restart; errno is kept; and a
 * stray signal after the end is harmless.
 */
#include "load.h"
#include "session.h"
#include "tap.h"
#include "writers.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t n_own;     /* calls of the program's handler */
static volatile sig_atomic_t n_foreign; /* of them not sent by the program */
static volatile sig_atomic_t last_value;

static void
on_own(int signo, siginfo_t *info, void *context)
{
    n_own++;
    n_foreign += info->si_code != SI_QUEUE && info->si_code != SI_TKILL &&
                 info->si_code != SI_USER;
    last_value = info->si_code == SI_QUEUE ? info->si_value.sival_int : -1;
}

static void
on_plain(int signo)
{
    n_own++;
}

static void
install(void)
{
    struct sigaction action = {.sa_sigaction = on_own,
                               .sa_flags = SA_SIGINFO | SA_RESTART};

    if (sigaction(SIGPROF, &action, NULL))
        bail("sigaction failed");
}

static void
send(int value)
{
    union sigval v = {.sival_int = value};

    if (sigqueue(getpid(), SIGPROF, v))
        bail("sigqueue failed");
}

static void
expect_own(int value, const char *name)
{
    int before = n_own;

    send(value);
    check(n_own == before + 1 && last_value == value, name);
}

static void
check_installed(void (*want)(int, siginfo_t *, void *), const char *name)
{
    struct sigaction now;

    if (sigaction(SIGPROF, NULL, &now))
        bail("sigaction failed");
    check((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == want, name);
}

static void
test_handler_before(void)
{
    struct profile *p;

    install();
    expect_own(1, "the program's handler works before the start");
    session_start(200);
    check_installed(on_own, "while profiled, sigaction shows the program's");
    expect_own(2, "and it gets the program's signals");
    hog_one(100 * MS);
    expect_own(3, "also after ticks");
    p = session_stop();
    check(profile_cpu_in(p, "hog_one") >= 10 * p->period,
          "while the ticks become samples");
    check_equal(n_foreign, 0, "and none of them reaches the program");
    profile_free(p);
    check_installed(on_own, "after the stop, sigaction shows the program's");
    expect_own(4, "and it works");
}

static void
test_handler_during(void)
{
    struct sigaction old;
    struct sigaction action = {.sa_sigaction = on_own, .sa_flags = SA_SIGINFO};
    struct profile *p;

    signal(SIGPROF, SIG_DFL);
    session_start(200);
    if (sigaction(SIGPROF, &action, &old))
        bail("sigaction failed");
    check(old.sa_handler == SIG_DFL,
          "the old action is the program's, not ours");
    n_foreign = 0;
    hog_one(100 * MS);
    expect_own(5, "a handler installed while profiled works");
    check(signal(SIGPROF, on_plain) == (void (*)(int))(void *)on_own,
          "signal() gives the old one back");
    hog_one(50 * MS);
    p = session_stop();
    check(profile_cpu_in(p, "hog_one") >= 20 * p->period,
          "and sampling goes on below it");
    check_equal(n_foreign, 0, "with no tick in the program's handler");
    profile_free(p);
    n_own = 0;
    raise(SIGPROF);
    check_equal(n_own, 1, "the last one installed works after the stop");
}

/* --- what a program without a handler means by SIGPROF ----------------------
 */

static int
in_child(void (*what)(void))
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        what();
        _exit(0);
    }
    waitpid(child, &status, 0);
    return status;
}

static void
profile_and_stray(void)
{
    struct cpprof_cpu_options options = session_options(1000);
    int i;

    signal(SIGPROF, SIG_DFL);
    for (i = 0; i < 20; i++) {
        if (cpprof_cpu_start(
                (struct cpprof_writer[]){fd_writer(STDERR_FILENO + 100)},
                &options, NULL))
            _exit(3);
        hog_one(5 * MS);
        cpprof_cpu_stop(NULL);
        hog_one(5 * MS);
    }
}

/* Ticks that were pending when it stopped: blocked all the while, let in after
 * the end. */
static void
pending_after_stop(void)
{
    struct cpprof_cpu_options options = session_options(1000);
    sigset_t prof;

    signal(SIGPROF, SIG_DFL);
    sigemptyset(&prof);
    sigaddset(&prof, SIGPROF);
    if (cpprof_cpu_start(
            (struct cpprof_writer[]){fd_writer(STDERR_FILENO + 100)}, &options,
            NULL))
        _exit(3);
    pthread_sigmask(SIG_BLOCK, &prof, NULL);
    hog_one(50 * MS);
    cpprof_cpu_stop(NULL);
    pthread_sigmask(SIG_UNBLOCK, &prof, NULL);
    hog_one(5 * MS);
}

static void
test_stray(void)
{
    check_equal(in_child(profile_and_stray), 0,
                "start and stop at 1000 Hz never kill");
    check_equal(in_child(pending_after_stop), 0,
                "a tick that was pending at the stop does not kill");
}

/* --- interrupted system calls ----------------------------------------------
 */

static void *
sleepy_thread(void *wrong)
{
    int fds[2];
    int i;
    char byte;

    if (pipe(fds))
        bail("pipe failed");
    for (i = 0; i < 30; i++) {
        struct timespec nap = {0, 5000000};

        if (nanosleep(&nap, NULL))
            ++*(int *)wrong;
        hog_one(5 * MS);
        if (write(fds[1], "x", 1) != 1 || read(fds[0], &byte, 1) != 1)
            ++*(int *)wrong;
    }
    close(fds[0]);
    close(fds[1]);
    return NULL;
}

static int blocked_pipe[2];
static int read_errno;

static void *
reading_thread(void *arg)
{
    char byte;

    read_errno = read(blocked_pipe[0], &byte, 1) == 1 ? 0 : errno;
    return NULL;
}

/* errno between two of the program's own statements is the program's. */
static int
count_errno_changes(uint64_t cpu_ns)
{
    uint64_t end = thread_cpu_ns() + cpu_ns;
    int n = 0;

    while (thread_cpu_ns() < end) {
        int i;

        errno = 4711;
        for (i = 0; i < 100; i++)
            load_sink = churn(load_sink);
        n += errno != 4711;
    }
    return n;
}

/* How many naps were cut short; *changed counts changes of errno meanwhile. */
static int
count_short_naps(int *changed)
{
    pthread_t sleeper;
    int wrong = 0;

    pthread_create(&sleeper, NULL, sleepy_thread, &wrong);
    *changed += count_errno_changes(200 * MS);
    pthread_join(sleeper, NULL);
    return wrong;
}

static void
test_system_calls(void)
{
    pthread_t reader;
    int wrong, changed = 0, i;

    if (pipe(blocked_pipe))
        bail("pipe failed");
    session_start(1000);
    pthread_create(&reader, NULL, reading_thread, NULL);
    wrong = count_short_naps(&changed);
    /* A tick may fall into the microsecond between the call and the sleep, and
     * the kernel restarts no nanosleep(): that is chance, and rare. */
    for (i = 0; i < 3 && wrong; i++)
        wrong = count_short_naps(&changed);
    if (write(blocked_pipe[1], "x", 1) != 1)
        bail("write failed");
    pthread_join(reader, NULL);
    profile_free(session_stop());
    check_equal(changed, 0, "errno is never changed by a tick");
    check_equal(wrong, 0, "naps and pipes of a busy thread are not cut short");
    check_equal(read_errno, 0, "a read that waits all the time is not either");
}

/* --- an ITIMER_PROF of the program's own -----------------------------------
 */

static void
test_own_itimer(void)
{
    struct itimerval timer = {{0, 5000}, {0, 5000}};
    struct itimerval off = {{0, 0}, {0, 0}};
    struct profile *p;
    int n = 0;

    n_own = 0;
    install();
    session_start(200);
    setitimer(ITIMER_PROF, &timer, NULL);
    for (; n < 1 || (n < 10 && n_own < 20); n++) /* a busy machine: fewer */
        hog_one(150 * MS);
    setitimer(ITIMER_PROF, &off, NULL);
    p = session_stop();
    check_at_least(n_own, 20, "the program's own ITIMER_PROF goes on");
    check_near((double)profile_cpu_in(p, "hog_one"), n * 0.15e9, n * 0.025e9,
               "and its ticks are not taken for samples");
    profile_free(p);
    n_own = 0;
    setitimer(ITIMER_PROF, &timer, NULL);
    for (n = 0; n < 10 && n_own < 5; n++)
        hog_one(100 * MS);
    setitimer(ITIMER_PROF, &off, NULL);
    check_at_least(n_own, 5, "it is heard after a session, too");
    session_start(200);
    hog_one(150 * MS);
    p = session_stop();
    check_near((double)profile_cpu_in(p, "hog_one"), 0.15e9, 0.025e9,
               "and the next session samples again");
    profile_free(p);
}

/* --- a handler that blocks all, as Go's, and comes with each tick -----------
 */

/* Signals to one thread come in the order of their numbers, each with its frame
 * on that of the one before. */
static void
blocking_work(double seconds)
{
    const struct itimerspec often = {{0, 4000000}, {0, 4000000}};
    struct sigaction action = {.sa_handler = on_plain, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_signo = SIGURG,
                             .sigev_notify = SIGEV_THREAD_ID};
    timer_t timer;

    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    sigfillset(&action.sa_mask);
    if (sigaction(SIGSYS, &action, NULL) || sigaction(SIGURG, &action, NULL) ||
        timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) ||
        timer_settime(timer, 0, &often, NULL))
        bail("no timer");
    hog_two((uint64_t)(seconds * 1e9));
    timer_delete(timer);
    signal(SIGSYS, SIG_DFL);
}

static bool
is_walked(const struct profile *p)
{
    return profile_cpu_stack(p, "hog_two;...;main") >
           profile_cpu_ns(p) / 10 * 9;
}

static void
test_blocking_handler(void)
{
    int before = n_own;
    struct profile *p = session_until(250, 0.5, 4, blocking_work, is_walked);

    check(n_own > before + 20, "a handler that blocks SIGSYS runs");
    if (!check(is_walked(p), "a tick that comes with its signal is walked"))
        profile_note(p, 6);
    profile_free(p);
}

/* --- longjmp out of the program's handler ----------------------------------
 */

static sigjmp_buf escape;

static void
on_escape(int signo)
{
    siglongjmp(escape, 1);
}

static void
test_longjmp(void)
{
    struct profile *p;
    volatile int n = 0;

    session_start(1000);
    signal(SIGUSR2, on_escape);
    while (n < 2000) {
        if (sigsetjmp(escape, 1) == 0) {
            raise(SIGUSR2);
            bail("raise came back");
        }
        n++;
        hog_two(100000);
    }
    p = session_stop();
    check(profile_cpu_in(p, "hog_two") > profile_cpu_ns(p) / 3,
          "2000 jumps out of a handler do no harm");
    profile_free(p);
}

int
main(int argc, char **argv)
{
    session_engine(argc, argv);
    test_handler_before();
    test_handler_during();
    test_stray();
    test_system_calls();
    test_own_itimer();
    test_blocking_handler();
    test_longjmp();
    return check_done();
}
