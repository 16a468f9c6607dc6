#!/usr/bin/env python3
"""Scripts under the module, and what the profiles say of them.

    run.py LUA MODULE-FOLDER [CPPROF NAPS-FOLDER]

Prints TAP. LUA: lua5.4, or one of those with the C API of 5.1, which is asked
for less.
"""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

from profile import Profile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(here, ".."))
from busy import Beside  # noqa: E402
from tap import at_least, near, Tap  # noqa: E402

lua, folder = sys.argv[1], sys.argv[2]
cpprof = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None
naps_folder = sys.argv[4] if len(sys.argv) > 4 else None
is_54 = os.path.basename(lua) == "lua5.4"
tap = Tap()
check = tap.none
skip = tap.skip


def run(*command, env=None, fails=False):
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(("LUA_", "CPPROF", "LD_PRELOAD"))}
    environment["LUA_CPATH"] = folder + "/?.so"
    environment.update(env or {})
    done = subprocess.run([str(word) for word in command], env=environment,
                          capture_output=True, text=True, cwd=work)
    if done.returncode and not fails:
        raise SystemExit("Bail out! %s: %s" % (command, done.stderr))
    return done.stdout


def script(name, *words, **how):
    return run(*lua.split(), os.path.join(here, name), *words, **how)


# ---- the test that Starlark has ---------------------------------------------

def sum_is_wall(p, mode):
    if mode == "cpu":
        return at_least("wall beside cpu", p.duration_ns * 1.01, p.total())
    return near("sum", p.total() / 1e6, p.duration_ns / 1e6,
                p.period / 1e6 + 1)


def fibonacci(mode):
    """Again with a longer run, as a busy machine may take the processor away
    between a point and the clock."""
    for n in (32, 34, 36):
        script("fibonacci.lua", mode, "fib.pb.gz", n)
        p = Profile(work + "/fib.pb.gz")
        problems = sum_is_wall(p, mode) + at_least(
            "share of fibonacci", p.cum("fibonacci") / p.total(), 0.9)
        if not problems:
            break
    top = run("go", "tool", "pprof", "-top", "fib.pb.gz")
    return problems + ["-top has no " + word
                       for word in ("flat%", "fibonacci", "fibonacci.lua",
                                    "Type: cpu" if mode == "cpu" else
                                    "Type: wall")
                       if word not in top]


# ---- truth ------------------------------------------------------------------

def split(mode, hz):
    """As the script has seen it. With more time added, as chance may have it on
    a busy machine."""
    total, seen, took = 0, collections.Counter(), [0, 0, 0]
    for rounds in (4, 4, 8, 16, 32, 64, 128):
        out = script("split.lua", mode, "split.pb.gz", rounds, hz)
        took = [a + float(b) for a, b in zip(took, out.split())]
        p = Profile(work + "/split.pb.gz")
        problems = []
        total += p.total()
        for name, part in zip(("seventy", "twenty", "ten"), took):
            seen[name] += p.cum(name)
            problems += near(name, 100 * seen[name] / total,
                             100 * part / sum(took), 2)
        problems += sum_is_wall(p, mode)
        if not problems:
            break
        print("# %d rounds, %s by the clock: %s" % (rounds, took, problems))
    return problems


def cpu_naps(n_beside):
    """A moment of CPU time is none of a sleep; which takes 2 in a hundred."""
    with Beside(n_beside):
        for rounds in 50, 100, 200, 400, 800, 1600:
            script("cpu_naps.lua", naps_folder, "naps.pb.gz", rounds)
            p = Profile(work + "/naps.pb.gz")
            problems = at_least("share of who computes",
                                p.cum("compute") / p.total(), 0.95)
            if not problems:
                break
    return problems


# ---- shapes -----------------------------------------------------------------

def line_of(name, text):
    with open(os.path.join(here, name)) as file:
        for number, line in enumerate(file, 1):
            if text in line:
                return number


def under(p, *names):
    """Time of stacks that have these names in a row, leaf side first."""
    def has(stack, _):
        frames = [f[0] for f in stack]
        return any(frames[i:i + len(names)] == list(names)
                   for i in range(len(frames)))
    return p.time(has)


