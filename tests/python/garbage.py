"""garbage.py MODE OUT ROUNDS: makes circles of objects. Prints the part of the time, by
the clock of the mode, that the collector took as gc.callbacks see it, but for
what finalizes() does."""
import gc
import sys
import time

import cpprof


def look(phase, info):
    global taken, begun
    if phase == "start":
        begun = clock()
    else:
        taken += clock() - begun


class Finalized:
    def __init__(self):
        self.self = self

    def __del__(self):
        end = clock() + 0.05
        while clock() < end:
            pass


def makes():
    for _ in range(20000):
        circle = [None]  # the line that allocates
        circle[0] = circle
        x = 0
        for i in range(60):
            x += i


def finalizes():
    for _ in range(4):
        Finalized()
        gc.collect()


mode, out, rounds = sys.argv[1:]
clock = time.thread_time if mode == "cpu" else time.perf_counter
taken = 0
kept = [[] for _ in range(200000)]
gc.callbacks.append(look)
before = list(gc.callbacks)
cpprof.start(mode=mode, hz=1000, out=out)
assert gc.callbacks[0] is look and len(gc.callbacks) == 2, gc.callbacks
begin = clock()
for _ in range(int(rounds)):
    makes()
    gc.collect()
part = taken / (clock() - begin)
finalizes()
cpprof.stop()
assert gc.callbacks == before, gc.callbacks
print(part)
