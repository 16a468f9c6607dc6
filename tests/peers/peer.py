"""What the tests against servers of profiles share: a server that runs, a
program of ours, and files of all kinds with what is in them."""
import collections
import glob
import gzip
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "http")]
from protobuf import chunk, varint  # noqa: E402
from served import Server  # noqa: E402
from tap import scratch_folder, Tap  # noqa: E402

FIXTURES = os.path.join(HERE, "..", "fixtures")
TAP = Tap()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(url, body=None, headers=None):
    """The status and what is said."""
    request = urllib.request.Request(url, body, headers or {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


class Peer:
    """A server, from its start until it answers URL with 200, and its end."""

    def __init__(self, command, ready, folder):
        self.path = os.path.join(folder, "log")
        with open(self.path, "w") as log:
            self.process = subprocess.Popen(command, cwd=folder, stdout=log,
                                            stderr=log)
        until = time.monotonic() + 120
        while not self.answers(ready):
            if self.process.poll() is not None or time.monotonic() > until:
                self.end()
                raise RuntimeError(self.said()[-3000:])
            time.sleep(0.5)

    def answers(self, url):
        try:
            return get(url)[0] == 200
        except OSError:
            return False

    def said(self):
        with open(self.path, errors="replace") as log:
            return log.read()

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Profile:
    """A profile as `cpprof convert` tells it."""

    def __init__(self, cpprof, path):
        self.cpprof, self.path = cpprof, path
        text = self.convert("-to=text")
        head = text.split("\nSamples:\n")[0]
        found = re.search(r"^PeriodType: (\S+) (\S+)", head, re.M)
        self.period_type = found.groups() if found else ("", "")
        found = re.search(r"^Period: (\d+)", head, re.M)
        self.period = int(found[1]) if found else 0
        self.is_delta = "\nDuration: " in head
        row = re.search(r"^Samples:\n(.*)$", text, re.M)
        self.types = [tuple(re.sub(r"\[dflt\]$", "", t).rsplit("/", 1))
                      for t in row[1].split()] if row else []

    def convert(self, *flags):
        return subprocess.run([self.cpprof, "convert", *flags, self.path],
                              capture_output=True, text=True, check=True).stdout

    def stacks(self, i):
        """The value of each stack."""
        sums = collections.Counter()
        for line in self.convert("-to=collapsed",
                                 "-sample_index=%d" % i).splitlines():
            stack, _, value = line.rpartition(" ")
            sums[stack] += int(value)
        return {k: v for k, v in sums.items() if v}

    def total(self, name):
        names = [t for t, _ in self.types]
        return sum(self.stacks(names.index(name)).values()) \
            if name in names else 0


def fixtures(cpprof, folder):
    """All of them that can be read, each as a file of profile.proto."""
    paths = []
    for path in sorted(glob.glob(FIXTURES + "/*")):
        name = os.path.join(folder, os.path.basename(path) + ".pb.gz")
        if re.search(r"\.(gz|perf|heap|cpu|txt)$", path) and subprocess.run(
                [cpprof, "convert", "-o", name, path], capture_output=True,
                check=False).returncode == 0:
            paths.append(name)
    return paths


def write_large(path, n, n_bytes):
    """Samples 1 to n of functions whose names are so long."""
    body = [chunk(1, b"\x08\x01\x10\x02")]
    names = [b"%d" % i + b"x" * n_bytes for i in range(n)]
    for i in range(1, n + 1):
        body += [chunk(2, chunk(1, varint(i)) + chunk(2, varint(i))),
                 chunk(4, b"\x08" + varint(i) + chunk(4, b"\x08" + varint(i))),
                 chunk(5, b"\x08" + varint(i) + b"\x10" + varint(i + 2))]
    body += [chunk(6, s) for s in [b"", b"n", b"count"] + names]
    with gzip.open(path, "wb") as out:
        out.write(b"".join(body))


# Profiles of the program, by their paths, and the series that they are.
OF_PROGRAM = {
    "profile?seconds=2": "process_cpu", "wall?seconds=1": "wall",
    "offcpu?seconds=1": "wall", "heap": "memory", "block": "block",
    "mutex": "mutex", "goroutine": "goroutine",
    "threadcreate": "threadcreate", "x%3Ay%2Fz%3Fq": "x_y_z_q",
}


def of_program(program, folder):
    """Files of all kinds, now: {path: series}."""
    server = Server(program, "127.0.0.1:0", CPPROF="heap=1,block=1,mutex=1")
    paths = {}
    time.sleep(2)
    for word, series in OF_PROGRAM.items():
        path = "%s/program.%s.pb.gz" % (folder,
                                        re.split("[?%]", word)[0])
        with open(path, "wb") as out:
            out.write(get(server.url + word)[1])
        paths[path] = series
    server.end()
    return paths


def run_program(program, url, folder, kinds, seconds):
    """A program that pushes; what it writes of the same time is
    FOLDER/sum.KIND.pb.gz. What it says."""
    server = subprocess.Popen(
        [program, "127.0.0.1:0"], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env=dict(os.environ, CPPROF="%s,out=%s/sum.%%k.pb.gz,push=%s"
                 % (kinds, folder, url)))
    time.sleep(seconds)
    return server.communicate("")[1]
