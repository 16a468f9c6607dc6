#!/usr/bin/env python3
"""Into programs of others and out again, over and over, each under its own load
and with its own checker: attach_cycles.py BUILD [SECONDS [PROGRAM...]]

A line for each program: rounds of attach and detach (cpu, heap, block and mutex
profiles), those that failed, how long a thread was held in milliseconds, the
time of a call, what the process has more of than after the first ten rounds
(mappings, descriptors, threads), and what its checker says. The exit status is 1
if one of them is not as it was. Half of the programs want root; what is not
there is left out.
"""
import contextlib
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
KINDS = "cpu,heap,block,mutex,symbolize=none,out=%s/%%p.%%k"
WARM = 10
HOSTS = ["spin 2", "malloc 16", "malloc 200", "fork", "dlopen"]
PROGRAMS = {}


def program(name, *needs):
    def enter(function):
        if all(shutil.which(need) for need in needs):
            PROGRAMS[name] = function
        return function
    return enter


def start(words, **more):
    return subprocess.Popen(words, stdin=subprocess.DEVNULL,
                            stdout=more.pop("stdout", subprocess.DEVNULL),
                            stderr=subprocess.DEVNULL, **more)


def until(ready, seconds=60):
    end = time.monotonic() + seconds
    while not ready() and time.monotonic() < end:
        time.sleep(0.05)
    return ready()


def succeeds(words):
    return subprocess.run(words, stdin=subprocess.DEVNULL, check=False,
                          capture_output=True).returncode == 0


def children(pid):
    found = []
    for path in glob.glob("/proc/%d/task/*/children" % pid):
        with open(path, encoding="ascii") as file:
            found += [int(child) for child in file.read().split()]
    return found


def says(process, patterns):
    """What a client printed that matches; it ends by itself."""
    text = process.communicate()[0].decode(errors="replace")
    return "; ".join(" ".join(found.split()) for found in
                     re.findall(patterns, text, re.M)) or "no word"


# Each is given a folder and seconds, and yields the process to attach to; what
# it gives at the end is (right, what its checker says).

def own(mode):
    def run(tools, folder, seconds):
        with open(folder + "/out", "w+b") as out:
            host = start([tools + "/attach_host"] + mode.split(), stdout=out)
            time.sleep(0.5)
            yield host.pid
            host.send_signal(signal.SIGTERM)
            status = host.wait(60)
            out.seek(0)
            yield status == 0, out.read().decode().split("\n")[-2]
    return run


for MODE in HOSTS:
    PROGRAMS[MODE] = own(MODE)


@program("redis, redis-benchmark", "redis-check-rdb", "redis-benchmark")
def redis(_, folder, seconds):
    """The server and the checker are one program, which looks at its name."""
    path = folder + "/s"
    os.symlink(shutil.which("redis-check-rdb"), folder + "/redis-server")
    server = start([folder + "/redis-server", "--port", "0", "--unixsocket", path,
                    "--save", "", "--dir", folder])
    ask = ["redis-cli", "-s", path]
    until(lambda: succeeds(ask + ["ping"]))
    load = start(["redis-benchmark", "-s", path, "-q", "-l", "-c", "20", "-t",
                  "set,get,incr"])
    yield server.pid
    ended = load.poll()
    load.kill()
    load.wait()
    info = subprocess.run(ask + ["info"], capture_output=True, text=True,
                          check=False).stdout
    n = re.search(r"total_commands_processed:(\d+)", info)
    bad = re.search(r"total_error_replies:(\d+)", info)
    server.terminate()
    yield (server.wait() == 0 and ended is None and bad.group(1) == "0",
           "%s commands, %s errors" % (n.group(1), bad.group(1)))


