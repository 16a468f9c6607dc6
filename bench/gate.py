#!/usr/bin/env python3
"""How often `cpprof gate` is right, beside what a plain threshold says of the
differences that `cpprof top -diff_base` prints of the same pairs.

    gate.py BUILD simulated [PAIRS]    runs of known truth
    gate.py BUILD real [RUNS]          recordings of C++, Lua and sqlite3

Simulated runs are those of tests/gate_profiles.py. Real programs are recorded
in turn, as they are and with one function that does more work. Then pairs of
sides are drawn from the runs: of equal ones (A/A), and of those with more work.
"""
import concurrent.futures
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tests"))
import gate_profiles as sim

cpprof = os.path.join(os.path.abspath(sys.argv[1]), "cpprof")


def said(words):
    return subprocess.run([cpprof] + words, capture_output=True, text=True,
                          check=False)


# ---- the two judges ---------------------------------------------------------

def gate(base, head, words, target):
    """(verdict, does the target fail?)"""
    done = said(["gate", "-json=-"] + words + base + ["--"] + head)
    if not done.stdout:
        sys.exit("gate.py: " + done.stderr)
    report = json.loads(done.stdout)
    return report["verdict"], any(
        r["verdict"] == "fail" and r["name"] == target for r in report["rows"])


ROW = re.compile(r"^ *(\S+) +\S+ +\S+ +(-?[\d.]+)([a-z]*) +\S+ +(.*)$")
UNITS = {"": 1, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "mins": 6e10}


def cumulative(words):
    """{function: value} as top prints it, and the total."""
    text = said(["top", "-cum", "-trim=false", "-unit=ns"] + words).stdout
    found = {}
    for line in text.splitlines():
        match = ROW.match(line)
        if match:
            found[match.group(4)] = \
                float(match.group(2)) * UNITS.get(match.group(3), 1)
    return found


def n_runs(paths):
    return sum(len(os.listdir(path)) if os.path.isdir(path) else 1
               for path in paths)


def threshold(base, head, over, target):
    """The same by a plain threshold: a function of 1 % of base or more fails
    when the mean of its runs is more than `over` larger."""
    before = cumulative(base)
    more = cumulative(["-diff_base=" + path for path in base] + head)
    whole = max(before.values())
    scale = n_runs(base) / n_runs(head)
    grew = [name for name, value in before.items() if value >= whole / 100 and
            (value + more.get(name, 0)) * scale > (1 + over) * value]
    return ("fail" if grew else "pass"), target in grew


# ---- simulated --------------------------------------------------------------

def simulated_pair(seed, n_runs, n_samples, noise, growth, over):
    folder = tempfile.mkdtemp(prefix="cpprof-gate.", dir="/dev/shm")
    sides = sim.write_sides(folder, seed, n_runs, n_samples, noise,
                            {sim.TARGET: 1 + growth} if growth else None)
    ours = gate(sides[:1], sides[1:], ["-fail-over=%g%%" % (100 * over)],
                sim.TARGET)
    plain = threshold(sides[:1], sides[1:], over, sim.TARGET)
    shutil.rmtree(folder)
    return ours, plain


def print_row(name, results, target=True):
    n = len(results)

    def percent(count, is_known=True):
        return "%5.1f%%" % (100 * count / n) if is_known else "-"

    print("| %s | %d | %s | %s | %s | %s | %s | %s |" % (
        name, n,
        percent(sum(ours[0] == "fail" for ours, _ in results)),
        percent(sum(ours[1] for ours, _ in results), target),
        percent(sum(ours[0] == "inconclusive" for ours, _ in results)),
        percent(sum(ours[0] == "pass" for ours, _ in results)),
        percent(sum(plain[0] == "fail" for _, plain in results)),
        percent(sum(plain[1] for _, plain in results), target)), flush=True)


def print_head():
    print("| pairs | number | gate fails | the function | inconclusive | passes |"
          " threshold fails | the function |\n"
          "|---|--:|--:|--:|--:|--:|--:|--:|")


