#!/usr/bin/env python3
"""CPU time from outside: of processes that the library may not be loaded into,
by perf events. The stacks have to be whole, what is asked for beside it is
refused, and nothing in the process may change.

    attach_outside.py CPPROF       TAP
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
import tap

cpprof = os.path.realpath(sys.argv[1])
t = tap.Tap()
TRIES = 3

# Two threads; stacks through libc and through a handler of signals.
BUSY = r"""
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static volatile unsigned long n;
#define LOUD __attribute__((noinline, noclone, noipa))
LOUD void leaf(void) { for (unsigned i = 0; i < 30000; i++) n += i; }
LOUD int compare(const void *a, const void *b)
{
    leaf();
    n++;
    return *(const int *)a - *(const int *)b;
}
LOUD void sorts(void)
{
    int v[] = {3, 1, 2};

    qsort(v, 3, sizeof *v, compare);
    n++;
}
LOUD void handler(int number) { leaf(); n += (unsigned)number; }
LOUD void signals(void) { raise(SIGUSR1); n++; }
LOUD void rounds(void)
{
    for (;;) {
        sorts();
        signals();
        usleep(2000); /* others have the processor, too */
    }
}
void *start(void *x) { rounds(); return x; }
PREPARE
int main(void)
{
    pthread_t thread;

    signal(SIGUSR1, handler);
    pthread_create(&thread, NULL, start, NULL);
    prepare();
    rounds();
}
"""
NOTHING = "static void prepare(void) {}\n"
# Dies for what an attach needs.
KILLS = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
long syscall(long, ...);
static void prepare(void)
{
    struct sock_filter f[] = {
        {0x20, 0, 0, offsetof(struct seccomp_data, nr)},
        {0x15, 4, 0, SYS_clone3}, {0x15, 3, 0, SYS_openat},
        {0x15, 2, 0, SYS_mmap}, {0x15, 1, 0, SYS_mprotect},
        {0x06, 0, 0, SECCOMP_RET_ALLOW}, {0x06, 0, 0, SECCOMP_RET_KILL_PROCESS}};
    struct sock_fprog p = {sizeof f / sizeof *f, f};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                SECCOMP_FILTER_FLAG_TSYNC, &p))
        _exit(3);
}
"""
FILTER = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
static void filter(void)
{
    struct sock_filter f[] = {{0x06, 0, 0, SECCOMP_RET_ALLOW}};
    struct sock_fprog p = {1, f};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}
"""
# Runs a command to which perf events are forbidden.
DENY = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct sock_filter f[] = {
        {0x20, 0, 0, offsetof(struct seccomp_data, nr)},
        {0x15, 0, 1, SYS_perf_event_open},
        {0x06, 0, 0, SECCOMP_RET_ERRNO | EPERM},
        {0x06, 0, 0, SECCOMP_RET_ALLOW}};
    struct sock_fprog p = {sizeof f / sizeof *f, f};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
    execv(argv[1], argv + 1);
    return 127;
}
"""
GO = """package main

import "sort"

type tree struct{ left, right *tree }

var sink int

func grow(depth int) *tree {
	if depth == 0 {
		return &tree{}
	}
	return &tree{grow(depth - 1), grow(depth - 1)}
}

func rounds() {
	for {
		grow(12)
		v := make([]int, 5000)
		for i := range v {
			v[i] = i * 7919 % 5000
		}
		sort.Ints(v)
		sink += v[0]
	}
}

func main() {
	go rounds()
	rounds()
}
"""


def run(words):
    done = subprocess.run(words, capture_output=True, text=True, check=False,
                          timeout=120)
    return done.returncode, done.stdout + done.stderr


def compile_c(text, name, *flags):
    with open(name + ".c", "w", encoding="ascii") as f:
        f.write(text)
    return run(["cc", "-O2", "-o", name, name + ".c", "-lpthread",
                *flags])[0] == 0


