#!/usr/bin/env python3
"""Root attaches to processes of others, who may not turn that against it; and
nobody keeps a process profiled, or root waiting. Nor does what a process forbids
itself meanwhile do it harm. What needs root is skipped for others.

    attach_rights.py CPPROF       TAP
"""
import fcntl
import glob
import os
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
import tap
from processes import own_threads

cpprof = os.path.realpath(sys.argv[1])
t = tap.Tap()
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}

BUSY = """
import os, signal, sys, time
def become(*_):
    os.setgid(65534)
    os.setuid(65534)
    print("became", flush=True)
signal.signal(signal.SIGUSR1, become)
print("ready", flush=True)
while True:
    sum(range(20000))
    time.sleep(0.005)
"""

# What a process can do with the folder that it records into.
HOSTILE = """
import glob, os, re, sys, time
secret, pid = sys.argv[1:]
print("ready", flush=True)
folder = None
while not folder:
    with open("/proc/%s/maps" % pid) as f:
        folder = re.search("/.*/run/cpprof-[^/]*/[0-9a-f]{32}(?=/.*\\.0\\.0$)",
                           f.read(), re.M)
os.chdir(folder.group())
for name, make in (("7.0", lambda n: os.symlink(secret, n)),
                   ("7.0.tables", lambda n: os.symlink(secret, n)),
                   ("8.0", os.mkfifo), ("8.0.tables", os.mkfifo),
                   ("9.0", os.mkdir), ("deep", os.mkdir),
                   ("deep/er", os.mkdir)):
    make(name)
with open("6.0", "w") as f:
    f.truncate(1 << 40)
try:
    os.unlink("control")
    os.symlink(secret, "control")
    print("replaced", flush=True)
except PermissionError:
    print("done", flush=True)
sizes = {}
while True:
    for name in (pid + ".0", pid + ".0.0"):
        try:
            size = sizes.setdefault(name, os.stat(name).st_size)
            if os.path.isfile(name) and not os.path.islink(name):
                os.truncate(name, 0)
                os.truncate(name, size)
        except OSError:
            pass
"""


# A filter for what makes a thread and opens pages: what it does then, and
# SECCOMP_FILTER_FLAG_TSYNC (1) for all threads.
FILTERED = """
import ctypes, signal, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
action, flags = int(sys.argv[1], 0), int(sys.argv[2])
def set_filter(*_):
    calls = (10, 56, 435)  # mprotect, clone, clone3
    code = struct.pack("HBBI", 0x20, 0, 0, 0)
    for number in calls:
        code += struct.pack("HBBI", 0x15, 0, 1, number)
        code += struct.pack("HBBI", 0x06, 0, 0, action)
    code += struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000)
    text = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(
        struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(text)), 16)
    libc.prctl(38, 1, 0, 0, 0)
    print("failed" if libc.syscall(317, 1, flags, program) else "filtered",
          flush=True)
signal.signal(signal.SIGUSR1, set_filter)
print("ready", flush=True)
while True:
    sum(range(20000))
    time.sleep(0.005)
"""


class Process:
    def __init__(self, text, *args, **rights):
        self.process = subprocess.Popen([sys.executable, "-c", text] +
                                        list(args), stdout=subprocess.PIPE,
                                        text=True, **rights)
        self.pid = self.process.pid
        self.next_line()

    def next_line(self):
        return self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def start_record(pid, *words):
    return subprocess.Popen([cpprof, "record", "-p", str(pid)] + list(words),
                            stderr=subprocess.PIPE, text=True)


def record(pid, *words):
    p = start_record(pid, *words)
    return p, p.communicate(timeout=120)[1]


def n_threads(pid):
    try:
        return len(os.listdir("/proc/%d/task" % pid))
    except FileNotFoundError:
        return 0


def wait_until(is_true, seconds=30):
    end = time.monotonic() + seconds
    while not is_true() and time.monotonic() < end:
        time.sleep(0.1)
    return is_true()


def folders():
    return set(glob.glob("run/cpprof-*"))


