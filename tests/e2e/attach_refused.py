#!/usr/bin/env python3
"""Processes that may not be attached to: one line that says why and what helps,
from `doctor` and from `record -p` alike, and nothing in the process is touched.

    attach_refused.py CPPROF HOST       TAP

HOST is attach_host. Programs for one reason each are compiled here; what the
kernel of this machine does not have (yama, shadow stacks) is put over /proc in
a mount namespace, which needs root.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
import tap

cpprof, host = (os.path.realpath(p) for p in sys.argv[1:3])
t = tap.Tap()
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
IS_ROOT = os.getuid() == 0 and shutil.which("setpriv") is not None
PAUSE = "#include <unistd.h>\nint main(void) { pause(); }\n"


class Process:
    """One that is killed at the end."""

    def __init__(self, words):
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL,
                                        stdin=subprocess.DEVNULL)
        self.pid = self.process.pid
        time.sleep(0.3)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def run(words, before=()):
    done = subprocess.run(list(before) + words, capture_output=True, text=True,
                          check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def refused(name, pid, pattern, before=()):
    status, words = run([cpprof, "doctor", str(pid)], before)
    t.ok("%s: doctor: status 1" % name, status == 1, status, words)
    t.matches("%s: the line says why" % name, pattern, words)
    # CPU time alone may be had from outside: attach_outside.py.
    status, words = run([cpprof, "record", "-t", "cpu,heap", "-p", str(pid),
                         "-duration", "1"], before)
    t.same("%s: record -p: status 2" % name, status, 2)
    t.matches("%s: record -p says the same" % name,
              r"^cpprof: [^\n]*" + pattern + r"[^\n]*\n\Z", words)


def build(words, text, suffix=".c"):
    """False: nothing here can."""
    with open("x" + suffix, "w", encoding="ascii") as f:
        f.write(text)
    return not subprocess.run(words, capture_output=True,
                              check=False).returncode


def program(name, text, flags, pattern, before=()):
    """Of a C program that is started as another user."""
    if not build(["cc", "-o", "x", "x.c"] + flags, text):
        t.skip(name, "cannot be compiled here")
        return
    with Process(list(before) + ["./x"]) as p:
        refused(name, p.pid, pattern, before)


# ---------------------------------------------------------------- states ----

WITHOUT_FIRST = """
#include <pthread.h>
#include <unistd.h>
static void *sleeper(void *arg)
{
    sleep(60);
    return arg;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, sleeper, 0);
    pthread_exit(0);
}
"""


# No page of it that can be written to is ever to be executed.
DENIES_CODE = """
#include <sys/prctl.h>
#include <unistd.h>
int main(void)
{
    if (prctl(65, 1, 0, 0, 0)) /* PR_SET_MDWE */
        return 77;
    for (;;)
        usleep(20000);
}
"""


def without_code():
    if not build(["cc", "-o", "mdwe", "x.c"], DENIES_CODE):
        t.skip("without code", "cannot be compiled here")
        return
    with Process(["./mdwe"]) as p:
        time.sleep(0.2)
        if p.process.poll() == 77:
            t.skip("without code", "this kernel does not know it")
            return
        begin = time.monotonic()
        status, words = run([cpprof, "record", "-t", "cpu,heap", "-p",
                             str(p.pid), "-duration", "1"])
        t.same("code that cannot be mapped: status 2", status, 2)
        t.has("and the line says so", words,
              "the process cannot map memory for code")
        t.ok("at once", time.monotonic() - begin < 10)


def without_new_threads():
    """The library works on threads of its own."""
    if not IS_ROOT:
        t.skip("without new threads", "not root")
        return
    program("a limit of no process", """
#include <sys/resource.h>
#include <unistd.h>
int main(void)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_NPROC, &none);
    pause();
}
""", [], r"can make no thread: its limit of processes is 0", NOBODY)
    # The namespace may be empty, or have a first process.
    for child in "", "if (!fork()) pause();":
        program("children in another namespace" + (child and ", and one there"),
                """
