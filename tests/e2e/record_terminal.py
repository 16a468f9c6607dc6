#!/usr/bin/env python3
"""cpprof record at a terminal tells the hottest functions and the command that
shows more; elsewhere it does not.

    record_terminal.py CPPROF VICTIM       TAP
"""
import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from tap import Tap  # noqa: E402 pylint: disable=C0413
from terminal import lines_of  # noqa: E402 pylint: disable=C0413

cpprof, victim = map(os.path.realpath, sys.argv[1:3])
tap = Tap()
RECORD = [cpprof, "record", "-F", "250"]
ROW = re.compile(r"cpprof: +([0-9.]+)% +([0-9.]+m?s)  (.*)")
MORE = "cpprof: more: "


def environment(**more):
    kept = {key: value for key, value in os.environ.items()
            if key not in ("LD_PRELOAD", "CPPROF")}
    return dict(kept, NO_COLOR="1", TERM="xterm", **more)


def at_terminal(words, columns=80):
    """What a terminal gets on stderr, as lines; stdout goes elsewhere."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ,
                struct.pack("4H", 24, columns, 0, 0))
    with subprocess.Popen(words, stderr=follower, stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, env=environment()) as run:
        os.close(follower)
        lines = lines_of(leader)
        run.stdout.read()
    return lines


def rows(lines):
    return [match.groups() for match in map(ROW.fullmatch, lines) if match]


def commands(lines):
    return [line[len(MORE):] for line in lines if line.startswith(MORE)]


def top_rows(command):
    """The first functions of what the command prints."""
    path = os.path.dirname(cpprof) + ":" + os.environ["PATH"]
    done = subprocess.run(["sh", "-c", command], env=environment(PATH=path),
                          capture_output=True, text=True, check=False)
    table = done.stdout.partition("flat  flat%")[2].splitlines()[1:]
    found = [row.split(None, 5) for row in table]
    return [(row[1].rstrip("%"), row[0], row[5]) for row in found
            if row[0] != "0"][:3]


def test_one_process():
    name = "it's a.pb.gz"
    lines = at_terminal(RECORD + ["-o", name, "--", victim, "burn=400"])
    seen = rows(lines)
    tap.ok("the hottest function is told",
           seen and "burn" in seen[0][2], lines)
    tap.ok("at most three", 1 <= len(seen) <= 3, lines)
    tap.ok("one command at the end",
           len(commands(lines)) == 1 and lines[-1].startswith(MORE), lines)
    if commands(lines):
        tap.same("which prints them first, whatever the name of the file",
                 top_rows(commands(lines)[0]), seen)
    # In a table without the callers of inner() it would not be "(inline)".
    source = "static inline void inner(long n)\n" \
        "{ for (volatile long i = 0; i < n; i = i + 1) ; }\n" \
        + "".join("__attribute__((noinline)) void f%d(void) "
                  "{ inner(%d); }\n" % (i, 20000000 * i) for i in range(1, 5)) \
        + "__attribute__((noinline)) void g(long n)\n" \
        "{ for (volatile long i = 0; i < n; i = i + 1) ; }\n" \
        "__attribute__((noinline)) void h(long n)\n" \
        "{ for (volatile long i = 0; i < n; i = i + 1) ; }\n" \
        "int main(void)\n" \
        "{ f1(); f2(); f3(); f4(); g(80000000); h(60000000); return 0; }\n"
    if not shutil.which("gcc"):
        tap.skip("inlined functions are called as they are there", "no compiler")
    else:
        subprocess.run(["gcc", "-O1", "-g", "-x", "c", "-", "-o", "inlined"],
                       input=source.encode(), check=True)
        lines = at_terminal(RECORD + ["-o", "i.gz", "--", "./inlined"])
        tap.same("inlined functions are called as they are there",
                 rows(lines), top_rows("cpprof top i.gz"))
    lines = at_terminal(RECORD + ["-o", "-x.gz", "--", victim, "burn=300"])
    tap.same("a name like a flag", commands(lines), ["cpprof top ./-x.gz"])


def test_many_processes():
    script = '"$0" burn=100; "$0" burn=500; true'
    lines = at_terminal(RECORD + ["--", "sh", "-c", script, victim])
    sizes = {match.group(1): int(match.group(2)) for match in
             (re.match(r"cpprof: (cpu\S*): ([0-9]+) samples?,", line)
              for line in lines) if match}
    largest = max(sizes, key=sizes.get)
    tap.same("of several files it is the one with most samples",
             commands(lines), ["cpprof top " + largest])
    lines = at_terminal(RECORD + ["-one", "-o", "one.pb.gz", "--", "sh", "-c",
                                  script, victim])
    tap.same("of one for all it is that", commands(lines),
             ["cpprof top one.pb.gz"])
    lines = at_terminal(RECORD + ["-t", "cpu,wall", "-o", "%k.gz", "--",
                                  victim, "burn=400"])
    tap.same("one command for each kind", commands(lines),
             ["cpprof top cpu.gz", "cpprof top wall.gz"])


def test_width():
    code = "#include <string>\nnamespace " + 60 * "n" + " {\n" + \
        "__attribute__((noinline)) void f(long n)\n" \
        "{ for (volatile long i = 0; i < n; i = i + 1) ; } }\n" \
        "int main() { " + 60 * "n" + "::f(200000000); }\n"
    if not shutil.which("g++"):
        tap.skip("long names are cut to the width", "no compiler")
        return
    subprocess.run(["g++", "-O1", "-x", "c++", "-", "-o", "long"],
                   input=code.encode(), check=True)
    lines = at_terminal(RECORD + ["--", "./long"], 60)
    seen = rows(lines)
    tap.ok("long names are cut to the width",
           seen and seen[0][2].startswith("nnn") and
           all(len(line) < 60 for line in lines if ROW.fullmatch(line)) and
           len(seen[0][2]) > 20, lines)


def test_silence():
    done = subprocess.run(RECORD + ["--", victim, "burn=300"],
                          capture_output=True, text=True, check=False,
                          env=environment())
    tap.ok("a pipe gets the line about the file alone",
           done.stderr.count("\n") == 1 and not rows(done.stderr.splitlines()),
           done.stderr)
    for words in (["-symbolize", "none"], ["-legacy"], ["-o", "/dev/null"],
                  ["-t", "heap", "-heap", "1"]):
        lines = at_terminal(RECORD + words + ["--", victim, "burn=300"])
        tap.ok("nothing with " + " ".join(words),
               lines and not rows(lines) and not commands(lines), lines)
    lines = at_terminal(RECORD + ["--", "true"])
    tap.ok("nothing without samples", lines and not commands(lines), lines)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    test_one_process()
    test_many_processes()
    test_width()
    test_silence()
    os.chdir("/")
sys.exit(tap.end())
