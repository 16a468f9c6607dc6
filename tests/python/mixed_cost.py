"""mixed_cost.py DEPTH: nanoseconds for an object with two blocks of memory, in
so many functions of Python. With PYTHONMALLOC=malloc and CPPROF=scripts,heap=1
each block takes a stack; with CPPROF=heap=1 one of C code alone."""
import sys
import time
from itertools import repeat

N = 200000


def allocate():
    begin = time.thread_time()
    for _ in repeat(None, N):
        bytearray(100)
    return time.thread_time() - begin


def deep(n):
    return deep(n - 1) if n else allocate()


print(round(1e9 * deep(int(sys.argv[1])) / N))