#define _GNU_SOURCE
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void)
{
    unshare(CLONE_NEWPID);
    %s
    pause();
}
""" % child.replace("pause", "prctl(PR_SET_PDEATHSIG, 9), pause"), [],
                r"can make no thread: its children begin in another pid name")


def without_room():
    """It may have its 300 MB again at any time."""
    for mb, words in (400, "may not have 32. MB more of address space"), (
            1024, ""):
        name = "%d MB of address space" % mb
        if not build(["cc", "-o", "x", "x.c"], """
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
int main(void)
{
    struct rlimit room = {%dul << 20, %dul << 20};
    setrlimit(RLIMIT_AS, &room);
    free(malloc(300ul << 20));
    for (;;)
        usleep(10000);
}
""" % (mb, mb)):
            t.skip(name, "cannot be compiled here")
        elif words:
            with Process(["./x"]) as p:
                refused(name, p.pid, words)
        else:
            with Process(["./x"]) as p:
                t.same(name + ": enough", run(
                    [cpprof, "doctor", str(p.pid)])[0], 0)


LIMITED = """
#include <sys/resource.h>
#include <unistd.h>
int main(void)
{
    struct rlimit limit = {%d, %d};
    setrlimit(%s, &limit);
    for (;;)
        usleep(10000);
}
"""


def without_files():
    """The least that suffices suffices, and one less is told of."""
    program("4 descriptors", LIMITED % (4, 4, "RLIMIT_NOFILE"), [],
            r"may have no more than 4 files open")
    for what, kinds, n in ("5 descriptors", "cpu,wall,heap,block,mutex", 5), (
            "files of 206 MB", "cpu,wall,heap,block,mutex", 206495744), (
                "files of 5 MB", "cpu", 5148672):
        limit = "RLIMIT_FSIZE" if n > 5 else "RLIMIT_NOFILE"
        if not build(["cc", "-o", "x", "x.c"], LIMITED % (n, n, limit)):
            t.skip(what, "cannot be compiled here")
            continue
        with Process(["./x"]) as p:
            t.same(what + ": doctor", run([cpprof, "doctor", str(p.pid)])[0], 0)
            words = run([cpprof, "record", "-t", kinds, "-p", str(p.pid),
                         "-duration", "0.2", "-o", "room.pb.gz"])[1]
            t.ok(what + ": enough", "not attached" not in words and
                 "may " not in words, words)
    program("files of 5 MB and one byte less",
            LIMITED % (5148671, 5148671, "RLIMIT_FSIZE"), [],
            r"may write files of no more than 5148671 bytes")
    if not build(["cc", "-o", "x", "x.c"],
                 LIMITED % (206495743, 206495743, "RLIMIT_FSIZE")):
        return
    with Process(["./x"]) as p:
        t.matches("files of 206 MB and one byte less: doctor",
                  r"may be attached to(.*\n)*  but +-t cpu alone: it may write",
                  run([cpprof, "doctor", str(p.pid)])[1])
        t.matches("files of 206 MB and one byte less: record",
                  r"\Acpprof: \d+ \(x\): may write files of no more than "
                  r"206495743 bytes, and profiling needs 206495744",
                  run([cpprof, "record", "-t", "heap", "-p", str(p.pid),
                       "-duration", "0.2", "-o", "room.pb.gz"])[1])


def without_locked_room():
    """What is mapped counts as locked for a moment, libc's arena for good."""
    if not IS_ROOT:
        t.skip("without room for what is locked", "not root")
        return
    program("may lock little more", """
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
int main(void)
{
    struct rlimit room = {100ul << 20, 100ul << 20};
    setrlimit(RLIMIT_MEMLOCK, &room);
    if (mlockall(MCL_CURRENT | MCL_FUTURE))
        return 1;
    for (;;) {
        free(malloc(1 << 20));
        usleep(10000);
    }
}
""", [], r"has all that it maps locked \(mlockall\), and may not lock 480 MB",
            NOBODY)


