"""hooks.py: programs with profile functions of their own, in mode span. Asserts;
run.py looks at the profiles."""
import cProfile
import sys
import threading
import time

import cpprof


def work(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def before():
    work(0.2)


def hidden():
    work(0.2)


def later():
    work(0.4)


def nothing(*event):
    pass


# Saved and restored, as coverage tools and debuggers do.
cpprof.start(mode="span", out="restored.pb.gz")
before()
former = sys.getprofile()
assert callable(former), former
sys.setprofile(nothing)
hidden()
assert sys.getprofile() is nothing
sys.setprofile(former)
later()
assert former(sys._getframe(), "call", None) is None  # called for itself
cpprof.stop()
assert sys.getprofile() is None, sys.getprofile()

# Restored when there is no profile any more.
sys.setprofile(former)
work(0)
assert sys.getprofile() is None, sys.getprofile()

# cProfile puts its own in the place, and then none.
cpprof.start(mode="span", out="cprofile.pb.gz")
before()
other = cProfile.Profile()
other.enable()
hidden()
other.disable()
later()
cpprof.stop()
assert any(entry.code is hidden.__code__ for entry in other.getstats())


# The program's function for new threads.
def in_thread():
    profiles.append(sys.getprofile())


def run_thread():
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()


profiles = []
threading.setprofile(nothing)
cpprof.start(mode="span", out="threading.pb.gz")
run_thread()
cpprof.stop()
assert profiles == [nothing], profiles
assert threading.getprofile() is nothing, threading.getprofile()

# Without one there is ours, until the end.
threading.setprofile(None)
cpprof.start(mode="span", out="threading.pb.gz")
run_thread()
cpprof.stop()
assert type(profiles.pop()).__name__ == "spans"
assert threading.getprofile() is None, threading.getprofile()

# One that came meanwhile stays.
cpprof.start(mode="span", out="threading.pb.gz")
threading.setprofile(nothing)
cpprof.stop()
assert threading.getprofile() is nothing, threading.getprofile()
