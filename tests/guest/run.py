#!/usr/bin/env python3
"""The matrix of hosts and modes: no program behaves otherwise because of us.

    run.py BUILD [HOST | MODE]...
    run.py BUILD -build

Hosts are kept in BUILD/guest, and built again when they are older than their
source; -build does nothing else.

A host is one file of hosts/: a program that does one thing which a program may
do, and checks itself. It runs alone first; then in every mode, and each of
these cells must end as it ended alone: same exit status, same output. A cell
that does not prints host, mode, what was expected and what came. The sentence
of the contract that it stands for is its first comment; words in that comment:

    needs: root   it is skipped for others
    plugin        its file is also built with -DPLUGIN, as $HOST_PLUGIN
    links: X      it is linked with -lX
    malloc: own   it has one: no heap profile is asked for where that is refused
    sanitizer: X  it is built with -fsanitize=X, which brings its own malloc
    sanitizer: X, static
                  so, too, and the sanitizer is part of the program where it is
                  not linked with us

A new host is a new file, nothing else.
"""
import concurrent.futures
import fcntl
import glob
import os
import pickle
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from tap import Tap  # pylint: disable=wrong-import-position

SOURCES = os.path.join(HERE, "..", "..", "src")
SECONDS = 60
# Most hosts wait more than they compute.
AT_ONCE = 4
# Of BUILD's architecture: hosts of another one run where the kernel has an
# emulator for them (docs/testing.md).
LINK = [os.environ.get("CC", "cc")]
CC = LINK + ["-std=gnu11", "-D_GNU_SOURCE", "-O1",
             "-g", "-w", "-fno-builtin"]

OUT = "out=%e.%k.%p.pb.gz"
RECORD_RATE = "250"
EVERYTHING = "cpu=250,heap=64k,block=1,mutex=1,wall=250,vm,"
# Lines of code are read at the end in "cpu timer" and "all", and by the recorder;
# elsewhere only functions, by the same plug-in. Reading lines takes longer than
# many a host.
FUNCTIONS = "symbolize=functions," + OUT
NO_TICKS = 10
# How the library comes into the process; the words of CPPROF, where FOLDER is
# where the cell runs; and for how much of the time that it would be busy a host
# is, in percent. At higher rates than the usual 100 Hz as many ticks come in
# less of it (a timer has no more than 250 Hz, whatever it is asked for). Where
# CPU time makes no ticks, to be busy is to wait (NO_TICKS).
MODES = {
    "off": ("preload", None, NO_TICKS),
    "cpu timer": ("preload", "cpu=1000," + OUT, 100),
    "cpu perf": ("preload", "cpu=400,engine=perf," + FUNCTIONS, 25),
    "heap": ("preload", "heap=64k,mmap=on," + FUNCTIONS, NO_TICKS),
    "locks": ("preload", "block=1,mutex=1," + FUNCTIONS, NO_TICKS),
    "wall": ("preload", "wall=400," + FUNCTIONS, 25),
    "http": ("preload", "http=unix:%p.sock,deadlock=abort", NO_TICKS),
    "push": ("preload",
             "push=FOLDER/pushed,push-interval=1,symbolize=functions", 100),
    "vm": ("preload", "vm," + FUNCTIONS, NO_TICKS),
    "all": ("preload",
            EVERYTHING + "http=unix:%p.sock,deadlock=abort," + OUT, 40),
    "record": ("record", "cpu", 40),
    "record all": ("record", "cpu,heap,block,mutex,wall", 40),
    "attached": ("attach", "cpu=1000,heap=64k,block=1,mutex=1,wall," + FUNCTIONS,
                 40),
    "linked off": ("link", None, NO_TICKS),
    "linked all": ("link", EVERYTHING + FUNCTIONS, 40),
}
ALONE = ("alone", None, NO_TICKS)

# A recorder ends with 1 where it has not all profiles of the program that it was
# asked for, and says so; what it ran is not concerned. A child of the program
# that lacks some says so, too, and its recorder ends as the program.
LACKS = re.compile(rb"cpprof: no profile of .*: (out of memory|.* is too little "
                   rb"for tables)\n"
                   rb"|cpprof: .* built with ThreadSanitizer: nothing is ")


