#!/usr/bin/env python3
"""Stacks of Python and C: scripts that know nothing, under the samplers of the
native code, and what the profiles say of them.

    mixed.py PYTHON CPPROF

Prints TAP.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(here, "..", "lua"), os.path.join(here, "..")]
from profile import Profile  # noqa: E402
from tap import at_least, most_ticks, near, Tap  # noqa: E402

python, cpprof = map(os.path.abspath, sys.argv[1:])
library = os.path.join(os.path.dirname(cpprof), "libcpprof.so")
cpu = most_ticks(cpprof)
tap = Tap()
check = tap.none


# Seconds of code that comes and goes under signals.
STRESS_S = float(os.environ.get("STRESS_SECONDS", 8))


def run(*command, env=None, status=0):
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(("PYTHON", "CPPROF", "LD_PRELOAD"))}
    environment.update(env or {})
    done = subprocess.run([str(word) for word in command], env=environment,
                          capture_output=True, text=True, cwd=work)
    if done.returncode != status:
        raise SystemExit("Bail out! %s: %d %s" % (command, done.returncode,
                                                  done.stderr))
    return done.stdout


def preloaded(words, *command, asks="scripts,", **env):
    """With CPPROF=words."""
    return run(python, *command, env=dict(env, CPPROF=asks + words +
                                          ",out=p.pb.gz",
                                          LD_PRELOAD=library))


def profile(name="p.pb.gz", which=1):
    return Profile(os.path.join(work, name), which)


def write(name, text):
    path = os.path.join(work, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def line_of(path, text):
    with open(path) as file:
        for number, line in enumerate(file, 1):
            if text in line:
                return number


def script_only(stack):
    """Names of the frames of Python."""
    return [f[0] for f in stack if f[1].endswith((".py", ">"))]


def under(p, *names):
    """Seconds of stacks that have these functions of Python in a row, leaf side
    first."""
    def has(stack, _):
        frames = script_only(stack)
        return any(frames[i:i + len(names)] == list(names)
                   for i in range(len(frames)))
    return p.time(has) / 1e9


def between(stack, leafward, rootward):
    """Frames between the two, that are in this order; None: they are not."""
    names = [f[0] for f in stack]
    if leafward not in names or rootward not in names:
        return None
    i, j = names.index(leafward), names.index(rootward)
    return stack[i + 1:j] if i < j else None


def until_right(what):
    """On a busy machine chance may have it otherwise."""
    for turn in range(3):
        problems = what(turn)
        if not problems:
            break
    return problems


# ---- shapes -----------------------------------------------------------------

SHAPES = os.path.join(here, "mixed_shapes.py")

# Seconds of CPU time; a name and who must be right above it.
SPENT = [
    (0.1, "work", "rank", "order", "main"),
    (0.1, "dumps", "dump", "main"),
    (0.1, "sub", "match", "main"),
    (0.1, "work", "numbers", "consume"),
    (0.1, "work", "inner", "outer"),
    (0.1, "work", "Thing.__init__", "main"),
    (0.1, "work", "Thing.__call__", "main"),
    (0.1, "work", "Thing.__add__", "main"),
    (0.1, "work", "Thing.field", "main"),
    (0.1, "work", "raises", "catches"),
    (0.1, "work", "catches", "main"),
    (0.1, "work") + 41 * ("recurse",) + ("main",),
    (0.1, "work", "compare", "callbacks"),
    (0.1, "work", "[string]", "main"),
    (0.1, "work", "main.<locals>.<lambda>", "main"),
    (0.1, "work", "first", "Thread.run"),
    (0.1, "work", "second", "Thread.run"),
]

# C code, leaf side first, that stands right below a line of Python.
BELOW = [
    ("deflate", "pack", "# the line of zlib"),
    ("SHA256_Update", "digest", "# the line of hashlib"),
]

# Of the interpreter, and not of the script.
NEVER = {"_PyEval_EvalFrameDefault", "_PyFunction_Vectorcall",
         "_PyEval_Vector", "PyObject_Vectorcall", "_PyObject_MakeTpCall",
         "_PyObject_Call", "PyVectorcall_Call"}


def below(p):
    problems = []
    for native, function, text in BELOW:
        line = line_of(SHAPES, text)

        def stands(stack, _):
            gap = between(stack, native, function)
            return gap is not None and not script_only(gap) and \
                (function, SHAPES, line) in stack
        problems += at_least("%s below %s" % (native, function),
                             p.time(stands) / 1e9, 0.05)
    return problems


def called_back(p):
    """C code stands between the function that is called and who gave it."""
    def has(leafward, rootward, name):
        def stands(stack, _):
            gap = between(stack, leafward, rootward)
            return gap and not script_only(gap) and \
                (not name or name in [f[0] for f in gap])
        return p.time(stands) / 1e9
    return at_least("list_sort below sorted", has("rank", "order", None),
                    0.06) + \
        at_least("qsort below ctypes", has("compare", "callbacks", "qsort_r"),
                 0.06)


def no_machinery(p):
    """In stacks of the script; before it there was no module to know it."""
    left = {}
    for stack, _, _ in p.samples:
        if not {"main", "first", "second"} & {f[0] for f in stack}:
            continue
        for name, _, _ in stack:
            if name in NEVER:
                left[name] = left.get(name, 0) + 1
    return ["%s is left, %d times" % item for item in left.items()]


def apart(p):
    """Each thread its own stack."""
    both = p.time(lambda stack, _: {"first", "second"} <=
                  {f[0] for f in stack} or
                  "main" in {f[0] for f in stack} and
                  {"first", "second"} & {f[0] for f in stack})
    return near("two threads in one stack", both, 0, 0)


def spent(p):
    problems = []
    for seconds, *names in SPENT:
        problems += near(" < ".join(names[:4]), under(p, *names), seconds,
                         0.4 * seconds)
    return problems


KEPT = "shapes.pb.gz"  # the last profile of shapes(), for other readers


def shapes(turn):
    preloaded("cpu=250", SHAPES)
    shutil.copy(os.path.join(work, "p.pb.gz"), os.path.join(work, KEPT))
    p = profile()
    return spent(p) + below(p) + called_back(p) + no_machinery(p) + apart(p)


# ---- truth ------------------------------------------------------------------

SPLIT = """
import sys
def work(n):
    x = 0
    for i in range(n):
        x = (x * 31 + i) % 65537
    return x
