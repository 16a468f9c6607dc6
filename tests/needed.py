#!/usr/bin/env python3
"""The targets that the tests of one suite need: needed.py FOLDER SUITE

As ninja knows them, one a line. A build folder for one suite needs no others.
"""
import json
import os
import sys


def read(folder, name):
    path = os.path.join(folder, "meson-info", "intro-%s.json" % name)
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    folder, suite = sys.argv[1:]
    needed = set()
    for test in read(folder, "tests"):
        if suite in (name.split(":")[-1] for name in test["suite"]):
            needed.update(test["depends"])
    for target in read(folder, "targets"):
        if target["id"] in needed:
            for path in target["filename"]:
                print(os.path.relpath(path, os.path.realpath(folder)))


if __name__ == "__main__":
    main()
