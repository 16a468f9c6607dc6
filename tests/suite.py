#!/usr/bin/env python3
"""Run one suite of a build folder: suite.py LABEL FOLDER SUITE JOBS RESULTS

Prints how far it is every ten seconds, every program that fails as it does,
then what is wrong with those, and one line of counts. Appends
"LABEL passed failed skipped seconds CPU-seconds passed-again" to RESULTS.

A TAP program counts once for each of its lines, any other once. A program that
ended badly counts as at least one failure whatever its lines say, and so does
a run that ended badly or that left no log: a check that cannot fail is none.
One that is skipped as a whole says so in its plan (1..0); meson takes whatever
is not TAP for skipped, too.

Tests that sample ask a machine that does other things for its share of time. A
program whose claims did not hold is therefore run once more, alone, when all
others are done, also those of suites that run beside this one (RESULTS.lock),
and counts as that run does. It is named either way. What crashes, hangs, or is
reported by a sanitizer has failed, and so has whatever fails in a suite that
does not sample.

    suite.py --self-test
"""
import fcntl
import json
import os
import re
import resource
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


# What a program of the suites that sample says where no chance is at work.
NO_CHANCE = re.compile(r"^Bail out|Sanitizer|runtime error:", re.M)
# A case of cmocka that fails is left by longjmp, and frees nothing: these lines
# follow from a claim that did not hold.
LEFT_BEHIND = re.compile(
    r"ERROR: LeakSanitizer: detected memory leaks"
    r"|^SUMMARY: AddressSanitizer: \d+ byte\(s\) leaked", re.M)
EXACT_SUITES = {"lint", "unit"}


def may_run_again(label, test):
    """It ended by itself, after claims that did not hold."""
    said = (test.get("stdout") or "") + "\n" + (test.get("stderr") or "")
    return (label not in EXACT_SUITES and test["result"] in ("FAIL", "ERROR")
            and test.get("returncode") in (0, 1)
            and re.search(r"^not ok", said, re.M) is not None
            and NO_CHANCE.search(LEFT_BEHIND.sub("", said)) is None)


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


def start(folder, suite, jobs, log, *names):
    """The tests of these names, or all, by meson."""
    # Programs that need the same do it once in a run.
    environment = dict(os.environ, CPPROF_SUITE_RUN="%d.%d" % (
        os.getpid(), time.monotonic_ns()))
    # A job in the background has SIGINT ignored, and so would all tests.
    return subprocess.Popen(
        ["env", "--default-signal=INT,QUIT", "meson", "test", "-C", folder,
         "--no-rebuild", "--num-processes", jobs, "--suite", suite,
         "--logbase", log, *names], env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace")


def log_of(folder, name):
    return os.path.join(folder, "meson-logs", name + ".json")


def read_log(folder, name):
    if not os.path.exists(log_of(folder, name)):
        return []
    with open(log_of(folder, name), encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def run_again(label, folder, suite, test):
    """The same test as its second run left it, or as it was if there is none."""
    log = suite + "-again"
    if os.path.exists(log_of(folder, log)):
        os.remove(log_of(folder, log))
    name = test["name"].split(" / ", 1)[-1]
    start(folder, suite, "1", log, name).communicate()
    found = [t for t in read_log(folder, log) if t["name"] == test["name"]]
    second = found[0] if len(found) == 1 else test
    print("%-6s %s, run again alone: %s" % (
        label, name, "failed" if count_program(second)[1] else "passed"),
        flush=True)
    return second


def run(label, folder, suite, jobs):
    """The suite by meson, with its progress on the way: its exit status."""
    logs = os.path.join(folder, "meson-logs")
    meson = start(folder, suite, jobs, suite)
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


def run_failed_again(label, folder, suite, tests):
    """Puts a second run where the first one's claims did not hold; how many
    passed by that."""
    again = 0
    for i, test in enumerate(tests):
        if count_program(test)[1] and may_run_again(label, test):
            tests[i] = run_again(label, folder, suite, test)
            again += not count_program(tests[i])[1]
    return again


def main(label, folder, suite, jobs, results):
    if os.path.exists(log_of(folder, suite)):
        os.remove(log_of(folder, suite))
    started = time.monotonic()
    waited = again = 0
    with open(results + ".lock", "w", encoding="ascii") as alone:
        fcntl.flock(alone, fcntl.LOCK_SH)
        status = run(label, folder, suite, jobs)
        tests = read_log(folder, suite)
        for test in tests:
            if count_program(test)[1]:
                print("%s:" % test["name"])
                print("\n".join(what_is_wrong(test)), flush=True)
        if any(count_program(test)[1] and may_run_again(label, test)
               for test in tests):
            waited = time.monotonic()
            fcntl.flock(alone, fcntl.LOCK_EX)
            waited = time.monotonic() - waited
            again = run_failed_again(label, folder, suite, tests)
    # meson's own status is about the first runs.
    if again and not any(count_program(test)[1] for test in tests):
        status = 0
    counts = count(tests, status)
    seconds = time.monotonic() - started - waited
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    print("%-6s %5d passed, %d failed, %d skipped in %d s, %d s of CPU   (%s)"
          % ((label,) + counts + (seconds, cpu, log_of(folder, suite)[:-4] + "txt")),
          flush=True)
    with open(results, "a", encoding="utf-8") as out:
        out.write("%s %d %d %d %d %d %d\n"
                  % ((label,) + counts + (seconds, cpu, again)))
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


# (suite, stdout, result, status of the program): whether it is run again
AGAIN = [
    ("live", "not ok 1 - share\n", "ERROR", 1, True),
    ("live", "not ok 1 - share\n", "FAIL", 0, True),
    ("unit", "not ok 1 - sum\n", "ERROR", 1, False),
    ("live", "not ok 1 - share\n", "ERROR", -11, False),
    ("live", "not ok 1 - share\n", "TIMEOUT", -15, False),
    ("asan", "not ok 1\n==7==ERROR: AddressSanitizer: x\n", "ERROR", 1, False),
    ("asan", "not ok 1\n==7==ERROR: LeakSanitizer: detected memory leaks\n"
     "#0 0x7 in calloc libsanitizer/asan/x.cpp:77\n"
     "SUMMARY: AddressSanitizer: 8 byte(s) leaked in 1 allocation(s).\n",
     "ERROR", 1, True),
    ("asan", "ok 1\n==7==ERROR: LeakSanitizer: detected memory leaks\n",
     "ERROR", 1, False),
    ("tsan", "not ok 1\nWARNING: ThreadSanitizer: x\n", "ERROR", 66, False),
    ("e2e", "Bail out! no\nnot ok 1\n", "ERROR", 1, False),
    ("e2e", "ok 1\n", "ERROR", 1, False),
]


def self_test():
    bad = 0
    for stdout, result, status, wanted in CASES:
        got = count([{"stdout": stdout, "result": result}], status)
        if got != wanted:
            print("%r %s %d: %s, not %s"
                  % (stdout, result, status, got, wanted))
            bad = 1
    for label, stdout, result, returncode, wanted in AGAIN:
        if may_run_again(label, {"stdout": stdout, "result": result,
                                 "returncode": returncode}) != wanted:
            print("%s %r %s %d: run again or not"
                  % (label, stdout, result, returncode))
            bad = 1
    if count([], 0) != (0, 1, 0):
        print("a run of no test is no failure")
        bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(self_test() if sys.argv[1:] == ["--self-test"]
             else main(*sys.argv[1:]))