def another_user_is_recorded():
    before = folders()
    with Process(BUSY, **NOBODY) as h:
        p = start_record(h.pid, "-duration", "2", "-o", "a.pb.gz")
        wait_until(lambda: n_threads(h.pid) > 1)
        t.same("only who knows its name can go into the folder",
               [(os.stat(f).st_uid, os.stat(f).st_mode & 0o7777)
                for f in folders() - before], [(0, 0o711)])
        words = p.communicate(timeout=120)[1]
        t.same("another user's process is recorded", p.returncode, 0)
        t.matches("and has samples", r"[1-9]\d* samples", words)
    t.same("no folder is left", folders() - before, set())


def a_hostile_user_gains_nothing():
    before = folders()
    secret = os.path.realpath("secret")
    with open(secret, "w", encoding="ascii") as f:
        f.write("unchanged")
    os.chmod(secret, 0o666)
    with Process(BUSY, **NOBODY) as h, Process(
            HOSTILE, secret, str(h.pid), **NOBODY) as x:
        p = start_record(h.pid, "-duration", "3", "-o", "b.pb.gz")
        t.same("a hostile user reaches the folder, and replaces no file in it",
               x.next_line(), "done\n")
        words = p.communicate(timeout=120)[1]
        t.ok("the recorder is not killed by it", p.returncode in (0, 2),
             p.returncode, words)
        t.same("nor are profiles made of what is there", glob.glob("b.*.*.pb.gz"),
               [])
    with open(secret, encoding="ascii") as f:
        t.same("and writes nothing through links", f.read(), "unchanged")
    t.same("of what that user has made only a folder that is not empty stays",
           [os.path.basename(f) for folder in folders() - before
            for f in glob.glob(folder + "/*/*")], ["deep"])


def one_that_becomes_another_is_left():
    with Process(BUSY) as h:
        before = n_threads(h.pid)
        p = start_record(h.pid, "-t", "cpu,heap", "-o", "c.pb.gz")
        p.stderr.readline()
        os.kill(h.pid, signal.SIGUSR1)
        t.same("a process that is recorded becomes another user",
               h.next_line(), "became\n")
        time.sleep(0.5)
        t.ok("it is recorded", n_threads(h.pid) > before)
        p.kill()
        p.communicate()
        t.ok("it is profiled no more when its recorder was killed",
             wait_until(lambda: n_threads(h.pid) == before), n_threads(h.pid))


def a_filter_that_came_kills_nobody():
    with Process(FILTERED, "0x80000000", "0") as h:
        before = n_threads(h.pid)
        p = start_record(h.pid, "-t", "cpu,heap,wall", "-o", "e.%k.pb.gz")
        p.stderr.readline()
        os.kill(h.pid, signal.SIGUSR1)
        said = h.next_line()
        if said != "filtered\n":
            t.skip("a seccomp filter", said)
            p.kill()
            p.communicate()
            return
        time.sleep(1)
        p.send_signal(signal.SIGINT)
        words = p.communicate(timeout=120)[1]
        t.same("a seccomp filter that came while recording: it is written",
               (p.returncode, "detached" in words), (0, False))
        time.sleep(0.5)
        t.same("and the process goes on", h.process.poll(), None)
        t.same("alone", n_threads(h.pid), before)
        p, words = record(h.pid, "-duration", "1", "-o", "f.pb.gz")
        t.has("nor is it attached to again", words, "has a seccomp filter")


def what_a_filter_keeps_is_said():
    with Process(FILTERED, "0x00050001", "1") as h:  # EPERM, for all threads
        before = n_threads(h.pid)
        p = start_record(h.pid, "-t", "heap", "-o", "h.pb.gz")
        p.stderr.readline()
        n_patched = entries(h.pid)
        os.kill(h.pid, signal.SIGUSR1)
        said = h.next_line()
        if said != "filtered\n":
            t.skip("a seccomp filter for all threads", said)
            p.kill()
            p.communicate()
            return
        p.send_signal(signal.SIGINT)
        words = p.communicate(timeout=120)[1]
        n_left = entries(h.pid)
        t.ok("entries that a filter keeps are few", n_left < n_patched,
             n_left, n_patched)
        t.ok("and are said", ("not detached" in words) == (n_left > 0), n_left,
             words)
        t.same("the process goes on", h.process.poll(), None)
        t.same("alone, too", n_threads(h.pid), before)


