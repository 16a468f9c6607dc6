#!/usr/bin/env python3
"""What reading, rewriting, printing and merging profiles costs, beside Debian's
`go tool pprof` in the same run.

    data.py BUILD MAKER [ROUNDS]

MAKER is genprof.py; its profiles stay in BUILD/bench-data. Each row is run in
turn with its peer, round after round; CPU time is that of the whole process,
user and system, memory its peak. Figures are medians, "times less" is the
median of the ratios of each round.
"""
import os
import shutil
import statistics
import subprocess
import sys

N_MERGED = 100
GOAL_CPU = 20      # times less
GOAL_MEMORY = 4    # times less
GOAL_LARGE_MB = 500


def make_profiles(maker, folder, wanted):
    """Profiles by name, made with the given words; those that are there are
    not made again."""
    os.makedirs(folder, exist_ok=True)
    paths = {}
    for name, words in wanted.items():
        paths[name] = os.path.join(folder, name + ".pb.gz")
        if os.path.exists(paths[name]):
            continue
        part = paths[name] + ".part"
        subprocess.run([sys.executable, maker, "-o", part] + words, check=True,
                       stdout=subprocess.DEVNULL)
        os.rename(part, paths[name])
    return paths


def make(maker, folder):
    """The profiles by name, and those to be merged."""
    wanted = {name: ["--preset", name] for name in ("medium", "large")}
    for i in range(N_MERGED):
        wanted["small%d" % i] = ["--preset", "small", "--sample-seed", str(i)]
    return make_profiles(maker, folder, wanted)


def cost(words):
    """CPU seconds and peak MB."""
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in range(3)]
    pid = os.posix_spawn(words[0], words,
                         dict(os.environ, PPROF_BINARY_PATH="/nonexistent"),
                         file_actions=actions)
    os.close(null)
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit("data.py: failed: " + " ".join(words)[:300])
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def verdict(cpu, memory):
    missed = [name for name, value, goal in
              (("CPU", cpu, GOAL_CPU), ("memory", memory, GOAL_MEMORY))
              if value < goal]
    return "misses the goal: " + ", ".join(missed) if missed else ""


def row(name, peer, cpprof, words, rounds):
    theirs, ours = [], []
    for _ in range(rounds):
        theirs.append(cost([peer] + words))
        ours.append(cost([cpprof] + words))
    cpu = statistics.median(a[0] / b[0] for a, b in zip(theirs, ours))
    memory = statistics.median(a[1] / b[1] for a, b in zip(theirs, ours))
    middle = [statistics.median(run[i] for run in runs)
              for runs in (theirs, ours) for i in (0, 1)]
    print("%-22s %8.2f %8.3f %9.1fx %8.0f %8.0f %9.1fx  %s" % (
        name, middle[0], middle[2], cpu, middle[1], middle[3], memory,
        verdict(cpu, memory)), flush=True)


def large(cpprof, path, work):
    for words in (["-top"], ["-proto", "-output=" + work]):
        seconds, megabytes = cost([cpprof, "-symbolize=none"] + words + [path])
        print("%-22s %17.3f %28.0f %11s%s" % (
            "large " + words[0], seconds, megabytes, "",
            "misses the goal: memory" if megabytes > GOAL_LARGE_MB else ""),
              flush=True)


def go_pprof():
    if not shutil.which("go"):
        return None
    folder = subprocess.run(["go", "env", "GOTOOLDIR"], capture_output=True,
                            check=True, text=True).stdout.strip()
    return os.path.join(folder, "pprof")


def main():
    build, maker = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    cpprof, peer = os.path.join(build, "cpprof"), go_pprof()
    folder = os.path.join(build, "bench-data")
    paths = make(maker, folder)
    work = os.path.join(folder, "work.pb.gz")
    merged = [paths["small%d" % i] for i in range(N_MERGED)]
    print("%-22s %8s %8s %10s %8s %8s %10s" % (
        "", "go: s", "cpprof", "less CPU", "go: MB", "cpprof", "less"))
    rows = [("medium -proto", ["-proto", "-output=" + work, paths["medium"]]),
            ("medium -raw", ["-raw", paths["medium"]]),
            ("medium -top", ["-top", paths["medium"]]),
            ("merge %d -proto" % N_MERGED,
             ["-proto", "-output=" + work] + merged)]
    for name, words in rows:
        if peer:
            row(name, peer, cpprof, ["-symbolize=none"] + words, rounds)
    if not peer:
        print("skipped: no go tool pprof")
    large(cpprof, paths["large"], work)
    subprocess.run([os.path.join(build, "bench", "data_decode"),
                    str(2 * rounds + 1), paths["medium"], paths["large"]],
                   check=True)


if __name__ == "__main__":
    main()
