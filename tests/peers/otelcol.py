#!/usr/bin/env python3
"""A collector of OpenTelemetry that takes what cpprof sends.

    otelcol.py CPPROF LIBRARY COLLECTOR

Prints TAP. COLLECTOR is built of otelcol/main.go: `./dev peers otelcol`. What
it has is what it writes by its own definitions, and is held against the files.
"""
import glob
import os
import re
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "..")]
from protobuf import chunk, varint  # noqa: E402
from tap import scratch_folder, Tap  # noqa: E402

CPPROF, LIBRARY, COLLECTOR = map(os.path.abspath, sys.argv[1:4])
FIXTURES = os.path.join(HERE, "..", "fixtures")
FOLDER = scratch_folder("cpprof-otelcol-")
GOT = os.path.join(FOLDER, "got")
TAP = Tap()

CONFIG = """
receivers:
  otlp:
    protocols:
      http: {endpoint: "127.0.0.1:%d"}
exporters:
  file: {path: %s}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    profiles: {receivers: [otlp], exporters: [file]}
"""


class Collector:
    def __enter__(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.url = "otlp+http://127.0.0.1:%d" % port
        self.log = os.path.join(FOLDER, "log")
        config = os.path.join(FOLDER, "config.yaml")
        with open(config, "w") as file:
            file.write(CONFIG % (port, GOT))
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [COLLECTOR, "--config=" + config,
                 "--feature-gates=+service.profilesSupport"],
                stdout=log, stderr=log)
        while "Everything is ready" not in self.said():
            if self.process.poll() is not None:
                raise RuntimeError(self.said())
            time.sleep(0.2)
        return self

    def said(self):
        with open(self.log) as log:
            return log.read()

    def __exit__(self, *args):
        self.process.terminate()
        self.process.wait()


def got():
    """The messages since the last look, each a file of its own."""
    paths = []
    with open(GOT, "rb") as file:
        data = file.read()
    os.unlink(GOT)
    while data:
        n, = struct.unpack(">I", data[:4])
        paths.append(os.path.join(FOLDER, "%d.otlp" % len(paths)))
        with open(paths[-1], "wb") as out:
            out.write(data[4:4 + n])
        data = data[4 + n:]
    return paths


def run(*words):
    return subprocess.run([CPPROF] + list(words), capture_output=True,
                          text=True, check=False)


def text(path):
    return run("convert", "-to=text", path).stdout


def check_files(collector):
    paths = [p for p in sorted(glob.glob(FIXTURES + "/*"))
             if re.search(r"\.(gz|perf|heap|cpu)$", p)
             and run("convert", "-to=pprof", "-o", FOLDER + "/x.pb.gz",
                     p).returncode == 0]
    once = []
    for n, path in enumerate(paths):
        once.append("%s/once%d.pb.gz" % (FOLDER, n))
        run("convert", "-o", once[-1], path)
    done = run("push", "-to=" + collector.url, *once)
    TAP.same("files: the collector takes all and says nothing",
             (done.returncode, done.stderr), (0, ""))
    files = got()
    TAP.none("files: %d are there as they were, to the last text" % len(once),
             [path for path, one, there in zip(paths, once, files)
              if text(one) != text(there)])
    TAP.same("files: none more", len(files), len(paths))


def check_large(collector):
    """More than the collector takes in one request."""
    names = [b"%d" % i * 5000 for i in range(10000, 11000)]
    body = [chunk(1, b"\x08\x01\x10\x02")]
    for i in range(1, len(names) + 1):
        body += [chunk(2, chunk(1, varint(i)) + chunk(2, varint(i))),
                 chunk(4, b"\x08" + varint(i) + chunk(4, b"\x08" + varint(i))),
                 chunk(5, b"\x08" + varint(i) + b"\x10" + varint(i + 2))]
    path = os.path.join(FOLDER, "large.pb")
    with open(path, "wb") as file:
        file.write(b"".join(body + [chunk(6, s) for s in
                                    [b"", b"n", b"count"] + names]))
    done = run("push", "-to=" + collector.url, path)
    files = got()
    TAP.ok("large: in parts", done.returncode == 0 and len(files) > 1,
           done.stderr, len(files))
    TAP.same("large: each sample once", total("n", files),
             len(names) * (len(names) + 1) // 2)


def total(kind, paths):
    """The sum of values of a type, of the files that have it."""
    lines = [line for path in paths for line in run(
        "convert", "-to=collapsed", "-sample_index=" + kind, path)
        .stdout.splitlines()]
    return sum(int(line.rsplit(" ", 1)[1]) for line in lines)


def check_program(collector):
    """What a program pushes, and what it writes of the same time."""
    env = dict(os.environ, LD_PRELOAD=LIBRARY, OTEL_SERVICE_NAME="shop",
               PYTHONMALLOC="malloc",
               CPPROF="cpu=100,heap=1,block=1,mutex=1,wall=50,goroutine,"
               "out=%s/sum.%%k.pb.gz,push=%s,push-interval=2"
               % (FOLDER, collector.url))
    done = subprocess.run([sys.executable, "-c", """
import time
until = time.monotonic() + 7
while time.monotonic() < until:
    sum(i * i for i in range(100000))
    time.sleep(0.01)"""], env=env, capture_output=True, text=True, check=False)
    TAP.same("program: it ends as it does, and says nothing",
             (done.returncode, done.stderr), (0, ""))
    files = got()
    heads = [text(path) for path in files]
    for kind, name, near in (("alloc_space", "heap", 0.02), ("cpu", "cpu", 0.1)):
        whole = total(kind, ["%s/sum.%s.pb.gz" % (FOLDER, name)])
        there = total(kind, [path for path, head in zip(files, heads)
                             if kind + "/" in head])
        TAP.near("program: all intervals have the %s of one profile" % kind,
                 there, whole, near * whole)
        TAP.ok("program: there is some", whole > 0, whole)
    # The collector leaves out profiles without a sample, as those of locks.
    TAP.none("program: all kinds come", [kind for kind in (
        "cpu/", "inuse_space/", "wall/", "goroutine/")
        if not any(kind in head for head in heads)])
    with open(files[0], "rb") as file:
        TAP.ok("program: its name", b"shop" in file.read())


with Collector() as it:
    check_files(it)
    check_large(it)
    check_program(it)
sys.exit(TAP.end())
