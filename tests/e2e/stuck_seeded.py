#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs of others whose threads take locks in the wrong order, because a
library in front of them sees to it: stuck_seeded.py CPPROF LIBCPPROF SEED MEET. The
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
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from tap import Tap  # pylint: disable=wrong-import-position

cpprof, library, seed, meet = (os.path.realpath(path)
                               for path in sys.argv[1:5])
tap = Tap()
PATIENCE = 60  # seconds, on a busy machine
PAUSE = "0.004"

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
    """One that ends by itself, or when it is told to."""
    with tempfile.TemporaryDirectory() as folder:
        process, go_on = program(folder, [library],
                                 {"CPPROF": "deadlock=abort"}, 5)
        until(process, go_on, lambda: False)
        status = end_of(process)
        tap.ok("%s ends as ever" % name, status == 0, status, said(folder))
        tap.ok("%s: of no deadlock is told" % name,
               "can never go on" not in said(folder), said(folder))
    play_seeded(name, program, seed)


def asked(process):
    """What is told of a process that knows nothing of cpprof."""
    return subprocess.run([cpprof, "threads", "-stuck", "-p",
                           str(process.pid)], capture_output=True, text=True,
                          check=False).stdout


def play_seeded(name, program, wrong):
    with tempfile.TemporaryDirectory() as folder:
        process, go_on = program(folder, [wrong, library],
                                 {"CPPROF": "deadlock=abort"})
        until(process, go_on, lambda: "can never go on" in said(folder))
        status = end_of(process)
        tap.none("%s: a seeded deadlock is told" % name,
                 cycle(said(folder), process))
        tap.same("%s: abort ends it" % name, status, -signal.SIGABRT)
        print("# " + said(folder)[:1000].replace("\n", "\n# "))
    if not allowed:
        tap.skip("%s, attached to" % name, why)
        return
    with tempfile.TemporaryDirectory() as folder:
        process, go_on = program(folder, [wrong], {})
        told = [""]

        def is_told():  # a busy machine may refuse a second question
            if "deadlock 1" not in told[0]:
                told[0] = asked(process)
            return "deadlock 1" in told[0]

        until(process, go_on, is_told)
        tap.none("%s: it is told of a process that is attached to" % name,
                 cycle(told[0], process))
        process.kill()
        process.wait()


# Threads that run, and threads that wait in each way that is usual there. With
# PAUSE, of seconds, those that run rest now and then: every state is left, and
# costs less CPU time. To meet where they take locks they must be busy.
PYTHON = """
import os, queue, threading, time
texts, lock, never = queue.Queue(9), threading.RLock(), threading.Event()
condition, barrier = threading.Condition(), threading.Barrier(9)
pause = float(os.environ.get("PAUSE", 0))
def rest():
    if pause: time.sleep(pause)
def put():
    while True:
        for i in range(30): texts.put(sum(range(300)))
        rest()
def take():
    while True: texts.get()
def turn():
    while True:
        with lock: time.sleep(1e-4 + pause / 5)
def wait():
    with condition: condition.wait()
def burn():
    while True: sum(range(9999)), rest()
for work in burn, burn, put, put, take, take, turn, turn, wait, never.wait, barrier.wait:
    threading.Thread(target=work).start()
"""

NODE = """
const {Worker, isMainThread} = require("worker_threads");
const crypto = require("crypto"), fs = require("fs");
if (isMainThread) for (let i = 0; i < 3; i++) new Worker(__filename);
setInterval(() => { crypto.randomBytes(1000, () => {});
  crypto.pbkdf2("a", "b", 100, 20, "sha1", () => {});
  fs.readFile(__filename, () => {}); }, 2);
"""

JAVA = """
import java.util.concurrent.*; import java.util.concurrent.locks.*;
class P { static int n; static final Object monitor = new Object();
  static final Lock lock = new ReentrantLock();
  static void turn() { for (;;) { synchronized (monitor) { n++; }
    lock.lock(); try { n++; } finally { lock.unlock(); }
    if (new byte[10000][9].length > 0) return; } }
  static Object work() throws Exception {
    String pause = System.getenv("PAUSE");
    for (;;) { for (int i = 0; i < 5; i++) turn();
      if (pause != null) Thread.sleep((long)(5e3 * Double.valueOf(pause))); } }
  static void rest() { synchronized (monitor) {
    try { monitor.wait(); } catch (InterruptedException e) { } } }
  public static void main(String[] a) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(8);
    for (int i = 0; i < 8; i++) pool.submit(P::work);
    for (int i = 0; i < 3; i++) new Thread(P::rest).start();
    rest(); } }
"""


def script(name, words, text, part):
    """A program that goes on until it is killed."""
    def program(folder, preloads, says):
        with open(folder + "/" + name, "w", encoding="ascii") as file:
            file.write(text)
        process = begin(folder, words + [name], preloads,
                        dict(says, SEEDED=part))
        return process, lambda: process.poll() is None
    return program


def memcached(folder, preloads, says):
    """Threads that serve, and some that look after its memory."""
    path = folder + "/socket"
    process = begin(folder, ["memcached", "-s", path, "-t", "4"] + (
        ["-u", "root"] if os.getuid() == 0 else []), preloads,
                    dict(says, SEEDED="memcached"))

    def load():
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(PATIENCE)
                client.connect(path)
                while client.sendall(b"set a 0 0 9\r\n123456789\r\nget a\r\n"
                                     ) is None and client.recv(999):
                    pass
        except OSError:  # it has ended, or is stuck
            pass

    end = time.monotonic() + PATIENCE
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.02)
    for _ in range(6):
        threading.Thread(target=load, daemon=True).start()
    return process, lambda: process.poll() is None


def play_living(name, program):
    """One that goes on until it is killed."""
    with tempfile.TemporaryDirectory() as folder:
        process = program(folder, [library], {"CPPROF": "deadlock=report",
                                              "PAUSE": PAUSE})[0]
        time.sleep(4)
        tap.ok("%s: it goes on, and of no deadlock is told" % name,
               process.poll() is None and
               "can never go on" not in said(folder), said(folder))
        process.kill()
        process.wait()
    with tempfile.TemporaryDirectory() as folder:
        process = program(folder, [], {"PAUSE": PAUSE})[0]
        time.sleep(2)
        for _ in range(5 if allowed else 0):
            tap.has("%s: nothing is told of it when it is attached to" % name,
                    asked(process), "threadleak profile: total 0\n")
        process.kill()
        process.wait()
    if name != "node":  # whose threads seldom have two mutexes at a time
        play_seeded(name, program, meet)


def may_attach():
    """(is it allowed here, why not)"""
    with subprocess.Popen(["sh", "-c", "echo; read x"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        process.stdout.readline() # it has its libc
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
for NAME, PROGRAM, NEEDS in (
        ("python3", script("p.py", ["/usr/bin/python3"], PYTHON, "python3"),
         "/usr/bin/python3"),
        ("node", script("p.js", ["node"], NODE, "node"), "node"),
        ("java", script("P.java", ["java", "-Xmx200m"], JAVA, "libjvm.so"),
         "java"),
        ("memcached", memcached, "memcached")):
    if shutil.which(NEEDS):
        play_living(NAME, PROGRAM)
    else:
        tap.skip(NAME, "not installed")
sys.exit(tap.end())