def compile_go(name):
    if not shutil.which("go"):
        return False
    with open("main.go", "w", encoding="ascii") as f:
        f.write(GO)
    return subprocess.run(
        ["go", "build", "-o", name, "main.go"], check=False,
        capture_output=True, env=dict(os.environ, GOFLAGS="", HOME=os.getcwd(),
                                      GO111MODULE="off",
                                      GOCACHE=os.getcwd() + "/cache")
    ).returncode == 0


def state(pid):
    """What an attach would add to. Go opens files and makes threads itself."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as f:
        code = sorted(set(line.split()[-1] for line in f
                          if " r-xp " in line))
    return (code, len(os.listdir("/proc/%d/fd" % pid)),
            len(os.listdir("/proc/%d/task" % pid)))


def look(path):
    """Samples, those whose stacks are not whole, and all the text."""
    n = cut = 0
    text = run([cpprof, "-traces", "-sample_index=samples", path])[1]
    for block in re.split(r"^-+\+-+$", text, flags=re.M)[1:]:
        found = re.match(r"\s+(\d+)\s", block)
        if found:
            n += int(found.group(1))
            # The root of a thread that an older Go made for itself, whose
            # frame pointer is still its maker's.
            block = re.sub(r"(runtime\.mstart\n\s+)\[unwind failed\]", r"\1",
                           block)
            if "[unwind failed]" in block or "[truncated]" in block:
                cut += int(found.group(1))
    return n, cut, text


def outside(name, words, frames, reason, same=3):
    process, file = subprocess.Popen(words), words[0] + ".pb.gz"
    try:
        time.sleep(0.3)
        pid, before = process.pid, state(process.pid)
        status, said = run([cpprof, "doctor", str(pid)])
        t.same("%s: doctor: status 1" % name, status, 1)
        t.matches("%s: doctor says why" % name, reason, said)
        t.has("%s: doctor says what may be had" % name, said,
              "CPU only, from outside: cpprof record -p %d" % pid)
        for i in range(TRIES):
            status, said = run([cpprof, "record", "-p", str(pid), "-duration",
                                "%ds" % (1 << 2 * i), "-F", "400", "-o",
                                file])
            n, cut, text = look(file) if not status else (0, 0, said)
            found = [f for f in frames if re.search(f, text, re.M | re.S)]
            if (n >= 30 and len(found) == len(frames)
                    and cut * 100 <= n):
                break
        t.same("%s: record: status 0" % name, status, 0)
        t.matches("%s: a line says so" % name,
                  r"^cpprof: %d \(.*\): CPU only, from outside: it .*%s"
                  % (pid, reason), said)
        t.ok("%s: samples" % name, n >= 30, n, said)
        t.same("%s: all stacks that are expected" % name, found, frames)
        t.ok("%s: 99 of 100 stacks are whole" % name, cut * 100 <= n, cut, n,
             text)
        t.ok("%s: no time without stacks" % name, "[short-lived thread]"
             not in text, text)
        said = run([cpprof, "-comments", file])[1]
        t.has("%s: a comment says so" % name, said, "CPU only, from outside")
        t.has("%s: and by which engine" % name, said, "perf from outside")
        found = re.search(r"([\d.]+) s of CPU time by the clock, ([\d.]+) s "
                          "sampled", said)
        clock, sampled = (float(x) for x in found.groups())
        t.near("%s: the time of the clock" % name, sampled, clock,
               0.05 + 0.1 * clock)
        t.same("%s: it runs" % name, process.poll(), None)
        after = state(pid)
        t.same("%s: as it was" % name, after[:same], before[:same])
        status, said = run([cpprof, "record", "-t", "cpu,heap", "-p", str(pid),
                            "-duration", "1"])
        t.ok("%s: no heap profile" % name,
             status == 2 and "outside" not in said, said)
        status, said = run([cpprof, "top", "-seconds=1", "-p", str(pid)])
        t.ok("%s: top -p" % name, status == 0 and "flat%" in said, said)
        return pid, process
    finally:
        if name != "static":
            process.kill()
            process.wait()


# Programs that change under the recorder: they spin for seconds of CPU time.
SPIN = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long n;
__attribute__((noinline, noclone)) void NAME(double seconds)
{
    struct timespec a, b;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    do {
        for (unsigned i = 0; i < 100000; i++) n += i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    } while ((double)(b.tv_sec - a.tv_sec) +
             (double)(b.tv_nsec - a.tv_nsec) * 1e-9 < seconds);
    n++;
}
"""
SECONDS = 0.4
EXEC = r"""
int main(int argc, char **argv)
{
    usleep(700000);
    NAME(0.4);
    if (argc > 1)
        execv(argv[1], argv + 1);
    usleep(700000);
    return 0;
}
"""
THREAD_EXEC = r"""
static char **words;
static void *start(void *x)
{
    usleep(700000);
    NAME(0.4);
    execv(words[1], words + 1);
    return x;
}
int main(int argc, char **argv)
{
    pthread_t thread;

    words = argv;
    pthread_create(&thread, NULL, start, NULL);
    for (;;)
        pause();
}
"""
RELOAD = FILTER + r"""
int main(int argc, char **argv)
{
    filter();
    usleep(700000);
    for (int i = 1; i < argc; i++) {
        void *handle = dlopen(argv[i], RTLD_NOW);
        ((void (*)(double))dlsym(handle, i == 1 ? "first_work"
                                                : "second_work"))(0.4);
        dlclose(handle);
    }
    usleep(700000);
    return 0;
}
"""
# Another program makes the library shorter; then the stack leads into it.
SHORTER = FILTER + r"""
int main(int argc, char **argv)
{
    void *handle = dlopen(argv[1], RTLD_NOW);
    unsigned char *code = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static unsigned char stack[65536] __attribute__((aligned(16)));
    void **sp = (void **)(stack + 60000 - 60000 % 16);

    filter();
    memcpy(code, "\x55\x48\x89\xe5\xeb\xfe", 6); /* jmp . */
    *--sp = (char *)dlsym(handle, "first_work") + 4;
    __asm__ volatile("mov %0,%%rsp; jmp *%1" ::"r"(sp), "r"(code));
    return argc;
}
"""
# Frames of more than is copied.
DEEP = FILTER + r"""
__attribute__((noinline, noclone)) void deep(int left)
{
    volatile char room[3000];

    room[0] = 1;
    if (left)
        deep(left - 1);
    else
        NAME(30);
    room[1] = 2;
}
int main(void)
{
    filter();
    deep(30);
    return 0;
}
"""


