#!/usr/bin/env python3
"""Every system call and every allocation of ours fails: no program notices.

    faults.py BUILD [MODE]...           some of them, another choice each time
    faults.py --seed N BUILD            the same choice again
    faults.py --all BUILD [MODE]...     all of them, one at a time
    faults.py BUILD MODE FAULT...       these, in one run

faults_host.c runs under each mode in faults_tracer.c, which knows the calls
that are ours and the place in our code where each comes from. Then it runs
again, and calls of such places fail: their first, another one, or all from one
on; and all calls of one number, as under a filter of seccomp. The program must
end as it ends alone: same status, same output, in time.

FAULT is NUMBER:PLACE:NTH[+]:ERRNO as faults_tracer.c has it and as a failure
is printed here. Places change with each build.
"""
import argparse
import bisect
import collections
import concurrent.futures
import errno
import glob
import os
import platform
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from tap import Tap  # pylint: disable=wrong-import-position

# The end of a process may take 30 of them (docs/guest.md), and a child has one.
SECONDS = 100
SLOW = 20      # that is told
AT_ONCE = 2
RUNS = 3       # for each mode, when not all are asked for
AT_A_TIME = 6  # faults in one run
OUT = ",symbolize=none,out=%e.%k.%p.pb.gz"
MODES = {
    "cpu timer": "cpu,engine=timer" + OUT,
    "cpu perf": "cpu,engine=perf" + OUT,
    "heap": "heap=4k" + OUT,
    "locks": "block=1,mutex=1" + OUT,
    "wall": "wall=200" + OUT,
    "http": "http=unix:%p.sock,symbolize=none",
    "push": "push=FOLDER/pushed,push-interval=1,symbolize=none",
    "push http": "push=http://127.0.0.1:%d,push-interval=1,symbolize=none",
    "deadlock": "deadlock=abort,symbolize=none",
    "heapleak": "heapleak=1" + OUT,
    "vm": "vm" + OUT,
    "names": "cpu,out=%e.%k.%p.pb.gz",
    "all": "cpu,heap=64k,block=1,mutex=1,wall,vm,http=unix:%p.sock" + OUT,
    "record": "cpu,heap,block,mutex,wall",
}

ALLOCATION = 9999
# What each call may fail with; the first is for those that fail again and
# again. Calls that are not here cannot fail, or not in a way that anybody could
# bear: what libc makes at the beginning of each thread.
ERRORS = {
    ALLOCATION: "ENOMEM", "mmap": "ENOMEM", "mprotect": "ENOMEM",
    "munmap": "ENOMEM", "madvise": "ENOMEM EINVAL", "mremap": "ENOMEM",
    "brk": "ENOMEM", "clone": "EAGAIN ENOMEM", "clone3": "EAGAIN ENOMEM",
    "openat": "EMFILE ENOENT EACCES ENFILE", "open": "EMFILE",
    "read": "EIO EINTR", "pread64": "EIO EINTR",
    "write": "ENOSPC EINTR EIO", "writev": "ENOSPC", "pwrite64": "ENOSPC EIO",
    "close": "EINTR EIO", "newfstatat": "EACCES ENOMEM", "fstat": "EIO",
    "stat": "ENOENT", "lstat": "ENOENT", "statx": "EACCES",
    "lseek": "ESPIPE", "access": "EACCES", "faccessat2": "ENOSYS",
    "getdents64": "EIO ENOENT", "readlink": "ENOENT EACCES",
    "readlinkat": "ENOENT", "getcwd": "ENOENT", "fcntl": "EMFILE",
    "ftruncate": "ENOSPC EIO", "fallocate": "ENOSPC EOPNOTSUPP",
    "rename": "ENOSPC EACCES", "unlink": "EACCES ENOENT",
    "unlinkat": "EACCES", "link": "EPERM", "mkdir": "ENOSPC",
    "fchmod": "EPERM", "memfd_create": "EMFILE ENOSYS",
    "socket": "EMFILE EACCES", "bind": "EADDRINUSE", "listen": "EADDRINUSE",
    "accept4": "EMFILE ECONNABORTED", "connect": "ECONNREFUSED",
    "sendto": "ECONNRESET EPIPE", "sendmsg": "EPIPE", "sendfile": "EPIPE",
    "recvfrom": "ECONNRESET", "recvmsg": "ECONNRESET",
    "setsockopt": "EINVAL", "getsockopt": "EINVAL", "getsockname": "EINVAL",
    "getpeername": "ENOTCONN", "shutdown": "ENOTCONN", "socketpair": "EMFILE",
    "pipe2": "EMFILE", "eventfd2": "EMFILE", "epoll_create1": "EMFILE",
    "epoll_ctl": "ENOSPC", "epoll_wait": "EINTR", "epoll_pwait": "EINTR",
    "poll": "EINTR ENOMEM", "ppoll": "EINTR", "select": "EINTR",
    "perf_event_open": "EMFILE EACCES", "ioctl": "EIO",
    "timer_create": "EAGAIN", "timer_settime": "EINVAL",
    "timer_delete": "EINVAL", "tgkill": "EAGAIN",
    "rt_tgsigqueueinfo": "EAGAIN", "process_vm_readv": "EPERM EFAULT",
    "unshare": "EPERM", "prctl": "EPERM", "getrandom": "ENOSYS EINTR",
    "prlimit64": "EPERM", "clock_gettime": "EINVAL", "clock_getres": "EINVAL",
    "clock_nanosleep": "EINTR", "nanosleep": "EINTR", "futex": "EINTR EAGAIN",
    "rt_sigaction": "EPERM", "rt_sigtimedwait": "EINTR EAGAIN",
    "rt_sigpending": "EPERM", "sysinfo": "ENOSYS", "uname": "ENOSYS",
    "getrusage": "ENOSYS", "sched_getaffinity": "ENOSYS", "getitimer": "EPERM",
    "setitimer": "EPERM",
}
# What the program asks for itself, where it passes through a hook of ours:
# these functions call underneath.
BENEATH = re.compile(
    r"_on$|_sampled$|^cpprof__real_|^take_note$")
