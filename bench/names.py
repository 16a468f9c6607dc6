#!/usr/bin/env python3
"""Are the names right that a stripped program's functions get?

    names.py BUILD [PROGRAM...]

Builds real programs by gcc and by clang, strips a copy of each, records the copy
at work, and holds each frame of its stacks against the symbol table that the
copy has lost. A line for each program: samples, those whose leaf has a function;
frames, those whose function is that of the symbol (the symbol's name, or a
stand-in with the address where it begins; a part that the compiler moved away
has its function's), those in functions that begin elsewhere, and names that
are another function's. Then what is not right, the most frequent first.

The exit status is 1 if a name is another function's or less than 99.5 % agree.
Sources are those of bench/pgo.py; a program that cannot be had is left out.
What was built is kept, in BUILD/bench/pgo/names.
SECONDS_EACH (6) of CPU time are recorded, at 1000 Hz.
"""
import bisect
import collections
import os
import re
import subprocess
import sys

import pgo

ASKED = 0.995
SECONDS = float(os.environ.get("SECONDS_EACH", "6"))
COMPILERS = {"gcc": ("gcc", "g++"), "clang": ("clang-14", "clang++-14")}
# What each is built with, in turn: as Debian does, and by others.
FLAGS = {"gcc": ["-O2", "-g1", "-w", "-fstack-protector-strong"],
         "clang": ["-O2", "-g1", "-w"]}

CXX = r"""
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
struct shape { virtual ~shape() {} virtual double area(double x) = 0; };
struct square : shape { double area(double x) override { return x * x; } };
struct round : shape { double area(double x) override {
    if (x < 0)
        throw std::range_error("negative");
    return x * 3; } };
int main()
{
    std::map<std::string, std::vector<double>> all;
    std::regex word("([a-z]+)[0-9]*(b|cd)+");
    shape *shapes[] = {new square, new round};
    for (long i = 0; i < 60000; i++) {
        std::ostringstream text;
        text << "abc" << i * 7919 % 1000 << "cdb" << i / 7.0;
        std::smatch found;
        std::string line = text.str();
        if (std::regex_search(line, found, word))
            all[found[0]].push_back(line.size() * 1.5);
        try {
            all["area"].push_back(shapes[i % 2]->area(i % 10 - 1));
        } catch (const std::exception &) {
        }
    }
    for (auto &[name, values] : all)
        std::sort(values.begin(), values.end());
    std::cout << all.size();
}
"""


def cxx(work):
    """With all of the library of C++ inside."""
    with open(os.path.join(work, "main.cc"), "w", encoding="ascii") as file:
        file.write(CXX)
    return {"files": [os.path.join(work, "main.cc")], "cxx": True,
            "flags": ["-static-libstdc++", "-static-libgcc"], "libs": [],
            "train": []}


PROGRAMS = {**pgo.PROGRAMS, "c++": cxx}
DEFAULT = ["sqlite", "lua", "duktape", "bzip2", "zstd", "simplecpp", "c++"]


# ---- what the symbol table says ----------------------------------------------

class Truth:
    """Functions of a file: by address, and names of each."""

    def __init__(self, path):
        self.loads = [[int(x, 16) for x in m.groups()] for m in re.finditer(
            r"LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x\w+ R E",
            pgo.sh("readelf", "-lW", path))]
        names, limits, alone = collections.defaultdict(set), {}, {}
        for m in re.finditer(r"^ +\d+: (\w+) +(\w+) (?:FUNC|IFUNC|NOTYPE) +\w+ "
                             r"+\w+ +\d+ (\S+)", pgo.sh("readelf", "-sW", path),
                             re.M):
            start, name = int(m[1], 16), m[3].split("@")[0]
            if self.offset_of(start) is None:
                continue
            names[start].add(name)
            limits[start] = max(limits.get(start, 0), start + int(m[2], 0))
            alone.setdefault(name, start)
        for m in re.finditer(r"^(\w+) <(\S+@plt)>:", subprocess.run(
                ["objdump", "-d", path], capture_output=True, text=True,
                check=True).stdout, re.M):
            start = int(m[1], 16)
            names[start].add(m[2])
            limits[start] = start + 16
        self.names, self.limits, self.alone = names, limits, alone
        self.starts = sorted(names)

    def offset_of(self, address):
        return next((address - v + o for o, v, n in self.loads
                     if 0 <= address - v < n), None)

    def address_of(self, offset):
        return next((offset - o + v for o, v, n in self.loads
                     if 0 <= offset - o < n), None)

    def find(self, address):
        """(start, names) of the function that has an address; None: no symbol
        covers it. One without a size ends where the next begins."""
        at = last = bisect.bisect_right(self.starts, address) - 1
        while at >= 0 and self.starts[at] > address - (1 << 22):
            start = self.starts[at]
            if address < self.limits[start] or \
                    (at == last and self.limits[start] == start):
                break
            at -= 1
        else:
            return None
        names = set(self.names[start])
        for name in self.names[start]:
            whole = re.sub(r"\.cold(\.\d+)?$", "", name)
            if whole != name and whole in self.alone:
                start = self.alone[whole]
                names |= self.names[start]
        return start, names


# ---- what cpprof says --------------------------------------------------------

