"""interface.py: what the functions accept and refuse. Asserts."""
import gc
import os
import sys
import threading
import time
import weakref

import cpprof


def refuses(error, text, function, *args, **named):
    try:
        function(*args, **named)
    except error as raised:
        assert text in str(raised), raised
    else:
        raise AssertionError("%s was not raised" % error)


cpprof.stop()  # harmless
refuses(ValueError, "is not tick, span or cpu", cpprof.start, mode="x")
refuses(ValueError, "outside 1 to 10000", cpprof.start, hz=20000)
refuses(ValueError, "outside 1 to 1024", cpprof.start, depth=2000)
for number in 0, -1, 2**32 + 50, 2**70:
    refuses(ValueError, "rate %d Hz is outside 1 to 10000" % number,
            cpprof.start, hz=number)
    refuses(ValueError, "depth %d is outside 1 to 1024" % number,
            cpprof.start, depth=number)
refuses(TypeError, "", cpprof.start, hz=2.5)
refuses(OSError, "", cpprof.start, out="/no/such/folder/x.pb.gz")
refuses(TypeError, "", cpprof.start, "tick")

for mode in "tick", "span", "cpu":
    cpprof.start(mode=mode, out=mode + ".pb.gz")
    refuses(RuntimeError, "profiler already running", cpprof.start,
            out="second.pb.gz")
    cpprof.stop()
    assert os.path.getsize(mode + ".pb.gz") > 0, mode
assert sys.getprofile() is None

# Code that comes and goes is not kept when the profile has ended.
cpprof.start(mode="span", hz=10000, out="gone.pb.gz")
scope = {}
exec("import time\ndef f():\n  time.sleep(0.01)", scope)
code = weakref.ref(scope["f"].__code__)
scope["f"]()
scope.clear()
gc.collect()
assert code() is not None
cpprof.stop()
gc.collect()
assert code() is None

# Labels that are left in another order.
a, b = cpprof.labels(a="1"), cpprof.labels(b="2")
a.__enter__()
b.__enter__()
refuses(RuntimeError, "in use already", b.__enter__)
a.__exit__(None, None, None)
b.__exit__(None, None, None)
refuses(TypeError, "neither a string nor", cpprof.labels(a=1.5).__enter__)
refuses(ValueError, "embedded null", cpprof.labels(a="x\0y").__enter__)
refuses(ValueError, "embedded null", cpprof.labels(**{"k\0": "x"}).__enter__)
refuses(UnicodeEncodeError, "surrogates", cpprof.labels(a="\ud800").__enter__)
refuses(TypeError, "name=value", cpprof.labels, 1)

# A profile of the program's own.
files = cpprof.Profile("files")
refuses(ValueError, "empty name", cpprof.Profile, "")


class File:
    pass


one, other = File(), [1]
files.add(one)
files.add(other)
refuses(ValueError, "duplicate value", files.add, one)
assert len(files) == 2 and len(cpprof.Profile("files")) == 2, len(files)
held = weakref.ref(one)
del one
gc.collect()
assert held() is not None
files.remove(held())
gc.collect()
assert held() is None
files.remove(held)  # was never in it
files.write("files.pb.gz")
files.write("files.txt", debug=1)
assert files.name == "files" and len(files) == 1
assert open("files.txt").readline().startswith("files profile: total 1")

# A child has no profile, and may have one of its own.
cpprof.start(out="parent.pb.gz")
child = os.fork()
if not child:
    cpprof.stop()
    cpprof.start(out="child.pb.gz")
    sum(range(1000000))
    cpprof.stop()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
cpprof.stop()
assert os.path.getsize("child.pb.gz") and os.path.getsize("parent.pb.gz")


# Profiles that start and stop while threads come and go.
def churn():
    while not enough.is_set():
        thread = threading.Thread(target=sorted, args=(range(1000),))
        thread.start()
        thread.join()


enough = threading.Event()
churning = [threading.Thread(target=churn) for _ in range(4)]
for thread in churning:
    thread.start()
for i in range(30):
    cpprof.start(mode=("tick", "span", "cpu")[i % 3], hz=1000,
                 out="churn.pb.gz")
    sum(range(100000))
    cpprof.stop()
enough.set()
for thread in churning:
    thread.join()

# Nobody stops this one.
cpprof.start(out="unstopped.pb.gz")
time.sleep(0.2)
