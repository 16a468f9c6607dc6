#!/usr/bin/env python3
"""Count the test cases of one meson run: count.py TESTLOG.json EXIT-STATUS

Prints "passed failed skipped". A TAP program counts once for each of its
lines, any other once. A program that ended badly counts as at least one
failure whatever its lines say, and so does a run that ended badly or that left
no log: a check that cannot fail is none. One that is skipped as a whole says so
in its plan (1..0); meson takes whatever is not TAP for skipped, too.
"""
import json
import os
import re
import sys

LINE = re.compile(r"^(not )?ok\b(?:.*?(#\s*SKIP))?", re.I)
NONE = re.compile(r"^1\.\.0\b", re.M)
GOOD = {"OK", "EXPECTEDFAIL"}


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


def count(lines):
    sums = (0, 0, 0)
    for line in lines:
        sums = tuple(map(sum, zip(sums, count_program(json.loads(line)))))
    return sums


def main():
    path, status = sys.argv[1], int(sys.argv[2])
    passed = failed = skipped = 0
    if os.path.exists(path):
        with open(path, encoding="utf-8") as lines:
            passed, failed, skipped = count(lines)
    if (status != 0 or passed + failed + skipped == 0) and failed == 0:
        failed = 1
    print(passed, failed, skipped)


if __name__ == "__main__":
    main()