def split():
    work(70000)  # seventy
    work(20000)  # twenty
    work(10000)  # ten
for _ in range(int(sys.argv[1])):
    split()
"""


def split(turn):
    path = write("split.py", SPLIT)
    preloaded(cpu, path, 60 << turn)
    p = profile()
    inside = p.time(lambda stack, _: "split" in script_only(stack))
    problems = []
    for word, share in ("seventy", 70), ("twenty", 20), ("ten", 10):
        frame = ("split", path, line_of(path, "# " + word))
        got = p.time(lambda stack, _: frame in stack)
        problems += near(word, 100 * got / inside, share, 2)
    return problems


# ---- wall -------------------------------------------------------------------

WAITS = """
import threading, time
lock = threading.Lock()
def nap():
    time.sleep(1)  # the nap
def wait():
    lock.acquire()  # the wait
lock.acquire()
threads = [threading.Thread(target=f) for f in (nap, wait)]
for thread in threads:
    thread.start()
threads[0].join()
lock.release()
threads[1].join()
"""


def waits(turn):
    path = write("waits.py", WAITS)
    preloaded("wall=100", path)
    p = profile()
    problems = []
    for name in "nap", "wait":
        frame = (name, path, line_of(path, "# the " + name))
        got = p.time(lambda stack, _: frame in stack and
                     "Thread.run" in script_only(stack)) / 1e9
        problems += near(name, got, 1, 0.15)
    return problems


# ---- heap -------------------------------------------------------------------

HEAP = """
from itertools import repeat
kept = []
def make():
    for _ in repeat(None, 5000):
        one = bytes(100)  # small
        kept.append(one)
    for _ in repeat(None, 1000):
        one = bytes(2000)  # large
        kept.append(one)