@program("nginx, wrk", "nginx", "wrk", "setpriv")
def nginx(_, folder, seconds):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with open(folder + "/conf", "w", encoding="ascii") as file:
        file.write("user nobody nogroup; pid %s/pid; worker_processes 1; "
                   "events {} http { access_log off; server { listen "
                   "127.0.0.1:%d; location / { return 200 hello; } } }"
                   % (folder, port))
    server = start(["nginx", "-e", folder + "/errors", "-p", folder, "-c",
                    folder + "/conf", "-g", "daemon off;"])
    until(lambda: children(server.pid))
    time.sleep(0.5)
    load = start(["wrk", "-t1", "-c8", "-d%ds" % (seconds + 30),
                  "http://127.0.0.1:%d/" % port], stdout=subprocess.PIPE)
    worker = children(server.pid)[0]
    yield worker
    same = children(server.pid) == [worker]
    said = says(load, r"\d+ requests in|Non-2xx.*|Socket errors.*")
    server.send_signal(signal.SIGQUIT)
    yield (server.wait() == 0 and same and "rrors" not in said and
           "Non" not in said), said


@program("postgres, pgbench", "pgbench", "setpriv")
def postgres(_, folder, seconds):
    tools = os.path.dirname(sorted(glob.glob(
        "/usr/lib/postgresql/*/bin/postgres"))[-1]) + "/"
    data = folder + "/data"
    os.mkdir(data, 0o700)
    os.chown(data, 65534, 65534)
    subprocess.run(NOBODY + [tools + "initdb", "-D", data, "--no-sync", "-A",
                             "trust", "-U", "nobody"], check=True,
                   stdout=subprocess.DEVNULL, cwd="/")
    server = start(NOBODY + [tools + "postgres", "-D", data, "-k", data, "-c",
                             "listen_addresses=", "-c", "fsync=off"], cwd="/")
    there = ["-h", data, "-U", "nobody", "postgres"]
    until(lambda: succeeds([tools + "psql"] + there + ["-c", "select 1"]))
    succeeds([tools + "pgbench", "-i", "-q"] + there)
    before = children(server.pid)
    load = start([tools + "pgbench", "-n", "-c", "2", "-T",
                  str(int(seconds) + 30)] + there, stdout=subprocess.PIPE)
    until(lambda: len(set(children(server.pid)) - set(before)) > 1)
    yield max(set(children(server.pid)) - set(before))
    said = says(load, r"transactions actually processed: \d+|"
                r"failed transactions: .*|.*aborted.*")
    sums = subprocess.run([tools + "psql", "-At"] + there + ["-c", """
        select (select sum(abalance) from pgbench_accounts) =
               (select sum(delta) from pgbench_history)"""],
                          capture_output=True, text=True, check=False).stdout
    server.send_signal(signal.SIGINT)
    yield (server.wait() == 0 and "processed" in said and
           "failed transactions: 0" in said and sums == "t\n"), said


PYTHON = """
import hashlib, threading, signal, sys
end = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: end.set())
wrong = []
def work():
    while not end.is_set():
        if hashlib.sha256(b'x' * 5000).hexdigest()[:8] != '%s': wrong.append(1)
        sorted(str(i) for i in range(500))
threads = [threading.Thread(target=work) for _ in range(10)]
[t.start() for t in threads]
while not end.wait(0.05): pass
[t.join() for t in threads]
sys.exit(bool(wrong))
"""


def ends_well(words, folder, ready=1.0):
    process = start(words, cwd=folder)
    time.sleep(ready)
    yield process.pid
    alive = process.poll() is None
    process.terminate()
    status = process.wait(60)
    yield alive and status in (0, 143), "status %d" % status


@program("python3, 11 threads")
def python(_, folder, seconds):
    import hashlib
    digest = hashlib.sha256(b"x" * 5000).hexdigest()[:8]
    yield from ends_well(["/usr/bin/python3", "-c", PYTHON % digest], folder)


JAVA = """
public class Busy {
    public static void main(String[] words) throws Exception {
        for (int i = 0; i < 4; i++)
            new Thread(() -> { for (;;) {
                StringBuilder b = new StringBuilder();
                for (int k = 0; k < 1000; k++) b.append(k);
                if (b.length() != 2890) Runtime.getRuntime().halt(9);
            } }).start();
    }
}
"""