def wrong_seconds():
    with Process([host, "nanosleep"]) as h:
        for word in "0.3", "x", "":
            begin = time.monotonic()
            status, words = run([cpprof, "top", "-p", str(h.pid),
                                 "-seconds=" + word])
            t.same("top -seconds=%s: a line and nothing else" % word,
                   (status, words),
                   (2, 'cpprof: invalid value "%s" for flag -seconds: parse '
                    'error\n' % word))
            t.ok("before it is recorded", time.monotonic() - begin < 3)


# Where a group can be made, the file that freezes it, and the words.
FREEZERS = [("/sys/fs/cgroup", "cgroup.freeze", "1", "0"),
            ("/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"),
            ("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED")]


def frozen(place, file, freeze, thaw):
    """A process in a group of its own, as a container that is paused."""
    name = "frozen by %s/%s" % (place, file)
    group = "%s/cpprof-test-%d" % (place, os.getpid())

    def write(file, text):
        with open(os.path.join(group, file), "w", encoding="ascii") as f:
            f.write(text)
    try:
        os.mkdir(group)
    except OSError as error:
        t.skip(name, "no group can be made: %s" % error)
        return
    try:
        with Process([host, "nanosleep"]) as h:
            if not os.path.exists(os.path.join(group, file)):
                t.skip(name, "there is no such file")
                return
            write("cgroup.procs", str(h.pid))
            write(file, freeze)
            time.sleep(0.2)
            refused(name, h.pid, "is frozen by its control group")
            write(file, thaw)
            t.same("%s, and let go on: it may be attached to" % name,
                   run([cpprof, "doctor", str(h.pid)])[0], 0)
    finally:
        end = time.monotonic() + 10
        while os.path.isdir(group) and time.monotonic() < end:
            try:
                os.rmdir(group)
            except OSError:  # the process has not gone yet
                time.sleep(0.05)


def states():
    with Process([host, "nanosleep"]) as h:
        status, words = run([cpprof, "doctor", str(h.pid)])
        t.same("doctor: status 0 where it would work", status, 0)
        t.has("doctor says so", words, "may be attached to")
        os.kill(h.pid, signal.SIGSTOP)
        time.sleep(0.1)
        refused("stopped", h.pid,
                "is stopped; continue it first: kill -CONT %d" % h.pid)
        os.kill(h.pid, signal.SIGCONT)
    with Process([host, "malloc", "2"]) as h:
        tid = max(int(x) for x in os.listdir("/proc/%d/task" % h.pid))
        refused("a thread", tid, "is a thread of process %d" % h.pid)
    zombie = subprocess.Popen(["true"])
    time.sleep(0.2)
    refused("a zombie", zombie.pid, r"\(a zombie\)")
    zombie.wait()
    refused("nobody", zombie.pid, "there is no such process")
    program("without its first thread", WITHOUT_FIRST, ["-pthread"],
            "goes on without its first thread, which has ended")
    if os.path.exists("/proc/2/status"):
        with open("/proc/2/status", encoding="ascii") as f:
            if "Kthread:\t1" in f.read():
                refused("the kernel", 2, "is a thread of the kernel")
    for freezer in FREEZERS:
        frozen(*freezer)
    without_code()
    without_new_threads()
    without_room()
    without_files()
    without_locked_room()
    wrong_seconds()
    traced()


def ending():
    """At any moment of its end: no word of namespaces and roots, which it loses
    before it is gone."""
    if not build(["cc", "-o", "ends", "x.c"], """
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    usleep(atoi(argv[1]));
    return 0;
}
"""):
        t.skip("a process that ends", "cannot be compiled here")
        return
    said = set()
    for i in range(100):
        with subprocess.Popen(["./ends", str(1000 + 100 * i)]) as p:
            said.add(re.sub("^[0-9]+", "", run(
                [cpprof, "doctor", str(p.pid)])[1].split("\n")[0]))
    t.none("a process that ends: it is said to end", [
        words for words in said if not re.search(
            r"ended|no such process|may be attached to|not loaded its libc",
            words)])