def as_alone(got, wanted, mode):
    if b"can never go on" in got[2]:  # every host ends
        return False
    if (MODES[mode][0] == "record" and LACKS.search(got[2]) and
            (got[0], wanted[0]) == (1, 0)):
        return got[1] == wanted[1]
    return got[:2] == wanted[:2]


def head_of(path):
    with open(path, encoding="ascii") as text:
        return re.search(r"guest: (.*?)\*/", text.read(), re.S).group(1)


class Host:
    """One file of hosts/, built."""

    def __init__(self, build, folder, path):
        self.name = os.path.basename(path)[:-2]
        self.head = head_of(path)
        self.program = os.path.join(folder, self.name)
        self.linked = self.program + ".linked"
        self.plugin = self.program + ".so"
        self.sources = [path] + glob.glob(os.path.join(HERE, "*.h"))
        words = CC + ["-I" + HERE, "-I" + SOURCES, "-pthread"]
        parts = [self.program + ".o", "-pthread", "-ldl"]
        parts += ["-l" + library for library in
                  re.findall(r"\blinks: (\S+)", self.head)]
        self.sanitizer = re.search(r"\bsanitizer: (\w+)(, static)?",
                                   self.head)
        if self.sanitizer:
            words.append("-fsanitize=" + self.sanitizer[1])
            parts.append(words[-1])
        self.has_malloc = self.sanitizer or "malloc: own" in self.head
        self.loaded_first = None
        if self.sanitizer and self.sanitizer[1] == "address":
            self.loaded_first = os.path.realpath(subprocess.run(
                LINK + ["-print-file-name=libasan.so"], capture_output=True,
                text=True, check=True).stdout.strip())
        static = []
        if self.sanitizer and self.sanitizer[2] and "clang" not in LINK[0]:
            static.append("-static-lib%ssan" % self.sanitizer[1][0])
        self.make(parts[0], words + ["-c", path])
        self.make(self.program, LINK + parts + static)
        self.make(self.linked, LINK + parts + [
            "-L" + build, "-Wl,--no-as-needed", "-lcpprof",
            "-Wl,-rpath," + build])
        if re.search(r"\bplugin\b", self.head):
            self.make(self.plugin, words + [path, "-DPLUGIN", "-shared", "-fPIC"])

    def make(self, result, words):
        if os.path.exists(result) and os.path.getmtime(result) > max(
                map(os.path.getmtime, self.sources)):
            return
        subprocess.run(words + ["-o", result + ".new"], check=True)
        os.replace(result + ".new", result)  # a run of the old one goes on

    def why_not(self):
        if "needs: root" in self.head and os.geteuid() != 0:
            return "it needs root"
        return None


def run(host, build, mode):
    """(exit status, output) of a host in a mode; None: alone."""
    how, words, busy = MODES[mode] if mode else ALONE
    if host.has_malloc and how in ("record", "attach"):
        words = re.sub(r"heap(=\w+)?,", "", words)
    folder = tempfile.mkdtemp(prefix="host.")
    os.chmod(folder, 0o777)
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("CPPROF", "LD_", "MALLOC_"))}
    env["HOST_PLUGIN"] = host.plugin
    env["HOST_BUSY"] = str(busy)
    command = [host.linked if how == "link" else host.program]
    if how == "record":
        command = [os.path.join(build, "cpprof"), "record", "-t", words,
                   "-F", RECORD_RATE, "-o",
                   os.path.join(folder, "cell.pb.gz"), "--"] + command
    elif how == "preload":
        env["LD_PRELOAD"] = os.path.join(build, "libcpprof.so")
    elif how == "attach":
        env["LD_PRELOAD"] = os.path.join(build, "guest", "late.so")
        env["HOST_LIBRARY"] = os.path.join(build, "libcpprof.so")
        env["HOST_ATTACH"] = words
    if host.loaded_first and how != "link":
        env["LD_PRELOAD"] = ":".join([host.loaded_first] +
                                     env.get("LD_PRELOAD", "").split())
    if how in ("preload", "link") and words:
        env["CPPROF"] = words.replace("FOLDER", folder)
    with subprocess.Popen(command, cwd=folder, env=env, text=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE,
                          start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=SECONDS)
            result = process.returncode, out, err
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            result = "no end after %d s" % SECONDS, out, err
    if result[0] in (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT):
        err = result[2] + where_it_died(command[0], folder)
        result = result[:2] + (err,)
    shutil.rmtree(folder, ignore_errors=True)
    return result


