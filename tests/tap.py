"""TAP, as test scripts print it."""
import atexit
import os
import re
import shutil
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor


class Tap:
    """Of a test that fails what it has seen comes behind its line."""

    def __init__(self):
        self.n = self.failed = 0
        self.lock = threading.Lock()

    def ok(self, name, good, *details):
        with self.lock:
            self.n += 1
            self.failed += not good
            print("%s %d - %s" % ("ok" if good else "not ok", self.n,
                                  name.replace("#", "")), flush=True)
            for detail in details if not good else ():
                print("# %s" % str(detail)[:3000].replace("\n", "\n# "),
                      flush=True)
        return good

    def skip(self, name, why):
        with self.lock:
            self.n += 1
            print("ok %d - %s # SKIP %s" % (self.n, name, why), flush=True)

    def beside(self, *jobs):
        """Calls of functions that wait more than they compute, at once."""
        with ThreadPoolExecutor(len(jobs)) as pool:
            for begun in [pool.submit(job) for job in jobs]:
                begun.result()

    def none(self, name, problems):
        self.ok(name, not problems, *list(problems)[:12])

    def same(self, name, got, wanted):
        self.ok(name, got == wanted, "got:    %r" % (got,),
                "wanted: %r" % (wanted,))

    def near(self, name, got, wanted, most):
        self.ok(name, abs(got - wanted) <= most, "got: %s, wanted: %s +- %s"
                % (got, wanted, most))

    def less(self, name, got, most):
        self.ok(name, got < most, "got: %s, at most: %s" % (got, most))

    def has(self, name, text, part):
        self.ok(name, part in text, "no %r in: %r" % (part, text))

    def matches(self, name, pattern, text):
        self.ok(name, re.search(pattern, text, re.M) is not None,
                "no %s in: %s" % (pattern, text))

    def end(self):
        """The plan; true where a test failed."""
        print("1..%d" % self.n, flush=True)
        return self.failed != 0


def scratch_folder(prefix):
    """A folder of its own for a script, which goes when the script ends."""
    folder = tempfile.mkdtemp(prefix=prefix)
    owner = os.getpid()

    def remove():
        if os.getpid() == owner:  # and no child that was forked
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def most_ticks(cpprof):
    """The words of CPPROF for as many samples of CPU time as there can be: perf
    events where they are allowed, as timers tick with the kernel, 250 times a
    second on Debian."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [cpprof, "record", "-e", "perf", "-o", "x.pb.gz", "--", "true"],
            cwd=folder, capture_output=True)
    return "cpu=1000" if done.returncode else "cpu=1000,engine=perf"


# ---- what is wrong, as a list of texts for Tap.none() -----------------------

def near(what, got, wanted, within):
    return [] if abs(got - wanted) <= within else \
        ["%s: %s, not %s +- %s" % (what, got, wanted, within)]


def at_least(what, got, least):
    return [] if got >= least else ["%s: %s < %s" % (what, got, least)]
