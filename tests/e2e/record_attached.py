#!/usr/bin/env python3
"""Recordings of processes that run; what may not be attached to is refused with
a line. Words: attached.py.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from attached import (Host, compiled, cpprof, host, main, program, record,
                      report, t, wait_until)


def records_kinds():
    """As of a command, and again: the library is there already then."""
    with Host("allocate 3") as h:
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


# Has a name that nobody else has, and forks children, which work.
NAMED_THAT_FORKS = """
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(15, sys.argv[1].encode())
print("ready", flush=True)
time.sleep(1.5)
child = os.fork()
if child:
    print(child, flush=True)
end = time.monotonic() + 3
while time.monotonic() < end:
    sum(range(1000))
"""


def records_name_of_children():
    name = "cpf%d" % os.getpid()
    h = subprocess.Popen([sys.executable, "-c", NAMED_THAT_FORKS, name],
                         stdout=subprocess.PIPE, text=True)
    h.stdout.readline()
    p = subprocess.Popen([cpprof, "record", "-name", name, "-one", "-o",
                          "f.pb.gz", "-duration", "4"],
                         stderr=subprocess.PIPE, text=True)
    child = h.stdout.readline().strip()
    said = p.communicate(timeout=60)[1]
    t.same("-name: a child of one that was attached to is in it, and no word "
           "is said of it", (child in report(["-tags", "f.pb.gz"]),
                             "attached" in said), (True, False))
    t.same("-name: and it goes on", h.wait(), 0)
    h.stdout.close()


def recorder_is_killed():
    with Host("allocate") as h:
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
    with Host("allocate") as h:
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
    os.mkdir("twice", 0o755)
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
import os, signal, time
def fork(*_):
    pid = os.fork()
    if pid:
        print(pid, flush=True)
signal.signal(signal.SIGUSR1, fork)
print("ready", flush=True)
while True:
    sum(range(20000))
    bytearray(1000000)
    time.sleep(0.005)
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


def children_can_be_attached_to():
    """Of one that is attached to now, and of one that was."""
    h = subprocess.Popen([sys.executable, "-c", FORKS], stdout=subprocess.PIPE,
                         text=True)
    h.stdout.readline()
    p = subprocess.Popen([cpprof, "record", "-t", "cpu,heap", "-p", str(h.pid),
                          "-o", "g.%k.pb.gz"], stderr=subprocess.PIPE,
                         text=True)
    p.stderr.readline()
    children = []
    for when in "during", "after":
        h.send_signal(signal.SIGUSR1)
        children.append(int(h.stdout.readline()))
        if when == "during":
            p.send_signal(signal.SIGINT)
            p.communicate(timeout=60)
    t.ok("a child that was forked while its parent was attached to is alone when "
         "that has ended", wait_until(lambda: n_threads(children[0]) == 1, 5),
         n_threads(children[0]))
    for child, when in zip(children, ("while", "after")):
        for again in "", ", again":
            file = "g.%d%s.%%k.pb.gz" % (child, again[2:])
            p = subprocess.run([cpprof, "record", "-t", "cpu,heap", "-p",
                                str(child), "-duration", "1", "-o", file],
                               capture_output=True, text=True, check=False,
                               timeout=60)
            t.same("a child that was forked %s its parent was attached to is "
                   "attached to%s" % (when, again),
                   (p.returncode, "not attached" in p.stderr), (0, False))
            t.has("and sampled%s" % again,
                  report(["-top", file.replace("%k", "cpu")]), "%")
            t.same("and nothing of ours runs there%s" % again,
                   n_threads(child), 1)
        os.kill(child, signal.SIGKILL)
    h.kill()
    h.communicate()


# Three threads fork children that live for longer than they do.
FORKS_ALL_THE_TIME = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *arg)
{
    int i;

    for (i = 0; i < 100; i++) {
        pid_t child = fork();

        if (!child) {
            free(malloc(100000));
            sleep(60);
            _exit(0);
        }
        dprintf(1, "%d\n", child);
        usleep(3000);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    int i;

    for (i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    dprintf(1, "done\n");
    while (wait(NULL) > 0)
        ;
    return 0;
}
"""