def traced():
    if not build(["cc", "-o", "x", "x.c"], """
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    ptrace(PTRACE_SEIZE, atoi(argv[1]), 0, 0);
    pause();
}
"""):
        t.skip("traced", "cannot be compiled here")
        return
    with Process([host, "nanosleep"]) as h, Process(["./x", str(h.pid)]) as x:
        refused("traced", h.pid, r"is traced already by %d \(x\)" % x.pid)


# -------------------------------------------------------------- programs ----

def programs():
    program("a static program", PAUSE, ["-static"], "is linked statically")
    program("a static PIE", PAUSE, ["-static-pie"], "is linked statically")
    loader = os.path.realpath("/lib64/ld-linux-x86-64.so.2")
    os.symlink(loader, "ld-musl-x86_64.so.1")
    program("musl", PAUSE, ["-Wl,--dynamic-linker=%s/ld-musl-x86_64.so.1" %
                            os.getcwd()], "is a program for musl libc")
    if build(["sh", "-c", "as --32 -o x.o x.s && ld -m elf_i386 -o x32 x.o"],
             ".globl _start\n_start: movl $29, %eax\n int $0x80\n"
             " jmp _start\n", ".s"):
        try:
            with Process(["./x32"]) as p:
                refused("32 bit", p.pid, "is a 32-bit program")
        except OSError:
            t.skip("32 bit", "this kernel does not run such programs")
    else:
        t.skip("32 bit", "cannot be linked here")
    old_libc()
    program("seccomp", """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void)
{
    struct sock_filter f = {0x06, 0, 0, SECCOMP_RET_ALLOW};
    struct sock_fprog p = {1, &f};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
    pause();
}
""", [], "has a seccomp filter, which may kill it")
    program("strict seccomp", """
#include <sys/prctl.h>
int main(void) { prctl(PR_SET_SECCOMP, 1); for (;;) continue; }
""", [], "has a seccomp filter, which may kill it")


OLD_LIBC = """
static char heap[1 << 20];
static unsigned long at;
void *malloc(unsigned long n)
{
    char *p = heap + at;
    at += (n + 15) & -16;
    return p;
}
void *calloc(unsigned long n, unsigned long m) { return malloc(n * m); }
void *realloc(void *p, unsigned long n) { return malloc(n); }
void free(void *p) { }
void __libc_early_init(_Bool b) { }
void wait_for_ever(void)
{
    for (;;) {
        long r;
        __asm__ volatile("syscall" : "=a"(r) : "a"(34L)
                         : "rcx", "r11", "memory");
    }
}
"""


def old_libc():
    """A libc.so.6 that has no more than the loader wants."""
    with open("v", "w", encoding="ascii") as f:
        f.write("GLIBC_2.2.5 { global: malloc; calloc; realloc; free; "
                "wait_for_ever; local: *; }; "
                "GLIBC_PRIVATE { global: __libc_early_init; };")
    os.mkdir("old")
    done = build(["cc", "-O1", "-w", "-nostdlib", "-shared", "-fPIC",
                  "-fno-stack-protector", "-Wl,-soname,libc.so.6",
                  "-Wl,--version-script=v", "-o", "old/libc.so.6", "x.c"],
                 OLD_LIBC) and build(
        ["cc", "-nostdlib", "-nostartfiles", "-fno-stack-protector", "-o",
         "x", "x.c", "old/libc.so.6", "-Wl,-rpath,$ORIGIN/old"],
        "void wait_for_ever(void);\nvoid _start(void) { wait_for_ever(); }\n")
    if not done:
        t.skip("an old libc", "cannot be compiled here")
        return
    with Process(["./x"]) as p:
        if p.process.poll() is not None:
            t.skip("an old libc", "this loader wants more of it")
            return
        refused("an old libc", p.pid, "its libc is older than glibc 2.34: it "
                "has no pthread_create")