# That of the program, whatever of ours stands on the stack.
OF_PROGRAM = {"clone", "execve", "setresuid", "rt_sigprocmask"}


# What libc does not look at: the handler of its own signal.
OF_LIBC = {("rt_sigaction", "create")}
# Where the loader makes room for a thread's variables, and ends the process if
# there is none: of libdw and libelf, for which there just was more than enough.
DEADLY = re.compile(r"^9999 (make_variables|cpprof__without_exit) .*~ld-")
# What may be said: ours, and what a library says by itself in its constructor.
CLEAR = re.compile(r"cpprof: |Error in GnuTLS initialization: ")


def system_calls():
    text = subprocess.run(
        ["cc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c",
         "/dev/null"], check=True, capture_output=True, text=True).stdout
    return {int(number): name for name, number in
            re.findall(r"^#define __NR_(\w+) (\d+)$", text, re.M)}


class Names:
    """The function that a place is in."""

    def __init__(self, build):
        self.build = build
        self.tables = {}

    def find(self, place):
        parts = re.match(r"(\S+?)\+([0-9a-f]+)", place)
        if not parts:
            return place
        library = parts.group(1)
        if library not in self.tables:
            lines = subprocess.run(
                ["nm", "-n", os.path.join(self.build, library)], check=True,
                capture_output=True, text=True).stdout.splitlines()
            words = [line.split() for line in lines]
            self.tables[library] = [(int(word[0], 16), word[2])
                                    for word in words
                                    if len(word) == 3 and word[1] in "tTwWi"]
        table = self.tables[library]
        at = bisect.bisect(table, (int(parts.group(2), 16) - 1, "~")) - 1
        return table[at][1].split(".")[0] if at >= 0 else place


Site = collections.namedtuple("Site", "number place n")
Result = collections.namedtuple("Result", "status out err seconds")


