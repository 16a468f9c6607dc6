#!/usr/bin/env python3
"""Servers of others that are scraped while they work.

    soak.py BUILD      TAP

redis-server is preloaded with CPPROF=heap,block,mutex,http=..., works under
redis-benchmark and is scraped every 2 seconds; in turn with it a plain one does
the same work. Then 50 scrapers at once, then clients that do not behave; and
nginx with its workers. No request may fail, and memory may not grow. Last a
program that changes its credentials all the time.

SOAK_SECONDS (2) is for how long redis is scraped under load, and as long is the
plain one's turn; 300 is what is in docs/http.md.
What load takes is CPU time of the server and requests a second, compared in
turns; on a machine that has other work only the first says something.
"""
import glob
import gzip
import http.client
import os
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from proto import Profile
from served import Tap

TAP = Tap()
LIBRARY = os.path.join(os.path.abspath(sys.argv[1]), "libcpprof.so")
SECONDS = float(os.environ.get("SOAK_SECONDS", "2"))
IS_LONG = SECONDS >= 120
TURN = 8 if IS_LONG else 0.5  # seconds of load
# A few turns on a busy machine say little.
SLOWER = 1.05 if IS_LONG else 1.5
TRIES = 4  # each twice as long as the one before
TICK = os.sysconf("SC_CLK_TCK")
NAMES = ["heap", "allocs", "block", "mutex", "goroutine", "threadcreate",
         "cmdline", "", "profile?seconds=1", "mutex?seconds=1", "delta_heap",
         "goroutine?debug=2", "heap?debug=1"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(ready, seconds=30):
    end = time.monotonic() + seconds
    while not ready() and time.monotonic() < end:
        time.sleep(0.05)
    return ready()


def can_connect(port):
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
        return True
    except OSError:
        return False


# -------------------------------------------------------------- scraping ----

class Scraper:
    """Asks for all there is, every so often, and remembers what failed."""

    def __init__(self, port, every):
        self.port, self.every = port, every
        self.n, self.failed, self.slowest = 0, [], 0
        self.seconds = 0  # that it ran
        self.lock = threading.Lock()

    def ask(self, name):
        began = time.monotonic()
        try:
            c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            c.request("GET", "/debug/pprof/" + name)
            r = c.getresponse()
            body = r.read()
            c.close()
            if r.headers["Content-Type"] == "application/octet-stream":
                gzip.decompress(body)
            problem = None if r.status == 200 and body else r.status
        except (OSError, http.client.HTTPException, EOFError) as error:
            problem = repr(error)
        took = time.monotonic() - began - ("seconds=1" in name)
        with self.lock:
            self.n += 1
            self.slowest = max(self.slowest, took)
            if problem:
                self.failed.append((name, problem))

    def round(self):
        threads = [threading.Thread(target=self.ask, args=(name,))
                   for name in NAMES]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def run(self, end):
        """Rounds until that is set; the first one comes at once."""
        first = time.monotonic()
        while not end.is_set():
            began = time.monotonic()
            self.round()
            end.wait(max(0, self.every - (time.monotonic() - began)))
        self.seconds += time.monotonic() - first

    def has_no_failure(self, name):
        TAP.ok("%s: %d requests, none failed" % (name, self.n),
               self.n and not self.failed, len(self.failed), self.failed[:5])
        print("# the slowest took %.2f s" % self.slowest)


# ----------------------------------------------------------------- redis ----

class Redis:
    def __init__(self, name, port=None):
        os.mkdir(name)
        self.socket = os.path.abspath(os.path.join(name, "s"))
        variables = dict(os.environ)
        if port:
            variables.update(LD_PRELOAD=LIBRARY, CPPROF=(
                "heap,block,mutex,http=127.0.0.1:%d" % port))
        self.process = subprocess.Popen(
            ["./redis-server", "--port", "0", "--unixsocket", self.socket,
             "--save", "", "--appendonly", "no", "--dir",
             os.path.abspath(name)], env=variables,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: os.path.exists(self.socket))

    def cpu(self):
        """Seconds that it has used, all its threads."""
        with open("/proc/%d/stat" % self.process.pid) as file:
            words = file.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / TICK

    def main_cpu(self):
        with open("/proc/%d/task/%d/schedstat" % (
                self.process.pid, self.process.pid)) as file:
            return int(file.read().split()[0]) / 1e9

    def command(self, *words):
        done = subprocess.run(["redis-cli", "-s", self.socket] + list(words),
                              capture_output=True, timeout=30, check=False)
        return done.stdout.decode()

    def memory(self):
        """MB that are in use: what is resident without the pages that jemalloc
        keeps for a while after they were freed, which are most of it and more
        or fewer as the clock has it."""
        said = dict(line.split(":", 1) for line in
                    self.command("info", "memory").splitlines() if ":" in line)
        kept = 0
        if said["mem_allocator"].startswith("jemalloc"):
            kept = (int(said["allocator_resident"]) -
                    int(said["allocator_allocated"]))
        return (int(said["used_memory_rss"]) - kept) / (1 << 20)

    def load(self, n):
        """So many requests: (requests a second, CPU of all, of the main
        thread), each for one request."""
        cpu, main = self.cpu(), self.main_cpu()
        began = time.monotonic()
        done = subprocess.run(
            ["redis-benchmark", "-s", self.socket, "-q", "-c", "20", "-P", "4",
             "-r", "1000", "-n", str(n), "-t", "set,get,lpop,hset"],
            capture_output=True, timeout=600, check=False)
        took = time.monotonic() - began
        if done.returncode or not n:
            raise RuntimeError(done.stderr)
        return n / took, (self.cpu() - cpu) / n, (self.main_cpu() - main) / n

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


def calibrate(redis):
    """How many requests a turn has."""
    n = 2000
    while True:
        began = time.monotonic()
        redis.load(n)
        took = time.monotonic() - began
        if took > TURN / 3:
            return int(n * TURN / took)
        n *= 3


def scraped_load(redis, n, scraper):
    end = threading.Event()
    thread = threading.Thread(target=scraper.run, args=(end,))
    thread.start()
    try:
        return redis.load(n)
    finally:
        end.set()
        thread.join()


def turn(plain, redis, n, scraper):
    """As much without it as with it, half of that before and half behind."""
    return (plain.load(n // 2), scraped_load(redis, n, scraper),
            plain.load(n // 2))


def ratios(turns, k):
    """To the mean of the plain ones before and behind it."""
    return [2 * with_it[k] / (before[k] + after[k])
            for before, with_it, after in turns if before[k]]


def say_ratios(what, found):
    print("# %s: median %.3f of %d turns, quartiles %.3f to %.3f" % (
        what, statistics.median(found), len(found),
        *statistics.quantiles(found)[::2]))


def test_turns(plain, redis, port):
    n = calibrate(plain)
    scraper, turns, sizes = Scraper(port, 2), [], []

    def take():
        turns.append(turn(plain, redis, n, scraper))
        sizes.append(redis.memory())

    redis.load(n)  # what is allocated once
    scraper.round()
    scraper.seconds = 0
    while scraper.seconds < SECONDS or len(turns) < 4:
        take()
    until_even(turns, take)
    stays("scraped", sizes, take)
    scraper.has_no_failure("scraped every 2 s under load")
    for k, what in enumerate(["requests a second", "CPU time of a request",
                              "CPU time of the main thread"]):
        say_ratios("%s, to the plain server's" % what, ratios(turns, k))
        say_ratios("  the plain server's to itself",
                   [t[2][k] / t[0][k] for t in turns if t[0][k]])
    TAP.ok("the thread that serves is not slowed down", not is_slowed(turns),
           ratios(turns, 2))


def is_flat(sizes):
    """Its second half is no larger than its first, but for a little."""
    half = len(sizes) // 2
    return statistics.median(sizes[half:]) < max(sizes[:half]) * 1.05 + 2


def is_slowed(turns):
    return statistics.median(ratios(turns, 2)) >= SLOWER


def until_even(turns, take):
    """More turns, while a few of them say that it is slowed down."""
    tries = 1
    while is_slowed(turns) and tries < TRIES:
        for _ in range(len(turns)):
            take()
        tries += 1


def stays(name, sizes, take):
    """What is allocated once makes a short run grow and a longer one not; with
    a leak the longer one grows more."""
    tries = 1
    while not is_flat(sizes) and tries < TRIES:
        print("# %s: MB so far: %s" % (name, sizes))
        for _ in range(len(sizes)):
            take()
        tries += 1
    print("# %s: MB of memory: %s" % (name, " ".join(
        "%.1f" % s for s in sizes[::max(1, len(sizes) // 12)])))
    TAP.ok("%s: memory stays what it is" % name, is_flat(sizes), sizes)


def test_many(redis, port):
    """50 at once, each of which asks without a pause."""
    scraper, end = Scraper(port, 0), threading.Event()

    def run(first):
        k = first
        while not end.is_set():
            scraper.ask(NAMES[k % len(NAMES)])
            k += 1

    threads = [threading.Thread(target=run, args=(k,)) for k in range(50)]
    for thread in threads:
        thread.start()
    sizes = []

    def take():
        time.sleep(0.25)
        sizes.append(redis.memory())

    time.sleep(2)
    until_then = time.monotonic() + max(2, SECONDS / 5)
    while time.monotonic() < until_then or len(sizes) < 4:
        take()
    stays("50 scrapers", sizes, take)
    alive = redis.command("ping").strip() == "PONG"
    end.set()
    for thread in threads:
        thread.join()
    scraper.has_no_failure("50 scrapers at once")
    TAP.ok("redis answers meanwhile", alive)


def trickle(port, end):
    """Clients that send a header, one byte after the other, and never all."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (
        resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    text = b"GET /debug/pprof/heap HTTP/1.1\r\nHost: x\r\nX: "
    clients, at = [], 0
    while not end.is_set():
        while len(clients) < 300:
            s = socket.socket()
            s.settimeout(5)
            try:
                s.connect(("127.0.0.1", port))
                s.sendall(text[:20])
                clients.append(s)
            except OSError:
                s.close()
                break
        for s in list(clients):
            try:
                s.sendall(text[20 + at % 20:21 + at % 20])
            except OSError:
                s.close()
                clients.remove(s)
        at += 1
        end.wait(0.2)
    for s in clients:
        s.close()


def test_slow(plain, redis, port):
    n = calibrate(plain) // 2 + 1
    scraper, end = Scraper(port, 2), threading.Event()
    slow = threading.Thread(target=trickle, args=(port, end))
    slow.start()
    sizes, turns = [], []

    def take():
        turns.append(turn(plain, redis, n, scraper))
        sizes.append(redis.memory())

    until_then = time.monotonic() + max(2, SECONDS / 5)
    while time.monotonic() < until_then or len(turns) < 4:
        take()
    until_even(turns, take)
    stays("slow clients", sizes, take)
    end.set()
    slow.join()
    scraper.has_no_failure("with 300 slow clients")
    main = statistics.median(ratios(turns, 2))
    print("# CPU time of the main thread, to the plain server's: %.3f" % main)
    TAP.ok("which do not slow the program down", not is_slowed(turns),
           ratios(turns, 2))


def test_redis():
    tool = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    if not tool or not shutil.which("redis-benchmark"):
        TAP.skip("redis", "not here")
        return
    os.symlink(os.path.realpath(tool), "redis-server")
    port = free_port()
    plain, redis = Redis("plain"), Redis("preloaded", port)
    try:
        TAP.ok("it serves", until(lambda: can_connect(port)))
        test_turns(plain, redis, port)
        test_many(redis, port)
        test_slow(plain, redis, port)
    finally:
        status = redis.end()
        plain.end()
    TAP.ok("it ends as ever", status == 0, status)


# ----------------------------------------------------------------- nginx ----

CONFIGURATION = """
pid nginx.pid;
error_log stderr;
worker_processes 2;
%s
events { worker_connections 64; }
http {
    access_log off;
    client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f;
    uwsgi_temp_path u; scgi_temp_path s;
    server { listen 127.0.0.1:%d; location / { return 200 "hello\\n"; } }
}
"""


class Nginx:
    def __init__(self, name, more):
        os.mkdir(name)
        self.port, self.http = free_port(), free_port()
        with open(os.path.join(name, "conf"), "w") as file:
            file.write(CONFIGURATION % (more, self.port))
        folder = os.path.abspath(name)
        self.process = subprocess.Popen(
            ["nginx", "-e", "stderr", "-p", folder, "-c", folder + "/conf",
             "-g", "daemon off;"],
            env=dict(os.environ, LD_PRELOAD=LIBRARY,
                     CPPROF="heap,http=127.0.0.1:%d" % self.http),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: can_connect(self.port))

    def children(self):
        found = []
        for path in glob.glob("/proc/%d/task/*/children" % self.process.pid):
            with open(path) as file:
                found += [int(pid) for pid in file.read().split()]
        return found

    def ask(self, n):
        """How many of so many requests are answered."""
        good = 0
        for _ in range(n):
            c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
            c.request("GET", "/")
            good += c.getresponse().read() == b"hello\n"
            c.close()
        return good

    def end(self):
        self.process.send_signal(signal.SIGQUIT)
        return self.process.wait(30)


def listens(pid, port):
    """Has that process a socket that listens there?"""
    inodes = set()
    with open("/proc/net/tcp") as file:
        for words in map(str.split, file):
            if words[1].endswith(":%04X" % port) and words[3] == "0A":
                inodes.add("socket:[%s]" % words[9])
    found = set()
    for path in glob.glob("/proc/%d/fd/*" % pid):
        try:
            found.add(os.readlink(path))
        except OSError:
            pass
    return bool(inodes & found)


def test_workers():
    """The master has it; the workers, made by fork, do not."""
    nginx = Nginx("workers", "")
    try:
        until(lambda: len(nginx.children()) == 2)
        scraper = Scraper(nginx.http, 0)
        scraper.round()
        TAP.ok("nginx: its workers answer", nginx.ask(300) == 300)
        scraper.round()
        scraper.has_no_failure("nginx's master")
        TAP.ok("the master has the socket and no worker has it",
               listens(nginx.process.pid, nginx.http) and not any(
                   listens(pid, nginx.http) for pid in nginx.children()),
               nginx.children())
        nginx.process.send_signal(signal.SIGHUP)  # new workers
        time.sleep(1)
        scraper.round()
        TAP.ok("after a reload, too", nginx.ask(100) == 100 and
               not scraper.failed, scraper.failed)
    finally:
        status = nginx.end()
    TAP.ok("nginx ends as ever", status == 0, status)


def test_alone():
    """One process that does all: what it serves has its work in it."""
    nginx = Nginx("alone", "master_process off;")
    try:
        end = threading.Event()

        def work():
            while not end.is_set():
                nginx.ask(20)

        worker = threading.Thread(target=work)
        worker.start()
        c = http.client.HTTPConnection("127.0.0.1", nginx.http, timeout=30)
        c.request("GET", "/debug/pprof/wall?seconds=2")
        p = Profile(c.getresponse().read())
        end.set()
        worker.join()
        TAP.ok("nginx alone has its work in its profile", p.samples and any(
            "libc_start" in n or "epoll" in n or "ngx" in n or n == "_start"
            for n in p.names()), sorted(p.names())[:40])
    finally:
        status = nginx.end()
    TAP.ok("and ends as ever", status == 0, status)


def test_nginx():
    if not shutil.which("nginx"):
        TAP.skip("nginx", "not here")
        return
    test_workers()
    test_alone()


CREDENTIALS = """
import os, sys, threading, time
slowest, who = 0, os.getuid()
def spin():
    while True: sum(range(1000))
for work in (spin,) + (lambda: time.sleep(99),) * 9:
    threading.Thread(target=work, daemon=True).start()
end = time.monotonic() + 4
while time.monotonic() < end:
    before = time.monotonic()
    os.setresuid(who, who, who)
    slowest = max(slowest, time.monotonic() - before)
    time.sleep(0.001)
print(slowest)
os._exit(0)
"""


def slowest_change():
    """(seconds of the slowest change of credentials, answers meanwhile)."""
    port = free_port()
    env = dict(os.environ, LD_PRELOAD=LIBRARY,
               CPPROF="http=127.0.0.1:%d" % port)
    with subprocess.Popen([sys.executable, "-c", CREDENTIALS], env=env,
                          stdout=subprocess.PIPE, text=True) as process:
        until(lambda: can_connect(port))
        n = 0
        while process.poll() is None:
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            try:
                c.request("GET", "/debug/pprof/goroutine?debug=2")
                n += c.getresponse().read().startswith(b"goroutine ")
            except (OSError, http.client.HTTPException):
                pass
            finally:
                c.close()
        return float(process.stdout.read()), n


def test_credentials():
    """Threads of ours leave for a change, which waits a second for them at
    most: an answer that is being made goes on to its end without one."""
    found = []
    while len(found) < 3 and (not found or found[-1][0] > 0.9):
        found.append(slowest_change())
    TAP.ok("who changes credentials does not wait for answers",
           found[-1][0] < 0.9, found)
    TAP.ok("and there are answers", found[-1][1] > 5, found)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        os.chmod(scratch, 0o755)
        try:
            test_redis()
            test_nginx()
            test_credentials()
        finally:
            os.chdir("/")
    return TAP.end()


sys.exit(main())