def simulated(n_pairs):
    usual, heavy = sim.Noise(0.02, 0.005), sim.Noise(0.02, 0.005, 0.1)
    uneven = (usual, usual.times(4))
    rows = [
        ("A/A, 8 runs of 60 000 samples", 8, 60000, usual, 0, 0.05, 1),
        ("A/A, 8 runs of 6 000 samples", 8, 6000, usual, 0, 0.05, 0.3),
        ("A/A, 8 runs, machine 5 %, functions 2 %", 8, 60000,
         sim.Noise(0.05, 0.02), 0, 0.05, 0.3),
        ("A/A, 8 runs, a tenth of runs and functions far off", 8, 60000, heavy,
         0, 0.05, 0.5),
        ("A/A, 8 runs, head scatters 4 times as far", 8, 60000, uneven, 0, 0.05,
         0.5),
        ("A/A, 20 runs and 1", (20, 1), 60000, usual, 0, 0.05, 0.5),
        ("A/A, 20 runs and 1, which scatters 4 times as far", (20, 1), 60000,
         uneven, 0, 0.05, 0.5),
        ("A/A, 20 runs and 2", (20, 2), 60000, usual, 0, 0.05, 0.5),
        ("A/A, 20 runs and 2, which scatter 4 times as far", (20, 2), 60000,
         uneven, 0, 0.05, 0.5),
        ("A/A, 20 runs and 5", (20, 5), 60000, usual, 0, 0.05, 0.5),
        ("A/A, 20 runs and 5, which scatter 4 times as far", (20, 5), 60000,
         uneven, 0, 0.05, 0.5),
        ("A/A, 4 runs", 4, 60000, usual, 0, 0.05, 0.3),
        ("A/A, 30 runs, -fail-over=2%", 30, 60000, usual, 0, 0.02, 0.3),
        ("5 % slower, 8 runs of 60 000 samples", 8, 60000, usual, 0.05, 0.05,
         0.2),
        ("5 % slower, 8 runs of 30 000 samples", 8, 30000, usual, 0.05, 0.05,
         0.2),
        ("5 % slower, 8 runs of 6 000 samples", 8, 6000, usual, 0.05, 0.05, 0.2),
        ("2 % slower, 30 runs of 60 000 samples, -fail-over=2%", 30, 60000,
         usual, 0.02, 0.02, 0.2),
        ("10 % slower, 4 runs of 60 000 samples", 4, 60000, usual, 0.1, 0.05,
         0.2),
        ("10 % slower, 20 runs and 4", (20, 4), 60000, usual, 0.1, 0.05, 0.2),
        ("twice as slow, 20 runs and 3", (20, 3), 60000, usual, 1, 0.05, 0.2),
        ("5 % faster, 8 runs of 60 000 samples", 8, 60000, usual, -0.05, 0.05,
         0.1),
    ]
    print_head()
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        for i, (name, n_runs, n_samples, noise, growth, over, part) in \
                enumerate(rows):
            n = max(10, int(n_pairs * part))
            print_row(name, list(pool.map(
                simulated_pair, range(100000 * i, 100000 * i + n),
                [n_runs] * n, [n_samples] * n, [noise] * n, [growth] * n,
                [over] * n, chunksize=4)))


# ---- real -------------------------------------------------------------------

LUA = """
local more = tonumber(arg[1])
local function fill(n) local t = {} for i = 1, n do t[i] = (i * 7919) % 1013 end
    return t end
local function order(t) table.sort(t) return t[1] end
local function words(n) local t = {} for i = 1, n do
    t[#t + 1] = string.format("%d:%s", i, ("x"):rep(i % 17)) end
    return #table.concat(t) end
local function target(n) local s = 0 for i = 1, n do s = (s * 31 + i) % 65521 end
    return s end
local s = 0
for i = 1, 120 do
    s = s + order(fill(6000)) + words(9000) + target(math.floor(90000 * more))
end
print(s)
"""

