#!/usr/bin/env python3
"""What the profiles of waits cost: locks.py BUILD [SECONDS]

One process for each row, asked in turn, so that what is compared ran within
milliseconds, by its CPU time; a figure is the median of the differences (or ratios) to the
process without the library in the same round. Beside it stands what a second
process without it says.
"""
import os
import statistics
import subprocess
import sys
import time

GOAL_OFF_NS, GOAL_ON_NS, GOAL_PASS = 1.0, 3.0, 1.02


class Row:
    def __init__(self, name, program, library, rates, goal, goal_pass,
                 words="heap=0"):
        env = {k: v for k, v in os.environ.items()
               if k not in ("LD_PRELOAD", "CPPROF")}
        if library:
            env.update(LD_PRELOAD=library, CPPROF=words)
        self.name, self.goal, self.goal_pass = name, goal, goal_pass
        self.process = subprocess.Popen(
            [program], env=env, stdin=subprocess.PIPE, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.ask("rates %d %d" % rates)
        self.times = {}

    def ask(self, what):
        print(what, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit("locks.py: failed: " + self.name)
        return float(line)


def middle(values):
    """Median and its standard error, from the middle half."""
    low, median, high = statistics.quantiles(values, n=4)
    return median, (high - low) / 1.35 * 1.25 / len(values) ** 0.5


def cell(row, plain, what):
    ours, bare = row.times[what], plain.times[what]
    if what == "pass":
        value, error = middle([a / b for a, b in zip(ours, bare)])
        missed = row.goal_pass and value - 2 * error > row.goal_pass
        text = "%7.3f +- %.3f" % (value, error)
    else:
        value, error = middle([a - b for a, b in zip(ours, bare)])
        missed = row.goal is not None and value - 2 * error > row.goal
        text = "%+7.2f +- %.2f" % (value, error)
    return text + ("!" if missed else " ")


def main():
    build = sys.argv[1]
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 30
    program = os.path.join(build, "bench", "locks")
    ours = os.path.join(build, "libcpprof.so")
    questions = ["pair 0", "pair 1", "pass"]
    rows = [
        Row("plain", program, None, (0, 0), None, None),
        Row("plain again", program, None, (0, 0), None, None),
        Row("off", program, ours, (0, 0), GOAL_OFF_NS, GOAL_PASS),
        # Nothing is hooked; what is left is a look at each thread, 3 a second.
        Row("deadlock=report", program, ours, (0, 0), GOAL_OFF_NS, GOAL_PASS,
            "deadlock=report"),
        Row("block 1 ms, mutex 1/100", program, ours, (1000000, 100),
            GOAL_ON_NS, GOAL_PASS),
        Row("mutex 1/100", program, ours, (0, 100), GOAL_ON_NS, GOAL_PASS),
        Row("block 10 us, mutex 1/100", program, ours, (10000, 100),
            GOAL_ON_NS, GOAL_PASS),
        Row("block 10 us, mutex 1/10", program, ours, (10000, 10),
            GOAL_ON_NS, None),
        Row("block 1 ns, mutex 1/1", program, ours, (1, 1), GOAL_ON_NS, None)]
    # The second question makes a thread that stays: all of the first before.
    for what in questions:
        for row in rows:
            row.times[what] = []
        end = time.monotonic() + seconds / len(questions)
        n = 0
        while n < 5 or time.monotonic() < end:
            for row in rows[n % len(rows):] + rows[:n % len(rows)]:
                row.times[what].append(row.ask(what))
            n += 1
    plain = rows[0]
    print("%-26s %18s %18s %18s" % ("", "pair, 1 thread", "pair, 2 threads",
                                    "hand-over"))
    print("%-26s %15.1f ns %15.1f ns %15.0f ns" % (
        ("plain",) + tuple(statistics.median(plain.times[q])
                           for q in questions)))
    for row in rows[1:]:
        print("%-26s %18s %18s %18s" % (
            (row.name,) + tuple(cell(row, plain, q) for q in questions)))
    print("! more than asked: %.0f ns off, %.0f ns on, a hand-over %.2f" % (
        GOAL_OFF_NS, GOAL_ON_NS, GOAL_PASS))
    for row in rows:
        row.process.stdin.close()
        row.process.wait()


if __name__ == "__main__":
    main()
