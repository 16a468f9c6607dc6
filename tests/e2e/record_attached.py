#!/usr/bin/env python3
"""Into processes that run, and out again: each of them checks itself and goes on
as if nothing had been; what may not be attached to is refused with a line.

    record_attached.py CPPROF HOST CALLS LIBRARY KILLED       TAP

HOST is attach_host, CALLS attach_calls, LIBRARY what it loads, KILLED
attach_killed.
"""
import fcntl
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
import browser
import tap
from web_server import Server

cpprof, host, calls, library, killed = (os.path.realpath(p)
                                        for p in sys.argv[1:6])
t = tap.Tap()

# Those that wait, and those that never do. Each goes through so many rounds of
# attach and detach.
WAITING = ["nanosleep", "clock_nanosleep", "futex_timed", "poll", "select",
           "epoll", "sigtimedwait", "semtimedop", "recv_timed", "futex", "read",
           "accept", "connect", "sigsuspend", "wait", "semop", "io_uring"]
BUSY = ["registers", "spin 2", "malloc", "malloc 16", "fork", "dlopen"]
ROUNDS = 10
KILLS = 12


class Host:
    """One attach_host that has begun its work."""

    def __init__(self, mode):
        self.process = subprocess.Popen([host] + mode.split(),
                                        stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        self.pid = self.process.pid
        time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def call(self, n, words=(library,)):
        """(status, what was printed) of n rounds."""
        done = subprocess.run([calls, str(self.pid), words[0], str(n)] +
                              list(words[1:]), capture_output=True, text=True,
                              check=False, timeout=200)
        return done.returncode, done.stdout + done.stderr

    def end(self):
        """(status, last words); the status is negative for a signal."""
        self.process.terminate()
        try:
            words = self.process.communicate(timeout=60)[0]
        except subprocess.TimeoutExpired:
            return "hangs", ""
        return self.process.returncode, words


def mappings(pid):
    with open("/proc/%d/maps" % pid, encoding="ascii") as f:
        return len(f.readlines())


def may_attach():
    """None, or why not, as a container without the right says."""
    with Host("nanosleep") as h:
        status, words = h.call(1)
        return None if status == 0 else words.strip()


def goes_on(mode):
    with Host(mode) as h:
        status, words = h.call(ROUNDS)
        end, last = h.end()
        if end == 77:
            t.skip("%s goes on" % mode, last.strip())
            return
        t.ok("%s: all calls are answered" % mode, status == 0, words)
        t.ok("%s goes on as if nothing had been" % mode, end == 0, end, last,
             words)


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


# --------------------------------------------------------------- recordings

def record(words, seconds=60):
    done = subprocess.run([cpprof, "record"] + words, capture_output=True,
                          text=True, check=False, timeout=seconds + 60)
    return done.returncode, done.stderr


def report(words):
    return subprocess.run([cpprof] + words, capture_output=True, text=True,
                          check=False, timeout=120).stdout


def records_kinds():
    """As of a command, and again: the library is there already then."""
    with Host("malloc 3") as h:
        for turn in ("first", "second"):
            status, words = record(["-p", str(h.pid), "-t", "cpu,wall,heap",
                                    "-duration", "1.5", "-o", "a.%k.pb.gz"])
            t.ok("%s recording: status 0" % turn, status == 0, words)
            t.has("%s: CPU time is where it goes" % turn,
                  report(["top", "-cum", "a.cpu.pb.gz"]), "allocate_all")
            t.has("%s: so are allocations" % turn,
                  report(["top", "-sample_index=alloc_space",
                          "a.heap.pb.gz"]), "allocate_all")
            t.has("%s: and wall time" % turn,
                  report(["top", "-cum", "a.wall.pb.gz"]), "allocate_all")
        end, last = h.end()
        t.ok("the process goes on", end == 0, end, last)


def records_until(number):
    with Host("pulse 2") as h:
        p = subprocess.Popen([cpprof, "record", "-p", str(h.pid), "-o",
                              "b.pb.gz"], stderr=subprocess.PIPE, text=True)
        first = p.stderr.readline()
        t.matches("it says how to end", r"^cpprof: recording process %d "
                  r"\(attach_host\); Ctrl-C ends it$" % h.pid, first)
        time.sleep(2)
        p.send_signal(number)
        words = p.communicate(timeout=60)[1]
        name = signal.Signals(number).name
        t.same("%s ends the recording, status 0" % name, p.returncode, 0)
        t.matches("%s: the profile is written" % name,
                  r"^cpprof: b\.pb\.gz: [0-9]+ samples", words)
        t.same("%s: and the process runs on" % name, h.end()[0], 0)


def records_idle():
    idle = subprocess.Popen(["sleep", "1000"])
    time.sleep(0.2)
    status, words = record(["-p", str(idle.pid), "-duration", "0.5", "-o",
                            "i.pb.gz"])
    t.same("a process that sleeps has no CPU profile: status 2", status, 2)
    t.matches("and the line says so", "^cpprof: i.pb.gz: not written: sleep "
              "used no CPU time meanwhile; where it waits: -t wall$", words)
    status, words = record(["-p", str(idle.pid), "-t", "wall", "-duration",
                            "0.5", "-o", "i.pb.gz"])
    t.ok("but one of wall time", status == 0, words)
    idle.kill()
    idle.wait()


def records_two():
    with Host("pulse") as a, Host("pulse") as b:
        status, words = record(["-p", "%d,%d" % (a.pid, b.pid), "-one",
                                "-duration", "1.5", "-o", "c.pb.gz"])
        t.ok("two processes: status 0", status == 0, words)
        t.matches("two processes: one profile", r"samples of 2 processes",
                  words)
        status, words = record(["-p", "%d,%d" % (a.pid, 2147483647),
                                "-duration", "1"])
        t.same("one that is not there: status 2", status, 2)
        t.has("and nothing is touched", words, "there is no such process")


def records_name():
    """A copy of the host with a name that nobody else has."""
    name = "cpp%d" % os.getpid()
    shutil.copy(host, name)
    p = subprocess.Popen([cpprof, "record", "-name", name, "-o", "d.pb.gz"],
                         stderr=subprocess.PIPE, text=True)
    t.has("-name: nobody has it", p.communicate(timeout=60)[1],
          "no process is named")
    first = subprocess.Popen(["./" + name, "pulse"], stdout=subprocess.DEVNULL)
    time.sleep(0.3)
    p = subprocess.Popen([cpprof, "record", "-name", name, "-one", "-o",
                          "d.pb.gz", "-duration", "5"],
                         stderr=subprocess.PIPE, text=True)
    p.stderr.close()
    time.sleep(1)
    second = subprocess.Popen(["./" + name, "pulse"], stdout=subprocess.DEVNULL)
    p.wait()
    t.same("-name: status 0", p.returncode, 0)
    t.has("-name: one that came later is in it",
          report(["-tags", "d.pb.gz"]), str(second.pid))
    for q in (first, second):
        q.terminate()
        t.same("-name: each goes on", q.wait(), 0)


def recorder_is_killed():
    with Host("malloc") as h:
        p = subprocess.Popen([cpprof, "record", "-t", "cpu,heap,wall", "-p",
                              str(h.pid), "-o", "e.%k.pb.gz"],
                             stderr=subprocess.PIPE, text=True)
        p.stderr.readline()
        time.sleep(1)
        p.kill()
        p.communicate()
        status, words = 2, ""
        for _ in range(100):
            time.sleep(0.2)
            status, words = record(["-p", str(h.pid), "-duration", "1", "-o",
                                    "f.pb.gz"])
            if status == 0:
                break
        t.ok("after a killed recorder another can record", status == 0, words)
        t.same("and the process goes on", h.end()[0], 0)


def ends_with_its_process():
    """Also if nobody has asked yet how that ended."""
    with Host("malloc") as h:
        p = subprocess.Popen([cpprof, "record", "-p", str(h.pid), "-o",
                              "z.pb.gz"], stderr=subprocess.PIPE, text=True)
        p.stderr.readline()
        time.sleep(1)
        h.process.send_signal(signal.SIGKILL)
        try:
            words = p.communicate(timeout=60)[1]
        except subprocess.TimeoutExpired:
            p.kill()
            words = p.communicate()[1]
        t.same("a recording ends when its process is a zombie", p.returncode, 0)
        t.has("and is written", words, "z.pb.gz: ")


def n_threads(pid):
    return len(os.listdir("/proc/%d/task" % pid))


def ends_at_once_when_asked_twice():
    """A process that cannot be left yet, as its loader is at work."""
    os.mkdir("twice", 0o700)
    with Host("loader") as h:
        before = n_threads(h.pid)
        p = subprocess.Popen([cpprof, "record", "-t", "heap", "-p", str(h.pid),
                              "-o", "w.pb.gz"], stderr=subprocess.PIPE,
                             text=True, env=dict(
                                 os.environ,
                                 XDG_RUNTIME_DIR=os.path.realpath("twice")))
        p.stderr.readline()
        h.process.send_signal(signal.SIGUSR1)
        h.process.stdout.readline()
        for _ in range(200):
            p.send_signal(signal.SIGINT)
            time.sleep(0.3)
            if p.poll() is not None:
                break
        p.communicate()
        t.same("Ctrl-C while a process is left ends the command", p.returncode,
               -signal.SIGINT)
        t.same("and nothing of it stays", os.listdir("twice"), [])
        h.process.send_signal(signal.SIGUSR1)
        t.ok("the process puts everything back by itself",
             wait_until(lambda: n_threads(h.pid) == before), n_threads(h.pid))
        t.same("and goes on", h.end()[0], 0)


def leaves_other_namespaces():
    """Threads of ours stay when no other could begin."""
    with Host("unshare") as h:
        before = n_threads(h.pid)
        p = subprocess.Popen([cpprof, "record", "-t", "wall,heap", "-p",
                              str(h.pid), "-o", "v.%k.pb.gz"],
                             stderr=subprocess.PIPE, text=True)
        p.stderr.readline()
        h.process.send_signal(signal.SIGUSR1)
        said = h.process.stdout.readline()
        time.sleep(0.5)
        p.send_signal(signal.SIGINT)
        words = p.communicate(timeout=120)[1]
        if said == "unshared\n":
            t.ok("a process in another pid namespace for children is left",
                 p.returncode == 0 and "not detached" not in words, words)
            t.same("alone", n_threads(h.pid), before)
        else:
            t.skip("unshare", said.strip())
        t.same("and it goes on", h.end()[0], 0)


def leaves_before_it_may_not():
    """A process that can have no threads any more, as after a change of its pid
    namespace while it was alone, is left at that moment."""
    with Host("unshare_user") as h:
        before = n_threads(h.pid)
        p = subprocess.Popen([cpprof, "record", "-t", "wall,block", "-p",
                              str(h.pid), "-o", "u.%k.pb.gz"],
                             stderr=subprocess.PIPE, text=True)
        p.stderr.readline()
        time.sleep(0.5)
        h.process.send_signal(signal.SIGUSR1)
        said = h.process.stdout.readline()
        if said == "unshared\n":
            with open("/proc/%d/maps" % h.pid, encoding="ascii") as f:
                t.ok("a process that can have no more threads has left the "
                     "recording", "/control" not in f.read())
            t.same("and is alone", n_threads(h.pid), before)
        else:
            t.skip("unshare", said.strip())
        p.send_signal(signal.SIGINT)
        words = p.communicate(timeout=120)[1]
        t.ok("nothing is left to do", "not detached" not in words, words)
        t.has("what was before is written", words, "u.wall.pb.gz: ")
        t.same("and it goes on", h.end()[0], 0)


def says_why_it_waits():
    """Another thread of the process has the loader's lock."""
    with Host("loader 2") as h:
        h.process.send_signal(signal.SIGUSR1)
        h.process.stdout.readline()
        before = n_threads(h.pid)
        p = subprocess.Popen([cpprof, "record", "-t", "heap", "-p", str(h.pid),
                              "-o", "l.pb.gz"], stderr=subprocess.PIPE,
                             text=True)
        t.has("a command that waits for a process says so",
              p.stderr.readline(), "waiting for it: ")
        p.send_signal(signal.SIGINT)
        words = p.communicate(timeout=60)[1]
        t.has("Ctrl-C ends that", words,
              "not attached: interrupted before it answered")
        h.process.send_signal(signal.SIGUSR1)
        t.ok("the process is alone again",
             wait_until(lambda: n_threads(h.pid) == before), n_threads(h.pid))
        t.same("and goes on", h.end()[0], 0)


NAMED = """
import time
with open("/proc/self/comm", "w") as f:
    f.write("\\x1b]0;x\\x07")
print("ready", flush=True)
time.sleep(100)
"""


def names_do_no_harm():
    p = subprocess.Popen([sys.executable, "-c", NAMED],
                         stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    done = subprocess.run([cpprof, "doctor", str(p.pid)], capture_output=True,
                          text=True, check=False, timeout=60)
    t.has("doctor prints a name without codes for the terminal",
          done.stdout + done.stderr, "(?]0;x?)")
    p.kill()
    p.communicate()


FORKS = """
import os, signal
def fork(*_):
    pid = os.fork()
    if pid:
        print(pid, flush=True)
signal.signal(signal.SIGUSR1, fork)
print("ready", flush=True)
while True:
    sum(range(1000))
"""


def wakes(pid):
    """How often the threads of ours in it have slept."""
    n = 0
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, tid),
                  encoding="ascii") as f:
            text = f.read()
        if "Name:\tcpprof-wall" in text:
            n += int(re.search(r"\nvoluntary_ctxt_switches:\t(\d+)",
                               text).group(1))
    return n


