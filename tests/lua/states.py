#!/usr/bin/env python3
"""Profiles of what lua_states does with states, beside its own clock.

    states.py LUA MODULE-FOLDER LUA_STATES

Prints TAP.
"""
import os
import shutil
import subprocess
import sys
import tempfile

from profile import Profile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(here, ".."))
from tap import Tap  # noqa: E402

lua, folder, program = [os.path.abspath(path) for path in sys.argv[1:4]]
tap = Tap()


def run(*command):
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(("LUA_", "CPPROF", "LD_PRELOAD"))}
    environment["LUA_CPATH"] = folder + "/?.so"
    return subprocess.run([str(word) for word in command], env=environment,
                          capture_output=True, text=True, cwd=work,
                          timeout=100)


def times(out):
    told = {}
    for line in out.splitlines():
        name, seconds = line.split()
        told[name] = told.get(name, 0) + float(seconds)
    return told


def compare(p, told, within, may_lack=()):
    """Each function has what it took, within a part of all; or less."""
    total = sum(told.values())
    problems = []
    for name, wanted in told.items():
        got = p.cum(name) / 1e9
        if got < wanted and name in may_lack:
            continue
        if abs(got - wanted) > within * total:
            problems.append("%s has %.3f s of %.3f s" % (name, got, wanted))
    if p.cum("[unwind failed]"):
        problems.append("[unwind failed]: %d ns" % p.cum("[unwind failed]"))
    return problems


def case(name, mode, **how):
    """Again with more time, as ticks may come late on a busy machine."""
    for seconds in 0.25, 0.5, 1, 2, 4:
        done = run(program, name, mode, seconds, "states.pb.gz")
        if done.returncode:
            return ["status %d: %s" % (done.returncode, done.stderr)]
        problems = compare(Profile(work + "/states.pb.gz"),
                           times(done.stdout), **{"within": 0.15, **how})
        if not problems:
            break
    return problems


def inner():
    for seconds in 0.25, 0.5, 1, 2:
        took = times(run(program, "inner", "tick", seconds,
                         "states.pb.gz").stdout)
        p = Profile(work + "/states.pb.gz")
        share = p.cum("outer") / 1e9 / took["job"]
        if abs(share - 1) < 0.15:
            return []
    return ["outer has %.2f of it" % share]


def deaf():
    """What nobody could see is not charged to where it ended."""
    for seconds in 0.25, 0.5, 1, 2:
        run(program, "deaf", "tick", seconds, "states.pb.gz")
        p = Profile(work + "/states.pb.gz")
        silent = p.cum("[no answer]") / p.total()
        if silent > 0.5 and p.cum("cpprof.stop") < 0.2 * p.total():
            return []
    return ["[no answer] %.2f, stop %d of %d" %
            (silent, p.cum("cpprof.stop"), p.total())]


def closed():
    done = run(program, "closed", "tick", 0.2, "states.pb.gz")
    if done.returncode or "nil\tthe state is being closed" not in done.stdout:
        return ["%d %s%s" % (done.returncode, done.stdout, done.stderr)]
    return []


def replaced():
    done = run(program, "replaced", "tick", 1, "x.pb.gz")
    return [] if done.stdout.split()[-2:] == ["killed", "0"] else [done.stdout]


def hooks(mode):
    for seconds in 0.4, 0.8, 1.6:
        done = run(lua, here + "/hooks.lua", mode, "h.pb.gz", seconds)
        if done.returncode:
            return [done.stderr]
        p = Profile(work + "/h.pb.gz")
        if p.cum("after_hook") > 0.4 * p.total():
            return []
    return ["after_hook has %d of %d" % (p.cum("after_hook"), p.total())]


def deep():
    """It ends, and after a rest ticks come as before."""
    for seconds in 1, 3, 9:
        done = run(lua, here + "/deep.lua", "d.pb.gz", seconds)
        if done.returncode:
            return [done.stderr]
        share = Profile(work + "/d.pb.gz").cum("work")
        if share > 1e8:
            return []
    return ["work has %d ns" % share]


def check(name, function, *words, **how):
    try:
        problems = function(*words, **how)
    except subprocess.TimeoutExpired as late:
        problems = [str(late)]
    tap.none(name, problems)


def main():
    for mode in "tick", "cpu", "span":
        check("two states of a thread have their shares in mode " + mode,
              case, "two", mode)
        check("coroutines that the host resumes have no more than is theirs "
              "in mode " + mode, case, "driven", mode, may_lack=["job"])
        check("hooks of the program stay its own in mode " + mode,
              hooks, mode)
    check("what a coroutine runs that a C function resumes is its caller's",
          inner)
    check("a state that goes on in another thread while the first is blocked "
          "has its shares", case, "blocked", "tick")
    for name in "exited", "back":
        check("a state that goes on in another thread has no time of another "
              "function: " + name, case, name, "tick",
              may_lack=["alpha", "beta"])
    check("a thread that cannot be asked gives no answer", deaf)
    for mode in "tick", "cpu":
        check("work of the host is not counted in mode " + mode,
              case, "idle", mode)
    check("sleep of the host is not counted", case, "loop", "tick", within=0.3)
    check("a forked child has its own profile", case, "forked", "tick")
    check("no program is killed that takes the place of a profiled one",
          replaced)
    check("a state that is being closed starts nothing", closed)
    check("a deep stack does not stop the program", deep)
    return tap.end()


work = tempfile.mkdtemp(prefix="cpprof-states.")
try:
    status = main()
finally:
    shutil.rmtree(work)
sys.exit(status)
