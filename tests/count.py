#!/usr/bin/env python3
"""Count the test cases of one meson run: count.py JUNIT.xml EXIT-STATUS

Prints "passed failed skipped". A TAP program counts once for each of its
lines. A run that ended with a failure, or that left no log, counts as at least
one failure, whatever the log says: a check that cannot fail is none.
"""
import os
import sys
import xml.etree.ElementTree as ElementTree


def count(path):
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            failed += 1
        elif "skipped" in kinds:
            skipped += 1
        else:
            passed += 1
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        # A program that died after its last line has an error and no case.
        if int(suite.get("errors", 0)) and not any(
            child.tag in ("failure", "error")
            for case in suite.iter("testcase")
            for child in case
        ):
            failed += 1
    return passed, failed, skipped


def main():
    path, status = sys.argv[1], int(sys.argv[2])
    passed = failed = skipped = 0
    if os.path.exists(path):
        passed, failed, skipped = count(path)
    if (status != 0 or passed + failed + skipped == 0) and failed == 0:
        failed = 1
    print(passed, failed, skipped)


if __name__ == "__main__":
    main()
