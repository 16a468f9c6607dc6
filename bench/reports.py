#!/usr/bin/env python3
"""What reports cost, beside Debian's `go tool pprof` in the same run.

    reports.py BUILD MAKER [ROUNDS]

MAKER is genprof.py; its profiles stay in BUILD/bench-data. A row is one report
of one profile, run in turn with its peer, round after round. CPU time is that
of the whole process, user and system; memory is its peak. Figures are medians,
"times less" is the median of the ratios of each round. The peer takes up to a
minute for a row; where it took more than PEER_SECONDS it is not run again, and
all rounds pair with its only one. The large profile is not given to it at all:
there the goals are absolute.
"""
import os
import statistics
import sys
import time

from data import cost, go_pprof, make_profiles

PEER_SECONDS = 5.0
MEMORY = 10     # times less than the peer
LARGE_SECONDS, LARGE_MB = 2.0, 500
SMALL_SECONDS = 0.015

# Profile, report, goal: times less CPU.
PAIRED = [("medium", "-top", 50), ("medium", "-tree", 50),
          ("medium", "-dot", 50), ("medium", "-callgrind", 50),
          ("medium", "-traces", 20), ("medium", "-tags", 20)] + [
              ("nolabels", report, 25)
              for report in ("-top", "-tree", "-dot", "-callgrind")]
PROFILES = {"small": ["--preset", "small"], "medium": ["--preset", "medium"],
            "nolabels": ["--preset", "medium", "--labels", "0"],
            "large": ["--preset", "large"]}


def verdict(*goals):
    missed = [name for name, met in goals if not met]
    return "misses: " + ", ".join(missed) if missed else "met"


def runs(program, words, rounds):
    return [cost([program, "-symbolize=none"] + words) for _ in range(rounds)]


def middle(found, i):
    return statistics.median(run[i] for run in found)


def paired(name, words, goal, peer, cpprof, rounds):
    theirs, ours = [], []
    for _ in range(rounds):
        if not theirs or theirs[0][0] <= PEER_SECONDS:
            theirs += runs(peer, words, 1)
        ours += runs(cpprof, words, 1)
    pairs = [(theirs[min(i, len(theirs) - 1)], run)
             for i, run in enumerate(ours)]
    cpu, memory = (statistics.median(a[i] / b[i] for a, b in pairs)
                   for i in (0, 1))
    print("%-20s %8.2f %8.3f %7.1fx %6dx %8.0f %7.0f %6.1fx %5dx  %s" % (
        name, middle(theirs, 0), middle(ours, 0), cpu, goal,
        middle(theirs, 1), middle(ours, 1), memory, MEMORY,
        verdict(("CPU", cpu >= goal), ("memory", memory >= MEMORY))),
        flush=True)


def large(cpprof, path, rounds):
    for report in ("-top", "-tags"):
        found = runs(cpprof, [report, path], rounds)
        seconds, megabytes = middle(found, 0), middle(found, 1)
        print("%-20s %17.3f %7s %6.0fs %16.0f %13s  %s" % (
            "large " + report, seconds, "", LARGE_SECONDS, megabytes,
            "%d MB" % LARGE_MB,
            verdict(("CPU", seconds < LARGE_SECONDS),
                    ("memory", megabytes < LARGE_MB))), flush=True)


def small(cpprof, path, rounds):
    """The time that is waited, at best: no peer is asked."""
    waited = []
    for _ in range(4 * rounds + 1):
        begin = time.monotonic()
        cost([cpprof, "-symbolize=none", "-top", path])
        waited.append(time.monotonic() - begin)
    least, half = min(waited), statistics.median(waited)
    print("%-20s %17.4f %7s %5.0fms   (elapsed, least %.4f; %d KB)  %s" % (
        "small -top", half, "", SMALL_SECONDS * 1000, least,
        os.path.getsize(path) / 1024,
        verdict(("time", least < SMALL_SECONDS))), flush=True)


def main():
    build, maker = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    cpprof, peer = os.path.join(build, "cpprof"), go_pprof()
    paths = make_profiles(maker, os.path.join(build, "bench-data"), PROFILES)
    print("%-20s %8s %8s %8s %7s %8s %7s %7s %6s" % (
        "CPU seconds, peak MB", "go: s", "cpprof", "less", "goal", "go: MB",
        "cpprof", "less", "goal"))
    if not peer:
        print("skipped: no go tool pprof")
    for profile, report, goal in PAIRED if peer else []:
        paired(profile + " " + report, [report, paths[profile]], goal, peer,
               cpprof, rounds)
    large(cpprof, paths["large"], rounds)
    small(cpprof, paths["small"], rounds)


if __name__ == "__main__":
    main()