make()
"""


def heap():
    """A bytes object has 33 bytes more than its contents."""
    path = write("heap.py", HEAP)
    preloaded("heap=1", path, PYTHONMALLOC="malloc")
    space, objects = profile(), profile(which=0)
    problems = []
    for word, n, size in ("small", 5000, 133), ("large", 1000, 2033):
        frame = ("make", path, line_of(path, "# " + word))

        def has(stack, _):
            return frame in stack
        problems += near(word, space.time(has), n * size, 0.01 * n * size)
        problems += near("number of " + word, objects.time(has), n, 0.01 * n)
    return problems


# ---- readers and recorders --------------------------------------------------

def pprof():
    pieces = {"-top": ["Type: cpu", "Thing.__init__", "deflate", "recurse"],
              "-list=^pack$": ["# the line of zlib", "mixed_shapes.py"],
              "-traces": ["callbacks", "qsort_r"]}
    problems = []
    for words, wanted in pieces.items():
        text = run("go", "tool", "pprof", "-nodefraction=0", words, KEPT)
        problems += ["%s has no %s" % (words, piece)
                     for piece in wanted if piece not in text]
    return problems


KILLED = """
import os, time, zlib
def last():
    end = time.thread_time() + 0.5
    while time.thread_time() < end:
        zlib.compress(bytes(100000))
last()
os.kill(os.getpid(), 9)
"""


def killed():
    run(cpprof, "record", "-scripts", "-o", "killed.pb.gz", "--", python,
        write("killed.py", KILLED), status=-signal.SIGKILL)
    p = profile("killed.pb.gz")
    return at_least("last", under(p, "last", work + "/killed.py"), 0.3) + \
        at_least("deflate", p.cum("deflate") / 1e9, 0.1)


UNASKED = """
import os, sys
initial = open("/proc/self/environ").read()
print("PYTHONPATH" in initial + str(os.environ), "cpprof" in sys.modules)
sum(i * i for i in range(1000000))
"""


def not_asked_for():
    """The process that is started and the interpreter are as without us."""
    path = write("unasked.py", UNASKED)
    problems = []
    for words in cpu, cpu + ",heap=1", "wall=200":
        out = preloaded(words, path, asks="")
        if out != "False False\n":
            problems.append("%s: %s" % (words, out))
    out = run(cpprof, "record", "-o", "p.pb.gz", "--", python, path)
    p = profile()
    told = sorted({f[1] for s, v, l in p.samples for f in s} & {path})
    return problems + told + ([] if out == "False False\n" else [out])


# ---- stress -----------------------------------------------------------------

def stress(words, seconds, **env):
    """Does what it does without us, to the last byte."""
    path = os.path.join(here, "mixed_stress.py")
    got = preloaded(words, path, seconds, **env)
    return [] if got == unprofiled else ["printed " + got]


with tempfile.TemporaryDirectory(prefix="cpprof-mixed-") as work:
    check("Python and C in one stack", until_right(shapes))
    check("70/20/10 by line within 2 points", until_right(split))
    check("sleeps and locks by line, wall", until_right(waits))
    check("bytes by line, heap", heap())
    if shutil.which("go"):
        check("go tool pprof reads it", pprof())
    else:
        tap.skip("go tool pprof reads it", "no go")
    check("who is not asked for scripts loads nothing", not_asked_for())
    check("a script that is killed leaves its profile", killed())
    unprofiled = run(python, os.path.join(here, "mixed_stress.py"), 0.5)
    check("code that comes and goes, cpu", stress(cpu, STRESS_S))
    check("code that comes and goes, cpu, wall and heap",
          stress(cpu + ",wall=200,heap=20000", STRESS_S / 2,
                 PYTHONMALLOC="malloc"))
sys.exit(tap.end())
