#!/usr/bin/env python3
"""Scripts under the module for CPython, and what the profiles say of them.

    run.py PYTHON MODULE-FOLDER CPPROF

Prints TAP.
"""
import os
import shutil
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(here, "..", "lua"), os.path.join(here, "..")]
from busy import Beside  # noqa: E402
from profile import Profile  # noqa: E402
from tap import at_least, near, Tap  # noqa: E402

python, folder, cpprof = map(os.path.abspath, sys.argv[1:])
tap = Tap()
check = tap.none
skip = tap.skip


def run(*command, env=None, timeout=None):
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(("PYTHON", "CPPROF", "LD_PRELOAD"))}
    environment["PYTHONPATH"] = folder
    environment.update(env or {})
    done = subprocess.run([str(word) for word in command], env=environment,
                          capture_output=True, text=True, cwd=work,
                          timeout=timeout)
    if done.returncode:
        raise SystemExit("Bail out! %s: %d %s" %
                         (command, done.returncode, done.stderr))
    return done.stdout


def script(name, *words, **how):
    return run(python, os.path.join(here, name), *words, **how)


# ---- truth ------------------------------------------------------------------

# Rounds of some 70 ms of work, each try twice as long as the one before.
ROUNDS = (4, 8, 16, 32, 64, 128, 256)


def shares(p, took):
    """As the script has seen them by the clock of the mode."""
    problems = []
    for name, part in zip(("seventy", "twenty", "ten"), took):
        problems += near(name, 100 * p.cum(name) / p.total(),
                         100 * part / sum(took), 2)
    return problems


def split(mode, hz):
    """Again with more samples, as chance may have it on a busy machine; with no
    more where it is the sum: another had the processor between the profile and
    the clock."""
    i = 0
    for _ in range(12):
        rounds = ROUNDS[min(i, len(ROUNDS) - 1)]
        took = list(map(float, script("split.py", mode, "split.pb.gz", rounds,
                                      hz).split()))
        p = Profile(work + "/split.pb.gz")
        problems = shares(p, took)
        i += bool(problems)
        problems += near("sum", p.total() / 1e6, sum(took) * 1e3,
                         p.period / 1e6)
        if not problems:
            break
        print("# %d rounds, shares by the clock %s, %d samples: %s" %
              (rounds, took, len(p.samples), problems))
    return problems


def naps(n_beside):
    """A moment of CPU time is none of a sleep; which takes 2 in a hundred."""
    with Beside(n_beside):
        for rounds in 50, 100, 200, 400, 800, 1600:
            cpu = float(script("naps.py", "naps.pb.gz", rounds))
            p = Profile(work + "/naps.pb.gz")
            problems = at_least("share of who computes",
                                p.cum("compute") / p.total(), 0.95)
            problems += near("sum", p.total() / 1e6, cpu * 1e3,
                             p.period / 1e6 + 5)
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
    """Time of stacks that have these names of Python functions in a row, leaf
    side first."""
    def has(stack, _):
        frames = [f[0] for f in stack if f[1]]
        return any(frames[i:i + len(names)] == list(names)
                   for i in range(len(frames)))
    return p.time(has)


def above(p, name, caller):
    """The same, of any functions."""
    return p.time(lambda stack, _: (name, caller) in
                  zip([f[0] for f in stack], [f[0] for f in stack[1:]]))


# Seconds of CPU time; a name and who must be right above it.
SHAPES = [
    (0.06, "work", "numbers", "consume"),
    (0.05, "work", "coroutine", "drive"),
    (0.05, "work", "raises", "catches"),
    (0.04, "work", "catches"),
    (0.05, "work", "Thing.__add__"),
    (0.05, "work", "Thing.field"),
    (0.05, "work", "key"),
    (0.05, "work", "outer.<locals>.inner", "outer"),
    (0.05, "work", "shapes.<lambda>"),
    (0.05, "work", "[string]"),
    (0.2, "work", "worker", "Thread.run"),
]