def shapes(mode):
    """By ticks, of time or of the processor's, what is short may have none. The
    sum is off where another had the processor between the profile and a clock."""
    for _ in range(3):
        problems = shapes_of(mode)
        if not problems or mode == "span" and \
                any(not each.startswith("sum") for each in problems):
            break
    return problems


def shapes_of(mode):
    """Each of some milliseconds, in which a fast machine may have no tick: then
    of more."""
    for n in 1000000, 4000000, 16000000:
        problems = shapes_that_work(mode, n)
        if not problems:
            break
    return problems


def shapes_that_work(mode, n):
    out = script("shapes.lua", mode, "shapes.pb.gz", 1000, n)
    p = Profile(work + "/shapes.pb.gz")
    main = "shapes.lua"
    body = "body"
    anonymous = ["function %s:%d" % (short(), line_of("shapes.lua", text))
                 for text in ("coroutine.create(function",
                              "pcall(function() work")]
    rows = {
        "metamethod": ("work", "__add", path()),
        "method": ("work", "thing:method", path()),
        "field": ("work", "M.inner.deep", path()),
        "tail call": ("work", "(...tail calls...)", path()),
        "coroutine": ("work", body, "coroutine.wrap", path()),
        "coroutine in a coroutine":
            ("work", body, "coroutine.wrap", anonymous[0],
             "coroutine.resume", path()),
        "pcall": ("work", anonymous[1], "pcall", path()),
        "after errors": ("work", path()),
        "garbage": ("collectgarbage", path()),
    }
    problems = []
    for what, names in rows.items():
        problems += at_least(what, under(p, *names), 1)
    sleep = line_of("shapes.lua", "-- sleeps")
    if mode != "cpu":
        problems += at_least("C function", under(p, "os.execute", path()), 1)
        problems += near("the sleep, ms", p.time(
            lambda stack, _: len(stack) > 1 and stack[0][0] == "os.execute" and
            stack[1][2] == sleep) / 1e6, 400, 102)
    stripped = p.time(lambda stack, _: stack[0][1] == "?")
    chunk = p.time(lambda stack, _: stack[0][0].startswith("[string"))
    problems += at_least("stripped", stripped, 1)
    problems += at_least("chunk of a string", chunk, 1)
    if "handled" not in out or "nil value" not in out:
        problems.append("output: " + out)
    if any(f[1] == "" and f[2] for s in p.samples for f in s[0]):
        problems.append("a line without a file")
    return problems + sum_is_wall(p, mode)


def path():
    return os.path.join(here, "shapes.lua")


def short():
    """short_src: 59 characters at most, the end of a longer path."""
    text = path()
    return text if len(text) < 60 else "..." + text[-56:]


def listing():
    text = run("go", "tool", "pprof", "-list", "^work$", "shapes.pb.gz")
    traces = run("go", "tool", "pprof", "-traces", "shapes.pb.gz")
    problems = [] if re.search(r"ms .*for i = 1, n do x = x \+ i", text) else \
        ["no time beside the loop: " + text]
    return problems + (["-traces: " + traces[:200]]
                       if "coroutine.wrap" not in traces else [])


# ---- what the program sees --------------------------------------------------

def behaviour(mode):
    alone = script("behaviour.lua", "none").splitlines()
    under_ = script("behaviour.lua", mode, "b.pb.gz").splitlines()
    return ["%s, not %s" % pair
            for pair in zip(under_, alone) if pair[0] != pair[1]] or \
        near("lines", len(under_), len(alone), 0)


def sleeps(how, hz):
    """Who falls asleep as a tick looks may be woken: a few in a hundred, on a
    busy machine. All of them were, once."""
    out = script("naps.lua", naps_folder, how, 40, 50, 1000, "tick",
                 "naps.pb.gz", hz)
    p = Profile(work + "/naps.pb.gz")
    line = line_of("naps.lua", "-- sleeps")
    slept = p.time(lambda stack, _: len(stack) > 1 and stack[1][2] == line and
                   stack[0][0] == "naps." + how)
    return near("sleeps cut short", sum(map(int, out.split())), 0, 8) + \
        at_least("share of the line that sleeps", slept / p.total(), 0.9) + \
        sum_is_wall(p, "tick")


