#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs of others whose threads take locks in the wrong order, because a
library in front of them sees to it: stuck_seeded.py CPPROF LIBCPPROF SEED. The
deadlock is told while they run, and of a process that knows nothing of cpprof
by attaching to it. Of the same programs without that library nothing is told.
"""
import itertools
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from tap import Tap  # pylint: disable=wrong-import-position

cpprof, library, seed = (os.path.realpath(path) for path in sys.argv[1:4])
tap = Tap()
PATIENCE = 60  # seconds, on a busy machine

# A sorter that has a thread beside it as soon as there is more than 1 MB.
SQL = """pragma threads=3;
pragma cache_size=100;
create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
  insert into t select i, hex(randomblob(30)) from n;
"""
ROUND = "create index u on t(b); drop index u;\n"


def begin(folder, words, preloads, says):
    """The process; what it says goes to a file."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("CPPROF", "LD_PRELOAD"))}
    env.update(says, LD_PRELOAD=" ".join(preloads))
    with open(folder + "/said", "wb") as file:
        process = subprocess.Popen(words, env=env, cwd=folder, stderr=file,
                                   stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL)
    process.begun = time.monotonic()
    return process


def said(folder):
    with open(folder + "/said", encoding="utf-8", errors="replace") as file:
        return file.read()


def sqlite(folder, preloads, says, most=1000):
    """It ends by itself if nothing stops it."""
    process = begin(folder, ["sqlite3", "db"], preloads,
                    dict(says, SEEDED="libsqlite3"))
    process.stdin.write((SQL + ROUND * most).encode())
    process.stdin.close()
    return process, lambda: process.poll() is None


def redis(folder, preloads, says, most=1000):
    """The server and the checker are one program, which looks at its name. One
    thread of it syncs the log, another one frees what was large."""
    server = folder + "/redis-server"
    path = folder + "/socket"
    shutil.copy(shutil.which("redis-check-rdb"), server)
    process = begin(folder, [server, "--port", "0", "--unixsocket", path,
                             "--save", "", "--appendonly", "yes",
                             "--appendfsync", "everysec",
                             "--crash-log-enabled", "no"],
                    preloads, dict(says, SEEDED="redis-server"))
    client = socket.socket(socket.AF_UNIX)
    end = time.monotonic() + PATIENCE
    while client.connect_ex(path) and time.monotonic() < end:
        time.sleep(0.02)
    client.settimeout(0.2)
    large = b" ".join(b"member%d" % i for i in range(200))
    rounds = itertools.count()

    def go_on():
        """A round of work; false when there was enough of it."""
        try:
            client.sendall(b"SADD large " + large + b"\r\nUNLINK large\r\n")
            client.recv(1000)
            time.sleep(0.3)  # in which the first thread asks for the log
            if next(rounds) < most:
                return True
            client.sendall(b"SHUTDOWN NOSAVE\r\n")
        except TimeoutError:  # it is stuck, or busy
            return True
        except OSError:
            pass
        return False
    return process, go_on


def until(process, go_on, is_done):
    """Has it work until something is so, it ends, or patience does."""
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end and not is_done():
        if not go_on():
            break
        time.sleep(0.02)
    return is_done()


def end_of(process):
    try:
        return process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def cycle(text, process):
    """What the sentences say that is wrong."""
    found = re.search(r"^deadlock 1, of 2 threads:\n(.*)", text, re.M)
    if not found:
        return ["no deadlock is told"]
    threads = re.findall(r"thread (\d+)", found[1])
    age = time.monotonic() - process.begun
    bad = ["nothing waits since %s s: it began %.1f s ago" % (wait, age)
           for wait in re.findall(r"since ([\d.]+) s", text)
           if float(wait) > age]
    bad += [] if len(threads) == 3 and threads[0] == threads[2] != threads[1] \
        else ["the threads are %s" % threads]
    # The kernel may have forgotten since when, of a thread that it moved.
    return bad + ([] if len(re.findall("waits (?:since [\\d.]+ s )?for",
                                       found[1])) == 2 else
                  ["two wait: " + found[1]])


def play(name, program):
    with tempfile.TemporaryDirectory() as folder:
        process, go_on = program(folder, [library],
                                 {"CPPROF": "deadlock=abort"}, 5)
        until(process, go_on, lambda: False)
        status = end_of(process)
        tap.ok("%s ends as ever" % name, status == 0, status, said(folder))
        tap.ok("%s: of no deadlock is told" % name,
               "can never go on" not in said(folder), said(folder))
    with tempfile.TemporaryDirectory() as folder:
        process, go_on = program(folder, [seed, library],
                                 {"CPPROF": "deadlock=abort"})
        until(process, go_on, lambda: "can never go on" in said(folder))
        status = end_of(process)
        tap.none("%s: a seeded deadlock is told" % name, cycle(said(folder), process))
        tap.same("%s: abort ends it" % name, status, -signal.SIGABRT)
        print("# " + said(folder)[:1000].replace("\n", "\n# "))
    with tempfile.TemporaryDirectory() as folder:
        process, go_on = program(folder, [seed], {})
        told = [""]

        def is_told():
            told[0] = subprocess.run(
                [cpprof, "threads", "-stuck", "-p", str(process.pid)],
                capture_output=True, text=True, check=False).stdout
            return "deadlock 1" in told[0]

        if allowed:
            until(process, go_on, is_told)
            tap.none("%s: it is told of a process that is attached to" % name,
                     cycle(told[0], process))
        else:
            tap.skip("%s, attached to" % name, why)
        process.kill()
        process.wait()


def may_attach():
    """(is it allowed here, why not)"""
    with subprocess.Popen(["sleep", "60"]) as process:
        done = subprocess.run([cpprof, "doctor", str(process.pid)],
                              capture_output=True, text=True, check=False)
        process.kill()
    return done.returncode == 0, done.stdout.split("\n")[0]


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
allowed, why = may_attach()
for NAME, PROGRAM, NEEDS in (("sqlite3", sqlite, "sqlite3"),
                             ("redis", redis, "redis-check-rdb")):
    if shutil.which(NEEDS):
        play(NAME, PROGRAM)
    else:
        tap.skip(NAME, "not installed")
sys.exit(tap.end())
