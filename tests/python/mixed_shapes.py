"""mixed_shapes.py: a bit of everything, each 0.1 s of CPU time, for stacks of
Python and C. Knows nothing of a profiler."""
import asyncio
import ctypes
import hashlib
import json
import re
import threading
import time
import zlib


def work(seconds=0.1):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def pack(data):
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        zlib.compress(data, 9)  # the line of zlib


def digest(data):
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        hashlib.sha256(data).digest()  # the line of hashlib


def rank(x):
    work(0.01)
    return -x


def order():
    sorted(range(10), key=rank)  # the line of sorted


def dump(tree):
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        json.dumps(tree)  # the line of json


def match(text):
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        re.sub(r"[a-z]+\d", "y", text)  # the line of re


def numbers():
    for i in range(10):
        work(0.01)
        yield i


def consume():
    return sum(numbers())


async def inner():
    await asyncio.sleep(0)
    work()


async def outer():
    await inner()


class Thing:
    def __init__(self):
        work()

    def __call__(self):
        work()

    def __add__(self, other):
        work()
        return self

    @property
    def field(self):
        work()


def raises():
    work()
    raise ValueError


def catches():
    try:
        raises()
    except ValueError:
        work()


def recurse(n):
    if n:
        recurse(n - 1)
    else:
        work()


def compare(a, b):
    work(0.025)
    return a[0] - b[0]


def callbacks():
    pointer = ctypes.POINTER(ctypes.c_int)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer)
    numbers = (ctypes.c_int * 4)(4, 3, 2, 1)
    qsort = ctypes.CDLL(None).qsort
    qsort.restype = None
    qsort(numbers, 4, ctypes.sizeof(ctypes.c_int), kind(compare))


def first():
    work()


def second():
    work()


def main():
    data = b"".join(b"%d" % (i * i) for i in range(30000))
    pack(data)
    digest(data)
    order()
    dump({"a": list(range(20000))})
    match("abc1 d2 " * 5000)
    consume()
    asyncio.run(outer())
    thing = Thing()
    thing()
    thing + 1
    thing.field
    catches()
    recurse(40)
    callbacks()
    exec("work()")
    (lambda: work())()
    threads = [threading.Thread(target=f) for f in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main()
