#!/usr/bin/env python3
"""Every package that ./dev installs is explained in docs/dependencies.md, and
no other is.

    deps.py ROOT
    deps.py --self-test
"""
import os
import re
import sys

ARRAY = re.compile(r"^(\w+)_packages=\(([^)]*)\)", re.M)
ROW = re.compile(r"^\| `([a-z0-9.+-]+)` \|", re.M)


def check(dev, docs):
    installed = {name for _, names in ARRAY.findall(dev)
                 for name in names.split()}
    explained = set(ROW.findall(docs))
    wrong = ["docs/dependencies.md: %s is not explained" % name
             for name in sorted(installed - explained)]
    wrong += ["docs/dependencies.md: %s is not installed by ./dev" % name
              for name in sorted(explained - installed)]
    if not installed:
        wrong.append("dev: no list of packages found")
    return wrong


def self_test():
    dev = "a_packages=(gcc\n    g++)\nb_packages=(x-1.2)\n"
    rows = "| `gcc` | a |\n| `g++` | b |\n"
    good = check(dev, rows + "| `x-1.2` | c |\n")
    cases = [check(dev, rows), check(dev, rows + "| `x-1.2` | | \n| `y` | \n"),
             check("", "")]
    return 0 if not good and all(cases) else 1


def read(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    root = sys.argv[1]
    found = check(read(os.path.join(root, "dev")),
                  read(os.path.join(root, "docs", "dependencies.md")))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
