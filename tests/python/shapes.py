"""shapes.py MODE OUT: a bit of everything, in several threads. Prints what the
main thread was in the profile for, and what CPU time the process used, in
seconds."""
import sys
import threading
import time

import cpprof


def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def nap():
    time.sleep(0.3)  # the line of the nap


def numbers():
    for i in range(6):
        work(0.01)
        yield i


def consume():
    return sum(numbers())


async def coroutine():
    work(0.05)


def drive(c):
    try:
        c.send(None)
    except StopIteration:
        pass


def raises():
    work(0.05)
    raise ValueError


def catches():
    try:
        raises()
    except ValueError:
        work(0.04)


class Thing:
    def __add__(self, other):
        work(0.05)
        return self

    @property
    def field(self):
        work(0.05)


def key(x):
    work(0.01)
    return x


def outer():
    def inner():
        work(0.05)
    inner()


def worker():
    with cpprof.labels(kind="worker", number=7):
        work(0.1)


def sleeper():
    time.sleep(0.5)


mode, out = sys.argv[1:]
early = threading.Thread(target=sleeper)
early.start()
cpprof.start(mode=mode, out=out, hz=250)
begin, begin_cpu = time.perf_counter(), time.process_time()
late = [threading.Thread(target=worker) for _ in range(2)]
for thread in late:
    thread.start()
nap()
consume()
drive(coroutine())
catches()
Thing() + 1
Thing().field
sorted([3, 1, 2, 5, 4], key=key)
outer()
(lambda: work(0.05))()
exec("work(0.05)")
for thread in late + [early]:
    thread.join()
print(time.perf_counter() - begin, time.process_time() - begin_cpu)
cpprof.stop()
