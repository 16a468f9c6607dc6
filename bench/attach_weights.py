#!/usr/bin/env python3
"""Does an attached profile weigh what a preloaded one does, and what does a call
cost? attach_weights.py CPPROF [TRIES]

One program, which works when it is told so: once under `cpprof record -- CMD`,
once under `cpprof record -p PID`, attached before it works. A line for each
value: what both profiles have of the function that did the work, as a ratio to
what the program itself knows. The exit status is 1 if one is further than 1 %
from the other in each of TRIES (3) runs, the amount of work doubled in each.

First with many samples of little work, then at the rates that are there when
nothing is said, with 100 GB of it. There the program also measures a pair of
malloc and free, and one of lock and unlock: the fastest of 40 times 100 000,
beside what they take alone.
"""
import os
import re
import subprocess
import sys
import tempfile
import time

PROGRAM = r"""
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define LOUD __attribute__((noinline, noclone, noipa))
static volatile unsigned long n;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
LOUD void allocates(long blocks)
{
    for (long i = 0; i < blocks; i++) {
        char *volatile p = malloc((size_t)(i * 7919 % 4000 + 100));

        if (i % 4)
            free(p);
    }
    n++;
}
LOUD void spins(double seconds)
{
    double end = now(CLOCK_THREAD_CPUTIME_ID) + seconds;

    while (now(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 20000; i++)
            n += (unsigned)i;
}
static double waited;
LOUD void waits(void)
{
    double begin = now(CLOCK_MONOTONIC);

    pthread_mutex_lock(&lock);
    waited += now(CLOCK_MONOTONIC) - begin;
    pthread_mutex_unlock(&lock);
}
static void *waiter(void *x)
{
    waits();
    return x;
}
LOUD void holds(long times)
{
    while (times--) {
        pthread_t thread;

        pthread_mutex_lock(&lock);
        pthread_create(&thread, NULL, waiter, NULL);
        usleep(40000);
        pthread_mutex_unlock(&lock);
        pthread_join(thread, NULL);
    }
}
LOUD void flows(long blocks)
{
    while (blocks--)
        free((void *)(volatile uintptr_t){(uintptr_t)malloc(
            (size_t)(blocks * 7919 % 80000 + 20000))});
    n++;
}
LOUD void keeps(long blocks)
{
    while (blocks--)
        n += (unsigned long)malloc(1 << 20);
}
LOUD void locks(long times)
{
    while (times--) {
        pthread_mutex_lock(&lock);
        n++;
        pthread_mutex_unlock(&lock);
    }
}
LOUD void pairs(long times)
{
    while (times--)
        free((void *)(volatile uintptr_t){(uintptr_t)malloc(64)});
    n++;
}
static double fastest(void (*what)(long))
{
    double best = 1, begin, took;

    for (int i = 0; i < 40; i++) {
        begin = now(CLOCK_THREAD_CPUTIME_ID);
        what(100000);
        took = now(CLOCK_THREAD_CPUTIME_ID) - begin;
        best = took < best ? took : best;
    }
    return best * 1e4;
}
static void *nothing(void *x)
{
    return x;
}
static void defaults(int scale)
{
    long all = 0, i, blocks = 1700000L * scale;
    pthread_t thread;

    pthread_create(&thread, NULL, nothing, NULL);
    pthread_join(thread, NULL);
    for (i = 0; i < blocks; i++)
        all += i * 7919 % 80000 + 20000;
    flows(blocks);
    keeps(20000);
    printf("%ld %ld %f ", all, 20000L << 20, fastest(pairs));
    printf("%f\n", fastest(locks));
}
static void weights(int scale)
{
    long kept = 0, all = 0, blocks = 500000L * scale;

    for (long i = 0; i < blocks; i++) {
        all += i * 7919 % 4000 + 100;
        kept += i % 4 ? 0 : i * 7919 % 4000 + 100;
    }
    allocates(blocks);
    spins(2.0 * scale);
    holds(25L * scale);
    printf("%ld %ld %f %f\n", all, kept, 2.0 * scale, waited);
}
int main(int argc, char **argv)
{
    while (access(argv[3], F_OK))
        usleep(10000);
    if (!strcmp(argv[1], "weights"))
        weights(atoi(argv[2]));
    else
        defaults(atoi(argv[2]));
    fflush(stdout);
    while (access(argv[4], F_OK))
        usleep(10000);
}
"""
KINDS = ["-t", "cpu,heap,block,mutex"]
MANY = ["-heap", "2k", "-F", "1000", "-block", "1"]
VALUES = [("alloc_space", "heap", "allocates"),
          ("inuse_space", "heap", "allocates"),
          ("cpu", "cpu", "spins"),
          ("delay", "block", "waits"),
          ("delay", "mutex", "holds")]