def where_it_died(program, folder):
    """The stacks of a host that left a core: a fault may not come again."""
    core = os.path.join(folder, "core")
    if not os.path.exists(core) or not shutil.which("gdb"):
        return b""
    return subprocess.run(
        ["gdb", "-batch", "-ex", "thread apply all bt", program, core],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False).stdout[-20000:]


def kept_folder(build):
    """Where the parts of this run of the suite keep how hosts end alone; None
    where nobody runs a suite."""
    number = os.environ.get("CPPROF_SUITE_RUN")
    return number and os.path.join(build, "guest", "alone." + number)


def run_alone(host, build):
    """As another part saw it, or by a run."""
    folder = kept_folder(build)
    if not folder:
        return run(host, build, None)
    path = os.path.join(folder, host.name)
    with open(path, "a+b") as kept:
        fcntl.flock(kept, fcntl.LOCK_EX)  # who comes second waits and reads
        kept.seek(0)
        known = kept.read()
        if known:
            return pickle.loads(known)
        result = run(host, build, None)
        kept.write(pickle.dumps(result))
        return result


def told(result):
    status, out, err = result
    text = "status %s" % (status,)
    for name, data in (("printed", out), ("said", err)):
        if data:
            text += ", %s %s" % (name, data[-20000:].decode(errors="replace"))
    return text


def main():
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    build = os.path.abspath(sys.argv[1])
    asked = [word for word in sys.argv[2:] if word != "-build"]
    modes = [mode for mode in MODES if mode in asked] or list(MODES)
    names = [name for name in asked if name not in MODES]
    tap = Tap()
    folder = os.path.join(build, "guest")
    os.makedirs(folder, exist_ok=True)
    paths = sorted(os.path.join(HERE, "hosts", name)
                   for name in os.listdir(os.path.join(HERE, "hosts"))
                   if not names or name[:-2] in names)
    missing = set(names) - {os.path.basename(path)[:-2] for path in paths}
    if missing or not paths:
        sys.exit("run.py: neither host nor mode: %s" % ", ".join(missing))
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        with open(os.path.join(folder, "lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # other modes run beside this
            hosts = list(pool.map(lambda path: Host(build, folder, path),
                                  paths))
            subprocess.run(CC + [os.path.join(HERE, "late.c"), "-shared",
                                 "-fPIC", "-pthread", "-ldl", "-o",
                                 os.path.join(folder, "late.so")], check=True)
            for old in glob.glob(os.path.join(folder, "alone.*")):
                if old != kept_folder(build):
                    shutil.rmtree(old)
            if kept_folder(build):
                os.makedirs(kept_folder(build), exist_ok=True)
        if "-build" in sys.argv[2:]:
            return 0
        for host in hosts:
            if host.why_not():
                tap.skip(host.name, host.why_not())
        hosts = [host for host in hosts if not host.why_not()]
        alone = {host: pool.submit(run_alone, host, build) for host in hosts}
        cells = {(host, mode): pool.submit(run, host, build, mode)
                 for host in hosts for mode in modes}
        for host in hosts:
            wanted = alone[host].result()
            tap.ok("%s alone" % host.name, wanted[0] == 0, host.head,
                   told(wanted))
            for mode in modes:
                got = cells[host, mode].result()
                name = "%s under %s" % (host.name, mode)
                good = as_alone(got, wanted, mode)
                tap.ok(name, good, "host: " + host.head,
                       "mode: %s, %s" % (mode, MODES[mode][1]),
                       "expected: " + told(wanted), "got: " + told(got))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