class Bench:
    """All that a run needs."""

    def __init__(self, build):
        self.build = build
        self.names = Names(build)
        self.calls = system_calls()
        self.folder = os.path.join(build, "guest")
        os.makedirs(self.folder, exist_ok=True)
        self.tracer = self.make("faults_tracer", "faults_tracer.c", "-ldw")
        self.host = self.make("faults_host", "faults_host.c", "-w",
                              "-fno-builtin", "-pthread")
        self.plugin = self.make("faults_host.so", "faults_host.c",
                                "-DPLUGIN", "-shared", "-fPIC")
        self.malloc = self.make("faults_malloc.so", "faults_malloc.c",
                                "-shared", "-fPIC", "-fno-builtin")
        self.own = self.find_own()
        self.port = self.serve()

    def make(self, name, source, *flags):
        result = os.path.join(self.folder, name)
        mine = "%s.%d" % (result, os.getpid())
        subprocess.run(
            ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g",
             os.path.join(HERE, source), *flags, "-o", mine], check=True)
        os.replace(mine, result)
        return result

    def find_own(self):
        """Where libcpprof asks for memory of its own."""
        names = ["cpprof__" + name for name in
                 ("malloc", "calloc", "realloc", "free", "strdup", "strndup")]
        self.names.find("libcpprof.so+0")
        own = "".join("%s=%x " % (name, address) for address, name in
                      self.names.tables["libcpprof.so"] if name in names)
        assert own.count("=") == len(names), own
        return own

    @staticmethod
    def serve():
        """Somebody who takes what is pushed."""
        server = socket.create_server(("127.0.0.1", 0))

        def answer(client):
            with client:
                client.settimeout(2)
                try:
                    client.recv(1 << 20)
                    client.sendall(b"HTTP/1.1 200 OK\r\n"
                                   b"Content-Length: 0\r\n\r\n")
                    while client.recv(1 << 20):
                        pass
                except OSError:
                    pass

        def loop():
            while True:
                threading.Thread(target=answer, args=(server.accept()[0],),
                                 daemon=True).start()

        threading.Thread(target=loop, daemon=True).start()
        return server.getsockname()[1]

    @staticmethod
    def ask(folder, process):
        """Somebody who asks for profiles; whatever the answer is."""
        paths = ["heap", "goroutine?debug=2", "profile?seconds=1", "ui"]
        while process.poll() is None:
            time.sleep(0.01)
            for path in glob.glob(os.path.join(folder, "*.sock")):
                with socket.socket(socket.AF_UNIX) as client:
                    client.settimeout(1)
                    try:
                        client.connect(path)
                        client.sendall(
                            b"GET /debug/pprof/%s HTTP/1.0\r\n\r\n" %
                            paths[0].encode())
                        while client.recv(1 << 16):
                            pass
                    except OSError:
                        continue
            paths.append(paths.pop(0))

    def environment(self):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("CPPROF", "LD_", "MALLOC_"))}
        env["HOST_PLUGIN"] = self.plugin
        env["FAULTS_OWN"] = self.own
        return env

    def command(self, mode, folder, log, faults):
        env = self.environment()
        if mode is None:
            return [self.host], env
        words = MODES[mode].replace("%d", str(self.port)).replace(
            "FOLDER", folder)
        command = [self.tracer, log, *faults, "--"]
        if mode == "record":
            env["LD_PRELOAD"] = self.malloc
            command += [os.path.join(self.build, "cpprof"), "record", "-t",
                        words, "-symbolize", "none", "-o",
                        os.path.join(folder, "run.pb.gz"), "--", self.host]
        else:
            command += [
                "env", "CPPROF=" + words, "LD_PRELOAD=%s:%s" % (
                    os.path.join(self.build, "libcpprof.so"), self.malloc),
                self.host]
        return command, env

    def run(self, mode, faults=()):
        """How it ended, and the sites that were seen."""
        folder = tempfile.mkdtemp(prefix="faults.")
        log = os.path.join(folder, "log")
        command, env = self.command(mode, folder, log, faults)
        began = time.monotonic()
        with subprocess.Popen(command, cwd=folder, env=env,
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              start_new_session=True) as process:
            if mode and "sock" in MODES[mode]:
                threading.Thread(target=self.ask, args=(folder, process),
                                 daemon=True).start()
            try:
                out, err = process.communicate(timeout=SECONDS)
                status = process.returncode
            except subprocess.TimeoutExpired:
                process.kill()  # the tracer takes all of them with it
                out, err = process.communicate()
                status = "no end after %d s" % SECONDS
        sites = self.read(log)
        shutil.rmtree(folder, ignore_errors=True)
        return Result(status, out, err, time.monotonic() - began), sites

    def read(self, log):
        """The sites whose calls can fail."""
        try:
            with open(log, encoding="ascii") as text:
                lines = [line.split() for line in text]
        except OSError:
            return []
        sites = [Site(int(number), place, int(n))
                 for number, place, n in
                 (line for line in lines if len(line) == 3)]
        return [site for site in sites if self.is_ours(site)]

    def is_ours(self, site):
        name = self.calls.get(site.number, site.number)
        if name not in ERRORS:
            return False
        function = self.names.find(site.place)
        if (name, function) in OF_LIBC or DEADLY.search(
                "%s %s %s" % (name, function, site.place)):
            return False
        return "!" not in site.place or not (
            name in OF_PROGRAM or BENEATH.search(function))

    def told(self, fault):
        number, place, nth, error = fault.split(":")
        return "%s: %s of %s, call %s: %s" % (
            fault, self.calls.get(int(number), "allocation"),
            self.names.find(place), nth, errno.errorcode[int(error)])

    def errors(self, number):
        name = self.calls.get(number, number)
        return [getattr(errno, word) for word in ERRORS[name].split()]


