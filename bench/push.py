#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What pushing all kinds costs: push.py BUILD.

A program of two threads (push.c) alone and with push= to a server here, in
turn, ROUNDS pairs (5) of SECONDS of CPU time (20): CPU time of all of the
process, its end and what it loads included. It pushes by the clock on the wall:
where others use the processors, more often in the same CPU time. So what is
more is also told as a share of the time that passed, of one processor.
"""
import http.server
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))


class Sink(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):  # pylint: disable=invalid-name
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.n += 1
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


def cpu_of(words, **env):
    pid = os.posix_spawn(words[0], words, dict(os.environ, **env))
    _, status, used = os.wait4(pid, 0)
    assert status == 0, status
    return used.ru_utime + used.ru_stime


def main():
    build = os.path.abspath(sys.argv[1])
    pairs = int(os.environ.get("ROUNDS", 5))
    seconds = float(os.environ.get("SECONDS", 20))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    server.n = 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = "http://127.0.0.1:%d" % server.server_address[1]
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "push")
        subprocess.run(["cc", "-O2", "-g", "-fno-builtin", "-pthread",
                        HERE + "/push.c", "-o", program], check=True)
        rounds = 500000
        rounds = str(int(rounds * seconds / cpu_of([program, str(rounds)])))
        ratios = []
        for _ in range(pairs):
            alone = cpu_of([program, rounds])
            began = time.monotonic()
            with_us = cpu_of([program, rounds],
                             LD_PRELOAD=build + "/libcpprof.so",
                             CPPROF="push=" + url)
            ratios.append(with_us / alone)
            passed = time.monotonic() - began
            print("%.2f s alone, %.2f s with push=: %.4f; %.2f %% of %.0f s"
                  % (alone, with_us, ratios[-1],
                     100 * (with_us - alone) / passed, passed), flush=True)
    print("median of %d pairs: %.4f; %d requests" % (
        pairs, statistics.median(ratios), server.n))


main()