def ours_in(pid):
    """Pointers in data of the modules that lead into the library."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as f:
        maps = [(*(int(x, 16) for x in line.split()[0].split("-")),
                 line.split()[1], line.split()[-1]) for line in f]
    library = [m for m in maps if "libcpprof" in m[3]]
    lo, hi = (library[0][0], library[-1][1]) if library else (0, 0)
    n = 0
    with open("/proc/%d/mem" % pid, "rb", 0) as f:
        for start, end, rights, path in maps:
            if path[0] == "/" and "cpprof" not in path and rights[0] == "r" \
                    and rights[2] == "-":
                f.seek(start)
                words = memoryview(f.read(end - start)).cast("Q")
                n += sum(lo <= word < hi for word in words)
    return n


def children_made_meanwhile_are_left():
    """At each moment of the way in and of the way out."""
    x = compiled(FORKS_ALL_THE_TIME, ("-pthread",))
    if not x:
        t.skip("children that are made meanwhile", "no compiler")
        return
    h = subprocess.Popen([x], stdout=subprocess.PIPE, text=True)
    children = [int(h.stdout.readline())]
    p = subprocess.Popen([cpprof, "record", "-t", "cpu,heap,wall", "-p",
                          str(h.pid), "-duration", "0.15", "-o", "j.%k.pb.gz"],
                         stderr=subprocess.PIPE, text=True)
    children += [int(line) for line in iter(h.stdout.readline, "done\n")]
    p.communicate(timeout=60)
    t.ok("children that are made meanwhile are alone in the end",
         wait_until(lambda: max(map(n_threads, children)) == 1, 10),
         [c for c in children if n_threads(c) > 1])
    most = ours_in(h.pid)
    t.ok("and lead nowhere else than their parent does",
         wait_until(lambda: max(map(ours_in, children)) <= most, 10),
         [(c, ours_in(c)) for c in children if ours_in(c) > most], most)
    for child in children:
        os.kill(child, signal.SIGKILL)
    t.same("which ends well", h.wait(timeout=30), 0)
    h.stdout.close()


# Its child has a lock of the loader, by a thread that is not there.
LOCKED_LOADER = r"""
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t go, has_lock;

static void on_signal(int number)
{
    go = 1;
}

static int stay(struct dl_phdr_info *info, size_t n, void *arg)
{
    has_lock = 1;
    for (;;)
        pause();
}

static void *hold(void *arg)
{
    dl_iterate_phdr(stay, NULL);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pid_t child;

    signal(SIGUSR1, on_signal);
    puts("ready");
    fflush(stdout);
    while (!go)
        usleep(1000);
    pthread_create(&thread, NULL, hold, NULL);
    while (!has_lock)
        usleep(1000);
    child = fork();
    if (child) {
        printf("%d\n", child);
        fflush(stdout);
    }
    for (;;)
        usleep(1000);
}
"""


def one_with_a_locked_loader_is_left():
    x = compiled(LOCKED_LOADER, ("-pthread",))
    if not x:
        t.skip("a child whose loader is locked", "no compiler")
        return
    h = subprocess.Popen([x], stdout=subprocess.PIPE, text=True)
    h.stdout.readline()
    words = ["-t", "wall", "-duration", "0.2", "-o", "h.pb.gz"]
    subprocess.run([cpprof, "record", "-p", str(h.pid)] + words,
                   capture_output=True, check=False, timeout=60)
    h.send_signal(signal.SIGUSR1)
    child = int(h.stdout.readline())
    for again in "", ", again":
        p = subprocess.run([cpprof, "record", "-p", str(child)] + words,
                           capture_output=True, text=True, check=False,
                           timeout=30)
        t.matches("a child whose loader is locked is not attached to" + again,
                  r"\Acpprof: \d+ \(x\): not attached: it was forked while "
                  r"another thread had a lock of the loader[^\n]*\n\Z",
                  p.stderr)
        t.same("and goes on%s" % again, n_threads(child), 2)
    os.kill(child, signal.SIGKILL)
    h.kill()
    h.communicate()


# Its children ask the loader, and wait for nothing without us: it has one
# thread.
FORKS_AND_LOADS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    time_t end = time(NULL) + atoi(argv[1]);
    int status, n_bad = 0;
    pid_t pid;

    while (time(NULL) < end) {
        pid = fork();
        if (!pid) {
            alarm(10);
            _exit(!dlopen("libm.so.6", RTLD_NOW));
        }
        n_bad += waitpid(pid, &status, 0) != pid || status;
    }
    printf("%d\n", n_bad);
    return n_bad != 0;
}
"""


def children_may_ask_the_loader():
    x = compiled(FORKS_AND_LOADS, ())
    if not x:
        t.skip("children that ask the loader", "no compiler")
        return
    h = subprocess.Popen([x, "8"], stdout=subprocess.PIPE, text=True)
    n = 0
    while h.poll() is None:
        subprocess.run([cpprof, "-p", str(h.pid), "threads"] if n % 4 else
                       [cpprof, "record", "-p", str(h.pid), "-t", "cpu,heap",
                        "-duration", "50ms", "-o", "h.pb.gz"],
                       capture_output=True, check=False, timeout=60)
        n += 1
    t.same("children ask the loader while their parent is attached to again "
           "and again, and each ends well (%d times)" % n,
           h.communicate()[0], "0\n")
    t.ok("which was so more than ten times", n > 10, n)