def spinner(name, work, text, *flags):
    return compile_c(SPIN.replace("NAME", work) + text.replace("NAME", work),
                     name, *flags)


def seconds_of(path):
    """CPU time by function."""
    found = {}
    for line in run([cpprof, "-top", "-nodecount=99", "-unit=s", path]
                    )[1].splitlines():
        row = re.match(r"\s*([\d.]+)s?\s+[\d.]+%\s+[\d.]+%\s+[\d.]+s?\s+"
                       r"[\d.]+%\s+(\S+)", line)
        if row:
            found[row.group(2)] = float(row.group(1))
    return found


def follow(name, words):
    """A program that spins in first_work, then in second_work."""
    file = name.replace(" ", "_") + ".pb.gz"
    for _ in range(TRIES):
        process = subprocess.Popen(words)
        try:
            time.sleep(0.2)
            status, said = run([cpprof, "record", "-p", str(process.pid),
                                "-duration", "60", "-F", "400", "-o", file])
        finally:
            process.kill()
            process.wait()
        found = seconds_of(file) if not status else {}
        works = [found.get(work, 0) for work in ("first_work", "second_work")]
        if all(abs(x - SECONDS) < 0.15 * SECONDS for x in works):
            break
    t.same("%s: status 0" % name, status, 0)
    for work, x in zip(("first_work", "second_work"), works):
        t.near("%s: %s" % (name, work), x, SECONDS, 0.15 * SECONDS)
    if status:
        t.ok(name, False, said)


