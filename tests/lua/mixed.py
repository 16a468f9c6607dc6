#!/usr/bin/env python3
"""Scripts in the stacks of native profiles, instead of their interpreter.

    mixed.py LUA LIBRARY CPPROF [EMBED MODULE-FOLDER]

Prints TAP. LUA: lua5.4, or lua5.1 and luajit, which are asked for less.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from profile import Profile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(here, ".."))
from tap import most_ticks, near, Tap  # noqa: E402

lua = sys.argv[1]
library, cpprof = map(os.path.abspath, sys.argv[2:4])
embed = list(map(os.path.abspath, sys.argv[4:6]))
is_54 = os.path.basename(lua) == "lua5.4"
path = os.path.join(here, "mixed.lua")
cpu = most_ticks(cpprof)
tap = Tap()
check = tap.none


def run(command, env=None, status=0):
    """status: None: any."""
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(("LUA_", "CPPROF", "LD_PRELOAD"))}
    environment.update(env or {})
    done = subprocess.run([str(word) for word in command], env=environment,
                          capture_output=True, text=True, cwd=work)
    if status is not None and done.returncode != status:
        raise SystemExit("Bail out! %s: %d %s" % (command, done.returncode,
                                                  done.stderr))
    return done.stdout


def preloaded(kinds, *words):
    """The profile of each kind; what the script has printed."""
    out = run(lua.split() + [path] + list(words),
              {"CPPROF": "scripts,%s,out=%%k.pb.gz" % kinds,
               "LD_PRELOAD": library})
    assert out.endswith("done\n"), out
    return out


def recorded(*words, status=0, kinds=()):
    out = run([cpprof, "record", "-scripts", "-o", "cpu.pb.gz", *kinds, "--",
               *lua.split(), path, *words], status=status)
    assert status or out.endswith("done\n"), out
    return out


def profile(kind="cpu", which=0):
    return Profile(os.path.join(work, kind + ".pb.gz"), which)


def line_of(comment):
    with open(path) as file:
        for number, line in enumerate(file, 1):
            if line.rstrip().endswith("-- " + comment):
                return number


def at(p, comment):
    line = line_of(comment)
    return p.time(lambda stack, _: any(f[1] == path and f[2] == line
                                       for f in stack))


def has_in_order(stack, names):
    rest = iter(f[0] for f in stack)
    return all(any(name == wanted for name in rest) for wanted in names)


def under(p, *names):
    return p.time(lambda stack, _: has_in_order(stack, names))


# ---- the run loop, without symbols ------------------------------------------

def largest_function(file):
    text = run(["readelf", "--debug-dump=frames", file], status=None)
    ranges = [(int(a, 16), int(b, 16)) for a, b in
              re.findall(r"pc=([0-9a-f]+)\.\.([0-9a-f]+)", text)]
    return max(ranges, key=lambda r: r[1] - r[0])


def load_bias(file):
    """From a place in the file to an address as readelf has it."""
    for line in run(["readelf", "-lW", file], status=None).splitlines():
        words = line.split()
        if words[:1] == ["LOAD"] and "E" in words[6:8]:
            return int(words[2], 16) - int(words[1], 16)
    return 0


def outwards(native):
    """From the start of the thread to the leaf."""
    return [place for _, place in reversed(native)]


def run_loops(p):
    """Of stacks that come from where the script is called. What runs before it,
    in LUA_INIT, is called elsewhere: our own start is there. A mixed stack lacks
    what is around the run loop, so that others have more between its frames."""
    first, limit = largest_function(lua_file)
    bias = load_bias(lua_file)
    script = os.path.commonprefix(
        [outwards(native) for (stack, _, _), native in zip(p.samples, p.native)
         if any(f[1] == path for f in stack)])
    found = []
    for native in p.native:
        is_there = any(first <= place + bias < limit and
                       os.path.realpath(file) == os.path.realpath(lua_file)
                       for file, place in native)
        rest = iter(outwards(native))
        if is_there and all(place in rest for place in script):
            found.append("run loop: %s" % [hex(place) for _, place in native])
    return found


# ---- CPU --------------------------------------------------------------------

COMMENTS = "seventy", "twenty", "ten"


def took(out, waits):
    """Seconds of each line, as the script saw it: CPU time, or with what it
    waited for a processor."""
    seconds = list(map(float, out.split()[:6]))
    return [cpu + (wait if waits else 0)
            for cpu, wait in zip(seconds[:3], seconds[3:])]


class Shares:
    """Of several runs, as chance may have it on a busy machine."""

    def __init__(self, within):
        self.within, self.total = within, 0
        self.seen, self.took = [0, 0, 0], [0, 0, 0]

    def add(self, p, total, seconds):
        self.total += total
        self.seen = [a + at(p, b) for a, b in zip(self.seen, COMMENTS)]
        self.took = [a + b for a, b in zip(self.took, seconds)]

    def problems(self):
        return sum((near(comment, 100 * seen / self.total,
                         100 * seconds / sum(self.took), self.within)
                    for comment, seen, seconds in
                    zip(COMMENTS, self.seen, self.took)), [])


def shares(collect, kind="cpu", of=None, n=2000000):
    """Each run adds as much as there is."""
    all_of = Shares(2)
    for more in 1, 1, 2, 4, 8, 16, 32:
        out = collect("lines", str(more * n))
        p = profile(kind)
        all_of.add(p, of(p) if of else p.total(), took(out, False))
        problems = all_of.problems()
        if not problems:
            break
        print("# %d steps: %s" % (more * n, problems))
    return problems + run_loops(p)


def order(stack, line, function):
    """Native frames, the function, the line that called it."""
    names = [f[0] for f in stack]
    i = names.index(function) if function in names else 0
    return i > 0 and all(f[1] != path for f in stack[:i]) and \
        stack[i + 1][1:] == (path, line)


def libraries():
    for n in 150, 300, 600, 1200, 2400:
        problems = []
        for what, function, comment in (
                ("texts", "string.gsub", "replaces"),
                ("texts", "string.rep", "repeats"),
                ("sorts", "table.sort", "sorts")):
            preloaded(cpu, what, str(n))
            p = profile()
            line = line_of(comment)
            if not p.time(lambda stack, _: order(stack, line, function)):
                problems.append("nothing in %s at its line" % function)
            native = run_loops(p)
            if native:
                return problems + native
        compares = line_of("compares")
        if not p.time(lambda stack, _: stack[0][1:] == (path, compares) and
                      has_in_order(stack[1:], ["table.sort", "sorts"])):
            problems.append("no comparison below table.sort")
        if not problems:
            break
    return problems


def ways():
    rows = {"index": "meta.__index", "newindex": "meta.__newindex",
            "add": "meta.__add", "lt": "meta.__lt", "eq": "meta.__eq",
            "len": "meta.__len", "concat": "meta.__concat",
            "call": "meta.__call", "close": "meta.__close",
            "closed_by_error": "meta.__close", "pcall": "pcall",
            "tail": "(...tail calls...)", "iterator": None,
            "replace": "string.gsub", "compare": "table.sort",
            "wrap": "coroutine.wrap", "resume": "coroutine.resume",
            "load": '[string "local burn, n = ... burn(n) return 1"]'}
    rest = dict(rows)
    nested = None
    n = 100000
    for _ in range(5):
        preloaded(cpu, "all", str(n))
        p = profile()
        for way, name in list(rest.items()):
            names = [name] if name else []
            if way != "tail":
                names += ["ways." + way]
            if under(p, "burn", *names, "all"):
                del rest[way]
        nested = nested or under(p, "burn", "coroutine.wrap", "table.sort",
                                 "coroutine.resume", "ways.resume", "all")
        if nested and not rest:
            break
        n *= 2
    return ["not seen: " + way for way in rest] + run_loops(p) + \
        ([] if nested else ["no coroutine in a coroutine"])


def collector():
    preloaded(cpu, "litter", "600000")
    p = profile()
    line = line_of("litters")
    found = p.time(lambda stack, _: any(
        a[0] == "[garbage collection]" and b[1:] == (path, line)
        for a, b in zip(stack, stack[1:])))
    return [] if found > p.total() / 5 else \
        ["collector at its line: %s of %s" % (found, p.total())]


def read_by_go():
    preloaded(cpu, "texts", "150")
    problems = []
    for option, wanted in (("-top", "string.gsub"), ("-traces", "string.rep"),
                           ("-list=^texts$", r"ms .*-- replaces")):
        text = run(["go", "tool", "pprof", option, "cpu.pb.gz"])
        if not re.search(wanted, text):
            problems.append("%s: %s" % (option, text[:300]))
    return problems


def after_kill():
    recorded("killed", "3000000", status=-signal.SIGKILL)
    p = profile()
    return [] if at(p, "seventy") > p.total() / 3 else ["no lines of a script"]


# ---- the others -------------------------------------------------------------

TEXT = 24 + 1001
CLOSURE = 32 + 8 + 40


def heap_lines():
    """Sizes of Lua 5.4 for 64 bits. Tables are at the line of the call before
    them, which is the last place that Lua has noted."""
    n = 5000
    preloaded("heap=1", "memory", str(n))
    p = profile("heap", 1)
    sizes = {"text": TEXT + 56 + (56 + 3 * 16) + (56 + 2 * 24),
             "closure": CLOSURE, "grows": 16}
    problems = []
    for comment, size in sizes.items():
        problems += near(comment, at(p, comment), n * size, n * size * 0.01)
    # 1000 and the digits of a number; numbers become texts first.
    joined = at(p, "joined") / n
    if not 24 + 1002 <= joined <= 24 + 1006 + 64:
        problems.append("joined: %s" % joined)
    return problems


def heap_samples():
    """The same by samples, within what chance allows."""
    preloaded("heap=2048", "memory", "50000")
    p = profile("heap", 1)
    wanted = (TEXT + 56 + 104 + 104) / CLOSURE
    return near("texts and tables for each byte of closures",
                at(p, "text") / at(p, "closure"), wanted, 0.15 * wanted)


def wall():
    def running(p):
        return p.time(lambda stack, _: any(f[1] == path for f in stack))
    # A thread that runs answers at the kernel's tick: 250 samples a second.
    problems = shares(lambda *words: preloaded("wall=1000", *words), "wall",
                      running, 8000000)
    p = profile("wall")
    return problems + ([] if running(p) > p.total() / 10
                       else ["%s of %s" % (running(p), p.total())])


def embedded():
    """Of several runs, as above. The host's own profile is of wall time."""
    program, folder = embed
    all_of = {"cpu": Shares(3), "own": Shares(3)}
    for n in 4000000, 4000000, 8000000, 16000000, 32000000:
        out = run([program, path, "own.pb.gz"],
                  {"CPPROF": cpu + ",out=cpu.pb.gz", "LD_PRELOAD": library,
                   "LUA_CPATH": folder + "/?.so", "N": str(n)})
        for kind, shares_of in all_of.items():
            p = profile(kind)
            shares_of.add(p, p.total(), took(out, kind == "own"))
        problems = sum((s.problems() for s in all_of.values()), [])
        if not problems:
            break
    return problems


