"""split.py MODE OUT ROUNDS HZ: seventy, twenty and ten share the work so.
Prints what they took by the clock of the mode: on a busy machine others take
their time from whoever runs just then."""
import sys
import time

import cpprof


def work(n):
    x = 0
    for i in range(n):
        x = (x * 31 + i) % 65537
    return x


def seventy(n):
    for _ in range(70):
        work(n)


def twenty(n):
    for _ in range(20):
        work(n)


def ten(n):
    for _ in range(10):
        work(n)


mode, out, rounds, hz = sys.argv[1:]
clock = time.thread_time if mode == "cpu" else time.perf_counter
took = [0, 0, 0]
cpprof.start(mode=mode, out=out, hz=int(hz))
for _ in range(int(rounds)):
    for i, part in enumerate((seventy, twenty, ten)):
        begin = clock()
        part(10000)
        took[i] += clock() - begin
cpprof.stop()
print(*took)