def its_code_refers_to_itself():
    """It is copied into the process, and nothing else is."""
    object_file = cpprof + ".p/src_cli_attach_guest.c.o"
    if not os.path.exists(object_file) or not shutil.which("objdump"):
        t.skip("what its code refers to", "no object file, or no objdump")
        return
    found = subprocess.run(["objdump", "-r", "-j", "cpprof_guest", object_file],
                           capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"^[0-9a-f]+ R_\S+\s+([^\s+-]+)", found, re.M))
    t.ok("the code for the process has its addresses",
         "__start_cpprof_guest" in names, found)
    t.same("and refers to nothing but itself",
           {name for name in names if name != "cpprof_guest" and
            not name.startswith(("cpprof__guest_", "__start_cpprof_guest"))},
           set())


# Each child tells how many parts of the library are mapped in it.
FORKS_AND_COUNTS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int n_parts(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    int n = 0;

    while (fgets(line, sizeof line, maps))
        n += strstr(line, "libcpprof.so") != NULL;
    fclose(maps);
    return n;
}

int main(int argc, char **argv)
{
    time_t end = time(NULL) + 60;
    int status, seen[64] = {0}, i, n_after = 0;
    pid_t pid;

    while (time(NULL) < end && n_after < 50) {
        pid = fork();
        if (!pid)
            _exit(n_parts());
        waitpid(pid, &status, 0);
        seen[WEXITSTATUS(status) % 64]++;
        n_after += WEXITSTATUS(status) != 0;
    }
    seen[n_parts()] = 0;
    for (i = 1; i < 64; i++)
        n_after -= seen[i];
    printf("%d after, %d before\n", n_after, seen[0]);
    return 0;
}
"""


def no_fork_while_the_library_is_loaded():
    """A child would have the loader's list as it is at that instant."""
    x = compiled(FORKS_AND_COUNTS, ())
    if not x:
        t.skip("forks while the library is loaded", "no compiler")
        return
    for _ in range(12):
        h = subprocess.Popen([x], stdout=subprocess.PIPE, text=True)
        time.sleep(0.05)
        subprocess.run([cpprof, "record", "-p", str(h.pid), "-t", "cpu",
                        "-duration", "50ms", "-o", "h.pb.gz"],
                       capture_output=True, check=False, timeout=60)
        words = h.communicate()[0]
        if not words.startswith("50 after, ") or " 0 before" in words:
            break
    t.matches("no child has a part of the library",
              r"\A50 after, [1-9]\d* before\n\Z", words)


STEPS = r"""
#include <signal.h>
#include <stdlib.h>
#include <time.h>

static void on_step(int number) { }

int main(void)
{
    struct timespec now;
    time_t end;

    signal(SIGTRAP, on_step);
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (end = now.tv_sec + 6; now.tv_sec < end;
         clock_gettime(CLOCK_MONOTONIC, &now)) {
        __asm__ volatile("leaq -128(%%rsp), %%rsp\n"
                         "pushfq; orq $0x100, (%%rsp); popfq\n"
                         ".rept 200\nnop\n.endr\n"
                         "pushfq; andq $~0x100, (%%rsp); popfq\n"
                         "leaq 128(%%rsp), %%rsp" ::: "cc", "memory");
        free(malloc(100));
    }
    return 3;
}
"""


def one_that_steps_itself_goes_on():
    x = compiled(STEPS, ())
    if not x:
        t.skip("a process with the trap flag", "no compiler")
        return
    h = subprocess.Popen([x])
    while h.poll() is None:
        subprocess.run([cpprof, "-p", str(h.pid), "threads"],
                       capture_output=True, check=False, timeout=60)
    t.same("a process that has set the trap flag ends as it means to",
           h.returncode, 3)


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
                  r"\Acpprof: (record: )?[^\n]*" + pattern + r"[^\n]*\n\Z",
                  done.stderr)


    done = subprocess.run([cpprof, "top", "-p"], capture_output=True, text=True,
                          check=False, timeout=60)
    t.same("top -p without a number: a line says so",
           (done.returncode, done.stderr),
           (2, "cpprof: -p takes the number of a process\n"))
    done = subprocess.run([cpprof, "threads", "-p", "1x"], capture_output=True,
                          text=True, check=False, timeout=60)
    t.same("threads -p with a word: the line names no other command",
           (done.returncode, done.stderr),
           (2, "cpprof: -p takes numbers of processes, with commas between "
            "them, not \"1x\"\n"))


def records():
    records_kinds()
    records_until(signal.SIGINT)
    records_until(signal.SIGTERM)
    records_idle()
    records_two()
    records_name()
    records_name_of_children()
    recorder_is_killed()
    ends_with_its_process()
    ends_at_once_when_asked_twice()
    leaves_other_namespaces()
    leaves_before_it_may_not()
    says_why_it_waits()
    names_do_no_harm()
    children_are_left()
    children_can_be_attached_to()
    one_with_a_locked_loader_is_left()
    children_made_meanwhile_are_left()
    children_may_ask_the_loader()
    its_code_refers_to_itself()
    no_fork_while_the_library_is_loaded()
    one_that_steps_itself_goes_on()
    reports_on_processes()
    tells_who_is_stuck()
    records_in_a_pid_namespace()
    wrong_words()


sys.exit(main(records))