def stays_native():
    preloaded(cpu + ",heap=1", "lines", "6000000")
    p = profile()
    return ["a frame of the script"] if at(p, "seventy") else []


def not_asked_for():
    """Nobody's variables are changed, and a script is C code."""
    problems = []
    for words in "cpu", "cpu,heap", "wall":
        out = run([*lua.split(), "-e",
                   "print(os.getenv 'CPPROF_LUA_INIT', os.getenv 'LUA_INIT', "
                   "os.getenv 'LUA_INIT_5_4', package.loaded.cpprof)"],
                  {"CPPROF": words + ",out=%k.pb.gz", "LD_PRELOAD": library})
        if out.split() != ["nil"] * 4:
            problems.append("%s: %s" % (words, out))
    run([cpprof, "record", "-o", "cpu.pb.gz", "--", *lua.split(), path,
         "lines", "3000000"])
    p = profile()
    return problems + (["lines of a script"] if at(p, "seventy") else []) + \
        (["a vm.pb.gz"] if "cpu.vm.pb.gz" in os.listdir(work) else [])


def main():
    check("who is not asked for scripts loads nothing", not_asked_for())
    if "luajit" in lua:
        check("LuaJIT has native stacks", stays_native())
    else:
        check("lines have their shares, preloaded",
              shares(lambda *words: preloaded(cpu, *words)))
        check("script, function of a library, native frames", libraries())
        check("the collector is seen at the line that makes garbage",
              collector())
    if is_54:
        check("lines have their shares, recorded",
              shares(lambda *words: recorded(*words, kinds=("-F", "1000", "-e", cpu.partition("engine=")[2] or "auto"))))
        check("whatever calls whatever, the run loop is not seen", ways())
        check("a line has the bytes it allocates", heap_lines())
        check("... and by samples about that", heap_samples())
        check("lines have their shares of the time that runs", wall())
        check("go tool pprof reads it", read_by_go())
        check("a script that is killed has its profile", after_kill())
    if embed:
        check("a host that embeds Lua has lines in its profile", embedded())
    return tap.end()


lua_file = shutil.which(lua.split()[0])
work = tempfile.mkdtemp(prefix="cpprof-mixed.")
try:
    if not shutil.which("go") or not shutil.which("readelf"):
        print("1..0 # SKIP no go tool pprof, or no readelf")
        sys.exit(0)
    sys.exit(main())
finally:
    shutil.rmtree(work)