def children_are_left():
    """Those that were forked meanwhile run on, and are sampled no more."""
    host_ = subprocess.Popen([sys.executable, "-c", FORKS],
                             stdout=subprocess.PIPE, text=True)
    host_.stdout.readline()
    p = subprocess.Popen([cpprof, "record", "-t", "cpu,wall", "-p",
                          str(host_.pid), "-o", "o.%k.pb.gz"],
                         stderr=subprocess.PIPE, text=True)
    p.stderr.readline()
    host_.send_signal(signal.SIGUSR1)
    child = int(host_.stdout.readline())
    t.ok("a child that is forked while attached is sampled",
         wait_until(lambda: wakes(child) > 0, 20))
    p.kill()
    p.communicate()

    def is_quiet():
        before = wakes(child)
        time.sleep(1)
        return wakes(child) - before < 10

    t.ok("and no more when the recorder has ended", wait_until(is_quiet, 20),
         wakes(child))
    os.kill(child, signal.SIGKILL)
    host_.kill()
    host_.communicate()


CROSSWISE = r"""
#include <pthread.h>

static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER,
                                   PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t both_have_one;

static void *cross(void *first)
{
    pthread_mutex_lock(first);
    pthread_barrier_wait(&both_have_one);
    pthread_mutex_lock(first == locks ? locks + 1 : locks);
    return 0;
}

int main(void)
{
    pthread_t threads[2];
    int i;

    pthread_barrier_init(&both_have_one, 0, 2);
    for (i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, cross, &locks[i]);
    pthread_join(threads[0], 0);
    return 0;
}
"""


