#!/usr/bin/env python3
"""The collected cases of the newer pprof tool, where they are at hand: those of
the formats that are made, and every error.

    reference.py CPPROF

The cases are the folder that CPPROF_ORACLE names, or ../shared/tools/oracle
beside the tree; skipped where there is none.
"""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FOLDER = os.environ.get("CPPROF_ORACLE",
                        os.path.join(ROOT, "..", "shared", "tools", "oracle"))
FORMATS = {"-top", "--top", "-top=true", "-text", "-raw", "-tags", "-comments",
           "-proto", "-topproto"}


def is_ours(row):
    words = row[3].split()
    # The large ones are generated on first use, which takes too long here.
    if "medium" in row[3]:
        return False
    return row[1] == "fail" or (
        row[1] in ("text", "text~", "proto") and FORMATS & set(words))


def main():
    script = os.path.join(FOLDER, "oracle.py")
    if not os.path.exists(script):
        print("1..0 # SKIP the cases of the reference are not here")
        return 0
    with open(os.path.join(FOLDER, "cases.tsv"), encoding="utf-8") as file:
        lines = [line for line in file if line.strip() and line[0] != "#"]
    ours = [line for line in lines if is_ours(line.rstrip("\n").split("\t"))]
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as cases:
        cases.writelines(ours)
        cases.flush()
        done = subprocess.run(
            [sys.executable, script, "-j", "2", "-c", cases.name, sys.argv[1]],
            capture_output=True, check=False, text=True)
    for line in done.stdout.splitlines() + done.stderr.splitlines():
        print("# " + line)
    ok = done.returncode == 0 and "%d passed" % len(ours) in done.stdout
    print("%s 1 - %d cases of the reference" % ("ok" if ok else "not ok",
                                                len(ours)))
    print("1..1")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
