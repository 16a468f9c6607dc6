#!/usr/bin/env python3
"""What profiling the heap costs, beside other heap profilers in the same run.

    heap.py BUILD WORK pairs|programs [SECONDS]

Times are CPU time. The machine's speed moves by more than what is to be seen
here, so only what ran at the same moment is compared: pairs of malloc and free
are made for some milliseconds by one process after the other, programs run two
at a time, each on a processor of its own, which they swap every round
(L. Bulej et al., Duet Benchmarking, ICPE 2020). A figure is the median over all
rounds, of which as many are made as fit into SECONDS. Beside it stands what the
same figure says of the plain program against itself.
"""
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

RATE = 512 * 1024
LIBRARIES = "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", \
    "/usr/lib64", "/usr/lib"
GOAL_OFF_NS, GOAL_ON_NS, GOAL_RATIO = 1.0, 2.0, 1.01


def library(name):
    for folder in LIBRARIES:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    return None


def environment(preload=(), **variables):
    """The variables of a run without profilers but those named."""
    drop = ("LD_PRELOAD", "CPPROF", "MALLOC_CONF", "HEAPPROFILE",
            "TCMALLOC_SAMPLE_PARAMETER", "PYTHONMALLOC")
    env = {k: v for k, v in os.environ.items() if k not in drop}
    if preload:
        env["LD_PRELOAD"] = ":".join(preload)
    env.update(variables)
    return env


def rounds_for(seconds):
    """Numbers of rounds until the time is up; at least three."""
    end = time.monotonic() + seconds
    n = 0
    while n < 3 or time.monotonic() < end:
        yield n
        n += 1


def turned(rows, n):
    n %= len(rows)
    return rows[n:] + rows[:n]


def middle(values):
    """Median and its standard error, from the middle half."""
    low, median, high = statistics.quantiles(values, n=4)
    return median, (high - low) / 1.35 * 1.25 / len(values) ** 0.5


# --- pairs of malloc and free ------------------------------------------------

SIZES = 16, 64, 512, 4096, 0