def tells_who_is_stuck():
    p = program(CROSSWISE, ["-g", "-O0", "-pthread", "-Wl,--build-id"])
    if not p:
        t.skip("a deadlock", "cannot be compiled")
        return
    # Names are of what runs, not of what has its path by now.
    path = os.readlink("/proc/%d/exe" % p.pid)
    shutil.copy(cpprof, path + ".new")
    os.replace(path + ".new", path)
    found = []

    def is_told():
        found[:] = [report(["threads", "-stuck", "-p", str(p.pid)])]
        return "deadlock 1, of 2 threads:\n" in found[0]

    t.ok("threads -stuck -p tells of a deadlock", wait_until(is_told, 20),
         *found)
    t.matches("with who waits behind it", 'behind it: thread %d "x" waits'
              % p.pid, found[0])
    t.ok("and where all of them are", found[0].count("\ncross(...)\n") == 2,
         *found)
    t.same("the process goes on waiting", p.poll(), None)
    p.kill()
    p.wait()
    with Host("nanosleep") as h:
        t.same("where nobody is stuck it says so",
               report(["-p", str(h.pid), "threads", "-stuck"]),
               "threadleak profile: total 0\n\n")


def reports_on_processes():
    with Host("pulse") as h:
        done = subprocess.run([cpprof, "top", "-seconds=2", "-p", str(h.pid)],
                              capture_output=True, text=True, check=False,
                              timeout=120)
        t.has("top -p prints where a process is", done.stdout, "do_pulse")
        t.matches("top -p names the process and no file of its own",
                  r"\Acpprof: process %d: [0-9]+ samples?[^/]*\n\Z" % h.pid,
                  done.stderr)
    with Host("nanosleep") as h:
        words = report(["-p", str(h.pid), "threads"])
        t.matches("-p PID threads prints who they are",
                  r'\Agoroutine %d \[sleeping, .*name "attach_host"' % h.pid,
                  words)
        t.has("and where", words, "\ndo_nanosleep(...)\n\t")
        t.same("and it goes on", h.end()[0], 0)
    with Host("malloc 3") as h:
        words = report(["-p", str(h.pid), "threads"])
        t.same("-p PID threads: each thread is in it, and no other",
               sorted(int(x) for x in re.findall(r"(?m)^goroutine (\d+) ",
                                                 words)),
               sorted(int(x) for x in os.listdir("/proc/%d/task" % h.pid)))
        t.same("-p PID threads: no thread is without a name or a stack",
               (words.count('name "attach_host"'),
                words.count("\nallocate_all(...)\n")), (3, 3))
        status, words = record(["-p", str(h.pid), "-duration", "1", "-o",
                                "n.pb.gz"])
        t.has("threads of ours are not counted as the program's", words,
              ", 3 threads, ")
    with Host("nanosleep") as a, Host("pulse") as b:
        words = report(["-p", "%d,%d" % (a.pid, b.pid), "threads"])
        t.ok("-p A,B threads prints both",
             "process %d (attach_host):\n\ngoroutine %d" % (a.pid, a.pid)
             in words and "process %d (attach_host):\n\ngoroutine %d"
             % (b.pid, b.pid) in words, words)


