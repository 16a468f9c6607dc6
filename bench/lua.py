#!/usr/bin/env python3
"""What profiling a script costs: lua.py BUILD, ROUNDS= in the environment

CPU time (user and system) of lua5.4, as a ratio to that of the script alone in
the same round; the median and its standard error. Asked: tick at most 1.01,
span at most 1.5 of an empty hook.
"""
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

build = os.path.abspath(sys.argv[1])
rounds = int(os.environ.get("ROUNDS", 15))
here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lua")
work = tempfile.mkdtemp(prefix="cpprof-lua.")
module = build + "/bindings/lua/5.4/?.so"
ours = ["lua5.4", "-lcpprof"]
library = build + "/libcpprof.so.1"
CPU = "cpu=1000,symbolize=none,out=%s/c.pb.gz" % work
HEAP = "heap,symbolize=none,out=%s/h.pb.gz" % work


def native(words):
    return ["lua5.4"], {"LD_PRELOAD": library, "CPPROF": words}


# name: words in front of the script, environment
ROWS = {
    "alone": (["lua5.4"], {}),
    "alone, again": (["lua5.4"], {}),
    "module loaded, off": (ours, {}),
    "tick, 100 Hz": (ours, {"CPPROF": "vm=100,out=%s/t.pb.gz" % work}),
    "tick, 1000 Hz": (ours, {"CPPROF": "vm=1000,out=%s/t.pb.gz" % work}),
    "cpu, 100 Hz": (ours, {"CPPROF": "vm=cpu,out=%s/t.pb.gz" % work}),
    "span": (ours, {"CPPROF": "vm=span,out=%s/t.pb.gz" % work}),
    "CPU profile, 1000 Hz": native(CPU),
    "the same, mixed": native(CPU + ",scripts"),
    "heap profile": native(HEAP),
    "the same, by line": native(HEAP + ",scripts"),
    "empty hook": (["lua5.4", "-lempty_hook"], {}),
    "count hook in Lua": (["lua5.4", "-lhook_profiler"], {}),
}
JIT = {
    "luajit alone": (["luajit"], {}),
    "luajit -jp": (["luajit", "-jp=f,%s/jp.txt" % work], {}),
}


def cpu_seconds(words, extra, script):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("CPPROF", "LUA_", "LD_PRELOAD"))}
    env.update(extra, LUA_CPATH="%s;%s/bench/lua/?.so" % (module, build),
               LUA_PATH=here + "/?.lua;;")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words + [script], env=env, check=True,
                   stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def middle(values):
    low, median, high = statistics.quantiles(values, n=4)
    return median, (high - low) / 1.35 * 1.25 / len(values) ** 0.5


def table(rows, base, script):
    path = os.path.join(here, script + ".lua")
    times = {name: [] for name in rows}
    for _ in range(rounds):
        for name, (words, extra) in rows.items():
            times[name].append(cpu_seconds(words, extra, path))
    out = {}
    for name in rows:
        ratio, error = middle([a / b for a, b in
                               zip(times[name], times[base])])
        out[name] = (ratio, error, statistics.median(times[name]))
        print("  %-20s %7.3f s  %7.3f +- %.3f" %
              (name, out[name][2], ratio, error), flush=True)
    return out


def main():
    for script in "fib", "queens", "strings", "sort", "pingpong":
        print(script)
        out = table(ROWS, "alone", script)
        span, empty = out["span"][0], out["empty hook"][0]
        print("  span beside an empty hook: %.2f (asked: 1.5)%s" %
              (span / empty, "!" if span > 1.5 * empty else ""))
        tick, error, _ = out["tick, 100 Hz"]
        if tick - 2 * error > 1.01:
            print("  tick: more than 1.01!")
        if shutil.which("luajit") and subprocess.run(
                ["luajit", "-jp=f", "-e", ""], capture_output=True
                ).returncode == 0:
            table(JIT, "luajit alone", script)


try:
    main()
finally:
    shutil.rmtree(work)