class Row:
    """One process that makes pairs; above is the row it is compared to."""

    def __init__(self, name, env, above=None, before=(), goal=None):
        self.name, self.env, self.above = name, env, above
        self.before, self.goal = list(before), goal
        self.times = {}

    def start(self, program):
        self.process = subprocess.Popen(
            self.before + [program], env=self.env, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, n_threads, size):
        """Nanoseconds of one pair. heaptrack has lines of its own to say."""
        print(n_threads, size, file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            try:
                return float(line)
            except ValueError:
                pass
        sys.exit("heap.py: failed: " + self.name)

    def stop(self):
        self.process.stdin.close()
        self.process.stdout.read()
        if self.process.wait():
            sys.exit("heap.py: failed at its end: " + self.name)


def jemalloc_profiles(path):
    """Was this jemalloc built with its profiler?"""
    said = subprocess.run(
        ["/bin/true"], stderr=subprocess.PIPE, text=True,
        env=environment([path], MALLOC_CONF="stats_print:true")).stderr
    return "config.prof: true" in said


def ours_above(name, plain, cpprof, allocator=()):
    """Rows of cpprof over an allocator: hooks only, and sampling."""
    return [
        Row(name + ", cpprof off", environment([cpprof, *allocator]),
            plain, goal=GOAL_OFF_NS),
        Row(name + ", cpprof 512 KiB",
            environment([cpprof, *allocator],
                        CPPROF="heap=512k,out=/dev/null"),
            plain, goal=GOAL_ON_NS)]


def jemalloc_rows(cpprof):
    path = library("libjemalloc.so.2")
    if not path:
        print("left out: jemalloc (libjemalloc2 is not installed)")
        return []
    plain = Row("jemalloc", environment([path]))
    rows = [plain] + ours_above("jemalloc", plain, cpprof, [path])
    if jemalloc_profiles(path):
        rows.append(Row("jemalloc prof:true", environment(
            [path], MALLOC_CONF="prof:true,lg_prof_sample:19"), plain))
    else:
        print("left out: jemalloc prof:true (not built into libjemalloc2)")
    return rows


def tcmalloc_rows(cpprof, work):
    path = library("libtcmalloc.so.4")
    if not path:
        print("left out: tcmalloc (libgoogle-perftools4 is not installed)")
        return []
    plain = Row("tcmalloc", environment([path]))
    return [plain] + ours_above("tcmalloc", plain, cpprof, [path]) + [
        Row("tcmalloc sampling", environment(
            [path], TCMALLOC_SAMPLE_PARAMETER=str(RATE)), plain),
        Row("gperftools HEAPPROFILE", environment(
            [path], HEAPPROFILE=os.path.join(work, "gperftools")), plain)]


def heaptrack_rows(plain, work):
    if not shutil.which("heaptrack"):
        print("left out: heaptrack (not installed)")
        return []
    return [Row("glibc, heaptrack", environment(), plain, [
        "heaptrack", "--raw", "-o", os.path.join(work, "heaptrack")])]


def pair_rows(cpprof, work):
    plain = Row("glibc", environment())
    return [plain, Row("glibc again", environment(), plain)] + \
        ours_above("glibc", plain, cpprof) + heaptrack_rows(plain, work) + \
        jemalloc_rows(cpprof) + tcmalloc_rows(cpprof, work)


def pair_cell(row, cell):
    own = statistics.median(row.times[cell])
    if not row.above:
        return "%16.1f " % own
    more, error = middle([a - b for a, b in zip(row.times[cell],
                                                row.above.times[cell])])
    missed = row.goal is not None and more - 2 * error > row.goal
    return "%8.1f %+7.2f%s" % (own, more, "!" if missed else " ")


def print_pairs(rows, n_threads):
    print("%s: ns, and above the same allocator alone" % (
        "1 thread" if n_threads == 1 else "2 threads at the same time"))
    print("%-26s" % "" + "".join(
        "%17s" % ("%d B" % size if size else "mixed") for size in SIZES))
    for row in rows:
        print("%-26s" % row.name + "".join(
            pair_cell(row, (n_threads, size)) for size in SIZES))


def pairs(build, work, seconds):
    rows = pair_rows(os.path.join(build, "libcpprof.so"), work)
    cells = [(n_threads, size) for n_threads in (1, 2) for size in SIZES]
    for row in rows:
        row.start(os.path.join(build, "bench", "heap_pairs"))
        row.times = {cell: [] for cell in cells}
    for i in rounds_for(seconds):
        for cell in cells:
            for row in turned(rows, i):
                row.times[cell].append(row.ask(*cell))
    for row in rows:
        row.stop()
    for n_threads in (1, 2):
        print_pairs(rows, n_threads)
    print("! more than asked: %.0f ns off, %.0f ns at 512 KiB" % (
        GOAL_OFF_NS, GOAL_ON_NS))


# --- whole programs ----------------------------------------------------------

SQL = """create table t(a integer primary key, b text, c real);
create index i on t(b);
with recursive n(x) as (select 1 union all select x+1 from n where x<80000)
    insert into t select x, printf('row %d of many', x*7919%1000003), x*0.5
    from n;
select count(*), sum(length(b)) from t;"""

PYTHON = """
import random
random.seed(1)
for i in range(5):
    rows = [{"key": str(random.random()), "list": [j] * (j % 200)}
            for j in range(4000)]
    text = [" ".join([r["key"]] * 40) for r in rows]
    parts = "".join(text).split(" ")
    table = {p: bytearray(len(p) * 50) for p in parts[::40]}
"""


class Command:
    """A run of a program in the background."""

    before = []  # of all commands, for perf

    def __init__(self, words, env, cpu):
        words = Command.before + list(words)
        self.words = words
        self.process = subprocess.Popen(
            words, env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, cpu))

    def cost(self):
        """Its CPU seconds, when it has ended."""
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = status
        if status:
            sys.exit("heap.py: failed: " + " ".join(self.words)[:300])
        return usage.ru_utime + usage.ru_stime


