"""Hosts that cpprof comes into and goes out of, for attach_rounds.py,
attach_page.py and record_attached.py.

    ... CPPROF HOST CALLS LIBRARY KILLED       TAP

HOST is attach_host, CALLS attach_calls, LIBRARY what it loads, KILLED
attach_killed.
"""
import functools
import os
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
import tap  # pylint: disable=wrong-import-position

cpprof, host, calls, library, killed = (os.path.realpath(p)
                                        for p in sys.argv[1:6])
t = tap.Tap()


class Host:
    """One attach_host that has begun its work."""

    def __init__(self, mode):
        self.process = subprocess.Popen([host] + mode.split(),
                                        stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        self.pid = self.process.pid
        time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def call(self, n, words=(library,)):
        """(status, what was printed) of n rounds."""
        done = subprocess.run([calls, str(self.pid), words[0], str(n)] +
                              list(words[1:]), capture_output=True, text=True,
                              check=False, timeout=200)
        return done.returncode, done.stdout + done.stderr

    def end(self):
        """(status, last words); the status is negative for a signal."""
        self.process.terminate()
        try:
            words = self.process.communicate(timeout=60)[0]
        except subprocess.TimeoutExpired:
            return "hangs", ""
        return self.process.returncode, words


def may_attach():
    """None, or why not, as a container without the right says."""
    with Host("nanosleep") as h:
        status, words = h.call(1)
        return None if status == 0 else words.strip()


def record(words, seconds=60):
    done = subprocess.run([cpprof, "record"] + words, capture_output=True,
                          text=True, check=False, timeout=seconds + 60)
    return done.returncode, done.stderr


def report(words):
    return subprocess.run([cpprof] + words, capture_output=True, text=True,
                          check=False, timeout=120).stdout


@functools.lru_cache(maxsize=None)
def compiled(text, flags):
    """The path of a C program, or None without a compiler for it. Others are made
    meanwhile, of the same name."""
    x = tempfile.mkdtemp(dir=".") + "/x"
    with open(x + ".c", "w", encoding="ascii") as f:
        f.write(text)
    done = subprocess.run(["cc", "-o", x, *flags, x + ".c"],
                          capture_output=True, check=False)
    return None if done.returncode else x


def program(text, flags, *words):
    """A process of a C program with these arguments, or None where it cannot be
    compiled."""
    x = compiled(text, tuple(flags))
    if not x:
        return None
    p = subprocess.Popen([x] + list(words))
    time.sleep(0.2)
    return p


def wait_until(is_true, seconds=90):
    end = time.monotonic() + seconds
    while not is_true() and time.monotonic() < end:
        time.sleep(0.2)
    return is_true()


def main(*parts):
    """What a script does, its parts beside each other, in a folder of its
    own."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.pop("LD_PRELOAD", None)
    os.environ.pop("CPPROF", None)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("run", 0o755)
        os.mkdir("tmp")
        os.environ["XDG_RUNTIME_DIR"] = os.path.join(folder, "run")
        os.environ["TMPDIR"] = os.path.join(folder, "tmp")
        why = may_attach()
        if why:
            t.skip("attach", why)
            return t.end()
        t.beside(*parts)
        os.chdir("/")
    return t.end()
