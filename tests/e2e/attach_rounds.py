#!/usr/bin/env python3
"""Into processes that run, and out again: each of them checks itself and goes on
as if nothing had been. Words: attached.py.
"""
import fcntl
import os
import random
import signal
import subprocess
import sys
import time

from attached import (Host, calls, cpprof, killed, library, main, program,
                      record, report, t)
from processes import children

# Those that wait, and those that never do. Each goes through so many rounds of
# attach and detach.
WAITING = ["nanosleep", "clock_nanosleep", "futex_timed", "poll", "select",
           "epoll", "sigtimedwait", "semtimedop", "recv_timed", "futex", "read",
           "accept", "connect", "sigsuspend", "wait", "semop", "io_uring",
           "held_back", "dispatched 2", "whole", "least"]
BUSY = ["registers", "spin 2", "malloc", "malloc 16", "fork", "dlopen"]
ROUNDS = 10
KILLS = 12


def mappings(pid):
    with open("/proc/%d/maps" % pid, encoding="ascii") as f:
        return len(f.readlines())


def goes_on(mode, rounds=ROUNDS):
    with Host(mode) as h:
        status, words = h.call(rounds)
        end, last = h.end()
        if end == 77:
            t.skip("%s goes on" % mode, last.strip())
            return
        t.ok("%s: all calls are answered" % mode, status == 0, words)
        t.ok("%s goes on as if nothing had been" % mode, end == 0, end, last,
             words)


def keeps_descriptors():
    """The library's file is opened in the first round of a process, so there are
    several processes."""
    said = []
    for _ in range(5):
        with Host("descriptors") as h:
            status, words = h.call(4)
            said.append((status, h.end(), words))
    t.ok("descriptors: all calls are answered",
         all(status == 0 for status, _, _ in said), said)
    t.ok("descriptors go on as if nothing had been",
         all(end == 0 for _, (end, _), _ in said), said)


def leaves_nothing():
    """Nothing more than after the first time."""
    with Host("poll") as h:
        h.call(1)
        time.sleep(0.2)
        before = (mappings(h.pid), len(os.listdir("/proc/%d/fd" % h.pid)),
                  len(os.listdir("/proc/%d/task" % h.pid)))
        h.call(ROUNDS)
        time.sleep(0.2)
        after = (mappings(h.pid), len(os.listdir("/proc/%d/fd" % h.pid)),
                 len(os.listdir("/proc/%d/task" % h.pid)))
        t.same("no mapping, descriptor or thread more than after the first",
               after, before)


def profiled(mode, kinds, rounds):
    """Attached to and detached from with threads of ours in it: none of them is
    borrowed, as the one that ends at the detach never would be free."""
    with Host(mode) as h:
        status, words = h.call(rounds, (os.path.join(os.path.dirname(cpprof),
                                                     "libcpprof.so"),
                                        kinds + ",out=%s/%%k" % os.getcwd()))
        end, last = h.end()
        t.ok("%s: %s again and again" % (mode, kinds), status == 0, words)
        t.ok("%s: %s: and it goes on" % (mode, kinds), end == 0, end, last)


