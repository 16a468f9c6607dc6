#!/usr/bin/env python3
"""What ./dev matrix counts as a complete stack, of stacks that are written
here: matrix_shares.py"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from matrix import share_complete  # pylint: disable=wrong-import-position
from tap import Tap  # pylint: disable=wrong-import-position

WHOLE = "_start;__libc_start_main_impl;main;hog 3\n"
CASES = [
    ("a stack from the entry is complete", WHOLE, "100.0 %"),
    ("one that ends early is not", WHOLE + "[unwind failed];hog 1\n", "75.0 %"),
    ("time of no stack is not counted", WHOLE + "[short-lived thread] 1\n",
     "100.0 %"),
    ("nor is it below the start routine of its thread",
     WHOLE + "work;[short-lived thread] 1\nwork;[signal blocked] 1\n",
     "100.0 %"),
    ("nothing at all", "", "no samples"),
]


def main():
    tap = Tap()
    for name, collapsed, wanted in CASES:
        tap.same(name, share_complete(collapsed), wanted)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
