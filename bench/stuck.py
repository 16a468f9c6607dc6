#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How soon a deadlock is told of a process with a large heap, and how long the
process stands still for it, beside gdb: stuck.py BUILD.

SIZES="100 1000 4000" are MB, THREADS=10 sleep beside, ROUNDS=5 is how often each
is done. gdb prints the stacks of all threads; a person has to find in them who
waits for whom.
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS = int(os.environ.get("ROUNDS", "5"))


class Program:
    def __init__(self, path, size, **env):
        self.process = subprocess.Popen(
            [path, size, os.environ.get("THREADS", "10")], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=dict(os.environ, **env))
        self.pid = str(self.process.pid)
        self.told = []  # when
        threading.Thread(target=self.listen, daemon=True).start()
        self.process.stdout.readline()

    def listen(self):
        for line in self.process.stderr:
            if "can never go on" in line:
                self.told.append(time.monotonic_ns())

    def ask(self, word):
        print(word, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def end(self):
        self.process.kill()
        self.process.wait()


def told(path, size, library):
    """Seconds from a deadlock to the word of it."""
    program = Program(path, size, LD_PRELOAD=library, CPPROF="deadlock=report")
    took = []
    for i in range(ROUNDS):
        made = program.ask("cross")
        end = time.monotonic() + 60
        while len(program.told) <= i and time.monotonic() < end:
            time.sleep(0.001)
        if len(program.told) <= i:
            sys.exit("stuck.py: a deadlock was not told in a minute")
        took.append((program.told[i] - made) / 1e9)
    program.end()
    return took


def asked(path, size, words, says):
    """Seconds that a command takes, and the program stands still."""
    took, late = [], []
    for _ in range(ROUNDS):
        program = Program(path, size)
        program.ask("cross")
        program.ask("late")
        begun = time.monotonic()
        text = subprocess.run([word.replace("PID", program.pid)
                               for word in words], capture_output=True,
                              text=True, check=False).stdout
        took.append(time.monotonic() - begun)
        late.append(program.ask("late") / 1000)
        program.end()
        if says not in text:
            sys.exit("stuck.py: %s does not say '%s'" % (words[0], says))
    return took, late


def line(size, what, took, late=None):
    print("%6s MB  %-34s %6.2f  %.2f to %.2f" % (
        size, what, statistics.median(took), min(took), max(took)) +
          ("   %6.3f  %.3f to %.3f" % (statistics.median(late), min(late),
                                       max(late)) if late else ""),
          flush=True)


def main():
    build = os.path.abspath(sys.argv[1])
    print("%9s  %-34s %s   %s" % ("heap", "", "seconds: median, range",
                                  "stands still: median, range"))
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/stuck"
        subprocess.run(["cc", "-O2", "-g", "-pthread", HERE + "/stuck.c", "-o",
                        path], check=True)
        for size in os.environ.get("SIZES", "100 1000 4000").split():
            line(size, "CPPROF=deadlock=report",
                 told(path, size, build + "/libcpprof.so"))
            rows = [("cpprof threads -stuck -p PID",
                     [build + "/cpprof", "threads", "-stuck", "-p", "PID"],
                     "deadlock 1, of 2 threads")]
            if shutil.which("gdb"):
                rows.append(("gdb, thread apply all bt",
                             ["gdb", "-p", "PID", "-batch", "-nx", "-ex",
                              "thread apply all bt"], "cross"))
            for name, words, says in rows:
                line(size, name, *asked(path, size, words, says))


if __name__ == "__main__":
    main()