def wait_until(is_true, seconds=90):
    end = time.monotonic() + seconds
    while not is_true() and time.monotonic() < end:
        time.sleep(0.2)
    return is_true()


def shows_the_page():
    """A new profile for as long as somebody looks; then nothing."""
    with Host("pulse") as h:
        s = Server("-p", str(h.pid), "-seconds=1")
        wait_until(lambda: s.data("status")["ready"])
        t.same("http -p: the page names the process",
               s.data("status")["sources"], ["-p=%d" % h.pid])
        t.ok("http -p: it shows where the process is", wait_until(
            lambda: b"do_pulse" in s.get("/ui/api/report/top")))
        first = s.get("/ui/api/report/top").decode()
        t.ok("http -p: and does so again", wait_until(
            lambda: s.data("status")["turn"] > 0), s.data("status"))
        t.ok("http -p: with another profile",
             wait_until(lambda: s.get("/ui/api/report/top").decode() != first),
             first)
        in_browser(s)
        t.same("http -p: status 0 at its end", s.close(), 0)
        t.same("http -p: the process is left alone",
               len(os.listdir("/proc/%d/task" % h.pid)), 1)
        t.same("http -p: and it goes on", h.end()[0], 0)
    with Host("pulse") as h:
        s = Server("-p", str(h.pid), "-seconds=1")
        wait_until(lambda: s.data("status")["ready"] and
                   b"do_pulse" in s.get("/ui/api/report/top"))
        h.end()
        t.ok("http -p: the end of the process is told",
             wait_until(lambda: s.data("status")["over"]), s.data("status"))
        t.has("http -p: its last profile stays",
              s.get("/ui/api/report/top").decode(), "do_pulse")
        t.same("http -p: status 0 all the same", s.close(), 0)
        t.matches("http -p: and a line says why",
                  "there is no such process|it ended meanwhile|"
                  "has ended and waits", s.rest)
    waits_for_one_that_is_stopped()
    status, words = run_page(["-p", "2147483647"])
    t.same("http -p of nobody: status 2", status, 2)
    t.has("http -p of nobody: a line says why", words,
          "there is no such process")
    t.same("http -p leaves no file", [name for name in os.listdir("tmp")
                                     if name.startswith("cpprof-")], [])


