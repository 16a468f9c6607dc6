#!/usr/bin/env python3
"""What it costs that a profiler is there: presence.py BUILD [ROUNDS]

Each row is one way to start bench/presence, asked in turn; a figure is the
median over the rounds. The first table is CPU time, which says what is done and
not how busy the machine is; the second is time that passed. Start is what it
takes to main(), exit from the end of main() to the end of the process. The
program does next to nothing, so these are the costs of being there, not of
sampling. The row of an empty library is the least that a preloaded one can
cost; the next has one that exports as many names as ours, the third one with
a thread that sleeps, in each child, too, and the fourth one with a thread that
libc knows nothing of.
"""
import glob
import os
import shutil
import statistics
import sys
import tempfile
import time

REPEATS = "20"
GOALS = ("goals: off below 2 MB and 100 us more; fork+exec 1.05 times plain off, "
         "1.2 with cpu")
# ORDER: as presence.c says them
N_WORDS = 12


def library(name):
    found = sorted(glob.glob("/usr/lib/*/" + name))
    return found[0] if found else None


def ways(build, folder):
    """(name, environment) of each row; peers that are missing are left out."""
    ours = os.path.join(build, "libcpprof.so")
    out = ",out=" + folder + "/%p.%k"
    empty = os.path.join(build, "bench", "libempty%s.so")
    rows = [("plain", {}), ("plain again", {}),
            ("empty library", {"LD_PRELOAD": empty % ""}),
            ("empty, our names", {"LD_PRELOAD": empty % "_names"}),
            ("empty, a thread", {"LD_PRELOAD": empty % "_thread"}),
            ("empty, a clone()", {"LD_PRELOAD": empty % "_clone"}),
            ("off", {"LD_PRELOAD": ours})]
    for name, words in (
            ("cpu", "cpu" + out), ("heap", "heap" + out),
            ("block, mutex", "block,mutex" + out), ("wall", "wall" + out),
            ("http", "http=unix:" + folder + "/%p.sock"),
            ("all", "cpu,heap,block,mutex,wall,http=unix:" + folder +
             "/%p.sock" + out)):
        rows.append((name, {"LD_PRELOAD": ours, "CPPROF": words}))
    for name, file, env in (
            ("gperftools, cpu", "libprofiler.so.0",
             {"CPUPROFILE": folder + "/g"}),
            ("gperftools, heap", "libtcmalloc.so.4",
             {"HEAPPROFILE": folder + "/h"}),
            ("jemalloc", "libjemalloc.so.2", {}),
            ("jemalloc, prof", "libjemalloc.so.2",
             {"MALLOC_CONF": "prof:true,prof_prefix:" + folder + "/j"})):
        path = library(file)
        if path:
            rows.append((name, dict(env, LD_PRELOAD=path)))
    return rows


def run(program, env, folder):
    """What one process says, with CPU and elapsed time of its end last."""
    base = {k: v for k, v in os.environ.items()
            if k not in ("LD_PRELOAD", "CPPROF")}
    read_end, write_end = os.pipe()
    null = os.open(os.path.join(folder, "err"), os.O_WRONLY | os.O_CREAT)
    actions = [(os.POSIX_SPAWN_DUP2, write_end, 1),
               (os.POSIX_SPAWN_DUP2, null, 2)]
    start = time.monotonic_ns()
    pid = os.posix_spawn(program, [program, str(start), REPEATS],
                         dict(base, **env), file_actions=actions)
    os.close(write_end)
    _, status, usage = os.wait4(pid, 0)
    end = time.monotonic_ns()
    words = os.read(read_end, 4096).split()
    os.close(read_end)
    os.close(null)
    if status or len(words) != N_WORDS:
        return None
    figures = [float(word) for word in words]
    used = (usage.ru_utime + usage.ru_stime) * 1e6
    return figures[:-2] + [used - figures[-2], (end - figures[-1]) / 1e3]


def table(title, medians, first, with_sizes):
    """Figures number first, first + 2 and so on, a row for each way."""
    plain = medians["plain"][first + 4]
    print("%-18s " % title + ("%9s %9s " % ("space MB", "RSS MB")
                              if with_sizes else "") +
          "%9s %9s %10s %9s %9s %9s" % ("start", "fork", "fork+exec",
                                       "of plain", "thread", "exit"))
    for name, m in medians.items():
        start, fork, fork_exec, thread, end = m[first::2]
        print("%-18s " % name + ("%9.1f %9.1f " % (m[0] / 1024, m[1] / 1024)
                                 if with_sizes else "") +
              "%9.0f %9.0f %10.0f %9.2f %9.1f %9.0f" % (
                  start, fork, fork_exec, fork_exec / plain, thread, end))


def ends(build, folder):
    """(name, command, environment): a program of a tenth of a second."""
    work = [os.path.join(build, "bench", "work"), "0.05"]
    record = [os.path.join(build, "cpprof"), "record", "-o", folder + "/r"]
    ours = {"LD_PRELOAD": os.path.join(build, "libcpprof.so")}
    words = "cpu,out=" + folder + "/o"
    return [("plain", work, {}), ("record", record + ["--"] + work, {}),
            ("record, functions",
             record + ["-symbolize=functions", "--"] + work, {}),
            ("out=", work, dict(ours, CPPROF=words)),
            ("out=, functions", work,
             dict(ours, CPPROF=words + ",symbolize=functions"))]


def cpu_ms(command, env, folder):
    """CPU time of a command and all that it waited for."""
    null = os.open(os.path.join(folder, "err"), os.O_WRONLY | os.O_CREAT)
    pid = os.posix_spawn(command[0], command, dict(os.environ, **env),
                         file_actions=[(os.POSIX_SPAWN_DUP2, null, 1),
                                       (os.POSIX_SPAWN_DUP2, null, 2)])
    usage = os.wait4(pid, 0)[2]
    os.close(null)
    return (usage.ru_utime + usage.ru_stime) * 1e3


def print_ends(build, folder, rounds):
    rows = ends(build, folder)
    figures = {name: [] for name, _, _ in rows}
    for _ in range(rounds):
        for name, command, env in rows:
            figures[name].append(cpu_ms(command, env, folder))
    plain = statistics.median(figures["plain"])
    print("start and end of a program that is profiled, CPU ms more than plain"
          " (%.0f); goal: 15" % plain)
    for name, of in list(figures.items())[1:]:
        print("%-18s %9.1f" % (name, statistics.median(of) - plain))


def main():
    build = os.path.abspath(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 9
    program = os.path.join(build, "bench", "presence")
    folder = tempfile.mkdtemp(prefix="cpprof-presence.")
    rows = ways(build, folder)
    figures = {name: [] for name, _ in rows}
    for _ in range(rounds):
        for name, env in rows:
            got = run(program, env, folder)
            if got:
                figures[name].append(got)
    medians = {name: [statistics.median(c) for c in zip(*of)]
               for name, of in figures.items() if of}
    table("CPU us", medians, 2, True)
    table("elapsed us", medians, 3, False)
    for name in figures:
        if name not in medians:
            print("%s: did not end well" % name)
    print(GOALS)
    print_ends(build, folder, rounds)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