def parse(text, file):
    """(samples, those whose leaf has a function, a Counter of (offset in the
    file, function) of all frames in it), for those with a leaf in it."""
    samples, _, rest = text.partition("\nLocations\n")
    locations, _, mappings = rest.partition("\nMappings\n")
    starts = {m[1]: int(m[3], 16) - int(m[2], 16) for m in re.finditer(
        r"^(\d+): 0x(\w+)/0x\w+/0x(\w+) (/\S+)", mappings, re.M)
        if os.path.basename(m[4]) == file}
    places = {m[1]: (int(m[2], 16) + starts[m[3]],
                     linker_name(m[4]))
              for m in re.finditer(r"^ +(\d+): 0x(\w+) M=(\d+) ?(.*)$",
                                   locations, re.M) if m[3] in starts}
    frames = collections.Counter()
    n = n_named = 0
    for m in re.finditer(r"^ +(\d+) +\d+: ([\d ]+)$", samples, re.M):
        ids = m[2].split()
        if ids[0] in places:
            n += int(m[1])
            n_named += int(m[1]) * is_function(places[ids[0]][1])
        for each in ids:
            if each in places:
                frames[places[each]] += int(m[1])
    return n, n_named, frames


def linker_name(text):
    """Of "NAME FILE:LINE:COLUMN s=LINE(LINKER'S NAME)", which is not there
    where it is the same."""
    m = re.match(r"(.*) \S*:\d+:\d+ s=\d+(?:\((.*)\))?$", text.strip())
    return (m[2] or m[1]) if m else ""


def is_function(name):
    """Not "[FILE]", nor "[FILE after SYMBOL]"."""
    return bool(name) and not re.fullmatch(r"\[[^+]*\]", name)


def judge(truth, offset, name):
    """"right", "elsewhere" (another boundary), "none" or "wrong"; and the
    truth. None: no symbol covers it."""
    address = truth.address_of(offset)
    found = truth.find(address) if address is not None else None
    if not found:
        return None, ""
    start, names = found
    what = "%s at %#x" % ("/".join(sorted(names)[:2]), start)
    if not is_function(name):
        return "none", what
    stand_in = re.fullmatch(r"\[.*\+0x(\w+)\]", name)
    if stand_in:
        return "right" if int(stand_in[1], 16) == start else "elsewhere", what
    return "right" if name in names else "wrong", what


def record(twin, words, work, once):
    again = "i=0; while [ $i -lt %d ]; do \"$@\" >/dev/null 2>&1; " \
        "i=$((i+1)); done" % max(1, round(SECONDS / max(once, 0.01)))
    pgo.sh(pgo.cpprof, "record", "-one", "-F", "1000", "-o=twin.pb.gz", "--",
           "sh", "-c", again, "sh", twin, *words, cwd=work)
    return pgo.sh(pgo.cpprof, "-raw", "twin.pb.gz", cwd=work)


# ---- all of it ---------------------------------------------------------------

def check(label, full, words, work):
    twin = os.path.join(work, "twin")
    pgo.sh("strip", "-o", twin, full)
    text = record(twin, words, work, pgo.seconds([twin, *words], work))
    n, n_named, frames = parse(text, "twin")
    truth = Truth(full)
    sums, bad = collections.Counter(), collections.Counter()
    for (offset, name), count in frames.items():
        verdict, what = judge(truth, offset, name)
        sums[verdict] += count
        if verdict != "right":
            bad["%s: %s is in %s" % (verdict, name or "no name", what) if verdict
                else "no symbol: %s" % name] += count
    all_ = sum(sums.values()) - sums[None]
    share = sums["right"] / all_ if all_ else 0
    print("%-18s %8d %9.2f %8d %9.3f %10d %6d %9d" % (
        label, n, 100 * n_named / max(n, 1), all_, 100 * share,
        sums["elsewhere"], sums["wrong"], sums[None]), flush=True)
    for what, count in bad.most_common(5):
        print("    %6d  %s" % (count, what), flush=True)
    return all_ > 0 and share >= ASKED and not sums["wrong"], n, \
        collections.Counter(sums)


def place(name):
    work = os.path.join(pgo.folder, "names", name)
    os.makedirs(work, exist_ok=True)
    return work


def one(name, compiler):
    work = place(name)
    program = PROGRAMS[name](work)
    pgo.compiler = lambda p: COMPILERS[compiler][bool(p.get("cxx"))]
    pgo.FLAGS = FLAGS[compiler]
    full = os.path.join(work, "full-" + compiler)
    if not os.path.exists(full):
        pgo.make(program, work, os.path.basename(full))
    return check("%s, %s" % (name, compiler), full, program["train"], work)


def main():
    asked = sys.argv[2:] or DEFAULT
    print("%-18s %8s %9s %8s %9s %10s %6s %9s" % (
        "program", "samples", "% with a", "frames", "% right", "elsewhere",
        "wrong", "no symbol"))
    done = []
    for compiler in COMPILERS:
        for name in asked:
            try:
                done.append(one(name, compiler))
            except (OSError, IndexError) as error:
                print("%-18s left out: %s" % (name, error), flush=True)
    sums = sum((each[2] for each in done), collections.Counter())
    all_ = sum(sums.values()) - sums[None]
    print("%-18s %8d %9s %8d %9.3f %10d %6d %9d" % (
        "all", sum(each[1] for each in done), "", all_,
        100 * sums["right"] / max(all_, 1), sums["elsewhere"], sums["wrong"],
        sums[None]))
    return 0 if done and all(each[0] for each in done) else 1


if __name__ == "__main__":
    sys.exit(main())
