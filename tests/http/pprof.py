#!/usr/bin/env python3
"""go tool pprof, cpprof and curl, and a program that serves.

    pprof.py PROGRAM CPPROF      TAP

PROGRAM is program.c.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from proto import Profile
from served import Server, Tap

TAP = Tap()
PROGRAM, CPPROF = (os.path.abspath(path) for path in sys.argv[1:3])
GO = ["go", "tool", "pprof"]


def run(*command, given=None, timeout=60):
    environment = dict(os.environ, HOME=os.getcwd(), PPROF_TMPDIR=os.getcwd(),
                       PPROF_BINARY_PATH="/nowhere")
    environment.pop("LD_LIBRARY_PATH")
    return subprocess.run(list(command), input=given, capture_output=True,
                          text=True, timeout=timeout, env=environment,
                          check=False)


def check(name, done, *parts):
    """Did it end well, and print something like each of the parts?"""
    TAP.ok(name, done.returncode == 0 and all(
        re.search(part, done.stdout, re.M) for part in parts),
        done.args, done.stdout, done.stderr, done.returncode)


def tools():
    found = [("cpprof", [CPPROF])]
    if shutil.which("go"):
        found.append(("go tool pprof", GO))
    else:
        TAP.skip("go tool pprof", "no go here")
    return found


# ----------------------------------------------------------------- tests ----

def test_profiles(name, tool, url):
    for path, words in (
            ("heap", [r"^Type: inuse_space"]),
            ("allocs", [r"^Type: alloc_space", "allocate_much"]),
            ("block", [r"^Type: delay", "hold_lock"]),
            ("mutex", [r"^Type: delay", "hold_lock"]),
            ("goroutine", [r"^Type: goroutine", "run_busy|nanosleep"]),
            ("threadcreate", [r"^Type: threadcreate", "start"])):
        check("%s reads %s" % (name, path),
              run(*tool, "-top", url + path), *words)
    check("%s reads all values of heap" % name,
          run(*tool, "-top", "-sample_index=alloc_objects", url + "heap"),
          r"^Type: alloc_objects", "allocate_much")


def test_seconds(name, tool, server):
    check("%s -seconds has a CPU profile of them" % name,
          run(*tool, "-top", "-seconds=1", server.url + "profile"),
          r"^Type: cpu", r"^Duration: 1(\.\d+)?s", "burn_time")
    check("so has seconds= in the address",
          run(*tool, "-top", server.url + "profile?seconds=1"),
          r"^Duration: 1(\.\d+)?s", "burn_time")
    check("and HOST:PORT alone",
          run(*tool, "-top", "-seconds=1", server.address),
          r"^Type: cpu", "burn_time")
    for path, words in (("heap", ["-sample_index=alloc_space"]),
                        ("mutex", []), ("wall", []), ("offcpu", []),
                        ("delta_heap", ["-sample_index=alloc_space"])):
        check("%s -seconds of %s" % (name, path),
              run(*tool, "-top", "-seconds=1", *words, server.url + path),
              r"^Duration: 1(\.\d+)?s" if path != "delta_heap" else "^Type",
              "hold_lock|allocate_much")
    check("%s by the names of gperftools" % name,
          run(*tool, "-top", "-seconds=1",
              "http://%s/pprof/profile" % server.address), "burn_time")
    check("%s reads fgprof" % name,
          run(*tool, "-top", "-seconds=1",
              "http://%s/debug/fgprof" % server.address),
          r"^Type: time", "hold_lock")


def test_base(name, tool, url):
    check("%s subtracts one of now from one of later" % name,
          run(*tool, "-top", "-diff_base=" + url + "allocs", url + "allocs"),
          r"^Type: alloc_space")
    check("%s adds up those of two programs" % name,
          run(*tool, "-top", url + "mutex", url + "mutex"), "hold_lock")
    done = run(*tool, "-top", url + "nothing")
    TAP.ok("%s shows what is wrong" % name, done.returncode != 0 and
           "Unknown profile" in done.stderr, done.stderr)
    done = run(*tool, "-top", url + "profile?seconds=1&rate=0")
    TAP.ok("%s shows why" % name, "must be an integer" in done.stderr,
           done.stderr)
    check("%s asks at its prompt" % name,
          run(*tool, url + "mutex", given="top\nquit\n"), "hold_lock")


def test_remote(name, tool):
    """Addresses only; the names come from /symbol."""
    server = Server(PROGRAM, "-", CPPROF="http=127.0.0.1:0,symbolize=none")
    try:
        url = server.url + "mutex"
        with urllib.request.urlopen(url) as answer:
            TAP.ok("no names are in the profile",
                   not Profile(answer.read()).names())
        # Not those of the file, which is here as well.
        check("%s -symbolize=remote asks the program for names" % name,
              run(*tool, "-symbolize=remote", "-top", url), "hold_lock")
        check("of a CPU profile, too", run(
            *tool, "-symbolize=remote", "-top", "-seconds=1",
            server.url + "profile"), "burn_time")
        done = run(*tool, "-symbolize=none", "-top", url)
        TAP.ok("and without it there are none", "hold_lock" not in done.stdout,
               done.stdout)
    finally:
        server.end()


def test_growth(name, tool):
    """What was mapped, where that is followed."""
    server = Server(PROGRAM, "-", CPPROF="http=127.0.0.1:0,mmap=on")
    try:
        check("%s reads growth" % name,
              run(*tool, "-top", "http://%s/pprof/growth" % server.address),
              r"^Type: inuse_space", "map_much")
    finally:
        server.end()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def page(url, seconds=30):
    """Its text, as soon as somebody answers there."""
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            return "%d %s" % (error.code, error.read().decode())
        except OSError as error:
            if time.monotonic() > end:
                return str(error)
            time.sleep(0.1)


def test_http(url):
    """Its pages, of a profile that it took by itself."""
    if not shutil.which("go"):
        return
    port = free_port()
    process = subprocess.Popen(
        GO + ["-http=127.0.0.1:%d" % port, "-no_browser", url + "mutex"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
        env=dict(os.environ, HOME=os.getcwd(), PPROF_TMPDIR=os.getcwd()))
    try:
        base = "http://127.0.0.1:%d/ui/" % port
        paths = ["top", "flamegraph", "peek?f=hold_lock"]
        paths += [""] if shutil.which("dot") else []
        for path in paths:
            text = page(base + path)
            TAP.ok("go tool pprof -http has its page /ui/%s" % path,
                   "hold_lock" in text, text[:500])
    finally:
        os.killpg(process.pid, 15)
        process.wait()


def test_unix():
    if not shutil.which("curl"):
        TAP.skip("curl on a unix socket", "no curl here")
        return
    server = Server(PROGRAM, "unix:" + os.path.abspath("pprof.sock"))
    try:
        ask = ["curl", "-sS", "--unix-socket", "pprof.sock"]
        done = run(*ask, "-o", "mutex", "http://x/debug/pprof/mutex")
        with open("mutex", "rb") as file:
            TAP.ok("curl asks by a unix socket", done.returncode == 0 and
                   "hold_lock" in Profile(file.read()).names(), done.stderr)
        check("and for the dump", run(
            *ask, "http://x/debug/pprof/goroutine?debug=2"), "run_locking")
    finally:
        server.end()
    TAP.ok("the socket is gone with its program",
           not os.path.exists("pprof.sock"))


def main():
    server = Server(PROGRAM, "127.0.0.1:0")
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        try:
            time.sleep(1)  # for something to be in all of them
            for name, tool in tools():
                test_profiles(name, tool, server.url)
                test_seconds(name, tool, server)
                test_base(name, tool, server.url)
                test_remote(name, tool)
                test_growth(name, tool)
            test_http(server.url)
            test_unix()
        finally:
            server.end()
            os.chdir("/")
    return TAP.end()


sys.exit(main())