SQL = """
with recursive c(x) as (select 1 union all select x + 1 from c where x < 500000)
select count(*), sum(x * x %% 7), max(printf('%%d', x)) from c;
create table t(a, b); insert into t select value, value * 7919 %% 10007
from generate_series(1, 120000);
select sum(length(g)) from
(select group_concat(a) g from t group by b order by b);
select count(*) from t x where x.b in (select b from t where a %% 3 = 0);
select count(*) from (select max(hex(randomblob(%d)))
from generate_series(1, 12) group by value);
"""

CXX = """
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>
#define APART __attribute__((noinline))
APART static unsigned long target(unsigned long n)
{
    unsigned long s = 1;
    for (unsigned long i = 0; i < n; i++)
        s = s * 6364136223846793005u + (i ^ s >> 7);
    return s;
}
APART static unsigned long sorts(unsigned n)
{
    std::vector<unsigned> v(n);
    for (unsigned i = 0; i < n; i++)
        v[i] = i * 2654435761u;
    std::sort(v.begin(), v.end());
    return v[n / 2];
}
APART static unsigned long maps(unsigned n)
{
    std::map<std::string, unsigned> m;
    for (unsigned i = 0; i < n; i++)
        m[std::to_string(i * 2654435761u % 5003)] += i;
    return m.size();
}
int main(int, char **argv)
{
    double more = atof(argv[1]);
    unsigned long s = 0;
    for (int i = 0; i < 80; i++)
        s += sorts(100000) + maps(15000) + target((unsigned long)(800000 * more));
    printf("%lu\\n", s);
}
"""


def commands(folder):
    """{name: (command of a factor, function that does more)}"""
    def file(name, text):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    source = file("work.cc", CXX)
    program = os.path.join(folder, "work")
    subprocess.run(["c++", "-O2", "-g1", "-o", program, source], check=True)
    lua = file("work.lua", LUA)
    return {
        "C++": (lambda more: [program, "%g" % more], "target(unsigned long)"),
        "lua5.4": (lambda more: ["lua5.4", lua, "%g" % more], "target"),
        "sqlite3": (lambda more: [
            "sqlite3", ":memory:", SQL % int(3000000 * more)], None),
    }


def record(command, path):
    done = said(["record", "-F", "1000", "-e", "perf", "-scripts", "-o", path, "--"] +
                command)
    if done.returncode:
        sys.exit("gate.py: " + done.stderr)


def draw_pair(paths, others, n, rng):
    """n of each; of the same list without one being on both sides."""
    if paths is others:
        both = rng.sample(paths, 2 * n)
        return both[:n], both[n:]
    return rng.sample(paths, n), rng.sample(others, n)


def real(n_recorded):
    """Each program is recorded as it is and with 1.3 and 2 times the work of
    one function."""
    factors = (1, 1.3, 2)
    with tempfile.TemporaryDirectory(prefix="cpprof-gate.") as folder:
        print_head()
        for name, (command, target) in commands(folder).items():
            paths = {factor: [] for factor in factors}
            for i in range(n_recorded):
                for factor in random.Random(i).sample(factors, len(factors)):
                    path = os.path.join(folder, "%s-%g-%d.pb.gz" % (
                        name.replace("+", "x"), factor, i))
                    record(command(factor), path)
                    paths[factor].append(path)
            rng = random.Random(1)
            for label, factor, n in (("A/A", 1, 300),
                                     ("30 % more of one function", 1.3, 60),
                                     ("twice as much of it", 2, 60)):
                pairs = [draw_pair(paths[1], paths[factor], 8, rng)
                         for _ in range(n)]
                with concurrent.futures.ThreadPoolExecutor(2) as pool:
                    results = list(pool.map(
                        lambda pair: (gate(*pair, [], target), threshold(
                            *pair, 0.05, target)), pairs))
                print_row("%s, %s" % (name, label), results, target)


def main():
    if sys.argv[2] == "simulated":
        simulated(int(sys.argv[3]) if len(sys.argv) > 3 else 1000)
    else:
        real(int(sys.argv[3]) if len(sys.argv) > 3 else 32)


if __name__ == "__main__":
    main()
