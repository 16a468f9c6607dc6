"""A program of others that runs once, in a mode of run.py or in none, with all
that it leaves behind: what can be seen of it, and its CPU time.

    cell.py --tree FD WORDS...      what Tree starts
"""
import ctypes
import glob
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import run as matrix  # pylint: disable=wrong-import-position

LIMIT = 900  # seconds for one start of a program
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
PROGRAMS = {}  # name: (its function, what it needs)
PR_SET_CHILD_SUBREAPER = 36


def program(name, *needs):
    """Enter a function of Cell into PROGRAMS."""
    def enter(function):
        PROGRAMS[name] = function, needs
        return function
    return enter


# ---- all processes of a program ---------------------------------------------

def tree():
    """--tree FD WORDS...: run them, wait for all that they leave behind, and
    tell their status and the CPU time of all."""
    sink, words = int(sys.argv[2]), sys.argv[3:]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    env = {name.replace("CELL_", ""): value
           for name, value in os.environ.items()}
    with subprocess.Popen(words, env=env) as process:
        signal.signal(signal.SIGALRM, lambda *_: kill_children())
        signal.alarm(LIMIT)
        status = None
        while True:
            try:
                pid, how = os.wait()
            except ChildProcessError:
                break
            if pid == process.pid:
                status = process.returncode = os.waitstatus_to_exitcode(how)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    os.write(sink, json.dumps([
        status, usage.ru_utime + usage.ru_stime]).encode())


def kill_children():
    """All of them; theirs become ours, so it is done again soon."""
    for path in glob.glob("/proc/self/task/*/children"):
        with open(path, encoding="ascii") as file:
            for pid in file.read().split():
                os.kill(int(pid), signal.SIGKILL)
    signal.setitimer(signal.ITIMER_REAL, 0.1)


class Tree:
    """A program that was started in a mode."""

    def __init__(self, cell, words, stdin):
        source, sink = os.pipe()
        self.cell, self.source = cell, source
        self.out = open(os.path.join(cell.folder, "out"), "w+b")
        self.err = open(os.path.join(cell.folder, "err"), "w+b")
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--tree", str(sink)] +
            cell.in_mode(words), pass_fds=[sink], cwd=cell.folder,
            env=cell.environment(), stdin=stdin or subprocess.DEVNULL,
            stdout=self.out, stderr=self.err, start_new_session=True)
        os.close(sink)
        cell.running.append(self)

    def runs(self):
        """Or something that it started."""
        return self.process.poll() is None

    def text(self, file):
        file.seek(0)
        return file.read().decode(errors="replace")

    def end(self):
        """(status, what it printed, what it said); what is ours of the last is
        put aside."""
        self.cell.running.remove(self)
        with open(self.source, "rb") as source:
            status, cpu = json.loads(source.read())
        self.process.wait()
        self.cell.cpu += cpu
        out, err = self.text(self.out), self.text(self.err)
        self.out.close()
        self.err.close()
        lines = err.splitlines()
        self.cell.said += [line for line in lines
                           if line.startswith("cpprof: ")]
        return status, out, "\n".join(line for line in lines
                                      if not line.startswith("cpprof: "))


class Cell:
    """One run of a program in a mode, in a folder that always has one name."""

    def __init__(self, scratch, mode):
        self.scratch, self.mode = scratch, mode
        self.tools = os.path.join(scratch, "tools")
        self.folder = os.path.join(scratch, "cell")
        self.profiles = os.path.join(scratch, "profiles")
        self.cpu, self.work, self.said, self.running = 0, 1, [], []
        for folder in self.folder, self.profiles:
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder)
            os.chmod(folder, 0o1777)

    def words(self):
        """Those of CPPROF, or the kinds to record, at the default rates."""
        if not self.mode or not matrix.MODES[self.mode][1]:
            return ""
        words = matrix.MODES[self.mode][1].replace("FOLDER/", "")
        words = re.sub(r"\b(cpu|heap|block|mutex|wall)=\w+", r"\1", words)
        return re.sub(r"(?<=out=|nix:|ush=)", self.profiles + "/", words)

    def environment(self):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("CPPROF", "LD_", "MALLOC_", "PYTHON"))}
        env.update(LC_ALL="C.UTF-8", HOME=self.folder, TZ="UTC",
                   PATH="/usr/sbin:/usr/bin:/sbin:/bin")
        if self.mode and matrix.MODES[self.mode][0] == "preload":
            env["CELL_LD_PRELOAD"] = os.path.join(self.tools, "libcpprof.so")
            if self.words():
                env["CELL_CPPROF"] = self.words()
        return env

    def in_mode(self, words):
        if self.mode and matrix.MODES[self.mode][0] == "record":
            return [os.path.join(self.tools, "cpprof"), "record", "-t",
                    self.words(), "-o", self.profiles + "/record.pb.gz",
                    "--"] + words
        return words

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text, mode=0o644):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def start(self, words, stdin=None):
        return Tree(self, words, stdin)

    def run(self, words, stdin=None):
        """All that can be seen of it."""
        return "status %s\n%s%s" % self.start(words, stdin).end()

    def give_up(self):
        """Ends what still runs, and tells what it said."""
        text = ""
        for started in list(self.running):
            text += "killed, " if started.runs() else "had ended, "
            started.process.send_signal(signal.SIGALRM)
            text += "status %s\n%s%s\n" % started.end()
        return text

    def alone(self, words, **more):
        """A client, or who prepares something: never in a mode."""
        done = subprocess.run(
            words, cwd=self.folder, env=Cell.environment(Plain), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            timeout=LIMIT, **more)
        return "status %s\n%s" % (done.returncode, done.stdout)


class Plain:
    """What Cell.environment() asks, of no mode."""
    mode = None
    folder = "/nonexistent"


# ---- what programs are asked ------------------------------------------------

def free_port():
    """None of those that the kernel gives to clients: dig shares its ports
    with whoever wants them, so one time in 28 000 it had the server's, and
    asked itself."""
    with open("/proc/sys/net/ipv4/ip_local_port_range",
              encoding="ascii") as file:
        first = max(int(file.read().split()[0]), 12000)
    while True:
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", random.randrange(first - 10000, first)))
                return s.getsockname()[1]
            except OSError:
                pass  # it is taken


def until(ready, seconds=60):
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def connects(port):
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
        return True
    except OSError:
        return False


def blank(pattern, text):
    """Without what differs from run to run."""
    return re.sub(pattern, "~", text, flags=re.M)


def lines_of(pattern, text):
    return "\n".join(re.findall(pattern, text, re.M)) + "\n"


if __name__ == "__main__":
    tree()
