#!/usr/bin/env python3
"""How long a thread stands still when something enters its process, beside gdb's
way: attach_held.py BUILD

The program's threads read the clock and allocate, all the time. Each line has
the longest time in a round for which one of them did not come round: in as many
seconds alone, during `cpprof threads -p PID`, which loads the library, and goes,
and while gdb has the process call dlopen() of the same library.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 15
PROGRAM = r"""
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static _Atomic long longest[64], allocates;

static long now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *run(void *arg)
{
    _Atomic long *most = arg;
    long last = now(), at;

    for (;; last = at) {
        if (allocates)
            free(malloc(1000));
        at = now();
        if (at - last > *most)
            *most = at - last;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int n = atoi(argv[1]), i;
    char line[16];
    pthread_t t;
    long most;

    allocates = argc > 2;
    for (i = 0; i < n; i++)
        pthread_create(&t, NULL, run, (void *)&longest[i]);
    while (fgets(line, sizeof line, stdin)) {
        for (i = 0, most = 0; i < n; i++) {
            long one = atomic_exchange(&longest[i], 0);

            most = one > most ? one : most;
        }
        printf("%ld\n", most);
        fflush(stdout);
    }
    return 0;
}
"""


class Program:
    def __init__(self, words):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        time.sleep(0.3)

    def longest_ms(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline()) / 1e6

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def measure(words, command):
    """Of each round. Every one has a program of its own, as whoever enters for
    the first time does most."""
    found = []
    for _ in range(ROUNDS):
        program = Program(words)
        program.longest_ms()
        done = subprocess.run([word.replace("PID", str(program.process.pid))
                               for word in command], capture_output=True,
                              text=True, check=False)
        found.append(program.longest_ms())
        program.end()
        if done.returncode:
            sys.exit("attach_held.py: %s: %s" % (command[0], done.stderr))
    return found


def main():
    build = os.path.abspath(sys.argv[1])
    library = build + "/libcpprof.so.1"
    ways = [("alone", ["sleep", "0.3"]),
            ("cpprof threads -p PID", [build + "/cpprof", "threads", "-p",
                                       "PID"]),
            ("gdb, call dlopen()", [
                "gdb", "-p", "PID", "-batch", "-nx", "-ex",
                'print ((void *(*)(const char *, int))dlopen)("%s", 2)' %
                library])]
    print("%-34s %-24s %s" % ("threads", "", "ms: median, longest"))
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/program"
        subprocess.run(["cc", "-O1", "-pthread", "-x", "c", "-", "-o", path],
                       input=PROGRAM, text=True, check=True)
        for name, words in (("1 that reads the clock", ["1"]),
                            ("2 that allocate, too", ["2", "malloc"]),
                            ("16 of these", ["16", "malloc"])):
            for way, command in ways:
                found = measure([path] + words, command)
                print("%-34s %-24s %8.2f %8.2f" % (
                    name, way, statistics.median(found), max(found)),
                      flush=True)


if __name__ == "__main__":
    main()
