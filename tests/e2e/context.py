#!/usr/bin/env python3
"""What others read of a process that publishes what it is.

    context.py LIBRARY

Prints TAP. The mapping is found by its name and read as a reader from outside
does, by the description of it and not by our code.
"""
import os
import re
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, ".."))
from otlp import pairs, read  # noqa: E402
from tap import Tap  # noqa: E402

LIBRARY = os.path.abspath(sys.argv[1])
TAP = Tap()
CHILD = """
import os, sys, time
sys.stdout.write("%d\\n" % os.getpid())
sys.stdout.flush()
sys.stdin.readline()
if not os.fork():
    sys.stdout.write("%d\\n" % os.getpid())
    sys.stdout.flush()
    time.sleep(30)
os.wait()
"""


def context_of(pid):
    """The times and pairs of each context in the maps of a process."""
    found = []
    with open("/proc/%d/maps" % pid) as file:
        lines = [line for line in file if re.search(
            r"(\[anon:OTEL_CTX\]|\[anon_shmem:OTEL_CTX\]|/memfd:OTEL_CTX.*)$",
            line)]
    with open("/proc/%d/mem" % pid, "rb", 0) as memory:
        for line in lines:
            memory.seek(int(line.split("-")[0], 16))
            name, version, n, at, payload = struct.unpack(
                "<8sIIQQ", memory.read(32))
            memory.seek(payload)
            message = read(memory.read(n), "ProcessContext")
            found.append((name, version, at, pairs(
                message["resource"]["attributes"]), line.split()[1]))
    return found


def begin(words):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, env=dict(
            os.environ, LD_PRELOAD=LIBRARY, CPPROF=words,
            OTEL_SERVICE_NAME="shop",
            OTEL_RESOURCE_ATTRIBUTES="service.version=1%2C3"))


def wait_for(pid):
    """A context comes a second after the fork; a busy machine takes longer."""
    import time
    until = time.monotonic() + 30
    while not context_of(pid) and time.monotonic() < until:
        time.sleep(0.1)
    return context_of(pid)


def check():
    process = begin("context")
    pid = int(process.stdout.readline())
    found = context_of(pid)
    TAP.same("there is one, of version 2, which may be read and written",
             [(name, version, rights) for name, version, _, _, rights in
              found], [(b"OTEL_CTX", 2, "rw-p")])
    _, _, at, said, _ = found[0]
    with open("/proc/uptime") as file:
        now = float(file.read().split()[0])
    TAP.ok("it says when it was published", 0 < now - at / 1e9 < 60, at, now)
    TAP.same("and what the process is", {key: said.get(key) for key in (
        "service.name", "service.version", "process.pid",
        "process.executable.path", "host.name")}, {
            "service.name": "shop", "service.version": "1,3",
            "process.pid": pid,
            "process.executable.path": os.path.realpath(sys.executable),
            "host.name": os.uname().nodename})
    process.stdin.write(b"go\n")
    process.stdin.flush()
    child = int(process.stdout.readline())
    first = context_of(child)
    later = wait_for(child)
    TAP.ok("a forked child has none of its parent's", not first or
           first[0][3]["process.pid"] == child, first)
    TAP.ok("and one of its own once it has lived for a second",
           len(later) == 1 and later[0][3]["process.pid"] == child
           and later[0][3]["service.instance.id"]
           != said["service.instance.id"], later)
    os.kill(child, 9)
    process.communicate()
    process = begin("deadlock")
    TAP.same("nothing is published unasked",
             context_of(int(process.stdout.readline())), [])
    process.kill()
    process.communicate()


check()
sys.exit(TAP.end())