def faults_of(bench, site, chance):
    """A call of the site: its first, a later one, and all from one on."""
    errors = bench.errors(site.number)
    which = [("1", chance.choice(errors))]
    if site.n > 1:
        which += [(str(chance.randint(2, site.n)), chance.choice(errors)),
                  ("1+", errors[0])]
    return ["%d:%s:%s:%d" % (site.number, site.place, *how) for how in which]


def refused(bench, sites):
    """All calls of one number fail, as under a filter of seccomp."""
    for number in sorted({site.number for site in sites}):
        if bench.calls.get(number) == "futex":
            continue  # libc aborts by itself
        for error in {errno.EPERM, bench.errors(number)[0]}:
            yield ["%d:%s:1+:%d" % (number, site.place, error)
                   for site in sites if site.number == number]


def choices(bench, sites, seen, chance):
    """What fails in each run: all that was not seen, or some of it."""
    if seen is not None:
        new = [site for site in sites if site[:2] not in seen]
        seen.update(site[:2] for site in sites)
        return [[fault] for site in new
                for fault in faults_of(bench, site, chance)] + list(
                    refused(bench, sites))
    return [[chance.choice(faults_of(bench, site, chance))
             for site in chance.sample(sites, min(AT_A_TIME, len(sites)))]
            for _ in range(RUNS - 1)] + [
                chance.choice(list(refused(bench, sites)))]


def wrong(got, wanted):
    """What the program's user would see of it; None: nothing."""
    if got.status != wanted.status or got.out != wanted.out:
        return "status %s, printed %r" % (got.status, got.out)
    unclear = [line for line in got.err.decode(errors="replace").splitlines()
               if not CLEAR.match(line)]
    return "said %s" % unclear if unclear else None


def details(bench, mode, faults, got):
    return (["mode: %s, %.1f s" % (mode, got.seconds), "said: " +
             got.err[-1500:].decode(errors="replace")] +
            [bench.told(fault) for fault in faults])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("build")
    parser.add_argument("words", nargs="*")
    asked = parser.parse_args()
    tap = Tap()
    if platform.machine() != "x86_64":
        tap.skip("faults", "the tracer knows x86-64 only")
        return tap.end()
    bench = Bench(os.path.abspath(asked.build))
    modes = [word for word in asked.words if word in MODES] or list(MODES)
    faults = [word for word in asked.words if word not in MODES]
    alone = bench.run(None)[0]
    print("# seed %d" % asked.seed, flush=True)
    tap.ok("alone", alone.status == 7, alone)
    seen = set() if asked.all else None
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for mode in modes:
            chance = random.Random("%d %s" % (asked.seed, mode))
            got, sites = bench.run(mode)
            if not tap.ok("%s: %d places" % (mode, len(sites)),
                          not wrong(got, alone) and sites, wrong(got, alone),
                          *details(bench, mode, [], got)):
                continue
            sets = [faults] if faults else \
                choices(bench, sites, seen, chance)
            runs = pool.map(lambda run, mode=mode: (
                run, bench.run(mode, run)[0]), sets)
            n = 0
            for run, got in runs:
                n += 1
                why = wrong(got, alone)
                if got.seconds > SLOW:
                    print("# %.0f s: %s" % (got.seconds, [
                        bench.told(fault) for fault in run]), flush=True)
                if why:
                    tap.ok("%s: run %d" % (mode, n), False, why,
                           *details(bench, mode, run, got))
            tap.ok("%s: %d runs" % (mode, n), n == len(sets))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
