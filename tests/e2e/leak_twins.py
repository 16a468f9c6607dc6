#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One program, and its twin that was built for LeakSanitizer: leak_twins.py
CPPROF PROGRAM TWIN.

cpprof finds in the unchanged program what LeakSanitizer finds in the other one,
function by function, and nothing else. A stale word in a register or on a
stack may keep a block or two: of many both may miss some. Of a cycle one block
is direct here, and none there, so both kinds are taken together.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from tap import Tap  # pylint: disable=wrong-import-position

# So many of one function may be hidden.
HIDDEN = 5
FUNCTION = re.compile(r"\b((?:lose|keep)_\w+)")


def count(reports, pattern):
    """{function: objects} of texts, one for a stack."""
    found = collections.Counter()
    for report in reports:
        objects = pattern.search(report)
        if objects:
            function = FUNCTION.search(report)
            found[function and function[1]] += int(objects[1])
    return found


OF_SANITIZER = re.compile(r"direct leak of \d+ byte\(s\) in (\d+)", re.I)
OF_CPPROF = re.compile(r"kind:[^-]*?^\s*(\d+) {3}\S", re.M)


def main():
    cpprof, program, twin = sys.argv[1:]
    tap = Tap()
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("CPPROF", "LD_PRELOAD", "MALLOC_"))}
    theirs = subprocess.run([twin], env=env, stderr=subprocess.PIPE,
                            text=True, check=False).stderr
    if "LeakSanitizer has encountered a fatal error" in theirs:
        tap.skip("twins", "LeakSanitizer cannot look here")
        return tap.end()
    wanted = count(theirs.split("\n\n"), OF_SANITIZER)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "heap.pb.gz")
        verdict = subprocess.run(
            [cpprof, "leaks", "-o", path, "--", program], env=env,
            capture_output=True, text=True, check=False)
        traces = subprocess.run(
            [cpprof, "-traces", "-sample_index=leak_objects",
             os.path.join(folder, "heap.lost.pb.gz")],
            env=env, capture_output=True, text=True, check=False)
    got = count(traces.stdout.split("-----------+"), OF_CPPROF)
    tap.same("something is lost", verdict.returncode, 1)
    tap.ok("by ten functions", len(wanted) == 10, dict(wanted))
    for function in sorted(wanted, key=str):
        tap.near("%s: as many" % function, got[function], wanted[function],
                 min(HIDDEN, wanted[function] - 1))
    tap.same("nothing else", sorted(set(got) - set(wanted), key=str), [])
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