@program("java, 4 threads", "java", "javac")
def java(_, folder, seconds):
    with open(folder + "/Busy.java", "w", encoding="ascii") as file:
        file.write(JAVA)
    subprocess.run(["javac", "Busy.java"], cwd=folder, check=True)
    yield from ends_well(["java", "-Xmx64m", "-cp", folder, "Busy"], folder, 4)


GO = """package main

// #include <stdlib.h>
// static int work(int n) { int *p = malloc(n * 4); int i, s = 0;
//   for (i = 0; i < n; i++) p[i] = i; for (i = 0; i < n; i++) s += p[i];
//   free(p); return s; }
import "C"
import ("os"; "os/signal"; "syscall")

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	for i := 0; i < 4; i++ {
		go func() { for { if C.work(1000) != 499500 { os.Exit(9) }
			_ = make([]byte, 4096) } }()
	}
	<-end
}
"""


@program("Go with cgo, 4 busy", "go")
def go(_, folder, seconds):
    with open(folder + "/main.go", "w", encoding="ascii") as file:
        file.write(GO)
    env = dict(os.environ, CGO_ENABLED="1", GOFLAGS="-mod=mod",
               GOCACHE=folder + "/cache", GO111MODULE="off")
    subprocess.run(["go", "build", "-o", "busy", "main.go"], cwd=folder,
                   env=env, check=True)
    yield from ends_well([folder + "/busy"], folder)


# ---- one program -------------------------------------------------------------

def counts(text):
    return [list(map(int, found)) for found in re.findall(
        r"(\d+) mappings (\d+) descriptors (\d+) threads", text)]


def calls(tools, folder, pid, seconds, n=1000000):
    process = subprocess.Popen(
        [tools + "/attach_calls", str(pid), tools + "/libcpprof.so", str(n),
         KINDS % folder], stdout=subprocess.PIPE, text=True)
    try:
        text = process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        process.terminate()
        text = process.communicate()[0]
    return process.returncode, text


def one(name, tools, folder, seconds):
    host = PROGRAMS[name](tools, folder, seconds)
    pid = next(host)
    calls(tools, folder, pid, 120, WARM)
    status, text = calls(tools, folder, pid, seconds)
    fields = dict(re.findall(r"(\w+) ([\d.]+)", text.strip().split("\n")[-1]))
    right, said = next(host)
    before, after = counts(text)[0], counts(text)[-1]
    print("%-24s %6d %3s  %6s %8s  %7s %8s  %-9s %s%s" % (
        name, int(fields.get("calls", 0)) // 2, fields.get("failed"),
        fields.get("held_ms_median"), fields.get("held_ms_max"),
        fields.get("total_ms_median"), fields.get("total_ms_max"),
        "/".join("%+d" % (b - a) for a, b in zip(before, after)),
        "" if right else "WRONG: ", said), flush=True)
    if status:
        print("   ", text.strip().replace("\n", "\n    "), flush=True)
    with contextlib.suppress(StopIteration):
        next(host)
    return right and not status


def main():
    build = os.path.realpath(sys.argv[1])
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60
    names = [name for name in PROGRAMS
             if len(sys.argv) < 4 or name.split(",")[0] in sys.argv[3:] or
             name in sys.argv[3:]]
    right = True
    with tempfile.TemporaryDirectory(prefix="cpprof-cycles-") as folder:
        tools = folder + "/tools"
        os.chmod(folder, 0o755)
        os.mkdir(tools)
        for path in ("libcpprof.so", "tests/e2e/attach_calls",
                     "tests/e2e/attach_host"):
            shutil.copy(os.path.join(build, path), tools)
        print("%-24s %6s %3s  %6s %8s  %7s %8s  %-9s %s" % (
            "program", "rounds", "bad", "held", "longest", "call", "longest",
            "more", "its checker"))
        for i, name in enumerate(names):
            mine = "%s/%d" % (folder, i)
            os.mkdir(mine)
            os.chmod(mine, 0o1777)
            right &= one(name, tools, mine, seconds)
    return not right


sys.exit(main())
