#!/usr/bin/env python3
"""Every form of a profile is the same profile, whoever reads it.

    forms.py CPPROF FORMS_WRITER

Prints TAP. The forms that FORMS_WRITER wrote are read by cpprof and by
`go tool pprof`: the same values at the same stacks.
"""
import collections
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

# Name, header of its text.
PROFILES = [
    ("block", r"--- contention:\ncycles/second=1000000000\n\d"),
    ("mutex", r"--- mutex:\ncycles/second=1000000000\nsampling period=5\n\d"),
    ("goroutine", r"goroutine profile: total 13\n\d"),
    ("threadcreate", r"threadcreate profile: total 13\n\d"),
    ("my.own-profile", r"my.own-profile profile: total 100\n\d"),
]


def samples(raw):
    """{addresses of the callers: values, added up} of -raw.

    The leaf is left out: readers take its address in a text of contentions
    for that of an instruction, and it is the one behind the call.
    """
    locations, found, part = {}, [], None
    for line in raw.splitlines():
        if line in ("Samples:", "Locations", "Mappings"):
            part = line
            continue
        row = re.match(r"\s*([-\d ]+): ([\d ]+)$", line)
        location = re.match(r"\s*(\d+): (0x[0-9a-f]+)", line)
        if part == "Samples:" and row:
            found.append((row[2].split(), [int(v) for v in row[1].split()]))
        elif part == "Locations" and location:
            locations[location[1]] = location[2]
    sums = collections.defaultdict(lambda: [0, 0])
    for ids, values in found:
        key = tuple(locations[i] for i in ids[1:])
        sums[key] = [a + b for a, b in zip(sums[key], values)]
    return sums


def read(command, path):
    done = subprocess.run(command + [path], capture_output=True, text=True)
    if done.returncode:
        print("# %s: %s" % (command, done.stderr.strip()))
    return samples(done.stdout)


def differences(a, b):
    if not a:
        return ["no samples"]
    if set(a) != set(b):
        return ["%d and %d stacks, %d in both" %
                (len(a), len(b), len(set(a) & set(b)))]
    return ["%s: %s, %s" % (k, a[k], b[k]) for k in a if a[k] != b[k]]


def lines_of_stacks(text):
    """Rows end as Go's do: addresses, and under them a line for each."""
    problems = []
    for row in re.finditer(r"^\d+(?: \d+)? @(.*)\n((?:#.*\n)*)\n", text, re.M):
        addresses = row[1].split()
        shown = re.findall(r"^#\t0x([0-9a-f]+)", row[2], re.M)
        if not addresses or not shown:
            problems.append("empty: " + row[0][:80])
        for address in shown:
            if "0x%x" % (int(address, 16) + 1) not in addresses:
                problems.append("not on the row: 0x" + address)
    if text.count("\n\n\n"):
        problems.append("two empty lines")
    return problems


def judge(reader, command, folder):
    for name, _ in PROFILES:
        path = os.path.join(folder, name)
        proto = read(command, path + ".pb.gz")
        for form in "text", "legacy":
            TAP.none("%s: %s as %s" % (reader, name, form),
                     differences(proto, read(command, path + "." + form)))


def main():
    cpprof, writer = map(os.path.realpath, sys.argv[1:])
    folder = tempfile.mkdtemp()
    library = os.path.dirname(cpprof)
    done = subprocess.run([writer, folder], stderr=subprocess.STDOUT,
                          env=dict(os.environ, LD_LIBRARY_PATH=library))
    TAP.none("all forms are written", [done] if done.returncode else [])
    for name, head in PROFILES:
        with open(os.path.join(folder, name + ".text")) as file:
            text = file.read()
        with open(os.path.join(folder, name + ".legacy")) as file:
            legacy = file.read()
        TAP.none(name + ": its first lines",
                 [] if re.match(head, text) and re.match(head, legacy)
                 else [text[:100], legacy[:100]])
        TAP.none(name + ": its rows", lines_of_stacks(text))
        TAP.none(name + ": the old form is the text without names",
                 [] if legacy == re.sub(r"(?m)^(#\t.*)?\n", "", text)
                 else [legacy[:200]])
    judge("cpprof", [cpprof, "raw"], folder)
    if shutil.which("go"):
        judge("go", ["go", "tool", "pprof", "-symbolize=none", "-raw"], folder)
    else:
        TAP.skip("go tool pprof", "there is no go")
    shutil.rmtree(folder)
    return TAP.end()


sys.exit(main())