def sleeps(p, mode, wall):
    """A C function that sleeps is on its caller's line; threads count each."""
    line = line_of("shapes.py", "# the line of the nap")
    nap = p.time(lambda stack, _: ("nap", line) in
                 [(f[0], f[2]) for f in stack])
    main = p.time(lambda stack, _: stack[-1][0].endswith("shapes.py"))
    problems = near("nap", nap / 1e9, 0.3, 0.1)
    problems += at_least("sleeper", p.cum("sleeper") / 1e9, 0.4)
    problems += near("main thread", main / 1e9, wall, 0.02)
    if mode == "span":
        problems += near("time.sleep", above(p, "time.sleep", "nap") / 1e9,
                         0.3, 0.1)
        problems += at_least("key under sorted",
                             above(p, "key", "sorted") / 1e9, 0.04)
    return problems


def spent(p, mode, cpu):
    """Of a safepoint that comes late the time is at its place, so CPU time may
    be a few milliseconds off, wall time only more."""
    problems = []
    for seconds, *names in SHAPES:
        got = under(p, *names) / 1e9
        problems += at_least(" < ".join(names), got, 0.7 * seconds)
        if mode == "cpu":
            problems += near(" < ".join(names), got, seconds,
                             0.35 * seconds)
    labelled = p.time(lambda _, labels: labels.get("kind") == "worker" and
                      labels.get("number") == 7)
    problems += at_least("labelled", labelled / 1e9, 0.15)
    if mode == "cpu":
        problems += near("CPU time", p.total() / 1e9, cpu, 0.05 * cpu + 0.03)
    return problems


def shapes(mode):
    """A thread is first seen at a tick, which may be late, too."""
    for _ in range(3):
        wall, cpu = map(float, script("shapes.py", mode,
                                      mode + ".pb.gz").split())
        p = Profile("%s/%s.pb.gz" % (work, mode))
        problems = spent(p, mode, cpu)
        if mode != "cpu":
            problems += sleeps(p, mode, wall)
        if not problems:
            break
    return problems


# ---- the garbage collector --------------------------------------------------

def garbage(mode):
    """It stands above the line that allocated, finalizers above it."""
    collector = "[garbage collection]"
    line = line_of("garbage.py", "# the line that allocates")
    for rounds in ROUNDS:
        part = float(script("garbage.py", mode, "garbage.pb.gz", rounds))
        p = Profile(work + "/garbage.pb.gz")

        def here(stack, wanted):
            names = [f[0] for f in stack]
            return "finalizes" not in names and wanted in names

        problems = near(
            "part of the collector",
            100 * p.time(lambda s, _: here(s, collector)) /
            p.time(lambda s, _: here(s, s[-1][0])), 100 * part, 3)
        problems += at_least("part as it is seen", part, 0.1)
        problems += at_least("on the line that allocates", p.time(
            lambda s, _: any(a[0] == collector and b[0] == "makes" and
                             b[2] == line for a, b in zip(s, s[1:]))), 1)
        problems += at_least(
            "finalizers", above(p, "Finalized.__del__", collector) / 1e9, 0.18)
        if not problems:
            break
        print("# %d rounds: %s" % (rounds, problems))
    return problems


# ---- other profile functions ------------------------------------------------

def hooks():
    """What runs under another is left out, what runs before and after is not,
    to within a quantum. Again where a busy machine made it wait."""
    for _ in range(4):
        problems = hooks_once()
        if not problems:
            break
    return problems


def hooks_once():
    script("hooks.py")
    problems = []
    for name in "restored", "cprofile":
        p = Profile("%s/%s.pb.gz" % (work, name))
        for function, seconds in ("before", 0.2), ("later", 0.4):
            problems += near("%s: %s" % (name, function),
                             p.cum(function) / 1e9, seconds, 0.04)
        problems += ["%s: %s is there" % (name, other) for other in
                     ("hidden", "Profile.enable", "[unwind failed]")
                     if p.cum(other)]
    return problems


# ---- go tool pprof ----------------------------------------------------------

def pprof():
    """-list finds the script; nothing is taken for a C++ template. Of the last
    profile of shapes("tick")."""
    pieces = {"-top": ["File: [python]", "Type: wall", "nap",
                       "outer.<locals>.inner", "shapes.<lambda>", "[string]",
                       "shapes.py"],
              "-list=^nap$": ["# the line of the nap", "shapes.py"],
              "-traces": ["number:  7", "kind:  worker", "Thing.__add__"]}
    problems = []
    for words, wanted in pieces.items():
        text = run("go", "tool", "pprof", "-nodefraction=0", words,
                   "tick.pb.gz")
        problems += ["%s has no %s" % (words, piece)
                     for piece in wanted if piece not in text]
    return problems