def waits_for_one_that_is_stopped():
    with Host("pulse") as h:
        s = Server("-p", str(h.pid), "-seconds=1")
        wait_until(lambda: s.data("status")["ready"])
        os.kill(h.pid, signal.SIGSTOP)
        t.ok("http -p: a process that is stopped is told",
             wait_until(lambda: s.data("status")["stopped"]), s.data("status"))
        turn = s.data("status")["turn"]
        os.kill(h.pid, signal.SIGCONT)
        t.ok("http -p: and goes on on the page when it goes on", wait_until(
            lambda: s.data("status")["turn"] > turn), s.data("status"))
        t.ok("http -p: which says so", not s.data("status")["stopped"] and
             not s.data("status")["over"], s.data("status"))
        s.process.kill()
        s.process.communicate()
        t.ok("http -p: killed, it leaves nothing in the process", wait_until(
            lambda: len(os.listdir("/proc/%d/task" % h.pid)) == 1, 20))
        t.same("http -p: which goes on", h.end()[0], 0)
    with Host("pulse") as h:
        os.kill(h.pid, signal.SIGSTOP)
        s = Server("-p", str(h.pid), "-seconds=1")
        t.ok("http -p: of one that is stopped from the beginning", wait_until(
            lambda: "kill -CONT" in s.data("status")["progress"]),
            s.data("status"))
        os.kill(h.pid, signal.SIGCONT)
        t.ok("http -p: there is a profile when it goes on",
             wait_until(lambda: s.data("status")["ready"]), s.data("status"))
        t.same("http -p: and status 0", s.close(), 0)


