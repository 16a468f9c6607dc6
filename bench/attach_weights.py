#!/usr/bin/env python3
"""Does an attached profile weigh what a preloaded one does? attach_weights.py
CPPROF [TRIES]

One program, which works when it is told so: once under `cpprof record -- CMD`,
once under `cpprof record -p PID`, attached before it works. A line for each
value: what both profiles have of the function that did the work, what the
program itself knows, and how far the attached one is from it and from the
other. The exit status is 1 if one is further away than 1 % and one period in
each of TRIES (3) runs, the amount of work doubled in each.
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
#include <stdio.h>
#include <stdlib.h>
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
int main(int argc, char **argv)
{
    int scale = atoi(argv[1]);
    long kept = 0, all = 0, blocks = 500000L * scale;

    while (access(argv[2], F_OK))
        usleep(10000);
    for (long i = 0; i < blocks; i++) {
        all += i * 7919 % 4000 + 100;
        kept += i % 4 ? 0 : i * 7919 % 4000 + 100;
    }
    allocates(blocks);
    spins(2.0 * scale);
    holds(25L * scale);
    printf("%ld %ld %f %f\n", all, kept, 2.0 * scale, waited);
    fflush(stdout);
    while (access(argv[3], F_OK))
        usleep(10000);
}
"""
KINDS = ["-t", "cpu,heap,block,mutex", "-heap", "2k", "-F", "1000", "-block",
         "1"]
VALUES = [("alloc_space", "heap", "allocates"),
          ("inuse_space", "heap", "allocates"),
          ("cpu", "cpu", "spins"),
          ("delay", "block", "waits"),
          ("delay", "mutex", "holds")]


def value(cpprof, path, index, function):
    """In bytes or nanoseconds, as the raw profile has it."""
    text = subprocess.run([cpprof, "top", "-cum", "-nodecount=1000",
                           "-unit=%s" % ("B" if "space" in index else "ns"),
                           "-sample_index=" + index, path],
                          capture_output=True, text=True, check=True).stdout
    found = re.search(r"\s([\d.]+)(?:B|ns)?\s+[\d.]+%%\s+%s$" % function, text,
                      re.M)
    return float(found.group(1)) if found else 0


def once(cpprof, folder, scale, attached):
    go, end = folder + "/go", folder + "/end"
    for path in (go, end):
        if os.path.exists(path):
            os.remove(path)
    command = [folder + "/work", str(scale), go, end]
    record = [cpprof, "record", *KINDS, "-o", folder + "/x.pb.gz"]
    if attached:
        work = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        time.sleep(0.3)
        recorder = subprocess.Popen(record + ["-p", str(work.pid)],
                                    stderr=subprocess.PIPE, text=True)
        recorder.stderr.readline()  # it is attached
    else:
        recorder = work = subprocess.Popen(record + ["--"] + command,
                                           stdout=subprocess.PIPE, text=True,
                                           stderr=subprocess.DEVNULL)
    with open(go, "w", encoding="ascii"):
        pass
    all_, kept, cpu, waited = work.stdout.readline().split()
    if attached:
        recorder.terminate()
        recorder.wait()
    with open(end, "w", encoding="ascii"):
        pass
    work.wait()
    names = {kind: "%s/x.pb.gz.%s" % (folder, kind) for kind in
             ("cpu", "heap", "block", "mutex")}
    for kind in names:
        for path in ("%s/x.%s.pb.gz" % (folder, kind),
                     "%s/x.pb.gz" % folder):
            if not os.path.exists(names[kind]) and os.path.exists(path):
                names[kind] = path
    got = [value(cpprof, names[kind], index, function)
           for index, kind, function in VALUES]
    truth = [float(all_), float(kept), float(cpu) * 1e9, float(waited) * 1e9,
             float(waited) * 1e9]
    return got, truth


def main():
    cpprof = os.path.realpath(sys.argv[1])
    tries = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory(prefix="cpprof-weights-") as folder:
        with open(folder + "/work.c", "w", encoding="ascii") as f:
            f.write(PROGRAM)
        subprocess.run(["cc", "-O2", "-o", folder + "/work",
                        folder + "/work.c", "-lpthread"], check=True)
        for i in range(tries):
            preloaded, its_truth = once(cpprof, folder, 1 << i, False)
            attached, truth = once(cpprof, folder, 1 << i, True)
            print("%-18s %10s %10s %10s" % ("value", "preloaded", "attached",
                                            "of truth"))
            right = True
            for k, (index, kind, _) in enumerate(VALUES):
                before = preloaded[k] / its_truth[k]
                after = attached[k] / truth[k]
                print("%-18s %10.4f %10.4f" % (kind + " " + index, before,
                                               after), flush=True)
                right &= abs(after - before) <= 0.01
            if right:
                return 0
    return 1


sys.exit(main())