# ---------------------------------------------------------------- rights ----

def rights():
    if not IS_ROOT:
        t.skip("other users", "not root")
        return
    with Process([host, "nanosleep"]) as h:
        refused("another user", h.pid, r"belongs to user 0 \(root\)", NOBODY)
    program("not dumpable", "#include <sys/prctl.h>\n" + PAUSE.replace(
        "pause", "prctl(PR_SET_DUMPABLE, 0); pause"), [], "it is not dumpable",
            NOBODY)
    build(["cc", "-o", "x", "x.c"], PAUSE)
    os.chmod("x", 0o4755)
    with Process(NOBODY + ["./x"]) as p:
        refused("setuid", p.pid, "it runs with other rights than its user's",
                NOBODY)


YAMA = """mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama &&
echo $0 > /proc/sys/kernel/yama/ptrace_scope && exec "$@" """
SHADOW = """cp /proc/$0/status s && echo 'x86_Thread_features:\tshstk' >> s &&
mount --bind s /proc/$0/status && exec "$@" """


def kernels():
    """Of kernels other than this one."""
    if not IS_ROOT or subprocess.run(["unshare", "-m", "true"],
                                     check=False).returncode:
        t.skip("yama, shadow stacks", "no mount namespace")
        return
    build(["cc", "-o", "x", "x.c"], PAUSE)
    with Process(NOBODY + ["./x"]) as p:
        for scope, pattern in (
                ("1", "ptrace_scope is 1: only root may attach; allow it with: "
                 "sudo sysctl kernel.yama.ptrace_scope=0"),
                ("2", "ptrace_scope is 2: only root may attach; allow it with: "
                 "sudo sysctl kernel.yama.ptrace_scope=0"),
                ("3", "ptrace_scope is 3: nobody may attach until the system "
                 "starts again")):
            refused("yama %s" % scope, p.pid, pattern,
                    ["unshare", "-m", "sh", "-c", YAMA, scope] + NOBODY)
        status, words = run([cpprof, "doctor", str(p.pid)],
                            ["unshare", "-m", "sh", "-c", YAMA, "0"] + NOBODY)
        t.same("yama 0: it may be attached to", status, 0)
        for scope in "12":
            status, words = run([cpprof, "doctor", str(p.pid)],
                                ["unshare", "-m", "sh", "-c", YAMA, scope])
            t.ok("yama %s: root may" % scope, status == 0, words)
        refused("a shadow stack", p.pid, "has a shadow stack",
                ["unshare", "-m", "sh", "-c", SHADOW, str(p.pid)])


def foreign_proc():
    """In a pid namespace of its own, with the /proc of this one."""
    if not IS_ROOT:
        t.skip("another /proc", "not root")
        return
    build(["cc", "-o", "x", "x.c"], PAUSE)
    with Process(["unshare", "-p", "-f", "--kill-child", "./x"]) as p:
        with open("/proc/%d/task/%d/children" % (p.pid, p.pid),
                  encoding="ascii") as f:
            inner = f.read().split()
        if not inner:
            t.skip("another /proc", "no pid namespace")
            return
        refused("another /proc", int(inner[0]),
                "has a /proc that is not of its pid namespace")


def main():
    os.environ.pop("LD_PRELOAD", None)
    os.environ.pop("CPPROF", None)
    os.environ.pop("XDG_RUNTIME_DIR", None)
    global cpprof
    with tempfile.TemporaryDirectory(prefix="cpprof-", dir="/tmp") as folder:
        os.chmod(folder, 0o1777)
        os.chdir(folder)
        for name in (cpprof, os.path.join(os.path.dirname(cpprof),
                                          "libcpprof.so")):
            shutil.copy(name, folder)
        cpprof = os.path.join(folder, "cpprof")
        states()
        ending()
        programs()
        rights()
        kernels()
        foreign_proc()
        os.chdir("/")
    return t.end()


sys.exit(main())