def in_browser(s):
    chromium = browser.find_browser()
    if not chromium:
        t.skip("http -p: the page takes it over", "no chromium")
        return
    b = browser.Browser(chromium, os.path.join(os.getcwd(), "home"))
    try:
        b.open(s.url + "top")
        turn = s.data("status")["turn"]
        t.ok("http -p: an open page shows the new profile",
             b.wait("cpprof.state.start && cpprof.state.start.turn > %d && "
                    "main.dataset.state === 'ready'" % turn, 60))
    finally:
        b.close()


def run_page(words):
    done = subprocess.run([cpprof, "http", ":0", "-no_browser"] + words,
                          capture_output=True, text=True, check=False,
                          timeout=120)
    return done.returncode, done.stdout + done.stderr


def records_in_a_pid_namespace():
    """It takes itself for process 1 there."""
    own = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run(own + ["true"], capture_output=True,
                      check=False).returncode:
        t.skip("another pid namespace", "none can be made")
        return
    with subprocess.Popen(own + [host, "pulse"], stdout=subprocess.PIPE,
                          text=True) as outer:
        outer.stdout.readline()
        with open("/proc/%d/task/%d/children" % (outer.pid, outer.pid),
                  encoding="ascii") as f:
            inner = f.read().strip()
        status, words = record(["-p", inner, "-duration", "1s", "-o",
                                "g.pb.gz"])
        t.ok("another pid namespace: status 0", status == 0, words)
        t.ok("and the profile has the name that was asked for",
             os.path.exists("g.pb.gz"), words)
        os.kill(int(inner), signal.SIGTERM)