def interface():
    out = script("interface.lua", work)
    problems = [] if "done" in out else [out]
    p = Profile(work + "/labels.pb.gz")

    def spun(text, labels):
        line = line_of("interface.lua", text)
        return at_least(text, p.time(
            lambda stack, found: found == labels and
            any(f[2] == line for f in stack)), 1)

    rows = [("-- without", {}), ("-- outer alone", {"outer": "o"}),
            ("n = 7}, spin", {"outer": "o", "inner": "i", "n": 7}),
            ("-- in the task", {"task": "t"}),
            ("-- in the task, later", {"task": "t"}),
            ("-- while the task waits", {}),
            ("-- after the task", {"other": "x"})]
    for row in rows:
        problems += spun(*row)
        line = line_of("interface.lua", row[0])
        wrong = {str(l) for s, v, l in p.samples if l != row[1]
                 and len(s) > 1 and s[0][0] == "spin" and s[1][2] == line}
        problems += ["%s: also %s" % (row[0], w) for w in wrong]
    own = run("go", "tool", "pprof", "-raw", "files.pb.gz")
    if "files/count" not in own:
        problems.append(own[:200])
    return problems


# ---- without a word in the script -------------------------------------------

def by_environment():
    fib = os.path.join(here, "plain.lua")
    problems = []
    out = run(*lua.split(), "-lcpprof", fib,
              env={"CPPROF": "vm=span,out=e.pb.gz", "LUA_INIT": "former = 1"})
    p = Profile(work + "/e.pb.gz")
    problems += at_least("-lcpprof", p.cum("work"), 1)
    if out.split() != ["1", "former", "=", "1", "nil"]:
        problems.append("LUA_INIT after -lcpprof: " + out)
    return problems


def recorded():
    fib = os.path.join(here, "plain.lua")
    out = run(cpprof, "record", "-t", "cpu,vm", "-o", "r.pb.gz", "--",
              *lua.split(), fib,
              env={"LUA_INIT": "former = 1"})
    p = Profile(work + "/r.vm.pb.gz")
    problems = at_least("record", p.cum("work") / p.total(), 0.8)
    if out.split() != ["1", "former", "=", "1", "nil"]:
        problems.append("LUA_INIT under record: " + out)
    if not os.path.exists(work + "/r.pb.gz"):
        problems.append("no CPU profile")
    run(cpprof, "record", "-t", "vm,cpu", "-o", "none.pb.gz", "--", "true")
    if os.path.exists(work + "/none.vm.pb.gz"):
        problems.append("a file where there is no interpreter")
    run(cpprof, "record", "-t", "cpu,vm", "-o", "c.pb.gz", "--", "sh", "-c",
        "%s %s; true" % (lua, fib))
    if not [n for n in os.listdir(work)
            if re.fullmatch(r"c\.vm\.lua5\.4\.\d+\.pb\.gz", n)]:
        problems.append("no file of a script that a shell started")
    return problems


def main():
    modes = ["tick", "span", "cpu"]
    for mode in modes:
        check("fibonacci is seen in mode " + mode, fibonacci(mode))
    # So often that two points are many samples after a second or two.
    for mode, hz in ("tick", 1000), ("span", 1000), ("cpu", 1000):
        check("70, 20 and 10 are that in mode %s at %d Hz" % (mode, hz),
              split(mode, hz))
    if is_54:
        for mode in modes:
            check("stacks have their shapes in mode " + mode, shapes(mode))
        check("go tool pprof lists lines of the script", listing())
        for mode in modes:
            check("a program behaves as without us in mode " + mode,
                  behaviour(mode))
        for how, hz in ("nap", 100), ("nap", 1000), ("poll", 100):
            if naps_folder:
                check("a tick at %d Hz ends no %s of a C function" % (hz, how),
                      sleeps(how, hz))
        for n in 0, 4:
            if naps_folder:
                check("who sleeps has no CPU time, %d busy loops beside" % n,
                      cpu_naps(n))
        check("functions of the module do what they say", interface())
    check("CPPROF profiles a script with -lcpprof", by_environment())
    if cpprof:
        check("record shows a script that knows nothing of it", recorded())
    return tap.end()


work = tempfile.mkdtemp(prefix="cpprof-lua.")
try:
    if not shutil.which("go"):
        print("1..0 # SKIP no go tool pprof")
        sys.exit(0)
    status = main()
finally:
    shutil.rmtree(work)
sys.exit(status)
