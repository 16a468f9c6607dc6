#!/usr/bin/env python3
"""What a request costs the program that is asked, and what the server takes.

    http_requests.py BUILD [REQUESTS]

redis-server with its heap, block and mutex profiles on, 200 000 keys in it and
no load. CPU time is that of the whole process, by its own clock.
"""
import http.client
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

LIBRARY = os.path.join(os.path.abspath(sys.argv[1]), "libcpprof.so")
REQUESTS = int(sys.argv[2]) if len(sys.argv) > 2 else 40
PATHS = ["", "ui", "cmdline", "heap", "allocs", "heap?debug=1", "block",
         "mutex", "goroutine", "goroutine?debug=2", "threadcreate",
         "delta_heap", "profile?seconds=1", "wall?seconds=1"]
TICK = os.sysconf("SC_CLK_TCK")


class Redis:
    def __init__(self, words):
        os.makedirs("data", exist_ok=True)
        self.socket = os.path.abspath("data/s")
        self.process = subprocess.Popen(
            ["./redis-server", "--port", "0", "--unixsocket", self.socket,
             "--save", "", "--dir", os.path.abspath("data")],
            env=dict(os.environ, LD_PRELOAD=LIBRARY, CPPROF=words),
            stdout=subprocess.DEVNULL)
        while not os.path.exists(self.socket):
            time.sleep(0.05)
        subprocess.run(["redis-benchmark", "-s", self.socket, "-q", "-r",
                        "200000", "-n", "200000", "-c", "20", "-P", "16",
                        "-t", "set,lpush"], stdout=subprocess.DEVNULL,
                       check=True)

    def cpu(self):
        with open("/proc/%d/stat" % self.process.pid) as file:
            words = file.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / TICK

    def memory(self):
        """Anonymous and of files, MB."""
        with open("/proc/%d/status" % self.process.pid) as file:
            found = dict(line.split(":") for line in file)
        return [int(found[name].split()[0]) / 1024
                for name in ("RssAnon", "RssFile")]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        if os.path.exists(self.socket):
            os.unlink(self.socket)


def ask(port, path):
    began = time.monotonic()
    c = http.client.HTTPConnection("127.0.0.1", port)
    c.request("GET", "/debug/pprof/" + path)
    body = c.getresponse().read()
    c.close()
    return len(body), (time.monotonic() - began) * 1000


def row(redis, port, path):
    n = 3 if "seconds" in path else REQUESTS
    ask(port, path)
    before = redis.cpu()
    found = [ask(port, path) for _ in range(n)]
    cpu = (redis.cpu() - before) * 1000 / n
    took = statistics.median(t for _, t in found)
    if "seconds" in path:
        took -= 1000
    print("%-22s %8d bytes  %7.1f ms  %6.2f ms of CPU time" % (
        path or "the index", found[-1][0], took, cpu), flush=True)


def say_memory(redis, what):
    print("%-34s %6.1f MB, and %5.1f MB of files" % (what, *redis.memory()),
          flush=True)


def main():
    tool = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        os.symlink(os.path.realpath(tool), "redis-server")
        redis = Redis("heap,block,mutex,out=%s/out" % scratch)
        say_memory(redis, "without a server")
        redis.end()
        redis = Redis("heap,block,mutex,http=127.0.0.1:%d" % port)
        say_memory(redis, "with one, nothing asked yet")
        ask(port, "mutex")
        say_memory(redis, "after the first profile")
        for path in PATHS:
            row(redis, port, path)
        say_memory(redis, "after all of these")
        time.sleep(8)
        say_memory(redis, "some seconds later")
        redis.end()
        os.chdir("/")


main()
