#!/usr/bin/env python3
"""Run one suite of a build folder: suite.py LABEL FOLDER SUITE JOBS RESULTS

Prints how far it is every ten seconds, every program that fails as it does,
then what is wrong with those, and one line of counts. Appends
"LABEL passed failed skipped seconds" to RESULTS.

A TAP program counts once for each of its lines, any other once. A program that
ended badly counts as at least one failure whatever its lines say, and so does
a run that ended badly or that left no log: a check that cannot fail is none.
One that is skipped as a whole says so in its plan (1..0); meson takes whatever
is not TAP for skipped, too.

    suite.py --self-test
"""
import json
import os
import re
import subprocess
import sys
import time

LINE = re.compile(r"^(not )?ok\b(?:.*?(#\s*SKIP))?", re.I)
NONE = re.compile(r"^1\.\.0\b", re.M)
GOOD = {"OK", "EXPECTEDFAIL"}

# A test that meson has finished: "12/130 cpprof:live / name perf  OK  3.21s".
DONE = re.compile(r"^ *(\d+)/(\d+) (.*?) +(OK|SKIP|EXPECTEDFAIL|[A-Z]+)\b")
PROGRESS_SECONDS = 10
# What is shown of a failed program: lines that say what is wrong, and some
# behind each of them.
WRONG = re.compile(r"^(not ok|Bail out|(==\d+==)?ERROR|SUMMARY)")
SHOWN_BEHIND = 6
SHOWN_MOST = 60


def count_program(test):
    """(passed, failed, skipped) of one entry of the log."""
    passed = failed = skipped = 0
    for line in (test.get("stdout") or "").split("\n"):
        match = LINE.match(line)
        if not match:
            continue
        if match.group(2):
            skipped += 1
        elif match.group(1):
            failed += 1
        else:
            passed += 1
    if test["result"] == "SKIP" and not passed + failed + skipped:
        skipped = int(bool(NONE.search(test.get("stdout") or "")))
        failed = 1 - skipped
    elif test["result"] not in GOOD | {"SKIP"}:
        failed = max(failed, 1)
    elif not passed + failed + skipped:
        passed = 1
    return passed, failed, skipped


def count(tests, status):
    """The sums over all programs; a bad run has a failure at the least."""
    passed, failed, skipped = (
        sum(column) for column in zip((0, 0, 0), *map(count_program, tests)))
    if (status != 0 or passed + failed + skipped == 0) and failed == 0:
        failed = 1
    return passed, failed, skipped


def what_is_wrong(test):
    """The lines of a program that say so, each with some behind it."""
    text = (test.get("stdout") or "") + "\n" + (test.get("stderr") or "")
    shown, left = [], 0
    for line in text.split("\n"):
        if WRONG.match(line):
            left = SHOWN_BEHIND + 1
        if left > 0 and not line.startswith("ok "):
            shown.append("    " + line[:240])
        left -= 1
    if not shown:
        shown = ["    " + line[:240]
                 for line in text.strip().split("\n")[-SHOWN_BEHIND:]]
    return shown[:SHOWN_MOST]


def run(label, folder, suite, jobs):
    """The suite by meson, with its progress on the way: its exit status."""
    logs = os.path.join(folder, "meson-logs")
    # A job in the background has SIGINT ignored, and so would all tests.
    meson = subprocess.Popen(
        ["env", "--default-signal=INT,QUIT", "meson", "test", "-C", folder,
         "--no-rebuild", "--num-processes", jobs, "--suite", suite,
         "--logbase", suite],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace")
    started = said = time.monotonic()
    with open(os.path.join(logs, suite + ".out"), "w",
              encoding="utf-8") as out:
        for line in meson.stdout:
            out.write(line)
            match = DONE.match(line)
            if not match:
                continue
            if match.group(4) not in GOOD | {"SKIP"}:
                print(line.rstrip(), flush=True)
            if time.monotonic() - said >= PROGRESS_SECONDS:
                said = time.monotonic()
                print("%-6s %s of %s after %d s" % (
                    label, match.group(1), match.group(2), said - started),
                    flush=True)
    return meson.wait()


def main(label, folder, suite, jobs, results):
    log = os.path.join(folder, "meson-logs", suite + ".json")
    if os.path.exists(log):
        os.remove(log)
    started = time.monotonic()
    status = run(label, folder, suite, jobs)
    seconds = time.monotonic() - started
    tests = []
    if os.path.exists(log):
        with open(log, encoding="utf-8") as lines:
            tests = [json.loads(line) for line in lines]
    counts = count(tests, status)
    for test in tests:
        if count_program(test)[1]:
            print("%s:" % test["name"])
            print("\n".join(what_is_wrong(test)))
    print("%-6s %5d passed, %d failed, %d skipped in %d s   (%s)"
          % ((label,) + counts + (seconds, log[:-4] + "txt")), flush=True)
    with open(results, "a", encoding="utf-8") as out:
        out.write("%s %d %d %d %d\n" % ((label,) + counts + (seconds,)))
    return 0


# (stdout, result of meson, exit status of the run): what is counted
CASES = [
    ("ok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP why\n", "FAIL", 1, (1, 1, 1)),
    ("ok 1 - a\n", "FAIL", 1, (1, 1, 0)),
    ("ok 1 - a\n", "TIMEOUT", 1, (1, 1, 0)),
    ("", "OK", 0, (1, 0, 0)),
    ("1..0 # SKIP nothing here\n", "SKIP", 0, (0, 0, 1)),
    ("no TAP at all\n", "SKIP", 0, (0, 1, 0)),
    ("ok 1 - a\n", "OK", 1, (1, 1, 0)),
]


def self_test():
    bad = 0
    for stdout, result, status, wanted in CASES:
        got = count([{"stdout": stdout, "result": result}], status)
        if got != wanted:
            print("%r %s %d: %s, not %s"
                  % (stdout, result, status, got, wanted))
            bad = 1
    if count([], 0) != (0, 1, 0):
        print("a run of no test is no failure")
        bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(self_test() if sys.argv[1:] == ["--self-test"]
             else main(*sys.argv[1:]))