def shorter():
    shutil.copy("first.so", "shorter.so")
    process = subprocess.Popen(["./shorter", "./shorter.so"])
    time.sleep(0.2)
    try:
        recorder = subprocess.Popen([cpprof, "record", "-p", str(process.pid),
                                     "-duration", "1", "-o", "s.pb.gz"])
        time.sleep(0.5)
        os.truncate("shorter.so", 0)
        t.same("a library that becomes shorter: status 0", recorder.wait(60), 0)
        t.same("and its process runs", process.poll(), None)
    finally:
        process.kill()
        process.wait()


def cut():
    if not spinner("deep", "leaf", DEEP):
        t.skip("deep stacks", "cannot be compiled here")
        return
    process = subprocess.Popen(["./deep"])
    time.sleep(0.2)
    try:
        run([cpprof, "record", "-p", str(process.pid), "-duration", "1", "-o",
             "d.pb.gz"])
    finally:
        process.kill()
        process.wait()
    text = run([cpprof, "-traces", "d.pb.gz"])[1]
    t.has("a stack that is cut says so", text, "[truncated]")
    t.ok("and nothing else", "[unwind failed]" not in text, text)


def replaced():
    """Who is not root cannot open a file that has no name any more."""
    nobody = 65534
    if os.geteuid():
        t.skip("a program that is replaced", "not root")
        return
    os.chmod(".", 0o777)
    shutil.copy("first", "gone")
    process = subprocess.Popen(["./gone", "./gone"], user=nobody)
    time.sleep(0.2)
    try:
        shutil.copy("second", "new")
        os.rename("new", "gone")
        done = subprocess.run([cpprof, "record", "-p", str(process.pid),
                               "-duration", "1.5", "-o", "g.pb.gz"], user=nobody,
                              check=False, capture_output=True, text=True)
    finally:
        process.kill()
        process.wait()
    if done.returncode:
        t.skip("a program that is replaced", done.stderr.strip())
        return
    text = run([cpprof, "-traces", "g.pb.gz"])[1]
    t.ok("a program that is replaced: no name of the new one",
         "second_work" not in text, text)
    t.has("but its own file", text, "gone (deleted)")


def limited():
    """Two processes share what may be locked; limits are named."""
    nobody = 65534
    if os.geteuid():
        t.skip("limits", "not root")
        return
    os.chmod(".", 0o777)
    processes = [subprocess.Popen(["./thread", "none"], user=nobody)
                 for _ in range(2)]
    pids = [str(process.pid) for process in processes]

    def limit(words, limits):
        return run(["setpriv", "--reuid=%d" % nobody, "--clear-groups", "sh",
                    "-c", limits + '; exec "$@"', "sh", cpprof] + words)

    try:
        status, said = limit(["record", "-duration", "0.5", "-o", "l.pb.gz",
                              "-p", ",".join(pids)], "ulimit -l 0")
        t.ok("two share what may be locked", status == 0 and
             "no buffer" not in said, said)
        for words, most in ((["record", "-duration", "0.5", "-p", pids[0]], 7),
                            (["doctor", pids[0]], 5)):
            status, said = limit(words, "ulimit -n %d" % most)
            t.ok("%s: too few descriptors" % words[0], status != 0 and
                 "`ulimit -n`" in said and "CPU only" not in said, said)
    finally:
        for process in processes:
            process.kill()
            process.wait()


# Threads that end before their first period does.
SHORT = r"""
static void *start(void *x)
{
    NAME(0.004);
    return x;
}
int main(void)
{
    for (;;) {
        pthread_t thread;

        pthread_create(&thread, NULL, start, NULL);
        pthread_join(thread, NULL);
    }
}
"""


