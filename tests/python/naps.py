"""naps.py OUT ROUNDS: 2 ms of work and a sleep of 6, by turns; prints the CPU
time of both."""
import sys
import time

import cpprof


def compute(seconds):
    x = 0
    over = time.thread_time() + seconds
    while time.thread_time() < over:
        for i in range(200):
            x = (x * 31 + i) % 65537
    return x


def rest():
    time.sleep(0.006)


out, rounds = sys.argv[1:]
cpprof.start(mode="cpu", out=out, hz=250)
begin = time.thread_time()
for _ in range(int(rounds)):
    compute(0.002)
    rest()
print(time.thread_time() - begin)
cpprof.stop()
