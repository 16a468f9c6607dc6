#!/usr/bin/env python3
"""What profiling Python code costs: python.py BUILD, ROUNDS= in the environment

CPU time (user and system) of a piece of work in python3.11, as a ratio to that
without a profiler: the least of all rounds of each, as other programs on the
machine only add. cProfile is the peer of mode span: it counts every call, too.
"""
import os
import subprocess
import sys
import tempfile

PYTHON = "/usr/bin/python3.11"
WORK = r'''
import sys, time
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def calls():
    fib(31)
def loops():
    x = 0
    for i in range(3000000):
        x = (x * 31 + i) % 65537
def strings():
    for _ in range(160):
        parts = []
        for i in range(10000):
            parts.append("line %d" % i)
        "\n".join(parts)
def sorting():
    for n in range(40):
        sorted(((i * 7919) % 20011 for i in range(30000)), key=lambda x: -x)
def pingpong():
    def echo():
        got = None
        while True:
            got = yield got
    e = echo()
    next(e)
    for i in range(3000000):
        e.send(i)
work, mode, out = sys.argv[1:]
if mode == "cProfile":
    import cProfile
    profile = cProfile.Profile()
    profile.enable()
elif mode == "empty hook":
    import empty_profile
elif mode != "alone":
    import cpprof
    if mode != "off":
        name, hz = mode.split("@")
        cpprof.start(mode=name, hz=int(hz), out=out)
before = time.process_time()
globals()[work]()
after = time.process_time()
if mode == "cProfile":
    profile.disable()
else:
    sys.setprofile(None)
if "@" in mode:
    cpprof.stop()
print(after - before)
'''
MODES = ["alone", "alone ~", "off", "tick@100", "tick@1000", "cpu@100",
         "span@100", "empty hook", "cProfile"]


def cpu_seconds(folder, work, mode):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("CPPROF", "PYTHON", "LD_PRELOAD"))}
    env["PYTHONPATH"] = "%s/bindings/python:%s/bench/python" % (
        (sys.argv[1],) * 2)
    return float(subprocess.run(
        [PYTHON, "-c", WORK, work, mode.replace(" ~", ""), folder + "/out.pb.gz"],
        env=env, check=True, capture_output=True, text=True).stdout)


def row(folder, work, rounds):
    seconds = {mode: [] for mode in MODES}
    for _ in range(rounds):
        for mode in MODES:
            seconds[mode].append(cpu_seconds(folder, work, mode))
    least = {mode: min(values) for mode, values in seconds.items()}
    print("%-9s %5.3f s" % (work, least["alone"]), end="")
    for mode in MODES[1:]:
        print("  %s %.3f" % (mode.replace("@", " ").replace(" ~", ", again"),
                             least[mode] / least["alone"]), end="")
    print(flush=True)


def main():
    rounds = max(int(os.environ.get("ROUNDS", "15")), 2)
    with tempfile.TemporaryDirectory(prefix="cpprof-bench-") as folder:
        for work in "calls", "loops", "strings", "sorting", "pingpong":
            row(folder, work, rounds)


if __name__ == "__main__":
    main()