def short():
    if not spinner("short", "work", SHORT, "-static"):
        t.skip("threads that end soon", "cannot be linked here")
        return
    process = subprocess.Popen(["./short"])
    try:
        status, said = run([cpprof, "record", "-p", str(process.pid),
                            "-duration", "1", "-o", "short.pb.gz"])
    finally:
        process.kill()
        process.wait()
    found = seconds_of("short.pb.gz")
    said += run([cpprof, "-comments", "short.pb.gz"])[1]
    clock = re.search(r"([\d.]+) s of CPU time by the clock", said)
    t.same("threads that end soon: status 0", status, 0)
    t.near("threads that end soon: their time is said",
           found.get("[short-lived", 0) + found.get("work", 0),
           float(clock.group(1)) if clock else -1, 0.1)


def executes():
    if not (spinner("second", "second_work", EXEC, "-static") and
            spinner("first", "first_work", EXEC, "-static") and
            spinner("thread", "first_work", THREAD_EXEC, "-static")):
        t.skip("programs that execute another", "cannot be linked here")
        return
    t.beside(lambda: follow("exec", ["./first", "./second"]),
             lambda: follow("exec by a thread", ["./thread", "./second"]),
             users)


def users():
    """Both record as the same user, who may lock so much memory in all."""
    replaced()
    limited()


def loads():
    t.ok("libraries", spinner("first.so", "first_work", "", "-shared", "-fPIC")
         and spinner("second.so", "second_work", "", "-shared", "-fPIC") and
         spinner("reload", "unused", RELOAD, "-ldl") and
         spinner("shorter", "unused", SHORTER, "-ldl"))
    follow("another library where one was", ["./reload", "./first.so",
                                             "./second.so"])
    shorter()


def more():
    cut()
    short()


def refused(pid):
    """Where perf events are forbidden, too."""
    if not compile_c(DENY, "deny"):
        t.skip("perf events are forbidden", "cannot be compiled here")
        return
    status, said = run(["./deny", cpprof, "record", "-p", str(pid),
                        "-duration", "1"])
    t.ok("forbidden: one line, status 2", status == 2 and
         said.count("\n") == 1 and "is linked statically" in said, said)
    status, said = run(["./deny", cpprof, "doctor", str(pid)])
    t.ok("forbidden: doctor says so", status == 1 and "no CPU time from "
         "outside either: perf_event_open: Operation not permitted" in said,
         said)


BUSY_STACKS = [r"leaf\n\s+compare\n.*\n\s+sorts\n\s+rounds\n\s+main\n",
               r"leaf\n\s+handler\n.*\n\s+signals\n\s+rounds\n\s+start\n"]


def static():
    if compile_c(BUSY.replace("PREPARE", NOTHING), "static", "-static"):
        pid, process = outside("static", ["./static"], BUSY_STACKS,
                               "is linked statically")
        refused(pid)
        process.kill()
        process.wait()
    else:
        t.skip("static", "cannot be linked here")


def kills():
    if compile_c(BUSY.replace("PREPARE", KILLS), "kills"):
        outside("a filter that kills", ["./kills"], BUSY_STACKS,
                "has a seccomp filter")
    else:
        t.skip("a filter that kills", "cannot be compiled here")


def go():
    if compile_go("go_busy"):
        outside("Go", ["./go_busy"], [r"main\.grow\n.*main\.main\n"],
                "is linked statically", same=1)
    else:
        t.skip("Go", "there is none")


def main():
    os.environ.pop("LD_PRELOAD", None)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        said = run([cpprof, "record", "-e", "perf", "-o", "p.pb.gz", "--", "sh",
                    "-c", "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done"])
        if "(perf" not in said[1]:
            t.skip("CPU time from outside", "perf events are not allowed here")
        else:
            t.beside(static, kills, go)
            t.beside(executes, loads, more)
        os.chdir("/")
    return t.end()


sys.exit(main())
