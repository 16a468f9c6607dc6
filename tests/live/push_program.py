"""The program whose profiles are pushed (push_worker.c), as it is run."""
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
from tap import Tap, scratch_folder  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
SANITIZER = sys.argv[2] if len(sys.argv) > 2 else "none"
FOLDER = scratch_folder("cpprof-push-")
HAS_HOOKS = SANITIZER != "thread"
KINDS = {"process_cpu", "memory", "block", "mutex", "goroutine"}
TYPES = {
    "process_cpu": ["samples", "cpu"],
    "memory": ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"],
    "block": ["contentions", "delay"],
    "mutex": ["contentions", "delay"],
    "goroutine": ["goroutine"],
    "wall": ["samples", "wall"],
}
TAP = Tap()


def suppressions():
    """A stop that is bounded leaves a sender behind in time, and libcrypto
    frees its locks at exit, as it does under any thread."""
    path = os.path.join(FOLDER, "suppressions")
    with open(path, "w") as file:
        file.write("race:CRYPTO_THREAD_lock_free\n")
    return path


class Ran:
    def __init__(self, *args, env=None, timeout=120):
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("CPPROF", "PYROSCOPE", "CURL_",
                                           "SSL_"))
                       and "proxy" not in key.lower()}
        environment.update(env or {})
        if SANITIZER == "thread":
            environment["TSAN_OPTIONS"] = "suppressions=" + suppressions()
        begun = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            self.status = subprocess.run(
                [PROGRAM] + list(args), stdout=out, stderr=err,
                env=environment, timeout=timeout, check=False).returncode
            self.seconds = time.monotonic() - begun
            out.seek(0)
            err.seek(0)
            self.out = out.read().decode(errors="replace")
            self.err = err.read().decode(errors="replace")

    def word(self, name):
        found = re.findall(r"^%s (.*)$" % name, self.out, re.M)
        return found[0] if found else None


def run_by(words, *args, **keys):
    env = dict(keys.pop("env", {}), CPPROF=words)
    return Ran("-", *args, env=env, **keys)


def go_reads(raw):
    path = os.path.join(FOLDER, "go.pb.gz")
    with open(path, "wb") as out:
        out.write(raw)
    done = subprocess.run(["go", "tool", "pprof", "-raw", path],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=dict(os.environ, HOME=FOLDER), check=False)
    return done.returncode == 0 and b"PeriodType" in done.stdout
