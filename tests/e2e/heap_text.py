#!/usr/bin/env python3
"""A heap profile as text is the same profile, whoever reads it.

    heap_text.py CPPROF HEAP_WRITER

Prints TAP. What HEAP_WRITER wrote is read by cpprof and by `go tool pprof`.
"""
import collections
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
from tap import Tap  # noqa: E402

TAP = Tap()


def samples(raw):
    """{(addresses, about the size): [its values, added up]} of -raw."""
    locations, found = {}, []
    part = None
    for line in raw.splitlines():
        if line in ("Samples:", "Locations", "Mappings"):
            part = line
            continue
        if part == "Samples:":
            row = re.match(r"\s*([-\d ]+): ([\d ]+)$", line)
            label = re.match(r"\s*bytes:\[(\d+)", line)
            if row:
                found.append([row[2].split(),
                              [int(v) for v in row[1].split()], 0])
            elif label:
                found[-1][2] = int(label[1])
        elif part == "Locations":
            row = re.match(r"\s*(\d+): (0x[0-9a-f]+)", line)
            if row:
                locations[row[1]] = row[2]
    sums = collections.defaultdict(lambda: [0, 0, 0, 0])
    for ids, values, size in found:
        # Rounded values of estimates make the size a little off.
        key = (tuple(locations[i] for i in ids), round(math.log2(size)))
        sums[key] = [a + b for a, b in zip(sums[key], values)]
    return sums


def differences(a, b):
    """Values are whole numbers here and there, made of fractions."""
    if set(a) != set(b):
        return ["stacks: %d, %d, %d in both" %
                (len(a), len(b), len(set(a) & set(b)))]
    problems = []
    for key, values in a.items():
        size = 2 ** (key[1] + 1)
        for x, y, unit in zip(values, b[key], (1, size, 1, size)):
            if abs(x - y) > max(2, unit, x / 500):
                problems.append("%s: %s, %s" % (key, values, b[key]))
    if not a:
        problems.append("no samples")
    return problems


def raw(command, path, env=None):
    done = subprocess.run(command + [path], capture_output=True, text=True,
                          env=dict(os.environ, TZ="UTC"))
    if done.returncode:
        print("# %s: %s" % (command, done.stderr.strip()))
    return samples(done.stdout)


def head(path):
    with open(path) as file:
        return file.readline()


def memory_problems(path):
    """Of the lines of MemStats: they tell the program's memory, not ours."""
    with open(path) as file:
        stats = {key: int(value) for key, value in re.findall(
            r"^# (\w+) = (\d+)$", file.read(), re.M)}
    rules = [
        ("TotalAlloc < Alloc", stats["TotalAlloc"] < stats["Alloc"]),
        ("HeapSys < HeapInuse", stats["HeapSys"] < stats["HeapInuse"]),
        ("Sys < HeapSys", stats["Sys"] < stats["HeapSys"]),
        ("Sys has more than the program",
         stats["Sys"] > stats["HeapSys"] + (16 << 20)),
    ]
    return ["%s: %s" % (rule, stats) for rule, broken in rules if broken]


def main():
    cpprof, writer = (os.path.abspath(p) for p in sys.argv[1:3])
    folder = tempfile.mkdtemp()
    done = subprocess.run([writer, folder], capture_output=True, text=True)
    if done.returncode and "malloc is that of" in done.stderr:
        print("1..0 # SKIP", done.stderr.strip())
        return 0
    TAP.none("profiles are written", [done.stderr] if done.returncode else [])
    readers = {"cpprof": [cpprof, "raw"]}
    if shutil.which("go"):
        readers["go tool pprof"] = ["go", "tool", "pprof", "-raw"]
    else:
        TAP.skip("text is read by go tool pprof", "no go here")
    for name in ("one", "two"):
        proto, text = (os.path.join(folder, name + end)
                       for end in (".pb.gz", ".txt"))
        for reader, command in readers.items():
            TAP.none("%s: %s reads the same of both forms" % (name, reader),
                     differences(raw(command, proto), raw(command, text)))
    TAP.none("Sys is the program's memory, TotalAlloc at least Alloc",
             memory_problems(os.path.join(folder, "one.txt")))
    TAP.none("rows are unscaled while there was one rate", [] if re.match(
           r"heap profile: \d+: \d+ \[\d+: \d+\] @ heap/8192$",
           head(os.path.join(folder, "one.txt"))) else ["other head"])
    TAP.none("rows are scaled after a change", [] if re.match(
           r"heap profile: \d+: \d+ \[\d+: \d+\] @ heap/2$",
           head(os.path.join(folder, "two.txt"))) else ["other head"])
    shutil.rmtree(folder)
    return TAP.end()


sys.exit(main())