DEFAULTS = [("alloc_space", "heap", "flows"),
            ("inuse_space", "heap", "keeps")]


def value(cpprof, path, index, function):
    """In bytes or nanoseconds, as the raw profile has it."""
    text = subprocess.run([cpprof, "top", "-cum", "-nodecount=1000",
                           "-unit=%s" % ("B" if "space" in index else "ns"),
                           "-sample_index=" + index, path],
                          capture_output=True, text=True, check=True).stdout
    found = re.search(r"\s([\d.]+)(?:B|ns)?\s+[\d.]+%%\s+%s$" % function, text,
                      re.M)
    return float(found.group(1)) if found else 0


def once(cpprof, folder, mode, rates, how):
    """The numbers that the program says, and where its profiles are."""
    go, end = folder + "/go", folder + "/end"
    for path in (go, end):
        if os.path.exists(path):
            os.remove(path)
    command = [folder + "/work", *mode, go, end]
    record = [cpprof, "record", *KINDS, *rates, "-o", folder + "/x.pb.gz"]
    recorder = None
    work = subprocess.Popen(
        (record + ["--"] if how == "preloaded" else []) + command,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if how == "attached":
        time.sleep(0.3)
        recorder = subprocess.Popen(record + ["-p", str(work.pid)],
                                    stderr=subprocess.PIPE, text=True)
        recorder.stderr.readline()  # it is attached
    with open(go, "w", encoding="ascii"):
        pass
    said = [float(word) for word in work.stdout.readline().split()]
    if recorder:
        recorder.terminate()
        recorder.wait()
    with open(end, "w", encoding="ascii"):
        pass
    work.wait()
    names = {}
    for kind in ("cpu", "heap", "block", "mutex"):
        names[kind] = "%s/x.%s.pb.gz" % (folder, kind)
        if not os.path.exists(names[kind]):
            names[kind] = folder + "/x.pb.gz"
    return said, names


def compare(cpprof, folder, mode, rates, values, truth_of):
    """Print a row for each value. False: preloaded and attached differ."""
    ratios, said = {}, {}
    for how in ("preloaded", "attached"):
        said[how], names = once(cpprof, folder, mode, rates, how)
        ratios[how] = [value(cpprof, names[kind], index, function) / truth
                       for (index, kind, function), truth in
                       zip(values, truth_of(said[how]))]
    print("%-26s %10s %10s" % ("of the truth", "preloaded", "attached"))
    for (index, kind, _), before, after in zip(values, *ratios.values()):
        print("%-26s %10.4f %10.4f" % (kind + " " + index, before, after),
              flush=True)
    return said, all(abs(a - b) <= 0.01 for a, b in zip(*ratios.values()))


def until_alike(tries, *words):
    for i in range(tries):
        said, is_alike = compare(*words[:2], [words[2], str(1 << i)],
                                 *words[3:])
        if is_alike:
            break
    return said, is_alike


def main():
    cpprof = os.path.realpath(sys.argv[1])
    tries = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory(prefix="cpprof-weights-") as folder:
        with open(folder + "/work.c", "w", encoding="ascii") as f:
            f.write(PROGRAM)
        subprocess.run(["cc", "-O2", "-o", folder + "/work",
                        folder + "/work.c", "-lpthread"], check=True)
        print("many samples (%s)" % " ".join(MANY))
        _, many = until_alike(
            tries, cpprof, folder, "weights", MANY, VALUES,
            lambda said: said[:2] + [said[2] * 1e9] + [said[3] * 1e9] * 2)
        print("\ndefault rates")
        said, default = until_alike(tries, cpprof, folder, "defaults", [],
                                    DEFAULTS, lambda said: said[:2])
        said["alone"] = once(cpprof, folder, ["defaults", "1"], [], "alone")[0]
        print("%-26s %10s %10s %10s" % ("nanoseconds", "alone", "preloaded",
                                        "attached"))
        for i, what in ((2, "malloc and free"), (3, "lock and unlock")):
            print("%-26s %10.1f %10.1f %10.1f" % (
                what, said["alone"][i], said["preloaded"][i],
                said["attached"][i]))
    return not (many and default)


sys.exit(main())