READER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The whole file where the kernel wants it, and above all others. */
static void read_file(const char *path, uintptr_t above)
{
    int fd = open(path, O_RDONLY);
    off_t n = lseek(fd, 0, SEEK_END);

    mmap(0, (size_t)n, PROT_READ, MAP_PRIVATE, fd, 0);
    mmap((void *)above, (size_t)n, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
}

static volatile sig_atomic_t must_end;
static void on_term(int s) { must_end = 1; }

int main(void)
{
    uintptr_t above = ((uintptr_t)&above & -4096ul) - (64ul << 20);
    char line[4096], *name, seen[64][64] = {""};
    int n = 0, i;

    signal(SIGTERM, on_term);
    while (!must_end) {
        FILE *maps = fopen("/proc/self/maps", "r");

        while (fgets(line, sizeof line, maps)) {
            name = strchr(line, '/');
            if (!name || !strstr(line, "r-xp"))
                continue;
            name[strcspn(name, "\n")] = 0;
            for (i = 0; i < n && strcmp(seen[i], basename(name)); i++)
                ;
            if (i < n || n == 64)
                continue;
            snprintf(seen[n++], 64, "%s", basename(name));
            read_file(name, above -= 16ul << 20);
        }
        fclose(maps);
        usleep(20000);
    }
    return 0;
}
"""


def reads_libraries():
    """A program that maps whole files to read their symbols: none of them is
    where the code is."""
    p = program(READER, [])
    if not p:
        t.skip("reads libraries", "cannot be compiled here")
        return
    for turn in range(3):
        status, words = record(["-p", str(p.pid), "-t", "wall", "-duration",
                                "0.5", "-o", "r.pb.gz"])
        t.ok("reads libraries: recording %d" % turn, status == 0, words)
    p.terminate()
    t.same("reads libraries: and it goes on", p.wait(timeout=60), 0)


EXECS = r"""
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct timespec pause = {0, 5000000};

    nanosleep(&pause, NULL);
    execv("/proc/self/exe", argv);
    return 3;
}
"""


def lives_through_execs():
    """A thread that is stopped may run another program than was looked at."""
    ended = []
    for _ in range(10):
        p = program(EXECS, [])
        if not p:
            t.skip("a program that execs all the time", "cannot be compiled")
            return
        report(["-p", str(p.pid), "threads"])
        if p.poll() is not None:
            ended.append(p.returncode)
        p.kill()
        p.wait()
    t.same("a program that execs all the time goes on", ended, [])


def survives_kills(mode):
    """Whoever attaches is killed at any moment, with the child of it."""
    with Host(mode) as h:
        for _ in range(KILLS):
            p = subprocess.Popen([calls, str(h.pid), library, "3"],
                                 stdout=subprocess.DEVNULL,
                                 start_new_session=True)
            time.sleep(random.uniform(0, 0.02))
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
        time.sleep(0.3)
        status, words = h.call(2)
        end, last = h.end()
        t.ok("%s survives killed recorders" % mode, end == 0, end, last)
        t.ok("%s: and can be attached to after that" % mode, status == 0,
             words)


def commands_take_turns():
    t.beside(commands_wait, one_never_ends, a_signal_ends_the_wait)


def commands_wait():
    with Host("malloc 2") as h:
        several = [subprocess.Popen([calls, str(h.pid), library, "5"],
                                    stdout=subprocess.PIPE, text=True)
                   for _ in range(4)]
        said = [p.communicate(timeout=120)[0] for p in several]
        t.ok("commands that attach at once wait for each other",
             [p.returncode for p in several] == [0] * 4, said)
        t.same("and share one area of code", len(areas(h.pid)), 1)
        t.same("the process goes on", h.end()[0], 0)


def one_never_ends():
    with Host("nanosleep") as h:
        fd = os.open("/proc/%d/mem" % h.pid, os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX)
        p = subprocess.Popen([cpprof, "record", "-p", str(h.pid)],
                             stderr=subprocess.PIPE, text=True)
        said = p.communicate(timeout=60)[1]
        t.same("one that is at work for ever: a line says so",
               (p.returncode, said),
               (2, "cpprof: %d (attach_host): not attached: another cpprof is "
                "attaching to it or detaching from it\n" % h.pid))
        os.close(fd)


def a_signal_ends_the_wait():
    with Host("nanosleep") as h:
        fd = os.open("/proc/%d/mem" % h.pid, os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX)
        p = subprocess.Popen([cpprof, "record", "-p", str(h.pid)],
                             stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        p.send_signal(signal.SIGINT)
        begin = time.monotonic()
        p.communicate(timeout=60)
        t.ok("a signal ends the wait",
             p.returncode == 2 and time.monotonic() - begin < 5, p.returncode)
        os.close(fd)


def areas(pid):
    """Pages of code without a file: those of guest.h, in a host."""
    with open("/proc/%d/maps" % pid, encoding="ascii") as f:
        lines = [line.split() for line in f]
    return [line[0] for line in lines if len(line) == 5 and "x" in line[1]]


def killed_at_each_call(mode, step=1):
    """A command is killed at each of its system calls, or at every step-th. What
    it left in the process, the next one uses."""
    words = [calls, "0", library, "1"]
    with Host(mode) as h:
        words[1] = str(h.pid)
        n, failed = 1, []
        while subprocess.run([killed, str(n)] + words, timeout=60,
                             stdout=subprocess.DEVNULL,
                             check=False).returncode == 0:
            if n % (10 * step) == 1:
                status, said = h.call(1)
                if status:
                    failed.append("%d: %s" % (n, said))
            n += step
        t.none("%s: a command may be killed at each of its calls" % mode,
               failed)
        t.ok("%s: these are all" % mode, n > 100, n)
        status, said = h.call(2)
        t.ok("%s: then it can be attached to" % mode, status == 0, said)
        t.ok("%s: and has one area of code, not more" % mode,
             len(areas(h.pid)) == 1, areas(h.pid))
        t.same("%s: it goes on" % mode, h.end()[0], 0)


def killed_in_one_sleep():
    """A thread that goes on sleeping after a stop is stopped again and again."""
    version = os.confstr("CS_GNU_LIBC_VERSION").split()[-1].split(".")
    if [int(part) for part in version] >= [2, 41]:
        t.skip("one long sleep", "the number of the call is not known")
        return
    with Host("nanosleep_long") as h:
        n = 1
        while subprocess.run([killed, str(n), calls, str(h.pid), library, "1"],
                             timeout=60, stdout=subprocess.DEVNULL,
                             check=False).returncode == 0:
            n += 1
        t.ok("one long sleep: the commands were killed", n > 100, n)
        t.ok("one long sleep: it lasts", h.process.poll() is None)
        t.same("one long sleep: it goes on", h.end()[0], 0)


OWN_STACK = """
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
static unsigned char *arena;
static void *sleeper(void *arg)
{
    volatile char most[16384 - 6000];
    struct timespec t = {2, 0};
    most[0] = 1;
    nanosleep(&t, NULL);
    return most[0] ? arg : NULL;
}
int main(void)
{
    pthread_t thread;
    pthread_attr_t a;
    int i, changed = 0;
    arena = mmap(0, 65536, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(arena, 0xa5, 32768);
    pthread_attr_init(&a);
    pthread_attr_setstack(&a, arena + 32768, 16384);
    if (pthread_create(&thread, &a, sleeper, NULL))
        return 2;
    pthread_join(thread, NULL);
    for (i = 0; i < 32768; i++)
        changed += arena[i] != 0xa5;
    return changed != 0;
}
"""


def stack_of_the_programs_own():
    """What is below a stack that the program gave a thread is not ours."""
    p = program(OWN_STACK, ["-O1", "-pthread", "-Wl,-z,now"])
    if not p:
        return t.skip("a stack of the program's own", "cannot be compiled here")
    status, said = record(["-t", "wall", "-p", str(p.pid), "-duration",
                           "200ms", "-o", "own.pb.gz"])
    t.ok("a stack of the program's own: it is recorded", status == 0, said)
    t.same("a stack of the program's own: nothing below it is changed",
           p.wait(), 0)
    return None


# The first thread waits for a child of vfork(), so the other is borrowed: with
# "pool" it is on one of two stacks of the program's own, one above the other.
ONE_THREAD = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#define N 16384
static unsigned char *arena;
static void without_mapping(void)
{
    pthread_attr_t a;
    void *block;
    size_t size, guard;
    pthread_getattr_np(pthread_self(), &a);
    pthread_attr_getstack(&a, &block, &size);
    pthread_attr_getguardsize(&a, &guard);
    block = (char *)block - guard;
    mprotect(block, guard, PROT_READ | PROT_WRITE);
    if (madvise(block, guard, 102))
        exit(77);
}
static void *sleeper(void *arg)
{
    struct timespec t = {4, 0};
    int i, changed = 0;
    volatile char most[N - 6000];
    most[0] = 1;
    if (!arg)
        without_mapping();
    nanosleep(&t, NULL);
    for (i = 0; arg && i < N; i++)
        changed += arena[i] != 0xa5;
    _exit(changed + !most[0] != 0);
    return arg;
}
int main(int argc, char **argv)
{
    pthread_attr_t a;
    pthread_t thread;
    pthread_attr_init(&a);
    if (argc > 1) {
        arena = mmap(0, 8192 + 2 * N, 0, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        arena += 4096;
        mprotect(arena, 2 * N, PROT_READ | PROT_WRITE);
        memset(arena, 0xa5, N);
        pthread_attr_setstack(&a, arena + N, N);
    }
    if (pthread_create(&thread, &a, sleeper, arena))
        return 2;
    if (vfork() == 0) {
        sleep(5);
        _exit(0);
    }
    return pthread_join(thread, NULL) * 2;
}
"""


def guard_without_mapping():
    """As of glibc 2.42 and later, here by hand."""
    p = program(ONE_THREAD, ["-O1", "-pthread", "-Wl,-z,now"])
    if not p:
        return t.skip("a guard without mapping", "cannot be compiled here")
    if p.poll() == 77:
        return t.skip("a guard without mapping", "this kernel has none")
    status, said = record(["-t", "wall", "-p", str(p.pid), "-duration",
                           "200ms", "-o", "guard.pb.gz"])
    t.ok("a guard without mapping: the thread is borrowed", status == 0, said)
    t.same("a guard without mapping: it goes on", p.wait(), 0)
    return None


def stack_of_a_pool():
    """With a guard below the first stack alone."""
    p = program(ONE_THREAD, ["-O1", "-pthread", "-Wl,-z,now"], "pool")
    if not p:
        return t.skip("a stack of a pool", "cannot be compiled here")
    status, said = record(["-t", "wall", "-p", str(p.pid), "-duration",
                           "200ms", "-o", "pool.pb.gz"])
    t.ok("a stack of a pool: it is not borrowed", status != 0, said)
    t.same("a stack of a pool: nothing below it is changed", p.wait(), 0)
    return None


# A handler sleeps on a stack that is an array of the thread, with data below it.
ON_AN_ARRAY = """
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <pthread.h>
static void handler(int number)
{
    volatile char most[2800];
    struct timespec t = {2, 0};
    most[0] = (char)number;
    nanosleep(&t, NULL);
}
static void *work(void *arg)
{
    unsigned char array[16384];
    stack_t stack = {.ss_sp = array + 8192, .ss_size = 8192};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    int i, changed = 0;
    memset(array, 0xa5, 8192);
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    pthread_kill(pthread_self(), SIGUSR1);
    for (i = 0; i < 8192; i++)
        changed += array[i] != 0xa5;
    _exit(changed != 0);
    return arg;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    if (vfork() == 0) {
        sleep(4);
        _exit(0);
    }
    return pthread_join(thread, NULL) * 2;
}
"""

# A thread sleeps with another thread pointer than libc's, from a second on.
WITHOUT_LIBC = """
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static long block[1024] __attribute__((aligned(64)));
static long call(long n, long a, long b)
{
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b)
                     : "rcx", "r11", "memory");
    return r;
}
static void *work(void *arg)
{
    struct timespec second = {1, 0}, t = {3, 0};
    long old;
    call(SYS_arch_prctl, ARCH_GET_FS, (long)&old);
    nanosleep(&second, NULL);
    call(SYS_arch_prctl, ARCH_SET_FS, (long)block);
    call(SYS_nanosleep, (long)&t, 0);
    call(SYS_arch_prctl, ARCH_SET_FS, old);
    return arg;
}
int main(void)
{
    struct timespec soon = {0, 900000000};
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    nanosleep(&soon, NULL);
    if (vfork() == 0) {
        sleep(2);
        _exit(0);
    }
    return pthread_join(thread, NULL);
}
"""


def threads_that_are_left_alone():
    for name, text in (("a handler on an array", ON_AN_ARRAY),
                       ("a thread pointer of its own", WITHOUT_LIBC)):
        p = program(text, ["-O1", "-pthread", "-Wl,-z,now"])
        if not p:
            t.skip(name, "cannot be compiled here")
            continue
        for _ in range(2):
            record(["-t", "wall", "-p", str(p.pid), "-duration", "100ms",
                    "-o", "alone.pb.gz"])
            time.sleep(1)
        t.same("%s: nothing of it is changed" % name, p.wait(), 0)


# A child sends signals at the program's only thread. "stack": its handler looks
# where it is, and needs more than a seat has. "calls": each ends a call, which
# no other would; the child sends it when the thread is in that.
UNDER_SIGNALS = """
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static char *top, mode;
static volatile long n, wrong;
static void handler(int number)
{
    char room[150000], *here = room + sizeof room;
    memset(room, number, sizeof room);
    __asm__ volatile("" : : "r"(room) : "memory");
    wrong += here > top || here < top - 1000000;
    n++;
}
static void small_handler(int number)
{
    n++;
}
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
static int waits(pid_t pid, int calls[6])
{
    char path[64], text[16] = "";
    int i, number;
    FILE *f;
    snprintf(path, sizeof path, "/proc/%d/syscall", (int)pid);
    f = fopen(path, "r");
    if (f && !fgets(text, sizeof text, f))
        text[0] = 0;
    if (f)
        fclose(f);
    number = text[0] >= '0' && text[0] <= '9' ? atoi(text) : -1;
    for (i = 0; i < 6; i++)
        if (calls[i] == number)
            return 1;
    return 0;
}
static void send(pid_t pid, int answers, double until)
{
    int calls[6] = {SYS_pause, SYS_read, SYS_epoll_wait, SYS_poll, SYS_futex,
                    SYS_clock_nanosleep};
    struct pollfd answer = {answers, POLLIN};
    char c;
    while (now() < until) {
        usleep(50);
        while (mode == 'c' && !waits(pid, calls) && now() < until)
            ;
        if (syscall(SYS_tgkill, pid, pid, SIGUSR1))
            _exit(0);
        if (mode == 'c' && poll(&answer, 1, 8000) != 1) {
            kill(pid, SIGUSR2); /* nothing ends that call */
            _exit(0);
        }
        if (mode == 'c')
            read(answers, &c, 1);
    }
    kill(pid, SIGTERM);
    _exit(0);
}
static void end(int number)
{
    _exit(number == SIGUSR2 ? 3 : wrong ? 2 : n < 100);
}
int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = handler};
    struct sigaction last = {.sa_handler = end};
    struct timespec day = {86400, 0}, ms = {0, 1000000};
    struct epoll_event event;
    int pipes[2], nothing[2], events = epoll_create1(0);
    pid_t pid = getpid();
    long round;
    char c;
    top = (char *)__builtin_frame_address(0) + 65536;
    mode = argv[1][0];
    if (mode == 'c')
        action.sa_handler = small_handler;
    pipe(pipes);
    pipe(nothing);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &last, NULL);
    sigaction(SIGTERM, &last, NULL);
    if (fork() == 0)
        send(pid, pipes[0], now() + atof(argv[2]));
    for (round = 0;; round++) {
        if (mode == 's') {
            nanosleep(&ms, NULL);
            continue;
        }
        if (round % 5 == 0)
            pause();
        else if (round % 5 == 1)
            read(nothing[0], &c, 1);
        else if (round % 5 == 2)
            epoll_wait(events, &event, 1, -1);
        else if (round % 5 == 3)
            poll(NULL, 0, 86400000);
        else
            nanosleep(&day, NULL);
        write(pipes[1], "", 1);
    }
}
"""


def signals_come_meanwhile():
    for mode in "stack", "calls":
        p = program(UNDER_SIGNALS, ["-O1", "-pthread", "-w"], mode, "6")
        if not p:
            t.skip("under signals", "cannot be compiled here")
            continue
        said = []
        while p.poll() is None and len(said) < 12:
            done = subprocess.run([calls, str(p.pid), library, "5"],
                                  capture_output=True, text=True, check=False,
                                  timeout=200)
            said.append(done.returncode or "made")
        t.ok("under signals, %s: calls are made" % mode, "made" in said, said)
        p.terminate()
        t.same({"stack": "under signals: handlers are on the thread's stack",
                "calls": "under signals: a call ends by EINTR as alone"}[mode],
               p.wait(), 0)


IN_VFORK = """
#include <unistd.h>
int main(void)
{
    if (vfork() == 0) {
        sleep(120);
        _exit(0);
    }
    return 0;
}
"""


def killed_while_none_can_be_stopped():
    """The child of a command does not go on without it."""
    p = program(IN_VFORK, ["-O1"])
    if not p:
        return t.skip("none can be stopped", "cannot be compiled here")
    command = subprocess.Popen([cpprof, "record", "-p", str(p.pid)],
                               stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    found = []
    while not found and time.monotonic() < until:
        found = children(command.pid)
        time.sleep(0.05)
    time.sleep(0.5)
    command.kill()
    command.wait()
    t.ok("none can be stopped: a child of the command tries", found != [])
    t.ok("none can be stopped: the child ends with a killed command",
         ended_within(10, found), found)
    for child in children(p.pid):
        os.kill(int(child), signal.SIGKILL)
    return p.wait()


def leaves_deep_stacks_time():
    """A thread is held while its stack is looked at. One that has to be looked
    at as a whole, and cannot be borrowed, took nine tenths of the time."""
    tries = 3  # on a busy machine it may be in the kernel at the last look
    while tries:
        tries -= 1
        with Host("untabled 4") as h:
            command = subprocess.Popen([cpprof, "threads", "-p", str(h.pid)],
                                       stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
            time.sleep(4)
            command.send_signal(signal.SIGINT)
            said = command.stderr.read()
            _, status, used = os.wait4(command.pid, 0)
            command.returncode = os.waitstatus_to_exitcode(status)
            command.stderr.close()
            ended = h.end()[0]
        if "cannot be borrowed" in said:
            break
    t.ok("without tables: it is refused, and why",
         command.returncode == 2 and "cannot be borrowed" in said,
         command.returncode, said)
    used_s = used.ru_utime + used.ru_stime
    t.ok("without tables: it is left alone most of the time", used_s < 2,
         used_s)
    t.same("without tables: it goes on", ended, 0)


def ended_within(seconds, pids):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not any(os.path.exists("/proc/%s" % pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


def calls_are_made():
    for mode in WAITING + BUSY:
        goes_on(mode)
    goes_on("cancelled", 300)
    goes_on("ticks", 100)
    keeps_descriptors()
    leaves_nothing()
    profiled("descriptors", "cpu,heap,block,mutex,wall", 10)
    profiled("descriptors", "threads", 10)
    profiled("fork", "cpu,symbolize=none", 40)
    profiled("dlopen", "cpu,symbolize=none", 20)
    profiled("dlopen", "cpu,heap", 10)
    reads_libraries()
    lives_through_execs()
    for mode in ("nanosleep", "registers", "malloc 4", "sigsuspend"):
        survives_kills(mode)
    killed_at_each_call("nanosleep")
    killed_in_one_sleep()
    killed_while_none_can_be_stopped()
    leaves_deep_stacks_time()
    stack_of_the_programs_own()
    stack_of_a_pool()
    threads_that_are_left_alone()
    signals_come_meanwhile()
    guard_without_mapping()
    killed_at_each_call("malloc", 5)


sys.exit(main(calls_are_made, commands_take_turns))