class Redis(Command):
    """A server while redis-benchmark asks it. The server's program is also
    redis-check-rdb: it is what it is called."""

    def __init__(self, work, env, cpu):
        self.folder = tempfile.mkdtemp(dir=work)
        server = os.path.join(self.folder, "redis-server")
        os.symlink(shutil.which("redis-check-rdb"), server)
        self.socket = os.path.join(self.folder, "s")
        super().__init__(
            [server, "--port", "0", "--unixsocket", self.socket, "--save", "",
             "--appendonly", "no", "--dir", self.folder, "--logfile",
             "/dev/null"], env, cpu)
        while not self.answers():
            time.sleep(0.01)
        self.asker = subprocess.Popen(
            ["redis-benchmark", "-s", self.socket, "-q", "-n", "30000", "-r",
             "100000", "-d", "100", "-P", "16", "-t",
             "set,get,lpush,lpop,sadd,hset"], env=environment(),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def answers(self):
        with socket.socket(socket.AF_UNIX) as peer:
            return peer.connect_ex(self.socket) == 0

    def cost(self):
        if self.asker.wait():
            sys.exit("heap.py: redis-benchmark failed")
        subprocess.run(["redis-cli", "-s", self.socket, "shutdown", "nosave"],
                       env=environment(), stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder)
        return super().cost()


def programs_here(build, work):
    """(name, start(env, cpu), more variables) of those that are installed."""
    def command(*words):
        return lambda env, cpu: Command(words, env, cpu)

    found = [("C++ maps of strings", command(
        os.path.join(build, "bench", "heap_cxx"), "7"), {})]
    if shutil.which("sqlite3"):
        found.append(("sqlite3 bulk insert",
                      command("sqlite3", ":memory:", SQL), {}))
    else:
        print("left out: sqlite3 (not installed)")
    python = "/usr/bin/python3"
    if os.path.exists(python):
        run = command(python, "-c", PYTHON)
        found.append(("python3", run, {}))
        found.append(("python3, all by malloc", run,
                      {"PYTHONMALLOC": "malloc"}))
    else:
        print("left out: python3 (not installed)")
    if shutil.which("redis-benchmark") and shutil.which("redis-check-rdb"):
        found.append(("redis-server",
                      lambda env, cpu: Redis(work, env, cpu), {}))
    else:
        print("left out: redis-server (redis-tools is not installed)")
    return found


def duet(start, envs, cpus):
    """CPU seconds of two that run at the same time."""
    both = [start(env, cpu) for env, cpu in zip(envs, cpus)]
    return [one.cost() for one in both]


def share(start, ours, work):
    """Per cent of the CPU time that perf sees inside libcpprof: a part of what
    it costs (what it evicts from caches is elsewhere), but free of noise."""
    data = os.path.join(work, "perf.data")
    if subprocess.run(["perf", "record", "-q", "-o", data, "true"],
                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                      check=False).returncode:
        return "no perf"
    # The clock of the processor: there are no counters in virtual machines.
    Command.before = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "4999",
                      "-o", data, "--"]
    start(ours, os.sched_getaffinity(0)).cost()
    Command.before = []
    said = subprocess.run(
        ["perf", "report", "-i", data, "--no-children", "--sort", "dso",
         "--stdio"], check=True, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True).stdout
    return "%.2f %%" % sum(float(line.split("%")[0])
                           for line in said.splitlines()
                           if "libcpprof.so" in line and "%" in line)


def duets(start, plain, ours, seconds):
    """Ratios of ours to plain, of plain to plain, and the seconds of plain.
    Each is out of two duets with the processors swapped."""
    cpus = sorted(os.sched_getaffinity(0))
    cpus = [{cpus[0]}, {cpus[-1]}]
    ratios, costs = ([], []), []
    for _ in rounds_for(seconds):
        for other, found in zip((ours, plain), ratios):
            there = duet(start, [plain, other], cpus)
            back = duet(start, [other, plain], cpus)
            found.append((there[1] / there[0] * back[0] / back[1]) ** 0.5)
            costs += [there[0], back[1]]
    return *ratios, statistics.median(costs)


def programs(build, work, seconds):
    cpprof = os.path.join(build, "libcpprof.so")
    found = programs_here(build, work)
    print("%-24s %8s   %17s   %17s   %12s" % (
        "", "plain: s", "with cpprof", "plain again", "in libcpprof"))
    for name, start, more in found:
        env = environment([cpprof], **more)
        ours, again, cost = duets(start, environment(**more), env,
                                  seconds / len(found))
        ratio, error = middle(ours)
        print("%-24s %8.3f   %7.4f +- %.4f   %7.4f +- %.4f   %12s  %s" % (
            name, cost, ratio, error, *middle(again), share(start, env, work),
            "misses the goal" if ratio - 2 * error > GOAL_RATIO else ""),
            flush=True)


def main():
    build, work, what = sys.argv[1:4]
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 0
    if what == "pairs":
        pairs(build, work, seconds or 50)
    elif what == "programs":
        programs(build, work, seconds or 125)
    else:
        sys.exit("heap.py: pairs or programs, not " + what)


if __name__ == "__main__":
    main()