def program(text, flags):
    """A process of a C program, or None without a compiler for it. Others are
    made meanwhile, of the same name."""
    x = tempfile.mkdtemp(dir=".") + "/x"
    with open(x + ".c", "w", encoding="ascii") as f:
        f.write(text)
    done = subprocess.run(["cc", "-o", x] + flags + [x + ".c"],
                          capture_output=True, check=False)
    if done.returncode:
        return None
    p = subprocess.Popen([x])
    time.sleep(0.2)
    return p


def wrong_words():
    for words, pattern in (
            (["-p", "x"], "-p takes numbers of processes"),
            (["-p", "1,"], "-p takes numbers of processes"),
            (["-p", ""], "-p takes numbers of processes"),
            (["-p", "1", "--", "true"], "take no command"),
            (["-name", "no such name"], 'no process is named "no such name"')):
        done = subprocess.run([cpprof, "record"] + words, capture_output=True,
                              text=True, check=False, timeout=60)
        t.same("record %s: status 2" % " ".join(words), done.returncode, 2)
        t.matches("record %s: one line" % " ".join(words),
                  r"\Acpprof: record: [^\n]*" + pattern + r"[^\n]*\n\Z",
                  done.stderr)


    done = subprocess.run([cpprof, "top", "-p"], capture_output=True, text=True,
                          check=False, timeout=60)
    t.same("top -p without a number: a line says so",
           (done.returncode, done.stderr),
           (2, "cpprof: -p takes the number of a process\n"))


def calls_are_made():
    for mode in WAITING + BUSY:
        goes_on(mode)
    leaves_nothing()
    profiled("fork", "cpu,symbolize=none", 40)
    profiled("dlopen", "cpu,symbolize=none", 20)
    profiled("dlopen", "cpu,heap", 10)
    reads_libraries()
    lives_through_execs()
    for mode in ("nanosleep", "registers", "malloc 4", "sigsuspend"):
        survives_kills(mode)
    killed_at_each_call("nanosleep")
    killed_at_each_call("malloc", 5)


def records():
    records_kinds()
    records_until(signal.SIGINT)
    records_until(signal.SIGTERM)
    records_idle()
    records_two()
    records_name()
    recorder_is_killed()
    ends_with_its_process()
    ends_at_once_when_asked_twice()
    leaves_other_namespaces()
    leaves_before_it_may_not()
    says_why_it_waits()
    names_do_no_harm()
    children_are_left()
    reports_on_processes()
    tells_who_is_stuck()
    records_in_a_pid_namespace()
    wrong_words()


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.pop("LD_PRELOAD", None)
    os.environ.pop("CPPROF", None)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("run", 0o700)
        os.mkdir("tmp")
        os.environ["XDG_RUNTIME_DIR"] = os.path.join(folder, "run")
        os.environ["TMPDIR"] = os.path.join(folder, "tmp")
        why = may_attach()
        if why:
            t.skip("attach", why)
            return t.end()
        t.beside(calls_are_made, records, shows_the_page, commands_take_turns)
        os.chdir("/")
    return t.end()


sys.exit(main())
