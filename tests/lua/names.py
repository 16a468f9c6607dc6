#!/usr/bin/env python3
"""What functions are called: by the line that they are defined on, which is
read, and by nothing that is another's.

    names.py LUA MODULE-FOLDER

Prints TAP. LUA: as for run.py.
"""
import os
import re
import subprocess
import sys
import tempfile
import threading

from profile import Profile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(here, ".."))
from tap import Tap  # noqa: E402

lua, folder = sys.argv[1].split(), sys.argv[2]
is_54 = os.path.basename(lua[0]) == "lua5.4"
BUSY = "local t = os.clock() + %s while os.clock() < t do end"
tap = Tap()
check = tap.none


def run(text, file="script.lua", **how):
    """The script's output; None: it did not end."""
    with open(os.path.join(work, file), "w") as out:
        out.write(text)
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(("LUA_", "CPPROF", "LD_PRELOAD"))}
    environment["LUA_CPATH"] = folder + "/?.so"
    try:
        done = subprocess.run(lua + [file], env=environment, cwd=work,
                              capture_output=True, text=True, timeout=60,
                              **how)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout + done.stderr


def profiled(text):
    return 'local cpprof = require "cpprof" ' \
        'assert(cpprof.start {out = "p.pb.gz"}) %s assert(cpprof.stop())' % text


# ---- files that are none ----------------------------------------------------

def asks(source):
    """A chunk of that name, in a function that no library knows."""
    text = profiled("local f = (loadstring or load)(%r, %r) f()" %
                    ("local function w() %s end w()" % BUSY % 0.2,
                     "@" + source))
    return text + " print('read', io.read('*l'))"


def input_stays():
    out = run(asks("/dev/stdin"), input="one\ntwo\n")
    return [] if out == "read\tone\n" else ["output: %s" % out]


def pipe_is_left():
    """Nobody opens it: who waits for a reader goes on waiting."""
    fifo = os.path.join(work, "fifo")
    os.mkfifo(fifo)
    opened = []

    def wait():
        with open(fifo, "w"):
            opened.append(True)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    out = run(asks("fifo"), input="one\n")
    problems = [] if out == "read\tone\n" else ["output: %s" % out]
    problems += ["the pipe was opened"] * len(opened)
    end = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    thread.join()
    os.close(end)
    return problems


def folder_is_none():
    out = run(asks("."), input="one\n")
    return [] if out == "read\tone\n" else ["output: %s" % out]


# ---- who is who -------------------------------------------------------------

def shares(wanted):
    """wanted: name -> seconds it ran. Of the time of them all, as others' time
    may be in it on a busy machine."""
    p = Profile(os.path.join(work, "p.pb.gz"))
    total = sum(p.cum(name) for name in wanted) or 1
    problems = []
    for name, seconds in wanted.items():
        share, right = p.cum(name) / total, seconds / sum(wanted.values())
        if abs(share - right) > 0.1:
            problems.append("%s has %.2f, not %.2f" % (name, share, right))
    return problems and problems + \
        [str(sorted({f[0] for s, v, l in p.samples for f in s}))]


def shared(before, calls, *wanted):
    """Of calls of 0.4 s in all, by the clock of the processor, and of longer
    ones where a busy machine spoils them."""
    for seconds in 0.4, 1, 3, 9:
        run(before + profiled(re.sub(r"[\d.]+s",
            lambda share: str(float(share[0][:-1]) * seconds), calls)))
        problems = [problem for w in wanted for problem in shares(w)]
        if not problems:
            break
    return problems


def generated():
    """Chunks of one length that differ in the midst."""
    return shared("""
    local busy = %s
    local function make(name)
        return (loadstring or load)(("-- generated "):rep(50) ..
            "\\nlocal function " .. name .. "(f, n) f(n) end return " .. name ..
            ("-- generated "):rep(50))()
    end
    local a, b = make "aaa", make "bbb"
    """ % ("function(n) %s end" % BUSY % "n"),
        "a(busy, 0.25s) b(busy, 0.75s)", {"aaa": 0.25, "bbb": 0.75})


MINIFIED = """
local function a(n) %s end local function b(n) %s end local M={} \
M.x=function(n) a(n) end M.y=function(n) b(n) end local p,q=M.x,M.y
"""


def one_line():
    """A call by a name that the line does not define says nothing."""
    return shared(MINIFIED.replace("\n", " ") % ((BUSY % "n",) * 2),
                  "M.x(0.25s) M.y(0.75s) p(0.01s)",
                  {"a": 0.25, "b": 0.75}, {"M.x": 0.25, "M.y": 0.75})


def library_on_a_line():
    """One has a name by its library, its neighbour none."""
    return shared(
        "known = function(n) %s end; local t = {function(n) %s end} " %
        ((BUSY % "n",) * 2),
        "known(0.25s) t[1](0.75s)",
        {"known": 0.25, "function script.lua:1": 0.75})


def stripped():
    """No source, and the same lines: of two chunks."""
    return shared("""
    local function make(name)
        local f = (loadstring or load)("function " .. name .. "(n) %s end");
        (loadstring or load)(string.dump(f, true))()
    end
    make "one" make "two"
    """ % (BUSY % "n"), "one(0.25s) two(0.75s)", {"one": 0.25, "two": 0.75})


def main():
    check("a source named as the input takes nothing of it", input_stays())
    check("a source named as a pipe is not opened", pipe_is_left())
    check("a source named as a folder has no lines", folder_is_none())
    check("chunks that differ in a word only are two", generated())
    check("functions on one line are told apart by who calls them", one_line())
    check("a library's function names none beside it", library_on_a_line())
    if is_54:
        check("stripped functions of two chunks are two", stripped())
    return tap.end()


with tempfile.TemporaryDirectory(prefix="cpprof-lua.") as work:
    status = main()
sys.exit(status)