# ---- scripts that know nothing ----------------------------------------------

def plain_environment():
    """A folder with a sitecustomize of the user's own."""
    mine = os.path.join(work, "mine")
    os.makedirs(mine, exist_ok=True)
    with open(os.path.join(mine, "sitecustomize.py"), "w") as file:
        file.write("NAME = 'mine'\n")
    return {"PYTHONPATH": mine}


def recorded():
    """What the script and its children see is as without us."""
    env = plain_environment()
    mine = env["PYTHONPATH"]
    printed = run(cpprof, "record", "-t", "cpu,vm", "-o", "plain.pb.gz", "--", python,
                  os.path.join(here, "plain.py"), "child", env=env)
    p = Profile(work + "/plain.vm.pb.gz")
    wanted = "%s False 0 mine\n%s\n" % (mine, mine)
    problems = [] if printed == wanted else ["printed " + printed]
    return problems + at_least("busy", p.cum("busy") / 1e9, 0.15)


def by_variable(mode):
    env = dict(plain_environment(), CPPROF="vm=%s,out=v.pb.gz" % mode,
               LD_PRELOAD=os.path.join(os.path.dirname(cpprof),
                                       "libcpprof.so"))
    script("plain.py", env=env)
    p = Profile(work + "/v.pb.gz")
    problems = at_least("busy", p.cum("busy") / 1e9, 0.15)
    if mode == "span":
        problems += at_least("thread_time", p.cum("time.thread_time"), 1)
    return problems


# As an interpreter without a sitecustomize finds ours: site.py says nothing of
# an ImportError of that name, and prints any other.
FINDS_OURS = """
import os, sys, importlib.machinery, importlib.util, site
sys.path[:] = sys.argv[1:]
site.execsitecustomize()
try:
    import sitecustomize
except ModuleNotFoundError as error:
    print(error.name, "sitecustomize" in sys.modules, "cpprof" in sys.modules,
          sys.path, "CPPROF_PYTHONPATH" in os.environ)
"""


def no_other_sitecustomize():
    problems = []
    for former in {}, {"CPPROF_PYTHONPATH": ""}:
        done = subprocess.run(
            [python, "-I", "-S", "-c", FINDS_OURS,
             os.path.join(folder, "start")],
            env=dict({"PATH": os.environ["PATH"]}, **former),
            capture_output=True, text=True, cwd=work)
        wanted = "sitecustomize False %s [] False\n" % bool(former)
        if done.stdout != wanted or done.stderr or done.returncode:
            problems.append("%s, not %s: %s" % (done.stdout, wanted,
                                                done.stderr))
    return problems


def interface():
    script("interface.py")
    p = Profile(work + "/unstopped.pb.gz")
    return at_least("a profile that nobody stops", p.total(), 1)


with tempfile.TemporaryDirectory(prefix="cpprof-python-") as work:
    check("what is accepted, refused, held and given back", interface())
    for each, rate in ("tick", 1000), ("span", 1000), ("cpu", 250):
        check("70/20/10 within 2 points, mode %s" % each, split(each, rate))
    for n in 0, 4:
        check("who sleeps has no CPU time, %d busy loops beside" % n, naps(n))
    for each in "tick", "span", "cpu":
        check("frames, threads, labels, mode %s" % each, shapes(each))
        check("garbage collection, mode %s" % each, garbage(each))
    check("profile functions of the program stay in force", hooks())
    script("races.py", timeout=120)
    check("start and stop at once, in threads and signal handlers", [])
    if shutil.which("go"):
        check("go tool pprof reads it", pprof())
    else:
        skip("go tool pprof reads it", "no go here")
    check("cpprof record, without touching the script", recorded())
    for each in "tick", "span", "cpu":
        check("CPPROF=vm=%s" % each, by_variable(each))
    check("an interpreter without another sitecustomize says nothing",
          no_other_sitecustomize())
sys.exit(tap.end())
