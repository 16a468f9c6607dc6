#!/usr/bin/env python3
"""What fails around a program: its disk is full, its recorder is killed.

    outside.py BUILD            some of it
    outside.py --all BUILD      much more of the same
    outside.py --seed N BUILD   the same choice again

The program is that of faults.py. It must end as it ends alone, in time, and no
process is left.
"""
import argparse
import concurrent.futures
import ctypes
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.path.insert(0, HERE)
import faults  # pylint: disable=wrong-import-position
from tap import Tap  # pylint: disable=wrong-import-position

SECONDS = 100
EVERYTHING = "cpu,heap=4k,block=1,mutex=1,wall=200,symbolize=none,"
RECORDED = "cpu,heap,block,mutex,wall"
# Free kilobytes of a file system, and bytes that a file may have.
DISKS = [0, 4, 8, 16, 40, 100, 300, 1000, 3000, 9000]
FILES = [0, 1, 100, 4096, 10000, 65536, 1 << 20]
PR_SET_CHILD_SUBREAPER = 36


def run(bench, command, folder, words=None, before=""):
    """A command in a shell that may prepare something first."""
    env = bench.environment()
    env["XDG_RUNTIME_DIR"] = env["TMPDIR"] = folder
    if words:
        env["CPPROF"] = words
        command = ["env", "LD_PRELOAD=" + os.path.join(
            bench.build, "libcpprof.so")] + command
    began = time.monotonic()
    with subprocess.Popen(["sh", "-c", before + ' exec "$@"', "sh"] + command,
                          cwd=folder, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=SECONDS)
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            status = "no end after %d s" % SECONDS
    return faults.Result(status, out, err, time.monotonic() - began)


def recorded(bench, folder):
    return [os.path.join(bench.build, "cpprof"), "record", "-t", RECORDED,
            "-symbolize", "none", "-o", os.path.join(folder, "%k.gz"), "--",
            bench.host]


def within(what):
    """A folder for what runs, and nothing of it afterwards."""
    folder = tempfile.mkdtemp(prefix="outside.")
    os.chmod(folder, 0o755) # where a recorder of root makes its own
    try:
        return what(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def full_disk(bench, kilobytes, how):
    """Its folder, that of its recorder and of temporary files is a file system
    with so many free kilobytes (the first 4 are the root's)."""
    def one(folder):
        mount = "mount -t tmpfs -o size=%dk none . && cd . &&" % (
            kilobytes + 4)
        command = ["unshare", "-m", "sh", "-c",
                   mount.replace(".", '"$0"') + ' exec "$@"', folder]
        if how == "record":
            return run(bench, command + recorded(bench, folder), folder)
        command += ["env", "CPPROF=" + EVERYTHING + "out=%e.%k.%p.gz",
                    "LD_PRELOAD=" + os.path.join(bench.build, "libcpprof.so"),
                    bench.host]
        return run(bench, command, folder)
    return within(one)


def short_files(bench, n_bytes, how):
    def one(folder):
        command = ["prlimit", "--fsize=%d" % n_bytes]
        if how == "record":
            return run(bench, command + recorded(bench, folder), folder)
        return run(bench, command + [bench.host], folder,
                   EVERYTHING + "out=%e.%k.%p.gz")
    return within(one)


def device_full(bench, how):
    def one(folder):
        if how == "record":
            command = recorded(bench, folder)
            command[command.index("-t") + 1] = "cpu"
            command[command.index("-o") + 1] = "/dev/full"
            return run(bench, command, folder)
        return run(bench, [bench.host], folder,
                   "cpu,symbolize=none,out=/dev/full")
    return within(one)


def killed(bench, seconds):
    """The recorder is killed after that time; we are the parent of who has
    lost his."""
    def one(folder):
        env = bench.environment()
        env["XDG_RUNTIME_DIR"] = env["TMPDIR"] = folder
        began = time.monotonic()
        status = None
        with open(os.path.join(folder, "out"), "w+b") as out, \
                open(os.path.join(folder, "err"), "w+b") as err:
            process = subprocess.Popen(  # pylint: disable=consider-using-with
                recorded(bench, folder), cwd=folder, env=env,
                stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            time.sleep(seconds)
            process.send_signal(signal.SIGKILL)
            while True:
                if time.monotonic() > began + SECONDS:
                    status = "no end after %d s" % SECONDS
                    break
                try:
                    pid, how = os.waitpid(-1, os.WNOHANG)
                except ChildProcessError:
                    break
                if not pid:
                    time.sleep(0.005)
                elif pid == process.pid:
                    process.returncode = os.waitstatus_to_exitcode(how)
                elif status is None:
                    status = os.waitstatus_to_exitcode(how)
            for file in out, err:
                file.seek(0)
            return faults.Result(status, out.read(), err.read(),
                                 time.monotonic() - began), process.returncode
    return within(one)


def wrong(got, wanted, how):
    """None: nothing. A recorder may say at once that it cannot work."""
    why = faults.wrong(got, wanted)
    if why and how == "record" and got.status in (1, 2) and not got.out and \
            got.err.startswith(b"cpprof: "):
        return None
    return why


def runs(everything, chance):
    """(name, how, function of the bench)"""
    def some(values, n):
        return values if everything else chance.sample(values, n)

    for how in "preload", "record":
        if os.geteuid() == 0:
            for kb in some(DISKS, 3):
                yield ("%s, %d kB free" % (how, kb), how,
                       lambda bench, kb=kb, how=how: full_disk(bench, kb, how))
        for n in some(FILES, 2):
            yield ("%s, files of %d bytes" % (how, n), how,
                   lambda bench, n=n, how=how: short_files(bench, n, how))
        yield ("%s, a full device" % how, how,
               lambda bench, how=how: device_full(bench, how))


def check_killed(bench, tap, alone, n, chance):
    """Moments from before its beginning to after its end."""
    ended = 0
    for _ in range(n):
        seconds = chance.uniform(0, 0.3 if ended < n / 2 else 0.1)
        got, recorder = killed(bench, seconds)
        if recorder >= 0:  # it was too late
            ended += 1
            got = got._replace(status=recorder)
        if got.status is None and not got.out:
            continue  # it had not begun
        if got.status is None and got.out == alone.out:
            # It had ended, and only its recorder knew how.
            got = got._replace(status=alone.status)
        why = faults.wrong(got, alone)
        if why:
            tap.ok("the recorder is killed after %.4f s" % seconds, False,
                   why, got)
    tap.ok("%d recorders are killed" % n, True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("build")
    asked = parser.parse_args()
    tap = Tap()
    bench = faults.Bench(os.path.abspath(asked.build))
    chance = random.Random(asked.seed)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    print("# seed %d" % asked.seed, flush=True)
    alone = bench.run(None)[0]
    tap.ok("alone", alone.status == 7, alone)
    if os.geteuid() != 0:
        tap.skip("file systems", "to mount one needs root")
    with concurrent.futures.ThreadPoolExecutor(faults.AT_ONCE) as pool:
        for name, how, got in pool.map(
                lambda one: (one[0], one[1], one[2](bench)),
                runs(asked.all, chance)):
            why = wrong(got, alone, how)
            tap.ok(name, not why, why, got)
    check_killed(bench, tap, alone, 100 if asked.all else 5, chance)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
