#!/usr/bin/env python3
"""How far the symbolizer agrees with llvm-symbolizer, address by address.

    symbols_compare.py BENCH_SYMBOLS FILE [N [SHOWN]]

Random addresses of .text (3000) are asked of both. Names are compared as the
linker's, without versions and the suffixes of compiler-made copies; C1 and C2,
D0, D1 and D2 count as one, since they are one function at one address. Of the
files only the last part is compared: with -ffile-prefix-map the tools join
relative folders differently. SHOWN differences are printed. llvm-symbolizer
reads DEBUG if that is set, for a FILE whose debug information is apart.
"""
import os
import random
import re
import subprocess
import sys

COPY = re.compile(r"(\.(cold|constprop|isra|part|lto_priv|llvm)(\.\d+)*)+$")
TEXT = re.compile(r"\]\s+\.text\S*\s+PROGBITS\s+(\S+)\s+\S+\s+(\S+)")


def addresses_of(path, n):
    headers = subprocess.run(["readelf", "-SW", path], capture_output=True,
                             text=True, check=False).stdout
    texts = [(int(a, 16), int(b, 16)) for a, b in TEXT.findall(headers)]
    random.seed(1)
    picks = []
    for _ in range(n):
        start, size = random.choices(texts, [size for _, size in texts])[0]
        picks.append(start + random.randrange(size))
    return picks


def ask(command, addresses):
    """The frames of each address: (name, file, line), innermost first."""
    text = "".join("%#x\n" % a for a in addresses)
    out = subprocess.run(command, input=text, capture_output=True, text=True,
                         errors="replace", check=False).stdout
    answers = []
    for block in out.split("\n\n"):
        lines = block.strip("\n").split("\n")
        frames = []
        for name, place in zip(lines[::2], lines[1::2]):
            path, line, _ = place.rsplit(":", 2)
            frames.append((name, os.path.basename(path), int(line)))
        if frames:
            answers.append([] if frames[0][0] == "??" else frames)
    return answers


def plain(name):
    name = COPY.sub("", name.split("@")[0])
    return re.sub(r"([CD])\d(E|I)", r"\1#\2", name)


def percent(part, whole):
    return "%6.2f %%" % (100 * part / whole)


def main():
    bench, path = sys.argv[1:3]
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 3000
    shown = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    addresses = addresses_of(path, n)
    ours = ask([bench, "-a", path], addresses)
    theirs = ask(["llvm-symbolizer", "--inlines", "--no-demangle",
                  "--obj=" + os.environ.get("DEBUG", path)], addresses)
    assert len(ours) == len(theirs) == n, (len(ours), len(theirs))
    depth = names = lines = 0
    for address, a, b in zip(addresses, ours, theirs):
        same_depth = len(a) == len(b)
        same_names = same_depth and all(
            plain(x[0]) == plain(y[0]) for x, y in zip(a, b))
        # llvm-symbolizer takes the object's name for a file where the unit
        # has no DWARF.
        same_lines = same_depth and all(
            x[1:] == y[1:] or (x[1] == "??" and y[2] == 0)
            for x, y in zip(a, b))
        depth += same_depth
        names += same_names
        lines += same_lines
        if shown and not (same_names and same_lines):
            shown -= 1
            print(hex(address), *["  ours   %s %s:%d" % f for f in a],
                  *["  theirs %s %s:%d" % f for f in b], sep="\n")
    print("%s: %d addresses; as many frames %s, names %s, lines %s" % (
        os.path.basename(path), n, percent(depth, n), percent(names, n),
        percent(lines, n)))


main()