def a_dump_that_is_killed_is_over():
    """One is killed while the process is attached; it tells nobody of its end."""
    with Process(BUSY) as h:
        for i in range(200):
            p = subprocess.Popen([cpprof, "threads", "-p", str(h.pid)],
                                 stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
            while p.poll() is None and not own_threads(h.pid):
                time.sleep(0.001)
            time.sleep(0.001 * (i % 20))
            p.kill()
            p.wait()
            time.sleep(0.5)
            if own_threads(h.pid):
                break
        t.ok("a dump is killed, and its threads are still there",
             own_threads(h.pid))
        end = time.monotonic() + 60
        while own_threads(h.pid) and time.monotonic() < end:
            time.sleep(0.1)
        t.same("but not for long", own_threads(h.pid), [])
        done = subprocess.run([cpprof, "threads", "-p", str(h.pid)],
                              capture_output=True, check=False, timeout=120)
        t.same("and the next has its dump", (done.returncode, done.stderr),
               (0, b""))


# libc has each thread make the call, by a signal, and waits for all of them.
SETUID = """
import os, threading, time
threading.Thread(target=os.read, args=(os.pipe()[0], 1), daemon=True).start()
print("ready")
for i in range(10000000):
    os.seteuid(65534)
    os.seteuid(0)
    if i % 100 == 0:
        print(i, flush=True)
"""


def says_more(fd, n_times):
    """So often, after all that is on its way already."""
    waiting = fcntl.ioctl(fd, termios.FIONREAD, struct.pack("i", 0))
    left = struct.unpack("i", waiting)[0]
    while left > 0:
        left -= len(os.read(fd, left))
    for _ in range(n_times):
        if not (select.select([fd], [], [], 20)[0] and os.read(fd, 4096)):
            return False
    return True


def one_that_changes_its_user_goes_on():
    """What the first attach may meet: whether it succeeds is as the user is."""
    n_attached = 0
    ended = []
    for i in range(10):
        with Process(SETUID) as h:
            h.next_line()
            time.sleep(0.01 * i)
            done = subprocess.run([cpprof, "threads", "-p", str(h.pid)],
                                  capture_output=True, check=False, timeout=120)
            n_attached += done.returncode == 0
            if not says_more(h.process.stdout.fileno(), 20):
                ended.append((i, h.process.poll()))
    print("# attached to %d of 10" % n_attached)
    t.same("processes that change their user all the time go on", ended, [])


CHROOT = """
import os, signal, sys, time
def leave(*_):
    os.chroot(sys.argv[1])
    print("left", flush=True)
signal.signal(signal.SIGUSR1, leave)
print("ready", flush=True)
while True:
    sum(range(20000))
    time.sleep(0.005)
"""


def entries(pid):
    """Words in data of the modules that lead into the library."""
    words = 0
    with open("/proc/%d/maps" % pid, encoding="utf-8") as f:
        lines = [line.split() for line in f if "/" in line]
    maps = [tuple(int(x, 16) for x in line[0].split("-")) +
            (line[1], line[5]) for line in lines]
    library = [m for m in maps if "libcpprof" in m[3]]
    lo, hi = (library[0][0], library[-1][1]) if library else (0, 0)
    with open("/proc/%d/mem" % pid, "rb", 0) as f:
        for start, end, rights, path in maps:
            if "libcpprof" in path or not re.match("r[-w]-", rights):
                continue
            f.seek(start)
            data = f.read(end - start)
            words += sum(lo <= word < hi
                         for word in struct.unpack("%dQ" % (len(data) // 8),
                                                   data))
    return words


def one_that_changes_its_root_is_left():
    with Process(CHROOT, os.path.realpath("run")) as h:
        record(h.pid, "-t", "cpu,heap", "-duration", "1", "-o", "g.%k.pb.gz")
        before = entries(h.pid)
        p = start_record(h.pid, "-t", "cpu,heap", "-o", "g.%k.pb.gz")
        p.stderr.readline()
        n_patched = entries(h.pid)
        os.kill(h.pid, signal.SIGUSR1)
        t.same("a process leaves /proc for another root", h.next_line(),
               "left\n")
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=120)
        t.ok("its entries were patched", n_patched > before, n_patched)
        t.same("and are all put back", entries(h.pid), before)


LOCKS = """
import fcntl, os, sys, time
for name in "", "/status":
    fd = os.open("/proc/%s%s" % (sys.argv[1], name), os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
try:
    os.open("/proc/%s/mem" % sys.argv[1], os.O_RDONLY)
    print("opened")
except PermissionError:
    print("ready", flush=True)
time.sleep(1000)
"""


def nobody_makes_root_wait():
    with Process(BUSY) as h:
        x = subprocess.Popen([sys.executable, "-c", LOCKS, str(h.pid)],
                             stdout=subprocess.PIPE, text=True, **NOBODY)
        t.same("another user locks what he can of a process", x.stdout.read(6),
               "ready\n")
        p, words = record(h.pid, "-duration", "1", "-o", "d.pb.gz")
        t.same("and root attaches nevertheless", (p.returncode, "not" in words),
               (0, False))
        x.kill()
        x.communicate()


# Its first thread sleeps with a time, so that the other is borrowed.
IN_REAL_TIME = """
import os, select, threading, time
def work():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
    print("ready", flush=True)
    while True:
        select.select([], [], [], 0.05)
threading.Thread(target=work).start()
while True:
    time.sleep(100)
"""


def schedule(tid):
    return os.sched_getscheduler(tid), sorted(os.sched_getaffinity(tid))


def real_time_is_not_inherited():
    with Process(IN_REAL_TIME) as h:
        theirs = max(map(int, os.listdir("/proc/%d/task" % h.pid)))
        p = start_record(h.pid, "-t", "wall", "-duration", "3", "-o",
                         "t.pb.gz")
        wait_until(lambda: own_threads(h.pid))
        time.sleep(1) # the call that starts them has ended
        ours = own_threads(h.pid)
        t.ok("a thread in real time is borrowed: ours are there", ours != [])
        t.same("and run as the first one does",
               [schedule(tid) for tid in ours], [schedule(h.pid)] * len(ours))
        t.same("the borrowed one is in real time still", schedule(theirs),
               (os.SCHED_FIFO, [max(os.sched_getaffinity(h.pid))]))
        said = p.communicate(timeout=60)[1]
        t.ok("and it is recorded", p.returncode == 0, said)


# Its other thread waits in a better call, and has a root or a user of its own.
OF_ITS_OWN = """
import ctypes, os, select, sys, threading, time
libc = ctypes.CDLL(None)
def work():
    if sys.argv[1] == "root":
        libc.unshare(0x200) # CLONE_FS
        os.chroot("/var")
    else:
        libc.syscall(117, 65534, 65534, 65534) # setresuid
    print("ready", flush=True)
    while True:
        select.select([], [], [], 0.05)
threading.Thread(target=work).start()
while True:
    time.sleep(0.05)
"""


def threads_of_their_own_are_left():
    for what in "root", "user":
        with Process(OF_ITS_OWN, what) as h:
            p, said = record(h.pid, "-t", "wall", "-duration", "0.3", "-o",
                             "u.pb.gz")
            t.ok("a thread has a %s of its own: another is borrowed" % what,
                 p.returncode == 0, said)


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name in ("LD_PRELOAD", "CPPROF"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        os.chdir(folder)
        os.mkdir("run", 0o755)
        os.environ["XDG_RUNTIME_DIR"] = os.path.join(folder, "run")
        a_filter_that_came_kills_nobody()
        what_a_filter_keeps_is_said()
        a_dump_that_is_killed_is_over()
        if os.getuid():
            t.skip("attach as root", "for root")
            os.chdir("/")
            return t.end()
        another_user_is_recorded()
        a_hostile_user_gains_nothing()
        one_that_becomes_another_is_left()
        one_that_changes_its_user_goes_on()
        one_that_changes_its_root_is_left()
        nobody_makes_root_wait()
        real_time_is_not_inherited()
        threads_of_their_own_are_left()
        os.chdir("/")
    return t.end()


sys.exit(main())
