"""split.py MODE OUT ROUNDS HZ: seventy, twenty and ten share the work so.
Prints what they took by the clock of the mode: on a busy machine others take
their time from whoever runs just then, and caches from the work.

Each reads the clock where it ends, and nobody elsewhere: a look at the CPU clock
is where the kernel finds that a slice is over, so that a thread that waits for
a processor waits there, and is sampled there."""
import sys
import time

import cpprof


def work(n):
    x = 0
    for i in range(n):
        x = (x * 31 + i) % 65537
    return x


def look(part):
    global last
    now = clock()
    took[part] += now - last
    last = now


def seventy(n):
    for _ in range(70):
        work(n)
    look(0)


def twenty(n):
    for _ in range(20):
        work(n)
    look(1)


def ten(n):
    for _ in range(10):
        work(n)
    look(2)


mode, out, rounds, hz = sys.argv[1:]
clock = time.thread_time if mode == "cpu" else time.perf_counter
took = [0, 0, 0]
cpprof.start(mode=mode, out=out, hz=int(hz))
last = clock()
for _ in range(int(rounds)):
    seventy(10000)
    twenty(10000)
    ten(10000)
cpprof.stop()
print(*took)
